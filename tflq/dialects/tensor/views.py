"""The same elements, in the same order, in a tensor of another type or shape."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tflq.dialects.core_rules import SIGNLESS, all_tensors, elementwise
from tflq.dialects.declare import Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.dialects.stablehlo.rules import agree
from tflq.ir.core import Value
from tflq.ir.op_checks import constraint

__all__ = ["Bitcast", "Cast", "CollapseShape", "ExpandShape", "Reshape", "groups"]


@constraint
def _same_element(op: Operator) -> bool:
    """operand and result must be of one element type"""
    return op.operand(0).type.element == op.result.type.element


@constraint
def _as_wide(op: Bitcast) -> bool:
    """the element types must be of one width"""
    return op.source.type.storage.bits == op.dest.type.storage.bits


@constraint
def _agreeing(op: Cast) -> bool:
    """the shapes must agree: known dims are the same"""
    return agree(op.source.type.shape, op.dest.type.shape)


@constraint
def _shape_given(op: Reshape) -> bool:
    """the shape must be a tensor of one dim, as long as the result has dims, which is unranked if that is not known"""
    shape, made = op.shape.type.shape, op.result.type.shape
    if shape is None or len(shape) != 1:
        return False
    return made is None if shape[0] is None else made is not None and len(made) == shape[0]


@constraint
def _as_many(op: Reshape) -> bool:
    """the operand and the result must have as many elements"""
    return _counts_agree(op.source.type.shape, op.result.type.shape)


def _counts_agree(one: Any, other: Any) -> bool:
    if one is None or other is None or None in one or None in other:
        return True
    return prod(one) == prod(other)


def groups(op: Operator) -> list[list[int]] | None:
    """`reassociation`: which dims of the larger shape make each dim of the smaller; None if it is no such list."""
    given = op.attributes.get("reassociation")
    if not isinstance(given, (list, tuple)):
        return None
    found = []
    for group in given:
        array = np.asarray(group)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            return None
        found.append([int(i) for i in array])
    return found


def _reassociated(op: Any) -> str | None:
    """'reassociation' must be lists of the larger shape's dims, in order, one for each dim of the smaller, whose size
    is the product of theirs"""
    given, made = op.operand(0).type.shape, op.result.type.shape
    listed = groups(op)
    if given is None or made is None or listed is None:
        return _reassociated.__doc__
    large, small = (given, made) if isinstance(op, CollapseShape) else (made, given)
    flat = [i for group in listed for i in group]
    if flat != list(range(len(large))) or (listed and len(listed) != len(small)):
        return _reassociated.__doc__
    if not listed:  # the smaller one is a scalar in a tensor
        return None if not small and all(dim in (1, None) for dim in large) else _reassociated.__doc__
    for dim, group in zip(small, listed, strict=True):
        sizes = [large[i] for i in group]
        if not group or (None in sizes) != (dim is None) or (dim is not None and prod(n or 0 for n in sizes) != dim):
            return _reassociated.__doc__
    return None


class Cast(Operator, name="tensor.cast"):
    """source, of whose shape more or less is said."""

    __slots__ = ()
    source: Value = operand()
    dest: Value = result_()
    constraints = (declared, all_tensors("source", "dest"), _same_element, _agreeing)


class Bitcast(Operator, name="tensor.bitcast"):
    """The bits of source, as elements of another type of their width."""

    __slots__ = ()
    source: Value = operand()
    dest: Value = result_()
    constraints = (declared, all_tensors("source", "dest"), elementwise, _as_wide)


class Reshape(Operator, name="tensor.reshape"):
    """The elements of source, in row-major order, in a tensor of the shape given."""

    __slots__ = ()
    source: Value = operand()
    shape: Value = operand(SIGNLESS)
    result: Value = result_()
    constraints = (declared, all_tensors("source", "shape", "result"), _same_element, _shape_given, _as_many)


class CollapseShape(Operator, name="tensor.collapse_shape"):
    """Neighbouring dims of source as one, as `reassociation` says."""

    __slots__ = ()
    source: Value = operand()
    result: Value = result_()
    reassociation: list[list[int]] = attribute()
    constraints = (declared, all_tensors("source", "result"), _same_element, _reassociated)


class ExpandShape(Operator, name="tensor.expand_shape"):
    """Dims of source as several, as `reassociation` says; `output_shape` are the sizes of those that are not known."""

    __slots__ = ()
    source: Value = operand()
    output_shape: list[Value] = operand(variadic=True)
    result: Value = result_()
    reassociation: list[list[int]] = attribute()
    constraints = (declared, all_tensors("source", "result"), _same_element, _reassociated)
