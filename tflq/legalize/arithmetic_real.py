"""Elementwise functions that no kernel computes: scales per axis, mixed storage types, functions of two tensors,
CUMSUM, ADD_N, and functions of one tensor on other types than kernels have.

The result is within one count of the real one, without floats. d is a stored value less its zero point, s a scale;
scales and zero points are grids (`grid.py`), so that operands and result may be quantized along any axis.

    ADD, SUB             d1 s1 / s ± d2 s2 / s as sums of scaled integers, rounded once (`numerics.requantize.terms`)
    MUL                  d1 d2, an integer, by s1 s2 / s, rounded once: exact
    SQUARED_DIFFERENCE   t = d1 s1 / sqrt(s) - d2 s2 / sqrt(s) in the same way, t t rounded once
    DIV                  (d1 s1 / (s2 s)) / d2, the dividend with bits behind the point; by zero: the end of the range
                         on the side of its sign, 0 / 0 the zero point
    MAXIMUM, MINIMUM     of the operands, each rounded to the result's parameters, which is monotone: exact
    PRELU                d1 s1 / s from zero up, d1 d2 s1 s2 / s below: exact
    POW, ATAN2, uint8 SQUARED_DIFFERENCE    a table of all pairs of 8-bit values: the real result, rounded
    CUMSUM               sum of d, times input / output in double, rounded
    ADD_N                the same where all scales are equal; else each operand times its scale over the result's, with
                         as many bits behind the point as the sum leaves
    of one tensor        the real function, rounded: tables, for any storage types and quantized axes
                         (`grid.looked_up_by`); ABS, NEG, SQUARE and the RELU family are scaled where the tables would
                         be large
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeAlias

import numpy as np

from tflq.dialects.inference import broadcast
from tflq.dialects.tfl.activation import (
    Activation,
    Elu,
    Gelu,
    HardSwish,
    LeakyRelu,
    Logistic,
    Prelu,
    Relu,
    Relu0To1,
    Relu6,
    ReluN1To1,
    Tanh,
)
from tflq.dialects.tfl.arithmetic import (
    Abs,
    Add,
    AddN,
    Atan2,
    Ceil,
    Cos,
    Div,
    Exp,
    Floor,
    FloorDiv,
    FloorMod,
    Log,
    Maximum,
    Minimum,
    Mul,
    Neg,
    Pow,
    Round,
    Rsqrt,
    Sign,
    Sin,
    Sqrt,
    Square,
    SquaredDifference,
    Sub,
    Unary,
)
from tflq.dialects.tfl.casts import FakeQuant, Quantize
from tflq.dialects.tfl.pooling import Cumsum
from tflq.ir.ops import Op, Value
from tflq.ir.types import UniformQuantizedType, i8, i16, i32, i64, parameters, ui8
from tflq.legalize.arithmetic import looked_up_pairs
from tflq.legalize.grid import (
    Grid,
    activation_grids,
    bounded,
    centred_by,
    entry_of,
    finished,
    grid_of,
    grids_of,
    looked_up_by,
    requantized_by,
)
from tflq.legalize.probing import centred, kernel_name, per_layer, rounding_shift, stored
from tflq.legalize.rescaled import scaled_sum
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, no_parameters, rule
from tflq.numerics.activation import BOUNDS
from tflq.numerics.elementwise import floor_quotient, floor_remainder
from tflq.numerics.fixed_point import quantize_multiplier, quotient
from tflq.numerics.ranges import fake_quant
from tflq.numerics.requantize.terms import Term, fit_terms
from tflq.numerics.unary import REAL_FUNCTIONS, REAL_FUNCTIONS_OF_TWO, FloatFunction, Stored, gelu, real_table_of_two

NOTE = "no kernel computes it; the real function, rounded"
MOST_OFF = 0.75
"""The largest error of a result before it is rounded, in counts: less than 1, so that it is off by at most 1 after."""
_FAR = "the operands' scales are too far above the result's"
_RAW = "the kernel adds the stored integers and ignores their scales"
_QUOTIENT_BITS = 12
_BEYOND = 18
"""More bits than any result has."""
_FRACTION = 20
"""The most bits that ADD_N's sum has behind the point."""


def scaled_term(b: RuleBuilder, x: Value, term: Term) -> Value:
    """x times a term's multipliers."""
    return b.mul(x, entry_of(b, term.multiplier, x.type.rank or 0), shift=term.shift)


def rounded_sum(b: RuleBuilder, total: Value, bits: int, target: Grid, activation: str) -> Rewritten:
    """total / 2^bits, rounded, plus the zero points, within the fused activation's range."""
    least, most = activation_grids(activation, target)
    result = rounding_shift(b, total, bits)
    if target.zero != 0:
        result = b.add(result, target.entry_of_zeros(b, result.type.rank or 0))
    return Rewritten([bounded(b, result, least, most, target.storage)], note=NOTE)


@rule(Add, Sub, order=2)
def add(op: Add | Sub, b: RuleBuilder) -> Answer:
    """ADD and SUB as sums of scaled integers."""
    *sources, target = grids_of(*op.tensors)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = [g.scales / target.scales for g in sources]
    terms, bits, off = fit_terms(ratios, [g.reach for g in sources])
    if bits < 0 or off > MOST_OFF:
        raise NotApplicable(_FAR)
    x, y = (
        scaled_term(b, centred_by(b, operand, grid), term)
        for operand, grid, term in zip((op.lhs, op.rhs), sources, terms, strict=True)
    )
    total = b.sub(x, y) if isinstance(op, Sub) else b.add(x, y)
    return rounded_sum(b, total, bits, target, op.fused_activation_function)


@rule(Mul, order=2)
def mul(op: Mul, b: RuleBuilder) -> Answer:
    """The product of integers, scaled."""
    first, second, target = grids_of(*op.tensors)
    product, bounds = _product(op, b, first, second)
    ratio = first.scales * second.scales / target.scales
    return Rewritten([finished(b, product, ratio, target, bounds, op.fused_activation_function)], note=NOTE)


def _product(op: Mul | Prelu, b: RuleBuilder, first: Grid, second: Grid) -> tuple[Value, tuple[int, int]]:
    """The product of both operands less their zero points, and its bounds."""
    if first.reach * second.reach >= 1 << 31:
        raise NotApplicable(f"{kernel_name(op)} on int16 with zero points has products of more than 32 bits")
    x, y = (op.input, op.alpha) if isinstance(op, Prelu) else (op.lhs, op.rhs)
    corners = [x * y for x in (first.low, first.high) for y in (second.low, second.high)]
    return b.mul(centred_by(b, x, first), centred_by(b, y, second)), (min(corners), max(corners))


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
    needed = MOST_OFF / (2 * math.sqrt(span))
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
    more = 0 if bits > 2 else _QUOTIENT_BITS - bits  # bits from the remainder
    if bits < 0 or off + 2.0 ** -(bits + more) > MOST_OFF:
        raise NotApplicable(_FAR)
    x, y = centred_by(b, op.lhs, first), centred_by(b, op.rhs, second)
    no_divisor = b.equal(y, 0)
    end = b.mul(b.clamp(x, -1, 1), 1 << (bits + _BEYOND))
    dividend = b.select(no_divisor, end, scaled_term(b, x, term))
    divisor = b.select(no_divisor, 1, y)
    quotient = b.int_div(dividend, divisor)
    if more:
        rest = b.sub(dividend, b.mul(quotient, divisor))
        most = 1 << (bits + _BEYOND - 1)
        whole = b.mul(b.clamp(quotient, -most, most), 1 << more)
        quotient = b.add(whole, b.int_div(b.mul(rest, 1 << more), divisor))
    return rounded_sum(b, quotient, bits + more, target, op.fused_activation_function)


@rule(Maximum, Minimum, order=2)
def maximum_minimum(op: Maximum | Minimum, b: RuleBuilder) -> Answer:
    """The larger or smaller operand under the result's parameters."""
    *sources, target = grids_of(*op.tensors)
    x, y = (requantized_by(b, v, source, target) for v, source in zip((op.lhs, op.rhs), sources, strict=True))
    return Rewritten([b.maximum(x, y) if isinstance(op, Maximum) else b.minimum(x, y)], note=NOTE)


@rule(Prelu, order=2)
def prelu(op: Prelu, b: RuleBuilder) -> Answer:
    """By input / output from zero up, the product by input * alpha / output below."""
    source, weight, target = grids_of(*op.tensors)
    product, bounds = _product(op, b, source, weight)
    x = centred_by(b, op.input, source)
    above = finished(b, x, source.scales / target.scales, target, (source.low, source.high))
    ratio = source.scales * weight.scales / target.scales
    below = finished(b, product, ratio, target, bounds)
    return Rewritten([b.select(b.greater_equal(x, 0), above, below)], note=NOTE)


@rule(Pow, SquaredDifference, Atan2, order=2)
def function_of_two(op: SquaredDifference | Atan2 | Pow, b: RuleBuilder) -> Answer:
    """The real function of every pair of 8-bit values."""
    elements = per_layer(op)
    if any(e.storage not in (i8, ui8) for e in elements):
        at = _no_table(op) if isinstance(op, SquaredDifference) else ""  # of the others the next rule speaks
        raise NotApplicable(at)
    stored = [Stored(e.storage.dtype, e.scale, e.zero_point) for e in elements]
    table = real_table_of_two(REAL_FUNCTIONS_OF_TWO[kernel_name(op)], *stored)
    return Rewritten([looked_up_pairs(op, b, table, elements[-1].storage)], note=NOTE)


# CUMSUM and ADD_N. On int32 and int64 their kernels add the stored integers: kernels/cumsum.cc, add_n.cc.


@rule(Cumsum, order=2)
def cumsum(op: Cumsum, b: RuleBuilder) -> Answer:
    """CUMSUM of int32, scaled to the result; or of stored integers."""
    x, axis = op.input, op.axis
    if x.type.storage in (i32, i64):
        if op.result.type.storage != x.type.storage:
            raise NotApplicable(f"no kernel sums {x.type.storage} to {op.result.type.storage}")
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
    operands = op.present_operands
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
    bits = min(_FRACTION, 29 - math.frexp(reach)[1]) if math.isfinite(reach) else 0
    if bits < len(sources).bit_length() + 2:
        raise NotApplicable(_FAR)
    with no_parameters:
        multipliers = [quantize_multiplier(e.scale / output.scale * 2.0**bits) for e in sources]
    parts = [b.rescale(x, multiplier) for x, multiplier in zip(plain, multipliers, strict=True)]
    return Rewritten([stored(b, rounding_shift(b, _sum(b, parts), bits), output)], note=NOTE)


def _sum(b: RuleBuilder, values: Sequence[Value]) -> Value:
    return reduce(b.add, values)


def _bounds(elements: Sequence[UniformQuantizedType]) -> tuple[int, int]:
    """Bounds of a sum of stored values less their zero points."""
    low, high = (sum(e.ends[side] for e in elements) for side in (0, 1))
    return min(low, 0), max(high, 0)


def _scaled_sum(
    b: RuleBuilder, total: Value, bounds: tuple[int, int], source: UniformQuantizedType, output: UniformQuantizedType
) -> Answer:
    """A sum times source / output, in the result's type."""
    if max(-bounds[0], bounds[1]) >= 1 << 31:
        raise NotApplicable("the sum can leave 32 bits")
    return Rewritten([scaled_sum(b, total, source, output, bounds)], note=NOTE)


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
    """The table of the real function of the other operand."""
    grids, function = grids_of(*op.tensors), _FUNCTIONS[kernel_name(op)]
    for place in (1, 0):
        known, other = _number(op.operand(place)), op.operand(1 - place)
        if known is None or broadcast(op.operand(place).type.shape, other.type.shape) != other.type.shape:
            continue
        of_one = _of_one(function, known, first=place == 0)
        result = looked_up_by(b, other, grids[1 - place], grids[-1], of_one)
        return Rewritten([result], note=NOTE)
    raise NotApplicable(_no_table(op, " or one constant operand"))


def _no_table(op: Op, otherwise: str = "") -> str:
    """Why an operator has no integer form."""
    widest = max((v.type.storage for v in op.tensors), key=lambda storage: storage.bits)
    return f"{kernel_name(op)} on int{widest.bits} has no integer form (a table needs 8 bits{otherwise})"


def _number(value: Value) -> np.ndarray | None:
    """The number that all elements of a constant stand for, float64, as DEQUANTIZE gives it; None of others."""
    if not value.is_constant or not value.array.size:
        return None
    scale, zero = parameters(value.type)
    reals = (value.array.astype(np.int32) - zero).astype(np.float32) * scale
    return reals.flat[0].astype(np.float64) if (reals == reals.flat[0]).all() else None


def _of_one(function: _Two, number: np.ndarray, *, first: bool) -> FloatFunction:
    return (lambda x: function(number, x)) if first else (lambda x: function(x, number))


# Functions of one tensor.


_Operator: TypeAlias = Activation | Unary | FakeQuant


@rule(
    Relu,
    Relu6,
    ReluN1To1,
    Relu0To1,
    LeakyRelu,
    Elu,
    Gelu,
    HardSwish,
    Logistic,
    Tanh,
    FakeQuant,
    Abs,
    Ceil,
    Cos,
    Exp,
    Floor,
    Log,
    Neg,
    Round,
    Rsqrt,
    Sign,
    Sin,
    Sqrt,
    Square,
    order=2,
)
def real_function(op: _Operator, b: RuleBuilder) -> Answer:
    """Tables of the real function, or what is linear, scaled."""
    source, target = grids_of(*op.tensors)
    with no_parameters:
        function = _function(op)
    try:
        result = looked_up_by(b, op.input, source, target, function)
    except NotApplicable:
        linear = _linear(op, b, source, target)
        if linear is None:
            raise
        result = linear
    return Rewritten([result], note=NOTE)


def _function(op: _Operator) -> FloatFunction:
    """The real function, with the op's options. ValueError where these make no sense."""
    match op:
        case FakeQuant():
            return fake_quant(op.min, op.max, op.num_bits, narrow_range=op.narrow_range)
        case Gelu():
            exact = gelu(op.approximate)
            return lambda x: exact(x.reshape(-1).astype(np.float32)).reshape(x.shape)
        case LeakyRelu():
            alpha = op.alpha
            return lambda x: np.where(x >= 0, x, x * alpha)
    name = kernel_name(op)
    if name in BOUNDS:
        low, high = BOUNDS[name]
        return lambda x: np.clip(x, low, high)
    return REAL_FUNCTIONS[name]


def _linear(op: _Operator, b: RuleBuilder, source: Grid, target: Grid) -> Value | None:
    """A function that scales x, -x, |x| or x x; None for others."""
    ratio, reach = source.scales / target.scales, source.reach
    x, bounds = centred_by(b, op.input, source), (-reach, reach)
    match op:
        case Relu() | Relu6() | ReluN1To1() | Relu0To1():
            return finished(b, x, ratio, target, bounds, kernel_name(op))
        case Neg():
            return finished(b, b.sub(0, x), ratio, target, bounds)
        case Abs():
            return finished(b, b.maximum(x, b.sub(0, x)), ratio, target, bounds)
        case Square() if reach * reach < 1 << 31:
            return finished(b, b.mul(x, x), source.scales * ratio, target, (0, reach * reach))
    return None


@rule(Quantize, order=2)
def quantize(op: Quantize, b: RuleBuilder) -> Answer:
    """QUANTIZE between parameters per axis, or types that the kernel does not take."""
    source, target = (grid_of(v, storages=(i8, ui8, i16, i32)) for v in op.tensors)
    if i32 in (source.storage, target.storage) and (source.reach > 1 << 31 or target.zero is None):
        raise NotApplicable("int32 with zero points leaves 32 bits")
    return Rewritten([requantized_by(b, op.input, source, target)], note=NOTE)
