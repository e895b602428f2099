"""Bounds of integer values, by interval arithmetic over the ops that make them: what lets a cheaper kernel sequence
be proven.

Bounds are those of the numbers before they wrap; where they leave the type, the type's own bounds hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tflq.ir.core import Op, Value

__all__ = ["Range", "value_range"]

Range: TypeAlias = tuple[int, int]

_DEPTH = 12
_UNKNOWN = (-(1 << 64), 1 << 64)
"""Beyond every integer type."""
_TWO_32 = 1 << 32


def value_range(value: Value, depth: int = _DEPTH) -> Range:
    """Least and greatest value that an integer tensor can hold; what a float makes is not followed."""
    storage = value.type.storage
    if storage.is_float:
        return _UNKNOWN
    whole = (storage.minimum, storage.maximum)
    if value.is_constant:
        array = value.array
        return (int(array.min()), int(array.max())) if array.size else (0, 0)
    op = value.producer
    if op is None or op.name not in _RULES or depth == 0:
        return whole
    noted = "input_range" in op.attributes  # of a RESCALE: its operand need not be followed
    ranges = [] if noted else [value_range(v, depth - 1) for v in op.operands if v is not None]
    low, high = _RULES[op.name](op, ranges)
    return (low, high) if whole[0] <= low and high <= whole[1] else whole


def _corners(function: Callable[[int, int], int]) -> Callable[[Op, list[Range]], Range]:
    """The range of a function that is monotone in each operand."""

    def rule(op: Op, ranges: list[Range]) -> Range:
        values = [function(a, b) for a in ranges[0] for b in ranges[1]]
        return min(values), max(values)

    return rule


def _rescale(op: Op, ranges: list[Range]) -> Range:
    """Both ends of all channels, one more than each to leave the rounding out of it, saturated to the type."""
    a, storage = op.attributes, op.result.type.storage
    low, high = a["input_range"] if "input_range" in a else ranges[0]
    multiplier, shift = a["multiplier"], a["shift"]
    ends: list[int] = []
    for x, spare in ((low, -1), (high, 1), (low, 1), (high, -1)):
        x -= a["input_zp"]
        if -_TWO_32 < x < _TWO_32:  # the product of an int32 multiplier fits int64, whose shift by 63 leaves the sign
            scaled = (int(x) * multiplier.astype(np.int64)) >> np.minimum(shift.astype(np.int64), 63)
            made = [int(scaled.min()), int(scaled.max())]
        else:
            made = [x * int(m) >> int(s) for m, s in zip(multiplier, shift, strict=True)]
        ends += [end + a["output_zp"] + spare for end in made]
    return max(min(ends) - 1, storage.minimum), min(max(ends) + 1, storage.maximum)


def _mul(op: Op, ranges: list[Range]) -> Range:
    shift = op.attributes.get("shift", 0)
    values = [(a * b + (1 << shift >> 1)) >> shift for a in ranges[0] for b in ranges[1]]
    return min(values), max(values)


def _shift_right(op: Op, ranges: list[Range]) -> Range:
    (low, high), (least, most) = ranges
    values = [x >> max(n, 0) for x in (low, high) for n in (least, most)]
    return min(values), max(values) + 1


def _table(op: Op, ranges: list[Range]) -> Range:
    return ranges[1] if op.operand(0).type.storage.bits == 8 else (-(1 << 22), 1 << 22)


def _clamp(op: Op, ranges: list[Range]) -> Range:
    low, high = op.attributes["min_val"], op.attributes["max_val"]
    return min(max(ranges[0][0], low), high), min(max(ranges[0][1], low), high)


def _first(op: Op, ranges: list[Range]) -> Range:
    return ranges[0]


def _last(op: Op, ranges: list[Range]) -> Range:
    return ranges[-1]


def _either(op: Op, ranges: list[Range]) -> Range:
    return _hull(op, ranges[1:])


def _hull(op: Op, ranges: list[Range]) -> Range:
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


_RULES: dict[str, Callable[[Op, list[Range]], Range]] = {
    "tosa.add": _corners(lambda a, b: a + b),
    "tosa.sub": _corners(lambda a, b: a - b),
    "tosa.mul": _mul,
    "tosa.maximum": _corners(max),
    "tosa.minimum": _corners(min),
    "tosa.clamp": _clamp,
    "tosa.arithmetic_right_shift": _shift_right,
    "tosa.rescale": _rescale,
    "tosa.table": _table,
    "ext.table_2d": _last,
    "tosa.select": _either,
    "tosa.concat": _hull,
    **dict.fromkeys(
        (
            *("tosa.cast", "tosa.identity", "tosa.reshape", "tosa.transpose", "tosa.slice"),
            *("tosa.reduce_max", "tosa.reduce_min", "tosa.max_pool2d", "quant.scast"),
        ),
        _first,
    ),
}
