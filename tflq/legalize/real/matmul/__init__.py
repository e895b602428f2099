"""Products of matrices, on types that no kernel computes."""
