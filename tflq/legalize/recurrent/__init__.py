"""Recurrent operators: the integer kernels' steps written out, and their state."""
