"""Reductions, and where the greatest and the least elements are."""
