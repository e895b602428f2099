"""Arithmetic, functions, comparisons and casts, element by element; elements in another order or shape. Reductions
of whole dimensions and of windows; and ops that compute nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from tflq.dialects.constraints import agree, baseline, elementwise, integers, one_kind, types_agree
from tflq.dialects.declare import Operator, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.forms import declared
from tflq.dialects.stablehlo.convolution import ACCUMULATION, Accumulating, Window, results_of, single_op, window
from tflq.dialects.traits import Impure
from tflq.ir.attributes import TypedArray
from tflq.ir.ops import Op, Region, Value
from tflq.ir.types import ScalarType, TensorType, i1, i64, is_float, is_quantized
from tflq.ir.verifier import Check, constraint


class Binary(Operator):
    """Of two tensors, element by element."""

    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (declared, elementwise, one_kind)


class Add(Binary, name="stablehlo.add"):
    """The sum; of booleans, whether one is true."""


class Subtract(Binary, name="stablehlo.subtract"):
    """The difference."""


class Multiply(Binary, name="stablehlo.multiply"):
    """The product; of booleans, whether both are true."""


class Divide(Binary, name="stablehlo.divide"):
    """The quotient; of integers, without its fraction."""


class Remainder(Binary, name="stablehlo.remainder"):
    """The remainder of a division, with the sign of the dividend."""


class Maximum(Binary, name="stablehlo.maximum"):
    """The greater."""


class Minimum(Binary, name="stablehlo.minimum"):
    """The lesser."""


class Power(Binary, name="stablehlo.power"):
    """The power."""


class And(Binary, name="stablehlo.and"):
    """Bits that both have."""


class Or(Binary, name="stablehlo.or"):
    """Bits that one of them has."""


class Xor(Binary, name="stablehlo.xor"):
    """Bits that differ."""


# Functions of one tensor, element by element.


class Unary(Operator):
    """Of one tensor, element by element."""

    input: Value = operand()
    result: Value = result_()
    constraints = (declared, elementwise, one_kind)


class Abs(Unary, name="stablehlo.abs"):
    """The absolute value."""


class Negate(Unary, name="stablehlo.negate"):
    """The value with the other sign."""


class Not(Unary, name="stablehlo.not"):
    """Every bit the other way."""


class Sign(Unary, name="stablehlo.sign"):
    """-1, 0 or 1."""


class Ceil(Unary, name="stablehlo.ceil"):
    """The next integer up."""


class Floor(Unary, name="stablehlo.floor"):
    """The next integer down."""


class RoundNearestEven(Unary, name="stablehlo.round_nearest_even"):
    """The nearest integer, of two the even one."""


class RoundNearestAfz(Unary, name="stablehlo.round_nearest_afz"):
    """The nearest integer, of two the one away from zero."""


class Exponential(Unary, name="stablehlo.exponential"):
    """e to the power of it."""


class Log(Unary, name="stablehlo.log"):
    """The natural logarithm."""


class Logistic(Unary, name="stablehlo.logistic"):
    """1 / (1 + exp(-x))"""


class Sqrt(Unary, name="stablehlo.sqrt"):
    """The square root."""


class Rsqrt(Unary, name="stablehlo.rsqrt"):
    """1 / sqrt(x)"""


class Tanh(Unary, name="stablehlo.tanh"):
    """The hyperbolic tangent."""


class Cosine(Unary, name="stablehlo.cosine"):
    """The cosine."""


class Sine(Unary, name="stablehlo.sine"):
    """The sine."""


# Comparison and choice, element by element.


_DIRECTION = re.compile(r"EQ|NE|GE|GT|LE|LT")


@constraint("the operands must have the same element type, and the result is of i1")
def _compared(op: Compare) -> bool:
    return op.lhs.type.element == op.rhs.type.element and op.result.type.element == i1


@constraint("'comparison_direction' must be one of EQ, NE, GE, GT, LE and LT")
def _directed(op: Compare) -> bool:
    return bool(op.direction)


@constraint("'pred' must be of i1, a scalar or of the shape of the others, which must have the type of the result")
def _chosen(op: Select) -> bool:
    result = op.result.type
    same = op.on_true.type.element == op.on_false.type.element == result.element
    shapes = agree(op.on_true.type.shape, result.shape) and agree(op.on_false.type.shape, result.shape)
    return (
        same
        and shapes
        and op.pred.type.element == i1
        and (op.pred.type.rank == 0 or agree(op.pred.type.shape, result.shape))
    )


@constraint("'min' and 'max' must have the operand's element type, and be scalars or of its shape")
def _bounded(op: Clamp) -> bool:
    source, result = op.input.type, op.result.type
    bounds = all(b.rank == 0 or agree(b.shape, source.shape) for b in (op.min.type, op.max.type))
    return bounds and agree(source.shape, result.shape) and op.min.type.element == op.max.type.element == source.element


class Compare(Operator, name="stablehlo.compare"):
    """Whether two values compare as `comparison_direction` says."""

    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (declared, elementwise, _compared, _directed)

    @property
    def direction(self) -> str:
        """EQ, NE, GE, GT, LE or LT; "" if it is not stated."""
        opaque = self.attributes.get("comparison_direction")
        match = _DIRECTION.search(str(getattr(opaque, "text", opaque)).replace("comparison_direction", ""))
        return match[0] if match else ""


class Select(Operator, name="stablehlo.select"):
    """One of two values."""

    pred: Value = operand()
    on_true: Value = operand()
    on_false: Value = operand()
    result: Value = result_()
    constraints = (declared, _chosen)


class Clamp(Operator, name="stablehlo.clamp"):
    """A value within bounds."""

    min: Value = operand()
    input: Value = operand()
    max: Value = operand()
    result: Value = result_()
    constraints = (declared, _bounded)


# Casts between real numbers and quantized ones, and between plain types.


def _expressed(op: Op, index: int = 0) -> object:
    value = op.operand(index)
    element = value.type.element
    return element.expressed if is_quantized(element) else element


@constraint(
    "(C2) the operand must be floating-point or quantized, the result quantized, and both must express one type"
)
def _quantizes(op: Op) -> bool:
    element = op.operand(0).type.element
    target = op.result.type.element
    return (is_quantized(element) or is_float(element)) and is_quantized(target) and target.expressed == _expressed(op)


@constraint("(C2) the operand must be quantized, and the result of the type that it expresses")
def _dequantizes(op: Op) -> bool:
    return is_quantized(op.operand(0).type.element) and op.result.type.element == _expressed(op)


@constraint("neither operand nor result may be quantized: that is uniform_quantize and uniform_dequantize")
def _plain(op: Op) -> bool:
    return isinstance(op.operand(0).type.element, ScalarType) and isinstance(op.result.type.element, ScalarType)


class _Cast(Operator):
    """A tensor as one of another element type."""

    input: Value = operand()
    result: Value = result_()


class UniformQuantize(_Cast, name="stablehlo.uniform_quantize"):
    """result = clamp(round_nearest_even(operand / scale + zero_point), storage_min, storage_max); what is quantized is
    dequantized first."""

    constraints = (declared, elementwise, _quantizes)


class UniformDequantize(_Cast, name="stablehlo.uniform_dequantize"):
    """result = (operand - zero_point) * scale"""

    constraints = (declared, elementwise, _dequantizes)


class Convert(_Cast, name="stablehlo.convert"):
    """The value in another plain type."""

    constraints = (declared, elementwise, _plain)


# Ops that compute nothing: the end of a region, a barrier, calls of what others define.


@constraint("the results must have the types of the operands")
def _passed_on(op: OptimizationBarrier) -> bool:
    return [v.type for v in op.values] == [v.type for v in op.results]


class Return(Operator, name="stablehlo.return"):
    """The end of a region, and what it gives."""

    values: list[Value] = operand(variadic=True)


class OptimizationBarrier(Operator, name="stablehlo.optimization_barrier"):
    """Its operands; what makes them is not folded into what reads them."""

    values: list[Value] = operand(variadic=True)
    outputs: list[Value] = result_(variadic=True)
    constraints = (_passed_on,)
    traits = (Impure(),)


class CustomCall(Operator, name="stablehlo.custom_call"):
    """An operation that is defined elsewhere."""

    values: list[Value] = operand(variadic=True)
    outputs: list[Value] = result_(variadic=True)
    traits = (Impure(),)


# Elements in another order or shape.


@constraint("operands and result must have the same element type; scales along an axis may go to another one")
def _same_elements(op: Op) -> bool:
    kinds = {baseline(value.type) for value in op.tensors}
    return len(kinds) == 1


@constraint("operand and result must have the same number of elements")
def _counted(op: Op) -> bool:
    sizes = [v.type.shape for v in op.tensors]
    if any(shape is None or None in shape for shape in sizes):
        return True
    return len({math.prod(d or 0 for d in shape or ()) for shape in sizes}) == 1


@constraint("'permutation' must name every dimension of the operand once, and the result has its shape in that order")
def _permuted(op: Transpose) -> bool:
    order, shape = integers(op, "permutation"), op.input.type.shape
    if order is None or shape is None:
        return order is not None
    permuted = tuple(shape[i] for i in order) if sorted(order) == list(range(len(shape))) else None
    return permuted is not None and agree(permuted, op.result.type.shape)


@constraint(
    "'broadcast_dimensions' must name a dimension of the result, once, for each of the operand's, which is of its "
    "size or 1"
)
def _broadcast(op: BroadcastInDim) -> bool:
    dims, source, result = integers(op, "broadcast_dimensions"), op.input.type.shape, op.result.type.shape
    if dims is None or source is None or result is None:
        return dims is not None
    if len(dims) != len(source) or len(set(dims)) != len(dims) or any(not 0 <= d < len(result) for d in dims):
        return False
    return all(size in (1, None, result[d]) or result[d] is None for size, d in zip(source, dims, strict=True))


@constraint(
    "'start_indices', 'limit_indices' and 'strides' must be within the operand, and say the shape of the result"
)
def _within(op: Slice) -> bool:
    shape, bounds = op.input.type.shape, [integers(op, k) for k in ("start_indices", "limit_indices", "strides")]
    if shape is None or None in bounds:
        return None not in bounds
    starts, limits, strides = (b or () for b in bounds)
    if not len(shape) == len(starts) == len(limits) == len(strides):
        return False
    rows = list(zip(shape, starts, limits, strides, strict=True))
    if any(not 0 <= start <= limit or stride < 1 or (n is not None and limit > n) for n, start, limit, stride in rows):
        return False
    return agree(tuple(-(-(limit - start) // stride) for _, start, limit, stride in rows), op.result.type.shape)


@constraint("the operands must differ in size along 'dimension' only, and the result has their sum")
def _joined(op: Concatenate) -> bool:
    axis, result = op.attributes.get("dimension"), op.result.type.shape
    shapes = [v.type.shape for v in op.present_operands]
    if not shapes or len(op.results) != 1 or not isinstance(axis, int):
        return False
    if result is None or any(shape is None for shape in shapes):
        return True
    if not 0 <= axis < len(result) or any(len(shape or ()) != len(result) for shape in shapes):
        return False
    sizes = [(shape or ())[axis] for shape in shapes]
    total = None if None in sizes else sum(s or 0 for s in sizes)
    others = [(*(s or ())[:axis], total, *(s or ())[axis + 1 :]) for s in shapes]
    return all(agree(shape, result) for shape in others)


@constraint("'dimensions' must be dimensions of the operand, each once, and the result has its shape")
def _reversed(op: Reverse) -> bool:
    dims, shape = integers(op, "dimensions"), op.input.type.shape
    if dims is None or len(set(dims)) != len(dims) or not agree(shape, op.result.type.shape):
        return False
    return shape is None or all(0 <= d < len(shape) for d in dims)


class _Moved(Operator):
    """The elements of one tensor, in another order or place."""

    input: Value = operand()
    result: Value = result_()
    constraints: ClassVar[tuple[Check, ...]] = (declared, _same_elements)


class Reshape(_Moved, name="stablehlo.reshape"):
    """The elements of the operand in another shape."""

    constraints = (*_Moved.constraints, _counted)


class Transpose(_Moved, name="stablehlo.transpose"):
    """The dimensions in another order."""

    constraints = (*_Moved.constraints, _permuted)


class BroadcastInDim(_Moved, name="stablehlo.broadcast_in_dim"):
    """The elements repeated along dimensions."""

    constraints = (*_Moved.constraints, _broadcast)


class Slice(_Moved, name="stablehlo.slice"):
    """The elements from a start to a limit, by steps."""

    constraints = (*_Moved.constraints, _within)


class Concatenate(Operator, name="stablehlo.concatenate"):
    """Tensors one after the other along a dimension."""

    inputs: list[Value] = operand(variadic=True)
    result: Value = result_()
    constraints = (_joined, _same_elements)


class Reverse(_Moved, name="stablehlo.reverse"):
    """The elements in reverse order along dimensions."""

    constraints = (*_Moved.constraints, _reversed)


# reduce: tensors accumulated along dimensions.


@constraint("0 < size(inputs) = size(init_values) = size(results) = N")
def _counted_alike(op: Accumulated) -> bool:
    return 0 < len(op.operands) == 2 * len(op.results) and None not in op.operands


@constraint("same(shape(inputs...)): the inputs must have the same shape")
def _one_shape(op: Accumulated) -> bool:
    return types_agree(op.inputs)


@constraint("0 <= dimensions < rank(inputs[0])")
def _reduction_within(op: Reduce) -> bool:
    dims, rank = integers(op, "dimensions"), op.inputs[0].type.rank
    return dims is not None and all(d >= 0 and (rank is None or d < rank) for d in dims)


@constraint("is_unique(dimensions): no dimension may be named twice")
def _unique(op: Reduce) -> bool:
    return len(set(op.dimensions)) == len(op.dimensions)


@constraint("shape(results...) is shape(inputs...) without the dimensions that are reduced")
def _sized(op: Reduce) -> bool:
    shapes = [value.type.shape for value in op.inputs]
    left = [s and tuple(size for axis, size in enumerate(s) if axis not in op.dimensions) for s in shapes]
    return all(agree(shape, result.type.shape) for shape in left for result in op.results)


class Accumulated(Accumulating):
    """The operands are the inputs, then as many init values."""

    values: list[Value] = operand(variadic=True)
    outputs: list[Value] = result_(variadic=True)

    @property
    def inputs(self) -> list[Value]:
        return self.values[: len(self.operands) // 2]

    @property
    def inits(self) -> list[Value]:
        return self.values[len(self.operands) // 2 :]


class Reduce(Accumulated, name="stablehlo.reduce"):
    """Inputs accumulated along dimensions, in any order, with init values among them."""

    constraints = (_counted_alike, _one_shape, _reduction_within, _unique, *ACCUMULATION, _sized)

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
        source, init = self.inputs[0], self.inits[0]
        dims = ", ".join(map(str, self.dimensions))
        return f"{self.name}({_name(source)} init: {_name(init)}) applies {body.name} across dimensions = [{dims}]"


# reduce_window and select_and_scatter: reductions of windows, and of what is scattered by windows.


def _window(op: Op, value: Value) -> Window | None:
    sizes, rank = integers(op, "window_dimensions"), value.type.rank
    rank = len(sizes or ()) if rank is None else rank
    return window(op, rank, sizes, "base_dilations", "window_dilations")


@constraint(
    "'window_dimensions', 'window_strides', 'base_dilations', 'window_dilations' and 'padding' must have an item "
    "for each dimension, all but the padding from 1 up"
)
def _windowed(op: ReduceWindow | SelectAndScatter) -> bool:
    spread = op.window
    if spread is None:
        return False
    return min((*spread.sizes, *spread.strides, *spread.base_dilations, *spread.dilations), default=1) >= 1


@constraint("shape(results...) is the number of windows along each dimension of the inputs")
def _windows_sized(op: ReduceWindow) -> bool:
    spread, shapes = op.window, [value.type.shape for value in op.inputs]
    counts = [None if spread is None or shape is None else spread.counts(shape) for shape in shapes]
    return all(agree(count, result.type.shape) for count in counts for result in op.results)


@constraint("(C1) element_type(operand) = element_type(source)")
def _source_type(op: SelectAndScatter) -> bool:
    return op.input.type.element == op.source.type.element


@constraint("(C2) shape(source) is the number of windows along each dimension of the operand")
def _source_shape(op: SelectAndScatter) -> bool:
    shape, spread = op.input.type.shape, op.window
    return shape is None or spread is None or agree(spread.counts(shape), op.source.type.shape)


@constraint(
    "(C3) element_type(init_value) = element_type(operand): the accumulator's type is that which input_conversion makes"
)
def _init_type(op: SelectAndScatter) -> bool:
    return op.init.type.element == op.input.type.element


@constraint(
    "the op must have a region select, then scatter, with input_conversion before it and output_conversion after it"
)
def _has_select(op: SelectAndScatter) -> bool:
    return len(op.regions) > 1


@constraint(
    "(C9) select has type (tensor<E>, tensor<E>) -> tensor<i1> where E = element_type(operand): it accumulates "
    "nothing and has no conversion"
)
def _select_type(op: SelectAndScatter) -> bool:
    region = op.regions[0]
    scalar = TensorType((), op.input.type.element)
    arguments_fit = [v.type for v in region.block.arguments] == [scalar, scalar]
    return arguments_fit and [v and v.type for v in results_of(region) or []] == [TensorType((), i1)]


@constraint("(C11) shape(operand) = shape(result)")
def _result_shape(op: SelectAndScatter) -> bool:
    return agree(op.input.type.shape, op.result.type.shape)


class ReduceWindow(Accumulated, name="stablehlo.reduce_window"):
    """`reduce` of each window of the inputs, padded with init values."""

    constraints = (_counted_alike, _one_shape, _windowed, *ACCUMULATION, _windows_sized)

    @property
    def window(self) -> Window | None:
        """The movement of its window; None if an attribute does not fit the inputs."""
        return _window(self, self.inputs[0])


class SelectAndScatter(Accumulating, name="stablehlo.select_and_scatter"):
    """`reduce`, by `scatter`, of the values of `source` whose windows of the operand `select` this place."""

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
    def accumulation_regions(self) -> list[Region]:
        return list(self.regions[1:])

    @property
    def window(self) -> Window | None:
        """The movement of its window; None if an attribute does not fit the operand."""
        return _window(self, self.input)
