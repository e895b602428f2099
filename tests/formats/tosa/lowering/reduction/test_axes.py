"""REDUCE_* over one axis and over several, of the types that TOSA has; MEAN and products of integers."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, one_op
from support.on_tosa import assert_exact, assert_near_kernel, emitted, lowered_names

from tflq.base.errors import UnsupportedError
from tflq.dialects.builder import Builder
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, f32, i1, i8, i16, i32, i64, ui8


def draw(shape: tuple[int, ...], element: ScalarType, reach: int | None = None) -> np.ndarray:
    rng = np.random.default_rng(0)
    if element.is_float:
        return rng.normal(size=shape).astype(element.dtype)
    if element == i1:
        return rng.integers(0, 2, shape).astype(bool)
    low, high = (element.minimum, element.maximum) if reach is None else (-reach, reach)
    return rng.integers(low, high, shape, np.int64, endpoint=True).astype(element.dtype)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("element", [i8, ui8, i16, i32], ids=str)
@pytest.mark.parametrize("kind", ["max", "min", "sum"])
def test_one_axis(kind: str, element: ScalarType, axis: int) -> None:
    if kind == "sum" and element != i32:
        pytest.skip("TOSA adds i32")

    def emit(b: Builder, x: Value) -> Value:
        return b.reduce(kind, x, axis)  # type: ignore[arg-type]

    assert_exact(emit, [element], [draw((3, 4, 5), element, 1 << 20 if kind == "sum" else None)])


def test_int64_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="may leave int32"):
        lowered_names(emitted(lambda b, x: b.reduce("sum", x, 0), [i64], [(3, 4)]))


@pytest.mark.parametrize("keep_dims", [False, True])
@pytest.mark.parametrize("axes", [[0], [1, 2], [-1, 0, -1], [0, 1, 2]])
@pytest.mark.parametrize(
    ("name", "element"),
    [
        ("mean", f32),
        ("mean", i32),
        ("sum", f32),
        ("sum", i32),
        ("reduce_max", f32),
        ("reduce_max", i8),
        ("reduce_max", i32),
        ("reduce_min", f32),
        ("reduce_min", ui8),
        ("reduce_prod", f32),
        ("reduce_prod", i32),
        ("reduce_any", i1),
        ("reduce_all", i1),
    ],
)
def test_kernels(name: str, element: ScalarType, axes: list[int], keep_dims: bool) -> None:
    shape = (3, 2, 5)
    reduced = {a % 3 for a in axes}
    out = tuple(1 if a in reduced else d for a, d in enumerate(shape) if keep_dims or a not in reduced)
    operands = [argument(shape, element), const(np.asarray(axes), i32, "axes")]
    version = 1 if element == i1 else 2
    file = one_op(f"tfl.{name}", operands, [argument(out, element, "y")], {"keep_dims": keep_dims}, version)
    x = draw(shape, element, {"reduce_prod": 2, "reduce_max": 100}.get(name, 1 << 20 if element == i32 else None))
    assert_near_kernel(file, [x.astype(element.dtype) if element != ui8 else np.abs(x)])


@pytest.mark.parametrize("count", [1, 2, 3, 7, 12])
def test_products_of_integers(count: int) -> None:
    operands = [argument((2, count), i32), const(np.asarray([1]), i32, "axes")]
    file = one_op("tfl.reduce_prod", operands, [argument((2,), i32, "y")], {"keep_dims": False})
    assert_near_kernel(file, [draw((2, count), i32, 4)])
