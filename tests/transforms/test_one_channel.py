"""Depthwise convolutions of one channel."""

from __future__ import annotations

import numpy as np
from support.harness import argument, const

from tflq.analysis.evaluate.registry import evaluate_function
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, i8, i32
from tflq.transforms.one_channel import OneChannel


def _depthwise(channels: int) -> Function:
    rng, x = np.random.default_rng(4), argument((1, 6, 7, channels), i8)
    weights, bias = (
        const(rng.integers(-127, 128, (3, 2, channels, 4)), i8),
        const(rng.integers(-9, 9, 4 * channels), i32),
    )
    attributes = {"pad": (1, 1, 0, 1), "stride": (2, 1), "dilation": (1, 1), "input_zp": -5, "weight_zp": 2}
    y = Value(TensorType((1, 3, 7, 4 * channels), i32), "y")
    return Function("main", [x], [y], [Op("tosa.depthwise_conv2d", [x, weights, bias], [y], attributes)])


def test_one_of_one_channel_is_a_convolution() -> None:
    function = _depthwise(1)
    (x,), (y,) = function.inputs, function.outputs
    array = np.random.default_rng(5).integers(-128, 128, x.type.sizes).astype(np.int8)
    want = evaluate_function(function, {x: array})[y]
    assert OneChannel().run(Module([function])).modified
    assert [op.short_name for op in function.ops] == ["conv2d"]
    np.testing.assert_array_equal(evaluate_function(function, {x: array})[y], want)


def test_one_of_two_channels_stays() -> None:
    assert not OneChannel().run(Module([_depthwise(2)])).modified
