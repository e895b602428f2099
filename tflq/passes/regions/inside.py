"""The ops inside of a region of several: which become one op, and the types of the tensors between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tflq.dialects.declare import Operator
from tflq.dialects.parameters import SameScale
from tflq.dialects.quant import Qcast
from tflq.dialects.regions import Region, Stats
from tflq.dialects.tfl.arithmetic import Add, Relu, Relu6, ReluN1To1
from tflq.errors import Reason, UnsupportedError
from tflq.ir.core import Op, Value
from tflq.ir.types import AnyQuantizedType, CalibratedQuantizedType, ElementType, UniformQuantizedType, is_quantized
from tflq.passes.regions.lookup import is_real
from tflq.passes.regions.ranges import Range, is_statement, parameters, range_of

_ACTIVATIONS: Final = {Relu: "RELU", Relu6: "RELU6", ReluN1To1: "RELU_N1_TO_1"}


def without_statistics(
    ops: Sequence[Op], returned: Sequence[Value]
) -> tuple[list[Op], list[Value], dict[Value, CalibratedQuantizedType]]:
    """A region's ops and what it returns without statistics, and the ranges that these give values."""
    known: dict[Value, Value] = {}
    ranges: dict[Value, CalibratedQuantizedType] = {}
    kept = []
    for op in ops:
        op.operands = [value and known.get(value, value) for value in op.operands]
        if isinstance(op, Stats):
            known[op.result] = op.arg
            if (seen := range_of(op)) is not None:
                ranges.setdefault(op.arg, seen)
        else:
            kept.append(op)
    return kept, [known.get(value, value) for value in returned], ranges


def joined(ops: Sequence[Op], kept: frozenset[Value]) -> list[Op]:
    """The ops with biases and activations put into the op before, if that has none. The values in `kept` stay."""
    merged: list[Op] = []
    for op in ops:
        last = merged[-1] if merged else None
        users = [other for other in ops if last is not None and last.result in other.operands]
        if last is None or last.result in kept or users != [op] or not _join(last, op):
            merged.append(op)
    return merged


def _join(last: Op, op: Op) -> bool:
    """Puts an op into the one before, if possible."""
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
    region: Region,
    ops: Sequence[Op],
    known: Mapping[Value, ElementType],
    ranges: Mapping[Value, CalibratedQuantizedType],
    same_scale: frozenset[str],
) -> dict[Value, ElementType]:
    """The quantized types of all values of reals: those of ports (`known`), else those of casts inside of the region,
    else those on the other side of an op of one scale, else those for the range that was seen, on the storage of the
    first port. `same_scale`: further ops of one scale, by name.

    UnsupportedError names the first value whose type nothing tells.
    """
    types = dict(known)
    for op in ops:
        if isinstance(op, Qcast):
            types.setdefault(op.input, op.result.type.element)
    while more := _spread(ops, types, same_scale) or _calibrated(ops, types, ranges):
        types |= more
    for op in ops:
        for value in op.results:
            if value not in types and is_real(value.type.element):
                what = f"kernel '{region.kernel}': nothing says how the result of {op.name} inside of it is quantized"
                remedy = "put a quant.qcast and a quant.dcast behind it"
                raise UnsupportedError(what, [Reason.at(region.location, what, remedy=remedy)])
    return types


def _spread(
    ops: Sequence[Op], types: Mapping[Value, ElementType], same_scale: frozenset[str]
) -> dict[Value, ElementType]:
    """Types that follow from known ones, by ops of one scale and by casts."""
    for op in ops:
        alike = is_statement(op) or op.short_name in same_scale
        if not alike and not (isinstance(op, Operator) and op.has(SameScale)):
            continue
        values = [value for value in op.tensors if is_real(value.type.element)]
        kind = next((types[v] for v in values if v in types and is_quantized(types[v])), None)
        if kind is not None and (rest := {v: kind for v in values if v not in types}):
            return rest
    return {}


def _calibrated(
    ops: Sequence[Op], types: Mapping[Value, ElementType], ranges: Mapping[Value, CalibratedQuantizedType]
) -> dict[Value, ElementType]:
    """The type of the first value that has none, but a range."""
    port = next((kind for kind in types.values() if isinstance(kind, UniformQuantizedType)), None)
    value = next((v for op in ops for v in op.results if v in ranges and v not in types), None)
    if port is None or value is None:
        return {}
    stored = AnyQuantizedType(port.storage, port.expressed, port.storage_min, port.storage_max)
    return {value: parameters(Range.of(ranges[value]), stored, None)}
