"""AVG_POOL2D and MAX_POOL2D: exact for every window, type and padding; float pools with their activations."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, one_op
from support.on_tosa import Emit, assert_exact, assert_near_kernel, emitted, lowered_names

from tflq.base.errors import UnsupportedError
from tflq.dialects.builder import Builder
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, TensorType, f32, i8, i16, ui8
from tflq.numerics.convolution import window

WINDOWS = [
    ((5, 6), (2, 2), (2, 2), "VALID"),
    ((7, 9), (3, 3), (2, 3), "VALID"),
    ((7, 9), (3, 3), (1, 1), "SAME"),
    ((5, 6), (1, 1), (2, 2), "SAME"),
    ((9, 7), (5, 2), (3, 4), "SAME"),
    ((7, 9), (7, 9), (1, 1), "VALID"),
    ((6, 5), (2, 1), (5, 4), "SAME"),
]


def pool(kind: str, size: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int], padding: str) -> Emit:
    rows, columns = (window(n, k, s, 1, padding) for n, k, s in zip(size, kernel, stride, strict=True))
    assert rows is not None
    assert columns is not None

    def emit(b: Builder, x: Value) -> Value:
        batch, _, _, channels = x.type.shape or ()
        zero_points = {"input_zp": 0, "output_zp": 0} if kind == "avg" else {}
        return b.emit(
            f"tosa.{kind}_pool2d",
            [x],
            TensorType((batch, rows.output, columns.output, channels), x.type.storage),
            kernel=kernel,
            stride=stride,
            pad=(rows.before, rows.after, columns.before, columns.after),
            **zero_points,
        )

    return emit


def values(shape: tuple[int, ...], element: ScalarType) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.integers(element.minimum, element.maximum, shape, np.int64, endpoint=True)
    x[..., 0] = rng.choice([element.minimum, element.maximum], shape[:-1])
    x[..., 1] = rng.integers(-2 if element.signed else 0, 3, shape[:-1])  # many halves
    return x.astype(element.dtype)


@pytest.mark.parametrize("element", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize(("size", "kernel", "stride", "padding"), WINDOWS)
def test_windows(
    kind: str,
    element: ScalarType,
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: str,
) -> None:
    names = assert_exact(pool(kind, size, kernel, stride, padding), [element], [values((2, *size, 8), element)])
    assert set(names) <= {"slice", "rescale", f"{kind}_pool2d"}


def test_the_mean_of_too_many_int16() -> None:
    with pytest.raises(UnsupportedError, match="not exact"):
        lowered_names(emitted(pool("avg", (128, 128), (128, 128), (1, 1), "VALID"), [i16], [(1, 128, 128, 1)]))
    lowered_names(emitted(pool("avg", (128, 127), (128, 127), (1, 1), "VALID"), [i16], [(1, 128, 127, 1)]))


def model(kind: str, element: ScalarType, activation: str, padding: str, out: tuple[int, int]) -> bytes:
    options = {
        "padding": padding,
        "stride_w": 2,
        "stride_h": 3,
        "filter_width": 3,
        "filter_height": 2,
        "fused_activation_function": activation,
    }
    return one_op(
        f"tfl.{kind}_pool_2d", [argument((2, 7, 8, 3), element)], [argument((2, *out, 3), element, "y")], options
    )


@pytest.mark.parametrize("kind", ["average", "max"])
@pytest.mark.parametrize("activation", ["NONE", "RELU", "RELU6", "RELU_N1_TO_1"])
@pytest.mark.parametrize(("padding", "out"), [("SAME", (3, 4)), ("VALID", (2, 3))])
def test_float(kind: str, activation: str, padding: str, out: tuple[int, int]) -> None:
    x = np.random.default_rng(0).normal(0, 5, (2, 7, 8, 3)).astype(np.float32)
    assert_near_kernel(model(kind, f32, activation, padding, out), [x], 1e-6)


@pytest.mark.parametrize("kind", ["average", "max"])
@pytest.mark.parametrize("element", [i8, ui8], ids=str)
def test_the_kernel_on_integers(kind: str, element: ScalarType) -> None:
    assert_near_kernel(model(kind, element, "NONE", "SAME", (3, 4)), [values((2, 7, 8, 3), element)])


def test_open_heights() -> None:
    def emit(b: Builder, x: Value, padding: str, stride: int) -> Value:
        options = {"stride_w": stride, "stride_h": stride, "filter_width": 3, "filter_height": 2}
        type = TensorType((2, None, None, 8), i8)
        return b.emit("tfl.max_pool_2d", [x], type, padding=padding, fused_activation_function="NONE", **options)

    shapes = [(2, None, None, 8)]
    assert lowered_names(emitted(lambda b, x: emit(b, x, "SAME", 1), [i8], shapes)) == ["max_pool2d"]
    with pytest.raises(UnsupportedError, match="SAME padding"):
        lowered_names(emitted(lambda b, x: emit(b, x, "SAME", 2), [i8], shapes))
    with pytest.raises(UnsupportedError, match="stride of 2"):
        lowered_names(emitted(lambda b, x: emit(b, x, "VALID", 2), [i8], shapes))
