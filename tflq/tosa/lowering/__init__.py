"""The integer form → operators of TOSA 1.0: one lowering per op, one file or folder per family."""

from tflq.tosa.lowering.engine import lower

__all__ = ["lower"]
