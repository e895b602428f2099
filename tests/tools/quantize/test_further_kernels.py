"""Operators that a scheme quantizes as TensorFlow does, though their kernels do not compute right everywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.float_nets import written

import tflq
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, f32
from tflq.tools.quantize.fidelity import signal_to_noise
from tflq.tools.verify.verifying import verify

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")
CONVOLUTION = {
    "padding": "SAME",
    "stride_w": 1,
    "stride_h": 1,
    "dilation_w_factor": 1,
    "dilation_h_factor": 1,
    "fused_activation_function": "RELU",
}


def images(count: int) -> list[np.ndarray]:
    return list(np.random.default_rng(1).normal(size=(count, 1, 8, 8, 4)).astype(np.float32))


def net(kind: str) -> Module:
    """A convolution, and behind it SUM, LOG of LOGISTIC, or RESIZE_BILINEAR."""
    rng = np.random.default_rng(0)
    x, a = (Value(TensorType((1, 8, 8, 4), f32), name) for name in ("x", "a"))
    weights = constant((rng.normal(size=(4, 3, 3, 4)) / 6).astype(np.float32), name="weights")
    ops = [Op("tfl.conv_2d", [x, weights, constant(np.zeros(4, np.float32), name="bias")], [a], dict(CONVOLUTION))]
    if kind == "sum":
        y = Value(TensorType((1, 4), f32), "y")
        axes = constant(np.array([1, 2], np.int32), name="axes")
        ops.append(Op("tfl.sum", [a, axes], [y], {"keep_dims": False}))
    elif kind == "resize_bilinear":
        y = Value(TensorType((1, 16, 16, 4), f32), "y")
        size = constant(np.array([16, 16], np.int32), name="size")
        ops.append(Op("tfl.resize_bilinear", [a, size], [y], {"align_corners": False, "half_pixel_centers": True}))
    else:
        share, y = (Value(a.type, name) for name in ("share", "y"))
        ops += [Op("tfl.logistic", [a], [share], {}), Op("tfl.log", [share], [y], {})]
    return Module([Function("main", [x], [y], ops)])


@pytest.mark.parametrize(
    ("kind", "scheme", "least"), [("sum", "int8", 38), ("log", "int8", 30), ("resize_bilinear", "int16x8", 38)]
)
def test_it_is_quantized_and_near(tmp_path: Path, kind: str, scheme: str, least: float) -> None:
    path, out = written(tmp_path, net(kind)), tmp_path / "quantized.tflite"
    result = tflq.quantize(path, out, scheme=scheme, range="minmax", calibration=images(20))  # type: ignore[arg-type]
    assert not result.kept
    assert [row.note != "" for row in result.rows] == [row.operator == "sum" for row in result.rows]
    assert signal_to_noise(path, out, images(30)[20:]) > least
    tflq.convert(out, tmp_path / "integer.tflite")
    verification = verify(out, tmp_path / "integer.tflite")
    assert verification.equal or kind == "sum"  # the reference kernel of SUM reads int8 as uint8
