"""Bounds of integer values, by interval arithmetic over the ops that make them: what lets a cheaper kernel sequence
be proven.

Bounds are those of the numbers before they wrap; where they leave the type, the type's own bounds hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.quant.casts import Scast
from tflq.dialects.tosa.activation import Clamp
from tflq.dialects.tosa.arithmetic import Add, Maximum, Minimum, Mul, Sub
from tflq.dialects.tosa.bits import ArithmeticRightShift
from tflq.dialects.tosa.casts import Cast, Rescale
from tflq.dialects.tosa.indexing import Table
from tflq.dialects.traits.elements import WithinRange
from tflq.ir.core import Op, Value

__all__ = ["Range", "Ranges", "value_range"]

Range: TypeAlias = tuple[int, int]
_Rule: TypeAlias = Callable[[Any, Callable[[Value], Range]], Range]

_DEPTH = 12
_UNKNOWN = (-(1 << 64), 1 << 64)
"""Beyond every integer type."""
_TWO_32 = 1 << 32
_FEW = 4
"""Channels up to which Python's own numbers are faster than numpy's."""


def value_range(value: Value) -> Range:
    """Least and greatest value that an integer tensor can hold; what a float makes is not followed."""
    return Ranges().of(value)


class Ranges:
    """The ranges of values whose ops do not change meanwhile, each found once."""

    def __init__(self) -> None:
        self._known: dict[Value, tuple[int, Range]] = {}

    def of(self, value: Value, depth: int = _DEPTH) -> Range:
        """As `value_range`; so many ops are followed at least."""
        known = self._known.get(value)
        if known is None or known[0] < depth:
            known = self._known[value] = depth, _found(value, depth, self)
        return known[1]


def _found(value: Value, depth: int, ranges: Ranges) -> Range:
    storage = value.type.storage
    if storage.is_float:
        return _UNKNOWN
    whole = (storage.minimum, storage.maximum)
    if value.is_constant:
        array = value.array
        return (int(array.min()), int(array.max())) if array.size else (0, 0)
    op = value.producer
    if op is None or depth == 0:
        return whole
    rule = _RULES.get(type(op))
    if rule is None and trait_of(op, WithinRange):
        rule = _moved
    if rule is None:
        return whole
    low, high = rule(op, lambda operand: ranges.of(operand, depth - 1))
    return (low, high) if whole[0] <= low and high <= whole[1] else whole


def _corners(function: Callable[[int, int], int]) -> _Rule:
    """The range of a function that is monotone in each operand."""

    def rule(op: Add | Sub | Maximum | Minimum, of: Callable[[Value], Range]) -> Range:
        values = [function(a, b) for a, b in product(of(op.input1), of(op.input2))]
        return min(values), max(values)

    return rule


def _rescale(op: Rescale, of: Callable[[Value], Range]) -> Range:
    """Both ends of all channels, two more than each to leave the rounding out of it, saturated to the type. What the
    op says of its operand need not be followed."""
    storage = op.output.type.storage
    low, high = of(op.input) if op.input_range is None else op.input_range
    ends: list[int] = []
    several = op.multiplier.size > _FEW
    for x in (int(low) - op.input_zp, int(high) - op.input_zp):
        if several and -_TWO_32 < x < _TWO_32:  # the product fits int64, whose shift by 63 leaves the sign
            scaled = (x * op.multiplier.astype(np.int64)) >> np.minimum(op.shift.astype(np.int64), 63)
            made = [int(scaled.min()), int(scaled.max())]
        else:
            made = [x * int(m) >> int(s) for m, s in zip(op.multiplier, op.shift, strict=True)]
        ends += made
    return max(min(ends) + op.output_zp - 2, storage.minimum), min(max(ends) + op.output_zp + 2, storage.maximum)


def _mul(op: Mul, of: Callable[[Value], Range]) -> Range:
    values = [(a * b + (1 << op.shift >> 1)) >> op.shift for a, b in product(of(op.input1), of(op.input2))]
    return min(values), max(values)


def _shift_right(op: ArithmeticRightShift, of: Callable[[Value], Range]) -> Range:
    values = [x >> max(n, 0) for x, n in product(of(op.input1), of(op.input2))]
    return min(values), max(values) + 1


def _table(op: Table, of: Callable[[Value], Range]) -> Range:
    return of(op.table) if op.input.type.storage.bits == 8 else (-(1 << 22), 1 << 22)


def _clamp(op: Clamp, of: Callable[[Value], Range]) -> Range:
    low, high = of(op.input)
    return min(max(low, op.min_val), op.max_val), min(max(high, op.min_val), op.max_val)


def _cast(op: Cast | Scast, of: Callable[[Value], Range]) -> Range:
    return of(op.input)


def _moved(op: Operator, of: Callable[[Value], Range]) -> Range:
    trait = op.trait(WithinRange)
    ranges = [of(value) for slot in (trait.slots if trait else ()) for value in slot.values(op)]
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


_RULES: Final[Mapping[type[Op], _Rule]] = {
    Add: _corners(lambda a, b: a + b),
    Sub: _corners(lambda a, b: a - b),
    Mul: _mul,
    Maximum: _corners(max),
    Minimum: _corners(min),
    Clamp: _clamp,
    ArithmeticRightShift: _shift_right,
    Rescale: _rescale,
    Table: _table,
    Cast: _cast,
    Scast: _cast,
}
"""Of ops whose results are not elements of their operands."""
