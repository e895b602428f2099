"""Products in float32 as ONNX Runtime computes them: also of channels whose sums float32 does not hold."""

from __future__ import annotations

import numpy as np
from support.harness import argument, const, interpret, one_op
from support.on_onnx import need_onnx, run_file

import tflq
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType, i8, i32


def test_a_channel_of_far_smaller_scale() -> None:
    need_onnx()
    rng = np.random.default_rng(0)
    scales = np.asarray([0.01, 1e-9], np.float32)
    weights = const(rng.integers(-99, 99, (2, 1, 1, 4)), UniformQuantizedPerAxisType.of(i8, 0, scales, 0), "w")
    sums = UniformQuantizedPerAxisType.of(i32, 0, scales * np.float32(0.5), 0)
    bias = const(np.asarray([30, -(1 << 29)]), sums, "b")
    x, y = (argument((1, 5, 5, n), UniformQuantizedType.of(i8, 0.5, 3), v) for n, v in ((4, "x"), (2, "y")))
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "fused_activation_function": "NONE"}
    options |= {"dilation_h_factor": 1, "dilation_w_factor": 1}
    model = one_op("tfl.conv_2d", [x, weights, bias], [y], options)
    stored = rng.integers(-128, 128, (1, 5, 5, 4)).astype(np.int8)
    (want,) = interpret(model, [[stored]], "AUTO")[0]
    (got,) = run_file(bytes(tflq.convert(model, format="onnx", kernel_set="xnnpack").data), {"x": stored})
    np.testing.assert_array_equal(got, want)
