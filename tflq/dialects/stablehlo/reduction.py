"""reduce: tensors accumulated along dimensions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.dialects.declare import operand, result
from tflq.dialects.stablehlo.conversions import ACCUMULATION, Accumulating, single_op
from tflq.dialects.stablehlo.rules import agree, integers, types_agree
from tflq.ir.attributes import TypedArray
from tflq.ir.core import Op, Value
from tflq.ir.op_checks import constraint
from tflq.ir.types import TensorType, i64

__all__ = ["Reduce"]


@constraint
def _counted(op: Reduce) -> bool:
    """0 < size(inputs) = size(init_values) = size(results) = N"""
    return 0 < len(op.operands) == 2 * len(op.results) and None not in op.operands


@constraint
def _one_shape(op: Reduce) -> bool:
    """same(shape(inputs...)): the inputs must have the same shape"""
    return types_agree(op.inputs)


@constraint
def _within(op: Reduce) -> bool:
    """0 <= dimensions < rank(inputs[0])"""
    dims, rank = integers(op, "dimensions"), op.inputs[0].type.rank
    return dims is not None and all(d >= 0 and (rank is None or d < rank) for d in dims)


@constraint
def _unique(op: Reduce) -> bool:
    """is_unique(dimensions): no dimension may be named twice"""
    return len(set(op.dimensions)) == len(op.dimensions)


@constraint
def _sized(op: Reduce) -> bool:
    """shape(results...) is shape(inputs...) without the dimensions that are reduced"""
    shapes = [value.type.shape for value in op.inputs]
    left = [s and tuple(size for axis, size in enumerate(s) if axis not in op.dimensions) for s in shapes]
    return all(agree(shape, made.type.shape) for shape in left for made in op.results)


class Reduce(Accumulating, name="stablehlo.reduce"):
    """Inputs accumulated along dimensions, in any order, with init values among them."""

    __slots__ = ()
    values: list[Value] = operand(variadic=True)
    outputs: list[Value] = result(variadic=True)
    constraints = (_counted, _one_shape, _within, _unique, *ACCUMULATION, _sized)

    @property
    def inputs(self) -> list[Value]:
        return self.values[: len(self.operands) // 2]

    @property
    def inits(self) -> list[Value]:
        return self.values[len(self.operands) // 2 :]

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The dimensions that are reduced."""
        return integers(self, "dimensions") or ()

    def applied(self) -> Op | None:
        """The one op that is its body, if it has no conversions and nothing else to say."""
        if len(self.regions) != 1 or len(self.operands) != 2 or set(self.attributes) != {"dimensions"} or self.info:
            return None
        body = single_op(self.regions[0])
        if body is None or body.attributes or body.info or body.location or integers(self, "dimensions") is None:
            return None
        scalar = TensorType((), self.inputs[0].type.element)
        return body if all(value.type == scalar and not value.name for value in body.tensors) else None

    def normalize(self) -> None:
        if self.applied() is not None:
            self.attributes["dimensions"] = TypedArray.of(np.array(self.dimensions, np.int64), i64)

    def custom_text(self, _name: Callable[[Value | None], str]) -> str | None:
        """`stablehlo.reduce(%x init: %y) applies stablehlo.add across dimensions = [1]`"""
        body = self.applied()
        if body is None:
            return None
        given, init = self.inputs[0], self.inits[0]
        dims = ", ".join(map(str, self.dimensions))
        return f"{self.name}({_name(given)} init: {_name(init)}) applies {body.name} across dimensions = [{dims}]"
