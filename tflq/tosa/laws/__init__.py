"""What TOSA 1.0 demands of each operator beyond element types."""
