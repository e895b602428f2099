"""STABLEHLO operators as the builtins that compute the same, with the same operands in the same places.

The interpreter has kernels for a few STABLEHLO operators alone, and on floats, too, it runs none of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tflq.ir.core import Op, Value, constant
from tflq.ir.types import UniformQuantizedType

__all__ = ["as_builtin"]

_NONE = {"fused_activation_function": "NONE"}
_SAME: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "add": ("add", {**_NONE, "pot_scale_int16": False}),
    "subtract": ("sub", {**_NONE, "pot_scale_int16": False}),
    "multiply": ("mul", _NONE),
    "divide": ("div", _NONE),
    "maximum": ("maximum", {}),
    "minimum": ("minimum", {}),
    "power": ("pow", {}),
    "abs": ("abs", {}),
    "negate": ("neg", {}),
    "exponential": ("exp", {}),
    "log": ("log", {}),
    "logistic": ("logistic", {}),
    "tanh": ("tanh", {}),
    "cosine": ("cos", {}),
    "floor": ("floor", {}),
    "rsqrt": ("rsqrt", {}),
    "select": ("select_v2", {}),
}
_COMPARED = {"EQ": "equal", "NE": "not_equal", "GE": "greater_equal", "GT": "greater", "LE": "less_equal", "LT": "less"}


def as_builtin(op: Op) -> Op | None:
    """The builtin that computes an operator, on the same results; None if there is none."""
    name = op.name.removeprefix("tfl.stablehlo_")
    if name == op.name:
        return None
    if name in _SAME:
        builtin, attributes = _SAME[name]
        return _made(op, builtin, op.operands, attributes)
    return _OTHERS[name](op) if name in _OTHERS else None


def _made(op: Op, builtin: str, operands: list[Value | None], attributes: Mapping[str, Any]) -> Op:
    """An op beside the one it stands for: the results keep their producer."""
    made = Op(f"tfl.{builtin}", list(operands), [], dict(attributes), op.location)
    made.results = op.results
    return made


def _ints(values: Any) -> Value:
    return constant(np.asarray(values, np.int32))


def _option(op: Op, name: str) -> list[int]:
    found = op.attributes[name]
    return [] if found is None else [int(v) for v in found]


def _compare(op: Op) -> Op | None:
    direction = str(op.attributes["comparison_direction"]).rpartition("_")[2]
    return _made(op, _COMPARED[direction], op.operands, {})


def _convert(op: Op) -> Op | None:
    x, y = op.operand(0).type, op.result.type
    if y.quantized and (x.quantized or x.storage.is_float):
        return _made(op, "quantize", op.operands, {})
    return _made(op, "dequantize", op.operands, {}) if x.quantized and y.storage.is_float else None


def _reshape(op: Op) -> Op | None:
    shape = [-1 if d is None else d for d in op.result.type.shape or ()]
    if op.result.type.shape is None or shape.count(-1) > 1:
        return None
    return _made(op, "reshape", [op.operand(0), _ints(shape)], {"new_shape": np.asarray(shape, np.int32)})


def _transpose(op: Op) -> Op | None:
    return _made(op, "transpose", [op.operand(0), _ints(_option(op, "permutation"))], {})


def _concatenate(op: Op) -> Op | None:
    return _made(op, "concatenation", op.operands, {**_NONE, "axis": int(op.attributes["dimension"])})


def _slice(op: Op) -> Op | None:
    numbers = [_ints(_option(op, name)) for name in ("start_indices", "limit_indices", "strides")]
    masks = {f"{mask}_mask": 0 for mask in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    return _made(op, "strided_slice", [op.operand(0), *numbers], {**masks, "offset": False})


def _dot_general(op: Op) -> Op | None:
    """Leading batch dims, and one dim multiplied: BATCH_MATMUL."""
    x, y = op.operand(0).type, op.operand(1).type
    if any(not isinstance(t.element, UniformQuantizedType) for t in (x, y)) or x.rank is None or x.rank != y.rank:
        return None
    batch = list(range(x.rank - 2))
    sides = [
        (_option(op, f"{side}_batching_dimensions"), _option(op, f"{side}_contracting_dimensions"))
        for side in ("lhs", "rhs")
    ]
    if any(b != batch or len(c) != 1 or c[0] < x.rank - 2 for b, c in sides):
        return None
    adjoint = {"adj_x": sides[0][1] == [x.rank - 2], "adj_y": sides[1][1] == [x.rank - 1]}
    return _made(op, "batch_matmul", op.operands, {**adjoint, "asymmetric_quantize_inputs": False})


_OTHERS: Mapping[str, Callable[[Op], Op | None]] = {
    "compare": _compare,
    "convert": _convert,
    "reshape": _reshape,
    "transpose": _transpose,
    "concatenate": _concatenate,
    "slice": _slice,
    "dot_general": _dot_general,
}
