"""Operators on types that no kernel computes: the real function of what the operands stand for, rounded."""

from tflq.legalize.real import (
    arithmetic,
    blocks,
    comparison,
    functions,
    products,
    reduction,
    segments,
    square_sums,
    sums,
    unary,
    with_number,
)

__all__ = [
    "arithmetic",
    "blocks",
    "comparison",
    "functions",
    "products",
    "reduction",
    "segments",
    "square_sums",
    "sums",
    "unary",
    "with_number",
]
