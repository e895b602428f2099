"""The `func` dialect of MLIR: calls of functions, and functions as values. Functions themselves are no ops here."""

from typing import Final

from tflq.ir.registry import Dialect

__all__ = ["DIALECT"]

DIALECT: Final = Dialect("func", __name__, {"calls": ("call", "call_indirect", "constant")})
