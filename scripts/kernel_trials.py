"""Models to try a kernel on, for data/kernels.py: in units that can be run apart, in the same order every time.

The random models of tests/matrix, one unit per generator, and those of the coverage table, one unit per operator. They
come in variants, since drawn models mostly have what kernels take: other parameters of an operand or a result,
a constant operand, a fused activation, indices of int64, and a bias of each type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matrix import GENERATORS
from matrix.run import case_of
from support.harness import edge_inputs

import tflq
from tflq.dialects.declare import Operator
from tflq.dialects.forms import stays_quantized_reason
from tflq.formats.tflite.writer import write
from tflq.ir.module import Module
from tflq.ir.ops import Buffer, Value
from tflq.ir.types import (
    ElementType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    bf16,
    f32,
    i16,
    i32,
    i64,
    parameters,
)
from tflq.tools.coverage.samples_of_layers import stored
from tflq.tools.coverage.table import operators, samples_of

__all__ = ["WEIGHTS", "Trial", "bias_of", "quantized_op", "trials", "unit_of", "units"]

WEIGHTS = ("filter", "weights")
SAMPLES = "samples of "
MORE = {
    "arg": 4,
    "comparison": 3,
    "conv_2d": 2,
    "depthwise_conv_2d": 2,
    "fully_connected": 2,
    "quantize": 3,
    "reduce": 3,
    "requantize": 2,
    "softmax": 3,
}
"""Generators whose signatures are many, or whose answers are near ties, draw so many times as much."""
WIDENED = 5
"""Of so many random models one is tried with indices of int64, too."""
ACTIVATION = "fused_activation_function"
ACTIVATIONS = ("RELU", "RELU6", "RELU_N1_TO_1")


@dataclass(frozen=True, slots=True)
class Trial:
    """A model and its inputs."""

    model: bytes
    batches: list[list[np.ndarray]]


def units() -> list[str]:
    """The names of all units."""
    return [*GENERATORS, *(SAMPLES + name for name in operators())]


def trials(unit: str, count: int) -> Iterator[Trial]:
    """The models of a unit, `count` of a generator."""
    if unit in GENERATORS:
        for number in range(count * MORE.get(unit, 1)):
            case = case_of(unit, number)
            model = _visible(case.model)
            yield Trial(model, case.batches)
            variants = list(_biased(model))
            if number % WIDENED == 0:
                variants += _widened(model)
            yield from (Trial(model, case.batches) for model in variants)
        return
    for _, sample in samples_of(unit.removeprefix(SAMPLES)):
        model = _visible(sample)
        models = (model, *_biased(model), *_moved(model), *_activated(model), *_known(model), *_widened(model))
        yield from (trial for trial in map(_of, models) if trial is not None)


def quantized_op(module: Module) -> Operator | None:
    """The operator that is tried, if it is the one with quantized tensors, and has nothing of what no signature sees:
    shuffled weights, fused activations that every kernel refuses."""
    ops = [op for op in module.ops() if isinstance(op, Operator) and any(v.type.quantized for v in op.tensors)]
    if len(ops) != 1 or len(module.functions) != 1 or stays_quantized_reason(ops[0]) is not None:
        return None
    shuffled = ops[0].attributes.get("weights_format", "DEFAULT") != "DEFAULT"
    fused = ops[0].attributes.get(ACTIVATION, "NONE")
    return None if shuffled or fused not in ("NONE", *ACTIVATIONS) else ops[0]


def _of(model: bytes) -> Trial | None:
    """None if no file may hold the model, or numpy not its inputs."""
    try:
        main = tflq.read(model).main
    except tflq.InvalidModelError:
        return None
    if any(v.type.storage == bf16 for v in (*main.inputs, *main.outputs)):
        return None
    return Trial(model, edge_inputs(main.inputs))


def _read(model: bytes) -> tuple[Module, Operator] | None:
    try:
        module = tflq.read(model)
    except tflq.InvalidModelError:
        return None
    op = quantized_op(module)
    return None if op is None else (module, op)


def _moved(model: bytes) -> Iterator[bytes]:
    """Other scales and zero points of the first operand, and of the results."""
    for result, factor in ((True, 1.5), (True, 0.7), (False, 1.5), (False, 0.7), (False, 40.0)):
        if (found := _read(model)) is None:
            return
        module, op = found
        values = [v for v in (op.results if result else op.operands) if v is not None and v.type.quantized]
        if not values:
            continue
        for value in values if result else values[:1]:
            value.type = value.type.with_element(_other(value.type.element, factor))
        bias = None if result else bias_of(op)[1]
        if bias is not None and bias not in values[:1]:
            bias.type = bias.type.with_element(_rescaled(bias.type.element, factor))
        yield bytes(write(module))


def _other(element: ElementType, factor: float) -> ElementType:
    element = _rescaled(element, factor)
    if not isinstance(element, UniformQuantizedType) or element.storage.bits > 8:
        return element
    return element.replace(zero_point=min(element.zero_point + 1, element.storage_max - 1))


def _rescaled(element: ElementType, factor: float) -> ElementType:
    if isinstance(element, UniformQuantizedPerAxisType):
        zero = int(element.zero_points[0])
        return UniformQuantizedPerAxisType.of(element.storage, element.axis, element.scales * np.float32(factor), zero)
    if not isinstance(element, UniformQuantizedType):
        return element
    return element.replace(scale=float(np.float32(element.scale * factor)))


def _activated(model: bytes) -> Iterator[bytes]:
    for activation in ACTIVATIONS:
        if (found := _read(model)) is None or ACTIVATION not in found[1].attributes:
            return
        module, op = found
        op.attributes = {**op.attributes, ACTIVATION: activation}
        yield bytes(write(module))


def _known(model: bytes) -> Iterator[bytes]:
    """The only input as a constant."""
    if (found := _read(model)) is None or len(found[0].main.inputs) != 1:
        return
    module, op = found
    (value,) = module.main.inputs
    if not value.type.is_static or value.type.storage == bf16:
        return
    known = stored(value.type.shape or (), value.type.element, value.name)
    op.operands = [known if v is value else v for v in op.operands]
    module.main.inputs = []
    yield bytes(write(module))


def _widened(model: bytes) -> Iterator[bytes]:
    """Constant indices of int64 in place of int32."""
    if (found := _read(model)) is None:
        return
    module, op = found
    narrow = [v for v in op.operands if v is not None and v.is_constant and v.type.element == i32]
    if not narrow or "bias" in {slot.name for slot in op.operand_slots}:
        return
    wide = {v: Value(v.type.with_element(i64), v.name, buffer=Buffer.of(v.array.astype(np.int64))) for v in narrow}
    op.operands = [wide.get(v, v) if v is not None else None for v in op.operands]
    yield bytes(write(module))


def _visible(model: bytes) -> bytes:
    """The model with a bias of integers that shows."""
    if (found := _read(model)) is None:
        return model
    module, op = found
    place, bias = bias_of(op)
    if bias is None or not bias.type.storage.is_integer:
        return model
    op.operands = [*op.operands[:place], _stored(op, bias, bias.type.element), *op.operands[place + 1 :]]
    return bytes(write(module))


def bias_of(op: Operator) -> tuple[int, Value | None]:
    """Which operand is a bias, and the constant that it is, if it is one."""
    place = next((i for i, slot in enumerate(op.operand_slots) if slot.name == "bias"), -1)
    bias = None if place < 0 else op.optional(place)
    return place, bias if bias is not None and bias.is_constant and bias.type.rank else None


def _biased(model: bytes) -> Iterator[bytes]:
    """A bias of each type, with or without parameters, and none."""
    if (found := _read(model)) is None:
        return
    place, bias = bias_of(found[1])
    if bias is None:
        return
    for element in _biases(bias):
        module, op = _read(model) or found
        op.operands = [*op.operands[:place], *([] if element is None else [_stored(op, bias, element)])]
        _declare(op, element)
        yield bytes(write(module))


def _biases(bias: Value) -> Sequence[ElementType | None]:
    channels = (bias.type.shape or (0,))[0] or 0
    element = bias.type.element
    if isinstance(element, UniformQuantizedPerAxisType):
        scales = element.scales
    elif isinstance(element, UniformQuantizedType):
        scales = np.full(channels, element.scale, np.float32)
    else:
        return (None, i32, i64)
    kinds: list[ElementType | None] = [None, i32, i64, f32]
    for storage in (i32, i64):
        kinds.append(UniformQuantizedPerAxisType.of(storage, 0, scales, 0))
        if (scales == scales[:1]).all() and scales.size:
            kinds.append(UniformQuantizedType.of(storage, float(scales[0]), 0))
    return kinds


def _stored(op: Operator, bias: Value, element: ElementType) -> Value:
    """A bias that shows in the results, if it is read as another: by up to a quarter of their range."""
    storage = TensorType((), element).storage
    array = bias.array
    scale, result = unit_of(op, bias), op.result.type
    if scale is not None and isinstance(result.element, UniformQuantizedType):
        range = (result.element.storage_max - result.element.storage_min) * result.element.scale
        shares = np.resize([0.25, -0.25, 0.125, -0.125], array.shape)
        with np.errstate(over="ignore"):
            array = np.clip(np.round(shares * range / scale), -(1 << 30), 1 << 30)
    array = np.clip(array, -(1 << 30), 1 << 30).astype(storage.dtype)
    return Value(TensorType(bias.type.shape, element), bias.name, buffer=Buffer.of(array))


def unit_of(op: Operator, bias: Value) -> np.ndarray | None:
    """What one of a bias stands for: of plain integers, the scales of input and weights, multiplied."""
    if bias.type.quantized:
        return np.ravel(parameters(bias.type)[0])
    named = dict(zip((slot.name for slot in op.operand_slots), op.operands, strict=False))
    x, weights = named.get("input"), next((named[n] for n in WEIGHTS if n in named), None)
    if not (x and weights and x.type.quantized and weights.type.quantized):
        return None
    scales = np.ravel(parameters(x.type)[0])[0] * np.ravel(parameters(weights.type)[0])
    return np.resize(scales, (bias.type.shape or (1,))[0] or 1)


def _declare(op: Operator, element: ElementType | None) -> None:
    """Ops on int16 say which integers the bias is of, where they can."""
    storage = getattr(element, "storage", element)
    if "quantized_bias_type" in op.attributes and storage is not None:
        wide = any(v is not None and v.type.quantized and v.type.storage == i16 for v in op.operands[:-1])
        op.attributes = {**op.attributes, "quantized_bias_type": "INT32" if wide and storage == i32 else "FLOAT32"}
