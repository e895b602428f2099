"""The `shape` dialect of MLIR, on shapes as tensors of sizes (`tensor<?xindex>`)."""

from typing import Final

from tflq.ir.registry import Dialect

__all__ = ["DIALECT"]

DIALECT: Final = Dialect(
    "shape",
    __name__,
    {
        "extents": (
            "broadcast",
            "concat",
            "const_shape",
            "dim",
            "get_extent",
            "num_elements",
            "rank",
            "shape_of",
            "split_at",
        )
    },
)
