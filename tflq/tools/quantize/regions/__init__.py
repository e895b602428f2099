"""Logical kernels: fused, their parameters propagated under a target's constraints, made real or inlined again."""
