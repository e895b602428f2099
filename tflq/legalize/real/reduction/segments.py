"""SEGMENT_SUM, UNSORTED_SEGMENT_SUM, _MAX and _MIN of quantized tensors, which no kernel takes: the real function.

Rows of one segment are added, or the greatest or least taken. Sums are SCATTER_ND of the rows' distances from the zero
point in int32, scaled to the result. For the extremes the rows take the result's parameters first; with known segments
those of each are gathered beside each other, else a choice per segment and row leaves the rest at the least (greatest)
stored value, which is also what an empty segment has: the float kernel's lowest number saturates to it. Rows of
negative segments are left out. Sources: kernels/segment_sum.cc, unsorted_segment.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from tflq.dialects.tfl.indexing import Gather, ScatterND
from tflq.dialects.tfl.movement import PadV2
from tflq.dialects.tfl.reduction import SegmentSum, UnsortedSegmentMax, UnsortedSegmentMin, UnsortedSegmentSum
from tflq.ir.core import Op, Value
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i16, i32, ui8
from tflq.legalize.reference.generic.rescaled import saturated
from tflq.legalize.reference.indexing.scattering import sum_bounds
from tflq.legalize.rule import Answer, NotApplicable, RuleBuilder, rule
from tflq.legalize.scaling import centred, kernel_name, per_layer, requantized
from tflq.numerics.fixed_point import quotient

__all__: list[str] = []

_Operator: TypeAlias = SegmentSum | UnsortedSegmentSum | UnsortedSegmentMax | UnsortedSegmentMin


class _Segments:
    """Rows by segment: those of the `rows`, `known` or in the operand `ids`; how many there are (`count`), if known."""

    def __init__(self, op: _Operator) -> None:
        x, self.ids = op.input, op.segments
        shape = [d or 0 for d in x.type.shape or ()]
        depth = len(self.ids.type.shape or ())
        self.rows, self.inner = math.prod(shape[:depth]), shape[depth:]
        self.known = self.ids.array.reshape(-1) if self.ids.is_constant else None
        self.count: int | None = None
        if not isinstance(op, SegmentSum):
            self.count = int(op.count.array.reshape(-1)[0]) if op.count.is_constant else None
        elif self.known is not None:
            self.count = int(self.known.max(initial=-1)) + 1

    def flat(self, b: RuleBuilder, x: Value) -> Value:
        """One row of the inner dims after another."""
        return b.reshape(x, [self.rows, *self.inner])


def _elements(op: _Operator) -> tuple[UniformQuantizedType, UniformQuantizedType]:
    x, ids = op.input, op.segments
    source, output = per_layer(op, [x, op.result])
    if source.storage != output.storage or source.storage not in (i8, ui8, i16):
        raise NotApplicable(f"{kernel_name(op)} has no form for {source.storage} → {output.storage}")
    if not x.type.is_static or not ids.type.is_static or not x.type.rank or not ids.type.rank:
        raise NotApplicable(f"the shape of '{x.name}' or of its segments is not known")
    return source, output


@rule(SegmentSum, UnsortedSegmentSum, order=2)
def segment_sum(op: SegmentSum | UnsortedSegmentSum, b: RuleBuilder) -> Answer:
    """result = the sum of each segment's rows."""
    elements, segments = _elements(op), _Segments(op)
    source, output = elements
    if segments.count is None and isinstance(op, UnsortedSegmentSum):
        raise NotApplicable(f"the number of segments '{op.count.name}' is not constant")
    rows = segments.flat(b, centred(b, op.input, source))
    if segments.known is None:
        total, terms = _sums_of_ids(op, b, segments, rows), segments.rows
    else:
        kept = np.flatnonzero(segments.known >= 0)
        ids = segments.known[kept]
        terms = int(np.bincount(ids).max(initial=0))
        if not kept.size:
            return _filled(b, op, output.zero_point)
        if kept.size < segments.rows:
            rows = _gathered(b, rows, kept)
        total = _scattered(b, rows, b.constant(ids.reshape(-1, 1)), [segments.count or 0, *segments.inner])
    scale = quotient(source.scale, output.scale)
    return saturated(b, total, np.asarray([scale]), output, "NONE", sum_bounds(source, terms))


def _sums_of_ids(op: Op, b: RuleBuilder, segments: _Segments, rows: Value) -> Value:
    """Rows of negative segments go to one more, which is cut off."""
    ids = b.reshape(b.value(segments.ids), [segments.rows])
    if segments.count is None:  # as many as the last segment says
        last = b.add(b.reduce("max", ids, 0), b.constant(np.asarray([1])))
        inner = b.constant(np.asarray(segments.inner))
        shape = b.concat([last, inner], 0) if segments.inner else last
        where = b.reshape(ids, [segments.rows, 1])
        return b.emit(ScatterND, [where, rows, shape], op.result.type.with_element(i32))
    count = b.constant(np.asarray(segments.count))
    ids = b.select(b.greater(b.constant(np.asarray(0)), ids), count, ids)
    whole = [segments.count + 1, *segments.inner]
    total = _scattered(b, rows, b.reshape(ids, [segments.rows, 1]), whole)
    size = (segments.count, *segments.inner)
    return b.slice(total, (0,) * len(size), size)


def _scattered(b: RuleBuilder, rows: Value, ids: Value, shape: Sequence[int]) -> Value:
    return b.emit(ScatterND, [ids, rows, b.constant(np.asarray(shape))], TensorType(tuple(shape), i32))


def _gathered(b: RuleBuilder, rows: Value, places: np.ndarray) -> Value:
    shape = (*places.shape, *(rows.type.shape or ())[1:])
    type = TensorType(shape, rows.type.element)
    return b.emit(Gather, [rows, b.constant(places)], type, axis=0, batch_dims=0)


def _filled(b: RuleBuilder, op: Op, stored: int) -> Value:
    shape = [d or 0 for d in op.result.type.shape or ()]
    return b.constant(np.full(shape, stored), op.result.type.storage)


@rule(UnsortedSegmentMax, UnsortedSegmentMin, order=2)
def segment_extreme(op: UnsortedSegmentMax | UnsortedSegmentMin, b: RuleBuilder) -> Answer:
    """result = the greatest or least of each segment's rows."""
    elements, segments = _elements(op), _Segments(op)
    if segments.count is None:
        raise NotApplicable(f"the number of segments '{op.count.name}' is not constant")
    source, output = elements
    greatest = isinstance(op, UnsortedSegmentMax)
    nothing = output.storage.minimum if greatest else output.storage.maximum
    rows = segments.flat(b, requantized(b, b.value(op.input), source, output))
    if segments.known is None:
        beside = _chosen(b, segments, rows, nothing)
    else:
        places = _places(segments.known, segments.count)
        if not places.size:
            return _filled(b, op, nothing)
        around = b.constant(np.asarray([[0, 1], *[[0, 0]] * len(segments.inner)]))
        type = TensorType((segments.rows + 1, *segments.inner), output.storage)
        fill = b.constant(np.asarray(nothing), output.storage)
        beside = _gathered(b, b.emit(PadV2, [rows, around, fill], type), places)
    return b.reshape(b.reduce("max" if greatest else "min", beside, 1), [segments.count, *segments.inner])


def _places(ids: np.ndarray, count: int) -> np.ndarray:
    """[segments, most rows of one]: the rows of each, and the row after them all."""
    kept = np.flatnonzero(ids >= 0)
    order = kept[np.argsort(ids[kept], kind="stable")]
    ordered = ids[order]
    turn = np.arange(order.size) - np.searchsorted(ordered, ordered)
    places = np.full((count, int(turn.max(initial=-1)) + 1), ids.size)
    places[ordered, turn] = order
    return places


def _chosen(b: RuleBuilder, segments: _Segments, rows: Value, nothing: int) -> Value:
    """[segments, rows, inner]: the rows of each, and what stands for none."""
    ones = [1] * len(segments.inner)
    ids = b.reshape(b.value(segments.ids), [1, segments.rows, *ones])
    numbers = b.constant(np.arange(segments.count or 0).reshape(-1, 1, *ones))
    fill = b.constant(np.asarray(nothing), rows.type.storage)
    return b.select(b.equal(ids, numbers), b.reshape(rows, [1, segments.rows, *segments.inner]), fill)
