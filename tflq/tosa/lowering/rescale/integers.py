"""RESCALE of the integer form as TOSA 1.0 allows it.

TOSA's RESCALE takes shifts of 2 to 62, multipliers that are not negative, values v with -2^(s-1) <= v < 2^(s-1), and a
zero point on 8 bits only; two roundings are an extension. What is outside is, in int32,

    MUL       (v 2^k M + 2^(S-1)) >> S        the product in 64 bits; S the greatest shift, v 2^k within int32
    shift     two roundings: S is 31, and ARITHMETIC_RIGHT_SHIFT of the sum with the sign rounds half away from zero

and then saturated. 48-bit values (int64 here) have a 16-bit multiplier and one rounding; one that is an int32 widened
is an int32. Sources: TOSA 1.0 specification, RESCALE, MUL, apply_scale_32; `tflq.numerics.fixed_point`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.dialects.ext.rescale import RescaleMean
from tflq.dialects.tosa.casts import Rescale
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, i8, i16, i32, i64, ui8
from tflq.numerics.fixed_point import Multiplier
from tflq.numerics.reduction import divided_multiplier
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.wide import narrow, product_by, widened_product

__all__ = ["constant_row", "emit_rescale", "limited", "operand_range", "saturated"]

_I31 = 1 << 31
_STORAGES = (i8, ui8, i16, i32, i64)


@dataclass(frozen=True, slots=True)
class _Scaling:
    """A RESCALE's numbers: multipliers and shifts int64 [1 or C], and the range of what is multiplied."""

    multiplier: np.ndarray
    shift: np.ndarray
    double_round: bool
    least: int
    most: int

    @property
    def reach(self) -> int:
        return max(-self.least, self.most)


def operand_range(operand: Value, noted: tuple[int, ...] | None, t: Tosa, zero_point: int = 0) -> tuple[int, int]:
    """Bounds of what is scaled, less its zero point: those noted on the operator, else those that follow."""
    least, most = noted or t.ranges.of(operand)
    return int(least) - zero_point, int(most) - zero_point


@lowering(Rescale)
def rescale(op: Rescale, t: Tosa) -> Value:
    """saturate(apply_scale(x - input_zp) + output_zp)."""
    source = op.input
    if source.type.storage not in _STORAGES or op.result.type.storage not in _STORAGES:
        raise Refused(f"RESCALE of {source.type.storage} to {op.result.type.storage} has no form")
    scaling = _Scaling(
        op.multiplier.astype(np.int64),
        op.shift.astype(np.int64),
        op.rounding_mode == "DOUBLE_ROUND" and bool(op.scale32) and bool((op.shift > 31).any()),
        *operand_range(source, op.input_range, t, op.input_zp),
    )
    to, output_zp = t.storage(op.result), t.zero_point(op.result, op.output_zp)
    factors = widened_product(source, t)
    if factors is not None:
        return _product(factors, scaling, t, to, output_zp)
    x, zero = t.value(source), t.zero_point(source, op.input_zp)
    if x.type.storage == i64:  # i48 has no RESHAPE: the sums of a matrix product have the shape of TOSA's
        scaled = _rescale_48(x, scaling, zero, t, to, output_zp)
        return scaled if op.result.type.shape is None else t.reshape(scaled, op.result.type.shape)
    if zero and (x.type.storage != i8 or not i8.minimum <= zero <= i8.maximum):
        x, zero = t.sub(t.cast(x, i32), t.constant(np.asarray(zero))), 0
    return _rescale_32(x, _admissible(scaling), zero, t, to, output_zp)


@lowering(RescaleMean)
def rescale_mean(op: RescaleMean, t: Tosa) -> Value:
    """A RESCALE, where the number of elements is known."""
    dims = t.value(op.values).type.shape or ()
    sizes = [dims[axis] for axis in op.axes]
    if None in sizes or 0 in sizes:
        raise Refused("the number of elements in a mean is not known")
    mantissa, left = divided_multiplier(Multiplier(op.multiplier, op.shift), math.prod(d or 0 for d in sizes))
    numbers = np.asarray([mantissa], np.int64), np.asarray([31 - left], np.int64)
    scaling = _admissible(_Scaling(*numbers, left < 0, *operand_range(op.sums, None, t)))
    to, output_zp = t.storage(op.result), t.zero_point(op.result, op.output_zp)
    return _rescale_32(t.value(op.sums), scaling, 0, t, to, output_zp)


def _rescale_48(x: Value, s: _Scaling, zero: int, t: Tosa, to: ScalarType, output_zp: int) -> Value:
    m, shift = s.multiplier, s.shift
    if zero or (shift < 2).any() or (shift > 62).any() or (m < 0).any() or (m > i16.maximum).any():
        raise Refused("TOSA's RESCALE of 48 bits takes no such zero point, shift or multiplier")
    return _finished(x, m, shift, False, 0, t, to, output_zp, reach=s.reach)


def _admissible(s: _Scaling) -> _Scaling:
    """Shifts of more than 62 leave nothing of an int32."""
    far = s.shift > 62
    if not far.any():
        return s
    return _Scaling(np.where(far, 0, s.multiplier), np.where(far, 62, s.shift), s.double_round, s.least, s.most)


def _rescale_32(x: Value, s: _Scaling, zero: int, t: Tosa, to: ScalarType, output_zp: int) -> Value:
    m, shift = s.multiplier, s.shift
    room = np.left_shift(np.int64(1), np.maximum(shift, 1) - 1)
    within = bool(((shift >= 2) & (s.least >= -room) & (s.most < room)).all())
    if zero and not within:
        x, zero = t.sub(t.cast(x, i32), t.constant(np.asarray(zero))), 0
    if not within and to != i32 and _scaled_reach(s.reach, m, shift) >= _I31 and _saturates(m, shift):
        x, within = limited(t.cast(x, i32), t, -room, room - 1), True
        s = _Scaling(m, shift, s.double_round, -int(room.max()), int(room.max()) - 1)
    if (m >= 0).all() and within and (not s.double_round or t.target.has("doubleround")):
        return _finished(x, m, shift, s.double_round, zero, t, to, output_zp, reach=s.reach)
    if zero:
        x = t.sub(t.cast(x, i32), t.constant(np.asarray(zero)))
    y = _multiplied(t.cast(x, i32), s, t)
    return saturated(y, t, to, output_zp, _scaled_reach(s.reach, m, shift))


def _saturates(multiplier: np.ndarray, shift: np.ndarray) -> bool:
    """Whether values of 2^(s-1) are beyond every 16-bit result, zero point included."""
    return bool(((multiplier >= 1 << 18) & (shift >= 2)).all())


def _multiplied(x: Value, s: _Scaling, t: Tosa) -> Value:
    """apply_scale in int32, by MUL with a shift."""
    m, shift = s.multiplier, s.shift
    if (m < 0).any():
        if s.double_round:
            raise Refused("TOSA has no RESCALE by a negative multiplier with two roundings")
        x = t.mul(x, constant_row(t, np.where(m < 0, -1, 1)))
        m = np.abs(m)
    total = 31 if s.double_round else int(shift.max())
    up = np.maximum(total - shift, 0)
    if s.reach << int(up.max()) >= _I31 + (not up.any()) or not 0 <= total <= 62:
        raise Refused("the shifted operand may leave int32, and TOSA's RESCALE takes no such shift")
    if up.any():
        x = t.mul(x, constant_row(t, np.int64(1) << up))
    y = t.mul(x, constant_row(t, m), shift=total)
    down = np.maximum(shift - total, 0)
    if not down.any():
        return y
    sign = t.arithmetic_right_shift(y, t.constant(np.asarray(31)))
    if not down.all():
        sign = t.mul(sign, constant_row(t, np.where(down > 0, 1, 0)))
    return t.arithmetic_right_shift(t.add(y, sign), constant_row(t, down), round=True)


def _product(factors: tuple[Value, Value], s: _Scaling, t: Tosa, to: ScalarType, output_zp: int) -> Value:
    """The RESCALE of a product of two int32s that int32 does not hold."""
    m, shift = int(s.multiplier[0]), int(s.shift[0])
    if s.multiplier.size == 1 and s.double_round is False and 1 <= shift <= 62:
        if s.reach < _I31:
            x = t.mul(narrow(factors[0], t), narrow(factors[1], t))
            return _rescale_32(x, s, 0, t, to, output_zp)
        y = product_by(*factors, m, shift, t)
        if y is not None:
            return saturated(y, t, to, output_zp, _scaled_reach(s.reach, s.multiplier, s.shift))
    raise Refused("a product of more than 32 bits has no form in TOSA")


def _scaled_reach(reach: int, multiplier: np.ndarray, shift: np.ndarray) -> int:
    """What the magnitude of scaled values is at most."""
    return max((reach * abs(int(m)) >> int(s)) + 1 for m, s in zip(multiplier, shift, strict=True))


def _finished(
    x: Value,
    multiplier: np.ndarray,
    shift: np.ndarray,
    double_round: bool,
    input_zp: int,
    t: Tosa,
    to: ScalarType,
    output_zp: int,
    *,
    reach: int,
) -> Value:
    """RESCALE itself; a zero point that TOSA does not take on the result's type is added after it."""
    numbers: dict[str, Any] = {"input_zp": input_zp, "double_round": double_round}
    if not output_zp or (to == i8 and i8.minimum <= output_zp <= i8.maximum):
        return emit_rescale(t, x, multiplier, shift, to, output_zp=output_zp, **numbers)
    y = emit_rescale(t, x, multiplier, shift, i32, **numbers)
    return saturated(y, t, to, output_zp, _scaled_reach(reach, multiplier, shift))


def emit_rescale(
    t: Tosa,
    x: Value,
    multiplier: np.ndarray,
    shift: np.ndarray,
    to: ScalarType,
    *,
    input_zp: int = 0,
    output_zp: int = 0,
    double_round: bool = False,
) -> Value:
    """RESCALE by multipliers and shifts int64 [1 or C]."""
    return t.emit(
        Rescale,
        [x],
        x.type.with_element(to),
        multiplier=multiplier.astype(np.int32),
        shift=shift.astype(np.int8),
        input_zp=input_zp,
        output_zp=output_zp,
        rounding_mode="DOUBLE_ROUND" if double_round else "SINGLE_ROUND",
        scale32=x.type.storage != i64,
        per_channel=multiplier.size > 1,
    )


def saturated(x: Value, t: Tosa, to: ScalarType, zero_point: int, reach: int) -> Value:
    """saturate(x + zero_point) of an int32 of that magnitude at most."""
    if reach < 1 << 29 and (to == i8 or (to == i16 and not zero_point)) and i8.minimum <= zero_point <= i8.maximum:
        unit = np.asarray([1 << 30], np.int64)
        return emit_rescale(t, x, unit, np.asarray([30], np.int64), to, output_zp=zero_point)
    low, high = to.minimum - zero_point, to.maximum - zero_point
    x = limited(x, t, low if reach > -low else None, high if reach > high else None)
    if zero_point:
        x = t.add(x, t.constant(np.asarray(zero_point)))
    return t.cast(x, to)


def limited(x: Value, t: Tosa, low: int | np.ndarray | None, high: int | np.ndarray | None) -> Value:
    """An int32 within bounds, None for no bound, by MAXIMUM and MINIMUM; bounds beyond int32 are none."""
    if low is not None and np.max(low) > i32.minimum:
        x = t.maximum(x, constant_row(t, np.maximum(low, i32.minimum)))
    if high is not None and np.min(high) < i32.maximum:
        x = t.minimum(x, constant_row(t, np.minimum(high, i32.maximum)))
    return x


def constant_row(t: Tosa, values: np.ndarray) -> Value:
    """A constant int32 per index of the last dim; a scalar if all are the same."""
    flat = np.atleast_1d(np.asarray(values))
    return t.constant(flat[0] if (flat == flat[0]).all() else flat)
