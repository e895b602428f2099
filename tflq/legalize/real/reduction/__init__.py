"""Reductions, on types that no kernel computes."""
