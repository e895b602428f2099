"""Strips of rows compute what the whole did, in less memory."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, edge_inputs, interpret
from support.memory import memory

import tflq
from tflq.analysis.evaluate.registry import evaluate_function
from tflq.dialects.builder import Builder
from tflq.dialects.tfl.indexing import Gather
from tflq.dialects.tfl.movement import Concatenation
from tflq.dialects.tosa.movement import Concat, Resize
from tflq.formats.tflite.lowering.strips import SplitRows
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, UniformQuantizedPerAxisType, UniformQuantizedType, i8, i32
from tflq.ir.verifier import verify
from tflq.numerics.fixed_point import Multiplier
from tflq.numerics.resize import integer_steps

HALF = Multiplier(1 << 30, -6)
IMAGE = (2, 24, 90, 3)
RNG = np.random.default_rng(0)


def check_strips(ops: list[Op], inputs: list[Value], output: Value) -> None:
    """There are strips, which compute the same."""
    output.name = output.name or "y"
    module = Module([Function("main", inputs, [output], ops)])
    arrays = {v: RNG.integers(-128, 128, [d or 2 for d in v.type.shape or ()]).astype(np.int8) for v in inputs}
    want = copy.copy(evaluate_function(module.main, arrays)[output])
    assert SplitRows(share=1.0, least=0).run(module).modified
    verify(module)
    np.testing.assert_array_equal(evaluate_function(module.main, arrays)[output], want)
    (join,) = (op for op in module.main.ops if isinstance(op, Concat))
    assert len(join.operands) > 1


def convolved(b: Builder, x: Value, kind: str, window: tuple[int, int], **options: Any) -> Value:
    """A convolution with random weights, requantized to int8."""
    height, width = window
    channels = (x.type.shape or ())[3] or 0
    shape = (height, width, channels, 1) if kind == "depthwise_conv2d" else (4, height, width, channels)
    outputs = channels if kind == "depthwise_conv2d" else 4
    weights = const(RNG.integers(-127, 128, shape), i8)
    bias = const(RNG.integers(-99, 99, outputs), i32)
    attributes: dict[str, Any] = {
        "stride": (1, 1),
        "dilation": (1, 1),
        "pad": (0, 0, 0, 0),
        "input_zp": 3,
        "weight_zp": 0,
    } | options
    batch, rows, columns, _ = x.type.shape or ()
    sizes = [
        ((size or 0) + sum(attributes["pad"][2 * i : 2 * i + 2]) - (window[i] - 1) * attributes["dilation"][i] - 1)
        // attributes["stride"][i]
        + 1
        for i, size in enumerate((rows, columns))
    ]
    made = Value(TensorType((batch, *sizes, outputs), i32))
    b.ops.append(Op(f"tosa.{kind}", [x, weights, bias], [made], attributes))
    return b.rescale(made, HALF, i8, output_zp=-5)


@pytest.mark.parametrize("kind", ["conv2d", "depthwise_conv2d"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pad": (1, 1, 1, 1)},
        {"stride": (2, 2), "pad": (0, 1, 0, 1)},
        {"dilation": (4, 2), "pad": (4, 4, 2, 2)},
        {"stride": (3, 1), "pad": (2, 0, 1, 1)},
    ],
    ids=str,
)
@pytest.mark.parametrize("batch", [2, None])
def test_convolutions(kind: str, options: dict[str, Any], batch: int | None) -> None:
    b, x = Builder(), argument((batch, *IMAGE[1:]), i8)
    output = convolved(b, x, kind, (3, 3), **options)
    check_strips(b.ops, [x], output)


def test_sums_of_tensors_that_broadcast() -> None:
    b, x, row = Builder(), argument(IMAGE, i8), argument((24, 1, 1), i8)
    fixed = const(RNG.integers(-9, 9, (1, 24, 1, 3)), i32)
    wide = b.add(b.add(b.cast(x, i32), b.cast(row, i32)), fixed)
    check_strips(b.ops, [x, row], b.rescale(wide, HALF, i8))


def resized(b: Builder, x: Value, out: tuple[int, int]) -> Value:
    """In steps of the kernel's, with half pixel centers."""
    batch, *sizes, channels = x.type.shape or ()
    found = [integer_steps(size or 0, count, False, True) for size, count in zip(sizes, out, strict=True)]
    steps = [each for each in found if each is not None]
    attributes = {
        "scale": tuple(n for s in steps for n in (s.n, s.d)),
        "offset": tuple(s.offset for s in steps),
        "border": tuple(s.border(size or 0, count) for s, size, count in zip(steps, sizes, out, strict=True)),
        "mode": "BILINEAR",
    }
    made = Value(TensorType((batch, *out, channels), i32))
    b.ops.append(Op(Resize.op_name, [x], [made], attributes))
    return b.rescale(made, Multiplier(1 << 30, -21), i8)


def test_images_between() -> None:
    b, x = Builder(), argument((1, 7, 5, 2), i8)
    check_strips(b.ops, [x], resized(b, x, (24, 9)))


def test_kernels_of_floats_take_images_as_they_are() -> None:
    """Convolutions and resizes by exact positions; any other resize is one of integers, whose sums are large."""
    for out, split in (((14, 10), False), ((24, 9), True)):
        b, x = Builder(), argument((1, 7, 5, 2), i8)
        output = convolved(b, resized(b, convolved(b, x, "conv2d", (1, 1)), out), "conv2d", (3, 3))
        module = Module([Function("main", [x], [output], b.ops)])
        assert SplitRows(share=1.0, least=0, whole=True).run(module).modified == split


def test_what_others_read_stays_whole() -> None:
    b, x = Builder(), argument(IMAGE, i8)
    wide = b.cast(x, i32)
    wide.name = "read"
    total = b.rescale(b.add(wide, wide), HALF, i8)
    total.name = "y"
    module = Module([Function("main", [x], [wide, total], b.ops)])
    SplitRows(share=1.0, least=0).run(module)
    assert wide.producer in module.main.ops
    assert [v.name for v in module.main.outputs] == ["read", "y"]


def test_small_intermediates_stay_whole() -> None:
    b, x = Builder(), argument(IMAGE, i8)
    output = convolved(b, x, "conv2d", (3, 3))
    module = Module([Function("main", [x], [output], b.ops)])
    assert not SplitRows(share=1.0, least=1 << 20).run(module).modified


def test_a_window_that_misses_the_image_is_left_alone() -> None:
    b, x = Builder(), argument(IMAGE, i8)
    output = convolved(b, x, "conv2d", (3, 3), pad=(9, 9, 0, 0))
    module = Module([Function("main", [x], [output], b.ops)])
    assert not any(isinstance(op, Gather) for op in module.main.ops)
    SplitRows(share=1.0, least=0).run(module)
    assert any(op.name == "tosa.conv2d" and op.attributes["pad"] == (9, 9, 0, 0) for op in module.main.ops)


@pytest.mark.parametrize("mac", ["integer", "float32"])
def test_a_network_in_less_memory(mac: Any) -> None:
    model = image_network()
    fast, small = tflq.convert(model, mac=mac), tflq.convert(model, mac=mac, prefer="memory")
    assert fast.arena is not None
    assert small.arena is not None
    assert (small.arena.bytes or 0) < 0.6 * (fast.arena.bytes or 0)
    draws = edge_inputs(tflq.read(model).main.inputs)
    for want, got in zip(interpret(model, draws), interpret(small.data, draws), strict=True):
        np.testing.assert_array_equal(got[0], want[0])


def test_an_open_batch_stays_open() -> None:
    model = image_network(batch=None)
    small = tflq.convert(model, prefer="memory")
    assert any(isinstance(op, Concatenation) for op in small.module.ops())
    assert memory(small.data).dynamic == ()
    draws = edge_inputs([argument((3, 96, 96, 8), i8)])
    for want, got in zip(interpret(model, draws), interpret(small.data, draws), strict=True):
        np.testing.assert_array_equal(got[0], want[0])


def image_network(batch: int | None = 1) -> bytes:
    """CONV_2D 3x3 of an image, and ADD with the image itself."""
    q8 = [UniformQuantizedType.of(i8, scale, zero) for scale, zero in ((0.02, 3), (0.05, -4), (0.08, 1))]
    x, y, z = (argument((batch, 96, 96, 8), q, name) for q, name in zip(q8, "xyz", strict=True))
    scales, zeros = np.linspace(0.002, 0.01, 8, dtype=np.float32), np.zeros(8, np.int64)
    weights = const(RNG.integers(-127, 128, (8, 3, 3, 8)), UniformQuantizedPerAxisType.of(i8, 0, scales, zeros), "w")
    biases = UniformQuantizedPerAxisType.of(i32, 0, np.float32(0.02) * scales, zeros)
    bias = const(RNG.integers(-500, 500, 8), biases, "b")
    none = {"fused_activation_function": "NONE"}
    conv = {"padding": "SAME", "stride_w": 1, "stride_h": 1, **none}
    ops = [
        Op("tfl.conv_2d", [x, weights, bias], [y], conv, info={"version": 3}),
        Op("tfl.add", [y, x], [z], {**none, "pot_scale_int16": False}, info={"version": 2}),
    ]
    return bytes(tflq.write(Module([Function("main", [x], [z], ops)])))
