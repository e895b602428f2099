"""Convolutions as products of bytes, or on the float builtins."""
