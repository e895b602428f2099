"""What can be known of values without running a model."""
