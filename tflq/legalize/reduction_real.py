"""Reductions that no kernel computes: other storage types of operand and result, scales per axis, products of uint8.

Within one count of the real result. d is a stored value less its zero point, n the number of reduced elements:

    SUM, MEAN    sum of d, by s_in / s (s n), rounded once: exact; with scales along a reduced axis a sum of scaled
                 integers (`numerics.requantize.terms`)
    MAX, MIN     of the stored values, requantized; with parameters along a reduced axis requantized first: exact
    PROD         sign * 2^(sum of log2 |d s|), the logarithms from a table (`numerics.float_product`)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from tflq.base import sized
from tflq.dialects.tfl.indexing import ScatterND
from tflq.dialects.tfl.movement import PadV2
from tflq.dialects.tfl.pooling import (
    Mean,
    NumberReduction,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    SegmentSum,
    Sum,
    UnsortedSegmentMax,
    UnsortedSegmentMin,
    UnsortedSegmentSum,
)
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i16, i32, ui8
from tflq.legalize.arithmetic_real import MOST_OFF, NOTE, rounded_sum, scaled_term
from tflq.legalize.grid import Grid, centred_by, check_size, entries_by, entry_of, finished, grid_of, requantized_by
from tflq.legalize.indexing import sum_bounds
from tflq.legalize.probing import centred, gather_along, kernel_name, per_layer, requantized
from tflq.legalize.reduction import axes_of, over, without_axes
from tflq.legalize.rescaled import scaled_sum
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.numerics.float_product import FRACTION_BITS, MANTISSA_BITS, ZERO, log_table, powers_of_two
from tflq.numerics.requantize.terms import fit_terms

_MOST_FACTORS = 1 << 11
_GUARD = 12
"""Bits of a product behind the point; it has at most 29 in all."""


@dataclass(frozen=True, slots=True)
class _Reduction:
    """The operand, its axes and how many elements they hold; the result's parameters with the reduced dims as 1."""

    x: Value
    axes: tuple[int, ...]
    count: int
    source: Grid
    target: Grid

    def varies(self, grid: np.ndarray) -> bool:
        """Whether parameters differ along a reduced axis."""
        return any(grid.shape[a] > 1 for a in self.axes)


def _reduction(op: NumberReduction) -> _Reduction:
    x = op.input
    source, target, axes = grid_of(x), grid_of(op.result), axes_of(op)
    sizes = [x.type.dims[a] for a in axes]
    if None in sizes or 0 in sizes:
        raise NotApplicable(f"sizes of '{x.name}' are not known, or no elements are reduced")
    if not op.keep_dims:
        scales, zeros = (np.expand_dims(g, axes) for g in (target.scales, target.zeros))
        target = target._replace(scales=scales, zeros=zeros)
    return _Reduction(x, axes, math.prod(d or 1 for d in sizes), source, target)


def _shaped(op: NumberReduction, b: RuleBuilder, r: _Reduction, result: Value) -> Answer:
    return Rewritten([without_axes(op, b, result, r.axes)], note=NOTE)


@rule(Mean, Sum, order=2)
def mean_or_sum(op: Mean | Sum, b: RuleBuilder) -> Answer:
    """The sum of what the stored integers stand for, over their number for MEAN."""
    r = _reduction(op)
    with np.errstate(all="ignore"):
        ratio = r.source.scales / r.target.scales / (r.count if isinstance(op, Mean) else 1)
    if np.isnan(ratio).any():
        raise NotApplicable("the ratio of the scales is not a number")
    x = centred_by(b, r.x, r.source)
    if not r.varies(r.source.scales):
        if r.count * r.source.reach >= 1 << 31:
            raise NotApplicable("the sum can leave 32 bits")
        bounds = r.count * r.source.low, r.count * r.source.high
        return _shaped(op, b, r, finished(b, over(b, "sum", x, r.axes), ratio, r.target, bounds))
    (term,), bits, off = fit_terms([ratio], [r.source.reach], r.count)
    if bits < 0 or off > MOST_OFF:
        raise NotApplicable("the operand's scales are too far above the result's, or too many elements are summed")
    answer = rounded_sum(b, over(b, "sum", scaled_term(b, x, term), r.axes), bits, r.target, "NONE")
    return _shaped(op, b, r, answer.result)


@rule(ReduceMax, ReduceMin, order=2)
def extreme(op: ReduceMax | ReduceMin, b: RuleBuilder) -> Answer:
    """The extreme of stored values, requantized, or of requantized ones."""
    r = _reduction(op)
    kind: Literal["max", "min"] = "max" if isinstance(op, ReduceMax) else "min"
    if r.varies(r.source.scales) or r.varies(r.source.zeros):
        result = over(b, kind, requantized_by(b, r.x, r.source, r.target), r.axes)
    else:
        result = requantized_by(b, over(b, kind, b.value(r.x), r.axes), r.source, r.target)
    return _shaped(op, b, r, result)


@rule(ReduceProd, order=2)
def product(op: ReduceProd, b: RuleBuilder) -> Answer:
    """The product by logarithms."""
    r = _reduction(op)
    if r.count >= _MOST_FACTORS:
        raise NotApplicable(f"{r.count} factors are too many for the sums of their logarithms")
    check_size(r.source, r.source.scales, r.source.zeros)
    storage, one = r.source.storage, float(r.target.scales.flat[0])
    stored = np.arange(storage.minimum, storage.maximum + 1)
    if not one:
        raise NotApplicable("the result has a scale of 0")
    scales = r.source.scales[..., None] * one ** (-1 / r.count)
    table = log_table(stored - r.source.zeros[..., None], scales, r.count)
    if r.target.reach * math.log(2) * (table.off + 2.0**-FRACTION_BITS / 2) > MOST_OFF:
        raise NotApplicable("the logarithms of so many factors have too few bits")
    logs, signs = (over(b, "sum", entries_by(b, b.value(r.x), t, i32), r.axes) for t in (table.logs, table.signs))
    if r.target.scales.size > 1:
        others = np.rint(np.ldexp(np.log2(r.target.scales / one), table.bits)).astype(np.int64)
        logs = b.sub(logs, entry_of(b, others, logs.type.rank or 0))
    answer = rounded_sum(b, _signed(b, _power(b, logs, table.bits), signs), _GUARD, r.target, "NONE")
    return _shaped(op, b, r, answer.result)


def _power(b: RuleBuilder, logs: Value, bits: int) -> Value:
    """2^(logs / 2^bits) with `_GUARD` bits behind the point, saturated above 17 bits before it."""
    fine = logs
    if bits > FRACTION_BITS:
        fine = b.arithmetic_right_shift(logs, bits - FRACTION_BITS)
    elif bits < FRACTION_BITS:
        fine = b.mul(logs, 1 << (FRACTION_BITS - bits))
    most = MANTISSA_BITS - _GUARD
    limit = 1 << FRACTION_BITS
    fine = b.clamp(fine, (most - 31) * limit, most * limit)
    whole = b.arithmetic_right_shift(fine, FRACTION_BITS)
    fraction = b.sub(fine, b.mul(whole, limit))
    index = b.cast(b.sub(fraction, limit // 2), i16)
    return b.arithmetic_right_shift(b.table(index, powers_of_two()), b.sub(most, whole))


def _signed(b: RuleBuilder, magnitude: Value, signs: Value) -> Value:
    """The magnitude, negative for an odd number of negative factors, 0 if a factor is 0."""
    odd = b.equal(b.bitwise_and(signs, 1), 1)
    chosen = b.select(odd, b.sub(0, magnitude), magnitude)
    return b.select(b.greater_equal(signs, ZERO), 0, chosen)


# SEGMENT_SUM, UNSORTED_SEGMENT_SUM, _MAX and _MIN of quantized tensors, which no kernel takes: the real function.
#
# Sums are SCATTER_ND of the rows' distances from the zero point in int32, scaled to the result. For the extremes the
# rows take the result's parameters first; with known segments the rows of each are gathered next to each other, else a
# choice per segment and row leaves the rest at the least (greatest) stored value. Empty segments have that value, too:
# the float kernel's lowest number saturates to it. Rows of negative segments are left out. Sources:
# kernels/segment_sum.cc, unsorted_segment.cc.


_Operator: TypeAlias = SegmentSum | UnsortedSegmentSum | UnsortedSegmentMax | UnsortedSegmentMin


class _Segments:
    """The segment of each of the `rows`, `known` or in the operand `ids`; how many there are (`count`), if known."""

    def __init__(self, op: _Operator) -> None:
        x, self.ids = op.input, op.segments
        shape = x.type.sizes
        depth = len(self.ids.type.dims)
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
    """The types of the operand and the result; NotApplicable for types or shapes that have no form."""
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
    (source, output), segments = _elements(op), _Segments(op)
    if segments.count is None and isinstance(op, UnsortedSegmentSum):
        raise NotApplicable(f"the number of segments '{op.count.name}' is not constant")
    rows = segments.flat(b, centred(b, op.input, source))
    if segments.known is None:
        total, terms = _sums_of_ids(op, b, segments, rows), segments.rows
    else:
        rows_with_id = np.flatnonzero(segments.known >= 0)
        ids = segments.known[rows_with_id]
        terms = int(np.bincount(ids).max(initial=0))
        if not rows_with_id.size:
            return _filled(b, op, output.zero_point)
        if rows_with_id.size < segments.rows:
            rows = gather_along(b, rows, rows_with_id)
        total = _scattered(b, rows, b.constant(ids.reshape(-1, 1)), [segments.count or 0, *segments.inner])
    return scaled_sum(b, total, source, output, sum_bounds(source, terms))


def _sums_of_ids(op: Op, b: RuleBuilder, segments: _Segments, rows: Value) -> Value:
    """Sums by segments that the model computes. Rows of negative ones go to one more segment, which is cut off."""
    ids = b.reshape(b.value(segments.ids), [segments.rows])
    if segments.count is None:  # as many as the last segment says
        last = b.add(b.reduce("max", ids, 0), [1])
        inner = b.constant(segments.inner)
        shape = b.concat([last, inner], 0) if segments.inner else last
        where = b.reshape(ids, [segments.rows, 1])
        return b.emit(ScatterND, [where, rows, shape], op.result.type.with_element(i32))
    ids = b.select(b.greater(0, ids), segments.count, ids)
    whole = [segments.count + 1, *segments.inner]
    total = _scattered(b, rows, b.reshape(ids, [segments.rows, 1]), whole)
    size = (segments.count, *segments.inner)
    return b.slice(total, (0,) * len(size), size)


def _scattered(b: RuleBuilder, rows: Value, ids: Value, shape: Sequence[int]) -> Value:
    return b.emit(ScatterND, [ids, rows, b.constant(shape)], TensorType(tuple(shape), i32))


def _filled(b: RuleBuilder, op: Op, stored: int) -> Value:
    shape = op.result.type.sizes
    return b.constant(sized.full(shape, stored), op.result.type.storage)


@rule(UnsortedSegmentMax, UnsortedSegmentMin, order=2)
def segment_extreme(op: UnsortedSegmentMax | UnsortedSegmentMin, b: RuleBuilder) -> Answer:
    """result = the greatest or least of each segment's rows."""
    (source, output), segments = _elements(op), _Segments(op)
    if segments.count is None:
        raise NotApplicable(f"the number of segments '{op.count.name}' is not constant")
    greatest = isinstance(op, UnsortedSegmentMax)
    nothing = output.storage.minimum if greatest else output.storage.maximum
    rows = segments.flat(b, requantized(b, b.value(op.input), source, output))
    if segments.known is None:
        grouped = _chosen(b, segments, rows, nothing)
    else:
        places = _places(segments.known, segments.count)
        if not places.size:
            return _filled(b, op, nothing)
        around = b.constant([[0, 1], *[[0, 0]] * len(segments.inner)])
        type = TensorType((segments.rows + 1, *segments.inner), output.storage)
        fill = b.constant(nothing, output.storage)
        grouped = gather_along(b, b.emit(PadV2, [rows, around, fill], type), places)
    return b.reshape(b.reduce("max" if greatest else "min", grouped, 1), [segments.count, *segments.inner])


def _places(ids: np.ndarray, count: int) -> np.ndarray:
    """[segments, most rows of one]: the rows of each, filled up with the row after them all."""
    rows_with_id = np.flatnonzero(ids >= 0)
    order = rows_with_id[np.argsort(ids[rows_with_id], kind="stable")]
    ordered = ids[order]
    turn = np.arange(order.size) - np.searchsorted(ordered, ordered)
    places = sized.full((count, int(turn.max(initial=-1)) + 1), ids.size)
    places[ordered, turn] = order
    return places


def _chosen(b: RuleBuilder, segments: _Segments, rows: Value, nothing: int) -> Value:
    """[segments, rows, inner]: the rows of each segment, and `nothing` for the others."""
    ones = [1] * len(segments.inner)
    ids = b.reshape(b.value(segments.ids), [1, segments.rows, *ones])
    numbers = b.constant(sized.arange(segments.count or 0).reshape(-1, 1, *ones))
    fill = b.constant(nothing, rows.type.storage)
    return b.select(b.equal(ids, numbers), b.reshape(rows, [1, segments.rows, *segments.inner]), fill)
