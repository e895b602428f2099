"""Evaluators of the rescalings that TOSA lacks.

ext.rescale_f64    saturate(round_half_away(double(x) * scale) + output_zp)
ext.rescale_i64    `tflq.numerics.wrapping.rescale_i64`
ext.rescale_mean   `tflq.numerics.reduction.divided_multiplier`
"""

from __future__ import annotations

import math

import numpy as np

from tflq.dialects.ext.rescale import RescaleF64, RescaleI64, RescaleMean, RoundingDivideByPot
from tflq.evaluate.registry import evaluator
from tflq.numerics.fixed_point import Multiplier, multiply, rounding_divide_by_pot
from tflq.numerics.reduction import divided_multiplier
from tflq.numerics.rounding import half_away
from tflq.numerics.wrapping import rescale_i64

__all__: list[str] = []


@evaluator(RescaleF64)
def _rescale_f64(op: RescaleF64, x: np.ndarray) -> np.ndarray:
    product = x.astype(np.float64) * op.scale
    storage = op.result.type.storage
    return np.clip(half_away(product) + op.output_zp, storage.minimum, storage.maximum).astype(storage.dtype)


@evaluator(RescaleI64)
def _rescale_i64(op: RescaleI64, x: np.ndarray) -> np.ndarray:
    return rescale_i64(x, op.multiplier, op.shift)


@evaluator(RescaleMean)
def _rescale_mean(op: RescaleMean, x: np.ndarray, values: np.ndarray) -> np.ndarray:
    to = op.output.type.storage
    count = math.prod(values.shape[axis] for axis in op.axes)
    scaled = multiply(x, *divided_multiplier(Multiplier(op.multiplier, op.shift), count)).astype(np.int64)
    return np.clip(scaled + op.output_zp, to.minimum, to.maximum).astype(to.dtype)


@evaluator(RoundingDivideByPot)
def _rounding_divide(op: RoundingDivideByPot, x: np.ndarray) -> np.ndarray:
    return rounding_divide_by_pot(x, op.exponent)
