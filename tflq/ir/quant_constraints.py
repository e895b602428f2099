"""What `quant.qcast`, `quant.dcast` and `quant.scast` must satisfy, as in the `quant` dialect's specification.

Each constraint is a predicate on an op whose docstring is the sentence that the user reads when it does not hold.
"""

from __future__ import annotations

from typing import Final

from tflq.ir.core import Op, Value
from tflq.ir.op_checks import constraint
from tflq.ir.types import (
    BareType,
    FunctionType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    is_narrowed,
    is_quantized,
)

__all__ = [
    "PER_AXIS",
    "axis_integrity",
    "axis_problem",
    "both_ranked_or_unranked",
    "both_scalars_or_tensors",
    "bounds_problem",
    "expressed_matches",
    "integer_or_quantized",
    "one_operand_and_result",
    "one_side_quantized",
    "operand_float",
    "operand_quantized",
    "result_float",
    "result_quantized",
    "same_shape",
    "signless_integers",
    "storage_width",
]

PER_AXIS: Final = frozenset({UniformQuantizedPerAxisType, UniformQuantizedSubChannelType, FunctionType})
"""Element types of which not every tensor can be; a function's, of whose arguments and results that holds."""


def axis_problem(type: TensorType) -> str | None:
    """How a type breaks the per-axis quantization integrity, or None if it does not."""
    element = type.element
    if isinstance(element, UniformQuantizedPerAxisType):
        if isinstance(type, BareType):
            return "a scalar cannot have per-axis quantization: its type must be the element type of a tensor"
        if type.shape is None:
            return None
        if element.axis >= len(type.shape):
            return f"the tensor's rank ({len(type.shape)}) must be greater than the quantized axis ({element.axis})"
        size = type.shape[element.axis]
        if size is not None and size != element.scales.size:
            return f"there are {element.scales.size} scales, but dim {element.axis} of the tensor is {size}"
    if isinstance(element, UniformQuantizedSubChannelType):
        return _block_problem(type, element)
    if isinstance(element, FunctionType):
        return next(filter(None, map(axis_problem, (*element.inputs, *element.results))), None)
    return None


def bounds_problem(value: Value) -> str | None:
    """Which element of a constant is outside the bounds of its type, or None if none is."""
    element = value.type.element
    if not is_narrowed(element) or not value.is_constant:
        return None
    low, high = element.storage_min, element.storage_max  # type: ignore[union-attr]
    outside = (value.array < low) | (value.array > high)
    if not outside.any():
        return None
    return f"constant '{value.name}' has the element {value.array[outside].flat[0]}, outside its bounds <{low}:{high}>"


def _block_problem(type: TensorType, element: UniformQuantizedSubChannelType) -> str | None:
    if isinstance(type, BareType) or type.shape is None:
        return "sub-channel quantization needs a tensor of known rank"
    if element.scales.ndim != len(type.shape) or any(axis >= len(type.shape) for axis in element.axes):
        return f"the scales have {element.scales.ndim} dims, but the tensor's rank is {len(type.shape)}"
    blocks = dict(zip(element.axes, element.block_sizes, strict=True))
    for axis, (size, count) in enumerate(zip(type.shape, element.scales.shape, strict=True)):
        if size is not None and count != (size // blocks[axis] if axis in blocks else 1):
            return f"there are {count} blocks along dim {axis}, which is {size} long"
        if size is not None and axis in blocks and size % blocks[axis]:
            return f"dim {axis}, which is {size} long, is not a multiple of the block size {blocks[axis]}"
    return None


@constraint
def one_operand_and_result(op: Op) -> bool:
    """the op must have one operand and one result, and no region"""
    return len(op.operands) == len(op.results) == 1 and None not in op.operands and not op.regions


def _types(op: Op) -> tuple[TensorType, TensorType]:
    """Of operand and result."""
    (operand,), (result,) = op.operands, op.results
    assert operand is not None
    return operand.type, result.type


@constraint
def operand_float(op: Op) -> bool:
    """the operand must be a floating-point scalar or tensor"""
    element = _types(op)[0].element
    return isinstance(element, ScalarType) and element.is_float


@constraint
def operand_quantized(op: Op) -> bool:
    """the operand must be a scalar or tensor of type !quant.uniform"""
    return is_quantized(_types(op)[0].element)


@constraint
def result_float(op: Op) -> bool:
    """the result must be a floating-point scalar or tensor"""
    element = op.result.type.element
    return isinstance(element, ScalarType) and element.is_float


@constraint
def result_quantized(op: Op) -> bool:
    """the result must be a scalar or tensor of type !quant.uniform"""
    return is_quantized(op.result.type.element)


@constraint
def expressed_matches(op: Op) -> bool:
    """the expressed type of the quantized type must be the floating-point type of the other side"""
    plain, quantized = _sides(op)
    return getattr(quantized.element, "expressed", None) == plain.element


@constraint
def integer_or_quantized(op: Op) -> bool:
    """the operand and the result must be scalars or tensors of an integer or !quant.uniform type"""
    elements = [type.element for type in _types(op)]
    return all(is_quantized(e) or (isinstance(e, ScalarType) and e.is_integer) for e in elements)


@constraint
def one_side_quantized(op: Op) -> bool:
    """one of operand and result must be of an integer type and the other of a !quant.uniform type"""
    source, target = _types(op)
    return is_quantized(source.element) != is_quantized(target.element)


@constraint
def storage_width(op: Op) -> bool:
    """the width of the quantized type's storage type must be the width of the integer type"""
    plain, quantized = _sides(op)
    return plain.storage.bits == quantized.storage.bits


@constraint
def signless_integers(op: Op) -> bool:
    """the integer type must be signless: i8, for unsigned storage, too"""
    return _sides(op)[0].storage.kind != "uint"


@constraint
def both_scalars_or_tensors(op: Op) -> bool:
    """the operand and the result must be both scalars or both tensors"""
    source, target = _types(op)
    return isinstance(source, BareType) == isinstance(target, BareType)


@constraint
def both_ranked_or_unranked(op: Op) -> bool:
    """the operand and the result must be both ranked or both unranked"""
    source, target = _types(op)
    return (source.shape is None) == (target.shape is None)


@constraint
def same_shape(op: Op) -> bool:
    """the operand and the result must have the same shape, dynamic dims included"""
    source, target = _types(op)
    return source.shape == target.shape


def _sides(op: Op) -> tuple[TensorType, TensorType]:
    """The plain type and the quantized one."""
    source, target = _types(op)
    return (target, source) if source.quantized else (source, target)


def axis_integrity(op: Op) -> str | None:
    """How the type of operand or result breaks the per-axis quantization integrity."""
    source, target = _types(op)
    return axis_problem(source) or axis_problem(target)
