"""What TOSA takes as operands and the IR keeps as attributes; accumulators; the target.

TOSA 1.0 passes zero points, multipliers, shifts and shapes as compile-time-constant operands: tensors of one element
per value (`tosa.const`, CONST) or shapes (`tosa.const_shape`, CONST_SHAPE). `operands` makes them from an op, `slots`
says for a reader which operand is which attribute, `attribute` makes the attribute of a constant's elements.

TOSA's tensors are signless: a uint8 or uint16 tensor is INT8 or INT16 there, as are its zero points, bit for bit.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tflq.dialects import declare
from tflq.dialects.declare import Operator
from tflq.dialects.tosa.convolution import AvgPool2D, Convolution, DepthwiseConv2D, MatMul
from tflq.dialects.tosa.movement import Identity, Rescale, Reshape, Reverse, Slice, Transpose, Variable
from tflq.dialects.traits import ConstantOperands
from tflq.files import resource
from tflq.ir.core import Op, Value
from tflq.ir.types import SCALARS, ScalarType, TensorType, bf16, element_storage, i1, i8, i16, i32, index, ui8, ui16
from tflq.light import dataclass, field
from tflq.numerics.convolution import exact_bounds
from tflq.targets.load import DEVICES
from tflq.tosa.rules import Limits, Rules, default_rules, read_rules

UNSIGNED: Final = {i8: ui8, i16: ui16}
_SIGNLESS: Final = {unsigned: plain for plain, unsigned in UNSIGNED.items()}
_ARRAYS: Final = ("multiplier", "shift")
"""Attributes of RESCALE that are one number or one per channel."""
Accumulates = Convolution | AvgPool2D
"""Operators with an `acc_type`."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One operand of TOSA's: that of the IR called `name`, or, with a `type`, the attribute called so.

    `type` is that of its elements: a scalar type or that of an operand or result. `many`: any number of operands, or
    an attribute of any number of elements.
    """

    name: str
    type: Any = None
    many: bool = False

    @property
    def is_shape(self) -> bool:
        """Whether it is of type shape_t."""
        return self.type is index


@dataclass(frozen=True, slots=True)
class Constant:
    """A compile-time-constant operand: the attribute's name, its elements in one dim, their element type."""

    name: str
    array: np.ndarray
    element: ScalarType

    @property
    def is_shape(self) -> bool:
        """Whether it is of type shape_t, else a tensor."""
        return self.element is index


def signless(element: ScalarType) -> ScalarType:
    """The type that stands for an element type in TOSA: i8 for ui8, i16 for ui16."""
    return _SIGNLESS.get(element, element) if element.kind == "uint" else element


def is_unsigned(type: TensorType) -> bool:
    """Whether a tensor needs RESCALE's input_unsigned or output_unsigned."""
    return element_storage(type.element).kind == "uint"


def tosa_name(op: Op) -> str:
    """What TOSA calls an operator: conv2d."""
    return op.name.partition(".")[2]


_SLOTS: Final[dict[type[Op], tuple[Slot, ...]]] = {}


def slots(kind: type[Op]) -> tuple[Slot, ...]:
    """TOSA's operands of an operator, in order; a variadic one is the last. KeyError if it is not declared."""
    if kind not in _SLOTS:
        if not issubclass(kind, Operator):
            raise KeyError(kind.__name__)
        given = [] if kind is Variable else [Slot(s.name, many=s.variadic) for s in kind.operand_slots]
        constants = kind.trait(ConstantOperands)
        made = constants.types.items() if constants is not None else ()
        _SLOTS[kind] = (*given, *(Slot(name, type, kind is Rescale and name in _ARRAYS) for name, type in made))
    return _SLOTS[kind]


def operands(op: Op) -> list[Value | Constant]:
    """All of TOSA's operands of an op, in order. A size that is not known is -1."""
    if isinstance(op, Variable):
        return []
    given = op.reads
    return [*given, *(_constant(op, slot) for slot in slots(type(op)) if slot.type is not None)]


def _constant(op: Op, slot: Slot) -> Constant:
    value = op.result.type.shape or () if slot.name == "shape" else op.attributes[slot.name]
    if slot.is_shape:
        return _shape(slot.name, tuple(value))
    element = constant_type(op, slot)
    return _number(slot.name, value, element) if type(value) is int else _made(slot.name, value, element)


@lru_cache(maxsize=4096)
def _shape(name: str, value: tuple[int | None, ...]) -> Constant:
    return Constant(name, np.asarray([-1 if size is None else size for size in value], np.int64), index)


def _made(name: str, value: Any, element: ScalarType) -> Constant:
    flat = np.atleast_1d(np.asarray(value))
    if element is bf16:
        return Constant(name, (flat.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16), element)
    dtype = element.dtype
    if flat.dtype != dtype and element.is_integer and ((flat < element.minimum) | (flat > element.maximum)).any():
        raise ValueError(f"{name} {value} does not fit {element}")
    plain = signless(element)
    return Constant(name, flat.astype(dtype, copy=False).view(plain.dtype), plain)


_number = lru_cache(maxsize=4096)(_made)
"""Those of integers are few."""


def constant_type(op: Op, slot: Slot) -> ScalarType:
    """The element type of a compile-time-constant operand, that of an unsigned tensor's zero point unsigned."""
    if isinstance(op, Rescale) and slot.name == "multiplier" and not op.scale32:
        return i16
    if isinstance(slot.type, declare.Slot):
        value = slot.type.value(op)
        assert value is not None
        return element_storage(value.type.element)
    element: ScalarType = slot.type
    return element


def attribute(slot: Slot, array: np.ndarray, element: ScalarType, *, unsigned: bool = False) -> Any:
    """The attribute that a constant operand stands for, from its elements; `unsigned` for a zero point so read."""
    if slot.is_shape:
        return tuple(array.tolist())
    if slot.many:
        return array.astype(np.int32) if slot.name == "multiplier" else array
    if element is bf16:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    number = array.view(f"u{array.itemsize}" if unsigned else array.dtype).item()
    return int(number) if slot.name.endswith("_zp") or element is i1 else number


def accumulator(op: Op) -> ScalarType:
    """The `acc_type` of a convolution or an average: what the file said, else that of its result; i32 of an integer
    average, f32 of bf16 and of float averages.
    """
    if (said := op.info.get("acc_type")) is not None:
        return SCALARS[said]
    element = element_storage(op.result.type.element)
    if element is bf16 or (element.is_float and isinstance(op, AvgPool2D)):
        return SCALARS["f32"]
    return i32 if isinstance(op, AvgPool2D) else element


# The values that an accumulator can take, noted on the RESCALE that reads it, since TOSA cannot say them. With constant
# weights they are the sums of positive and of negative weights times the ends of the input, plus the bias. Selection
# then proves cheaper forms of the RESCALE, and sums in 32 bits what TOSA sums in 48.

_LAYOUT = Identity | Reshape | Reverse | Slice | Transpose
_WIDEST = 1 << 47


def note_bounds(op: Op) -> None:
    """Gives a RESCALE its `input_range`, if its operand is a sum of known weights."""
    if not isinstance(op, Rescale) or op.input_range is not None or op.input_zp:
        return
    value = op.input
    while isinstance(value.producer, _LAYOUT):
        (value,) = value.producer.reads
    bounds = None
    if value.type.storage.is_integer:
        if isinstance(value.producer, Convolution):
            bounds = _of_layer(value.producer)
        elif isinstance(value.producer, MatMul):
            bounds = _of_product(value.producer)
    limit = (i32.minimum, i32.maximum) if value.type.storage == i32 else (-_WIDEST, _WIDEST - 1)
    if bounds is not None and limit[0] <= bounds[0] and bounds[1] <= limit[1]:
        op.attributes["input_range"] = bounds


def _of_layer(op: Convolution) -> tuple[int, int] | None:
    if not op.weight.is_constant or not op.bias.is_constant:
        return None
    rows = op.weight.array
    if isinstance(op, DepthwiseConv2D):
        rows, axis = rows.reshape(-1, rows.shape[2] * rows.shape[3]), 0
    else:
        rows, axis = rows.reshape(rows.shape[0], -1), 1
    return _sums(op.input, op.input_zp, rows, axis, op.weight_zp, op.bias.array)


def _of_product(op: MatMul) -> tuple[int, int] | None:
    if not op.input2.is_constant:
        return None
    return _sums(op.input1, op.a_zp, op.input2.array, 1, op.b_zp, np.zeros(1, np.int64))


def _sums(
    x: Value, zero_point: int, weights: np.ndarray, axis: int, weight_zp: int, bias: np.ndarray
) -> tuple[int, int]:
    """Bounds of the sums of (weights - weight_zp) times all values of x - zero_point."""
    storage = x.type.storage
    low, high = storage.minimum - zero_point, storage.maximum - zero_point
    return exact_bounds(weights, (axis,), weight_zp, low, high, bias)


@dataclass(frozen=True, slots=True)
class Target:
    """What a device takes, as `rules/tosa.toml` or a user's file says.

    Profiles ("pro_int", "pro_fp"), extensions ("int16", "int4", "doubleround", ...) and level ("8k", "none").

    `rules` are the tables of signatures and limits that the names refer to.
    """

    profiles: frozenset[str] = frozenset({"pro_int", "pro_fp"})
    extensions: frozenset[str] = frozenset({"int16", "int4", "doubleround", "variable", "controlflow"})
    level: str = "8k"
    specification: str = "1.0"
    rules: Rules = field(default_factory=lambda: default_rules()[0], compare=False, repr=False)

    def has(self, name: str) -> bool:
        """Whether it has a profile or an extension."""
        return name in self.profiles or name in self.extensions

    def takes(self, name: str, operands: Sequence[ScalarType], results: Sequence[ScalarType]) -> bool:
        """Whether it has an operator ("gather") on element types."""
        types = tuple(t.name for t in operands), tuple(t.name for t in results)
        return any(map(self.has, self.rules.providers(name, *types)))

    @property
    def limits(self) -> Limits:
        """The limits of its level."""
        return self.rules.levels[self.level]


def load_target(path: str | os.PathLike[str] | None = None) -> Target:
    """The default target, a device's by name, or that of a file, which inherits what it does not say. OptionError names
    line and key."""
    if path is None:
        rules, choices = default_rules()
    else:
        own = resource(f"rules/{path}.toml") if path in DEVICES else path
        rules, choices = read_rules(own, resource("rules/tosa.toml"))
    return Target(choices.profiles, choices.extensions, choices.level, choices.specification, rules)
