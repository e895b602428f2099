"""Data movement: the elements of the operands in another order or shape."""

from __future__ import annotations

import math

from tflq.dialects.declare import Operator, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.dialects.stablehlo.rules import agree, baseline, integers
from tflq.ir.core import Op, Value
from tflq.ir.op_checks import constraint

__all__ = ["BroadcastInDim", "Concatenate", "Reshape", "Reverse", "Slice", "Transpose"]


@constraint
def _same_elements(op: Op) -> bool:
    """operands and result must have the same element type; scales along an axis may go to another one"""
    kinds = {baseline(value.type) for value in op.tensors}
    return len(kinds) == 1


@constraint
def _counted(op: Op) -> bool:
    """operand and result must have the same number of elements"""
    sizes = [v.type.shape for v in op.tensors]
    if any(shape is None or None in shape for shape in sizes):
        return True
    return len({math.prod(d or 0 for d in shape or ()) for shape in sizes}) == 1


@constraint
def _permuted(op: Transpose) -> bool:
    """'permutation' must name every dimension of the operand once, and the result has its shape in that order"""
    order, shape = integers(op, "permutation"), op.input.type.shape
    if order is None or shape is None:
        return order is not None
    made = tuple(shape[i] for i in order) if sorted(order) == list(range(len(shape))) else None
    return made is not None and agree(made, op.result.type.shape)


@constraint
def _broadcast(op: BroadcastInDim) -> bool:
    """'broadcast_dimensions' must name a dimension of the result, once, for each of the operand's, which is of its size
    or 1"""
    dims, given, made = integers(op, "broadcast_dimensions"), op.input.type.shape, op.result.type.shape
    if dims is None or given is None or made is None:
        return dims is not None
    if len(dims) != len(given) or len(set(dims)) != len(dims) or any(not 0 <= d < len(made) for d in dims):
        return False
    return all(size in (1, None, made[d]) or made[d] is None for size, d in zip(given, dims, strict=True))


@constraint
def _within(op: Slice) -> bool:
    """'start_indices', 'limit_indices' and 'strides' must be within the operand, and say the shape of the result"""
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


@constraint
def _joined(op: Concatenate) -> bool:
    """the operands must differ in size along 'dimension' only, and the result has their sum"""
    axis, made = op.attributes.get("dimension"), op.result.type.shape
    shapes = [v.type.shape for v in op.operands if v is not None]
    if not shapes or len(op.results) != 1 or not isinstance(axis, int):
        return False
    if made is None or any(shape is None for shape in shapes):
        return True
    if not 0 <= axis < len(made) or any(len(shape or ()) != len(made) for shape in shapes):
        return False
    sizes = [(shape or ())[axis] for shape in shapes]
    total = None if None in sizes else sum(s or 0 for s in sizes)
    others = [(*(s or ())[:axis], total, *(s or ())[axis + 1 :]) for s in shapes]
    return all(agree(shape, made) for shape in others)


@constraint
def _reversed(op: Reverse) -> bool:
    """'dimensions' must be dimensions of the operand, each once, and the result has its shape"""
    dims, shape = integers(op, "dimensions"), op.input.type.shape
    if dims is None or len(set(dims)) != len(dims) or not agree(shape, op.result.type.shape):
        return False
    return shape is None or all(0 <= d < len(shape) for d in dims)


class Reshape(Operator, name="stablehlo.reshape"):
    """The same elements in another shape."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (declared, _same_elements, _counted)


class Transpose(Operator, name="stablehlo.transpose"):
    """The dimensions in another order."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (declared, _same_elements, _permuted)


class BroadcastInDim(Operator, name="stablehlo.broadcast_in_dim"):
    """The elements repeated along dimensions."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (declared, _same_elements, _broadcast)


class Slice(Operator, name="stablehlo.slice"):
    """The elements from a start to a limit, by steps."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (declared, _same_elements, _within)


class Concatenate(Operator, name="stablehlo.concatenate"):
    """Tensors one after the other along a dimension."""

    __slots__ = ()
    inputs: list[Value] = operand(variadic=True)
    result: Value = result_()
    constraints = (_joined, _same_elements)


class Reverse(Operator, name="stablehlo.reverse"):
    """The elements in reverse order along dimensions."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (declared, _same_elements, _reversed)
