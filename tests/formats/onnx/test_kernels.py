"""Operators of TFLite on plain tensors, in ONNX Runtime as in the interpreter: those that the float fallback leaves
between casts, and those that no evaluator computes. Whole numbers are equal, floats as near as their functions are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest
from support.harness import argument, const, one_op
from support.on_onnx import file_of, need_onnx, run_file

import tflq
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import (
    ScalarType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    f32,
    i1,
    i8,
    i16,
    i32,
    i64,
    ui8,
)

ACTIVATION: Final = {"fused_activation_function": "RELU6"}
NONE: Final = {"fused_activation_function": "NONE"}
_WINDOW = {"padding": "SAME", "stride_w": 2, "stride_h": 1, "filter_width": 2, "filter_height": 3}
_CONV = {"padding": "SAME", "stride_w": 2, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 2}
RNG: Final = np.random.default_rng(5)

Row = tuple[str, Sequence[Value | None], ScalarType, tuple[int | None, ...], dict[str, Any]]


def floats(*shape: int) -> Value:
    return const(RNG.normal(size=shape), f32)


CASES: Final[list[Row]] = [
    *((f"tfl.{n}", [argument((2, 9), f32)], f32, (2, 9), {}) for n in ("abs", "ceil", "cos", "exp", "floor", "neg")),
    *((f"tfl.{n}", [argument((2, 9), f32)], f32, (2, 9), {}) for n in ("round", "sin", "square", "relu", "relu6")),
    *((f"tfl.{n}", [argument((2, 9), f32)], f32, (2, 9), {}) for n in ("elu", "hard_swish", "logistic", "tanh")),
    *(("tfl.gelu", [argument((2, 9), f32)], f32, (2, 9), {"approximate": flag}) for flag in (False, True)),
    ("tfl.relu_n1_to_1", [argument((2, 9), f32)], f32, (2, 9), {}),
    ("tfl.leaky_relu", [argument((2, 9), f32)], f32, (2, 9), {"alpha": 0.3}),
    ("tfl.prelu", [argument((2, 3, 4, 9), f32), floats(1, 1, 9)], f32, (2, 3, 4, 9), {}),
    ("tfl.softmax", [argument((2, 9), f32)], f32, (2, 9), {"beta": 1.0}),
    ("tfl.log_softmax", [argument((2, 9), f32)], f32, (2, 9), {}),
    ("tfl.l2_normalization", [argument((2, 9), f32)], f32, (2, 9), NONE),
    *(
        (f"tfl.{n}", [argument((2, 9), f32), argument((9,), f32, "b")], f32, (2, 9), ACTIVATION)
        for n in ("add", "sub", "mul")
    ),
    ("tfl.div", [argument((2, 9), f32), floats(9)], f32, (2, 9), NONE),
    ("tfl.pow", [argument((2, 9), f32), const(np.full(9, 2.0), f32)], f32, (2, 9), {}),
    ("tfl.mean", [argument((2, 5, 9), f32), const(np.asarray([1]), i32)], f32, (2, 9), {"keep_dims": False}),
    ("tfl.average_pool_2d", [argument((1, 5, 6, 3), f32)], f32, (1, 5, 3, 3), _WINDOW | NONE),
    ("tfl.max_pool_2d", [argument((1, 5, 6, 3), f32)], f32, (1, 5, 3, 3), _WINDOW | NONE),
    (
        "tfl.conv_2d",
        [argument((1, 7, 6, 3), f32), floats(4, 3, 2, 3), floats(4)],
        f32,
        (1, 7, 3, 4),
        _CONV | ACTIVATION,
    ),
    (
        "tfl.depthwise_conv_2d",
        [argument((1, 7, 6, 3), f32), floats(1, 3, 2, 6), floats(6)],
        f32,
        (1, 7, 3, 6),
        _CONV | NONE | {"depth_multiplier": 2},
    ),
    (
        "tfl.fully_connected",
        [argument((4, 6), f32), floats(5, 6), floats(5)],
        f32,
        (4, 5),
        NONE | {"weights_format": "DEFAULT", "keep_num_dims": False},
    ),
    (
        "tfl.batch_matmul",
        [argument((2, 4, 6), f32), argument((2, 5, 6), f32, "b")],
        f32,
        (2, 4, 5),
        {"adj_x": False, "adj_y": True},
    ),
    ("tfl.squared_difference", [argument((9,), i32), argument((9,), i32, "b")], i32, (9,), {}),
    ("tfl.add_n", [argument((9,), i32), argument((9,), i32, "b")], i32, (9,), {}),
    ("tfl.bitwise_xor", [argument((9,), i32), argument((9,), i32, "b")], i32, (9,), {}),
    ("tfl.right_shift", [argument((9,), i32), const(np.arange(9), i32)], i32, (9,), {}),
    (
        "tfl.cumsum",
        [argument((3, 4), i32), const(np.asarray([1]), i32)],
        i32,
        (3, 4),
        {"exclusive": True, "reverse": True},
    ),
    *(
        (
            "tfl.dynamic_update_slice",
            [argument((4, 5), e), argument((2, 3), e, "b"), const(np.asarray([3, 1]), i32)],
            e,
            (4, 5),
            {},
        )
        for e in (i8, f32)
    ),
    *(
        (
            f"tfl.arg_{n}",
            [argument((3, 7, 2), e), const(np.asarray(axis), i32)],
            to,
            shape,
            {"output_type": f"INT{to.bits}"},
        )
        for n, e, to, axis, shape in (
            ("max", f32, i64, -2, (3, 2)),
            ("min", f32, i32, 2, (3, 7)),
            ("max", i32, i32, 0, (7, 2)),
            ("min", i32, i64, 1, (3, 2)),
        )
    ),
    *(
        (
            "tfl.resize_bilinear",
            [argument((2, 3, 5, 2), f32), const(np.asarray(size), i32)],
            f32,
            (2, *size, 2),
            {"align_corners": corners, "half_pixel_centers": half},
        )
        for size, corners, half in (((7, 4), False, False), ((7, 11), True, False), ((2, 9), False, True))
    ),
    *(
        (
            "tfl.transpose_conv",
            [const(np.asarray([1, *size, 4]), i32), floats(4, 3, 2, 3), argument((1, 4, 5, 3), f32), floats(4)],
            f32,
            (1, *size, 4),
            {"padding": padding, "stride_w": 2, "stride_h": 3} | ACTIVATION,
        )
        for padding, size in (("SAME", (12, 10)), ("SAME", (11, 9)), ("VALID", (12, 10)), ("VALID", (14, 11)))
    ),
    (
        "tfl.conv_3d",
        [argument((1, 4, 5, 6, 2), f32), floats(2, 3, 2, 2, 4), floats(4)],
        f32,
        (1, 2, 5, 3, 4),
        {"padding": "SAME", "stride_d": 2, "stride_h": 1, "stride_w": 2} | NONE,
    ),
    ("tfl.l2_pool_2d", [argument((1, 5, 6, 3), f32)], f32, (1, 5, 3, 3), _WINDOW | NONE),
    ("tfl.matrix_diag", [argument((2, 3), i8)], i8, (2, 3, 3), {}),
    ("tfl.matrix_set_diag", [argument((2, 3, 4), f32), argument((2, 3), f32, "b")], f32, (2, 3, 4), {}),
    ("tfl.floor_mod", [argument((2, 9), f32), floats(9)], f32, (2, 9), {}),
    ("tfl.zeros_like", [argument((2, 9), f32)], f32, (2, 9), {}),
    (
        "tfl.one_hot",
        [argument((2, 3), i32), *(const(np.asarray(n), e) for n, e in ((4, i32), (2, f32), (-1, f32)))],
        f32,
        (2, 4, 3),
        {"axis": 1},
    ),
    ("tfl.where", [argument((3, 4), i1)], i64, (None, 2), {}),
    *(
        ("tfl.embedding_lookup", [const(np.asarray([2, 0, 2]), i32), table], f32, (3, 4), {})
        for table in (
            const(RNG.integers(-127, 127, (3, 4)), UniformQuantizedType.of(i8, 0.1, 0)),
            const(RNG.integers(-127, 127, (3, 4)), UniformQuantizedPerAxisType.of(i8, 0, [0.1, 0.2, 0.05])),
        )
    ),
    ("tfl.embedding_lookup", [const(np.asarray([2, 0, 2]), i32), argument((3, 4), f32)], f32, (3, 4), {}),
    *(
        ("tfl.scatter_nd", [const(places, i32), argument((4, 5), e), const(np.asarray(shape), i32)], e, shape, {})
        for e in (f32, i8, i32, i64)
        for places, shape in (
            (np.asarray([[2], [0], [2], [2]]), (3, 5)),
            (np.asarray([[2, 1], [0, 0], [1, 1], [0, 1]]), (3, 2, 5)),
        )
    ),
]


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda n: CASES[n][0].removeprefix("tfl."))
def test_as_the_interpreter(number: int) -> None:
    need_onnx()
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    name, operands, element, shape, attributes = CASES[number]
    model = one_op(name, operands, [argument(shape, element, "y")], attributes)
    result = tflq.verify(model, tflq.convert(model, format="onnx").data, atol=1e-6, rtol=1e-5)
    assert result.passed, result.verdict


def test_shapes_that_are_known_when_the_model_runs() -> None:
    """SHAPE, its last dim as the limit of RANGE, FILL of as many, RANK."""
    need_onnx()
    x, shape, last = argument((None, 3), i8), argument((2,), i32, "shape"), argument((), i32, "last")
    counted, filled, rank = (
        argument((None,), i32, "counted"),
        argument((None, 3), i8, "filled"),
        argument((), i32, "rank"),
    )
    zero, one = (const(np.asarray(n), i32) for n in (0, 1))
    ops = [
        Op("tfl.shape", [x], [shape], {"out_type": "INT32"}),
        Op("tfl.gather", [shape, zero], [last], {"axis": 0, "batch_dims": 0}),
        Op("tfl.range", [zero, last, one], [counted]),
        Op("tfl.fill", [shape, const(np.asarray(7), i8)], [filled]),
        Op("tfl.rank", [x], [rank]),
    ]
    data = file_of(Module([Function("main", [x], [shape, counted, filled, rank], ops)]))
    made = run_file(data, {"x": np.zeros((4, 3), np.int8)})
    assert [a.tolist() for a in made] == [[4, 3], [0, 1, 2, 3], [[7] * 3] * 4, 2]


def test_places_and_counts_that_are_computed() -> None:
    """SLICE, TILE and TOPK_V2."""
    need_onnx()
    x, begin, size, k = (
        argument((3, 4), i8),
        argument((2,), i32, "begin"),
        argument((2,), i32, "size"),
        argument((), i32, "k"),
    )
    part, tiled = argument((None, None), i8, "part"), argument((None, None), i8, "tiled")
    most, places = argument((3, None), i8, "most"), argument((3, None), i32, "places")
    ops = [
        Op("tfl.slice", [x, begin, size], [part]),
        Op("tfl.tile", [x, begin], [tiled]),
        Op("tfl.topk_v2", [x, k], [most, places]),
    ]
    data = file_of(Module([Function("main", [x, begin, size, k], [part, tiled, most, places], ops)]))
    array = np.arange(12, dtype=np.int8).reshape(3, 4)
    given = {"begin": np.asarray([1, 2], np.int32), "size": np.asarray([-1, 1], np.int32), "k": np.asarray(2, np.int32)}
    made = run_file(data, {"x": array, **given})
    wanted = array[1:, 2:3], np.tile(array, (1, 2)), array[:, :1:-1], np.asarray([[3, 2]] * 3)
    for got, want in zip(made, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("element", [i16, ui8], ids=str)
def test_the_greatest_and_their_places(element: ScalarType) -> None:
    need_onnx()
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    results = [argument((3, 7), element, "values"), argument((3, 7), i32, "places")]
    model = one_op("tfl.topk_v2", [argument((3, 40), element), const(np.asarray(7), i32)], results, {}, version=3)
    assert tflq.verify(model, tflq.convert(model, format="onnx").data).equal
