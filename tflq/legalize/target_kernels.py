"""Operators that the target has a kernel for: kept as they are, or on other storage that holds the same numbers.

    uint8 → int8           q - 128, zero point - 128, for kernels that differ in nothing else (target.unsigned)
    int8 → uint8           q + 128, zero point + 128, for such kernels (target.signed)
    per axis → per layer   if all scales and zero points are equal (target.uniform)

Constants are converted here; other tensors go through an exact rescale on either side. Nothing is ever rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from tflq.dialects.tfl.convolution import FullyConnected
from tflq.dialects.tfl.state import version_info
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import (
    ElementType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i8,
    i16,
    i32,
    i64,
    ui8,
)
from tflq.legalize.rescaled import MultiplyAdd, accumulator
from tflq.legalize.rule import MARK, NotApplicable, RuleBuilder
from tflq.targets.target import Target, Verdict

_ONE = (1 << 30, 1)
_OFFSET = 128
_ZERO = {i8: 0, ui8: _OFFSET}
"""Where the signed 0 is, on each storage."""
Change = Callable[[ElementType], ElementType]


class TargetKernels:
    """One function's operators that a target keeps."""

    def __init__(self, target: Target, plain: dict[Value, Value], b: RuleBuilder) -> None:
        self.target = target
        self.plain = plain
        self.b = b
        self.others: dict[Value, Value] = {}
        self.constants: dict[tuple[Value, ElementType], Value] = {}

    def keep(self, op: Op) -> Verdict:
        """Emits the op if the target runs it, on its own types or on others that hold the same numbers."""
        if reason := _foreign_bias(op) or _from_nothing(op):
            return Verdict(False, reason)
        verdict = self.target.judge(op)
        if verdict.runs:
            self._emit(op, op.operands, op.results)
            for result in op.results:
                if result.type.quantized:
                    self.plain[result] = self.b.scast(result, result.type.stripped())
            return verdict
        for change, words in self._changes(op):
            changed = Op(op.name, [v and self._of(v, change) for v in op.operands], [], op.attributes, op.location)
            changed.results = [self._of(v, change) for v in op.results]
            other = self.target.judge(changed)
            if other.runs and self.target.agree(op, changed):
                self._emit_changed(op, change)
                return Verdict(True, f"{other.reason}; {words}", other.listed)
        return verdict

    def hybrid(self, op: Op) -> str:
        """Why an op in float on quantized constants must take float constants instead, by the target's list."""
        verdict = self.target.judge(op)
        return verdict.reason if (verdict.listed or self.target.complete) and not verdict.runs else ""

    def _changes(self, op: Op) -> Iterator[tuple[Change, str]]:
        name = op.name.removeprefix("tfl.")
        storages = {v.type.storage for v in op.tensors if v.type.quantized}
        shifts: list[tuple[Change, str]] = []
        if ui8 in storages and name in self.target.unsigned:
            shifts.append((_signed, "uint8 as int8"))
        if i8 in storages and name in self.target.signed:
            shifts.append((_unsigned, "int8 as uint8"))
        if name in self.target.uniform and any(_is_uniform(v.type.element) for v in op.tensors):
            yield _per_layer, "equal scales per axis as one"
            for shift, words in shifts:
                yield partial(_per_layer_then, shift), f"{words}, equal scales per axis as one"
        yield from shifts

    def _emit(self, op: Op, operands: list[Value | None], results: list[Value]) -> None:
        typed = [None if v is None else self.b.typed(v) for v in operands]
        info = {**op.info, **version_info(op), MARK: True}
        self.b.ops.append(op.copy_with(typed, results, info))

    def _emit_changed(self, op: Op, change: Change) -> None:
        operands = [v and self._operand(v, change) for v in op.operands]
        results = [v if _same(v, change) else Value(_type(v, change)) for v in op.results]
        self._emit(op, operands, results)
        for old, new in zip(op.results, results, strict=True):
            if not old.type.quantized:
                continue
            stored = self.b.scast(new, new.type.stripped())
            if stored.type.storage != old.type.storage:
                other = stored
                stored = self._shifted(other, old.type.storage)
                self.others[stored] = other
            elif new is not old:
                stored = self.b.identity(stored)
            if new is not old:
                stored.name = old.name
            self.plain[old] = stored

    def _shifted(self, stored: Value, storage: ScalarType) -> Value:
        """The stored numbers on the other of int8 and uint8."""
        zero = _ZERO[stored.type.storage]
        return self.b.rescale(stored, _ONE, storage, input_zp=zero, output_zp=_ZERO[storage])

    def _operand(self, value: Value, change: Change) -> Value:
        """The operand on the changed type."""
        if _same(value, change):
            return value
        if value.is_constant:
            return self._of(value, change)
        to = _type(value, change)
        stored = self.b.value(value)
        if to.storage != stored.type.storage:
            other = self.others.get(stored)
            if other is None:
                other = self.others[stored] = self._shifted(stored, to.storage)
            stored = other
        return self.b.scast(stored, to)

    def _of(self, value: Value, change: Change) -> Value:
        """A value of the changed type. A constant is converted once for all ops that take it."""
        to = _type(value, change)
        if not value.is_constant:
            return Value(to, value.name)
        converted = self.constants.get((value, to.element))
        if converted is None:
            buffer = value.buffer
            if to.storage != value.type.storage:
                array = value.array
                buffer = Buffer.of((array.view(np.uint8) ^ np.uint8(_OFFSET)).view(to.storage.dtype))
            converted = self.constants[value, to.element] = Value(to, value.name, buffer=buffer, info=value.info)
        return converted


def _foreign_bias(op: Op) -> str:
    """Why no kernel reads a quantized operator's bias, whatever the target says of it; empty if one does."""
    if not isinstance(op, MultiplyAdd) or op.bias is None or not op.output.type.quantized:
        return ""
    bias, weights = op.bias, op.weights if isinstance(op, FullyConnected) else op.filter
    narrow = any(v is not None and v.type.quantized and v.type.storage == ui8 for v in op.operands)
    if weights.type.storage == i16 and bias.type.storage in (i32, i64):
        return ""
    if narrow:
        return "" if bias.type.storage == i32 else f"bias '{bias.name}' is {bias.type.storage}, not i32"
    try:
        accumulator(op, bias)
    except NotApplicable as unread:
        return str(unread)
    return ""


def _from_nothing(op: Op) -> str:
    """Why no kernel is asked for results of operands without elements: most kernels leave what memory held. Empty if
    there are elements to compute with, or none to compute."""
    operands = [v for v in op.present_operands if v.type.quantized]
    empty = [0 in v.type.dims for v in operands]
    if empty and all(empty) and not all(0 in v.type.dims for v in op.results):
        return "its operands have no elements"
    return ""


def _type(value: Value, change: Change) -> TensorType:
    return value.type.with_element(change(value.type.element))


def _same(value: Value, change: Change) -> bool:
    return change(value.type.element) == value.type.element


def _is_uniform(element: ElementType) -> bool:
    if not isinstance(element, UniformQuantizedPerAxisType):
        return False
    return bool((element.scales == element.scales[0]).all() and (element.zero_points == element.zero_points[0]).all())


def _per_layer(element: ElementType) -> ElementType:
    if not isinstance(element, UniformQuantizedPerAxisType) or not _is_uniform(element):
        return element
    return UniformQuantizedType(
        element.storage,
        element.expressed,
        float(element.scales[0]),
        int(element.zero_points[0]),
        element.storage_min,
        element.storage_max,
    )


def _per_layer_then(shift: Change, element: ElementType) -> ElementType:
    return shift(_per_layer(element))


def _signed(element: ElementType) -> ElementType:
    return _moved(element, ui8, i8, -_OFFSET)


def _unsigned(element: ElementType) -> ElementType:
    return _moved(element, i8, ui8, _OFFSET)


def _moved(element: ElementType, storage: ScalarType, to: ScalarType, by: int) -> ElementType:
    """The element type on other storage, if it is of one scale and on `storage`; else as it is."""
    if not isinstance(element, UniformQuantizedType) or element.storage != storage:
        return element
    return element.replace(
        storage=to,
        zero_point=element.zero_point + by,
        storage_min=element.storage_min + by,
        storage_max=element.storage_max + by,
    )
