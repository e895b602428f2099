"""Products of a quantized network, each with that of the float network, as matrices of weights and of inputs.

A convolution multiplies its weights with windows of its input: each place of a window is a column. A depthwise one has
a matrix for each channel of its input, CONV_2D and FULLY_CONNECTED have one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from tflq.dialects.tfl import fused_activation, op_name
from tflq.dialects.tfl.arithmetic import Add
from tflq.dialects.tfl.casts import Dequantize
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D, FullyConnected
from tflq.dialects.tfl.movement import Reshape
from tflq.ir.module import Function
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import (
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    i8,
    i32,
    i64,
)
from tflq.numerics.activation import BOUNDS
from tflq.numerics.ranges import block_scales
from tflq.numerics.reconstruction import Product, Stored
from tflq.numerics.xnnpack import LARGEST_FACTOR
from tflq.tools.quantize.debugging.pairing import Pair, Side, paired
from tflq.tools.quantize.regions.fusion import folded

_ACTIVATIONS: Final = {op_name(name): name for name in ("RELU", "RELU6", "RELU_N1_TO_1")}
_KINDS: Final = (UniformQuantizedType, UniformQuantizedPerAxisType, UniformQuantizedSubChannelType)
_LARGEST_BIAS: Final = {i32: 2.0**30, i64: 2.0**34}
"""Of a stored bias: half of what an accumulator holds; of int64 as `regions.propagate` has it."""


@dataclass(frozen=True)
class Layer:
    """A product.

    Attributes:
        name: The name of the float network's result.
        op: The quantized network's operator.
        real: The float network's input of it.
        floats: The float network's weights and bias.
        ends: The bounds of the activation.
    """

    name: str
    op: Conv2D | DepthwiseConv2D | FullyConnected
    real: Value
    floats: Product
    ends: tuple[float | None, float | None]

    @property
    def stored_input(self) -> Value:
        return self.op.input

    @property
    def weights(self) -> Value:
        """The constant that the weights are stored as."""
        return stored_weights_of(self.op)

    @property
    def columns(self) -> int:
        return int(self.floats.weights.shape[-1])

    @property
    def has_bias(self) -> bool:
        return self.op.bias is not None

    def is_same(self, other: Layer) -> bool:
        """Whether another function's product is stored in the same weights, and has an equal bias and activation."""
        return (
            (self.weights.buffer, type(self.op), self.ends) == (other.weights.buffer, type(other.op), other.ends)
            and self.has_bias == other.has_bias
            and np.array_equal(self.floats.bias, other.floats.bias)
        )

    def stored(self) -> Stored:
        """The weights and the bias of the quantized network."""
        kind = self.weights.type.element
        shape = self.floats.weights.shape
        weights = _grouped(self.op, self.weights.array.astype(np.float64)).reshape(shape)
        scales = np.asarray([kind.scale] if isinstance(kind, UniformQuantizedType) else kind.scales, np.float64)  # type: ignore[union-attr]
        each = np.broadcast_to(scales, shape[0] * shape[1]) if scales.size == 1 else scales
        return Stored(weights, each.reshape(*shape[:2], -1), self._bias().reshape(shape[:2]))

    def as_stored(self, scales: np.ndarray) -> np.ndarray:
        """Scales as a file has those of these weights."""
        blockwise = isinstance(self.weights.type.element, UniformQuantizedSubChannelType)
        return block_scales(scales) if blockwise else scales.astype(np.float32)

    def _bias(self) -> np.ndarray:
        bias = self.op.bias
        if bias is None:
            return np.zeros(self.floats.bias.size)
        array = bias.array.astype(np.float64)
        kind = bias.type.element
        if isinstance(kind, UniformQuantizedPerAxisType):
            return np.asarray(array * kind.scales)
        return np.asarray(array * kind.scale) if isinstance(kind, UniformQuantizedType) else array

    def takes(self, stored: Stored) -> np.ndarray:
        """Whether the operator can have them, for each output: a bias that fits, and a factor that runtimes take."""
        source, bias, result = self.op.input.type.element, self.op.bias, self.op.result.type.element
        if not isinstance(source, UniformQuantizedType) or not isinstance(result, UniformQuantizedType):
            return np.ones(stored.bias.shape, bool)
        steps = stored.scales[..., 0] * source.scale
        fits = steps < LARGEST_FACTOR * result.scale if result.storage is i8 else np.ones(steps.shape, bool)
        if bias is None:
            return fits
        return fits & (np.abs(stored.bias) / steps <= _LARGEST_BIAS[bias.type.storage])

    def put(self, stored: Stored, function: Function) -> None:
        """Gives the operator other weights and another bias, of the scales that follow."""
        old = self.weights
        kind = old.type.element
        if isinstance(kind, (UniformQuantizedPerAxisType, UniformQuantizedSubChannelType)):
            kind = kind.replace(scales=stored.scales.reshape(kind.scales.shape).astype(np.float32))
        array = _ungrouped(self.op, stored.weights, old.array.shape).astype(np.int8)
        new = _replace(function, old, array, TensorType(old.type.shape, kind))
        if isinstance(kind, UniformQuantizedSubChannelType):
            _set_block_scales(function, new, kind.scales)
        if (bias := self.op.bias) is not None:
            array, element = self._stored_bias(stored.bias.reshape(-1), bias, kind)
            _replace(function, bias, array, element)

    def _stored_bias(self, reals: np.ndarray, bias: Value, weights: object) -> tuple[np.ndarray, TensorType]:
        source, kind = self.op.input.type.element, bias.type.element
        if not isinstance(source, UniformQuantizedType) or not bias.type.quantized:
            return reals.astype(np.float32), bias.type
        if isinstance(kind, UniformQuantizedPerAxisType) and isinstance(weights, UniformQuantizedPerAxisType):
            kind = kind.replace(scales=(weights.scales.astype(np.float64) * source.scale).astype(np.float32))
        scales = kind.scales.astype(np.float64) if isinstance(kind, UniformQuantizedPerAxisType) else kind.scale  # type: ignore[union-attr]
        ends = np.iinfo(bias.type.storage.dtype)
        steps = np.clip(np.rint(reals / scales), ends.min, ends.max)
        return steps.astype(bias.type.storage.dtype), TensorType(bias.type.shape, kind)

    def rows(self, x: np.ndarray, places: np.ndarray) -> np.ndarray:
        """The inputs that the weights are multiplied with, of an array of the input: [rows, groups, columns].

        places: which of the results, by their numbers.
        """
        if isinstance(self.op, FullyConnected):
            return x.reshape(-1, 1, self.columns)[places]
        windows = _windows(self.op, x)
        height, width = windows.shape[1:3]
        n, rest = np.divmod(places, height * width)
        chosen = windows[n, rest // width, rest % width]  # rows, channels, kernel height, kernel width
        if isinstance(self.op, DepthwiseConv2D):
            return chosen.reshape(*chosen.shape[:2], -1)
        return np.moveaxis(chosen, 1, -1).reshape(len(chosen), 1, -1)

    def count(self, x: np.ndarray) -> int:
        """The number of rows of an array of the input."""
        if isinstance(self.op, FullyConnected):
            return x.size // self.columns
        return int(np.prod(_windows(self.op, x).shape[:3]))


def stored_weights_of(op: Conv2D | DepthwiseConv2D | FullyConnected) -> Value:
    """The constant weights of an operator, behind a DEQUANTIZE, and a RESHAPE of blocks to rows."""
    weights = op.weights if isinstance(op, FullyConnected) else op.filter
    blocks = weights.producer.input if isinstance(weights.producer, Reshape) else weights
    return blocks.producer.input if isinstance(blocks.producer, Dequantize) else weights


def _grouped(op: Op, weights: np.ndarray) -> np.ndarray:
    """Weights as [groups, outputs, columns]."""
    if isinstance(op, DepthwiseConv2D):
        columns = weights.reshape(-1, weights.shape[-1])
        groups = op.input.type.dims[-1] or 1
        return columns.T.reshape(groups, -1, len(columns))
    return weights.reshape(1, len(weights), -1)


def _ungrouped(op: Op, weights: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if isinstance(op, DepthwiseConv2D):
        return np.ascontiguousarray(weights.reshape(shape[-1], -1).T.reshape(shape))
    return weights.reshape(shape)


def _windows(op: Conv2D | DepthwiseConv2D, x: np.ndarray) -> np.ndarray:
    """A view of the windows of a padded input: [batch, height, width, channels, kernel height, kernel width]."""
    kernel = op.filter.type.dims[1:3]
    strides, dilations = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]  # type: ignore[operator]
    if op.padding == "SAME":
        sizes = x.shape[1:3]
        missing = [
            max((-(-size // stride) - 1) * stride + span - size, 0)
            for size, stride, span in zip(sizes, strides, spans, strict=True)
        ]
        x = np.pad(x, ((0, 0), *((each // 2, each - each // 2) for each in missing), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, spans, axis=(1, 2))  # type: ignore[call-overload]
    view: np.ndarray = windows[:, :: strides[0], :: strides[1], :, :: dilations[0], :: dilations[1]]
    return view


def _replace(function: Function, old: Value, array: np.ndarray, type: TensorType) -> Value:
    """Puts a constant in the place of another, among the operands and the tensors."""
    new = constant(array, type.storage, old.name)
    new.type, new.info = type, old.info
    function.replace({old: new})
    function.tensors = [new if value is old else value for value in function.tensors]
    return new


def _set_block_scales(function: Function, weights: Value, scales: np.ndarray) -> None:
    """Puts the scales of blocks into the tensor that has them in a file."""
    member, details = weights.info["quantization"]["details"]
    old = details["scales"]
    new = constant(scales.astype(np.float16), name=old.name)
    function.tensors = [new if value is old else value for value in function.tensors]
    quantization = {**weights.info["quantization"], "details": (member, {**details, "scales": new})}
    weights.info = {**weights.info, "quantization": quantization}


# Which products of the two networks belong together.


def layers_of(floats: Side, quantized: Side) -> list[Layer]:
    """The products of a quantized network whose weights and biases only they have, in order, with those of the float
    one."""
    readers = Counter(value for op in quantized.function.ops for value in op.operands)
    candidates = (_layer(pair, quantized.function.ops[pair.operator]) for pair in paired(floats, quantized).pairs)
    return [
        layer
        for layer in candidates
        if layer is not None and readers[layer.weights] == 1 and readers[layer.op.operands[1]] == 1
    ]


def separate_biases(function: Function) -> None:
    """Gives each product a constant bias of its own."""
    seen = set[Value]()
    for op in function.ops:
        bias = op.bias if isinstance(op, (Conv2D, DepthwiseConv2D, FullyConnected)) else None
        if bias is not None and bias.is_constant and bias in seen:
            copy = Value(bias.type, bias.name, buffer=bias.buffer, info=bias.info)
            op.operands = [copy if operand is bias else operand for operand in op.operands]
            function.tensors = [*function.tensors, copy]
        seen.update(op.present_operands)


def _layer(pair: Pair, last: Op) -> Layer | None:
    """The layer of a pair; None if it is none. last: the quantized network's operator, or the activation behind it."""
    op, stored_activation = _with_activation(last)
    if pair.operator < 0 or not isinstance(op, (Conv2D, DepthwiseConv2D, FullyConnected)) or len(pair.fed) != 1:
        return None
    product, *behind = folded(pair.ops) if pair.ops else [op]
    ((real, _),) = pair.fed
    if type(product) is not type(op) or product.input is not real or not _is_plain(op) or not _is_constant(product):
        return None
    added = None if product.bias is None else product.bias.array
    if behind and isinstance(behind[0], Add) and fused_activation(product) == "NONE":
        constants = [value.array for value in behind[0].present_operands if value.is_constant]
        if added is not None or len(constants) != 1 or constants[0].ndim != 1:
            return None
        added, activation, behind = constants[0], fused_activation(behind[0]), behind[1:]
    else:
        activation = fused_activation(product)
    if behind:
        activation = _ACTIVATIONS.get(behind[0].name, "") if len(behind) == 1 and activation == "NONE" else ""
    if activation != stored_activation or (activation != "NONE" and activation not in BOUNDS):
        return None
    weights = _grouped(op, stored_array(product).astype(np.float64))
    bias = np.zeros(weights.shape[:2]) if added is None else np.broadcast_to(added, weights.shape[0] * weights.shape[1])
    floats = Product(weights, bias.astype(np.float64).reshape(weights.shape[:2]))
    return Layer(pair.real.name, op, real, floats, BOUNDS.get(activation, (None, None)))


def _with_activation(op: Op) -> tuple[Op, str]:
    """An operator and its fused activation; of an activation by itself the operator before it, and the activation."""
    before = op.operand(0).producer if op.name in _ACTIVATIONS else None
    if before is None or fused_activation(before) != "NONE":
        return op, fused_activation(op)
    return before, _ACTIVATIONS[op.name]


def stored_array(op: Conv2D | DepthwiseConv2D | FullyConnected) -> np.ndarray:
    return (op.weights if isinstance(op, FullyConnected) else op.filter).array


def _is_constant(op: Conv2D | DepthwiseConv2D | FullyConnected) -> bool:
    weights = op.weights if isinstance(op, FullyConnected) else op.filter
    return weights.is_constant and (op.bias is None or op.bias.is_constant)


def _is_plain(op: Conv2D | DepthwiseConv2D | FullyConnected) -> bool:
    """Whether weights are stored with a scale for each output, or its blocks, or for all; biases are constants; and
    there are no groups."""
    weights, channels = stored_weights_of(op), op.input.type.dims[-1:]
    kind = weights.type.element
    if not weights.is_constant or not isinstance(kind, _KINDS):
        return False
    if isinstance(kind, UniformQuantizedType) and kind.zero_point:
        return False
    if isinstance(op, FullyConnected) and op.weights_format != "DEFAULT":
        return False
    grouped = isinstance(op, Conv2D) and weights.array.shape[-1:] != channels
    return not grouped and None not in channels and (op.bias is None or op.bias.is_constant)
