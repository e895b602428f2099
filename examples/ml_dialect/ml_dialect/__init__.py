"""The `ml` dialect: arithmetic on tensors, of floats or quantized."""

from tflq.ir.ops import Dialect

__all__ = ["DIALECT"]

DIALECT = Dialect("ml", __name__, {"ops": ("add", "mul", "div", "mod")})
