"""Data movement whose result has other quantization parameters than its source, or several scales.

Kernels that look at no parameters copy the integers; where the kernel refuses, the conversion is within one count of
what the float kernel makes of the real values.
"""

from __future__ import annotations

import numpy as np
from harness import edge_inputs

import tflq
from matrix import movement, stored
from matrix.draw import GENERATORS, Case, Draw, generator
from tflq.flatbuffer.writer import write
from tflq.ir.core import Buffer, Function, Module, Op, Value
from tflq.ir.parameters import parameters
from tflq.ir.types import QuantizedType, ScalarType, UniformQuantizedPerAxisType, f32, i8, i16
from tflq.legalize.reference.moved_parameters import seen_by_kernel

__all__: list[str] = []

_MOVED = (
    *("reshape", "squeeze_expand", "transpose", "slice", "strided_slice", "pad", "concatenation", "split"),
    *("pack_unpack", "gather", "tile", "reverse", "space_depth", "space_batch", "update_slice", "select", "fill"),
)
_ASKS = frozenset(
    f"tfl.{name}"
    for name in "expand_dims pack unpack fill mirror_pad space_to_batch_nd batch_to_space_nd padv2".split()
)
_LACKS: dict[str, ScalarType] = {"tfl.reverse_sequence": i8, "tfl.space_to_depth": i16, "tfl.depth_to_space": i16}

assert all(name in GENERATORS for name in _MOVED), (movement, stored)


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
    for value in dict.fromkeys(op.values):
        if value.type.quantized and value.type.rank and draw.chance(0.8):
            value.type = value.type.with_element(_per_axis(draw, value, scales, zero))
    lacks = op.results[0].type.storage == _LACKS.get(op.name)
    mixed = len({seen_by_kernel(v) for v in op.values if v.type.quantized}) > 1
    raw = op.name == "tfl.concatenation" and op.results[0].type.storage == i16
    refused = lacks or (mixed and not raw and op.name in {*_ASKS, "tfl.concatenation"})
    made = _case(draw, case, op, refused)
    made.integer = False
    return made


def _per_axis(draw: Draw, value: Value, scales: np.ndarray, zero: int) -> QuantizedType:
    shape = [d or 0 for d in value.type.shape or ()]
    axis = draw.one(len(shape) - 1, draw.whole(0, len(shape) - 1))
    return UniformQuantizedPerAxisType.of(value.type.storage, axis, np.resize(scales, shape[axis]), zero)


def _drawn(draw: Draw) -> tuple[Case, Op]:
    """A case without open dims, and its operator."""
    while True:
        case = GENERATORS[draw.one(*_MOVED)](draw)
        op = tflq.read(case.model).main.ops[0]
        if all(v.type.is_static and 0 not in (v.type.shape or ()) for v in op.values):
            return case, op


def _scale(value: Value) -> float:
    return float(parameters(value.type)[0].reshape(-1)[0])


def _refused(op: Op) -> bool:
    """Whether the kernel takes no other parameters."""
    return op.name in _ASKS or op.results[0].type.storage == _LACKS.get(op.name)


def _case(draw: Draw, case: Case, op: Op, twin: bool) -> Case:
    inputs = [v for v in op.operands if v is not None and v.buffer is None]
    model = _file(op, inputs)
    text = f"{case.text.partition('(')[0]}: {', '.join(f'{v.name} {v.type.element} {v.type}' for v in op.values)}"
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
