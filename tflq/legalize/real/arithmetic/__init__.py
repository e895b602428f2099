"""Elementwise arithmetic of two tensors, on types that no kernel computes."""
