"""Reductions that no kernel computes: other storage types of operand and result, scales per axis, products of uint8.

Within one count of the real result. d is a stored value less its zero point, n how many are reduced:

    SUM, MEAN    sum of d, by s_in / s (s n), rounded once: exact; with scales along a reduced axis a sum of scaled
                 integers (`numerics.scaled_sum`)
    MAX, MIN     of the stored values, requantized; with parameters along a reduced axis requantized first: exact
    PROD         sign * 2^(sum of log2 |d s|), the logarithms from a table (`numerics.log_product`)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from tflq.dialects.tfl.reduction import Mean, NumberReduction, ReduceMax, ReduceMin, ReduceProd, Sum
from tflq.dialects.tosa.bits import BitwiseAnd
from tflq.ir.core import Value
from tflq.ir.types import i16, i32
from tflq.legalize.real.arithmetic.arithmetic import NOTE, rounded_sum, scaled_term
from tflq.legalize.real.generic.grid import Grid, centred_by, entry_of, finished, grid_of
from tflq.legalize.real.generic.lookup import check_size, entries_by, requantized_by
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.light import dataclass
from tflq.numerics.log_product import FRACTION_BITS, MANTISSA_BITS, ZERO, log_table, powers_of_two
from tflq.numerics.scaled_sum import fit_terms

__all__: list[str] = []

_OFF = 0.75
"""What a result may be off before it is rounded, in counts: less than 1."""
_I31 = 1 << 31
_MOST_FACTORS = 1 << 11
_GUARD = 12
"""Bits of a product behind the point; it has no more than 29 of them in all."""


@dataclass(frozen=True, slots=True)
class _Reduction:
    """The operand, its axes and what is known of it; the result's parameters with the reduced dims as 1."""

    x: Value
    axes: tuple[int, ...]
    count: int
    source: Grid
    target: Grid

    def varies(self, grid: np.ndarray) -> bool:
        """Whether parameters differ along a reduced axis."""
        return any(grid.shape[a] > 1 for a in self.axes)


def _reduction(op: NumberReduction) -> _Reduction:
    x, axis = op.input, op.axes
    source, target = grid_of(x), grid_of(op.result)
    shape = x.type.shape or ()
    if not axis.is_constant:
        raise NotApplicable(f"the axes '{axis.name}' are not constant")
    axes = tuple(sorted({int(a) % len(shape) for a in axis.array.reshape(-1)})) if shape else ()
    sizes = [shape[a] for a in axes]
    left = [d for a, d in enumerate(shape) if a not in axes]
    if None in sizes or 0 in sizes or (not op.keep_dims and left.count(None) > 1):
        raise NotApplicable(f"sizes of '{x.name}' are not known, or no elements are reduced")
    if not op.keep_dims:
        scales, zeros = (np.expand_dims(g, axes) for g in (target.scales, target.zeros))
        target = target._replace(scales=scales, zeros=zeros)
    return _Reduction(x, axes, math.prod(d or 1 for d in sizes), source, target)


def _over(b: RuleBuilder, kind: Literal["sum", "max", "min"], x: Value, axes: Sequence[int]) -> Value:
    for axis in axes:
        x = b.reduce(kind, x, axis)
    return x


def _shaped(op: NumberReduction, b: RuleBuilder, r: _Reduction, made: Value) -> Answer:
    """The result without the reduced dims, unless they stay."""
    if not op.keep_dims and r.axes:
        made = b.reshape(made, [d for a, d in enumerate(made.type.shape or ()) if a not in r.axes])
    return Rewritten([made], note=NOTE)


@rule(Mean, Sum, order=2)
def mean_or_sum(op: Mean | Sum, b: RuleBuilder) -> Answer:
    """The sum of what the stored integers stand for, over their number for MEAN."""
    r = _reduction(op)
    with np.errstate(all="ignore"):
        ratio = r.source.scales / r.target.scales / (r.count if isinstance(op, Mean) else 1)
    if np.isnan(ratio).any():
        raise NotApplicable("the ratio of the scales is no number")
    x = centred_by(b, r.x, r.source)
    if not r.varies(r.source.scales):
        if r.count * r.source.reach >= _I31:
            raise NotApplicable("the sum can leave 32 bits")
        bounds = r.count * r.source.low, r.count * r.source.high
        return _shaped(op, b, r, finished(b, _over(b, "sum", x, r.axes), ratio, r.target, bounds))
    (term,), bits, off = fit_terms([ratio], [r.source.reach], r.count)
    if bits < 0 or off > _OFF:
        raise NotApplicable("the operand's scales are too far above the result's, or too many elements are summed")
    answer = rounded_sum(b, _over(b, "sum", scaled_term(b, x, term), r.axes), bits, r.target, "NONE")
    return _shaped(op, b, r, answer.results[0])


@rule(ReduceMax, ReduceMin, order=2)
def extreme(op: ReduceMax | ReduceMin, b: RuleBuilder) -> Answer:
    """The extreme of stored values, requantized, or of requantized ones."""
    r = _reduction(op)
    kind: Literal["max", "min"] = "max" if isinstance(op, ReduceMax) else "min"
    if r.varies(r.source.scales) or r.varies(r.source.zeros):
        ready = requantized_by(b, r.x, r.source, r.target)
        return _shaped(op, b, r, _over(b, kind, ready, r.axes))
    found = _over(b, kind, b.value(r.x), r.axes)
    return _shaped(op, b, r, requantized_by(b, found, r.source, r.target))


@rule(ReduceProd, order=2)
def product(op: ReduceProd, b: RuleBuilder) -> Answer:
    """The product by logarithms."""
    r = _reduction(op)
    if r.count >= _MOST_FACTORS:
        raise NotApplicable(f"{r.count} factors are more than are counted")
    check_size(r.source, r.source.scales, r.source.zeros)
    storage, one = r.source.storage, float(r.target.scales.flat[0])
    stored = np.arange(storage.minimum, storage.maximum + 1)
    if not one:
        raise NotApplicable("the result has a scale of 0")
    scales = r.source.scales[..., None] * one ** (-1 / r.count)
    table = log_table(stored - r.source.zeros[..., None], scales, r.count)
    if r.target.reach * math.log(2) * (table.off + 2.0**-FRACTION_BITS / 2) > _OFF:
        raise NotApplicable("the logarithms of so many factors have too few bits")
    logs, signs = (_over(b, "sum", entries_by(b, b.value(r.x), t, i32), r.axes) for t in (table.logs, table.signs))
    if r.target.scales.size > 1:
        others = np.rint(np.ldexp(np.log2(r.target.scales / one), table.bits)).astype(np.int64)
        logs = b.sub(logs, entry_of(b, others, logs.type.rank or 0))
    answer = rounded_sum(b, _signed(b, _power(b, logs, table.bits), signs), _GUARD, r.target, "NONE")
    return _shaped(op, b, r, answer.results[0])


def _power(b: RuleBuilder, logs: Value, bits: int) -> Value:
    """2^(logs / 2^bits) with `_GUARD` bits behind the point, saturated above 17 bits before it."""
    fine = logs
    if bits > FRACTION_BITS:
        fine = b.arithmetic_right_shift(logs, b.constant(np.asarray(bits - FRACTION_BITS)))
    elif bits < FRACTION_BITS:
        fine = b.mul(logs, b.constant(np.asarray(1 << (FRACTION_BITS - bits))))
    most = MANTISSA_BITS - _GUARD
    limit = 1 << FRACTION_BITS
    fine = b.clamp(fine, (most - 31) * limit, most * limit)
    whole = b.arithmetic_right_shift(fine, b.constant(np.asarray(FRACTION_BITS)))
    fraction = b.sub(fine, b.mul(whole, b.constant(np.asarray(limit))))
    index = b.cast(b.sub(fraction, b.constant(np.asarray(limit // 2))), i16)
    return b.arithmetic_right_shift(b.table(index, powers_of_two()), b.sub(b.constant(np.asarray(most)), whole))


def _signed(b: RuleBuilder, magnitude: Value, signs: Value) -> Value:
    """The magnitude, negative for an odd number of negative factors, 0 where a factor is."""
    zero, one = b.constant(np.asarray(0)), b.constant(np.asarray(1))
    odd = b.equal(b.emit(BitwiseAnd, [signs, one], signs.type), one)
    chosen = b.select(odd, b.sub(zero, magnitude), magnitude)
    return b.select(b.greater_equal(signs, b.constant(np.asarray(ZERO))), zero, chosen)
