"""Requantization: a real factor on integers as kernels round it, and the forms that compute the same function."""
