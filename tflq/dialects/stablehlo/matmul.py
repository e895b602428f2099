"""dot_general: products of matrices, also of floating-point and quantized ones."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from tflq.dialects.declare import Operator, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.dialects.stablehlo.hybrid import (
    Hybrid,
    all_quantized_or_hybrid,
    lhs_per_tensor,
    one_expressed_type,
    one_storage_type,
    real_as_expressed,
)
from tflq.dialects.stablehlo.rules import agree, is_per_axis
from tflq.ir.core import Value
from tflq.ir.op_checks import constraint

__all__ = ["DotGeneral", "DotNumbers"]

_FIELD = re.compile(r"(\w+)\s*=\s*\[([^\]]*)\]")


class DotNumbers(NamedTuple):
    """Which dimensions of lhs and rhs are batches, and which are summed over."""

    lhs_batching: tuple[int, ...]
    rhs_batching: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]

    def free(self, rank: int, *, right: bool) -> list[int]:
        """The other dimensions of a side."""
        taken = (*self[right], *self[2 + right])
        return [i for i in range(rank) if i not in taken]


@constraint
def _numbered(op: DotGeneral) -> bool:
    """'dot_dimension_numbers' must name dimensions of lhs and rhs, each once, as many of the one as of the other"""
    numbers = op.numbers
    if len(numbers.lhs_batching) != len(numbers.rhs_batching):
        return False
    if len(numbers.lhs_contracting) != len(numbers.rhs_contracting):
        return False
    for right, side in enumerate((op.lhs, op.rhs)):
        named, rank = (*numbers[right], *numbers[2 + right]), side.type.rank
        if len(set(named)) != len(named) or any(d < 0 or (rank is not None and d >= rank) for d in named):
            return False
    return True


@constraint
def _sized(op: DotGeneral) -> bool:
    """dimensions of lhs and rhs that belong together must have the same size, and the result has the batching
    dimensions, the others of lhs and the others of rhs"""
    left, right, numbers = op.lhs.type.shape, op.rhs.type.shape, op.numbers
    if left is None or right is None:
        return True
    pairs = (
        *zip(numbers.lhs_batching, numbers.rhs_batching, strict=True),
        *zip(numbers.lhs_contracting, numbers.rhs_contracting, strict=True),
    )
    if not agree(tuple(left[a] for a, _ in pairs), tuple(right[b] for _, b in pairs)):
        return False
    batches = [
        right[b] if left[a] is None else left[a]
        for a, b in zip(numbers.lhs_batching, numbers.rhs_batching, strict=True)
    ]
    rows = [left[i] for i in numbers.free(len(left), right=False)]
    return agree((*batches, *rows, *(right[i] for i in numbers.free(len(right), right=True))), op.result.type.shape)


@constraint
def _no_zero_points(op: DotGeneral) -> bool:
    """(C15) the zero points of rhs must be 0"""
    element = op.rhs.type.element
    stated = getattr(element, "zero_points", getattr(element, "zero_point", 0))
    return not np.any(stated)


@constraint
def _not_contracted(op: DotGeneral) -> bool:
    """scales of rhs must not be along a dimension that is summed over"""
    return not is_per_axis(op.rhs.type) or op.rhs.type.element.axis not in op.numbers.rhs_contracting  # type: ignore[union-attr]


class DotGeneral(Operator, name="stablehlo.dot_general"):
    """Sums of products over the contracting dimensions. Of a floating-point lhs and a quantized rhs, the rhs is
    dequantized; of quantized ones, the numbers that they stand for are multiplied, and the sums are quantized."""

    __slots__ = ()
    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (
        declared,
        all_quantized_or_hybrid("C14"),
        _no_zero_points,
        one_storage_type("C16"),
        one_expressed_type("C17"),
        real_as_expressed("C18"),
        lhs_per_tensor,
        _numbered,
        _sized,
        _not_contracted,
    )
    traits = (Hybrid(),)

    @property
    def numbers(self) -> DotNumbers:
        """Its dimension numbers; none of any kind where the attribute says none."""
        stated = self.attributes.get("dot_dimension_numbers")
        lists = dict(_FIELD.findall(str(getattr(stated, "text", ""))))
        return DotNumbers(
            *(
                _ints(lists.get(f"{side}_{kind}_dimensions", ""))
                for kind in ("batching", "contracting")
                for side in ("lhs", "rhs")
            )
        )


def _ints(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.replace(",", " ").split())
