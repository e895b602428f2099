"""The layer norm of LSTM gates against the kernel's loop in Python's integers: extremes, constant rows, any width."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument

from tflq.analysis.evaluate.registry import evaluate_function
from tflq.ir.module import Function
from tflq.ir.ops import Op
from tflq.ir.types import i32
from tflq.legalize.lstm import layer_norm
from tflq.legalize.rule import RuleBuilder
from tflq.numerics.fixed_point import multiply, quantize_multiplier

SCALE = 6e-5


def _truncated(a: int, b: int) -> int:
    return abs(a) // b * (1 if a >= 0 else -1)


def _inverse_root(value: int) -> tuple[int, int]:
    """GetInvSqrtQuantizedMultiplierExp: a mantissa and a right shift."""
    if value <= 1:
        return (1 << 31) - 1, 0
    shift = 11
    while value >= 1 << 29:
        value, shift = value // 4, shift + 1
    pairs = (32 - value.bit_length() - 1) // 2 - 1
    value, shift = value << 2 * pairs, shift - pairs

    def high(a: int, b: int) -> int:
        return (a * b + (1 << 30)) >> 31

    half, x = ((value >> 1) + 1) >> 1, 1 << 28
    for _ in range(5):
        cube = high(high(x, x), x) << 6
        x = (high((1 << 28) + (1 << 27), x) - high(half, cube)) << 3
    x = high(x, 1518500250)
    return (x << -shift, 0) if shift < 0 else (x, shift)


def _kernel(row: list[int], weights: list[int], bias: list[int]) -> list[int]:
    n = len(row)
    mean = _truncated(sum(row) * 1024, n)
    variance = _truncated(sum(v * v for v in row) * ((1 << 20) // n) - mean * mean, 1 << 20)
    mantissa, right = _inverse_root(variance if variance >= 1 else max(1, int(np.float32(10000) * np.float32(SCALE))))
    scale, left = quantize_multiplier(SCALE)
    results = []
    for v, w, add in zip(row, weights, bias, strict=True):
        normal = int(multiply(np.asarray([1024 * v - mean], np.int32), mantissa, -right)[0])
        value = normal * w + add
        value = _truncated(value + (512 if value > 0 else -512), 1024)
        results.append(int(multiply(np.asarray([value], np.int32), scale, left + 12)[0]))
    return [min(max(r, -32768), 32767) for r in results]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 40, 300])
def test_rows_of_every_kind(n: int) -> None:
    rng = np.random.default_rng(n)
    rows = [rng.integers(-reach, reach + 1, n) for reach in (32767, 3000, 40, 2, 1)]
    rows += [np.full(n, v) for v in (-32768, 32767, 5, 0)]
    rows += [np.where(np.arange(n) % 2, 32767, -32768), np.where(np.arange(n) == 0, 32767, -32768)]
    x = argument((len(rows), n), i32)
    weights, bias = rng.integers(-9000, 9000, n), rng.integers(-90000, 90000, n)
    ops: list[Op] = []
    result = layer_norm(RuleBuilder(ops, {}), x, weights, bias, SCALE)
    got = evaluate_function(Function("norm", [x], [result], ops), {x: np.asarray(rows, np.int32)})[result]
    want = [_kernel(row.tolist(), weights.tolist(), bias.tolist()) for row in rows]
    np.testing.assert_array_equal(got, want)
