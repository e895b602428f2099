"""Headroom: numbers beyond those that samples showed, which a network meets on others.

With results of 16 bits each range is `WIDER`. Rounding to so many steps costs next to nothing, and a number that is cut
off costs what it lacks: in a recurrent network, whose states go on growing, more than all else.

Before a SOFTMAX of classes such numbers decide what comes of it. What lies far below the largest number gives next to
nothing, and what lies above all that was seen is the answer. So the range goes up to what samples not seen may reach
(`numerics.ranges`), and down to where all classes together would give less than half a step of the result. It is for
tensors with one row for a sample that nothing but SOFTMAX reads, also through RESHAPE.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tflq.analysis.statistics import PointStatistics, Statistics
from tflq.dialects.tfl.activation import Softmax
from tflq.dialects.tfl.movement import ExpandDims, Reshape, Squeeze
from tflq.ir.module import Function, Module
from tflq.ir.ops import Value
from tflq.numerics.ranges import range_before_softmax
from tflq.tools.quantize.calibration.calibrate import digests, points_of

WIDER: Final = 1.5
"""Of what samples showed, with results of 16 bits."""
_BYTE: Final = 1 << 8


def with_headroom(module: Module, seen: Statistics, levels: int) -> Statistics:
    """Statistics of a float network whose tensors reach further: those before SOFTMAX, and of 16 bits all; the same
    object if there are none.

    seen: with the least and the largest of each sample. levels: how many values the storage of results has.
    """
    points = dict(seen.points) if levels <= _BYTE else {key: _wider(point) for key, point in seen.points.items()}
    for function in module.functions:
        keys, known = points_of(function, set(function.values())), dict[Value, str]()
        for value, softmax in _before_softmax(function):
            known = known or digests(function)
            if (key := keys.get(value, "")) in points and points[key].digest in ("", known[value]):
                points[key] = _further(seen.points[key], value.type.dims[-1] or 1, softmax.beta, levels)
    return seen if points == seen.points else replace(seen, points=points)


def _before_softmax(function: Function) -> Iterator[tuple[Value, Softmax]]:
    """Values of one row that nothing but a SOFTMAX reads, with it."""
    users = function.users()
    for op in function.ops:
        value = op.operand(0) if isinstance(op, Softmax) else None
        while value is not None and len(users.get(value, ())) == 1 and value not in function.outputs:
            dims = value.type.dims
            if not dims or None in dims or dims[-1] != value.type.size:
                break
            yield value, op  # type: ignore[misc]
            moved = value.producer
            value = moved.input if isinstance(moved, (Reshape, Squeeze, ExpandDims)) else None


def _wider(point: PointStatistics) -> PointStatistics:
    if point.minimum is None or point.maximum is None:
        return point
    return replace(point, minimum=point.minimum * WIDER, maximum=point.maximum * WIDER)


def _further(point: PointStatistics, classes: int, beta: float, levels: int) -> PointStatistics:
    lows = [low for low in point.sample_minima if low is not None]
    highs = [high for high in point.sample_maxima if high is not None]
    if not lows or beta <= 0:
        return point
    low, high = range_before_softmax(lows, highs, classes, levels, beta)
    return replace(point, minimum=low, maximum=high)
