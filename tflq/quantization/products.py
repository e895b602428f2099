"""Weights that are rounded by what they are multiplied with on samples, where that is better on samples held back."""

from __future__ import annotations

import math
import os
from typing import Any, Final

import numpy as np

from tflq.calibration.calibrating import entry_of
from tflq.calibration.data import Span, in_run_order, inputs_of
from tflq.calibration.moments import Factor, second_moments
from tflq.dialects.tfl.convolution import Conv2D, FullyConnected
from tflq.formats import read
from tflq.ir.core import Op, Value
from tflq.light import NamedTuple
from tflq.numerics.ranges import compensated_weights, error_of_products
from tflq.quantization.giving_back import CALIBRATED

KEPT: Final = "rounded by gptq, which is better on samples held back"
NOT_BETTER: Final = "rounded to nearest: gptq is not better on samples held back"
NOT_SEEN: Final = "rounded to nearest: gptq is for FULLY_CONNECTED and 1×1 CONV_2D that run on the samples"


class Moments(NamedTuple):
    """Σ x xᵀ of what weights are multiplied with: on the samples that they are rounded by, and on those held back."""

    fitted: np.ndarray
    held_back: np.ndarray


Placed = dict[tuple[int, int], Moments]
"""The moments of weights, by the function and the place of the weights among its tensors."""


def moments_of(source: str | os.PathLike[str], data: Any) -> Placed:
    """The moments of all constant weights of FULLY_CONNECTED and 1×1 CONV_2D in the function that the samples are of.
    Of weights that several operators have these are added. data: two samples at least; the first `CALIBRATED` of them
    are rounded by."""
    module = read(source)
    entry, function, names = entry_of(module, None)
    called = module.functions[function]
    place = {value: index for index, value in enumerate(called.tensors)}
    found = [product for op in called.ops if (product := _product(op, function, place)) is not None]
    inputs = inputs_of(module, function, names)
    samples = Span.of(data, inputs)
    sides = samples.split(min(math.ceil(len(samples) * CALIBRATED), len(samples) - 1))
    order = in_run_order(inputs, entry)
    factors = list(dict.fromkeys(factor for _, factor in found))
    arrays = (([sample[own.name] for own in order] for sample in side) for side in sides)
    sums = [second_moments(source, entry, factors, each) for each in arrays]
    of_factor = dict(zip(factors, map(Moments, *sums), strict=True))
    moments: Placed = {}
    for weights, factor in found:
        at, each = (function, place[weights]), of_factor[factor]
        moments[at] = Moments(*map(np.add, moments[at], each)) if at in moments else each
    return moments


def _product(op: Op, function: int, place: dict[Value, int]) -> tuple[Value, Factor] | None:
    """The constant weights of an operator, and what they are multiplied with; None if it does not multiply matrices."""
    if not isinstance(op, (Conv2D, FullyConnected)):
        return None
    weights = op.weights if isinstance(op, FullyConnected) else op.filter
    if not weights.is_constant or op.input not in place:
        return None
    at, shape = (function, place[op.input]), weights.array.shape
    if isinstance(op, FullyConnected):
        return weights, Factor(at, shape[-1])
    if shape[1:] != (1, 1, (op.input.type.shape or (None,))[-1]):
        return None
    return weights, Factor(at, shape[-1], (op.stride_h, op.stride_w))


def rounded(
    weights: np.ndarray, scales: np.ndarray, nearest: np.ndarray, moments: Moments | None, bits: int
) -> tuple[np.ndarray, str]:
    """Stored weights whose products are nearer on the samples held back, or `nearest`, and which of them they are.
    weights: channels along the first axis, of the scales [channels]."""
    if moments is None:
        return nearest, NOT_SEEN
    rows, column = weights.reshape(len(weights), -1), scales.reshape(-1, 1)
    made = compensated_weights(rows, column, moments.fitted, bits)
    plain, better = (
        error_of_products(rows - column.astype(np.float64) * stored, moments.held_back)
        for stored in (nearest.reshape(rows.shape), made)
    )
    return (made.reshape(nearest.shape), KEPT) if better < plain else (nearest, NOT_BETTER)
