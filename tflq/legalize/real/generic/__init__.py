"""What the rules of many families share."""
