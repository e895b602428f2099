"""The `stablehlo` dialect, with the specification's semantics, and with the functions that convert what a reduction
accumulates.

Declared are the ops that are verified and evaluated; others of the dialect are read and kept as they are.
"""

from typing import Final

from tflq.ir.registry import Dialect

__all__ = ["DIALECT"]

DIALECT: Final = Dialect(
    "stablehlo",
    __name__,
    {
        "arithmetic": (
            *("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "power", "and", "or", "xor"),
        ),
        "casts": ("uniform_quantize", "uniform_dequantize", "convert"),
        "comparison": ("compare", "select", "clamp"),
        "control": ("return", "optimization_barrier", "custom_call"),
        "matmul": ("dot_general",),
        "convolution": ("convolution",),
        "movement": ("reshape", "transpose", "broadcast_in_dim", "slice", "concatenate", "reverse"),
        "reduction": ("reduce",),
        "windows": ("reduce_window", "select_and_scatter"),
        "unary": (
            *("abs", "negate", "not", "sign", "ceil", "floor", "round_nearest_even", "round_nearest_afz"),
            *("exponential", "log", "logistic", "sqrt", "rsqrt", "tanh", "cosine", "sine"),
        ),
    },
)
