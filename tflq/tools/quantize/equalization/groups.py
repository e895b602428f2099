"""Values of a float network whose channels can be multiplied by factors, so that its outputs stay what they are.

A product with constant weights (CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED, TRANSPOSE_CONV) makes up for the factors
of its input by its weights, and gives its result factors by weights and bias. Between products factors go along: where
an operator gives f·y for f·x, channel by channel. Such are RELU, LEAKY_RELU, PRELU, ABS and NEG, pools, MEAN and SUM
over other dims, PAD, RESHAPE; ADD and SUB of tensors that all have the factors, constants as well; MUL where one
operand has them.

Values that are joined so are a group, and have the same factors. A group stays as it is where one of its values is an
input or an output, or where another operator makes or reads it: one with a bound or a curve (RELU6, TANH, SOFTMAX), or
that mixes channels. Channels are the last dim. RESHAPE may join it with dims before it: the number of channels is the
greatest common divisor of the last dims.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

from tflq.dialects.tfl import fused_activation
from tflq.dialects.tfl.activation import LeakyRelu, Prelu, Relu
from tflq.dialects.tfl.arithmetic import Abs, Add, Mul, Neg, Sub
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D, FullyConnected, TransposeConv
from tflq.dialects.tfl.movement import ExpandDims, Pad, Reshape, Squeeze
from tflq.dialects.tfl.pooling import AveragePool2D, MaxPool2D, Mean, ResizeBilinear, ResizeNearestNeighbor, Sum
from tflq.ir.module import Function
from tflq.ir.ops import Op, Value
from tflq.ir.types import CalibratedQuantizedType, f32


class Weights(NamedTuple):
    """Places of a product's operands, and the axes of the weights along its input's and its result's channels."""

    input: int
    weights: int
    bias: int
    read: int
    written: int


PRODUCTS: Final[Mapping[type[Op], Weights]] = {
    Conv2D: Weights(0, 1, 2, 3, 0),
    DepthwiseConv2D: Weights(0, 1, 2, 3, 3),
    FullyConnected: Weights(0, 1, 2, 1, 0),
    TransposeConv: Weights(2, 1, 3, 3, 0),
}
_ALONG: Final = (
    *(Relu, LeakyRelu, Prelu, Abs, Neg, Reshape, Squeeze, ExpandDims),
    *(AveragePool2D, MaxPool2D, ResizeBilinear, ResizeNearestNeighbor),
)
"""Operators whose result has the factors of their first operand, whatever else they read."""
_HOMOGENEOUS: Final = ("NONE", "RELU")
"""Fused activations that give f·x for f·x."""


@dataclass
class Group:
    """Values with the same factors.

    Attributes:
        values: Those that have them, in order.
        channels: The number of the factors.
        writers: The products that make one of the values.
        readers: Those that read one.
        constants: Constants that are multiplied as well: their operators and places among the operands.
        fixed: Whether the factors have to be 1.
    """

    values: list[Value] = field(default_factory=list)
    channels: int = 0
    writers: list[Op] = field(default_factory=list)
    readers: list[Op] = field(default_factory=list)
    constants: list[tuple[Op, int]] = field(default_factory=list)
    fixed: bool = False

    def join(self, other: Group) -> None:
        """Takes over what another group has."""
        self.values += other.values
        self.channels = math.gcd(self.channels, other.channels)
        self.writers += other.writers
        self.readers += other.readers
        self.constants += other.constants
        self.fixed |= other.fixed


def groups_of(function: Function) -> list[Group]:
    """The groups of a function that may have factors other than 1, and that products make and read."""
    groups = _Groups(function)
    for op in function.ops:
        groups.enter(op)
    for value in (*function.inputs, *function.outputs):
        groups.of(value).fixed = True
    different = {id(group): group for group in groups.by_value.values()}.values()
    return [
        each
        for each in different
        if not each.fixed and each.channels > 1 and each.readers and (each.writers or each.constants)
    ]


class _Groups:
    """The groups of a function, while its operators are gone through in order."""

    def __init__(self, function: Function) -> None:
        self.by_value: dict[Value, Group] = {}
        self._reads = Counter(value for op in function.ops for value in op.operands)
        self._reads.update(function.outputs)

    def of(self, value: Value) -> Group:
        if value not in self.by_value:
            dims, element = value.type.dims, value.type.element
            plain = element == f32 or (isinstance(element, CalibratedQuantizedType) and element.expressed == f32)
            known = plain and bool(dims) and dims[-1] is not None
            self.by_value[value] = Group([value], (dims[-1] or 0) if known else 0, fixed=not known)
        return self.by_value[value]

    def enter(self, op: Op) -> None:
        """Joins what an operator joins. Groups of all else that it reads and makes are fixed."""
        rule = next((rule for kind, rule in _RULES.items() if isinstance(op, kind)), None)
        joined = rule(self, op) if rule is not None and fused_activation(op) in _HOMOGENEOUS else []
        for first, second in pairwise(joined):
            self._join(self.of(first), self.of(second))
        for value in op.tensors:
            if not value.is_constant and value not in joined:
                self._leave(op, value)

    def _join(self, first: Group, second: Group) -> None:
        if first is not second:
            first.join(second)
            self.by_value.update(dict.fromkeys(second.values, first))

    def _leave(self, op: Op, value: Value) -> None:
        """A value that gives its factors to no other, or has them of none."""
        weights, group = PRODUCTS.get(type(op)), self.of(value)
        if weights is None or not self._has_weights(op, weights):
            group.fixed = True
        elif value is op.result and fused_activation(op) in _HOMOGENEOUS:
            group.writers.append(op)
        elif value is op.operands[weights.input] and value is not op.result:
            columns = op.operand(weights.weights).array.shape[weights.read]
            inputs = _input_channels(op, value, columns)
            group.channels = math.gcd(group.channels, inputs)
            group.readers.append(op)
        else:
            group.fixed = True

    def _has_weights(self, op: Op, weights: Weights) -> bool:
        """Whether weights and bias are constants, and no other operator reads the weights."""
        bias, value = op.optional(weights.bias), op.operand(weights.weights)
        return self._reads[value] == 1 and has_channels(value) and (bias is None or has_channels(bias))


def has_channels(value: Value) -> bool:
    """Whether a value is a constant of floats, and no scalar."""
    return value.is_constant and value.type.element == f32 and value.array.ndim > 0


def _input_channels(op: Op, value: Value, columns: int) -> int:
    """The number of channels of a product's input that its weights can tell apart; 1 if they are of groups of it."""
    channels = value.type.dims[-1] or 1
    if isinstance(op, DepthwiseConv2D):
        return channels
    if isinstance(op, FullyConnected):
        return columns if op.weights_format == "DEFAULT" else 1
    return channels if channels == columns else 1


# Which of an operator's values have the same factors.


def _along(groups: _Groups, op: Op) -> list[Value]:
    return [op.operand(0), op.result]


def _reduced(groups: _Groups, op: Any) -> list[Value]:
    """Along other dims than the last."""
    rank = op.input.type.rank
    if rank is None or not op.axes.is_constant:
        return []
    axes = {int(axis) % rank for axis in op.axes.array.reshape(-1)}
    return [] if rank - 1 in axes else [op.input, op.result]


def _padded(groups: _Groups, op: Any) -> list[Value]:
    """Along other dims than the last."""
    sides = op.paddings
    return [op.input, op.result] if sides.is_constant and not sides.array.reshape(-1)[-2:].any() else []


def _sum(groups: _Groups, op: Op) -> list[Value]:
    """All that is added, of which constants are multiplied."""
    last = op.result.type.dims[-1:]
    if any(value.type.dims[-1:] != last for value in op.present_operands):
        return []
    constants = [place for place, value in enumerate(op.present_operands) if value.is_constant]
    if not all(has_channels(op.operand(place)) for place in constants):
        return []
    groups.of(op.result).constants += [(op, place) for place in constants]
    return [*(value for value in op.present_operands if not value.is_constant), op.result]


def _multiplied(groups: _Groups, op: Op) -> list[Value]:
    """One operand that is not fixed so far, or the constant that is multiplied with what is."""
    last, operands = op.result.type.dims[-1:], op.present_operands
    if operands[0] is operands[1]:
        return []
    for value in operands:
        if not value.is_constant and value.type.dims[-1:] == last and not groups.of(value).fixed:
            return [value, op.result]
    for place, value in enumerate(operands):
        if value.type.dims[-1:] == last and has_channels(value):
            groups.of(op.result).constants.append((op, place))
            return [op.result]
    return []


_RULES: Final[Mapping[type[Op] | tuple[type[Op], ...], Callable[[_Groups, Op], list[Value]]]] = {
    _ALONG: _along,
    (Mean, Sum): _reduced,
    Pad: _padded,
    (Add, Sub): _sum,
    Mul: _multiplied,
}
