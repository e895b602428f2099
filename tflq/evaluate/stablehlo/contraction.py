"""dot_general and convolution: sums of products, in the order of the specification's index spaces, each step rounded.

Of quantized operands, the numbers that they stand for are multiplied (`dequantize_op_quantize`,
`hybrid_dequantize_then_op`).
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np

from tflq.dialects.stablehlo.convolution import Convolution
from tflq.dialects.stablehlo.matmul import DotGeneral
from tflq.dialects.stablehlo.rules import integers
from tflq.evaluate.registry import evaluator
from tflq.evaluate.stablehlo.numbers import real, rounded_to, stored
from tflq.evaluate.stablehlo.padding import dilated_and_padded, places

__all__: list[str] = []


@evaluator(DotGeneral)
def _dot_general(op: DotGeneral, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    numbers = op.numbers
    sides = []
    for right, (value, array) in enumerate(((op.lhs, a), (op.rhs, b))):
        free = numbers.free(array.ndim, right=bool(right))
        batching, contracting = numbers[right], numbers[2 + right]
        ordered = real(value.type, array).transpose(*batching, *contracting, *free)
        cut = len(batching), len(batching) + len(contracting)
        shape = ordered.shape
        batches, free_sizes = shape[: cut[0]], shape[cut[1] :]
        view = ordered.reshape((_count(batches), _count(shape[cut[0] : cut[1]]), _count(free_sizes)))
        sides.append((view, batches, free_sizes))
    (left, batches, rows), (right_side, _, columns) = sides
    kind = op.result.type
    total = np.zeros((left.shape[0], left.shape[2], right_side.shape[2]), _accumulator(left, right_side, op))
    with np.errstate(all="ignore"):
        for k in range(left.shape[1]):
            products = rounded_to(kind, left[:, k, :, None] * right_side[:, k, None, :])
            total = rounded_to(kind, total + products)
    return stored(kind, total.reshape((*batches, *rows, *columns)))


def _accumulator(left: np.ndarray, right: np.ndarray, op: DotGeneral | Convolution) -> np.dtype:
    """The type of the sums: of floats that of the operands, of integers that of the result."""
    if left.dtype.kind == "f" or op.result.type.quantized:
        return np.result_type(left, right)
    return op.result.type.storage.dtype


def _count(sizes: tuple[int, ...]) -> int:
    return int(np.prod(sizes, dtype=np.int64))


@evaluator(Convolution)
def _convolution(op: Convolution, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    numbers, spread = op.numbers, op.window
    assert numbers is not None
    assert spread is not None
    rank = len(spread.sizes)
    x = real(op.lhs.type, a).transpose(*numbers.input[:2], *numbers.input[2])
    w = real(op.rhs.type, b).transpose(numbers.kernel[1], numbers.kernel[0], *numbers.kernel[2])
    reversal = integers(op, "window_reversal", (0,) * rank) or ()
    groups, batches = op.feature_group_count, op.batch_group_count
    counts = tuple(int(n or 0) for n in spread.counts(x.shape[2:]))
    x = dilated_and_padded(x, ((0, 0), (0, 0), *spread.padding), (1, 1, *spread.base_dilations), x.dtype.type(0))
    parts = groups * batches
    # [parts, batch, feature, ...] and [parts, output feature, feature, ...]
    if batches > 1:
        x = x.reshape((batches, x.shape[0] // batches, *x.shape[1:]))
    else:
        x = x.reshape((x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])).swapaxes(0, 1)
    w = w.reshape((parts, w.shape[0] // parts, w.shape[1], prod(spread.sizes)))
    kind = op.result.type
    total = np.zeros((parts, x.shape[1], w.shape[1], *counts), _accumulator(x, w, op))
    with np.errstate(all="ignore"):
        for number, offset in enumerate(product(*map(range, spread.sizes))):
            taken_at = [n - 1 - o if flag else o for o, n, flag in zip(offset, spread.sizes, reversal, strict=True)]
            place: tuple[Any, ...] = places(taken_at, spread, counts)
            for feature in range(w.shape[2]):
                taken = x[:, :, feature][(..., *place)][:, :, None]
                weights = w[:, :, feature, number].reshape(parts, 1, -1, *(1,) * rank)
                total = rounded_to(kind, total + rounded_to(kind, taken * weights))
    made = np.moveaxis(total, 0, 1).reshape((total.shape[1], parts * total.shape[2], *counts))
    order = (*numbers.output[:2], *numbers.output[2])
    return stored(kind, made.transpose(np.argsort(order)))
