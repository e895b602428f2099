"""Operators on types that no kernel computes: the real function of what the operands stand for, rounded."""
