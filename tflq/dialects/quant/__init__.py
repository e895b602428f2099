"""The `quant` dialect: the ops between real values, quantized values and their storage, statistics of values, and
regions that stand for kernels."""

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
        "statistics": (
            "const_fake_quant",
            "const_fake_quant_per_axis",
            "stats",
            "stats_ref",
            "coupled_ref",
        ),
        "regions": (
            "region",
            "return",
            "rescale",
        ),
    },
)
