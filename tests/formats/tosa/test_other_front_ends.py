"""A TOSA file that LLVM's tools serialized from MLIR text becomes a TFLite model with the reference model's outputs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.harness import interpret
from support.raised import RESOLVERS
from support.running import tosa_opt

import tflq


def dense(array: np.ndarray) -> str:
    """A tosa.const of an array."""
    name = {"float32": "f32", "int8": "i8", "int32": "i32"}[array.dtype.name]
    type = f"tensor<{'x'.join(map(str, array.shape))}x{name}>"
    return f'"tosa.const"() <{{values = dense<{array.tolist()}> : {type}}}> : () -> {type}'


def network() -> str:
    """A float network: convolution, activation, pooling, product, sigmoid."""
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> np.ndarray:
        return np.asarray(rng.normal(0, 0.5, shape), np.float32).round(3)

    return f"""
func.func @main(%x: tensor<1x8x8x3xf32>) -> tensor<1x1x5xf32> {{
  %zero = {dense(np.zeros(1, np.float32))}
  %filters = {dense(draw(4, 3, 2, 3))}
  %bias = {dense(draw(1))}
  %matrix = {dense(draw(1, 24, 5))}
  %flat = tosa.const_shape {{values = dense<[1, 1, 24]> : tensor<3xindex>}} : () -> !tosa.shape<3>
  %c = tosa.conv2d %x, %filters, %bias, %zero, %zero {{acc_type = f32, dilation = array<i64: 1, 1>,
    pad = array<i64: 1, 0, 0, 1>, stride = array<i64: 2, 1>}} : (tensor<1x8x8x3xf32>, tensor<4x3x2x3xf32>,
    tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x8x4xf32>
  %r = tosa.clamp %c {{min_val = 0.0 : f32, max_val = 6.0 : f32}} : (tensor<1x4x8x4xf32>) -> tensor<1x4x8x4xf32>
  %p = tosa.max_pool2d %r {{kernel = array<i64: 2, 4>, pad = array<i64: 0, 0, 1, 1>, stride = array<i64: 2, 3>}} :
    (tensor<1x4x8x4xf32>) -> tensor<1x2x3x4xf32>
  %v = tosa.reshape %p, %flat : (tensor<1x2x3x4xf32>, !tosa.shape<3>) -> tensor<1x1x24xf32>
  %m = tosa.matmul %v, %matrix, %zero, %zero :
    (tensor<1x1x24xf32>, tensor<1x24x5xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x5xf32>
  %s = tosa.sigmoid %m : (tensor<1x1x5xf32>) -> tensor<1x1x5xf32>
  return %s : tensor<1x1x5xf32>
}}
"""


def test_a_float_network_of_another_front_end(tmp_path: Path) -> None:
    tool = pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
    text, file = tmp_path / "model.mlir", tmp_path / "model.tosa"
    text.write_text(network())
    command = [tosa_opt(), str(text), f"--tosa-serialize=tosa-flatbuffer-filename={file}", "-o", "/dev/null"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[:2000]
    conversion = tflq.convert(file)
    names = [op.name.removeprefix("tfl.") for op in conversion.module.main.ops]
    assert names == ["padv2", "conv_2d", "max_pool_2d", "reshape", "batch_matmul", "logistic"]
    x = np.random.default_rng(1).normal(0, 1, (1, 8, 8, 3)).astype(np.float32)
    (want,), _ = tool.run(file.read_bytes(), [x])
    for resolver in RESOLVERS:
        (got,) = interpret(conversion.data, [[x]], resolver)[0]
        np.testing.assert_allclose(got, want, rtol=1e-5)  # exp of a sum whose order differs
