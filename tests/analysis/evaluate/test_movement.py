"""Evaluators of data movement: the interpreter's elements, for every op and its options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, interpret, one_op

from tflq.analysis.evaluate.registry import evaluate_op, evaluator
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, TensorType, i1, i8, i32, i64, ui8


def ints(*values: object) -> np.ndarray:
    return np.asarray(values, np.int32)


def scalar(value: int) -> np.ndarray:
    return np.asarray(value, np.int32)


def masks(**given: int) -> dict[str, Any]:
    names = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    return {**dict.fromkeys(names, 0), "offset": False, **given}


X = (2, 3, 4, 6)
PADS = ints((0, 1), (1, 2), (2, 0), (1, 1))
BLOCK_PADS = ints((1, 0), (1, 1))

CASES: list[tuple[str, list[np.ndarray], dict[str, Any], list[tuple[int, ...]], int]] = [
    ("reshape", [ints(6, -1)], {"new_shape": ints(6, -1)}, [(6, 24)], 1),
    ("expand_dims", [scalar(-1)], {}, [(*X, 1)], 1),
    ("transpose", [ints(3, 0, 2, 1)], {}, [(6, 2, 4, 3)], 2),
    ("pad", [PADS], {}, [(3, 6, 6, 8)], 1),
    ("padv2", [PADS, np.asarray(7, np.int8)], {}, [(3, 6, 6, 8)], 1),
    ("mirror_pad", [PADS], {"mode": "REFLECT"}, [(3, 6, 6, 8)], 2),
    ("mirror_pad", [PADS], {"mode": "SYMMETRIC"}, [(3, 6, 6, 8)], 2),
    ("split_v", [ints(1, -1, 2), scalar(-1)], {"num_splits": 3}, [(2, 3, 4, 1), (2, 3, 4, 3), (2, 3, 4, 2)], 2),
    ("slice", [ints(0, 1, 2, 1), ints(1, -1, 2, 3)], {}, [(1, 2, 2, 3)], 2),
    ("strided_slice", [ints(0, 2, 1, -1), ints(2, 0, 4, -6), ints(1, -1, 2, -2)], masks(), [(2, 2, 2, 3)], 2),
    ("strided_slice", [ints(1, 1), ints(2, 9), ints(1, 1)], masks(end_mask=2), [(1, 2, 4, 6)], 2),
    ("strided_slice", [ints(1, 0, 3), ints(2, 0, 9), ints(1, 1, 1)], masks(ellipsis_mask=2), [(1, 3, 4, 3)], 2),
    ("strided_slice", [ints(0, -1, 1), ints(0, 0, 3), ints(1, 1, 1)], masks(new_axis_mask=1), [(1, 1, 2, 4, 6)], 2),
    ("strided_slice", [ints(-1, 0), ints(0, 2), ints(1, 1)], masks(shrink_axis_mask=1), [(2, 4, 6)], 2),
    ("unpack", [], {"num": 3, "axis": -3}, [(2, 4, 6)] * 3, 2),
    ("gather", [ints(2, 0, 2)], {"axis": 1, "batch_dims": 0}, [(2, 3, 4, 6)], 2),
    ("gather", [ints((2, 0), (1, 1))], {"axis": -1, "batch_dims": 0}, [(2, 3, 4, 2, 2)], 2),
    ("gather", [ints((2, 0), (1, 1))], {"axis": 1, "batch_dims": 1}, [(2, 2, 4, 6)], 5),
    ("gather_nd", [ints((1, 2), (0, 0), (1, 0))], {}, [(3, 4, 6)], 2),
    ("tile", [ints(1, 2, 1, 3)], {}, [(2, 6, 4, 18)], 1),
    ("broadcast_to", [ints(2, 2, 3, 4, 6)], {}, [(2, *X)], 2),
    ("reverse_v2", [ints(3)], {}, [X], 2),
    ("shape", [], {"out_type": "INT32"}, [(4,)], 1),
    ("rank", [], {}, [()], 1),
    ("space_to_depth", [], {"block_size": 1}, [X], 2),
    ("depth_to_space", [], {"block_size": 1}, [X], 1),
    ("space_to_batch_nd", [ints(2, 3), BLOCK_PADS], {}, [(12, 2, 2, 6)], 2),
    ("batch_to_space_nd", [ints(2, 1), ints((1, 2), (0, 1))], {}, [(1, 3, 3, 6)], 2),
]


def assert_evaluates(op: Op, version: int) -> None:
    rng = np.random.default_rng(len(op.name))
    arrays = [None if v is None else v.array if v.is_constant else drawn(rng, v) for v in op.operands]
    inputs = [a for a, v in zip(arrays, op.operands, strict=True) if a is not None and v and not v.is_constant]
    model = one_op(op.name, op.operands, op.results, op.attributes, version)
    (want,) = interpret(model, [inputs])
    got = evaluate_op(op, arrays)
    assert got is not None
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)
        assert g.dtype == w.dtype


def drawn(rng: np.random.Generator, value: Value) -> np.ndarray:
    shape, dtype = [d or 0 for d in value.type.shape or ()], value.type.storage.dtype
    return rng.integers(0, 2 if dtype.kind == "b" else 127, shape).astype(dtype)


@pytest.mark.parametrize(("name", "extra", "attributes", "shapes", "version"), CASES, ids=lambda v: str(v)[:24])
def test_like_the_interpreter(
    name: str, extra: list[np.ndarray], attributes: dict[str, Any], shapes: list[tuple[int, ...]], version: int
) -> None:
    element = i32 if name in ("shape", "rank") else i8
    operands = [argument(X, i8), *(const(a, i8 if a.dtype == np.int8 else i32, f"c{i}") for i, a in enumerate(extra))]
    results = [argument(s, element, f"y{i}") for i, s in enumerate(shapes)]
    assert_evaluates(Op("tfl." + name, list(operands), results, attributes), version)


@pytest.mark.parametrize("block", [2, 3])
def test_blocks(block: int) -> None:
    wide, deep = argument((2, 12, 6, 5), i8), argument((2, 12 // block, 6 // block, 5 * block * block), i8, "y")
    assert_evaluates(Op("tfl.space_to_depth", [wide], [deep], {"block_size": block}), 2)
    wide, deep = argument((2, 12, 6, 5), i8, "y"), argument((2, 12 // block, 6 // block, 5 * block * block), i8)
    assert_evaluates(Op("tfl.depth_to_space", [deep], [wide], {"block_size": block}), 1)


def test_several_operands() -> None:
    a, b = argument((2, 3), i8, "a"), argument((2, 4), i8, "b")
    options = {"axis": -1, "fused_activation_function": "NONE"}
    assert_evaluates(Op("tfl.concatenation", [a, b], [argument((2, 7), i8, "y")], options), 2)
    c, d = argument((2, 3), i8, "c"), argument((2, 3), i8, "d")
    options = {"axis": 1, "values_count": 2}
    assert_evaluates(Op("tfl.pack", [c, d], [argument((2, 2, 3), i8, "y")], options), 2)
    parts = [argument((2, 2), i8, f"y{i}") for i in range(3)]
    split = Op("tfl.split", [const(scalar(1), i32), argument((2, 6), i8)], parts, {"num_splits": 3})
    assert_evaluates(split, 2)


def test_select() -> None:
    a, b = argument((3, 4), i8, "a"), argument((3, 4), i8, "b")
    assert_evaluates(Op("tfl.select", [argument((3,), i1, "c"), a, b], [argument((3, 4), i8, "y")]), 2)
    row = argument((4,), i8, "b")
    assert_evaluates(Op("tfl.select_v2", [argument((3, 1), i1, "c"), a, row], [argument((3, 4), i8, "y")]), 1)


def test_squeeze() -> None:
    x = argument((1, 3, 1, 4), i8)
    for dims, shape in (((), (3, 4)), ((0,), (3, 1, 4)), ((-2,), (1, 3, 4))):
        options = {"squeeze_dims": np.asarray(dims, np.int32)}
        assert_evaluates(Op("tfl.squeeze", [x], [argument(shape, i8, "y")], options), 1)


def test_made_of_nothing() -> None:
    dims, value = const(ints(2, 3), i32, "d"), const(np.asarray(5, np.int8), i8, "v")
    op = Op("tfl.fill", [dims, value], [argument((2, 3), i8, "y")])
    np.testing.assert_array_equal(evaluate_op(op, [dims.array, value.array]) or [], [np.full((2, 3), 5)])
    bounds = [const(scalar(v), i32, f"c{v}") for v in (2, 11, 3)]
    op = Op("tfl.range", list(bounds), [argument((3,), i32, "y")])
    np.testing.assert_array_equal(evaluate_op(op, [v.array for v in bounds]) or [], [[2, 5, 8]])


@pytest.mark.parametrize(
    ("source", "to", "out"), [(i8, ui8, (3, 4)), (i64, i32, (3, 4, 2)), (i32, i8, (3, 4, 4))], ids=str
)
def test_bitcast(source: ScalarType, to: ScalarType, out: tuple[int, ...]) -> None:
    assert_evaluates(Op("tfl.bitcast", [argument((3, 4), source)], [argument(out, to, "y")]), 1)
    if source != i8:
        assert_evaluates(Op("tfl.bitcast", [argument(out, to)], [argument((3, 4), source, "y")]), 1)


@pytest.mark.parametrize("to", [i1, ui8, i64], ids=str)
def test_cast(to: ScalarType) -> None:
    options = {"in_data_type": "INT32", "out_data_type": {i1: "BOOL", ui8: "UINT8", i64: "INT64"}[to]}
    assert_evaluates(Op("tfl.cast", [argument((3, 4), i32)], [argument((3, 4), to, "y")], options), 1)


def test_an_op_without_an_evaluator() -> None:
    assert "tfl.custom" not in evaluator.names()
    assert evaluate_op(Op("tfl.custom", [], [Value(TensorType((), i32))]), []) is None
