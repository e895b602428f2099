"""The numerics that TFLite has and TOSA lacks. Each class says exactly what it computes."""

from typing import Final

from tflq.ir.registry import Dialect

__all__ = ["DIALECT"]

DIALECT: Final = Dialect(
    "ext",
    __name__,
    {
        "rescale": (
            "rescale_f64",
            "rescale_i64",
            "rescale_mean",
            "rounding_divide_by_pot",
        ),
        "tables": (
            "table_16bit",
            "table_2d",
        ),
        "casts": ("truncate",),
    },
)
