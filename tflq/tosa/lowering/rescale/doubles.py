"""round_half_away(double(acc) * scale), FULLY_CONNECTED's requantization, and halves away from zero, on TOSA.

    RESCALE       of acc times an odd factor, proven equal at every level (`numerics.rescale_fit`)
    comparison    of |acc| with the threshold of a candidate (`numerics.threshold_line`), where no RESCALE is equal

48-bit sums that are proven to fit int32 are brought there by RESCALE first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tflq.dialects.ext.rescale import RescaleF64, RoundingDivideByPot
from tflq.dialects.tosa.arithmetic import Abs
from tflq.dialects.tosa.resize import Resize
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, i8, i16, i32, i64
from tflq.numerics.rescale_fit import fit_rescale, told_apart
from tflq.numerics.threshold_line import ThresholdLine, fit_threshold_line
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.rescale.integers import constant_row, emit_rescale, limited, operand_range, saturated
from tflq.tosa.lowering.resize import divided

__all__: list[str] = []

_I31 = (1 << 31) - 1


@lowering(RescaleF64)
def rescale_f64(op: RescaleF64, t: Tosa) -> Value:
    """saturate(round_half_away(acc * scale) + output_zp). 48-bit sums have the shape of the matrix product."""
    scaled = _scaled(op, t)
    shape = op.result.type.shape
    return scaled if shape is None or scaled.type.shape == shape else t.reshape(scaled, shape)


def _scaled(op: RescaleF64, t: Tosa) -> Value:
    to, zero = t.storage(op.result), t.zero_point(op.result, op.output_zp)
    scale = np.atleast_1d(np.asarray(op.scale, np.float64))
    least, most = operand_range(op.input, op.input_range, t)
    x = t.value(op.input)
    if x.type.storage == i64:
        x, scale, least, most = _coarse(x, scale, least, most, t)
    lows, highs = to.minimum - zero, to.maximum - zero
    if to == i8 or float(scale.max()) >= 0.5:
        found = _by_rescale(x, scale, lows, highs, least, most, t, to, zero)
        if found is not None:
            return found
    return _by_comparison(x, scale, max(-lows, highs), least, most, t, to, zero)


def _coarse(x: Value, scale: np.ndarray, least: int, most: int, t: Tosa) -> tuple[Value, np.ndarray, int, int]:
    """A 48-bit sum in int32, without its last bits where it does not fit, and the scale of that."""
    spare = max(max(-least - 1, most).bit_length() - 31, 0)
    if spare:
        t.note(
            f"the sum has up to {31 + spare + 1} bits; its last {spare} are rounded off before it is scaled, so a "
            "result near the middle between two can be one count off"
        )
        least, most = (least >> spare), min((most >> spare) + 1, _I31)
    unit = np.asarray([1 << 14], np.int64)
    narrow = emit_rescale(t, x, unit, np.asarray([14 + spare], np.int64), i32)
    return narrow, scale * 2.0**spare, least, most


def _by_rescale(
    x: Value,
    scale: np.ndarray,
    lows: int,
    highs: int,
    least: int,
    most: int,
    t: Tosa,
    to: ScalarType,
    zero: int,
) -> Value | None:
    """RESCALE, after a factor if need be and, where that is not enough, after a clamp to the bounds beyond which all
    results are equal."""
    fit = fit_rescale(scale, lows, highs, least, most)
    if fit is None:
        low, high = told_apart(scale, lows, highs)
        low, high = min(low, 0), max(high, 0)
        nearer = min(max(least, low), high), min(max(most, low), high)
        if nearer == (least, most):
            return None
        fit = fit_rescale(scale, lows, highs, *nearer)
        if fit is None:
            return None
        x = limited(x, t, low if least < low else None, high if most > high else None)
    if (fit.factor != 1).any():
        x = t.mul(x, constant_row(t, fit.factor))
    return emit_rescale(t, x, fit.multiplier, fit.shift, to, output_zp=zero)


def _by_comparison(
    x: Value, scale: np.ndarray, last: int, least: int, most: int, t: Tosa, to: ScalarType, zero: int
) -> Value:
    """sign(x) (n + (|x| >= T(n + 1))), n from a RESCALE that is never above the result."""
    x = limited(x, t, -_I31 if least < -_I31 else None, None)
    line = fit_threshold_line(scale, last, min(max(-least, most), _I31))
    if line is None:
        raise Refused("no integer form of a scale by a double is proven equal to it")
    magnitude = t.emit(Abs, [x])
    n = emit_rescale(t, magnitude, line.multiplier, line.shift, i32)
    n = t.minimum(n, constant_row(t, line.last - 1))
    reached = t.cast(t.greater_equal(magnitude, _threshold(line, n, t)), i32)
    y = t.add(n, reached)
    zeros = t.constant(np.asarray(0))
    return saturated(t.select(t.greater(zeros, x), t.sub(zeros, y), y), t, to, zero, last)


def _threshold(line: ThresholdLine, n: Value, t: Tosa) -> Value:
    """T(n + 1)."""
    rows: dict[str, Any] = {}
    for name in ("whole", "part", "part_offset", "rest"):
        rows[name] = constant_row(t, getattr(line, name))
    spread = t.mul(n, t.constant(np.asarray(1 << line.spread)))
    low = t.mul(t.add(spread, constant_row(t, line.rest_offset)), rows["rest"], shift=31 + line.spread)
    below = t.add(t.add(t.mul(n, rows["part"]), rows["part_offset"]), low)
    whole = t.add(t.mul(n, rows["whole"]), constant_row(t, line.whole_offset))
    return t.add(whole, t.arithmetic_right_shift(below, constant_row(t, line.bits)))


@lowering(RoundingDivideByPot)
def rounding_divide_by_pot(op: RoundingDivideByPot, t: Tosa) -> Value:
    """x / 2^exponent of a 48-bit sum, halves away from zero: one is taken from what is negative, and halves go up.

    A RESIZE's sum that int32 does not hold is divided as `tflq.tosa.lowering.resize` can.
    """
    exponent, source = int(op.exponent), op.input.producer
    if exponent > 16:
        if source is not None and isinstance(source, Resize):
            return divided(source, exponent, t)
        raise Refused(f"a sum of {16 + exponent} bits, rounded away from zero, has no form in TOSA")
    x = t.value(op.input)
    if x.type.storage == i64:
        x = emit_rescale(t, x, np.asarray([1 << 14], np.int64), np.asarray([14], np.int64), i32)
    if not exponent:
        return t.cast(x, i16)
    if exponent == 16:  # the least int32 has the result of the one after it
        x = limited(x, t, i32.minimum + 1, None)
    x = t.add(x, t.arithmetic_right_shift(x, t.constant(np.asarray(31))))
    y = t.arithmetic_right_shift(x, t.constant(np.asarray(exponent)), round=True)
    return t.cast(y, op.result.type.storage)
