"""Arithmetic of two tensors that no kernel computes: scales per axis, mixed storage types, int16 SQUARED_DIFFERENCE.

Of what the stored integers stand for, within one count of the real result. d is a stored value less its zero point, s a
scale; each r is a grid, so that operands and result may be quantized along any axis.

    ADD, SUB             d1 s1 / s ± d2 s2 / s as sums of scaled integers, rounded once (`numerics.scaled_sum`)
    MUL                  d1 d2, an integer, by s1 s2 / s, rounded once: exact
    SQUARED_DIFFERENCE   t = d1 s1 / sqrt(s) - d2 s2 / sqrt(s) likewise, t t rounded once
    DIV                  (d1 s1 / (s2 s)) / d2, the dividend with bits behind the point; by zero: the end of the range
                         that its sign says, 0 / 0 the zero point
    MAXIMUM, MINIMUM     of the operands, each rounded to the result's parameters, which is monotone: exact
    PRELU                d1 s1 / s from zero up, d1 d2 s1 s2 / s below: exact
"""

from __future__ import annotations

import math

import numpy as np

from tflq.dialects.tfl.activation import Prelu
from tflq.dialects.tfl.arithmetic import Add, Div, Maximum, Minimum, Mul, SquaredDifference, Sub
from tflq.dialects.tosa.arithmetic import IntDiv
from tflq.ir.core import Value
from tflq.ir.types import i32
from tflq.legalize.real.generic.grid import (
    Grid,
    activation_grids,
    bounded,
    centred_by,
    entry_of,
    finished,
    grids_of,
)
from tflq.legalize.real.generic.lookup import requantized_by
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import kernel_name, rounding_shift
from tflq.numerics.activation import BOUNDS
from tflq.numerics.scaled_sum import Term, fit_terms

__all__ = ["NOTE", "rounded_sum", "scaled_term"]

NOTE = "no kernel computes it; the real function, rounded"
_FAR = "the operands' scales are too far above the result's"
_OFF = 0.75
"""What a result may be off before it is rounded, in counts: less than 1, so that the rounded one is by at most 1."""
_I31 = 1 << 31
_QUOTIENT_BITS = 12
_BEYOND = 18
"""Bits that no result has."""


def scaled_term(b: RuleBuilder, x: Value, term: Term) -> Value:
    """x times a term's multipliers."""
    return b.mul(x, entry_of(b, term.multiplier, x.type.rank or 0), shift=term.shift)


def rounded_sum(b: RuleBuilder, total: Value, bits: int, target: Grid, activation: str) -> Rewritten:
    """total / 2^bits, rounded, plus the zero points, within the fused activation's range."""
    if activation != "NONE" and activation not in BOUNDS:
        raise NotApplicable(f"the fused activation {activation} is no clamp")
    least, most = activation_grids(activation, target)
    result = rounding_shift(b, total, bits)
    if target.zero != 0:
        zeros = target.zeros if target.zero is None else np.asarray(target.zero)
        result = b.add(result, entry_of(b, zeros, result.type.rank or 0))
    return Rewritten([bounded(b, result, least, most, target.storage)], note=NOTE)


def _noted(made: Value) -> Answer:
    return Rewritten([made], note=NOTE)


@rule(Add, Sub, order=2)
def add(op: Add | Sub, b: RuleBuilder) -> Answer:
    """ADD and SUB as sums of scaled integers."""
    *sources, target = grids_of(*op.tensors)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = [g.scales / target.scales for g in sources]
    terms, bits, off = fit_terms(ratios, [g.reach for g in sources])
    if bits < 0 or off > _OFF:
        raise NotApplicable(_FAR)
    x, y = (
        scaled_term(b, centred_by(b, operand, grid), term)
        for operand, grid, term in zip((op.lhs, op.rhs), sources, terms, strict=True)
    )
    return rounded_sum(
        b, b.sub(x, y) if isinstance(op, Sub) else b.add(x, y), bits, target, op.fused_activation_function
    )


@rule(Mul, order=2)
def mul(op: Mul, b: RuleBuilder) -> Answer:
    """The product of integers, scaled."""
    first, second, target = grids_of(*op.tensors)
    product = _product(op, b, first, second)
    bounds = _product_bounds(first, second)
    return _noted(
        finished(b, product, first.scales * second.scales / target.scales, target, bounds, op.fused_activation_function)
    )


def _product(op: Mul | Prelu, b: RuleBuilder, first: Grid, second: Grid) -> Value:
    if first.reach * second.reach >= _I31:
        raise NotApplicable(f"{kernel_name(op)} on int16 with zero points has products of more than 32 bits")
    x, y = (op.input, op.alpha) if isinstance(op, Prelu) else (op.lhs, op.rhs)
    return b.mul(centred_by(b, x, first), centred_by(b, y, second))


def _product_bounds(first: Grid, second: Grid) -> tuple[int, int]:
    corners = [x * y for x in (first.low, first.high) for y in (second.low, second.high)]
    return min(corners), max(corners)


@rule(SquaredDifference, order=3)
def squared_difference(op: SquaredDifference, b: RuleBuilder) -> Answer:
    """t t, with bits of t behind the point."""
    *sources, target = grids_of(*op.tensors)
    parts = [centred_by(b, *pair) for pair in zip((op.lhs, op.rhs), sources, strict=True)]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [g.scales / np.sqrt(target.scales) for g in sources]
    reaches = [g.reach for g in sources]
    if (sources[0].scales == sources[1].scales).all():
        parts, ratios, reaches = [b.sub(*parts)], ratios[:1], [sum(reaches)]
    span = target.high + 2
    needed = _OFF / (2 * math.sqrt(span))
    terms, bits, off = fit_terms(ratios, reaches, most_bits=20, roughly=needed)
    if bits < 1 or off > needed:
        raise NotApplicable(_FAR)
    scaled = [scaled_term(b, x, term) for x, term in zip(parts, terms, strict=True)]
    reach = math.ceil(math.sqrt(span) * 2.0**bits)
    root = b.clamp(scaled[0] if len(scaled) == 1 else b.sub(*scaled), -reach, reach)
    left = min(30 - (span + 1).bit_length(), 2 * bits)
    return rounded_sum(b, b.mul(root, root, shift=2 * bits - left), left, target, "NONE")


@rule(Div, order=2)
def div(op: Div, b: RuleBuilder) -> Answer:
    """The scaled dividend by the divisor less its zero point."""
    first, second, target = grids_of(*op.tensors)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = first.scales / (second.scales * target.scales)
    (term,), bits, off = fit_terms([ratio], [first.reach], most_bits=_QUOTIENT_BITS)
    more = 0 if bits > 2 else _QUOTIENT_BITS - bits  # what the remainder gives
    if bits < 0 or off + 2.0 ** -(bits + more) > _OFF:
        raise NotApplicable(_FAR)
    x, y = centred_by(b, op.lhs, first), centred_by(b, op.rhs, second)
    no_divisor = b.equal(y, b.constant(np.asarray(0)))
    end = b.mul(b.clamp(x, -1, 1), b.constant(np.asarray(1 << (bits + _BEYOND))))
    dividend = b.select(no_divisor, end, scaled_term(b, x, term))
    divisor = b.select(no_divisor, b.constant(np.asarray(1)), y)
    quotient = _divided(b, dividend, divisor)
    if more:
        unit = b.constant(np.asarray(1 << more))
        rest = b.sub(dividend, b.mul(quotient, divisor))
        most = 1 << (bits + _BEYOND - 1)
        quotient = b.add(b.mul(b.clamp(quotient, -most, most), unit), _divided(b, b.mul(rest, unit), divisor))
    return rounded_sum(b, quotient, bits + more, target, op.fused_activation_function)


def _divided(b: RuleBuilder, x: Value, y: Value) -> Value:
    """The integer part of x / y."""
    return b.emit(IntDiv, [x, y], i32)


@rule(Maximum, Minimum, order=2)
def maximum_minimum(op: Maximum | Minimum, b: RuleBuilder) -> Answer:
    """Of the operands under the result's parameters."""
    *sources, target = grids_of(*op.tensors)
    ready: list[Value] = []
    for operand, source in zip((op.lhs, op.rhs), sources, strict=True):
        made = requantized_by(b, operand, source, target)
        ready.append(made)
    return Rewritten([b.maximum(*ready) if isinstance(op, Maximum) else b.minimum(*ready)], note=NOTE)


@rule(Prelu, order=2)
def prelu(op: Prelu, b: RuleBuilder) -> Answer:
    """By input / output from zero up, the product by input * alpha / output below."""
    source, weight, target = grids_of(*op.tensors)
    product = _product(op, b, source, weight)
    x = centred_by(b, op.input, source)
    above = finished(b, x, source.scales / target.scales, target, (source.low, source.high))
    ratio = source.scales * weight.scales / target.scales
    below = finished(b, product, ratio, target, _product_bounds(source, weight))
    return Rewritten([b.select(b.greater_equal(x, b.constant(np.asarray(0))), above, below)], note=NOTE)
