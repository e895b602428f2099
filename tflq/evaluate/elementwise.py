"""Evaluators of elementwise ops. Integer arithmetic wraps in the result's type, as TOSA's and TFLite's."""

from __future__ import annotations

import numpy as np

from tflq.evaluate.registry import evaluator
from tflq.ir.core import Op
from tflq.ir.parameters import parameters
from tflq.ir.types import ScalarType, TensorType, f32, f64
from tflq.numerics.fixed_point import rescale
from tflq.numerics.rounding import rescale_rounded, round_float

__all__: list[str] = []


@evaluator("tosa.rescale")
def _rescale(op: Op, x: np.ndarray) -> np.ndarray:
    a = op.attributes
    storage = op.result.type.storage
    values, numbers = x.astype(np.int64) - a["input_zp"], (a["multiplier"], a["shift"])
    if "rounding" in a:
        scaled = rescale_rounded(values, *numbers, a["rounding"])
    else:
        double_round = a["rounding_mode"] == "DOUBLE_ROUND"
        scaled = rescale(values, *numbers, double_round=double_round, scale32=a["scale32"])
    return np.clip(scaled + a["output_zp"], storage.minimum, storage.maximum)


@evaluator("tosa.negate")
def _negate(op: Op, x: np.ndarray) -> np.ndarray:
    """output_zp - (x - input1_zp), saturated."""
    if x.dtype.kind == "f":
        return -x
    storage = op.result.type.storage
    value = op.attributes["output_zp"] + op.attributes["input1_zp"] - x.astype(np.int64)
    return np.clip(value, storage.minimum, storage.maximum)


@evaluator("tosa.clamp")
def _clamp(op: Op, x: np.ndarray) -> np.ndarray:
    return np.clip(x, op.attributes["min_val"], op.attributes["max_val"])


@evaluator("tosa.table")
def _table(op: Op, x: np.ndarray, table: np.ndarray) -> np.ndarray:
    index = x.astype(np.int32) - op.operand(0).type.storage.minimum
    if op.operand(0).type.storage.bits == 8:
        return table[index]
    base, wide = index >> 7, table.astype(np.int32)
    return (wide[base] << 7) + (wide[base + 1] - wide[base]) * (index & 0x7F)


@evaluator("tosa.cast")
def _cast(op: Op, x: np.ndarray) -> np.ndarray:
    storage = op.result.type.storage
    if x.dtype.kind == "f" and storage.is_integer:
        return saturate(np.rint(x), storage)
    return x.astype(storage.dtype)


@evaluator("ext.truncate")
def _truncate(op: Op, x: np.ndarray) -> np.ndarray:
    return saturate(np.trunc(x), op.result.type.storage)


def saturate(x: np.ndarray, storage: ScalarType) -> np.ndarray:
    """Whole floats as integers of a type, what lies beyond it as its nearest end, NaN as 0."""
    wide = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    inside = np.clip(wide, storage.minimum, min(storage.maximum, (1 << 62))).astype(np.int64)
    inside = np.where(wide >= storage.maximum, storage.maximum, inside)
    return inside.astype(storage.dtype)


@evaluator("quant.scast", "tosa.identity")
def _same(op: Op, x: np.ndarray) -> np.ndarray:
    return x


def _parameters(type: TensorType) -> tuple[np.ndarray, np.ndarray]:
    """Scale and zero point of what expresses float32 or float64."""
    if getattr(type.element, "expressed", None) not in (f32, f64):
        raise NotImplementedError(f"{type} expresses neither f32 nor f64")
    return parameters(type)


@evaluator("quant.dcast")
def _dcast(op: Op, x: np.ndarray) -> np.ndarray:
    scale, zero_point = _parameters(op.operand(0).type)
    return (x.astype(np.int32) - zero_point).astype(scale.dtype) * scale


@evaluator("quant.qcast")
def _qcast(op: Op, x: np.ndarray) -> np.ndarray:
    element = op.result.type.element
    scale, zero_point = _parameters(op.result.type)
    with np.errstate(over="ignore"):
        y = np.asarray(x, scale.dtype) / scale
    # for all else the kernels' conversion gives the smallest int32; their sum wraps
    fits = np.abs(y) < 2.0**31
    whole = round_float(np.where(fits, y, scale.dtype.type(-(2.0**31))), op.attributes.get("rounding", "half_away"))
    total = (whole.astype(np.int64) + zero_point).astype(np.int32)
    return np.clip(total, element.storage_min, element.storage_max)  # type: ignore[union-attr]


@evaluator("tosa.add")
def _add(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a + b


@evaluator("tosa.sub")
def _sub(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a - b


@evaluator("tosa.mul")
def _mul(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    shift = op.attributes.get("shift", 0)
    if not shift:
        dtype = op.result.type.storage.dtype
        return a.astype(dtype) * b.astype(dtype)
    return (a.astype(np.int64) * b.astype(np.int64) + (1 << (shift - 1))) >> shift


@evaluator("tosa.maximum")
def _maximum(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum(a, b)


@evaluator("tosa.minimum")
def _minimum(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.minimum(a, b)


@evaluator("tosa.arithmetic_right_shift")
def _arithmetic_right_shift(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if not op.attributes["round"]:
        return a >> b
    wide = a.astype(np.int64)
    return (wide >> b) + np.where(b > 0, (wide >> np.maximum(b.astype(np.int64) - 1, 0)) & 1, 0)


@evaluator("tosa.equal")
def _equal(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a == b


@evaluator("tosa.greater")
def _greater(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a > b


@evaluator("tosa.greater_equal")
def _greater_equal(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a >= b


@evaluator("tosa.select")
def _select(op: Op, condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(condition, a, b)


@evaluator("tosa.reshape")
def _reshape(op: Op, x: np.ndarray) -> np.ndarray:
    return x.reshape([-1 if d is None else d for d in op.result.type.shape or ()])


@evaluator("tosa.transpose")
def _transpose(op: Op, x: np.ndarray) -> np.ndarray:
    return x.transpose(op.attributes["perms"])


@evaluator("tosa.slice")
def _slice(op: Op, x: np.ndarray) -> np.ndarray:
    bounds = zip(op.attributes["start"], op.attributes["size"], strict=True)
    return x[tuple(slice(start, None if size is None else start + size) for start, size in bounds)]


@evaluator("tosa.concat")
def _concat(op: Op, *xs: np.ndarray) -> np.ndarray:
    return np.concatenate(xs, axis=op.attributes["axis"])
