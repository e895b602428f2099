"""reduce_window and select_and_scatter: reductions of windows, and of what is scattered by windows."""

from __future__ import annotations

from tflq.dialects.declare import operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.dialects.stablehlo.conversions import ACCUMULATION, Accumulating, results_of
from tflq.dialects.stablehlo.convolution import Window, window
from tflq.dialects.stablehlo.rules import agree, integers, types_agree
from tflq.ir.core import Op, Region, Value
from tflq.ir.op_checks import constraint
from tflq.ir.types import TensorType, i1

__all__ = ["ReduceWindow", "SelectAndScatter"]


def _window(op: Op, value: Value) -> Window | None:
    sizes, rank = integers(op, "window_dimensions"), value.type.rank
    rank = len(sizes or ()) if rank is None else rank
    return window(op, rank, sizes, "base_dilations", "window_dilations")


@constraint
def _counted(op: ReduceWindow) -> bool:
    """0 < size(inputs) = size(init_values) = size(results) = N"""
    return 0 < len(op.operands) == 2 * len(op.results) and None not in op.operands


@constraint
def _one_shape(op: ReduceWindow) -> bool:
    """same(shape(inputs...)): the inputs must have the same shape"""
    return types_agree(op.inputs)


@constraint
def _windowed(op: ReduceWindow | SelectAndScatter) -> bool:
    """'window_dimensions', 'window_strides', 'base_dilations', 'window_dilations' and 'padding' must have an item
    for each dimension, all but the padding from 1 up"""
    spread = op.window
    if spread is None:
        return False
    return min((*spread.sizes, *spread.strides, *spread.base_dilations, *spread.dilations), default=1) >= 1


@constraint
def _sized(op: ReduceWindow) -> bool:
    """shape(results...) is the number of windows along each dimension of the inputs"""
    spread, shapes = op.window, [value.type.shape for value in op.inputs]
    counts = [None if spread is None or shape is None else spread.counts(shape) for shape in shapes]
    return all(agree(count, made.type.shape) for count in counts for made in op.results)


@constraint
def _source_type(op: SelectAndScatter) -> bool:
    """(C1) element_type(operand) = element_type(source)"""
    return op.input.type.element == op.source.type.element


@constraint
def _source_shape(op: SelectAndScatter) -> bool:
    """(C2) shape(source) is the number of windows along each dimension of the operand"""
    shape, spread = op.input.type.shape, op.window
    return shape is None or spread is None or agree(spread.counts(shape), op.source.type.shape)


@constraint
def _init_type(op: SelectAndScatter) -> bool:
    """(C3) element_type(init_value) = element_type(operand): the accumulator's type is that which
    input_conversion makes"""
    return op.init.type.element == op.input.type.element


@constraint
def _has_select(op: SelectAndScatter) -> bool:
    """the op must have a region select, then scatter, with input_conversion before it and output_conversion after it"""
    return len(op.regions) > 1


@constraint
def _select_type(op: SelectAndScatter) -> bool:
    """(C9) select has type (tensor<E>, tensor<E>) -> tensor<i1> where E = element_type(operand): it accumulates nothing
    and has no conversion"""
    region = op.regions[0]
    scalar = TensorType((), op.input.type.element)
    given = [v.type for v in region.block.arguments] == [scalar, scalar]
    return given and [v and v.type for v in results_of(region) or []] == [TensorType((), i1)]


@constraint
def _result_shape(op: SelectAndScatter) -> bool:
    """(C11) shape(operand) = shape(result)"""
    return agree(op.input.type.shape, op.result.type.shape)


class ReduceWindow(Accumulating, name="stablehlo.reduce_window"):
    """`reduce` of each window of the inputs, padded with init values."""

    __slots__ = ()
    values: list[Value] = operand(variadic=True)
    outputs: list[Value] = result_(variadic=True)
    constraints = (_counted, _one_shape, _windowed, *ACCUMULATION, _sized)

    @property
    def inputs(self) -> list[Value]:
        return self.values[: len(self.operands) // 2]

    @property
    def inits(self) -> list[Value]:
        return self.values[len(self.operands) // 2 :]

    @property
    def window(self) -> Window | None:
        """How its window moves; None if an attribute does not fit the inputs."""
        return _window(self, self.inputs[0])


class SelectAndScatter(Accumulating, name="stablehlo.select_and_scatter"):
    """`reduce`, by `scatter`, of the values of `source` whose windows of the operand `select` this place."""

    __slots__ = ()
    input: Value = operand()
    source: Value = operand()
    init: Value = operand()
    result: Value = result_()
    constraints = (
        declared,
        _has_select,
        _source_type,
        _init_type,
        _windowed,
        *ACCUMULATION,
        _select_type,
        _source_shape,
        _result_shape,
    )

    @property
    def inputs(self) -> list[Value]:
        return [self.input]

    @property
    def inits(self) -> list[Value]:
        return [self.init]

    @property
    def own_regions(self) -> list[Region]:
        return list(self.regions[1:])

    @property
    def window(self) -> Window | None:
        """How its window moves; None if an attribute does not fit the operand."""
        return _window(self, self.input)
