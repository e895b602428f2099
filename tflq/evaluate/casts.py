"""Evaluators of the casts between element types, and between numbers and stored integers."""

from __future__ import annotations

import numpy as np

from tflq.dialects.ext.casts import Truncate
from tflq.dialects.quant.casts import Dcast, Qcast, Scast
from tflq.dialects.tfl import casts as tfl
from tflq.dialects.tosa.casts import Cast, Rescale
from tflq.evaluate.registry import evaluator, of_arrays
from tflq.ir.parameters import parameters
from tflq.ir.types import ScalarType, TensorType, f32, f64
from tflq.numerics.fixed_point import rescale
from tflq.numerics.rounding import rescale_rounded, round_float, saturated

__all__ = ["saturate"]


evaluator(Scast)(of_arrays(np.asarray))


@evaluator(Rescale)
def _rescale(op: Rescale, x: np.ndarray) -> np.ndarray:
    storage = op.output.type.storage
    values, numbers = x.astype(np.int64), (op.multiplier, op.shift)
    if op.input_zp:
        values -= op.input_zp
    if op.rounding is not None:
        scaled = rescale_rounded(values, *numbers, op.rounding)
    else:
        double_round = op.rounding_mode == "DOUBLE_ROUND"
        scaled = rescale(values, *numbers, double_round=double_round, scale32=op.scale32)
    scaled += op.output_zp
    return np.clip(scaled, storage.minimum, storage.maximum, out=scaled)


@evaluator(Cast)
def _cast(op: Cast, x: np.ndarray) -> np.ndarray:
    storage = op.result.type.storage
    if x.dtype.kind == "f" and storage.is_integer:
        return saturate(np.rint(x), storage)
    return x.astype(storage.dtype)


@evaluator(Truncate)
def _truncate(op: Truncate, x: np.ndarray) -> np.ndarray:
    return saturate(np.trunc(x), op.result.type.storage)


def saturate(x: np.ndarray, storage: ScalarType) -> np.ndarray:
    """Whole floats as integers of a type, what lies beyond it as its nearest end, NaN as 0."""
    return saturated(x, storage.minimum, storage.maximum).astype(storage.dtype)


@evaluator(tfl.Cast)
def _tfl_cast(op: tfl.Cast, x: np.ndarray) -> np.ndarray:
    """Floats saturate in int32, and what is not a number is the largest."""
    dtype = op.result.type.storage.dtype
    if x.dtype.kind != "f" or dtype != np.int32:
        return x.astype(dtype)
    held = x < 2.0**31
    return np.where(held, np.maximum(np.where(held, x, 0), -(2.0**31)).astype(np.int64), (1 << 31) - 1).astype(dtype)


def _parameters(type: TensorType) -> tuple[np.ndarray, np.ndarray]:
    """Scale and zero point of what expresses float32 or float64."""
    if getattr(type.element, "expressed", None) not in (f32, f64):
        raise NotImplementedError(f"{type} expresses neither f32 nor f64")
    return parameters(type)


@evaluator(Dcast)
def _dcast(op: Dcast, x: np.ndarray) -> np.ndarray:
    scale, zero_point = _parameters(op.input.type)
    if x.dtype.itemsize > 4 or zero_point.dtype.itemsize > 4:  # in doubles: the difference may be more than int64 holds
        return ((x.astype(np.float64) - zero_point) * scale).astype(scale.dtype)
    return (x.astype(np.int32) - zero_point).astype(scale.dtype) * scale


@evaluator(Qcast)
def _qcast(op: Qcast, x: np.ndarray) -> np.ndarray:
    element = op.result.type.element
    scale, zero_point = _parameters(op.result.type)
    with np.errstate(over="ignore"):
        y = np.asarray(x, scale.dtype) / scale
    low, high = element.storage_min, element.storage_max  # type: ignore[union-attr]
    if op.rounding is None:
        total = _rounded_sum(op, y, zero_point)
        return np.clip(saturate(np.where(np.isnan(total), zero_point, total), op.result.type.storage), low, high)
    # for all else the kernels' conversion gives the smallest int32; their sum wraps
    fits = np.abs(y) < 2.0**31
    whole = round_float(np.where(fits, y, scale.dtype.type(-(2.0**31))), op.rounding)
    return np.clip((whole.astype(np.int64) + zero_point).astype(np.int32), low, high)


def _rounded_sum(op: Qcast, y: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    """The quotient plus the zero point, in float64; rounded before that, half to even, or after it as the op says."""
    if op.sum_rounding is None:
        return np.rint(y).astype(np.float64) + zero_point
    return round_float(y + zero_point.astype(y.dtype), op.sum_rounding).astype(np.float64)
