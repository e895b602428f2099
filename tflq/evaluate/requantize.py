"""Evaluators of the requantizations and tables that TOSA lacks.

ext.rescale_f64    saturate(round_half_away(double(x - input_zp) * scale) + output_zp)
ext.rescale_i64    `tflq.numerics.wrapping.rescale_i64`
ext.rescale_mean   `tflq.numerics.reduction.divided_multiplier`
ext.table_2d       entry 256 (x - minimum of x's type) + (y - minimum of y's type)
"""

from __future__ import annotations

import math

import numpy as np

from tflq.dialects.ext.rescale import RescaleF64, RescaleI64, RescaleMean
from tflq.dialects.ext.tables import Table2D
from tflq.evaluate.registry import evaluator
from tflq.numerics.fixed_point import Multiplier, multiply
from tflq.numerics.reduction import divided_multiplier
from tflq.numerics.wrapping import rescale_i64

__all__: list[str] = []


@evaluator(RescaleF64)
def _rescale_f64(op: RescaleF64, x: np.ndarray) -> np.ndarray:
    product = (x.astype(np.float64) - op.attributes.get("input_zp", 0)) * op.scale
    storage = op.result.type.storage
    whole = np.trunc(product)
    rounded = whole + np.where(np.abs(product - whole) >= 0.5, np.sign(product), 0)
    return np.clip(rounded + op.output_zp, storage.minimum, storage.maximum).astype(storage.dtype)


@evaluator(RescaleI64)
def _rescale_i64(op: RescaleI64, x: np.ndarray) -> np.ndarray:
    return rescale_i64(x, op.multiplier, op.shift)


@evaluator(RescaleMean)
def _rescale_mean(op: RescaleMean, x: np.ndarray, values: np.ndarray) -> np.ndarray:
    a, to = op.attributes, op.result.type.storage
    count = math.prod(values.shape[axis] for axis in a["axes"])
    scaled = multiply(x, *divided_multiplier(Multiplier(a["multiplier"], a["shift"]), count)).astype(np.int64)
    return np.clip(scaled + a["output_zp"], to.minimum, to.maximum).astype(to.dtype)


@evaluator(Table2D)
def _table_2d(op: Table2D, x: np.ndarray, y: np.ndarray, entries: np.ndarray) -> np.ndarray:
    low = [op.operand(i).type.storage.minimum for i in range(2)]
    return entries[(x.astype(np.int32) - low[0]) * 256 + (y.astype(np.int32) - low[1])]
