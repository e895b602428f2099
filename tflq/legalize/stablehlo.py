"""STABLEHLO operators of TFLite files on quantized tensors, and the builtins that compute the same.

ADD, MULTIPLY, MAXIMUM, MINIMUM, PAD and GATHER have kernels, which take the stored integers as they are; sums and
products wrap. Where parameters must hold, and for all other operators, the result is that of the builtin that computes
the same, with the parameters honoured; what is moved takes the result's parameters first. The interpreter runs no
others, not even on floats.

PAD writes `interior` values between elements (DILATE), then values around them; edges less than 0 cut off. GATHER
copies a slice of constant size from each start index, which is clamped: with known indices every element of the result
is picked by its place in the operand. Sources: kernels/stablehlo_elementwise.h, stablehlo_pad.cc, stablehlo_gather.cc;
the StableHLO specification.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tflq.base.errors import Refused
from tflq.dialects.builder import refined
from tflq.dialects.declare import Operator
from tflq.dialects.forms import undeclared
from tflq.dialects.quant import Table2D
from tflq.dialects.stablehlo import elementwise as text
from tflq.dialects.tfl import stablehlo as hlo
from tflq.dialects.tfl.activation import Logistic, Tanh
from tflq.dialects.tfl.arithmetic import (
    Abs,
    Add,
    Cos,
    Div,
    Exp,
    Floor,
    Log,
    Maximum,
    Minimum,
    Mul,
    Neg,
    Pow,
    Rsqrt,
    Sqrt,
    Sub,
)
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.dialects.tfl.comparison import Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual, SelectV2
from tflq.dialects.tfl.convolution import BatchMatMul
from tflq.dialects.tfl.indexing import DynamicUpdateSlice
from tflq.dialects.tfl.movement import Concatenation, Dilate, PadV2, Reshape, Slice, StridedSlice, Transpose
from tflq.dialects.tosa.elementwise import BitwiseAnd, BitwiseOr, LogicalNot
from tflq.dialects.tosa.movement import Tile
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, i1, i8, i16, i32, ui8
from tflq.legalize.movement import COPIED, seen_by_kernel, under
from tflq.legalize.pooling import COMBINE
from tflq.legalize.probing import gather_along, kernel_name, per_layer
from tflq.legalize.rule import (
    FOLLOWS_PARAMETERS,
    Answer,
    NotApplicable,
    Rewritten,
    RuleBuilder,
    rewritten,
    rule,
    rules_of,
)
from tflq.numerics.elementwise import COMPARISONS
from tflq.numerics.unary import REAL_FUNCTIONS, Stored, real_table, real_table_of_two

_NONE: Final[Mapping[str, Any]] = {"fused_activation_function": "NONE"}
_SAME: Final[Mapping[type[Op], tuple[type[Operator], Mapping[str, Any]]]] = {
    hlo.StablehloAdd: (Add, {**_NONE, "pot_scale_int16": False}),
    hlo.StablehloSubtract: (Sub, {**_NONE, "pot_scale_int16": False}),
    text.Add: (Add, _NONE),
    text.Subtract: (Sub, _NONE),
    **dict.fromkeys((hlo.StablehloMultiply, text.Multiply), (Mul, _NONE)),
    **dict.fromkeys((hlo.StablehloDivide, text.Divide), (Div, _NONE)),
    **dict.fromkeys((hlo.StablehloMaximum, text.Maximum), (Maximum, {})),
    **dict.fromkeys((hlo.StablehloMinimum, text.Minimum), (Minimum, {})),
    **dict.fromkeys((hlo.StablehloAbs, text.Abs), (Abs, {})),
    **dict.fromkeys((hlo.StablehloNegate, text.Negate), (Neg, {})),
    **dict.fromkeys((hlo.StablehloExponential, text.Exponential), (Exp, {})),
    **dict.fromkeys((hlo.StablehloLogistic, text.Logistic), (Logistic, {})),
    **dict.fromkeys((hlo.StablehloTanh, text.Tanh), (Tanh, {})),
    **dict.fromkeys((hlo.StablehloFloor, text.Floor), (Floor, {})),
    **dict.fromkeys((hlo.StablehloRsqrt, text.Rsqrt), (Rsqrt, {})),
    text.Sqrt: (Sqrt, {}),
    hlo.StablehloPower: (Pow, {}),
    hlo.StablehloLog: (Log, {}),
    hlo.StablehloCosine: (Cos, {}),
    hlo.StablehloSelect: (SelectV2, {}),
}
"""The builtin of an operator in files, and of one in text that floats have; operands are in the same order."""
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
_NOTE = "no kernel computes it; the real function, rounded"
_AT_ONCE = 8
"""From so many elements on, kernels shift several at once."""
_SHIFTS = (
    "shifts by negative amounts or by more than 31, which C++ leaves undefined, and interpreters differ; the result is "
    "that of the amounts modulo 32"
)


def as_builtin(op: Op) -> Op | None:
    """The builtin that computes an operator, with the same results; None if no builtin does."""
    same = _SAME.get(type(op))
    if same is not None:
        return _builtin_of(op, same[0], op.operands, same[1])
    match op:
        case hlo.StablehloCompare():
            return _builtin_of(op, _COMPARED[op.comparison_direction.rpartition("_")[2]], op.operands, {})
        case hlo.StablehloConvert():
            return _convert(op)
        case hlo.StablehloReshape():
            return _reshape(op)
        case hlo.StablehloTranspose():
            return _builtin_of(op, Transpose, [op.input, _ints(op.permutation)], {})
        case hlo.StablehloConcatenate():
            return _builtin_of(op, Concatenation, op.inputs, {**_NONE, "axis": op.dimension})
        case hlo.StablehloSlice():
            return _slice(op)
        case hlo.StablehloDotGeneral():
            return _dot_general(op)
    return None


def builtin_name(kind: type[Op]) -> str:
    """TFLite's name of the builtin that computes operators of a class, such as ADD; else of the class itself."""
    builtin = _SAME[kind][0] if kind in _SAME else kind
    return builtin.op_name.removeprefix("tfl.").upper() if issubclass(builtin, Operator) else ""


def _builtin_of(op: Op, builtin: type[Operator], operands: list[Value | None], attributes: Mapping[str, Any]) -> Op:
    """An op that stands for another one, whose results keep their producer. Refused if it has no such form."""
    stand_in = Op(builtin.op_name, list(operands), [], dict(attributes), op.location)
    stand_in.results = op.results
    if misfit := undeclared([stand_in]):
        raise Refused(misfit)
    return stand_in


def option(declared: Any) -> list[int]:
    """The integers of an option; an empty list if it is left out."""
    return [] if declared is None else [int(v) for v in declared]


def _ints(declared: Any) -> Value:
    return constant(np.asarray(option(declared), np.int32))


def _convert(op: hlo.StablehloConvert) -> Op | None:
    x, y = op.input.type, op.output.type
    if y.quantized and (x.quantized or x.storage.is_float):
        return _builtin_of(op, Quantize, [op.input], {})
    return _builtin_of(op, Dequantize, [op.input], {}) if x.quantized and y.storage.is_float else None


def _reshape(op: hlo.StablehloReshape) -> Op | None:
    shape = [-1 if d is None else d for d in op.output.type.dims]
    if op.output.type.shape is None or shape.count(-1) > 1:
        return None
    return _builtin_of(op, Reshape, [op.input, _ints(shape)], {"new_shape": np.asarray(shape, np.int32)})


def _slice(op: hlo.StablehloSlice) -> Op:
    numbers = [_ints(dims) for dims in (op.start_indices, op.limit_indices, op.strides)]
    masks = {f"{mask}_mask": 0 for mask in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    return _builtin_of(op, StridedSlice, [op.input, *numbers], {**masks, "offset": False})


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
    return _builtin_of(op, BatchMatMul, [op.lhs, op.rhs], {**adjoint, "asymmetric_quantize_inputs": False})


@rule(hlo.StablehloAdd, hlo.StablehloMaximum, hlo.StablehloMinimum, hlo.StablehloMultiply)
def stored(op: hlo.StablehloBinary, b: RuleBuilder) -> Answer:
    """The kernel's result, of stored integers."""
    x, y, result = op.lhs, op.rhs, op.result
    storage = result.type.storage
    one_shape = refined(x.type.shape, y.type.shape) == refined(y.type.shape, x.type.shape)
    if not one_shape or {x.type.storage, y.type.storage} != {storage}:
        raise NotApplicable(f"{kernel_name(op)} has a kernel only for operands of one shape and type")
    if storage not in (i8, ui8, i16, i32):
        raise NotApplicable(f"no form computes {kernel_name(op)} on {storage}")
    extreme = isinstance(op, (hlo.StablehloMaximum, hlo.StablehloMinimum))
    wide = storage if extreme else i32
    combined = COMBINE[builtin_name(type(op))](b, b.cast(b.value(x), wide), b.cast(b.value(y), wide))
    same = extreme and len({v.type.element for v in op.tensors}) == 1
    warning = "" if same else "the kernel takes the stored integers and ignores scales and zero points"
    return Rewritten([b.cast(combined, storage)], warning=warning)


@rule(
    hlo.StablehloCbrt,
    hlo.StablehloCosine,
    hlo.StablehloExponential,
    hlo.StablehloFloor,
    hlo.StablehloLog,
    hlo.StablehloLogistic,
    hlo.StablehloRsqrt,
    hlo.StablehloTanh,
)
def function(op: hlo.StablehloUnary, b: RuleBuilder) -> Answer:
    """A table of the real function."""
    same = as_builtin(op)
    try:
        source, output = per_layer(op)
    except NotApplicable:
        if same is None:
            raise _rejected(op) from None
        raise
    if source.storage != output.storage or source.storage not in (i8, ui8, i16):
        raise _rejected(op)
    parameters = (source.scale, source.zero_point, output.scale, output.zero_point)
    real = np.cbrt if same is None else REAL_FUNCTIONS[kernel_name(same)]
    table = real_table(real, source.storage.dtype, *parameters)
    return Rewritten([b.table(b.value(op.input), table)], note=_NOTE)


@rule(hlo.StablehloCompare)
def compare(op: hlo.StablehloCompare, b: RuleBuilder) -> Answer:
    """The stored integers, if their parameters are equal; else, for 8 bits, a table of all pairs."""
    x, y = op.lhs, op.rhs
    elements = per_layer(op, [x, y])
    direction = op.comparison_direction.rpartition("_")[2]
    if elements[0] == elements[1]:
        wide = [b.cast(b.value(v), i32) for v in (x, y)]
        greater = b.greater if direction in ("GT", "LT") else b.greater_equal
        if direction in ("EQ", "NE"):
            same = b.equal(*wide)
            return same if direction == "EQ" else b.emit(LogicalNot, [same])
        return greater(*(wide if direction.startswith("G") else wide[::-1]))
    if any(e.storage not in (i8, ui8) for e in elements):
        raise NotApplicable("other parameters of more than 8 bits")
    first, second = (Stored(e.storage.dtype, e.scale, e.zero_point) for e in elements)
    truth = real_table_of_two(COMPARISONS[direction], first, second, Stored(np.dtype(np.int8), 1.0, 0))
    return b.cast(_of_pairs(op, b, truth, i8), i1)


@rule(
    *(kind for kind in _SAME if kind.__module__ == hlo.__name__),
    hlo.StablehloCompare,
    hlo.StablehloConcatenate,
    hlo.StablehloConvert,
    hlo.StablehloReshape,
    hlo.StablehloSlice,
    hlo.StablehloTranspose,
    order=1,
)
def builtin(op: Op, b: RuleBuilder) -> Answer:
    """The builtin's result; parameters count."""
    same = as_builtin(op)
    if same is None:
        raise _rejected(op)
    return by_rules(same, b)


def by_rules(op: Op, b: RuleBuilder) -> Rewritten:
    """The answer of the first rule that goes by the parameters."""
    reasons, was = [], b.real
    b.real = True
    try:
        for candidate in rules_of(type(op)):
            start = len(b.ops)
            try:
                answer = rewritten(candidate(op, b))
                if not answer.warning:
                    return answer
                reasons.append(answer.warning)
            except NotApplicable as inapplicable:
                reasons.append(str(inapplicable))
            del b.ops[start:]
    finally:
        b.real = was
    raise NotApplicable("; ".join(reasons) or f"{kernel_name(op)} has no integer rule")


def _rejected(op: Op, form: str = "on quantized tensors has no form on builtins") -> Refused:
    remedy = "lower it to TFLite's builtins, or dequantize its operands, before converting"
    return Refused(f"{kernel_name(op)} {form}", remedy)


@rule(
    hlo.StablehloCustomCall,
    hlo.StablehloIota,
    hlo.StablehloReduce,
    hlo.StablehloRngBitGenerator,
    hlo.StablehloScatter,
    hlo.StablehloSort,
    hlo.StablehloWhile,
)
def refuse(op: Op, b: RuleBuilder) -> Answer:
    """Operators that run other functions, or have one of many kernels."""
    raise _rejected(op)


@rule(hlo.StablehloRemainder)
def remainder(op: hlo.StablehloRemainder, b: RuleBuilder) -> Answer:
    """A table of all pairs: the remainder has the dividend's sign."""
    try:
        elements = per_layer(op)
    except NotApplicable:
        raise _rejected(op) from None
    if any(e.storage not in (i8, ui8) for e in elements):
        raise _rejected(op)
    stored = [Stored(e.storage.dtype, e.scale, e.zero_point) for e in elements]
    return Rewritten([_of_pairs(op, b, real_table_of_two(np.fmod, *stored), elements[-1].storage)], note=_NOTE)


def _of_pairs(op: hlo.StablehloBinary, b: RuleBuilder, table: np.ndarray, storage: ScalarType) -> Value:
    """Both operands, looked up in a table of all pairs."""
    operands = [b.value(op.lhs), b.value(op.rhs), b.constant(table.reshape(-1), storage)]
    return b.emit(Table2D, operands, TensorType(op.result.type.shape, storage))


@rule(hlo.StablehloAnd, hlo.StablehloOr, hlo.StablehloShiftLeft)
def bits(op: hlo.StablehloAnd | hlo.StablehloOr | hlo.StablehloShiftLeft, b: RuleBuilder) -> Answer:
    """result = the bits of stored integers, combined or shifted."""
    storage, kind = op.result.type.storage, op.lhs.type.storage
    if op.rhs.type.storage != kind or not {kind, storage} <= {i8, ui8, i16, i32}:
        raise _rejected(op)
    x, y = b.cast(b.value(op.lhs), i32), b.cast(b.value(op.rhs), i32)
    note, warning = f"{kernel_name(op)} takes the stored integers, whatever they stand for", ""
    if isinstance(op, hlo.StablehloShiftLeft):
        combined = b.logical_left_shift(x, b.bitwise_and(y, 31))
        if not b.real and _vectorized(op) and not _within_int32(op.rhs):
            warning = _SHIFTS
    else:
        combined = b.emit(BitwiseAnd if isinstance(op, hlo.StablehloAnd) else BitwiseOr, [x, y], x.type)
    return Rewritten([b.cast(b.cast(combined, kind), storage)], note, warning, "unsettled")


def _vectorized(op: hlo.StablehloShiftLeft) -> bool:
    """Whether the kernel may shift several elements at once; one by one x86-64 shifts modulo 32."""
    shape = op.lhs.type.shape
    return shape is None or None in shape or math.prod(d or 0 for d in shape) >= _AT_ONCE


def _within_int32(amounts: Value) -> bool:
    return amounts.is_constant and bool(((amounts.array >= 0) & (amounts.array < 32)).all())


@rule(hlo.StablehloClamp)
def clamp(op: hlo.StablehloClamp, b: RuleBuilder) -> Answer:
    """result = min(max(x, low), high), all under the result's parameters"""
    ready = under(b, [op.low, op.input, op.high], op.output)
    if ready is None:
        raise _rejected(op)
    low, x, high = ready
    return Rewritten([b.minimum(b.maximum(x, low), high)], note=_NOTE)


# Stored integers moved.


_PER_LAYER: Final = "has a form on builtins only where parameters are per layer and dims are known"


def _sources(op: Op, b: RuleBuilder, values: list[Value], kernel: bool) -> tuple[list[Value], str] | None:
    """The values that are moved, and a warning where the kernel disregards parameters; None if they cannot be
    honoured."""
    result = op.result
    if any(v.type.storage != result.type.storage for v in values):
        return None
    if all(v.type.element == result.type.element and seen_by_kernel(v) != (0.0, 0) for v in values):
        return [b.value(v) for v in values], ""
    if kernel and not b.real:
        return [b.value(v) for v in values], COPIED
    ready = under(b, values, result)
    return None if ready is None else (ready, "")


def _not_copied(reason: str, warning: str) -> NotApplicable:
    """Why the rule does not apply, and a warning where the kernel copies integers under other parameters."""
    return NotApplicable(reason, f"{warning}; {FOLLOWS_PARAMETERS}" if warning else "")


@rule(hlo.StablehloPad)
def pad(op: hlo.StablehloPad, b: RuleBuilder) -> Answer:
    """result = the operand with stored values between and around its elements."""
    x = op.input
    sources = _sources(op, b, [x, op.value], kernel=True)
    if sources is None:
        raise NotApplicable(COPIED)
    (plain, fill), warning = sources
    if not x.type.is_static:
        raise _not_copied(f"the shape of '{x.name}' is not known", warning)
    low, high, inner = (option(v) for v in (op.edge_padding_low, op.edge_padding_high, op.interior_padding))
    return Rewritten([padded(b, plain, fill, low, high, inner)], warning=warning)


def padded(b: RuleBuilder, plain: Value, fill: Value, low: list[int], high: list[int], inner: list[int]) -> Value:
    """A tensor of known shape with `inner` fills between its elements, and fills around; less than 0 cuts off."""
    fill, shape, storage = b.reshape(fill, []), list(plain.type.sizes), plain.type.storage
    if any(inner):
        shape = [d + max(d - 1, 0) * i for d, i in zip(shape, inner, strict=True)]
        if 0 in shape:  # DILATE reads beyond what is empty
            plain = b.reshape(plain, shape)
        else:
            factors = b.constant(np.asarray(inner) + 1)
            plain = b.emit(Dilate, [plain, factors, fill], TensorType(tuple(shape), storage))
    around = np.maximum(np.stack([low, high], axis=-1).reshape(-1, 2), 0)
    if around.any():
        shape = [d + int(p.sum()) for d, p in zip(shape, around, strict=True)]
        plain = b.emit(PadV2, [plain, b.constant(around), fill], TensorType(tuple(shape), storage))
    start = [max(-v, 0) for v in low]
    if min([*low, *high], default=0) < 0:
        size = [d - s - max(-h, 0) for d, s, h in zip(shape, start, high, strict=True)]
        plain = b.slice(plain, tuple(start), tuple(size))
    return plain


@rule(hlo.StablehloGather)
def gather(op: hlo.StablehloGather, b: RuleBuilder) -> Answer:
    """result = slices from known start indices."""
    x, indices = op.input, op.indices
    sources = _sources(op, b, [x], kernel=True)
    if sources is None:
        raise NotApplicable(COPIED)
    (plain,), warning = sources
    if not x.type.is_static or not indices.is_constant:
        raise _not_copied(f"the shape of '{x.name}' or the indices '{indices.name}' are not known", warning)
    shape = x.type.sizes
    places = _places(op, indices.array, shape)
    flat = b.reshape(plain, [math.prod(shape)])
    return Rewritten([gather_along(b, flat, places)], warning=warning)


def _places(op: hlo.StablehloGather, indices: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """For each element of the result, its place in the flat operand."""
    sizes, mapped = option(op.slice_sizes), option(op.start_index_map)
    collapsed, offsets = option(op.collapsed_slice_dims), option(op.offset_dims)
    if any(sizes[i] != 1 for i in collapsed) or any(s > d for s, d in zip(sizes, shape, strict=True)):
        raise Refused(f"slices of {sizes} are not in {list(shape)}, or dims {collapsed} that go are not 1")
    at = op.index_vector_dim
    starts = indices[..., None] if at == indices.ndim else np.moveaxis(indices, at, -1)
    start = np.zeros((*starts.shape[:-1], len(shape)), np.int64)
    start[..., mapped] = starts
    start = np.clip(start, 0, np.asarray(shape) - sizes)
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    inside = (np.moveaxis(np.indices(sizes), 0, -1) * strides).sum(-1)
    inside = inside.squeeze(tuple(collapsed))
    batch = starts.ndim - 1
    places = (start * strides).sum(-1).reshape((*starts.shape[:-1], *(1,) * inside.ndim)) + inside
    return np.moveaxis(places, range(batch, places.ndim), offsets)


@rule(hlo.StablehloBroadcastInDim)
def broadcast_in_dim(op: hlo.StablehloBroadcastInDim, b: RuleBuilder) -> Answer:
    """result = the operand with its dims in the places stated, repeated."""
    x, result = op.input, op.result
    sources = _sources(op, b, [x], kernel=False)
    if sources is None or not x.type.is_static or not result.type.is_static:
        raise _rejected(op, _PER_LAYER)
    shape, dims = result.type.sizes, option(op.broadcast_dimensions)
    if not len({*dims}) == len(dims) == len(x.type.sizes) or not {*dims} <= {*range(len(shape))}:
        raise Refused(f"its broadcast_dimensions {dims} do not place {x.type} in {result.type}")
    places = dict(zip(dims, x.type.sizes, strict=True))
    if any(d not in (1, shape[place]) for place, d in places.items()):
        raise Refused(f"{x.type} does not broadcast to {result.type} at {dims}")
    ranked = b.reshape(sources[0][0], [places.get(i, 1) for i in range(len(shape))])
    times = tuple(d // (places.get(i) or 1) for i, d in enumerate(shape))
    type = TensorType(shape, result.type.storage)
    return Rewritten([b.emit(Tile, [ranked], type, multiples=times)])


@rule(hlo.StablehloDynamicSlice)
def dynamic_slice(op: hlo.StablehloDynamicSlice, b: RuleBuilder) -> Answer:
    """result = a slice of constant size from start indices, which are clamped."""
    x, sizes = op.input, option(op.slice_sizes)
    sources = _sources(op, b, [x], kernel=False)
    if sources is None or not x.type.is_static:
        raise _rejected(op, _PER_LAYER)
    most = np.asarray(x.type.shape) - sizes
    start = _starts(b, op.starts)
    start = b.minimum(b.maximum(start, np.zeros_like(most)), most)
    type = TensorType(tuple(sizes), op.result.type.storage)
    return Rewritten([b.emit(Slice, [sources[0][0], start, b.constant(sizes)], type)])


@rule(hlo.StablehloDynamicUpdateSlice)
def dynamic_update_slice(op: hlo.StablehloDynamicUpdateSlice, b: RuleBuilder) -> Answer:
    """result = the operand with a block replaced."""
    sources = _sources(op, b, [op.input, op.update], kernel=False)
    if sources is None:
        raise _rejected(op, _PER_LAYER)
    operands = [*sources[0], _starts(b, op.starts)]
    return Rewritten([b.emit(DynamicUpdateSlice, operands, op.result.type.stripped())])


def _starts(b: RuleBuilder, starts: Sequence[Value | None]) -> Value:
    """The start indices, each an operand, as one vector of int32. Refused if one is not an integer."""
    scalars = [v for v in starts if v is not None]
    for v in scalars:
        if v.type.quantized or not v.type.storage.is_integer or not v.type.is_static or math.prod(v.type.sizes) != 1:
            raise Refused(f"its start '{v.name}' is {v.type}, not one integer")
    if all(v.is_constant for v in scalars):
        return b.constant([min(max(v.array.item(), i32.minimum), i32.maximum) for v in scalars])
    parts = [b.reshape(b.cast(b.value(v), i32), [1]) for v in scalars]
    return b.concat(parts, 0)
