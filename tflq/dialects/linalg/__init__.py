"""The `linalg` dialect of MLIR, as far as it is a loop over elements."""

from typing import Final

from tflq.ir.registry import Dialect

__all__ = ["DIALECT"]

DIALECT: Final = Dialect("linalg", __name__, {"generic": ("generic", "index", "yield")})
