"""The `shape` dialect of MLIR, on shapes as tensors of sizes (`tensor<?xindex>`)."""

from __future__ import annotations

import numpy as np

from tflq.dialects.core_rules import INDEX, SIGNLESS, all_tensors, scalars
from tflq.dialects.declare import Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.forms import declared
from tflq.dialects.stablehlo.rules import integers
from tflq.ir.core import Value
from tflq.ir.verifier import constraint

# Shapes as tensors of index, one size for each dim.


@constraint
def _ranked_as(op: ShapeOf) -> bool:
    """the result must be as long as the operand has dims, as far as both are known"""
    (length,) = op.result.type.shape or (None,)
    return op.arg.type.rank is None or length in (None, op.arg.type.rank)


@constraint
def _stated(op: ConstShape) -> bool:
    """'shape' must be a list of sizes, as long as the result"""
    stated = integers(op, "shape")
    return stated is not None and op.result.type.shape in ((None,), (len(stated),)) and min(stated, default=0) >= 0


class ConstShape(Operator, name="shape.const_shape"):
    """The shape that `shape` says."""

    result: Value = result_(INDEX)
    shape: np.ndarray = attribute()
    constraints = (declared, all_tensors("result"), _stated)


class ShapeOf(Operator, name="shape.shape_of"):
    """The shape of a tensor."""

    arg: Value = operand()
    result: Value = result_(INDEX)
    constraints = (declared, all_tensors("arg", "result"), _ranked_as)


class NumElements(Operator, name="shape.num_elements"):
    """How many elements a tensor of a shape has: the product of the sizes."""

    shape: Value = operand(INDEX)
    result: Value = result_(INDEX)
    constraints = (declared, all_tensors("shape"), scalars("result"))


class SplitAt(Operator, name="shape.split_at"):
    """head = the sizes before `index`, tail = those from it on; a negative one counts from the end."""

    shape: Value = operand(INDEX)
    index: Value = operand(SIGNLESS)
    head: Value = result_(INDEX)
    tail: Value = result_(INDEX)
    constraints = (declared, all_tensors("shape", "head", "tail"), scalars("index"))


class Concat(Operator, name="shape.concat"):
    """The sizes of lhs, then those of rhs."""

    lhs: Value = operand(INDEX)
    rhs: Value = operand(INDEX)
    result: Value = result_(INDEX)
    constraints = (declared, all_tensors("lhs", "rhs", "result"))


class Broadcast(Operator, name="shape.broadcast"):
    """The shape that all shapes broadcast to: dims are aligned at the end, and 1 becomes what the others have."""

    shapes: list[Value] = operand(INDEX, variadic=True)
    result: Value = result_(INDEX)
    constraints = (declared, all_tensors("shapes", "result"))


class GetExtent(Operator, name="shape.get_extent"):
    """The size at a place of a shape."""

    shape: Value = operand(INDEX)
    dim: Value = operand(SIGNLESS)
    extent: Value = result_(INDEX)
    constraints = (declared, all_tensors("shape"), scalars("dim", "extent"))


class Dim(Operator, name="shape.dim"):
    """The size of the dim `index` of a tensor."""

    value: Value = operand()
    index: Value = operand(SIGNLESS)
    extent: Value = result_(INDEX)
    constraints = (declared, all_tensors("value"), scalars("index", "extent"))


class Rank(Operator, name="shape.rank"):
    """How many sizes a shape has."""

    shape: Value = operand(INDEX)
    rank: Value = result_(INDEX)
    constraints = (declared, all_tensors("shape"), scalars("rank"))
