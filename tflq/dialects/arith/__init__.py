"""The `arith` dialect of MLIR: arithmetic on scalars and, element by element, on tensors."""

from typing import Final

from tflq.ir.registry import Dialect

__all__ = ["DIALECT"]

DIALECT: Final = Dialect(
    "arith",
    __name__,
    {
        "integers": (
            "addi",
            "subi",
            "muli",
            "divsi",
            "divui",
            "ceildivsi",
            "ceildivui",
            "floordivsi",
            "remsi",
            "remui",
            "andi",
            "ori",
            "xori",
            "shli",
            "shrsi",
            "shrui",
            "maxsi",
            "maxui",
            "minsi",
            "minui",
        ),
        "extended": (
            "addui_extended",
            "mulsi_extended",
            "mului_extended",
        ),
        "floats": (
            "addf",
            "subf",
            "mulf",
            "divf",
            "remf",
            "maximumf",
            "minimumf",
            "maxnumf",
            "minnumf",
            "negf",
        ),
        "casts": (
            "extsi",
            "extui",
            "trunci",
            "extf",
            "truncf",
            "sitofp",
            "uitofp",
            "fptosi",
            "fptoui",
            "index_cast",
            "index_castui",
            "bitcast",
        ),
        "comparison": (
            "cmpi",
            "cmpf",
            "select",
        ),
    },
)
