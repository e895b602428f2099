"""Arithmetic of two tensors that no kernel computes: scales per axis, mixed storage types, int16 SQUARED_DIFFERENCE.

Of what the stored integers stand for, within one count of the real result. d is a stored value less its zero point, s a
scale; each r is a grid, so that operands and result may be quantized along any axis.

    ADD, SUB             d1 s1 / s ± d2 s2 / s as sums of scaled integers, rounded once (`numerics.division_fit`)
    MUL                  d1 d2, an integer, by s1 s2 / s, rounded once: exact
    SQUARED_DIFFERENCE   t = d1 s1 / sqrt(s) - d2 s2 / sqrt(s) likewise, t t rounded once
    DIV                  (d1 s1 / (s2 s)) / d2, the dividend with bits behind the point; by zero: the end of the range
                         that its sign says, 0 / 0 the zero point
    MAXIMUM, MINIMUM     of the operands, each rounded to the result's parameters, which is monotone: exact
    PRELU                d1 s1 / s from zero up, d1 d2 s1 s2 / s below: exact
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tflq.dialects.ext import Table2D
from tflq.dialects.inference import broadcast
from tflq.dialects.tfl.activation import Prelu
from tflq.dialects.tfl.arithmetic import (
    Add,
    AddN,
    Atan2,
    Div,
    FloorDiv,
    FloorMod,
    Maximum,
    Minimum,
    Mul,
    Pow,
    SquaredDifference,
    Sub,
)
from tflq.dialects.tfl.reduction import Cumsum
from tflq.dialects.tosa.elementwise import IntDiv
from tflq.ir.core import Value
from tflq.ir.record import parameters
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i16, i32, i64, ui8
from tflq.legalize.grid import (
    Grid,
    activation_grids,
    bounded,
    centred_by,
    entry_of,
    finished,
    grids_of,
    looked_up_by,
    requantized_by,
)
from tflq.legalize.probing import centred, kernel_name, per_layer, rounding_shift
from tflq.legalize.rescaled import saturated
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.numerics.division_fit import Term, fit_terms
from tflq.numerics.elementwise import BOUNDS
from tflq.numerics.fixed_point import quantize_multiplier, quotient
from tflq.numerics.tables import (
    REAL_FUNCTIONS_OF_TWO,
    FloatFunction,
    Stored,
    floor_quotient,
    floor_remainder,
    real_table_of_two,
)

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


# Operators that no kernel computes on quantized tensors, within one count of the real result, without floats.
#
#     POW, ATAN2, uint8 SQUARED_DIFFERENCE    a table of all pairs of 8-bit values: the real result, rounded
#     CUMSUM                                  sum of x - zero point, times input / output in double, rounded
#     ADD_N                                   the same where all scales are one; else each operand times its scale over
#                                             the result's, with as many bits behind the point as the sum leaves
#
# On int32 and int64 the kernels of CUMSUM and ADD_N add the stored integers. Source: kernels/cumsum.cc, add_n.cc.


_RAW = "the kernel adds the stored integers and ignores their scales"
_FRACTION = 20


@rule(Pow, SquaredDifference, Atan2, order=2)
def function_of_two(op: SquaredDifference | Atan2 | Pow, b: RuleBuilder) -> Answer:
    """The real function of every pair of 8-bit values."""
    elements = per_layer(op)
    if any(e.storage not in (i8, ui8) for e in elements):
        raise NotApplicable(f"{kernel_name(op)} has a table only for 8 bits")
    stored = [Stored(e.storage.dtype, e.scale, e.zero_point) for e in elements]
    table = real_table_of_two(REAL_FUNCTIONS_OF_TWO[kernel_name(op)], *stored)
    first, second = (op.y, op.x) if isinstance(op, Atan2) else (op.lhs, op.rhs)
    x, y = b.value(first), b.value(second)
    storage = elements[-1].storage
    type = TensorType(broadcast(x.type.shape, y.type.shape), storage)
    looked_up = b.emit(Table2D, [x, y, b.constant(table.reshape(-1), storage)], type)
    return Rewritten([looked_up], note=NOTE)


@rule(Cumsum, order=2)
def cumsum(op: Cumsum, b: RuleBuilder) -> Answer:
    """CUMSUM on int32, scaled to the result; or of stored integers."""
    x, axis = op.input, op.axis
    if x.type.storage in (i32, i64):
        sums = b.op(op.name, [b.value(x), b.value(axis)], [op.result.type.stripped()], op.attributes)
        return Rewritten(sums.results, warning=_RAW)
    source, output = per_layer(op, [x, op.result])
    if x.type.storage not in (i8, ui8, i16) or not x.type.shape or None in x.type.shape or not axis.is_constant:
        raise NotApplicable("the operand's shape or axis is not known, or it is stored in more than 16 bits")
    length = x.type.shape[int(axis.array.reshape(())) % len(x.type.shape)] or 0
    wide = centred(b, x, source)
    total = b.op(op.name, [wide, b.value(axis)], [wide.type], op.attributes).result
    return _scaled_sum(b, total, _bounds([source] * length), source, output)


@rule(AddN, order=2)
def add_n(op: AddN, b: RuleBuilder) -> Answer:
    """The sum of all operands."""
    operands = [v for v in op.operands if v is not None]
    if operands[0].type.storage in (i32, i64):
        return Rewritten([_sum(b, [b.value(v) for v in operands])], warning=_RAW)
    elements = per_layer(op)
    if any(e.storage not in (i8, ui8, i16) for e in elements):
        raise NotApplicable("an operand is stored in more than 16 bits")
    *sources, output = elements
    plain = [centred(b, v, e) for v, e in zip(operands, sources, strict=True)]
    if len({e.scale for e in sources}) == 1:
        return _scaled_sum(b, _sum(b, plain), _bounds(sources), sources[0], output)
    reach = sum((1 << e.storage.bits) * quotient(e.scale, output.scale) for e in sources)
    if not math.isfinite(reach):
        raise NotApplicable("the operands' scales are too far above the result's")
    bits = min(_FRACTION, 29 - math.frexp(reach)[1])
    if bits < len(sources).bit_length() + 2:
        raise NotApplicable("the operands' scales are too far above the result's")
    try:
        multipliers = [quantize_multiplier(e.scale / output.scale * 2.0**bits) for e in sources]
    except ValueError as error:
        raise NotApplicable(str(error)) from error
    parts = [b.rescale(x, multiplier) for x, multiplier in zip(plain, multipliers, strict=True)]
    result = rounding_shift(b, _sum(b, parts), bits)
    if output.zero_point:
        result = b.add(result, b.constant(np.asarray(output.zero_point)))
    storage = output.storage
    return Rewritten([b.cast(b.clamp(result, storage.minimum, storage.maximum), storage)], note=NOTE)


def _sum(b: RuleBuilder, values: Sequence[Value]) -> Value:
    total = values[0]
    for value in values[1:]:
        total = b.add(total, value)
    return total


def _bounds(elements: Sequence[UniformQuantizedType]) -> tuple[int, int]:
    """Bounds of a sum of stored values less their zero points."""
    low = sum(e.storage.minimum - e.zero_point for e in elements)
    return min(low, 0), max(sum(e.storage.maximum - e.zero_point for e in elements), 0)


def _scaled_sum(
    b: RuleBuilder, total: Value, bounds: tuple[int, int], source: UniformQuantizedType, output: UniformQuantizedType
) -> Answer:
    """A sum times source / output, in the result's type."""
    if max(-bounds[0], bounds[1]) >= 1 << 31:
        raise NotApplicable("the sum can leave 32 bits")
    result = saturated(b, total, np.asarray([quotient(source.scale, output.scale)]), output, "NONE", bounds)
    return Rewritten([result], note=NOTE)


# ATAN2, POW, FLOOR_DIV and FLOOR_MOD of a tensor and a constant that holds one number: a function of one tensor, so a
# table also for int16 and for scales per axis. FLOOR_DIV and FLOOR_MOD compute in float32, as their float kernels do.


_Two = Callable[[np.ndarray, np.ndarray], np.ndarray]
_FUNCTIONS: dict[str, _Two] = {
    "ATAN2": REAL_FUNCTIONS_OF_TWO["ATAN2"],
    "FLOOR_DIV": lambda x, y: floor_quotient(x.astype(np.float32), y.astype(np.float32)),
    "FLOOR_MOD": lambda x, y: floor_remainder(x.astype(np.float32), y.astype(np.float32)),
    "POW": REAL_FUNCTIONS_OF_TWO["POW"],
}


@rule(FloorDiv, FloorMod, Pow, Atan2, order=3)
def function_with_a_number(op: FloorDiv | FloorMod | Atan2 | Pow, b: RuleBuilder) -> Answer:
    """The table of the real function of the operand that is no number."""
    grids = grids_of(*op.tensors)
    for place in (1, 0):
        known, other = _number(op.operand(place)), op.operand(1 - place)
        if known is None or broadcast(op.operand(place).type.shape, other.type.shape) != other.type.shape:
            continue
        function = _of_one(_FUNCTIONS[kernel_name(op)], known, place)
        made = looked_up_by(b, other, grids[1 - place], grids[-1], function)
        return Rewritten([made], note=NOTE)
    raise NotApplicable(f"{kernel_name(op)} on {op.result.type.storage} has no table: neither operand is one number")


def _number(value: Value) -> np.ndarray | None:
    """The one number that a constant holds, float64, as DEQUANTIZE gives it."""
    if not value.is_constant or not value.array.size:
        return None
    scale, zero = parameters(value.type)
    reals = (value.array.astype(np.int32) - zero).astype(np.float32) * scale
    return reals.flat[0].astype(np.float64) if (reals == reals.flat[0]).all() else None


def _of_one(function: _Two, known: np.ndarray, place: int) -> FloatFunction:
    return (lambda x: function(x, known)) if place else (lambda x: function(known, x))
