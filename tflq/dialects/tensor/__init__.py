"""The `tensor` dialect of MLIR: tensors made, taken apart and seen in other shapes; no element is computed."""

from typing import Final

from tflq.ir.registry import Dialect

__all__ = ["DIALECT"]

DIALECT: Final = Dialect(
    "tensor",
    __name__,
    {
        "making": (
            "empty",
            "from_elements",
            "generate",
            "splat",
            "yield",
        ),
        "views": (
            "bitcast",
            "cast",
            "collapse_shape",
            "expand_shape",
            "reshape",
        ),
        "parts": (
            "concat",
            "dim",
            "extract",
            "extract_slice",
            "insert",
            "insert_slice",
            "pad",
            "rank",
        ),
    },
)
