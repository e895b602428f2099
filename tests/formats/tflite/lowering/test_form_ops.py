"""Forms of a requantization as builtins are the same function as on arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.harness import argument

from tflq.analysis.evaluate.registry import evaluate_op
from tflq.dialects.tfl.activation import Relu, ReluN1To1
from tflq.dialects.tfl.arithmetic import Sign
from tflq.formats.tflite.lowering.form_ops import KernelOps
from tflq.formats.tflite.lowering.lowering import KernelBuilder
from tflq.ir.core import Op, Value
from tflq.ir.types import ScalarType, f32, i32
from tflq.numerics.fixed_point import quantize_multipliers
from tflq.numerics.requantize.clamped import ClampedToOne, ClampedToSix
from tflq.numerics.requantize.climb import Climb
from tflq.numerics.requantize.distance import Distance
from tflq.numerics.requantize.division import Division
from tflq.numerics.requantize.falling import Clipped, Falling
from tflq.numerics.requantize.float_forms import FloatForm
from tflq.numerics.requantize.numpy_ops import NUMPY, NumpyOps
from tflq.numerics.requantize.scaling import FixedPoint
from tflq.numerics.requantize.split import Split
from tflq.numerics.requantize.staircase import Staircase

SCALES = np.asarray([0.00271, 0.0043, 0.00617, 3.3e-4])
REACH = np.full(SCALES.size, 70_000)
OTHERS: dict[type[Op], Callable[..., np.ndarray]] = {
    Relu: lambda x: np.maximum(x, 0),
    ReluN1To1: lambda x: np.clip(x, -1, 1),
    Sign: np.sign,
}
"""Builtins without an evaluator: the integer form has none of them."""
LAST = NumpyOps(constants_last=True)


def factor() -> FixedPoint:
    mantissa, left = quantize_multipliers(SCALES)
    return FixedPoint(mantissa.astype(np.int64), 31 - left.astype(np.int64))


def emitted(write: Callable[[Value, KernelOps], Value], x: np.ndarray, element: ScalarType) -> np.ndarray:
    """The result of the builtins that are written, for x."""
    k, value = KernelBuilder(), argument(x.shape, element)
    result = write(value, KernelOps(k, element))
    arrays = {value: x.astype(element.dtype)}
    for op in k.ops:
        operands: list[np.ndarray | None] = [
            arrays[v] if v.producer or v is value else v.array for v in op.present_operands
        ]
        results = [OTHERS[type(op)](operands[0])] if type(op) in OTHERS else evaluate_op(op, operands)
        assert results is not None, op.name
        arrays |= zip(op.results, results, strict=True)
    return arrays[result]


@pytest.mark.parametrize(
    ("form", "bottom"),
    [(Distance, 0), (Falling, 0), (Clipped, 0), (ClampedToSix, 0), (ClampedToOne, -128), (Split, -128), (Split, -3)],
)
def test_a_form_as_builtins_is_the_form_on_arrays(form: type[FloatForm], bottom: int) -> None:
    thresholds = factor().thresholds(np.arange(bottom + 1, bottom + 256))
    fit = form.fit(Climb(thresholds, factor().slope, -REACH, REACH, bottom))
    assert fit is not None
    near = np.concatenate([thresholds, thresholds - 1, [REACH, -REACH, 0 * REACH]])
    x = np.concatenate([near, np.random.default_rng(0).integers(-REACH, REACH, (5000, REACH.size))])
    np.testing.assert_array_equal(emitted(fit.apply_to_whole, x, f32), fit(x, LAST))


@pytest.mark.parametrize("bottom", [-127, 1])
def test_a_division_as_builtins_is_the_division_on_arrays(bottom: int) -> None:
    fit = Division.fit(Staircase.of(factor(), bottom, 255), -REACH, REACH)
    assert fit is not None
    x = np.random.default_rng(0).integers(-REACH, REACH, (5000, REACH.size))
    np.testing.assert_array_equal(emitted(fit.apply, x, i32), fit.apply(x, NUMPY))
