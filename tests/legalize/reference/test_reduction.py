"""Reductions, ARG_MAX and ARG_MIN: converted and original agree for any axes, parameters and batch."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, edge_inputs, interpret, one_op
from support.reference import assert_equals_kernel, quantized

import tflq
from tflq.ir.types import (
    ElementType,
    ScalarType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i8,
    i16,
    i32,
    i64,
    ui8,
)

TYPES = [i8, ui8, i16]
SHAPE = (2, 5, 6, 7)


def drawn(rng: np.random.Generator, storage: ScalarType, near: float = 0.05) -> UniformQuantizedType:
    return quantized(
        storage, near * 10 ** rng.uniform(-1.5, 1.5), int(rng.integers(storage.minimum, storage.maximum + 1))
    )


def reduction(
    name: str,
    source: ElementType,
    target: ElementType,
    axes: list[int],
    keep_dims: bool,
    shape: tuple[int | None, ...] = SHAPE,
) -> bytes:
    reduced = {a % len(shape) for a in axes}
    out = [1 if a in reduced else d for a, d in enumerate(shape) if keep_dims or a not in reduced]
    operands = [argument(shape, source), const(np.asarray(axes, np.int32), i32)]
    return one_op(name, operands, [argument(out, target, "y")], {"keep_dims": keep_dims}, 2)


AXES = [[1, 2], [2, 1], [3], [-1], [0], [1, -2, 1], [0, 1, 2, 3], [], [1, 3]]


@pytest.mark.parametrize("storage", TYPES, ids=str)
@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("keep_dims", [False, True])
def test_mean(storage: ScalarType, axes: list[int], keep_dims: bool) -> None:
    rng = np.random.default_rng(len(axes))
    for same in (True, False):
        source = drawn(rng, storage)
        model = reduction("tfl.mean", source, source if same else drawn(rng, storage), axes, keep_dims)
        inputs = edge_inputs([argument(SHAPE, source)])
        assert_equals_kernel(model, inputs)
        conversion = convert_and_compare(model, inputs)
        assert [row.path for row in conversion.report.rows] == ["integer"]


@pytest.mark.parametrize("storage", TYPES, ids=str)
def test_mean_of_many(storage: ScalarType) -> None:
    """A large count takes almost all of the multiplier's left shift."""
    rng = np.random.default_rng(7)
    shape = (1, 96, 128, 2)
    for _ in range(3):
        source = drawn(rng, storage)
        model = reduction("tfl.mean", source, drawn(rng, storage), [1, 2], True, shape)
        convert_and_compare(model, edge_inputs([argument(shape, source)]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("storage", "shape", "ratio"), [(i16, (3, 4), 75000.0), (i16, (1, 300, 300), 1.0), (i8, (2, 4), 3e7)]
)
def test_mean_that_overflows_as_the_kernel(storage: ScalarType, shape: tuple[int, ...], ratio: float) -> None:
    source, target = quantized(storage, 1.0), quantized(storage, 1.0 / ratio)
    model = reduction("tfl.mean", source, target, list(range(1, len(shape))), False, shape)
    conversion = convert_and_compare(model, edge_inputs([argument(shape, source)]))
    assert conversion.report.rows[0].path == "integer"


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("keep_dims", [False, True])
def test_sum_uint8(axes: list[int], keep_dims: bool) -> None:
    rng = np.random.default_rng(len(axes))
    source = drawn(rng, ui8)
    model = reduction("tfl.sum", source, drawn(rng, ui8, 1.0), axes, keep_dims)
    convert_and_compare(model, edge_inputs([argument(SHAPE, source)]))


@pytest.mark.parametrize("storage", [i8, i16], ids=str)
def test_sum_that_the_reference_kernel_misreads(storage: ScalarType) -> None:
    """Within one count of the real sum, with a warning."""
    source, target = quantized(storage, 0.05, -9), quantized(storage, 1.5, 11)
    conversion = tflq.convert(reduction("tfl.sum", source, target, [1, 2], False))
    assert "uint8" in conversion.report.rows[0].warning
    (x,) = edge_inputs([argument(SHAPE, source)])[0]
    ((got,),) = interpret(conversion.data, [[x]])
    real = ((x.astype(np.float64) - source.zero_point) * source.scale).sum((1, 2))
    ideal = np.clip(np.round(real / target.scale) + target.zero_point, storage.minimum, storage.maximum)
    assert np.abs(got - ideal).max() <= 1


@pytest.mark.parametrize("storage", TYPES, ids=str)
@pytest.mark.parametrize("name", ["tfl.reduce_max", "tfl.reduce_min"])
@pytest.mark.parametrize("axes", [[1, 2], [-1], [0, 1, 2, 3], []], ids=str)
@pytest.mark.parametrize("keep_dims", [False, True])
def test_extreme(storage: ScalarType, name: str, axes: list[int], keep_dims: bool) -> None:
    element = quantized(storage)
    model = reduction(name, element, element, axes, keep_dims)
    assert_equals_kernel(model, edge_inputs([argument(SHAPE, element)]))
    convert_and_compare(model, edge_inputs([argument(SHAPE, element)]))


@pytest.mark.parametrize("storage", TYPES, ids=str)
def test_extreme_under_other_parameters_is_requantized(storage: ScalarType) -> None:
    source, target = quantized(storage, 0.05, -9 if storage is i8 else 9), quantized(storage, 0.11, 11)
    conversion = tflq.convert(reduction("tfl.reduce_max", source, target, [3], False))
    (x,) = edge_inputs([argument(SHAPE, source)])[0]
    ((got,),) = interpret(conversion.data, [[x]])
    real = (x.max(3).astype(np.float64) - source.zero_point) * source.scale
    ideal = np.clip(np.round(real / target.scale) + target.zero_point, storage.minimum, storage.maximum)
    assert np.abs(got - ideal).max() <= 1


@pytest.mark.parametrize("storage", [i8, i16], ids=str)
@pytest.mark.parametrize("axes", [[1], [3], [1, 3], [-1, 0], [], [2]], ids=str)
@pytest.mark.parametrize("keep_dims", [False, True])
def test_product(storage: ScalarType, axes: list[int], keep_dims: bool) -> None:
    """Scaled after each factor, in row-major order."""
    rng = np.random.default_rng(len(axes))
    source, target = (quantized(storage, 0.4**n / storage.maximum, int(rng.integers(-128, 128))) for n in (1, 2))
    model = reduction("tfl.reduce_prod", source, target, axes, keep_dims)
    inputs = edge_inputs([argument(SHAPE, source)])
    assert_equals_kernel(model, inputs)
    conversion = convert_and_compare(model, inputs)
    assert conversion.report.rows[0].path == "integer"


def test_product_that_overflows_the_kernel_is_the_real_one() -> None:
    model = reduction("tfl.reduce_prod", quantized(i8, 1.0), quantized(i8, 0.5), [0, 1, 2], False)
    conversion = tflq.convert(model, fallback="error")
    assert "real function" in conversion.report.rows[0].note


@pytest.mark.parametrize("name", ["tfl.mean", "tfl.reduce_max"])
@pytest.mark.parametrize("keep_dims", [False, True])
def test_batch_known_when_the_model_runs(name: str, keep_dims: bool) -> None:
    element = quantized(i8)
    model = reduction(name, element, element, [1, 2], keep_dims, (None, 4, 4, 3))
    batch = np.random.default_rng(3).integers(-128, 128, (5, 4, 4, 3), np.int8)
    conversion = convert_and_compare(model, [[batch]])
    assert conversion.report.rows[0].path == "integer"


def test_a_mean_of_a_size_known_when_the_model_runs() -> None:
    model = reduction("tfl.mean", quantized(i8), quantized(i8, 0.06, -9), [1, 2], True, (1, None, 4, 3))
    batch = np.random.default_rng(3).integers(-128, 128, (1, 11, 4, 3), np.int8)
    assert convert_and_compare(model, [[batch]]).report.rows[0].path == "integer"


@pytest.mark.parametrize("scale", [0.01, 0.2, 3.0, 4000.0])
@pytest.mark.parametrize("size", [1, 2, 5, 64])
def test_a_mean_of_any_size_shifts_to_the_left_as_the_kernel_does(scale: float, size: int) -> None:
    model = reduction("tfl.mean", quantized(i8, scale), quantized(i8, 0.02, -9), [1, 2], True, (1, None, None, 3))
    batch = np.random.default_rng(3).integers(-128, 128, (1, size, size, 3), np.int8)
    near = np.full_like(batch, 3) + (np.random.default_rng(4).random(batch.shape) < 0.1)  # near the zero point
    assert convert_and_compare(model, [[batch], [near.astype(np.int8)]]).report.rows[0].path == "integer"


def test_a_mean_that_may_leave_int32_is_left_to_the_fallback_where_its_size_is_not_known() -> None:
    model = reduction("tfl.mean", quantized(i8, 3e6), quantized(i8), [1, 2], True, (1, None, 4, 3))
    with pytest.raises(tflq.UnsupportedError, match="along a reduced axis is not known"):
        tflq.convert(model, fallback="error")


def argument_index(name: str, element: ElementType, axis: int, index: ScalarType) -> bytes:
    shape = (2, 4, 6, 5)
    out = tuple(d for a, d in enumerate(shape) if a != axis % 4)
    operands = [argument(shape, element), const(np.asarray(axis, np.int32), i32)]
    return one_op(name, operands, [argument(out, index, "y")], {"output_type": "INT64" if index is i64 else "INT32"}, 2)


@pytest.mark.parametrize("index", [i32, i64], ids=str)
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
@pytest.mark.parametrize("name", ["tfl.arg_max", "tfl.arg_min"])
def test_first_of_equals(name: str, storage: ScalarType, axis: int, index: ScalarType) -> None:
    element = quantized(storage)
    inputs = edge_inputs([argument((2, 4, 6, 5), element)])
    inputs += [[np.random.default_rng(2).integers(1, 3, (2, 4, 6, 5)).astype(storage.dtype)]]
    conversion = convert_and_compare(argument_index(name, element, axis, index), inputs)
    assert len(conversion.module.main.ops) <= 2


@pytest.mark.parametrize("name", ["tfl.arg_max", "tfl.arg_min"])
def test_int16_which_no_kernel_compares(name: str) -> None:
    (x,) = edge_inputs([argument((2, 4, 6, 5), quantized(i16))])[0]
    ((got,),) = interpret(tflq.convert(argument_index(name, quantized(i16), 2, i64)).data, [[x]])
    np.testing.assert_array_equal(got, x.argmax(2) if name == "tfl.arg_max" else x.argmin(2))


def test_scales_that_must_hold_are_left_to_the_fallback() -> None:
    element = UniformQuantizedPerAxisType.of(i8, 3, [0.1, 0.2, 0.3, 0.4, 0.5])
    with pytest.raises(tflq.UnsupportedError, match="several scales along the axis"):
        tflq.convert(argument_index("tfl.arg_max", element, 3, i32), fallback="error", semantics="real")


def test_product_of_a_scalar() -> None:
    """TRANSPOSE has no part in it: its kernel reads past an empty permutation."""
    x, axes = argument((), UniformQuantizedType.of(i8, 0.0102, -2), "x"), const(np.asarray([0]), i32, "axes")
    model = one_op(
        "tfl.reduce_prod", [x, axes], [argument((), UniformQuantizedType.of(i8, 0.0014), "y")], {"keep_dims": True}, 2
    )
    conversion = convert_and_compare(model, edge_inputs([x]))
    assert not any(op.name == "tfl.transpose" for op in tflq.read(conversion.data).ops())
