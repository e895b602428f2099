"""StableHLO's operators as the builtins that compute the same, with the same operands in the same places: those of
TFLite files, and of the `stablehlo` dialect of text those that floats have.

The interpreter has kernels for only a few STABLEHLO operators; it runs none of the others, not even on floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tflq.dialects.declare import Operator
from tflq.dialects.stablehlo import arithmetic, unary
from tflq.dialects.tfl import stablehlo as hlo
from tflq.dialects.tfl.activation import Logistic, Tanh
from tflq.dialects.tfl.arithmetic import Add, Div, Maximum, Minimum, Mul, Pow, Sub
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.dialects.tfl.comparison import Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual, SelectV2
from tflq.dialects.tfl.matmul import BatchMatMul
from tflq.dialects.tfl.movement import Concatenation, Reshape, StridedSlice, Transpose
from tflq.dialects.tfl.unary import Abs, Cos, Exp, Floor, Log, Neg, Rsqrt, Sqrt
from tflq.ir.core import Op, Value, constant
from tflq.ir.types import UniformQuantizedType

__all__ = ["as_builtin", "builtin_name", "option"]

_NONE: Final[Mapping[str, Any]] = {"fused_activation_function": "NONE"}
_ANY_SCALE: Final[Mapping[str, Any]] = {**_NONE, "pot_scale_int16": False}
_SAME: Final[Mapping[type[Op], tuple[type[Operator], Mapping[str, Any]]]] = {
    hlo.StablehloAdd: (Add, _ANY_SCALE),
    hlo.StablehloSubtract: (Sub, _ANY_SCALE),
    arithmetic.Add: (Add, _NONE),
    arithmetic.Subtract: (Sub, _NONE),
    **dict.fromkeys((hlo.StablehloMultiply, arithmetic.Multiply), (Mul, _NONE)),
    **dict.fromkeys((hlo.StablehloDivide, arithmetic.Divide), (Div, _NONE)),
    **dict.fromkeys((hlo.StablehloMaximum, arithmetic.Maximum), (Maximum, {})),
    **dict.fromkeys((hlo.StablehloMinimum, arithmetic.Minimum), (Minimum, {})),
    **dict.fromkeys((hlo.StablehloAbs, unary.Abs), (Abs, {})),
    **dict.fromkeys((hlo.StablehloNegate, unary.Negate), (Neg, {})),
    **dict.fromkeys((hlo.StablehloExponential, unary.Exponential), (Exp, {})),
    **dict.fromkeys((hlo.StablehloLogistic, unary.Logistic), (Logistic, {})),
    **dict.fromkeys((hlo.StablehloTanh, unary.Tanh), (Tanh, {})),
    **dict.fromkeys((hlo.StablehloFloor, unary.Floor), (Floor, {})),
    **dict.fromkeys((hlo.StablehloRsqrt, unary.Rsqrt), (Rsqrt, {})),
    unary.Sqrt: (Sqrt, {}),
    hlo.StablehloPower: (Pow, {}),
    hlo.StablehloLog: (Log, {}),
    hlo.StablehloCosine: (Cos, {}),
    hlo.StablehloSelect: (SelectV2, {}),
}
_MOST_DIMS = 5
"""Of an operand of BATCH_MATMUL, which has two or more."""
_COMPARED: Final[Mapping[str, type[Operator]]] = {
    "EQ": Equal,
    "NE": NotEqual,
    "GE": GreaterEqual,
    "GT": Greater,
    "LE": LessEqual,
    "LT": Less,
}


def as_builtin(op: Op) -> Op | None:
    """The builtin that computes an operator, on the same results; None if there is none."""
    same = _SAME.get(type(op))
    if same is not None:
        return _made(op, same[0], op.operands, same[1])
    match op:
        case hlo.StablehloCompare():
            return _made(op, _COMPARED[op.comparison_direction.rpartition("_")[2]], op.operands, {})
        case hlo.StablehloConvert():
            return _convert(op)
        case hlo.StablehloReshape():
            return _reshape(op)
        case hlo.StablehloTranspose():
            return _made(op, Transpose, [op.input, _ints(op.permutation)], {})
        case hlo.StablehloConcatenate():
            return _made(op, Concatenation, op.inputs, {**_NONE, "axis": op.dimension})
        case hlo.StablehloSlice():
            return _slice(op)
        case hlo.StablehloDotGeneral():
            return _dot_general(op)
    return None


def builtin_name(kind: type[Op]) -> str:
    """TFLite's name of the builtin that computes operators of a class, or of the class itself if there is none: ADD."""
    found = _SAME[kind][0] if kind in _SAME else kind
    return found.op_name.removeprefix("tfl.").upper() if issubclass(found, Operator) else ""


def _made(op: Op, builtin: type[Operator], operands: list[Value | None], attributes: Mapping[str, Any]) -> Op:
    """An op beside the one it stands for: the results keep their producer."""
    made = Op(builtin.op_name, list(operands), [], dict(attributes), op.location)
    made.results = op.results
    return made


def option(stated: Any) -> list[int]:
    """The integers of an option; none if it is left out."""
    return [] if stated is None else [int(v) for v in stated]


def _ints(stated: Any) -> Value:
    return constant(np.asarray(option(stated), np.int32))


def _convert(op: hlo.StablehloConvert) -> Op | None:
    x, y = op.input.type, op.output.type
    if y.quantized and (x.quantized or x.storage.is_float):
        return _made(op, Quantize, [op.input], {})
    return _made(op, Dequantize, [op.input], {}) if x.quantized and y.storage.is_float else None


def _reshape(op: hlo.StablehloReshape) -> Op | None:
    shape = [-1 if d is None else d for d in op.output.type.shape or ()]
    if op.output.type.shape is None or shape.count(-1) > 1:
        return None
    return _made(op, Reshape, [op.input, _ints(shape)], {"new_shape": np.asarray(shape, np.int32)})


def _slice(op: hlo.StablehloSlice) -> Op:
    numbers = [_ints(stated) for stated in (op.start_indices, op.limit_indices, op.strides)]
    masks = {f"{mask}_mask": 0 for mask in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    return _made(op, StridedSlice, [op.input, *numbers], {**masks, "offset": False})


def _dot_general(op: hlo.StablehloDotGeneral) -> Op | None:
    """Leading batch dims, and one dim multiplied: BATCH_MATMUL."""
    x, y = op.lhs.type, op.rhs.type
    if any(not isinstance(t.element, UniformQuantizedType) for t in (x, y)) or x.rank != y.rank:
        return None
    if x.rank is None or not 2 <= x.rank <= _MOST_DIMS:
        return None
    batch = list(range(x.rank - 2))
    sides = [
        (option(op.lhs_batching_dimensions), option(op.lhs_contracting_dimensions)),
        (option(op.rhs_batching_dimensions), option(op.rhs_contracting_dimensions)),
    ]
    if any(b != batch or len(c) != 1 or c[0] < x.rank - 2 for b, c in sides):
        return None
    adjoint = {"adj_x": sides[0][1] == [x.rank - 2], "adj_y": sides[1][1] == [x.rank - 1]}
    return _made(op, BatchMatMul, [op.lhs, op.rhs], {**adjoint, "asymmetric_quantize_inputs": False})
