"""Debugging of quantized networks: which operators are wrong, and how far their errors reach."""
