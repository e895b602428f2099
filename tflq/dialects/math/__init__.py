"""The `math` dialect of MLIR: functions of numbers, on scalars and, element by element, on tensors."""

from typing import Final

from tflq.ir.registry import Dialect

__all__ = ["DIALECT"]

DIALECT: Final = Dialect(
    "math",
    __name__,
    {
        "rounding": (
            "absf",
            "ceil",
            "floor",
            "round",
            "roundeven",
            "trunc",
        ),
        "functions": (
            "acos",
            "acosh",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "cbrt",
            "cos",
            "cosh",
            "erf",
            "erfc",
            "exp",
            "exp2",
            "expm1",
            "log",
            "log10",
            "log1p",
            "log2",
            "rsqrt",
            "sin",
            "sinh",
            "sqrt",
            "tan",
            "tanh",
        ),
        "several": (
            "atan2",
            "copysign",
            "powf",
            "fma",
            "clampf",
            "fpowi",
        ),
        "integers": (
            "absi",
            "ctlz",
            "ctpop",
            "cttz",
            "ipowi",
        ),
        "classes": (
            "isfinite",
            "isinf",
            "isnan",
            "isnormal",
        ),
    },
)
