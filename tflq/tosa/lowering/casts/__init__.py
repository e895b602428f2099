"""Conversions between element types, scales and real values."""
