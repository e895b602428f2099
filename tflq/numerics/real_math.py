"""Real arithmetic on quantized numbers in int32, by shifts, sums and high multiplies: which, and that they suffice.

With x and y the stored integers less their zero points, s the scales, a result in steps of s_o is

    sum        f(f_1(x) ± f_2(y))        scales whose ratios to s_o are powers of two: shifts left, one rounding;
                                         others: f_i by s_i / (2 max s) of x 2^20 (x 2^15 of 16 bits), f by what is left
    product    f(x 2^i · y 2^j / 2^31)   exact where i + j is 31: unless both have 16 bits; f by s_1 s_2 / s_o
    quotient   f(x 2^22 · r / 2^31)      r = 2^30 / y, the integer part; f by s_1 / (s_2 s_o) / 2^21

f is a `Factor`. All are within one step of the real result. A factor that makes every other number than 0 leave the
result's range may be any that does. NoFactor says why there is no form that close. Sums of general scales are those
of TFLite's ADD and SUB (kernels/add.cc, kernels/sub.cc).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tflq.numerics.fixed_point import half_away, quantize_multiplier
from tflq.numerics.unary import REAL_FUNCTIONS, FloatFunction

FUNCTIONS: dict[str, FloatFunction] = {
    "IDENTITY": lambda x: x,
    "SIGMOID": REAL_FUNCTIONS["LOGISTIC"],
    **{name: REAL_FUNCTIONS[name] for name in ("TANH", "EXP", "LOG", "NEG", "RSQRT", "SIN", "SQUARE", "SQRT")},
    "CMPZ": lambda x: (x == 0).astype(np.float64),
    "CMPNZ": lambda x: (x != 0).astype(np.float64),
    "CMPLZ": lambda x: (x < 0).astype(np.float64),
    "CMPGZ": lambda x: (x > 0).astype(np.float64),
}
"""The functions of `fxpmath.real_unary`, of doubles."""

_I31 = 1 << 31


class NoFactor(ValueError):  # noqa: N818  an answer
    """No factors in int32 make a result within one step; the message is a clause that says why."""


class Steps(NamedTuple):
    """The stored form of a real number: in steps of `scale` from `zero_point`, within `low` and `high`."""

    scale: float
    zero_point: int
    low: int
    high: int

    @property
    def reach(self) -> int:
        """The greatest magnitude of a stored integer less the zero point."""
        return max(self.high - self.zero_point, self.zero_point - self.low)

    def clamped(self, least: float | None, greatest: float | None) -> Steps:
        """The steps with the range clamped to that of two real numbers, each rounded to a step."""
        ends = [None if bound is None else int(self.stored(np.asarray(bound))) for bound in (least, greatest)]
        return self._replace(
            low=self.low if ends[0] is None else ends[0], high=self.high if ends[1] is None else ends[1]
        )

    def stored(self, x: np.ndarray) -> np.ndarray:
        """Doubles as stored integers: the nearest step, half away from zero, within the range; NaN as 0."""
        with np.errstate(all="ignore"):
            counts = np.nan_to_num(np.asarray(x, np.float64) / self.scale, nan=0.0, posinf=np.inf, neginf=-np.inf)
        far = 2.0**40
        return np.clip(half_away(np.clip(counts, -far, far)).astype(np.int64) + self.zero_point, self.low, self.high)

    def real(self, q: np.ndarray) -> np.ndarray:
        """The real values of stored integers, in double."""
        return (np.asarray(q, np.int64) - self.zero_point) * self.scale


class Factor(NamedTuple):
    """Multiplication of an int32 by a real number: clamped to ±`limit`, shifted left, multiplied by `mantissa` / 2^31
    and rounded half up, divided by 2^`right` and rounded half away from zero. None: that step is left out."""

    left: int = 0
    mantissa: int | None = None
    right: int = 0
    limit: int | None = None


def power_of_two(x: float) -> int | None:
    """The exponent of a power of two; None of another number."""
    mantissa, exponent = math.frexp(x)
    return exponent - 1 if mantissa == 0.5 else None


def factor(real: float, reach: int, span: int) -> Factor:
    """Multiplication by a number from 0 up of integers within ±`reach`, whose results saturate beyond ±`span`."""
    real = min(real, 2.0 * span)
    exponent = power_of_two(real)
    if exponent is not None and exponent >= -31:
        shift, mantissa = exponent, None
    else:
        mantissa, shift = quantize_multiplier(real)
    left = max(shift, 0)
    limit = 1 << (30 - left) if reach << left >= _I31 else None
    return Factor(left, mantissa, max(-shift, 0), limit)


def sum_factors(first: Steps, second: Steps, result: Steps) -> tuple[Factor, Factor, Factor]:
    """Of both operands of a sum, and of the sum. NoFactor if a step of an operand is too many of the result."""
    ratios = [_ratio(each.scale, result.scale) for each in (first, second)]
    exponents = [e for ratio in ratios if (e := power_of_two(ratio)) is not None]
    if len(exponents) == 2:
        down = max(-min(exponents), 0)
        ups = [exponent + down for exponent in exponents]
        if down <= 31 and (first.reach << ups[0]) + (second.reach << ups[1]) < _I31:
            return Factor(ups[0]), Factor(ups[1]), Factor(right=down)
    reach = max(first.reach, second.reach)
    left = 20 if reach < 1 << 9 else 15
    most = max(first.scale, second.scale)
    if max(ratios) > 1 << (left - 4):
        raise NoFactor(f"a step of an operand is {max(ratios):.3g} of the result, more than {1 << (left - 4)}")
    if not most:
        return Factor(0, 0), Factor(0, 0), Factor()
    parts = [quantize_multiplier(each.scale / (2 * most)) for each in (first, second)]
    mantissa, shift = quantize_multiplier(2 * most / ((1 << left) * result.scale))
    one, other = (Factor(left, m, -e) for m, e in parts)
    return one, other, Factor(0, mantissa, -shift)


def product_factors(first: Steps, second: Steps, result: Steps) -> tuple[int, int, Factor]:
    """The left shifts of both factors of a product, and the multiplication of their high product. NoFactor if that
    is rounded to too many steps of the result."""
    real = _ratio(first.scale * second.scale, result.scale)
    room = [31 - each.reach.bit_length() for each in (first, second)]
    one = min(room[0], 16)
    other = min(room[1], 31 - one)
    dropped = 31 - one - other
    if dropped and real > 2.0 ** -(dropped + 1):
        what = (
            f"the product of two of 16 bits is rounded to {1 << dropped}, and the scales' ratio of {real:.3g} shows it"
        )
        raise NoFactor(what)
    reach = (first.reach * second.reach >> dropped) + 1
    return one, other, factor(real * (1 << dropped), reach, result.high - result.low)


DIVIDEND_SHIFT = 22
"""By which a dividend of 8 bits is shifted left."""
RECIPROCAL = 1 << 30
"""The number that is divided by the divisor."""
_QUOTIENT_BITS = 21


def quotient_factor(first: Steps, second: Steps, result: Steps) -> Factor:
    """The multiplication of a quotient of 8 bits, which has 21 bits of fraction. NoFactor for a divisor of scale
    0."""
    if not second.scale:
        raise NoFactor("the divisor's scale is 0")
    real = _ratio(first.scale / second.scale, result.scale)
    reach = (first.reach << _QUOTIENT_BITS) + 1
    return factor(real / (1 << _QUOTIENT_BITS), reach, result.high - result.low)


def contraction_factor(first: Steps, second: Steps, result: Steps, reach: int) -> Factor:
    """The multiplication of a sum of products within ±`reach`."""
    return factor(_ratio(first.scale * second.scale, result.scale), reach, result.high - result.low)


def _ratio(scale: float, result: float) -> float:
    if not result:
        raise NoFactor("the result's scale is 0")
    return scale / result


def unary_table(opcode: str, source: Steps, result: Steps, lowest: int) -> np.ndarray:
    """Results of a function for every stored integer from `lowest` on: int64 [256]."""
    with np.errstate(all="ignore"):
        return result.stored(FUNCTIONS[opcode](source.real(np.arange(lowest, lowest + 256))))


def combined(bounds: tuple[float | None, float | None], low: float | None, high: float | None) -> tuple[float, float]:
    """The bounds of a clamp to `bounds` and then to [low, high]; infinite where there are none."""
    least, greatest = (-math.inf if bounds[0] is None else bounds[0]), (math.inf if bounds[1] is None else bounds[1])
    if low is not None:
        least, greatest = max(least, low), max(greatest, low)
    if high is not None:
        least, greatest = min(least, high), min(greatest, high)
    return least, greatest
