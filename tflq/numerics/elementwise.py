"""Parameters of ADD, SUB and MUL.

ADD and SUB shift both operands left (8-bit by 20, int16 by 15), scale them to twice the larger input scale, add, and
scale the sum to the result; every real multiplier is a quotient of doubles, of which twice the scale and the shifted
one are in float32. The kernels abort at multipliers of the operands that are not within 0 and 1, so at a scale of 0 or
infinity. int16 with power-of-two scales and `pot_scale_int16` shifts one operand right instead. MUL scales the product
by input1 * input2 / output, in float32.
Sources: kernels/add.cc, kernels/sub.cc, kernels/mul.cc (Prepare), kernels/internal/quantization_util.cc (CheckedLog2).
"""

from __future__ import annotations

import numpy as np

from tflq.light import dataclass
from tflq.numerics.activation import float_ratio
from tflq.numerics.fixed_point import Multiplier, quantize_multiplier, quotient, round_half_away

__all__ = [
    "Addition",
    "addition",
    "checked_log2",
    "multiplication",
    "power_of_two_shifts",
    "squared_difference",
]


@dataclass(frozen=True, slots=True)
class Addition:
    """ADD's and SUB's parameters: the shift of both operands, their multipliers, and that of the sum."""

    left_shift: int
    first: Multiplier
    second: Multiplier
    sum: Multiplier


def addition(scale1: float, scale2: float, output_scale: float, bits: int, *, subtract: bool = False) -> Addition:
    """Parameters for float32 scales and a storage type of `bits`. ValueError says why the kernel refuses the scales.

    ADD takes a multiplier of the sum below one only; SUB also one above, but not one itself.
    """
    left_shift = 15 if bits == 16 else 20
    twice = _twice(scale1, scale2)
    real = quotient(twice, _shifted(output_scale, left_shift))
    above = subtract and real > 1.0
    total = quantize_multiplier(real) if above else _below_one(real, "the sum")
    return Addition(left_shift, *_of_operands(scale1, scale2, twice), total)


def squared_difference(scale1: float, scale2: float, output_scale: float) -> Addition:
    """The same of SQUARED_DIFFERENCE, which shifts by 7 and squares before the last multiplier.

    ValueError if that is not below one. Source: kernels/squared_difference.cc.
    """
    twice = _twice(scale1, scale2)
    total = _below_one(quotient(twice * twice, _shifted(output_scale, 14)), "the square")
    return Addition(7, *_of_operands(scale1, scale2, twice), total)


def _twice(scale1: float, scale2: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(2) * np.float32(max(scale1, scale2)))


def _shifted(scale: float, bits: int) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(1 << bits) * np.float32(scale))


def _of_operands(scale1: float, scale2: float, twice: float) -> tuple[Multiplier, Multiplier]:
    first, second = quotient(scale1, twice), quotient(scale2, twice)
    return _below_one(first, "the first operand"), _below_one(second, "the second operand")


def _below_one(real: float, what: str) -> Multiplier:
    """QuantizeMultiplierSmallerThanOneExp. ValueError where it aborts."""
    multiplier = quantize_multiplier(real)
    if not 0.0 < real < 1.0 or multiplier.shift > 0:
        raise ValueError(f"the multiplier of {what} is {real!r}, not above 0 and below 1")
    return multiplier


def multiplication(scale1: float, scale2: float, output_scale: float) -> Multiplier:
    """MUL's multiplier."""
    return quantize_multiplier(float_ratio(scale1, output_scale, scale2))


def checked_log2(scale: float) -> int | None:
    """The exponent of a scale whose log2 is within a thousandth of an integer, computed in float32; else None."""
    if not 0 < scale < np.inf:
        return None
    log2 = np.log(np.float32(scale)) * np.float32(np.float32(1.0) / np.log(np.float32(2.0)))
    exponent = round_half_away(float(log2))
    return exponent if abs(float(log2) - exponent) < 1e-3 else None


def power_of_two_shifts(scale1: float, scale2: float, output_scale: float) -> tuple[int, int] | None:
    """Right shifts of the two operands of an int16 ADD or SUB, None if some scale is not a power of two.

    ValueError unless one operand has the result's scale and the other a smaller or equal one.
    """
    first, second, output = checked_log2(scale1), checked_log2(scale2), checked_log2(output_scale)
    if first is None or second is None or output is None:
        return None
    shifts = output - first, output - second
    if min(shifts) < 0 or 0 not in shifts:
        raise ValueError("of power-of-two scales, one operand's must be the result's and the other's no larger")
    return shifts
