"""Forms of a requantization as builtins are the same function as on arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.harness import argument

from tflq.analysis.evaluate.registry import evaluate_op
from tflq.dialects.tfl.activation import Relu, ReluN1To1
from tflq.dialects.tfl.arithmetic import Sign
from tflq.dialects.tfl.comparison import RightShift
from tflq.formats.tflite.lowering.form_ops import KernelOps
from tflq.formats.tflite.lowering.lowering import KernelBuilder
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, f32, i32, i64
from tflq.numerics.fixed_point import quantize_multipliers
from tflq.numerics.requantize.clamped import ClampedToOne, ClampedToSix
from tflq.numerics.requantize.climb import Climb
from tflq.numerics.requantize.distance import Distance
from tflq.numerics.requantize.division import Division
from tflq.numerics.requantize.falling import Clipped, Falling
from tflq.numerics.requantize.float_forms import RELU6, FloatForm
from tflq.numerics.requantize.forms import OperationError
from tflq.numerics.requantize.numpy_ops import NUMPY, NumpyOps
from tflq.numerics.requantize.scaling import FixedPoint, Staircase
from tflq.numerics.requantize.split import Split

SCALES = np.asarray([0.00271, 0.0043, 0.00617, 3.3e-4])
REACH = np.full(SCALES.size, 70_000)
OTHERS: dict[type[Op], Callable[..., np.ndarray]] = {
    Relu: lambda x: np.maximum(x, 0),
    ReluN1To1: lambda x: np.clip(x, -1, 1),
    Sign: np.sign,
    RightShift: np.right_shift,
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
        results = [OTHERS[type(op)](*operands)] if type(op) in OTHERS else evaluate_op(op, operands)
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


RIGHT: dict[ScalarType, list[Callable[[Value, KernelOps], Value]]] = {
    i64: [lambda x, ops: ops.right_shift(x, 8), lambda x, ops: ops.right_shift(x, 40), lambda x, ops: ops.high_word(x)],
    f32: [
        lambda x, ops: ops.floor(x),
        lambda x, ops: ops.rint(x),
        lambda x, ops: ops.positive(x),
        lambda x, ops: ops.clamped(x, x, RELU6),
        lambda x, ops: ops.multiply_add(x, x, x),
        lambda x, ops: ops.products(x, x, x, x),
        lambda x, ops: ops.of_sign(x, None, np.ones(1, np.float32), np.zeros(1, np.float32)),
    ],
    i32: [lambda x, ops: ops.div(x, ops.row(np.asarray([7])))],
}


@pytest.mark.parametrize("element", [f32, i32, i64], ids=str)
def test_an_operation_of_another_number_type_is_an_error(element: ScalarType) -> None:
    x = argument((5, 4), element)
    for right, writers in RIGHT.items():
        for write in writers:
            if right == element:
                write(x, KernelOps(KernelBuilder(), element))
            else:
                with pytest.raises(OperationError, match=f"KernelOps has no `[a-z_]+` of {element}: "):
                    write(x, KernelOps(KernelBuilder(), element))


@pytest.mark.parametrize("places", [1, 8, 31, 32, 40])
def test_right_shifts_of_words_of_64_bits(places: int) -> None:
    most = 1 << min(places + 31, 62)
    x = np.random.default_rng(0).integers(-most, most, (50, 4))
    result = emitted(lambda v, ops: ops.right_shift(v, places), x, i64)
    np.testing.assert_array_equal(result, x >> places)
