"""The convolution evaluators against their definition, sum by sum."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tflq.analysis.evaluate.registry import evaluate_op
from tflq.dialects.builder import Builder
from tflq.ir.ops import Value, constant
from tflq.ir.types import TensorType, i8, i32


def conv2d(x: np.ndarray, w: np.ndarray, stride: int, dilation: int, pad: int, zp: int, out: int) -> np.ndarray:
    """OHWI weights, square everything."""
    y = np.zeros((x.shape[0], out, out, w.shape[0]), np.int64)
    for b, i, j, o, ki, kj in product(*(range(n) for n in (*y.shape, *w.shape[1:3]))):
        h, v = i * stride + ki * dilation - pad, j * stride + kj * dilation - pad
        if 0 <= h < x.shape[1] and 0 <= v < x.shape[2]:
            y[b, i, j, o] += ((x[b, h, v].astype(int) - zp) * w[o, ki, kj]).sum()
    return y


def evaluated(result: Value, *operands: np.ndarray) -> np.ndarray:
    assert result.producer is not None
    results = evaluate_op(result.producer, list(operands))
    assert results is not None
    return results[0]


@pytest.mark.parametrize(("stride", "dilation", "pad", "out"), [(1, 1, 1, 5), (2, 1, 1, 3), (1, 2, 2, 5), (2, 1, 0, 2)])
def test_conv2d(stride: int, dilation: int, pad: int, out: int) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.integers(-128, 128, (2, 5, 5, 3), np.int8), rng.integers(-128, 128, (4, 3, 3, 3), np.int8)
    bias = np.arange(4, dtype=np.int32)
    b = Builder()
    y = b.conv2d(
        Value(TensorType(x.shape, i8)),
        constant(w),
        constant(bias),
        (2, out, out, 4),
        pad=(pad,) * 4,
        stride=(stride,) * 2,
        dilation=(dilation,) * 2,
        input_zp=-7,
    )
    got = evaluated(y, x, w, bias)
    np.testing.assert_array_equal(got, conv2d(x, w, stride, dilation, pad, -7, out) + bias)


def test_depthwise_is_one_convolution_per_channel() -> None:
    rng = np.random.default_rng(1)
    x, w = rng.integers(-128, 128, (2, 5, 5, 3), np.int8), rng.integers(-128, 128, (3, 3, 3, 2), np.int8)
    bias = np.zeros(6, np.int32)
    b = Builder()
    y = b.conv2d(
        Value(TensorType(x.shape, i8)),
        constant(w),
        constant(bias),
        (2, 5, 5, 6),
        pad=(1,) * 4,
        input_zp=9,
        depthwise=True,
    )
    got = evaluated(y, x, w, bias)
    for c in range(3):
        filters = w[:, :, c].transpose(2, 0, 1)[..., None]
        np.testing.assert_array_equal(got[..., 2 * c : 2 * c + 2], conv2d(x[..., c : c + 1], filters, 1, 1, 1, 9, 5))


@pytest.mark.parametrize("out_pad", [(0, 0, 0, 0), (-1, 1, -2, 0), (2, -1, 0, -3)])
def test_transpose_conv2d_scatters(out_pad: tuple[int, int, int, int]) -> None:
    rng = np.random.default_rng(2)
    x, w = rng.integers(-128, 128, (2, 3, 4, 3), np.int8), rng.integers(-128, 128, (2, 3, 2, 3), np.int8)
    top, bottom, left, right = out_pad
    shape = (2, 2 * 2 + 3 + top + bottom, 3 * 3 + 2 + left + right, 2)
    want = np.zeros(shape, np.int64)
    for i, j, ki, kj in product(range(3), range(4), range(3), range(2)):
        h, v = i * 2 + ki + top, j * 3 + kj + left
        if 0 <= h < shape[1] and 0 <= v < shape[2]:
            want[:, h, v] += (x[:, i, j].astype(int) - 5) @ w[:, ki, kj].T.astype(int)
    b = Builder()
    bias = np.asarray([10, -10], np.int32)
    y = b.emit(
        "tosa.transpose_conv2d",
        [Value(TensorType(x.shape, i8)), constant(w), constant(bias)],
        TensorType(shape, i32),
        out_pad=out_pad,
        stride=(2, 3),
        input_zp=5,
        weight_zp=0,
    )
    got = evaluated(y, x, w, bias)
    np.testing.assert_array_equal(got, want + bias)
