"""Convolutions: of integers, of floats."""
