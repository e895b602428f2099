"""Each op of the integer form gives in ONNX Runtime what it evaluates to, on random numbers and at both ends."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pytest
from support.harness import argument, const, edge_inputs
from support.on_onnx import assert_same, function_of, need_onnx

from tflq.ir.ops import Op, Value
from tflq.ir.types import ElementType, ScalarType, UniformQuantizedType, f32, i1, i8, i16, i32, i64, ui8

ELSEWHERE: Final = {
    *("tfl.bitwise_xor", "tfl.right_shift", "tfl.squared_difference", "tfl.add_n", "tfl.max_pool_2d", "tfl.cumsum"),
    *("tfl.topk_v2", "tfl.dynamic_update_slice", "tfl.mean", "tfl.conv_2d", "tfl.depthwise_conv_2d"),
    *("tfl.fully_connected", "tfl.relu", "tfl.relu6", "tfl.relu_n1_to_1", "tfl.relu_0_to_1", "tfl.leaky_relu"),
    *("tfl.prelu", "tfl.elu", "tfl.gelu", "tfl.hard_swish", "tfl.logistic", "tfl.tanh", "tfl.softmax"),
    *("tfl.log_softmax", "tfl.l2_normalization", "tfl.round", "tfl.cos", "tfl.sin", "tfl.exp", "tfl.log", "tfl.sqrt"),
    *(f"tosa.{n}" for n in ("cos", "erf", "exp", "log", "reciprocal", "rsqrt", "sigmoid", "sin", "tanh", "pow")),
    *("tfl.rsqrt", "tfl.sign"),  # test_kernels.py
    *("tosa.variable", "tosa.variable_read", "tosa.variable_write", "tfl.var_handle", "tfl.read_variable"),
    *("tfl.assign_variable", "tfl.call_once", "tfl.call", "tfl.stablehlo_composite"),  # test_state.py
    *("tfl.dequantize", "tfl.batch_matmul", "tfl.average_pool_2d", "tfl.pow", "tfl.arg_max", "tfl.arg_min"),
    *("tfl.resize_bilinear", "tfl.transpose_conv", "tfl.conv_3d", "tfl.l2_pool_2d", "tfl.one_hot", "tfl.where"),
    *("tfl.shape", "tfl.rank", "tfl.fill", "tfl.range"),
    *("tfl.matrix_diag", "tfl.matrix_set_diag"),
    *("tfl.embedding_lookup", "tfl.scatter_nd", "tfl.if", "tfl.while"),  # test_indexing.py, test_control.py, too
}
Q = UniformQuantizedType.of(i8, 0.1, 3)


def x(element: ElementType, *shape: int) -> Value:
    return argument(shape, element)


def c(element: ScalarType, numbers: Any) -> Value:
    return const(np.asarray(numbers), element)


def draw(element: ScalarType, *shape: int, low: int | None = None, high: int | None = None) -> Value:
    """A constant of random numbers, the same in every run."""
    rng = np.random.default_rng(zlib.crc32(f"{element} {shape}".encode()))
    least, most = element.minimum if low is None else low, element.maximum if high is None else high
    return c(element, rng.integers(least, most, shape, endpoint=True))


class Case(NamedTuple):
    """An op: its name, operands, results by element type and shape, attributes; bounds of its arguments."""

    name: str
    operands: Sequence[Value]
    results: Sequence[tuple[ElementType, tuple[int, ...]]]
    attributes: dict[str, Any] = {}  # noqa: RUF012 - of a tuple
    bounds: tuple[int, int] | None = None


def binary(name: str, element: ScalarType, result: ScalarType | None = None, **attributes: Any) -> list[Case]:
    """An op of two tensors, and of a tensor and one number for each channel."""
    made = [(result or element, (2, 3, 4))]
    pairs = [(x(element, 2, 3, 4), x(element, 3, 4)), (x(element, 2, 3, 4), draw(element, 4))]
    return [Case(name, pair, made, attributes) for pair in pairs]


def rescale(element: ScalarType, to: ScalarType, multiplier: Any, shift: Any, **more: Any) -> Case:
    rows = np.atleast_1d(np.asarray(multiplier, np.int32)), np.atleast_1d(np.asarray(shift, np.int8))
    options = {
        "multiplier": rows[0],
        "shift": rows[1],
        "input_zp": 0,
        "output_zp": 0,
        "rounding_mode": "DOUBLE_ROUND",
        "scale32": element != i64,
        "per_channel": rows[0].size > 1,
    }
    return Case("tosa.rescale", [x(element, 3, 5, 4)], [(to, (3, 5, 4))], options | more)


def convolution(element: ScalarType, weight: ScalarType, acc: ScalarType, depth: int, **more: Any) -> Case:
    options = {"pad": (1, 1, 0, 2), "stride": (2, 1), "dilation": (1, 2), "input_zp": 0, "weight_zp": 0}
    operands = [x(element, 2, 6, 7, depth), draw(weight, 5, 3, 2, depth), draw(acc, 5, low=-(2**20), high=2**20)]
    return Case("tosa.conv2d", operands, [(acc, (2, 3, 7, 5))], options | more)


def pool(name: str, element: ScalarType, **more: Any) -> Case:
    options = {"kernel": (3, 2), "stride": (2, 2), "pad": (1, 0, 1, 0)}
    return Case(name, [x(element, 1, 6, 7, 3)], [(element, (1, 3, 4, 3))], options | more)


def resize(element: ScalarType, to: ScalarType, mode: str) -> Case:
    options = {"scale": (4, 2, 6, 2), "offset": (-1, 1), "border": (1, 3), "mode": mode}
    return Case("tosa.resize", [x(element, 1, 4, 5, 3)], [(to, (1, 7, 14, 3))], options)


def moved(name: str, shape: tuple[int, ...], result: tuple[int, ...], *others: Value, **attributes: Any) -> list[Case]:
    """An op that moves elements, of bytes and of int16."""
    return [Case(name, [x(e, *shape), *others], [(e, result)], attributes) for e in (i8, ui8, i16)]


def compared(name: str) -> list[Case]:
    return [*binary(name, i32, i1), Case(name, [x(i8, 9), x(i8, 9)], [(i1, (9,))])]


_MASKS = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
_ACTIVATION: dict[str, Any] = {"fused_activation_function": "NONE"}
_LOGISTIC = np.rint(32767 / (1 + np.exp(-np.arange(-32768, 32768) / 8192))).astype(np.int64)

CASES: Final[list[Case]] = [
    *(case for name in ("add", "sub", "maximum", "minimum") for case in binary(f"tosa.{name}", i32)),
    *binary("tosa.add", i64),
    *binary("tosa.maximum", ui8),
    *(case for shift in (0, 1, 11, 31, 40) for case in binary("tosa.mul", i32, shift=shift)),
    Case("tosa.mul", [x(i16, 4), x(i16, 4)], [(i32, (4,))], {"shift": 0}),
    Case("tosa.intdiv", [x(i32, 6), c(i32, [1, 2, 3, -5, 7, 100])], [(i32, (6,))]),
    Case("tosa.abs", [x(i32, 9)], [(i32, (9,))], bounds=(-(2**31) + 1, 2**31 - 1)),
    *(Case("tosa.negate", [x(e, 9)], [(e, (9,))], {"input1_zp": 3, "output_zp": -2}) for e in (i8, i32)),
    Case("tosa.clamp", [x(i8, 9)], [(i8, (9,))], {"min_val": -3, "max_val": 100}),
    Case("tosa.clamp", [x(i32, 9)], [(i32, (9,))], {"min_val": -30000000, "max_val": 2**30 + 1}),
    *(case for name in ("equal", "greater", "greater_equal") for case in compared(f"tosa.{name}")),
    *(
        case
        for n in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
        for case in compared(f"tfl.{n}")
    ),
    Case("tosa.equal", [x(i1, 9), x(i1, 9)], [(i1, (9,))]),
    Case("tosa.select", [x(i1, 3, 4), x(i32, 3, 4), x(i32, 4)], [(i32, (3, 4))]),
    Case("tosa.select", [x(i1, 4), x(i1, 4), x(i1, 4)], [(i1, (4,))]),
    Case("tfl.select_v2", [x(i1, 3, 1), x(ui8, 3, 4), x(ui8, 4)], [(ui8, (3, 4))]),
    Case("tfl.select", [x(i1, 3), x(i16, 3, 4), x(i16, 3, 4)], [(i16, (3, 4))]),
    *(case for n in ("logical_and", "logical_or", "logical_xor") for case in binary(f"tosa.{n}", i1)),
    *(case for n in ("logical_and", "logical_or") for case in binary(f"tfl.{n}", i1)),
    *(Case(name, [x(i1, 9)], [(i1, (9,))]) for name in ("tosa.logical_not", "tfl.logical_not")),
    *(c2 for n in ("tosa.bitwise_and", "tosa.bitwise_or", "tosa.bitwise_xor") for c2 in binary(n, i32)),
    *(Case("tosa.bitwise_not", [x(e, 9)], [(e, (9,))]) for e in (i8, ui8, i32)),
    *(
        Case(f"tosa.{n}", [x(i32, 32), c(i32, range(32))], [(i32, (32,))])
        for n in ("logical_left_shift", "logical_right_shift")
    ),
    Case("tosa.logical_left_shift", [c(i32, 12345), x(i32, 9)], [(i32, (9,))], bounds=(0, 31)),
    *(
        case
        for r in (False, True)
        for case in (
            Case("tosa.arithmetic_right_shift", [x(i32, 32), c(i32, range(32))], [(i32, (32,))], {"round": r}),
            Case("tosa.arithmetic_right_shift", [draw(i32, 50), x(i32, 50)], [(i32, (50,))], {"round": r}, (0, 31)),
            Case("tosa.arithmetic_right_shift", [x(i16, 9), c(i16, 5)], [(i16, (9,))], {"round": r}),
        )
    ),
    Case("tosa.clz", [x(i32, 9)], [(i32, (9,))]),
    Case("tosa.clz", [x(i32, 99)], [(i32, (99,))], bounds=(-2, 5)),
    *(case for n in ("add", "sub", "mul") for case in binary(f"tfl.{n}", i32, **_ACTIVATION)),
    *(case for n in ("maximum", "minimum") for case in binary(f"tfl.{n}", i32)),
    Case("tfl.div", [x(i32, 6), c(i32, [1, 2, 3, -5, 7, 100])], [(i32, (6,))], _ACTIVATION),
    *(Case(f"tfl.floor_{n}", [x(i32, 6), c(i32, [1, 2, 3, -5, 7, 100])], [(i32, (6,))]) for n in ("div", "mod")),
    *(Case(f"tfl.{n}", [x(i32, 9)], [(i32, (9,))]) for n in ("abs", "neg", "square", "zeros_like")),
    *(Case(f"{d}.{n}", [x(f32, 9)], [(f32, (9,))]) for d in ("tosa", "tfl") for n in ("floor", "ceil")),
    # casts and tables
    *(Case("tosa.cast", [x(a, 50)], [(b, (50,))]) for a in (i8, ui8, i16, i32) for b in (i8, ui8, i16, i32, i64, f32)),
    Case("tosa.cast", [x(f32, 50)], [(i8, (50,))], bounds=(-200, 200)),
    Case("tosa.cast", [x(i32, 50)], [(i1, (50,))], bounds=(-1, 1)),
    Case("tfl.cast", [x(f32, 50)], [(i32, (50,))]),
    Case("tfl.cast", [x(i32, 50)], [(i8, (50,))]),
    *(Case("ext.truncate", [x(f32, 50)], [(e, (50,))], {}, (-70000, 70000)) for e in (ui8, i16, i32)),
    Case("quant.scast", [x(Q, 9)], [(i8, (9,))]),
    Case("quant.dcast", [x(Q, 9)], [(f32, (9,))]),
    *(Case("quant.qcast", [x(f32, 99)], [(Q, (99,))], {"rounding": r}, (-20, 20)) for r in ("half_away", "half_even")),
    *(
        Case("tosa.table", [x(e, 50), draw(to, 256)], [(to, (50,))])
        for e, to in ((i8, i8), (ui8, ui8), (i8, i32), (ui8, i16))
    ),
    Case("tosa.table", [x(i8, 50), c(i8, np.arange(256) // 3)], [(i8, (50,))]),
    Case("tosa.table", [x(i16, 50), draw(i16, 513)], [(i32, (50,))]),
    Case("ext.table_16bit", [x(i16, 50), c(i16, _LOGISTIC)], [(i16, (50,))]),
    Case("ext.table_16bit", [x(i16, 50), draw(i32, 1 << 16)], [(i32, (50,))]),
    Case("ext.table_2d", [x(i8, 5, 9), x(i8, 9), draw(i8, 1 << 16)], [(i8, (5, 9))]),
    Case(
        "ext.table_2d",
        [x(ui8, 50), x(i8, 50), c(ui8, np.add.outer(np.arange(256), np.arange(256)).ravel() // 2)],
        [(ui8, (50,))],
    ),
    # requantization
    *(rescale(i32, e, m, 38, output_zp=5 * (e != i32)) for e in (i8, ui8, i16, i32) for m in (1518500250, 1073741824)),
    rescale(i32, i8, [1518500250, 1073741824, 1999999999, 0], [38, 44, 31, 62], output_zp=-128),
    rescale(i32, i16, [1518500250, 1073741824, 1999999999, 0], [33, 40, 45, 62]),
    rescale(i32, i32, 1073741825, 30, rounding_mode="SINGLE_ROUND"),
    rescale(i8, i8, 1073741824, 29, input_zp=-3, output_zp=7),
    rescale(ui8, i8, 1073741824, 30, input_zp=128),
    rescale(i64, i16, [18000, 32000, 20001, 17], [30, 25, 31, 20], rounding_mode="SINGLE_ROUND")._replace(
        bounds=(-(2**46), 2**46)
    ),
    *(
        Case("ext.rescale_f64", [x(e, 3, 4)], [(to, (3, 4))], {"scale": np.asarray(scale, np.float64), "output_zp": 3})
        for e, to, scale in ((i32, i8, [1e-6]), (i32, ui8, [1e-7, 2.5e-8, 1e-9, 3e-7]), (i64, i16, [1e-14]))
    ),
    Case(
        "ext.rescale_f32",
        [x(i32, 3, 4)],
        [(i8, (3, 4))],
        {"scale": np.asarray([0.01, 0.0078125, 0.5, 0.003], np.float32), "output_zp": 3},
        (-(1 << 20), 1 << 20),
    ),
    Case(
        "ext.rescale_i64",
        [x(i64, 3, 4)],
        [(i32, (3, 4))],
        {"multiplier": np.asarray([3, 30000, 7, 2], np.int32), "shift": np.asarray([0, 15, 63, 1], np.int8)},
    ),
    Case(
        "ext.rescale_mean",
        [x(i32, 2, 1, 1, 3), x(i8, 2, 7, 5, 3)],
        [(i8, (2, 1, 1, 3))],
        {"axes": (1, 2), "multiplier": 1518500250, "shift": -1, "output_zp": -4},
        (-128 * 35, 127 * 35),
    ),
    Case("ext.rounding_divide_by_pot", [x(i64, 9)], [(i16, (9,))], {"exponent": 20}, (-(2**34), 2**34)),
    # sums of products
    convolution(i8, i8, i32, 3, input_zp=-5),
    convolution(ui8, ui8, i32, 3, input_zp=131, weight_zp=100),
    convolution(i16, i8, i64, 3),
    convolution(i8, i8, i32, 300, input_zp=100),
    convolution(i16, i8, i64, 400),
    Case(
        "tosa.conv2d",
        [x(i8, 2, 1, 1, 30), draw(i8, 4, 1, 1, 30), draw(i32, 4)],
        [(i32, (2, 1, 1, 4))],
        {"pad": (0,) * 4, "stride": (1, 1), "dilation": (1, 1), "input_zp": 9, "weight_zp": 0},
    ),
    Case(
        "tosa.conv2d",
        [x(i8, 2, 4, 4, 3), x(i8, 4, 2, 2, 3), draw(i32, 4, low=-9, high=9)],
        [(i32, (2, 3, 3, 4))],
        {"pad": (0,) * 4, "stride": (1, 1), "dilation": (1, 1), "input_zp": 9, "weight_zp": -1},
    ),
    Case(
        "tosa.conv3d",
        [x(i8, 1, 4, 5, 6, 2), draw(i8, 3, 2, 2, 3, 2), draw(i32, 3, low=-99, high=99)],
        [(i32, (1, 3, 4, 4, 3))],
        {"pad": (0,) * 6, "stride": (1, 1, 1), "dilation": (1, 1, 1), "input_zp": 2, "weight_zp": 0},
    ),
    *(
        Case(
            "tosa.depthwise_conv2d",
            [x(e, 1, 5, 6, 3), draw(i8, 3, 2, 3, 2), draw(acc, 6, low=-(2**20), high=2**20)],
            [(acc, (1, 5, 6, 6))],
            {"pad": (1, 1, 0, 1), "stride": (1, 1), "dilation": (1, 1), "input_zp": 0, "weight_zp": 0},
        )
        for e, acc in ((i8, i32), (i16, i64))
    ),
    *(
        Case(
            "tosa.transpose_conv2d",
            [x(e, 1, 3, 4, 2), draw(i8, 5, 3, 3, 2), draw(acc, 5, low=-(2**20), high=2**20)],
            [(acc, (1, 7 + sum(pads[:2]), 9 + sum(pads[2:]), 5))],
            {"out_pad": pads, "stride": (2, 2), "input_zp": 0, "weight_zp": 0},
        )
        for e, acc, pads in ((i8, i32, (-1, 0, 0, -2)), (i16, i64, (0, 0, 0, 0)), (i8, i32, (0, 2, 1, 0)))
    ),
    Case("tosa.matmul", [x(i8, 2, 3, 5), x(i8, 5, 4)], [(i32, (2, 3, 4))], {"a_zp": 3, "b_zp": -7}),
    Case("tosa.matmul", [x(i16, 2, 3, 50), x(i16, 2, 50, 4)], [(i64, (2, 3, 4))], {"a_zp": 0, "b_zp": 0}),
    # pools, images
    *(pool("tosa.max_pool2d", e) for e in (i8, ui8, i16)),
    *(pool("tosa.avg_pool2d", e, input_zp=0, output_zp=0) for e in (i8, ui8, i16)),
    pool("tosa.avg_pool2d", i8, input_zp=-7, output_zp=9),
    Case(
        "tosa.avg_pool2d",
        [x(i16, 1, 11, 11, 2)],
        [(i16, (1, 1, 1, 2))],
        {"kernel": (11, 11), "stride": (1, 1), "pad": (0,) * 4, "input_zp": 0, "output_zp": 0},
    ),
    *(resize(e, to, "BILINEAR") for e, to in ((i8, i32), (ui8, i32), (i16, i64))),
    *(resize(e, e, "NEAREST_NEIGHBOR") for e in (i8, ui8, i16)),
    Case(
        "tfl.resize_nearest_neighbor",
        [x(i8, 1, 4, 5, 3), c(i32, [9, 3])],
        [(i8, (1, 9, 3, 3))],
        {"align_corners": False, "half_pixel_centers": True},
    ),
    # reductions
    *(
        Case(f"tosa.reduce_{n}", [x(e, 3, 4, 5)], [(e, (3, 1, 5))], {"axis": 1})
        for n in ("max", "min")
        for e in (i8, ui8, i16, i32)
    ),
    *(Case("tosa.reduce_sum", [x(e, 3, 4, 5)], [(e, (3, 1, 5))], {"axis": 1}) for e in (i32,)),
    *(Case(f"tosa.reduce_{n}", [x(i1, 3, 4)], [(i1, (3, 1))], {"axis": 1}) for n in ("all", "any")),
    *(
        Case(f"tfl.{n}", [x(i32, 3, 4, 5), c(i32, [0, -1])], [(i32, (4,))], {"keep_dims": False})
        for n in ("sum", "reduce_max", "reduce_min", "reduce_prod")
    ),
    *(Case(f"tfl.reduce_{n}", [x(i1, 3, 4), c(i32, [1])], [(i1, (3, 1))], {"keep_dims": True}) for n in ("all", "any")),
    *(Case("tosa.argmax", [x(e, 3, 7)], [(i32, (3,))], {"axis": 1}) for e in (i8, ui8, i16)),
    # movement
    *moved("tosa.identity", (3, 4), (3, 4)),
    *moved("tosa.reshape", (3, 4), (2, 6)),
    *moved("tfl.reshape", (3, 4), (2, 6), c(i32, [2, 6]), new_shape=(2, 6)),
    *moved("tfl.squeeze", (3, 1, 4), (3, 4), squeeze_dims=(1,)),
    *moved("tfl.expand_dims", (3, 4), (3, 1, 4), c(i32, 1)),
    *moved("tosa.transpose", (3, 4, 5), (5, 3, 4), perms=(2, 0, 1)),
    *moved("tfl.transpose", (3, 4, 5), (5, 3, 4), c(i32, [2, 0, 1])),
    *moved("tosa.slice", (3, 4), (2, 3), start=(1, 0), size=(2, 3)),
    *moved("tfl.slice", (3, 4), (2, 4), c(i32, [1, 0]), c(i32, [2, -1])),
    *moved(
        "tfl.strided_slice",
        (5, 6),
        (2, 6),
        c(i32, [1, 0]),
        c(i32, [4, 0]),
        c(i32, [2, -1]),
        **_MASKS | {"begin_mask": 2, "end_mask": 2},
        offset=False,
    ),
    *moved(
        "tfl.strided_slice",
        (5, 6),
        (3,),
        c(i32, [-1, 1]),
        c(i32, [0, 4]),
        c(i32, [1, 1]),
        **_MASKS | {"shrink_axis_mask": 1},
        offset=False,
    ),
    *moved(
        "tfl.strided_slice",
        (5, 6),
        (5, 1, 2),
        c(i32, [0, 0, 1]),
        c(i32, [0, 0, 3]),
        c(i32, [1, 1, 1]),
        **_MASKS | {"ellipsis_mask": 1, "new_axis_mask": 2},
        offset=False,
    ),
    *moved("tosa.pad", (2, 3), (5, 4), padding=(1, 2, 0, 1), pad_const=3),
    *moved("tfl.pad", (2, 3), (5, 4), c(i32, [[1, 2], [0, 1]])),
    *moved("tfl.mirror_pad", (3, 4), (6, 6), c(i32, [[1, 2], [0, 2]]), mode="SYMMETRIC"),
    *(Case("tfl.padv2", [x(e, 2, 3), c(i32, [[1, 2], [0, 1]]), c(e, 7)], [(e, (5, 4))]) for e in (i8, ui8, i16)),
    Case("tosa.pad", [x(i1, 3)], [(i1, (5,))], {"padding": (1, 1), "pad_const": 1}),
    *moved("tosa.tile", (2, 3), (4, 9), multiples=(2, 3)),
    *moved("tfl.tile", (2, 3), (4, 9), c(i32, [2, 3])),
    *moved("tfl.broadcast_to", (2, 1), (4, 2, 3), c(i32, [4, 2, 3])),
    *moved("tosa.reverse", (3, 4), (3, 4), axis=1),
    *moved("tfl.reverse_v2", (3, 4), (3, 4), c(i32, [1])),
    *moved("tfl.reverse_sequence", (3, 4), (3, 4), c(i32, [1, 4, 2]), seq_dim=1, batch_dim=0),
    *moved("tfl.space_to_depth", (1, 4, 6, 3), (1, 2, 3, 12), block_size=2),
    *moved("tfl.depth_to_space", (1, 2, 3, 12), (1, 4, 6, 3), block_size=2),
    *moved("tfl.space_to_batch_nd", (1, 4, 5, 3), (6, 3, 2, 3), c(i32, [2, 3]), c(i32, [[1, 1], [0, 1]])),
    *moved("tfl.batch_to_space_nd", (6, 3, 2, 3), (1, 4, 5, 3), c(i32, [2, 3]), c(i32, [[1, 1], [0, 1]])),
    *(
        Case(n, [x(e, 2, 3), draw(e, 1, 3), x(e, 2, 3)], [(e, (5, 3))], {"axis": 0})
        for n in ("tosa.concat",)
        for e in (i8, ui8, i16)
    ),
    Case("tfl.concatenation", [x(i8, 2, 3), x(i8, 2, 2)], [(i8, (2, 5))], {"axis": -1, **_ACTIVATION}),
    Case("tfl.pack", [x(i8, 2, 3), x(i8, 2, 3)], [(i8, (2, 2, 3))], {"axis": 1, "values_count": 2}),
    Case("tfl.unpack", [x(i8, 2, 3)], [(i8, (2,))] * 3, {"axis": 1, "num": 3}),
    Case("tfl.split", [c(i32, 1), x(i16, 2, 6)], [(i16, (2, 3))] * 2, {"num_splits": 2}),
    Case(
        "tfl.split_v",
        [x(i8, 2, 6), c(i32, [1, -1, 3]), c(i32, 1)],
        [(i8, (2, n)) for n in (1, 2, 3)],
        {"num_splits": 3},
    ),
    # by index
    *moved("tfl.gather", (3, 4, 5), (3, 2, 5), c(i32, [3, 0]), axis=1, batch_dims=0),
    *moved("tfl.gather", (2, 4, 5), (2, 3, 5), c(i32, [[3, 0, 1], [1, 1, 2]]), axis=1, batch_dims=1),
    *moved("tfl.gather_nd", (3, 4, 5), (2, 5), c(i32, [[2, 0], [1, 3]])),
    *moved("tosa.gather", (2, 4, 5), (2, 3, 5), c(i32, [[3, 0, 1], [1, 1, 2]])),
    *moved("tosa.gather", (1, 4, 5), (1, 3, 5), c(i32, [[3, 0, 1]])),
    *(
        Case("tosa.scatter", [x(e, 2, 4, 3), c(i32, [[3, 0], [1, 2]]), x(e, 2, 2, 3)], [(e, (2, 4, 3))])
        for e in (i8, i32)
    ),
]


def arrays_of(case: Case, inputs: Sequence[Value]) -> list[list[np.ndarray]]:
    """Random arrays and those at both ends, within the bounds of a case."""
    batches = edge_inputs(inputs)
    if case.bounds is None:
        return batches
    low, high = case.bounds
    rng = np.random.default_rng(0)
    for batch in batches:
        for i, (array, value) in enumerate(zip(batch, inputs, strict=True)):
            if array.dtype.kind == "f":
                batch[i] = rng.uniform(low, high, array.shape).astype(array.dtype)
            elif value.type.storage in (i32, i64) and array.min() != array.max():
                batch[i] = rng.integers(low, high, array.shape, endpoint=True).astype(array.dtype)
            else:
                batch[i] = np.clip(array, low, high)
    return batches


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda n: f"{CASES[n].name}-{n}")
def test_as_evaluated(number: int) -> None:
    need_onnx()
    case = CASES[number]
    results = [argument(shape, element, "y") for element, shape in case.results]
    function = function_of(case.name, case.operands, results, case.attributes)
    assert_same(function, arrays_of(case, function.inputs))


def test_table_of_floats_that_climbs_steeply() -> None:
    """A table of int32 climbs by as many levels as there are; of a number held as a float it could be a line."""
    need_onnx()
    case = rescale(i8, i8, 1 << 30, 31)
    entries = c(i32, np.arange(-128, 128) << 23)
    moved, y = argument((3, 5, 4), i8, "moved"), argument((3, 5, 4), i32, "y")
    function = function_of(case.name, case.operands, [moved], case.attributes)
    function.ops.append(Op("tosa.table", [moved, entries], [y]))
    function.outputs = [y]
    assert_same(function, arrays_of(case, function.inputs))


def test_every_op_with_a_lowering_is_here() -> None:
    from tflq.formats.onnx.context import lowering

    assert lowering.names() == {case.name for case in CASES} | ELSEWHERE
