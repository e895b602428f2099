"""Elements by index, and tables."""
