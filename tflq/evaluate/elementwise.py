"""Evaluators of elementwise ops. Integer arithmetic wraps in the result's type, as TOSA's and TFLite's."""

from __future__ import annotations

import numpy as np

from tflq.dialects.ext.casts import Truncate
from tflq.dialects.quant.casts import Dcast, Qcast, Scast
from tflq.dialects.tosa.activation import Clamp
from tflq.dialects.tosa.arithmetic import Add, Maximum, Minimum, Mul, Negate, Sub
from tflq.dialects.tosa.bits import ArithmeticRightShift
from tflq.dialects.tosa.casts import Cast, Rescale
from tflq.dialects.tosa.comparison import Equal, Greater, GreaterEqual, Select
from tflq.dialects.tosa.indexing import Table
from tflq.dialects.tosa.movement import Concat, Identity, Reshape, Slice, Transpose
from tflq.evaluate.registry import evaluator
from tflq.ir.parameters import parameters
from tflq.ir.types import ScalarType, TensorType, f32, f64
from tflq.numerics.fixed_point import rescale
from tflq.numerics.rounding import rescale_rounded, round_float

__all__: list[str] = []


@evaluator(Rescale)
def _rescale(op: Rescale, x: np.ndarray) -> np.ndarray:
    a = op.attributes
    storage = op.result.type.storage
    values, numbers = x.astype(np.int64) - a["input_zp"], (a["multiplier"], a["shift"])
    if "rounding" in a:
        scaled = rescale_rounded(values, *numbers, a["rounding"])
    else:
        double_round = a["rounding_mode"] == "DOUBLE_ROUND"
        scaled = rescale(values, *numbers, double_round=double_round, scale32=a["scale32"])
    return np.clip(scaled + a["output_zp"], storage.minimum, storage.maximum)


@evaluator(Negate)
def _negate(op: Negate, x: np.ndarray) -> np.ndarray:
    """output_zp - (x - input1_zp), saturated."""
    if x.dtype.kind == "f":
        return -x
    storage = op.result.type.storage
    value = op.output_zp + op.input1_zp - x.astype(np.int64)
    return np.clip(value, storage.minimum, storage.maximum)


@evaluator(Clamp)
def _clamp(op: Clamp, x: np.ndarray) -> np.ndarray:
    return np.clip(x, op.min_val, op.max_val)


@evaluator(Table)
def _table(op: Table, x: np.ndarray, table: np.ndarray) -> np.ndarray:
    index = x.astype(np.int32) - op.input.type.storage.minimum
    if op.input.type.storage.bits == 8:
        return table[index]
    base, wide = index >> 7, table.astype(np.int32)
    return (wide[base] << 7) + (wide[base + 1] - wide[base]) * (index & 0x7F)


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
    wide = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    inside = np.clip(wide, storage.minimum, min(storage.maximum, (1 << 62))).astype(np.int64)
    inside = np.where(wide >= storage.maximum, storage.maximum, inside)
    return inside.astype(storage.dtype)


@evaluator(Scast, Identity)
def _same(op: Scast | Identity, x: np.ndarray) -> np.ndarray:
    return x


def _parameters(type: TensorType) -> tuple[np.ndarray, np.ndarray]:
    """Scale and zero point of what expresses float32 or float64."""
    if getattr(type.element, "expressed", None) not in (f32, f64):
        raise NotImplementedError(f"{type} expresses neither f32 nor f64")
    return parameters(type)


@evaluator(Dcast)
def _dcast(op: Dcast, x: np.ndarray) -> np.ndarray:
    scale, zero_point = _parameters(op.input.type)
    return (x.astype(np.int32) - zero_point).astype(scale.dtype) * scale


@evaluator(Qcast)
def _qcast(op: Qcast, x: np.ndarray) -> np.ndarray:
    element = op.result.type.element
    scale, zero_point = _parameters(op.result.type)
    with np.errstate(over="ignore"):
        y = np.asarray(x, scale.dtype) / scale
    low, high = element.storage_min, element.storage_max  # type: ignore[union-attr]
    rounding = op.attributes.get("rounding")
    if rounding is None:
        total = _rounded_sum(op, y, zero_point)
        return np.clip(saturate(np.where(np.isnan(total), zero_point, total), op.result.type.storage), low, high)
    # for all else the kernels' conversion gives the smallest int32; their sum wraps
    fits = np.abs(y) < 2.0**31
    whole = round_float(np.where(fits, y, scale.dtype.type(-(2.0**31))), rounding)
    return np.clip((whole.astype(np.int64) + zero_point).astype(np.int32), low, high)


def _rounded_sum(op: Qcast, y: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    """The quotient with the zero point added, in float64; rounded before that, half to even, or after it as the op
    says."""
    if (of_sum := op.attributes.get("sum_rounding")) is None:
        return np.rint(y).astype(np.float64) + zero_point
    return round_float(y + zero_point.astype(y.dtype), of_sum).astype(np.float64)


@evaluator(Add)
def _add(op: Add, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a + b


@evaluator(Sub)
def _sub(op: Sub, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a - b


@evaluator(Mul)
def _mul(op: Mul, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    shift = op.shift
    if not shift:
        dtype = op.result.type.storage.dtype
        return a.astype(dtype) * b.astype(dtype)
    return (a.astype(np.int64) * b.astype(np.int64) + (1 << (shift - 1))) >> shift


@evaluator(Maximum)
def _maximum(op: Maximum, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum(a, b)


@evaluator(Minimum)
def _minimum(op: Minimum, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.minimum(a, b)


@evaluator(ArithmeticRightShift)
def _arithmetic_right_shift(op: ArithmeticRightShift, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if not op.round:
        return a >> b
    wide = a.astype(np.int64)
    return (wide >> b) + np.where(b > 0, (wide >> np.maximum(b.astype(np.int64) - 1, 0)) & 1, 0)


@evaluator(Equal)
def _equal(op: Equal, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a == b


@evaluator(Greater)
def _greater(op: Greater, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a > b


@evaluator(GreaterEqual)
def _greater_equal(op: GreaterEqual, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a >= b


@evaluator(Select)
def _select(op: Select, condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(condition, a, b)


@evaluator(Reshape)
def _reshape(op: Reshape, x: np.ndarray) -> np.ndarray:
    return x.reshape([-1 if d is None else d for d in op.result.type.shape or ()])


@evaluator(Transpose)
def _transpose(op: Transpose, x: np.ndarray) -> np.ndarray:
    return x.transpose(op.perms)


@evaluator(Slice)
def _slice(op: Slice, x: np.ndarray) -> np.ndarray:
    bounds = zip(op.start, op.size, strict=True)
    return x[tuple(slice(start, None if size is None else start + size) for start, size in bounds)]


@evaluator(Concat)
def _concat(op: Concat, *xs: np.ndarray) -> np.ndarray:
    return np.concatenate(xs, axis=op.axis)
