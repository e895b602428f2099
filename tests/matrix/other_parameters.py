"""Data movement whose result has other quantization parameters than its source, or several scales.

Kernels that look at no parameters copy the integers; where the kernel refuses, the conversion is within one count of
what the float kernel makes of the real values.
"""

from __future__ import annotations

import numpy as np
from support.harness import argument, const, edge_inputs

import tflq
from matrix import movement, pooling, rows, stored
from matrix.draw import GENERATORS, Case, Draw, generator, single
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import (
    QuantizedType,
    ScalarType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    f32,
    i8,
    i16,
    i32,
    i64,
    parameters,
    ui8,
)
from tflq.legalize.movement import seen_by_kernel

__all__: list[str] = []

_MOVED = (
    *("reshape", "squeeze_expand", "transpose", "slice", "strided_slice", "pad", "concatenation", "split"),
    *("pack_unpack", "gather", "tile", "reverse", "space_depth", "space_batch", "update_slice", "select", "fill"),
)
_RAW = ("pool", "resize", "arg", "l2_normalization", "embedding_lookup")
_ASKS = frozenset(
    f"tfl.{name}"
    for name in "expand_dims pack unpack fill mirror_pad space_to_batch_nd batch_to_space_nd padv2".split()
)
_LACKS: dict[str, ScalarType] = {"tfl.reverse_sequence": i8, "tfl.space_to_depth": i16, "tfl.depth_to_space": i16}

assert all(name in GENERATORS for name in (*_MOVED, *_RAW)), (movement, pooling, rows, stored)


@generator("other_parameters")
def other_parameters(draw: Draw) -> Case:
    """Any movement, its results under other parameters."""
    case, op = _drawn(draw)
    storage = op.results[0].type.storage
    element = draw.quantized(storage, draw.near(_scale(op.results[0])))
    for result in op.results:
        if result.type.quantized:
            result.type = result.type.with_element(element)
    return _case(draw, case, op, _refused(op) or (op.name == "tfl.concatenation" and storage == i8))


@generator("moved_per_axis")
def moved_per_axis(draw: Draw) -> Case:
    """Any movement of tensors that have a scale per index of some dim."""
    case, op = _drawn(draw)
    scales = np.asarray([draw.near(_scale(op.results[0])) for _ in range(64)], np.float32)
    zero = draw.zero_point(op.results[0].type.storage) if draw.chance(0.5) else 0
    for value in dict.fromkeys(op.tensors):
        if value.type.quantized and value.type.rank and draw.chance(0.8):
            value.type = value.type.with_element(_per_axis(draw, value, scales, zero))
    lacks = op.results[0].type.storage == _LACKS.get(op.name)
    mixed = len({seen_by_kernel(v) for v in op.tensors if v.type.quantized}) > 1
    raw = op.name == "tfl.concatenation" and op.results[0].type.storage == i16
    refused = lacks or (mixed and not raw and op.name in {*_ASKS, "tfl.concatenation"})
    made = _case(draw, case, op, refused)
    made.integer = False
    return made


@generator("raw_per_axis")
def raw_per_axis(draw: Draw) -> Case:
    """Kernels that compute on stored integers, on tensors that have a scale per index of some dim."""
    case, op = _drawn(draw, _RAW)
    scales = np.asarray([draw.near(0.1) for _ in range(64)], np.float32)
    for value in dict.fromkeys(op.tensors):
        results = value in op.results and op.name == "tfl.l2_normalization"  # whose scale its kernel asks for
        fused = value in op.results and op.attributes.get("fused_activation_function", "NONE") != "NONE"
        if value.type.quantized and value.type.rank and not results and not fused and draw.chance(0.7):
            zero = draw.zero_point(value.type.storage) if draw.chance(0.5) else 0
            value.type = value.type.with_element(_per_axis(draw, value, scales, zero))
    made = _case(draw, case, op, twin=False)
    made.integer, made.everywhere = case.integer, False
    return made


@generator("hashtable_lookup")
def hashtable_lookup(draw: Draw) -> Case:
    """Keys that are found, and that are not, whatever the parameters of values and result."""
    element = draw.quantized(draw.storage())
    other = draw.quantized(element.storage) if draw.chance(0.5) else element
    shape = draw.dims(draw.whole(1, 3), 1, 5)
    keys = np.sort(draw.rng.permutation(20)[: shape[0]])
    count = draw.whole(1, 6)
    wanted = np.where(draw.rng.random(count) < 0.6, draw.rng.choice(keys, count), draw.rng.integers(0, 20, count))
    values = const(draw.integers(element.storage, shape), element) if draw.chance(0.3) else argument(shape, element)
    results = [argument((len(wanted), *shape[1:]), other), argument((len(wanted),), ui8)]
    operands = [argument((len(wanted),), i32) if draw.chance(0.3) else const(wanted, i32), const(keys, i32), values]
    return single(draw, "hashtable_lookup", operands, results, {})


@generator("weights_of_the_other_sign")
def weights_of_the_other_sign(draw: Draw) -> Case:
    """FULLY_CONNECTED that reads uint8 weights as int8, or the reverse."""
    x, w = draw.one((i8, ui8), (i16, ui8), (ui8, i8))
    depth, outputs, rows = draw.whole(1, 30), draw.whole(1, 9), draw.whole(1, 5)
    source, scale = draw.quantized(x), draw.scale(-10, -4)
    weights = UniformQuantizedType.of(w, scale, draw.one(0, 0, 128 if w == ui8 else 0, draw.zero_point(w)))
    y = draw.quantized(x, float(np.float32(source.scale * scale * 2.0 ** draw.rng.uniform(0, 12))))
    bias = None
    if draw.chance(0.6):
        wide = i64 if x == i16 else i32
        bias = const(
            draw.integers(i32, (outputs,), -9999, 9999), UniformQuantizedType.of(wide, source.scale * scale, 0)
        )
    options = {
        "fused_activation_function": draw.activation(),
        "weights_format": "DEFAULT",
        "keep_num_dims": False,
        "asymmetric_quantize_inputs": False,
    }
    operands = [argument((rows, depth), source), const(draw.integers(w, (outputs, depth)), weights), bias]
    case = single(draw, "fully_connected", operands, [argument((rows, outputs), y)], options, 9, batched=True)
    case.everywhere = False
    return case


def _per_axis(draw: Draw, value: Value, scales: np.ndarray, zero: int) -> QuantizedType:
    shape = [d or 0 for d in value.type.shape or ()]
    axis = draw.one(len(shape) - 1, draw.whole(0, len(shape) - 1))
    return UniformQuantizedPerAxisType.of(value.type.storage, axis, np.resize(scales, shape[axis]), zero)


def _drawn(draw: Draw, names: tuple[str, ...] = _MOVED) -> tuple[Case, Op]:
    """A case without open dims, and its operator."""
    while True:
        case = GENERATORS[draw.one(*names)](draw)
        op = tflq.read(case.model).main.ops[0]
        if all(v.type.is_static and 0 not in (v.type.shape or ()) for v in op.tensors):
            return case, op


def _scale(value: Value) -> float:
    return float(parameters(value.type)[0].reshape(-1)[0])


def _refused(op: Op) -> bool:
    """Whether the kernel takes no other parameters."""
    return op.name in _ASKS or op.results[0].type.storage == _LACKS.get(op.name)


def _case(draw: Draw, case: Case, op: Op, twin: bool) -> Case:
    inputs = [v for v in op.operands if v is not None and v.buffer is None]
    model = _file(op, inputs)
    text = f"{case.text.partition('(')[0]}: {', '.join(f'{v.name} {v.type.element} {v.type}' for v in op.tensors)}"
    made = Case(model, edge_inputs(inputs, draw.whole(0, 1 << 30)), f"{text} {op.attributes}")
    if twin:
        made.twin, made.tolerance, made.everywhere = _twin(op), 1, False
        made.reference = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
    return made


def _file(op: Op, inputs: list[Value]) -> bytes:
    return bytes(write(Module([Function("main", inputs, list(op.results), [op])])))


def _twin(op: Op) -> bytes:
    """The same operator on floats."""
    known: dict[Value, Value] = {}
    operands = [None if v is None else known.setdefault(v, _float(v)) for v in op.operands]
    results = [_float(v) for v in op.results]
    twin = Op(op.name, operands, results, op.attributes, info=op.info)
    return _file(twin, [v for v in operands if v is not None and v.buffer is None])


def _float(value: Value) -> Value:
    if not value.type.quantized:
        return value
    made = Value(value.type.with_element(f32), value.name)
    if value.is_constant:
        scale, zero = parameters(value.type)
        made.buffer = Buffer.of(((value.array.astype(np.int32) - zero).astype(np.float32) * scale).astype(np.float32))
    return made
