"""RESIZE in both modes, within TOSA's limits and beyond; RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, one_op
from support.on_tosa import assert_exact, assert_near_kernel

from tflq.dialects.builder import Builder
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, TensorType, f32, i8, i16, i32, i64, ui8
from tflq.numerics.resize import Sampling, integer_steps, nearest_steps, rational_steps

FLAGS = [(False, False), (True, False), (False, True)]
SIZES = [
    ((4, 5), (8, 10)),
    ((4, 5), (7, 13)),
    ((9, 7), (4, 3)),
    ((3, 3), (3, 3)),
    ((1, 6), (5, 1)),
    ((40, 3), (2, 5)),  # a ratio beyond 16
    ((1, 2), (300, 4)),  # beyond 256
]


def draw(shape: tuple[int, ...], element: ScalarType) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.integers(element.minimum, element.maximum, shape, np.int64, endpoint=True)
    x[..., 0] = rng.choice([element.minimum, element.maximum], shape[:-1])
    return x.astype(element.dtype)


def resize(b: Builder, x: Value, out: tuple[int, int], steps: tuple[Sampling, Sampling], mode: str) -> Value:
    batch, height, width, channels = (d or 0 for d in x.type.shape or ())
    rows, columns = steps
    wide = i64 if x.type.storage == i16 else i32
    return b.emit(
        "tosa.resize",
        [x],
        TensorType((batch, *out, channels), wide if mode == "BILINEAR" else x.type.storage),
        scale=(rows.n, rows.d, columns.n, columns.d),
        offset=(rows.offset, columns.offset),
        border=(rows.border(height, out[0]), columns.border(width, out[1])),
        mode=mode,
    )


@pytest.mark.parametrize("element", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize(("size", "out"), SIZES)
def test_nearest(element: ScalarType, size: tuple[int, int], out: tuple[int, int], flags: tuple[bool, bool]) -> None:
    rows, columns = (nearest_steps(n, o, *flags) for n, o in zip(size, out, strict=True))
    if rows is None or columns is None:
        pytest.skip("TOSA takes another element")
    x = draw((2, *size, 3), element)
    assert_exact(lambda b, v: resize(b, v, out, (rows, columns), "NEAREST_NEIGHBOR"), [element], [x])


@pytest.mark.parametrize("element", [i8, ui8], ids=str)
@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize(("size", "out"), SIZES)
def test_bilinear(element: ScalarType, size: tuple[int, int], out: tuple[int, int], flags: tuple[bool, bool]) -> None:
    find = rational_steps if element == ui8 else integer_steps
    rows, columns = (find(n, o, *flags) for n, o in zip(size, out, strict=True))
    if rows is None or columns is None:
        pytest.skip("the kernel reads beyond the input")
    x = draw((2, *size, 3), element)
    assert_exact(lambda b, v: resize(b, v, out, (rows, columns), "BILINEAR"), [element], [x])


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize(("size", "out"), SIZES[:5])
def test_bilinear_int16_is_rounded_half_away(
    size: tuple[int, int], out: tuple[int, int], flags: tuple[bool, bool]
) -> None:
    rows, columns = (integer_steps(n, o, *flags) for n, o in zip(size, out, strict=True))
    if rows is None or columns is None:
        pytest.skip("the kernel reads beyond the input")

    def emit(b: Builder, x: Value) -> Value:
        sums = resize(b, x, out, (rows, columns), "BILINEAR")
        return b.emit("ext.rounding_divide_by_pot", [sums], sums.type.with_element(i16), exponent=20)

    x = draw((2, *size, 4), i16)
    x[..., 1:3] = np.random.default_rng(1).integers(-2, 3, (2, *size, 2))  # many halves
    assert_exact(emit, [i16], [x])


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize(("size", "out"), [*SIZES, ((3, 4), (1031, 5))])
@pytest.mark.parametrize("name", ["resize_bilinear", "resize_nearest_neighbor"])
def test_float(name: str, size: tuple[int, int], out: tuple[int, int], flags: tuple[bool, bool]) -> None:
    x = np.random.default_rng(0).normal(size=(2, *size, 3)).astype(np.float32)
    options: dict[str, object] = {"align_corners": flags[0], "half_pixel_centers": flags[1]}
    if name == "resize_bilinear":
        options |= {"new_height": 0, "new_width": 0}
    result = argument((2, *out, 3), f32, "y")
    file = one_op(f"tfl.{name}", [argument(x.shape, f32), const(np.asarray(out), i32, "size")], [result], options, 3)
    assert_near_kernel(file, [x], 1e-4 if name == "resize_bilinear" else 0)


@pytest.mark.parametrize("element", [i8, ui8, i16], ids=str)
def test_the_nearest_kernel_on_integers(element: ScalarType) -> None:
    def emit(b: Builder, x: Value) -> Value:
        size = b.constant([13, 4])
        type = TensorType((2, 13, 4, 3), element)
        return b.emit("tfl.resize_nearest_neighbor", [x, size], type, align_corners=True, half_pixel_centers=True)

    assert_exact(emit, [element], [draw((2, 5, 7, 3), element)])
