"""Makes a model unreasonable: scales from 0 to infinity, zero points at the ends, extreme constants, odd shapes, open
dims, any fused activation, extreme options."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from matrix.draw import Draw
from tflq.dialects.declare import Operator
from tflq.formats.tflite.writer import write
from tflq.ir.module import Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import ElementType, TensorType, UniformQuantizedPerAxisType, UniformQuantizedType

SCALES = (
    *(0.0, 1e-45, 3.6e-43, 1e-40, 1e-38, 1e-35, 1e-30, 1e-25, 1e-20, 1e-15, 1e-10, 1e-7),
    *(1e5, 1e10, 1e15, 1e20, 1e25, 1e30, 1e35, 1e38, 3.4e38, math.inf),
)
_FUSED = "fused_activation_function"
_ACTIVATIONS = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")
_NUMBERS = ("alpha", "beta", "bias")
_EXTREME = (0.0, -0.0, 1e-45, 1e-20, -1.0, 1e10, -1e20, 3e38)

Shapes = list[tuple[int, ...]]


def twisted(
    draw: Draw, module: Module, op: Op, shapes: Sequence[tuple[int, ...]] | None
) -> tuple[bytes, Shapes | None]:
    """The model's file after some of these, and the shapes of its inputs, if these are others now; `shapes`: those it
    is run on."""
    _rescale(draw, module)
    _zero_points(draw, module)
    if draw.chance(0.85):
        _agree(op)
    if draw.chance(0.15):
        _constants(draw, op)
    _options(draw, op)
    found = _reshaped(draw, module, op) if draw.chance(0.2) else None
    if found is None and shapes is None and draw.chance(0.12):
        found = _opened(draw, module)
    return bytes(write(module)), found


def _any_scale(draw: Draw, near: float) -> float:
    """Any: a far one, one of any exponent, or one some powers of two from another one."""
    kind = draw.whole(0, 3)
    if kind == 0:
        return float(np.float32(draw.one(*SCALES)))
    if kind == 1:
        return float(np.float32(2.0 ** draw.rng.uniform(-149, 127)))
    with np.errstate(all="ignore"):
        exponent = draw.rng.uniform(-24, 24) if kind == 2 else draw.whole(-40, 40)
        return float(np.float32(near) * np.float32(2.0**exponent))


def _quantized(module: Module) -> list[Value]:
    values = dict.fromkeys(v for op in module.main.ops for v in op.tensors)
    return [v for v in values if isinstance(v.type.element, (UniformQuantizedType, UniformQuantizedPerAxisType))]


def _retyped(value: Value, element: ElementType) -> None:
    value.type = TensorType(value.type.shape, element)


def _rescale(draw: Draw, module: Module) -> None:
    """Scales of no tensor, of one, of each one, or one for all; mostly those that are alike stay so."""
    values = _quantized(module)
    kind = draw.one("none", "one", "one", "one", "each", "all")
    if kind == "none" or not values:
        return
    groups: dict[object, list[Value]] = {}
    alike = draw.chance(0.5)
    for i, value in enumerate(values):
        groups.setdefault(value.type.element if alike else i, []).append(value)
    chosen = list(groups.values()) if kind != "one" else [draw.one(*groups.values())]
    common = _any_scale(draw, _scale(values[0].type.element)) if kind == "all" else None
    for group in chosen:
        factor = _any_scale(draw, _scale(group[0].type.element)) if common is None else common
        at = draw.whole(0, 1 << 10)
        for value in group:
            _retyped(value, _with_scale(value.type.element, factor, at))


def _scale(element: ElementType) -> float:
    return float(np.ravel(getattr(element, "scales", getattr(element, "scale", 1.0)))[0])


def _with_scale(element: ElementType, new: float, at: int) -> ElementType:
    """Of per-axis types, that of one index; those of all, if `at` is even."""
    if isinstance(element, UniformQuantizedType):
        return element.replace(scale=new)
    assert isinstance(element, UniformQuantizedPerAxisType)
    scales = np.array(element.scales)
    if at % 2:
        scales[at % scales.size] = new
    else:
        with np.errstate(all="ignore"):
            scales = np.nan_to_num(scales / scales.max(), nan=1.0) * np.float32(new)
            scales = np.nan_to_num(scales, nan=0.0, posinf=np.inf)
    return UniformQuantizedPerAxisType.of(element.storage, element.axis, scales, element.zero_points)


def _zero_points(draw: Draw, module: Module) -> None:
    """At the ends of the storage; of int16 and wider ones seldom, which most kernels refuse."""
    for value in _quantized(module):
        element = value.type.element
        if not isinstance(element, UniformQuantizedType):
            continue
        if draw.chance(0.25 if element.storage.bits <= 8 else 0.01):
            ends = element.storage.minimum, element.storage.maximum
            _retyped(value, element.replace(zero_point=draw.one(*ends, *ends, 0, draw.whole(*ends))))


def _agree(op: Op) -> None:
    """A bias has the scale that kernels ask for: the product of the operands'."""
    names = [slot.name for slot in op.operand_slots] if isinstance(op, Operator) else []
    named = dict(zip(names, op.operands, strict=False))
    bias, x = named.get("bias"), named.get("input")
    weights = named.get("filter") or named.get("weights")
    if not (bias and x and weights and isinstance(x.type.element, UniformQuantizedType)):
        return
    element, of = bias.type.element, weights.type.element
    with np.errstate(all="ignore"):
        if isinstance(element, UniformQuantizedType) and isinstance(of, UniformQuantizedType):
            _retyped(bias, element.replace(scale=float(np.float32(x.type.element.scale) * np.float32(of.scale))))
        elif isinstance(element, UniformQuantizedPerAxisType) and isinstance(of, UniformQuantizedPerAxisType):
            scales = np.nan_to_num(np.float32(x.type.element.scale) * of.scales, nan=0.0, posinf=np.inf)
            if scales.shape == element.scales.shape:
                _retyped(bias, UniformQuantizedPerAxisType.of(element.storage, 0, scales, 0))


def _constants(draw: Draw, op: Op) -> None:
    """The extremes of its storage in a quantized constant of whole bytes."""
    for value in op.operands:
        if value is None or not value.is_constant or not value.type.quantized or value.type.storage.bits < 8:
            continue
        storage, array = value.type.storage, value.array
        low, high = storage.minimum, storage.maximum
        kind = draw.whole(0, 3)
        if storage.bits > 16:  # of a bias: what is far from overflowing by itself, and what is not
            low, high = draw.one((low, high), (-(1 << 30), 1 << 30), (-(1 << 20), 1 << 20))
        options = (
            np.full(array.shape, low),
            np.full(array.shape, high),
            draw.rng.choice(np.asarray([low, high], np.int64), array.shape),
            array,
        )
        value.buffer = Buffer.of(np.asarray(options[kind], storage.dtype, order="C"))


def _options(draw: Draw, op: Op) -> None:
    attributes = dict(op.attributes)
    if _FUSED in attributes and draw.chance(0.3):
        attributes[_FUSED] = draw.one(*_ACTIVATIONS)
    for name in _NUMBERS:
        if isinstance(attributes.get(name), float) and draw.chance(0.15):
            attributes[name] = float(np.float32(draw.one(*_EXTREME)))
    op.attributes = attributes


_SHAPES: tuple[tuple[int, ...], ...] = (
    *((), (1,), (0,), (7,), (1, 1), (3, 0, 2), (1, 1, 1, 1, 1), (2, 1, 3, 1, 2, 1), (1, 2, 1, 2, 1, 2, 1, 2)),
    *((257,), (1, 1031), (2, 3, 5, 7)),
)


def _reshaped(draw: Draw, module: Module, op: Op) -> Shapes | None:
    """Any shape, of models whose inputs and results all have one and whose other operands are constants of one element;
    None for others."""
    main = module.main
    tensors = [*main.inputs, *main.outputs]
    shapes = {v.type.shape for v in tensors}
    others = [
        v for v in op.operands if v is not None and v.is_constant and math.prod(d or 0 for d in v.type.shape or ()) != 1
    ]
    axes = any("axis" in name or name in ("perm", "dim") for name in op.attributes)
    if len(main.ops) != 1 or len(shapes) != 1 or others or axes or not main.inputs or not tensors[0].type.is_static:
        return None
    if any(isinstance(v.type.element, UniformQuantizedPerAxisType) for v in tensors):
        return None
    shape = draw.one(*_SHAPES)
    for value in dict.fromkeys(tensors):
        value.type = TensorType(shape, value.type.element)
    return [shape] * len(main.inputs)


def _opened(draw: Draw, module: Module) -> Shapes | None:
    """The first dim left open, where all inputs and results have the same, and no constant has it."""
    main = module.main
    tensors = [*main.inputs, *main.outputs]
    if not main.inputs or any(not v.type.shape or not v.type.is_static for v in tensors):
        return None
    first = {(v.type.shape or (0,))[0] for v in tensors}
    if len(first) != 1 or any(isinstance(v.type.element, UniformQuantizedPerAxisType) for v in tensors):
        return None
    shapes = [tuple(d or 0 for d in v.type.shape or ()) for v in main.inputs]
    for value in dict.fromkeys(tensors):
        value.type = TensorType((None, *(value.type.shape or ())[1:]), value.type.element)
    return shapes
