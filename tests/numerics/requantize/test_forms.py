"""Every form gives what MultiplyByQuantizedMultiplier gives, on all sums of a range."""

from __future__ import annotations

import numpy as np
import pytest

from scripts.pages.numerics import forms
from tflq.formats.onnx.form_ops import OnnxOps
from tflq.formats.onnx.rescale import LINES
from tflq.formats.tflite.lowering.form_ops import KernelOps
from tflq.formats.tflite.lowering.rescale_float import FLOAT32, MOVABLE
from tflq.ir.ops import Value
from tflq.numerics.fixed_point import multiply, quantize_multipliers
from tflq.numerics.requantize.clamped import Clamped, ClampedToOne, ClampedToSix
from tflq.numerics.requantize.climb import Climb
from tflq.numerics.requantize.distance import Distance
from tflq.numerics.requantize.division import Division
from tflq.numerics.requantize.falling import Clipped, Falling
from tflq.numerics.requantize.float_forms import FloatForm
from tflq.numerics.requantize.forms import OperationError, Ops
from tflq.numerics.requantize.numpy_ops import NUMPY, NUMPY_FUSED, NumpyOps
from tflq.numerics.requantize.products import LongProduct
from tflq.numerics.requantize.rounded import Fallen, Rounded
from tflq.numerics.requantize.scaling import Bounds, FixedPoint, Range, Scaling
from tflq.numerics.requantize.split import Split

SCALES = np.asarray([0.00271, 0.0043, 0.00617])
REACH = 60_000
BOTTOMS = [(Distance, 0), (Falling, 0), (Clipped, 0), (ClampedToSix, 0), (ClampedToOne, -128), (Split, -128)]


def scaling(bottom: int, *, double_round: bool = True) -> Scaling[FixedPoint]:
    """To int8 with a zero point that makes `bottom` the least level."""
    mantissa, left = quantize_multipliers(SCALES)
    factor = FixedPoint(mantissa.astype(np.int64), 31 - left.astype(np.int64), double_round)
    return Scaling(factor, 0, -128 - bottom, Bounds.of(-REACH, REACH), Range(-128, 127))


def scaled(x: np.ndarray, bottom: int) -> np.ndarray:
    """The kernel's levels."""
    return np.clip(multiply(x.astype(np.int32), *quantize_multipliers(SCALES)), bottom, bottom + 255)


def climb_of(s: Scaling[FixedPoint]) -> Climb:
    ends = np.full(SCALES.size, REACH)
    return Climb(s.thresholds(), s.factor.slope, -ends, ends, s.levels.low)


def fitted(form: type[FloatForm], bottom: int) -> FloatForm:
    fit = form.fit(climb_of(scaling(bottom)))
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
    with pytest.raises(OperationError, match="Text has no `clip`: write it there, or take the form"):
        fitted(Split, -128).apply("q", Text())


class Uses(NumpyOps):
    """Arrays that know the operations on them."""

    def __init__(self, *, constants_last: bool) -> None:
        super().__init__(constants_last=constants_last)
        self.names: set[str] = set()

    def __getattribute__(self, name: str) -> object:
        if name in vars(Ops) and name != "constants_last":
            self.names.add(name)
        return super().__getattribute__(name)


def lacking(ops: type[Ops[Value]], form: type[FloatForm]) -> set[str]:
    """The operations that a form applies, of levels of one or both signs, rounded once or twice, and a class lacks."""
    scalings = [scaling(bottom, double_round=twice) for bottom in (-128, 0) for twice in (False, True)]
    fits = [fit for s in scalings if (fit := form.fit(climb_of(s))) is not None]
    assert fits, f"no scaling here has the form {form.__name__}"
    uses = Uses(constants_last=ops.constants_last)
    for fit in fits:
        fit.apply_to_whole(np.zeros((1, 1), np.float32), uses)
    return {name for name in uses.names if vars(ops).get(name) is None}


@pytest.mark.parametrize(("ops", "forms"), [(KernelOps, (*FLOAT32, *MOVABLE)), (OnnxOps, LINES)])
def test_a_format_has_the_operations_of_the_forms_in_its_lists(
    ops: type[Ops[Value]], forms: tuple[type[FloatForm], ...]
) -> None:
    for form in forms:
        assert not lacking(ops, form), f"{ops.__name__} has no such operations of {form.__name__}"


def test_a_form_that_onnx_lacks_an_operation_of_is_noticed() -> None:
    assert lacking(OnnxOps, ClampedToOne) == {"of_sign"}
    assert lacking(OnnxOps, Clipped) == set()


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
