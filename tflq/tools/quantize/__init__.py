"""Quantizing: networks of floats become networks of quantized operators."""
