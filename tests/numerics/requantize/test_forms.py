"""Every form gives what MultiplyByQuantizedMultiplier gives, on all sums of a range."""

from __future__ import annotations

import numpy as np
import pytest

from scripts.pages.numerics import forms
from tflq.numerics.fixed_point import multiply, quantize_multipliers
from tflq.numerics.requantize.clamped import Clamped, ClampedToOne, ClampedToSix
from tflq.numerics.requantize.climb import Climb
from tflq.numerics.requantize.distance import Distance
from tflq.numerics.requantize.division import Division
from tflq.numerics.requantize.falling import Clipped, Falling
from tflq.numerics.requantize.float_forms import FloatForm
from tflq.numerics.requantize.forms import Ops
from tflq.numerics.requantize.numpy_ops import NUMPY, NUMPY_FUSED, NumpyOps
from tflq.numerics.requantize.products import LongProduct
from tflq.numerics.requantize.rounded import Fallen, Rounded
from tflq.numerics.requantize.scaling import Bounds, FixedPoint, Range, Scaling
from tflq.numerics.requantize.split import Split

SCALES = np.asarray([0.00271, 0.0043, 0.00617])
REACH = 60_000
BOTTOMS = [(Distance, 0), (Falling, 0), (Clipped, 0), (ClampedToSix, 0), (ClampedToOne, -128), (Split, -128)]


def scaling(bottom: int) -> Scaling[FixedPoint]:
    """To int8 with a zero point that makes `bottom` the least level."""
    mantissa, left = quantize_multipliers(SCALES)
    factor = FixedPoint(mantissa.astype(np.int64), 31 - left.astype(np.int64))
    return Scaling(factor, 0, -128 - bottom, Bounds.of(-REACH, REACH), Range(-128, 127))


def scaled(x: np.ndarray, bottom: int) -> np.ndarray:
    """The kernel's levels."""
    return np.clip(multiply(x.astype(np.int32), *quantize_multipliers(SCALES)), bottom, bottom + 255)


def fitted(form: type[FloatForm], bottom: int) -> FloatForm:
    s, ends = scaling(bottom), np.full(SCALES.size, REACH)
    fit = form.fit(Climb(s.thresholds(), s.factor.slope, -ends, ends, bottom))
    assert fit is not None
    return fit


@pytest.mark.parametrize(("form", "bottom"), BOTTOMS)
def test_sums_are_scaled_as_the_kernels_scale_them(form: type[FloatForm], bottom: int) -> None:
    x = np.arange(-REACH, REACH + 1)[:, None]
    fit = fitted(form, bottom)
    np.testing.assert_array_equal(fit(x) + fit.offset(bottom), scaled(x, bottom))


@pytest.mark.parametrize("bottom", [-128, 0])
def test_a_division_of_sums_is_the_kernels_scale(bottom: int) -> None:
    x, ends = np.arange(-REACH, REACH + 1)[:, None], np.full(SCALES.size, REACH)
    fit = Division.fit(scaling(bottom).staircase(), -ends, ends)
    assert fit is not None
    assert fit.from_zero == (bottom == 0)
    np.testing.assert_array_equal(np.clip(fit.apply(x, NUMPY), bottom, bottom + 255), scaled(x, bottom))


@pytest.mark.parametrize(("form", "bottom"), [(Clipped, 0), (Split, -128)])
def test_forms_that_hold_when_sums_are_rounded_once(form: type[FloatForm], bottom: int) -> None:
    x = np.arange(-REACH, REACH + 1)[:, None]
    for ops in (NUMPY_FUSED, NumpyOps(fused=True, constants_last=True)):
        np.testing.assert_array_equal(fitted(form, bottom)(x, ops), scaled(x, bottom))


def test_a_clipped_line_falls_where_levels_begin_at_zero() -> None:
    fit = fitted(Clipped, 0)
    falling = fit.falling(0)
    assert falling is not None
    assert fit.falling(-128) is None
    x = np.arange(-REACH, REACH + 1)[:, None]
    np.testing.assert_array_equal(falling(x), scaled(x, 0))


class Text(Ops[str]):
    """An emitter of expressions."""

    def row(self, numbers: np.ndarray) -> str:
        return "x".join(str(v) for v in numbers)

    def add(self, a: str, b: str, *, relu: bool = False) -> str:
        return f"max({a} + {b}, 0)" if relu else f"({a} + {b})"

    def mul(self, a: str, b: str) -> str:
        return f"{a} * {b}"

    def div(self, a: str, b: str) -> str:
        return f"{a} / {b}"

    def sign(self, x: str) -> str:
        return f"sign({x})"


def test_an_emitter_is_a_class_of_the_operations() -> None:
    a, b, c = (np.asarray([v]) for v in (3, 100, 50))
    assert Division(a, b, c).apply("q", Text()) == "(q * 3 + sign(q) * 50) / 100"
    assert Division(a, b, c, from_zero=True).apply("q", Text()) == "max(q * 3 + 50, 0) / 100"
    with pytest.raises(NotImplementedError):
        fitted(Split, -128).apply("q", Text())


def test_every_form_is_tried_here() -> None:
    tried = {form for form, _ in BOTTOMS} | {Division}
    elsewhere = {LongProduct, Rounded, Fallen}  # they scale by floats
    assert set(forms()) - tried - elsewhere == {Clamped}
    assert set(Clamped.__subclasses__()) <= tried


def test_constants_of_another_number_type_or_shape_are_none() -> None:
    """As a cache tells them: the last of Split may be left out."""
    ends, s = np.full(SCALES.size, REACH), scaling(-128)
    arguments = s.thresholds(), s.factor.slope, -ends, ends, -128
    constants = Split.constants(*arguments)
    assert Split.are_constants(constants, *arguments)
    assert Split.are_constants((), *arguments)
    assert Split.are_constants([*constants[:-1], np.zeros(0, np.float32)], *arguments)
    assert not Split.are_constants(constants[:-1], *arguments)
    assert not Split.are_constants([v.astype(np.float64) for v in constants], *arguments)
    assert not Split.are_constants([np.zeros(0, np.float32), *constants[1:]], *arguments)
