"""Tensors of elements that are given one by one, and of one number."""

from __future__ import annotations

from typing import Any

from tflq.dialects.core_rules import INDEX, all_tensors, scalars
from tflq.dialects.declare import Operator, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.dialects.traits.effects import Impure
from tflq.ir.core import Value
from tflq.ir.op_checks import constraint
from tflq.ir.types import BareType, index

__all__ = ["Empty", "FromElements", "Generate", "Splat", "Yield"]


def _sizes(op: Any) -> str | None:
    """there must be one size for each unknown dim of the result, which must be ranked"""
    shape = op.result.type.shape
    known = shape is not None and len(op.dynamic_sizes) == shape.count(None)
    return None if known else _sizes.__doc__


@constraint
def _of_scalar(op: Splat) -> bool:
    """the result must be a tensor of the scalar's type"""
    return op.result.type.element == op.input.type.element


@constraint
def _of_scalars(op: FromElements) -> bool:
    """the result must be a tensor of the elements' type, of known shape, with as many elements as are given"""
    made = op.result.type
    count = 1
    for dim in made.shape or ():
        count *= dim or 0
    same = all(v.type.element == made.element for v in op.elements)
    return made.is_static and count == len(op.elements) and same


@constraint
def _body(op: Generate) -> bool:
    """there must be one block, with an index for each dim, that ends with tensor.yield of an element"""
    if len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        return False
    block, made = op.regions[0].block, op.result.type
    index_types = [isinstance(v.type, BareType) and v.type.element == index for v in block.arguments]
    ends = bool(block.ops) and isinstance(block.ops[-1], Yield)
    yielded = [None if v is None else v.type for v in block.ops[-1].operands] if ends else []
    return len(index_types) == made.rank and all(index_types) and yielded == [BareType.of(made.element)]


class Empty(Operator, name="tensor.empty"):
    """A tensor of a shape, whose elements are not said: something writes them before they are read."""

    __slots__ = ()
    dynamic_sizes: list[Value] = operand(INDEX, variadic=True)
    result: Value = result_()
    constraints = (declared, scalars("dynamic_sizes"), all_tensors("result"), _sizes)


class Splat(Operator, name="tensor.splat"):
    """A tensor whose elements are all `input`."""

    __slots__ = ()
    input: Value = operand()
    dynamic_sizes: list[Value] = operand(INDEX, variadic=True)
    result: Value = result_()
    constraints = (declared, scalars("input", "dynamic_sizes"), all_tensors("result"), _sizes, _of_scalar)


class FromElements(Operator, name="tensor.from_elements"):
    """The tensor of these elements, in row-major order."""

    __slots__ = ()
    elements: list[Value] = operand(variadic=True)
    result: Value = result_()
    constraints = (declared, scalars("elements"), all_tensors("result"), _of_scalars)


class Generate(Operator, name="tensor.generate"):
    """The tensor whose elements are what the body yields of their places."""

    __slots__ = ()
    dynamic_sizes: list[Value] = operand(INDEX, variadic=True)
    result: Value = result_()
    constraints = (declared, scalars("dynamic_sizes"), all_tensors("result"), _sizes, _body)


class Yield(Operator, name="tensor.yield"):
    """Ends the body of `tensor.generate` or `tensor.pad`."""

    __slots__ = ()
    value: Value = operand()
    traits = (Impure(),)
    constraints = (declared, scalars("value"))
