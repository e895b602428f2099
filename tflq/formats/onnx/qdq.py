"""Quantized operators that the target keeps: DEQUANTIZELINEAR, the operator on real numbers, QUANTIZELINEAR.

What computes the operator is its pattern (`@pattern`), or the lowering that it has on float32. Parameters are the
model's own, but a bias is taken at the scale of input times weights, as kernels read it, whatever is written of it.
Constants are moved before they are dequantized, so that a compiler finds them stored behind each DEQUANTIZELINEAR.

A fused activation that the stored range does not imply follows as a CLIP of its own, between casts with the same
parameters: the operator before it stays one that ONNX Runtime computes on integers, and the CLIP loses nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Final

import numpy as np

from tflq.base.errors import Refused
from tflq.dialects.declare import trait_of
from tflq.dialects.forms import OF_TARGET
from tflq.dialects.parameters import MultiplyAccumulate
from tflq.dialects.registry import Registry
from tflq.dialects.tfl import activation, fused_activation, without_activation
from tflq.dialects.tfl.arithmetic import Add, Sub
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.dialects.tfl.convolution import FullyConnected
from tflq.dialects.tfl.movement import Concatenation
from tflq.dialects.tfl.pooling import AveragePool2D, Mean, ResizeBilinear, ResizeNearestNeighbor
from tflq.formats.onnx import dialect as onnx
from tflq.formats.onnx.arithmetic import CLAMPS
from tflq.formats.onnx.context import Lowering, Onnx, OnnxTensor, Result, TensorForm, lowering, static
from tflq.formats.onnx.dialect import DequantizeLinear, Gemm, QuantizeLinear, ReduceMean, Resize
from tflq.formats.onnx.engine import LowerToOnnx, Runtimes, otherwise_notes, runtimes
from tflq.formats.onnx.movement import numbers, ordered_axes
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedPerAxisType, UniformQuantizedType, f32, i8, i32, ui8
from tflq.numerics.activation import BOUNDS, activation_range
from tflq.numerics.float_product import Byte, fitted_scales, mean_scale
from tflq.transforms.pass_manager import Decisions, Note

pattern: Final[Registry[Lowering]] = Registry("tflq.formats.onnx.qdq")
"""The lowering of an operator between casts, where it is not the lowering on float32."""

_SIGN: Final = 128


@dataclass(frozen=True)
class LowerToQdq(LowerToOnnx):
    """Lowers like `lower-to-onnx`, but quantized operators that the target keeps stand between casts."""

    name: ClassVar[str] = "lower-to-qdq"
    title: ClassVar[str] = "lowering to ONNX, with casts around quantized operators"

    def lowered(self, op: Op, t: Onnx) -> Result | Sequence[Result]:
        if op.info.get("kept") and any(v.type.quantized for v in op.tensors if not v.is_constant):
            return quantized(op, t)
        return super().lowered(op, t)


def quantized(op: Op, t: Onnx) -> list[Result]:
    """A quantized operator between casts. Refused if nothing computes it on real numbers."""
    compute = pattern.get(type(op)) or lowering.get(type(op))
    if compute is None:
        raise Refused(f"the QDQ form has no pattern of {op.name}", "leave it out of the target")
    reals = compute(_real(op, t), t)
    computed: Sequence[Result] = [reals] if isinstance(reals, (Value, OnnxTensor)) else reals
    return [_stored(t, x, result, op) for x, result in zip(computed, op.results, strict=True)]


def _real(op: Op, t: Onnx) -> Any:
    """The operator on dequantized operands, without its activation."""
    parts = trait_of(op, MultiplyAccumulate)
    bias = None if parts is None else parts.bias.value(op)
    weights = None if parts is None else parts.weights.value(op)
    operands: list[Value | None] = []
    for value, scale in zip(op.operands, operand_scales(op, t), strict=True):
        if value is not None and value is bias:
            operands.append(_as_real(t, value, _bias(t, op, value)))
        elif value is not None and value.type.quantized:
            operands.append(_as_real(t, value, dequantized(t, value, scale, weights=value is weights)))
        else:
            operands.append(value)
    results = [Value(_expressed(v.type)) for v in op.results]
    return Op(op.name, operands, results, without_activation(op), op.location)


def _expressed(type: TensorType) -> TensorType:
    return type.with_element(f32) if type.quantized else type


def _as_real(t: Onnx, value: Value, tensor: OnnxTensor) -> Value:
    """A value that stands for an operand's real numbers."""
    real = Value(_expressed(value.type.with_element(f32)))
    t.record(real, tensor)
    return real


def dequantized(t: Onnx, value: Value, scale: float | None = None, *, weights: bool = False) -> OnnxTensor:
    """An operand's real numbers, with its dims as they lie. scale: another than its own."""
    element = value.type.element
    if isinstance(element, UniformQuantizedType):
        tensor = t.tensor(value)
        first = tensor.first and not value.is_constant
        form = TensorForm(_bytes(element.storage), 0, first) if weights else _unsigned(element, first=first)
        stored = _as_unsigned(t, tensor, form, element) if not value.is_constant else tensor.get(t, form)
        real = dequantize(t, stored, scale or element.scale, element.zero_point - form.offset)
        return t.bind(real, value, first=first)
    if isinstance(element, UniformQuantizedPerAxisType):
        stored = t.tensor(value).get(t, TensorForm(_bytes(element.storage)))
        y = dequantize(t, stored, element.scales, element.zero_points, element.axis)
        return t.bind(y, value)
    raise Refused(f"'{value.name}' has scales of blocks, which DEQUANTIZELINEAR has from opset 21 on")


def _bytes(storage: ScalarType) -> ScalarType:
    """The type in which weights are stored: int8 for 4 bits."""
    return storage if storage.bits >= i8.bits else i8


def _unsigned(element: UniformQuantizedType, *, first: bool) -> TensorForm:
    """The form in which a tensor is stored in the file: int8 as uint8, 128 higher."""
    return TensorForm(ui8, -_SIGN, first) if element.storage == i8 else TensorForm(element.storage, 0, first)


def _as_unsigned(t: Onnx, tensor: OnnxTensor, form: TensorForm, element: UniformQuantizedType) -> Value:
    """A tensor as it is stored in the file; one of int8 that the form does not make, such as an input, by casts."""
    if form.offset and form not in tensor.forms:
        stored = tensor.get(t, TensorForm(element.storage, 0, form.first))
        real = dequantize(t, stored, element.scale, element.zero_point)
        tensor.forms[form] = quantize(t, real, element.scale, element.zero_point - form.offset, form.element)
    return tensor.get(t, form)


def _bias(t: Onnx, op: Op, bias: Value) -> OnnxTensor:
    """A bias at the scale of input times weights."""
    parts = trait_of(op, MultiplyAccumulate)
    assert parts is not None
    x, weights = parts.data.value(op), parts.weights.value(op)
    assert x is not None
    assert weights is not None
    if bias.type.storage != i32:
        raise Refused(f"a bias of {bias.type.storage}", "leave it out of the target")
    scales = np.float32(_scale(x)) * np.asarray(_scale(weights), np.float32)
    return t.bind(dequantize(t, t.value(bias), scales, np.zeros(scales.shape, np.int64), 0), bias)


def _scale(value: Value) -> Any:
    element: Any = value.type.element
    return element.scale if isinstance(element, UniformQuantizedType) else element.scales


def dequantize(t: Onnx, x: Value, scale: Any, zero_point: Any, axis: int = 1) -> Value:
    """DEQUANTIZELINEAR."""
    scales, zeros = _row(scale, zero_point)
    attributes = {"axis": axis} if scales.ndim else {}
    operands = [x, t.constant(scales, f32), t.constant(zeros, x.type.storage)]
    return t.emit(DequantizeLinear, operands, f32, **attributes)


def quantize(t: Onnx, x: Value, scale: Any, zero_point: Any, storage: ScalarType) -> Value:
    """QUANTIZELINEAR."""
    if storage not in (i8, ui8):
        raise Refused(f"a result of {storage}, which QUANTIZELINEAR has from opset 21 on", "leave it out of the target")
    scales, zeros = _row(scale, zero_point)
    operands = [x, t.constant(scales, f32), t.constant(zeros, storage)]
    cast = x.producer
    if isinstance(cast, DequantizeLinear) and cast.operands[1:] == operands[1:]:  # it is stored so already
        return cast.x
    return t.emit(QuantizeLinear, operands, storage)


def _row(scale: Any, zero_point: Any) -> tuple[np.ndarray, np.ndarray]:
    """Parameters, those of an axis as a row if they differ."""
    scales = np.asarray(scale, np.float32)
    return scales, np.broadcast_to(np.asarray(zero_point, np.int64), scales.shape)


def _stored(t: Onnx, source: Result, result: Value, op: Op) -> Result:
    """A computed result in the form in which it is stored."""
    if not result.type.quantized:
        return source
    element = result.type.element
    if not isinstance(element, UniformQuantizedType):
        raise Refused(f"'{result.name}' has a scale for each index of an axis")
    tensor = source if isinstance(source, OnnxTensor) else t.bind(source, result)
    form, x = next(iter(tensor.forms.items()))
    scale, zero_point, storage = element.scale, element.zero_point, element.storage
    stored_form = _unsigned(element, first=form.first)
    stored = scale, zero_point - stored_form.offset
    y = quantize(t, x, *stored, stored_form.element)
    fused = fused_activation(op)
    try:
        low, high = activation_range(fused, storage.minimum, storage.maximum, scale, zero_point)
    except ValueError as why:
        raise Refused(str(why)) from None
    if (low, high) != (storage.minimum, storage.maximum):
        ends = ((np.float32(n - zero_point) * np.float32(scale)) for n in (low, high))
        clipped = t.clip(dequantize(t, y, *stored), *map(float, ends))
        y = quantize(t, clipped, *stored, stored_form.element)
    tensor = t.bind(y, result, offset=stored_form.offset, first=stored_form.first)
    plain = TensorForm(storage)
    if result in t.results and plain != stored_form:  # the model returns it: with its type and dims
        real = t.bind(dequantize(t, y, *stored), result, first=stored_form.first).get(t, TensorForm(f32))
        tensor.forms[plain] = quantize(t, real, scale, zero_point, storage)
    return tensor


# The scales at which operands are dequantized: the model's, or the nearest with which ONNX Runtime rounds a result as
# TFLite's default kernels do. They are millionths away.


_OF_SCALES: Final = 4
"""Units of such a search (`Searches`)."""


def operand_scales(op: Op, t: Onnx) -> Sequence[float | None]:
    """The scale of each operand; None for its own."""
    if isinstance(op, (Add, Sub)):
        parameters = [_byte(v) for v in (op.lhs, op.rhs, op.output)]
        if None not in parameters:
            fitted = t.searched(_OF_SCALES, fitted_scales, *parameters, subtract=isinstance(op, Sub))
            return [None, None] if fitted is None else fitted
    if isinstance(op, AveragePool2D) and isinstance(element := op.input.type.element, UniformQuantizedType):
        count, signed = op.filter_height * op.filter_width, element.storage == i8
        return [mean_scale(element.scale, element.zero_point, count, signed=signed)]
    return [None for _ in op.operands]


def _byte(value: Value) -> Byte | None:
    """The parameters of a tensor as uint8."""
    element = value.type.element
    if not isinstance(element, UniformQuantizedType):
        return None
    return Byte(element.scale, element.zero_point + (128 if element.storage == i8 else 0))


# What the report says.


@dataclass(frozen=True, slots=True)
class QdqForm(Runtimes):
    """The runtimes that compute a file in the QDQ form exactly. between: how many operators of the source stand between
    casts; exact: those that have the exact form."""

    between: int = 0
    exact: tuple[str, ...] = ()

    def __str__(self) -> str:
        others = ", ".join(f"{name} x{n}" if n > 1 else name for name, n in Counter(self.exact).most_common())
        form = f"{self.between} operator{'s' * (self.between != 1)} between casts"
        form += f", in the exact form {others}" if others else ""
        return f"ONNX, opset {self.opset}, QDQ: {form}; {self.exactness}"

    def to_json(self) -> dict[str, Any]:
        return {**Runtimes.to_json(self), "between_casts": self.between, "exact_form": list(self.exact)}


_BETWEEN: Final = "between DequantizeLinear and QuantizeLinear"
_EXACT: Final = "in the exact form: "
_NO_PATTERN: Final = "the target has no pattern of it on these types"


def qdq_form(module: Module) -> tuple[list[Note], QdqForm]:
    """A note on each operator of a module in the QDQ form, and the report of all together."""
    decisions = Decisions.of(module)
    between = [d for d in decisions if d.reason.startswith(OF_TARGET)]
    exact = [d for d in decisions if d.path == "integer"]
    notes = [Note(d.op.location, _BETWEEN) for d in between]
    notes += [Note(d.op.location, _EXACT + (d.not_kernel or _NO_PATTERN)) for d in exact]
    notes += otherwise_notes(module)
    exactness = runtimes(module)
    opcodes = tuple(d.op.short_name.upper() for d in exact)
    return notes, QdqForm(exactness.names, exactness.opset, exactness.remedy, exactness.lost, len(between), opcodes)


# Operators on real numbers as the one operator that compilers look for, where the lowering on float32 has others.


@pattern(Quantize, Dequantize)
def cast(op: Quantize | Dequantize, t: Onnx) -> OnnxTensor:
    """The casts are all of it."""
    return t.tensor(op.input)


@pattern(FullyConnected)
def fully_connected(op: FullyConnected, t: Onnx) -> OnnxTensor:
    """GEMM of rows and of the weights as they are stored."""
    shape, (depth,) = op.output.type.shape, static(op.weights.type.dims[1:])
    if shape is None or op.weights_format != "DEFAULT":
        raise Refused("a FULLY_CONNECTED with shuffled weights, or whose rank is not known")
    rows = t.value(op.input)
    if len(rows.type.dims) != 2 or rows.type.shape[-1:] != (depth,):  # type: ignore[index]
        rows = t.reshape(rows, (None if None in shape else prod(static(shape[:-1])), depth))
    bias = [] if op.bias is None else [t.value(op.bias)]
    y = t.emit(Gemm, [rows, t.value(op.weights), *bias], transB=1)
    return t.bind(y if len(shape) == 2 else t.reshape(y, shape), op.output)


@pattern(Mean)
def mean(op: Mean, t: Onnx) -> OnnxTensor:
    """REDUCEMEAN; of whole images with channels first, if they lie so."""
    rank = len(op.input.type.dims)
    axes, tensor = ordered_axes(numbers(op.axes), rank), t.tensor(op.input)
    if not axes:
        return tensor
    if tensor.first and axes == [*range(1, rank - 1)]:
        x, axes = tensor.get(t, TensorForm(f32, first=True)), [*range(2, rank)]
        return t.bind(t.reduce(ReduceMean, x, axes, keep=op.keep_dims), op.output, first=op.keep_dims)
    return t.bind(t.reduce(ReduceMean, t.value(op.input), axes, keep=op.keep_dims), op.output)


@pattern(Concatenation)
def concatenate(op: Concatenation, t: Onnx) -> OnnxTensor:
    """CONCAT; with channels first, if all operands lie so."""
    tensors = [t.tensor(v) for v in op.operands if v is not None]
    rank = len(op.output.type.dims)
    axis, first = op.axis % rank, rank > 2 and all(tensor.first for tensor in tensors)
    if first:
        axis = {0: 0, rank - 1: 1}.get(axis, axis + 1)
    xs = [tensor.get(t, TensorForm(f32, first=first)) for tensor in tensors]
    return t.bind(t.concat(xs, axis), op.output, first=first)


@pattern(activation.Softmax)
def softmax(op: activation.Softmax, t: Onnx) -> OnnxTensor:
    x = t.value(op.input)
    x = x if op.beta == 1 else t.mul(x, t.like(op.beta, x))
    return t.bind(t.emit(onnx.Softmax, [x], axis=-1), op.result)


@pattern(*CLAMPS)
def clamp(op: activation.ScaledActivation, t: Onnx) -> OnnxTensor:
    """RELU or CLIP."""
    low, high = BOUNDS[CLAMPS[type(op)]]
    if low is None or high is None:
        return t.elementwise(t.relu, [op.input], op.output)
    return t.elementwise(lambda x: t.clip(x, low, high), [op.input], op.output)


@pattern(activation.LeakyRelu)
def leaky_relu(op: activation.LeakyRelu, t: Onnx) -> OnnxTensor:
    return t.elementwise(lambda x: t.emit(onnx.LeakyRelu, [x], alpha=op.alpha), [op.input], op.result)


@pattern(activation.Prelu)
def prelu(op: activation.Prelu, t: Onnx) -> OnnxTensor:
    return t.elementwise(lambda x, alpha: t.emit(onnx.PRelu, [x, alpha]), [op.input, op.alpha], op.result)


@pattern(activation.HardSwish)
def hard_swish(op: activation.HardSwish, t: Onnx) -> OnnxTensor:
    return t.elementwise(lambda x: t.emit(onnx.HardSwish, [x]), [op.input], op.result)


@pattern(ResizeBilinear, ResizeNearestNeighbor)
def resize(op: ResizeBilinear | ResizeNearestNeighbor, t: Onnx) -> OnnxTensor:
    """RESIZE. TFLite rounds the place of a nearest element up from the middle, or down where no flag is set."""
    place = "align_corners" if op.align_corners else "half_pixel" if op.half_pixel_centers else "asymmetric"
    mode = "linear" if isinstance(op, ResizeBilinear) else "nearest"
    nearest = "floor" if place == "asymmetric" else "round_prefer_ceil"
    batch, height, width, channels = static(op.output.type.shape)
    sizes = t.vector([batch, channels, height, width])
    x = t.tensor(op.input).get(t, TensorForm(f32, first=True))
    operands = [x, None, None, sizes]
    y = t.emit(Resize, operands, mode=mode, coordinate_transformation_mode=place, nearest_mode=nearest)
    return t.bind(y, op.output, first=True)
