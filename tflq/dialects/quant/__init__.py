"""The `quant` dialect: the ops between real values, quantized values and their storage."""

from typing import Final

from tflq.ir.registry import Dialect

__all__ = ["DIALECT"]

DIALECT: Final = Dialect(
    "quant",
    __name__,
    {
        "casts": (
            "qcast",
            "dcast",
            "scast",
        ),
    },
)
