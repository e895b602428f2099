"""Integer operators of TOSA as TFLite builtins: the interpreter equals the evaluator and the reference model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.lowered import draw
from support.raised import assert_same, one_op

from tflq.ir.ops import constant
from tflq.ir.types import ScalarType, i1, i8, i16, i32, i64, ui8, ui16

SHAPE = (2, 3, 5)
ALL = pytest.mark.parametrize("element", [i8, i16, i32], ids=str)


def booleans(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, shape).astype(bool)


@ALL
@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bitwise(name: str, element: ScalarType) -> None:
    arrays = [draw(element, SHAPE), draw(element, (1, 3, 1), seed=1)]
    assert_same(one_op(name, arrays, (SHAPE, element)), arrays)


@ALL
@pytest.mark.parametrize("name", ["logical_left_shift", "logical_right_shift"])
def test_logical_shifts(name: str, element: ScalarType) -> None:
    arrays = [draw(element, SHAPE), draw(element, SHAPE, 1, 0, element.bits - 1)]
    assert_same(one_op(name, arrays, (SHAPE, element)), arrays)


@ALL
@pytest.mark.parametrize("round", [False, True])
def test_arithmetic_right_shift(element: ScalarType, round: bool) -> None:
    arrays = [draw(element, SHAPE), draw(element, SHAPE, 1, int(round), element.bits - 1)]
    assert_same(one_op("arithmetic_right_shift", arrays, (SHAPE, element), {"round": round}), arrays)


def test_logical_left_shift_by_a_constant() -> None:
    x = draw(i32, SHAPE)
    module = one_op("logical_left_shift", [x, constant(np.full((1, 1, 1), 9, np.int32))], (SHAPE, i32))
    assert assert_same(module, [x]) == ["mul"]


@pytest.mark.parametrize(("element", "zero_points"), [(i8, (3, -7)), (i8, (-128, -128)), (i16, (0, 0)), (i32, (0, 0))])
def test_negate(element: ScalarType, zero_points: tuple[int, int]) -> None:
    x = draw(element, SHAPE, low=element.minimum + (element == i32))
    attributes = {"input1_zp": zero_points[0], "output_zp": zero_points[1]}
    assert_same(one_op("negate", [x], (SHAPE, element), attributes), [x])


def test_abs() -> None:
    x = draw(i32, SHAPE, low=i32.minimum + 1)
    assert_same(one_op("abs", [x], (SHAPE, i32)), [x])


@pytest.mark.parametrize(("element", "shift"), [(i8, 0), (i16, 0), (i32, 0), (i32, 31)])
def test_mul(element: ScalarType, shift: int) -> None:
    reach = 30000 if element == i32 and not shift else element.maximum
    other = min(reach, 1 << 24)
    arrays = [draw(element, SHAPE, 0, -reach, reach), draw(element, (2, 1, 5), 1, -other, other)]
    assert_same(one_op("mul", arrays, (SHAPE, i32), {"shift": shift}), arrays)


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logical(name: str) -> None:
    arrays = [booleans(*SHAPE), booleans(2, 1, 5, seed=1)]
    assert_same(one_op(name, arrays, (SHAPE, i1)), arrays)


def test_logical_not() -> None:
    x = booleans(*SHAPE)
    assert_same(one_op("logical_not", [x], (SHAPE, i1)), [x])


@pytest.mark.parametrize("name", ["reduce_all", "reduce_any"])
def test_logical_reductions(name: str) -> None:
    x = booleans(4, 3, 2)
    assert_same(one_op(name, [x], ((4, 1, 2), i1), {"axis": 1}), [x])


@pytest.mark.parametrize("element", [i8, i16], ids=str)
def test_argmax(element: ScalarType) -> None:
    x = draw(element, SHAPE)
    assert_same(one_op("argmax", [x], ((2, 5), i32), {"axis": 1}), [x])


def test_intdiv() -> None:
    arrays = [draw(i32, SHAPE, low=i32.minimum + 1), draw(i32, (2, 1, 5), 1, 1)]
    assert_same(one_op("intdiv", arrays, (SHAPE, i32)), arrays)


def test_clz() -> None:
    x = draw(i32, SHAPE)
    assert_same(one_op("clz", [x], (SHAPE, i32)), [x])


DEEP = (2, 3, 2, 2, 2, 3)


@pytest.mark.parametrize("name", ["add", "sub", "maximum", "minimum", "equal", "greater", "greater_equal"])
@pytest.mark.parametrize("shape", [(2, 1, 2, 1, 2, 1), (1, 1, 1, 1, 1, 3), (1, 1, 2, 2, 2, 3), (1, 1, 1, 1, 1, 1)])
def test_more_dims_than_kernels_broadcast(name: str, shape: tuple[int, ...]) -> None:
    arrays = [draw(i32, DEEP, 0, -99, 99), draw(i32, shape, 1, -99, 99)]
    result = i32 if name in ("add", "sub", "maximum", "minimum") else i1
    names = assert_same(one_op(name, arrays, (DEEP, result)), arrays)
    assert ("broadcast_to" in names) == (shape == (2, 1, 2, 1, 2, 1))


def test_select_of_many_dims() -> None:
    arrays = [booleans(1, 3, 1, 2, 1, 3), draw(i8, DEEP), draw(i8, (2, 1, 2, 1, 2, 1), 1)]
    assert_same(one_op("select", arrays, (DEEP, i8)), arrays)


def scaling(multiplier: list[int], shift: list[int], zero_points: tuple[int, int], **others: Any) -> dict[str, Any]:
    return {
        "multiplier": np.asarray(multiplier, np.int32),
        "shift": np.asarray(shift, np.int8),
        "input_zp": zero_points[0],
        "output_zp": zero_points[1],
        "rounding_mode": "SINGLE_ROUND",
        "scale32": True,
        "per_channel": len(multiplier) > 1,
        **others,
    }


@pytest.mark.parametrize(
    ("source", "result", "attributes"),
    [
        (ui8, i8, scaling([1 << 30], [30], (0, -128))),
        (i8, ui8, scaling([1 << 30], [30], (-128, 0))),
        (ui16, i16, scaling([1 << 30], [30], (32768, 0))),
        (i16, ui16, scaling([1 << 30], [30], (0, 32768))),
        (i16, ui16, scaling([1518500250], [29], (0, 32768))),
        (i8, i16, scaling([1518500250], [24], (5, 0))),
        (i32, i8, scaling([1518500250] * 5, [50, 49, 48, 52, 53], (0, 3), rounding_mode="DOUBLE_ROUND")),
        (i32, i8, scaling([1518500250], [50], (0, 3), rounding_mode="INEXACT_ROUND")),
        (i64, i16, scaling([23170], [36], (0, 0), scale32=False)),
    ],
    ids=lambda v: str(v) if isinstance(v, ScalarType) else "",
)
def test_rescale(source: ScalarType, result: ScalarType, attributes: dict[str, Any]) -> None:
    x = draw(source, SHAPE, low=-(1 << 36), high=1 << 36) if source == i64 else draw(source, SHAPE)
    assert_same(one_op("rescale", [x], (SHAPE, result), attributes), [x])


def test_unsigned_edges_are_cheap() -> None:
    x = draw(ui8, SHAPE)
    names = assert_same(one_op("rescale", [x], (SHAPE, i8), scaling([1 << 30], [30], (0, -128))), [x])
    assert names == ["cast", "add", "cast"]


def test_tables() -> None:
    x, table = draw(i8, SHAPE), constant(draw(i8, (256,), 1))
    assert_same(one_op("table", [x, table], (SHAPE, i8)), [x])
    x, table = draw(i16, SHAPE), constant(draw(i16, (513,), 1, -3000, 3000))
    assert_same(one_op("table", [x, table], (SHAPE, i32)), [x])
