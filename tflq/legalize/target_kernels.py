"""Operators that the target has a kernel for: kept as they are, or on other storage where that is the same numbers.

    uint8 → int8           q - 128, zero point - 128, for kernels of which that is all that differs (target.unsigned)
    per axis → per layer   where all scales and zero points are equal (target.uniform)

Constants are converted here; other tensors pass an exact rescale on either side. Nothing is ever rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tflq.ir.core import Buffer, Op, Value
from tflq.ir.types import (
    ElementType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i8,
    ui8,
)
from tflq.legalize.rule import RuleBuilder
from tflq.targets import Target, Verdict

__all__ = ["MARK", "TargetKernels"]

MARK = "kept"
"""The key of `Op.info` that says that an op keeps its quantized tensors."""

_ONE = (1 << 30, 1)
_OFFSET = 128
Change = Callable[[ElementType], ElementType]


class TargetKernels:
    """One function's operators that a target keeps."""

    def __init__(self, target: Target, plain: dict[Value, Value], b: RuleBuilder) -> None:
        self.target = target
        self.plain = plain
        self.b = b
        self.signed: dict[Value, Value] = {}

    def keep(self, op: Op) -> Verdict:
        """Emits the op if the target runs it, on its own types or on others that hold the same numbers."""
        verdict = self.target.judge(op)
        if verdict.kept:
            self._emit(op, op.operands, op.results)
            for result in op.results:
                if result.type.quantized:
                    self.plain[result] = self.b.scast(result, result.type.stripped())
            return verdict
        for change, words in self._changes(op):
            changed = Op(op.name, [v and _of(v, change) for v in op.operands], [], op.attributes, op.location)
            changed.results = [_of(v, change) for v in op.results]
            other = self.target.judge(changed)
            if other.kept:
                self._emit_changed(op, change)
                return replace(other, reason=f"{other.reason}; {words}")
        return verdict

    def _changes(self, op: Op) -> Iterator[tuple[Change, str]]:
        name = op.name.removeprefix("tfl.")
        unsigned = name in self.target.unsigned and any(v.type.storage == ui8 and v.type.quantized for v in op.values)
        uniform = name in self.target.uniform and any(_is_uniform(v.type.element) for v in op.values)
        if uniform:
            yield _per_layer, "equal scales per axis as one"
        if unsigned:
            yield _signed, "uint8 as int8"
        if uniform and unsigned:
            yield lambda e: _signed(_per_layer(e)), "uint8 as int8, equal scales per axis as one"

    def _emit(self, op: Op, operands: list[Value | None], results: list[Value]) -> None:
        typed = [None if v is None else self.b.typed(v) for v in operands]
        info = {**op.info, MARK: True}
        self.b.ops.append(
            Op(op.name, typed, results, op.attributes, op.location, info=info, intermediates=op.intermediates)
        )

    def _emit_changed(self, op: Op, change: Change) -> None:
        operands = [v and self._operand(v, change) for v in op.operands]
        results = [v if _same(v, change) else Value(_type(v, change)) for v in op.results]
        self._emit(op, operands, results)
        for old, new in zip(op.results, results, strict=True):
            if not old.type.quantized:
                continue
            stored = self.b.scast(new, new.type.stripped())
            if new is old:
                self.plain[old] = stored
                continue
            if stored.type.storage != old.type.storage:
                signed = stored
                stored = self.b.rescale(signed, _ONE, ui8, output_zp=_OFFSET)
                self.signed[stored] = signed
            else:
                stored = self.b.identity(stored)
            stored.name = old.name
            self.plain[old] = stored

    def _operand(self, value: Value, change: Change) -> Value:
        """The operand on changed types, before the quantized type is put on."""
        if _same(value, change):
            return value
        to = _type(value, change)
        if value.is_constant:
            buffer = value.buffer
            if to.storage != value.type.storage:
                buffer = Buffer.of((value.array.astype(np.int16) - _OFFSET).astype(np.int8))
            return Value(to, value.name, buffer=buffer, info=value.info)
        stored = self.b.value(value)
        if to.storage != stored.type.storage:
            signed = self.signed.get(stored)
            if signed is None:
                signed = self.signed[stored] = self.b.rescale(stored, _ONE, i8, input_zp=_OFFSET)
            stored = signed
        return self.b.scast(stored, to)


def _type(value: Value, change: Change) -> TensorType:
    return value.type.with_element(change(value.type.element))


def _same(value: Value, change: Change) -> bool:
    return change(value.type.element) == value.type.element


def _of(value: Value, change: Change) -> Value:
    return Value(_type(value, change), value.name, buffer=value.buffer)


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


def _signed(element: ElementType) -> ElementType:
    if not isinstance(element, UniformQuantizedType) or element.storage != ui8:
        return element
    return replace(
        element,
        storage=i8,
        zero_point=element.zero_point - _OFFSET,
        storage_min=element.storage_min - _OFFSET,
        storage_max=element.storage_max - _OFFSET,
    )
