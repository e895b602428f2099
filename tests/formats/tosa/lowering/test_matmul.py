"""MATMUL and BATCH_MATMUL: any ranks that broadcast, adjoints, zero points, types, constants on either side."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, one_op
from support.harness import random_integers as draw
from support.on_tosa import INTEGER, assert_exact, assert_near_kernel, emitted, lowered_names

from tflq.base.errors import UnsupportedError
from tflq.dialects.builder import Builder
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, f32, i8, i16, i32, i64, ui8
from tflq.numerics.fixed_point import Multiplier

SHAPES = [
    ((4, 5), (5, 3)),
    ((2, 4, 5), (2, 5, 3)),
    ((2, 4, 5), (5, 3)),
    ((4, 5), (2, 5, 3)),
    ((2, 1, 4, 5), (3, 5, 3)),
    ((1, 4, 5), (3, 5, 2)),
    ((2, 3, 4, 5), (1, 1, 5, 3)),
    ((2, 3, 1, 4, 5), (1, 3, 2, 5, 3)),
]


def product(b: Builder, x: Value, y: Value, acc: ScalarType, zero_points: tuple[int, int] = (0, 0)) -> Value:
    rows, columns = (x.type.shape or ())[:-1], (y.type.shape or ())[-1]
    outer = np.broadcast_shapes(rows[:-1], (y.type.shape or ())[:-2])  # type: ignore[arg-type]
    type = TensorType((*outer, rows[-1], columns), acc)
    sums = b.emit("tosa.matmul", [x, y], type, a_zp=zero_points[0], b_zp=zero_points[1])
    return b.rescale(sums, Multiplier(1 << 30, -16), i16) if acc == i64 else sums


@pytest.mark.parametrize("right", ["variable", "constant"])
@pytest.mark.parametrize(("left", "other"), SHAPES)
@pytest.mark.parametrize(
    ("elements", "zero_points"),
    [((i8, i8), (5, -128)), ((ui8, ui8), (200, 7)), ((i16, i16), (0, 0)), ((i16, i8), (0, 0)), ((i8, i16), (0, 0))],
)
def test_products(
    elements: tuple[ScalarType, ScalarType],
    zero_points: tuple[int, int],
    left: tuple[int, ...],
    other: tuple[int, ...],
    right: str,
) -> None:
    acc = i64 if i16 in elements else i32
    x, y = draw(left, elements[0]), draw(other, elements[1], 1)
    if right == "constant":
        assert_exact(lambda b, a: product(b, a, const(y, elements[1]), acc, zero_points), [elements[0]], [x])
    else:
        assert_exact(lambda b, a, c: product(b, a, c, acc, zero_points), list(elements), [x, y])


def test_rows_of_an_open_batch_meet_one_matrix() -> None:
    def emit(b: Builder, x: Value) -> Value:
        y = const(draw((5, 3), i8), i8)
        return b.emit("tosa.matmul", [x, y], TensorType((None, 4, 3), i32), a_zp=0, b_zp=0)

    assert lowered_names(emitted(emit, [i8], [(None, 4, 5)])) == ["reshape", "matmul", "reshape"]


def test_an_open_batch_is_not_tiled() -> None:
    def emit(b: Builder, x: Value, y: Value) -> Value:
        return b.emit("tosa.matmul", [x, y], TensorType((None, 4, 3), i32), a_zp=0, b_zp=0)

    assert lowered_names(emitted(emit, [i8, i8], [(None, 4, 5), (None, 5, 3)])) == ["matmul"]
    with pytest.raises(UnsupportedError, match="cannot be tiled"):
        lowered_names(emitted(emit, [i8, i8], [(1, 4, 5), (None, 5, 3)]))


def test_int16_needs_its_extension() -> None:
    target = type(INTEGER)(profiles=INTEGER.profiles, extensions=frozenset())
    module = emitted(lambda b, x, y: product(b, x, y, i64), [i16, i16], [(4, 5), (5, 3)])
    with pytest.raises(UnsupportedError, match="extension int16"):
        lowered_names(module, target)


def model(
    x: Value, y: Value, out: tuple[int, ...], element: ScalarType = f32, adj_x: bool = False, adj_y: bool = False
) -> bytes:
    options = {"adj_x": adj_x, "adj_y": adj_y, "asymmetric_quantize_inputs": False}
    return one_op("tfl.batch_matmul", [x, y], [argument(out, element, "out")], options, version=2)


@pytest.mark.parametrize("adj_x", [False, True])
@pytest.mark.parametrize("adj_y", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_float(adj_x: bool, adj_y: bool, constant: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 5, 4) if adj_x else (2, 3, 4, 5)).astype(np.float32)
    y = rng.normal(size=(3, 6, 5) if adj_y else (3, 5, 6)).astype(np.float32)
    right = const(y, f32) if constant else argument(y.shape, f32, "y")
    file = model(argument(x.shape, f32), right, (2, 3, 4, 6), f32, adj_x, adj_y)
    assert_near_kernel(file, [x] if constant else [x, y])


def test_float_by_quantized_constant() -> None:
    rng = np.random.default_rng(0)
    y = const(draw((5, 6), i8), UniformQuantizedType.of(i8, 0.01, 0), "weights")
    x = rng.normal(size=(2, 4, 5)).astype(np.float32)
    notes = assert_near_kernel(model(argument(x.shape, f32), y, (2, 4, 6)), [x], 0.02)
    assert notes
    assert "rounds the activations" in notes[0]


def test_plain_int8() -> None:
    x, y = argument((2, 4, 5), i8), argument((2, 5, 3), i8, "y")
    assert_near_kernel(model(x, y, (2, 4, 3), i32), [draw((2, 4, 5), i8), draw((2, 5, 3), i8, 1)])
