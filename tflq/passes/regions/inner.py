"""The ops of a region that is coarser than a target's: what of them is one op, and the types of the tensors between
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tflq.dialects.declare import Operator
from tflq.dialects.quant.casts import Dcast, Qcast
from tflq.dialects.quant.regions import Region
from tflq.dialects.quant.statistics import Stats
from tflq.dialects.tfl.activation import Relu, Relu6, ReluN1To1
from tflq.dialects.tfl.arithmetic import Add
from tflq.dialects.traits.quantization import SameScale
from tflq.errors import Reason, UnsupportedError
from tflq.ir.core import Op, Value
from tflq.ir.types import ElementType, ScalarType, is_quantized

__all__ = ["inner_types", "joined"]

_ACTIVATIONS: Final = {Relu: "RELU", Relu6: "RELU6", ReluN1To1: "RELU_N1_TO_1"}


def joined(ops: Sequence[Op], kept: frozenset[Value]) -> list[Op]:
    """The ops with biases and activations put into the op before, where that has none; values that are kept stay."""
    made: list[Op] = []
    for op in ops:
        last = made[-1] if made else None
        users = [other for other in ops if last is not None and last.result in other.operands]
        if last is None or last.result in kept or users != [op] or not _join(last, op):
            made.append(op)
    return made


def _join(last: Op, op: Op) -> bool:
    """Puts an op into the one before, if it can be."""
    fused = last.attributes.get("fused_activation_function")
    bias = last.slot("bias") if isinstance(last, Operator) else None
    if type(op) in _ACTIVATIONS and fused == "NONE":
        last.attributes = {**last.attributes, "fused_activation_function": _ACTIVATIONS[type(op)]}  # type: ignore[index]
    elif isinstance(op, Add) and fused == "NONE" and bias is not None and bias.value(last) is None:
        other = op.rhs if op.lhs is last.result else op.lhs
        if other.type.rank != 1 or other.type.shape != (last.result.type.shape or ())[-1:]:
            return False
        last.operands = [*last.operands[: bias.index], other]
        last.attributes = {**last.attributes, "fused_activation_function": op.fused_activation_function}
    else:
        return False
    last.results = op.results
    for value in last.results:
        value.producer = last
    return True


def inner_types(
    region: Region, ops: Sequence[Op], known: Mapping[Value, ElementType], same_scale: frozenset[str]
) -> dict[Value, ElementType]:
    """The quantized types of all values of reals: those of ports (`known`), else by casts inside of the region, else
    as an op of one scale has them on its other side. `same_scale`: such ops by name, beside those that always are.

    UnsupportedError names the first value of which nothing is known.
    """
    types = dict(known)
    for op in ops:
        if isinstance(op, Qcast):
            types.setdefault(op.input, op.result.type.element)
    while found := _spread(ops, types, same_scale):
        types |= found
    for op in ops:
        for value in op.results:
            if value not in types and _is_real(value):
                what = f"kernel '{region.kernel}': nothing says how the result of {op.name} inside of it is quantized"
                remedy = "put a quant.qcast and a quant.dcast behind it"
                raise UnsupportedError(what, [Reason.at(region.location, what, remedy=remedy)])
    return types


def _spread(
    ops: Sequence[Op], types: Mapping[Value, ElementType], same_scale: frozenset[str]
) -> dict[Value, ElementType]:
    """Types that follow from those known, by ops of one scale and by casts."""
    for op in ops:
        alike = isinstance(op, (Qcast, Dcast, Stats)) or op.short_name in same_scale
        if not alike and not (isinstance(op, Operator) and op.has(SameScale)):
            continue
        values = [value for value in op.tensors if _is_real(value)]
        kind = next((types[v] for v in values if v in types and is_quantized(types[v])), None)
        if kind is not None and (rest := {v: kind for v in values if v not in types}):
            return rest
    return {}


def _is_real(value: Value) -> bool:
    return not isinstance(value.type.element, ScalarType) or value.type.element.is_float
