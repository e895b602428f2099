"""Comparisons: neighbours at many scales, signs above a scale of 1, stored integers, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, convert_and_compare, interpret, one_op
from support.on_tosa import assert_near_kernel
from support.reference import assert_equals_kernel, every_value, refusal

import tflq
from tflq.ir.types import ScalarType, UniformQuantizedType, i1, i8, i16, ui8

Quantized = UniformQuantizedType
EQUALITIES = ["tfl.equal", "tfl.not_equal"]
NAMES = [*EQUALITIES, "tfl.less", "tfl.less_equal", "tfl.greater", "tfl.greater_equal"]
TYPES = [i8, ui8, i16]


def model(name: str, first: Quantized, second: Quantized, *shapes: tuple[int, ...]) -> bytes:
    result = argument(np.broadcast_shapes(*shapes), i1, "z")
    return one_op(name, [argument(shapes[0], first), argument(shapes[-1], second, "y")], [result], {}, 2)


def pairs(storage: ScalarType, seed: int) -> list[np.ndarray]:
    """Every pair of 8-bit values; random pairs of int16, half of them close."""
    if storage is not i16:
        return [g.reshape(1, -1) for g in np.meshgrid(every_value(storage.dtype), every_value(storage.dtype))]
    rng = np.random.default_rng(seed)
    x = rng.integers(-32768, 32768, (1, 20000))
    near = np.clip(x + rng.integers(-3, 4, x.shape), -32768, 32767)
    return [x.astype(np.int16), np.where(rng.random(x.shape) < 0.5, near, x[:, ::-1]).astype(np.int16)]


@pytest.mark.parametrize("storage", TYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_any_parameters(name: str, storage: ScalarType) -> None:
    rng = np.random.default_rng(len(name))
    for exponent in (-12, -7, -3.5, -2.41, -2, -1, -0.01):
        zero_points = rng.integers(storage.minimum, storage.maximum, 2) if storage is not i16 else (0, 0)
        scales = 10**exponent, 10.0 ** (exponent + rng.uniform(-0.5, 0.5))
        first, second = (Quantized.of(storage, min(s, 0.99), int(z)) for s, z in zip(scales, zero_points, strict=True))
        arrays = pairs(storage, int(exponent * 10) % 97)
        for other in (first, second):
            assert_equals_kernel(model(name, first, other, arrays[0].shape), [arrays])


@pytest.mark.parametrize("shapes", [((3, 1, 4), (2, 1)), ((2, 3, 1, 2, 2), (2, 1, 2)), ((1, 64), (1, 64))], ids=str)
@pytest.mark.parametrize("scale", [1.001, 3.0, 250.0])
def test_the_sign_alone(scale: float, shapes: tuple[tuple[int, ...], ...]) -> None:
    rng = np.random.default_rng(0)
    for storage in TYPES:
        first, second = Quantized.of(storage, scale, 0), Quantized.of(storage, 1 / 256, 0)
        arrays = [rng.integers(storage.minimum, storage.maximum + 1, s).astype(storage.dtype) for s in shapes]
        arrays[1] = np.where(rng.random(shapes[1]) < 0.5, arrays[1] // 100, arrays[1]).astype(storage.dtype)
        for name in EQUALITIES if storage is i16 else NAMES:
            conversion = convert_and_compare(model(name, first, second, *shapes), [arrays])
            assert [row.path for row in conversion.report.rows] == ["integer"]
            warning = conversion.report.rows[0].warning
            assert "at a scale above 1 the kernel divides by a negative power of two, which C++ leaves" in warning
            assert "pairs of values are compared wrongly" in warning


@pytest.mark.parametrize("name", NAMES[2:])
def test_stored_integers(name: str) -> None:
    arrays = pairs(i16, 5)
    conversion = convert_and_compare(
        model(name, Quantized.of(i16, 0.1), Quantized.of(i16, 0.001), arrays[0].shape), [arrays]
    )
    assert "compares the stored integers" in conversion.report.rows[0].warning


@pytest.mark.parametrize(
    ("elements", "reason"),
    [
        ([Quantized.of(i8, 1.0), Quantized.of(i8, 0.1)], "it aborts at a scale of 1"),
        ([Quantized.of(i16, 0.1), Quantized.of(i16, 300.0)], "the kernel's result is undefined in C++"),
        ([Quantized.of(i8, 0.1), Quantized.of(ui8, 0.1)], "EQUAL has no kernel for i8 and ui8"),
    ],
)
def test_what_the_kernel_cannot(elements: list[Quantized], reason: str) -> None:
    assert reason in refusal("tfl.equal", [*elements, i1])


@pytest.mark.parametrize(("first", "second"), [(1e9, 1e9), (1e12, 3e11), (1e20, 0.1)])
@pytest.mark.parametrize("name", NAMES)
def test_what_interpreters_differ_on_is_the_real_answer(name: str, first: float, second: float) -> None:
    """Shifts beyond the sign: some interpreters compute them in vector registers."""
    x, y = (g.reshape(1, -1) for g in np.meshgrid(every_value(i8.dtype), every_value(i8.dtype)))
    conversion = tflq.convert(model(name, Quantized.of(i8, first, 3), Quantized.of(i8, second, -5), x.shape))
    (row,) = conversion.report.rows
    assert row.path == "integer"
    assert row.exception == "unsettled"
    assert "interpreters differ" in row.warning
    real = getattr(np, name.removeprefix("tfl."))((x - 3.0) * np.float32(first), (y + 5.0) * np.float32(second))
    np.testing.assert_array_equal(interpret(conversion.data, [[x, y]])[0][0], real)


def test_real_semantics_tell_neighbours_apart() -> None:
    element = Quantized.of(i8, 1e-5, 3)
    arrays = pairs(i8, 0)
    data = model("tfl.equal", element, element, arrays[0].shape)
    assert interpret(data, [arrays])[0][0].sum() > 256  # the kernel rounds them to a few values
    real = tflq.convert(data, semantics="real").data
    np.testing.assert_array_equal(interpret(real, [arrays])[0][0], arrays[0] == arrays[1])


@pytest.mark.parametrize("storage", TYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_on_tosa(name: str, storage: ScalarType) -> None:
    first, second = Quantized.of(storage, 0.003, 0), Quantized.of(storage, 0.0031, 0)
    arrays = [a[:, :20000].reshape(2, -1) for a in pairs(storage, 1)]
    assert_near_kernel(model(name, first, second, arrays[0].shape), arrays)
