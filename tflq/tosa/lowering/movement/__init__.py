"""Elements in another order, place or number."""
