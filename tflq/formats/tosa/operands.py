"""The parts of TOSA and its files that the IR expresses otherwise: operands that are attributes, element types,
constants, attribute tables.

TOSA 1.0 passes zero points, multipliers, shifts and shapes as compile-time-constant operands: tensors of one element
per value (`tosa.const`, CONST) or shapes (`tosa.const_shape`, CONST_SHAPE). `operands` makes them from an op, `slots`
says for a reader which operand is which attribute, `attribute` makes the attribute of a constant's elements.

TOSA's tensors are signless: a uint8 or uint16 tensor is INT8 or INT16 there, as are its zero points, bit for bit.

Constants are little-endian, elements one after another (tosa.fbs; tosa_serializer's numpy_utils): BOOL takes a byte,
INT48 six, INT4 half a one, low bits first. The IR keeps INT48 as i64; all others are stored as the IR's buffers hold
them, which are then views of the file.

The fields of an operator's attribute table are called like the IR's attributes; those that the IR lacks follow from
types: `acc_type`, and RESCALE's input_unsigned and output_unsigned. CLAMP's bounds are bytes of an element of its type.
`local_bound`, a promise about errors of floats, is left false. `nan_mode` is PROPAGATE. INEXACT_ROUND lets a device
round as it likes and is read as SINGLE_ROUND.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, Final, NoReturn

import numpy as np

from tflq.base.errors import InvalidModelError, Refused
from tflq.dialects import declare
from tflq.dialects.declare import Operator
from tflq.dialects.effects import callees
from tflq.dialects.tosa.convolution import AvgPool2D, Convolution
from tflq.dialects.tosa.movement import CondIf, Rescale, Variable, WhileLoop
from tflq.dialects.traits import Calls, ConstantOperands
from tflq.formats.flatbuffer.layout import TOSA, Field
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import (
    SCALARS,
    ElementType,
    ScalarType,
    TensorType,
    bf16,
    element_storage,
    i1,
    i4,
    i8,
    i16,
    i32,
    i64,
    index,
    ui8,
    ui16,
)
from tflq.numerics.kernel_sets import IN_FILE

UNSIGNED: Final = {i8: ui8, i16: ui16}
_SIGNLESS: Final = {unsigned: plain for plain, unsigned in UNSIGNED.items()}
_ARRAYS: Final = ("multiplier", "shift")
"""Attributes of RESCALE that are one number or one per channel."""
Accumulates = Convolution | AvgPool2D
"""Operators with an `acc_type`."""


class Slot:
    """One operand of TOSA's: that of the IR called `name`, or, with a `type`, the attribute called so.

    `type` is that of its elements: a scalar type or that of an operand or result. `many`: any number of operands, or
    an attribute of any number of elements.
    """

    __slots__ = ("many", "name", "type")

    def __init__(self, name: str, type: Any = None, many: bool = False) -> None:
        self.name: Final = name
        self.type: Final = type
        self.many: Final = many

    @property
    def is_shape(self) -> bool:
        """Whether it is of type shape_t."""
        return self.type is index


class Constant:
    """A compile-time-constant operand: the attribute's name, its elements in one dim, their element type."""

    __slots__ = ("array", "element", "key", "name")

    def __init__(self, name: str, array: np.ndarray, element: ScalarType, key: tuple[ScalarType, bytes]) -> None:
        self.name: Final = name
        self.array: Final = array
        self.element: Final = element
        self.key: Final = key
        """Equal of equal ones, whatever their names."""

    @classmethod
    def of(cls, name: str, array: np.ndarray, element: ScalarType) -> Constant:
        return cls(name, array, element, (element, array.tobytes()))

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


_SLOTS: Final[dict[type[Op], tuple[Slot, ...]]] = {}


def slots(kind: type[Op]) -> tuple[Slot, ...]:
    """TOSA's operands of an operator, in order; a variadic one is the last. KeyError if it is not declared."""
    if kind not in _SLOTS:
        if not issubclass(kind, Operator):
            raise KeyError(kind.__name__)
        plain = [] if kind is Variable else [Slot(s.name, many=s.variadic) for s in kind.operand_slots]
        constants = kind.trait(ConstantOperands)
        constant_slots = constants.types.items() if constants is not None else ()
        _SLOTS[kind] = (
            *plain,
            *(Slot(name, type, kind is Rescale and name in _ARRAYS) for name, type in constant_slots),
        )
    return _SLOTS[kind]


def operands(op: Op) -> list[Value | Constant]:
    """All of TOSA's operands of an op, in order. A size that is not known is -1."""
    if isinstance(op, Variable):
        return []
    return [*op.present_operands, *[_constant(op, slot) for slot in slots(type(op)) if slot.type is not None]]


def _constant(op: Op, slot: Slot) -> Constant:
    value = op.result.type.dims if slot.name == "shape" else op.attributes[slot.name]
    if slot.type is index:
        return _shape(slot.name, tuple(value))
    element = constant_type(op, slot)
    return _small(slot.name, value, element) if type(value) is int else _array(slot.name, value, element)


@lru_cache(maxsize=4096)
def _shape(name: str, value: tuple[int | None, ...]) -> Constant:
    return Constant.of(name, np.asarray([-1 if size is None else size for size in value], np.int64), index)


def _array(name: str, value: Any, element: ScalarType) -> Constant:
    if element is bf16:
        flat = np.atleast_1d(np.asarray(value, np.float32))
        return Constant.of(name, (flat.view(np.uint32) >> 16).astype(np.uint16), element)
    dtype, plain = element.dtype, signless(element)
    if type(value) is np.ndarray and value.ndim == 1 and value.dtype == dtype and element is plain:
        return Constant.of(name, value, element)
    flat = np.atleast_1d(np.asarray(value))
    if flat.dtype != dtype and element.is_integer and ((flat < element.minimum) | (flat > element.maximum)).any():
        raise ValueError(f"{name} {value} does not fit {element}")
    return Constant.of(name, flat.astype(dtype, copy=False).view(plain.dtype), plain)


_small = lru_cache(maxsize=4096)(_array)
"""Constants of integers are few, so they are cached."""


def constant_type(op: Op, slot: Slot) -> ScalarType:
    """The element type of a compile-time-constant operand, that of an unsigned tensor's zero point unsigned."""
    if slot.name == "multiplier" and isinstance(op, Rescale) and not op.scale32:
        return i16
    if isinstance(slot.type, declare.Slot):
        value = slot.type.value(op)
        assert value is not None
        return value.type.storage
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
    if (name := op.info.get("acc_type")) is not None:
        return SCALARS[name]
    element = element_storage(op.result.type.element)
    if element is bf16 or (element.is_float and isinstance(op, AvgPool2D)):
        return SCALARS["f32"]
    return i32 if isinstance(op, AvgPool2D) else element


# Element types, and constants as files store them.

_NAMES: Final = {
    i1: "BOOL",
    i4: "INT4",
    i8: "INT8",
    i16: "INT16",
    i32: "INT32",
    i64: "INT48",
    SCALARS["f32"]: "FP32",
    SCALARS["f16"]: "FP16",
    SCALARS["bf16"]: "BF16",
    SCALARS["f8E4M3FN"]: "FP8E4M3",
    SCALARS["f8E5M2"]: "FP8E5M2",
}
ELEMENTS: Final = {name: element for element, name in _NAMES.items()}
"""The element type that a DType is in the IR; the other DTypes cannot be read."""
_MOST_DIMS: Final = 32
"""MAX_RANK without a level (TOSA specification, Levels)."""


@cache
def dtype(element: ElementType) -> str:
    """The DType of an element type. ValueError if TOSA 1.0 lacks it."""
    name = _NAMES.get(signless(element_storage(element)))
    if name is None:
        raise ValueError(f"TOSA has no type {element}")
    return name


def packed(data: np.ndarray, element: ScalarType) -> np.ndarray:
    """A buffer's bytes as a file stores them; ValueError for an integer that 48 bits do not hold."""
    if element != i64:
        return data
    wide = data.view(np.int64)
    if ((wide < -(1 << 47)) | (wide >= 1 << 47)).any():
        raise ValueError("a constant does not fit INT48")
    return np.ascontiguousarray(data.reshape(-1, 8)[:, :6]).reshape(-1)


def unpacked(data: np.ndarray, element: ScalarType) -> np.ndarray:
    """The inverse of `packed`."""
    if element != i64:
        return data
    rows = data.reshape(-1, 6)
    out = np.empty((len(rows), 8), np.uint8)
    out[:, :6] = rows
    out[:, 6:] = np.where(rows[:, 5:] >= 128, 255, 0)
    return out.reshape(-1)


def stored_size(count: int, element: ScalarType) -> int:
    """The bytes that elements take in a file."""
    return (count * (48 if element == i64 else element.bits) + 7) // 8


def tensor_type(fields: Mapping[str, Any]) -> TensorType:
    """The type of a `TosaTensor`. Refused, a clause, if the IR lacks it."""
    name = fields["type"]
    element = ELEMENTS.get(name)
    if element is None:
        raise Refused(f"the type {name} is not one of TOSA 1.0's that can be read")
    scale = fields["scale_data"]
    if fields["scale_type"] != "UNKNOWN" or fields["block_shape"] != "UNKNOWN" or (scale is not None and scale.size):
        raise Refused("it is block-scaled (MXFP)")
    if fields["is_unranked"]:
        raise Refused("its rank is not known")
    shape = () if fields["shape"] is None else fields["shape"]
    if len(shape) > _MOST_DIMS:
        raise Refused(f"it has {len(shape)} dims, and TOSA's tensors {_MOST_DIMS} at most")
    return TensorType(tuple(None if d < 0 else int(d) for d in shape), element)


class StoredConstants:
    """Makes buffers of what a file stores; tensors that share their bytes share the buffer."""

    def __init__(self, data: memoryview) -> None:
        self._file = np.frombuffer(data, np.uint8)
        self._known: dict[tuple[int, int, bool], Buffer] = {}

    def tensor(self, fields: Mapping[str, Any], type: TensorType, where: str) -> Buffer:
        """The buffer of a constant tensor."""
        if type.shape is None or None in type.shape:
            raise InvalidModelError(f"{where}.shape", "a constant's shape must be known")
        element = type.storage
        data = self._bytes(fields, where)
        stored = self._sized(data, stored_size(math.prod(type.sizes), element), where)
        if element is i1 and (stored > 1).any():
            raise InvalidModelError(f"{where}.data", "a BOOL is neither 0 nor 1")
        wide = element == i64
        key = (stored.__array_interface__["data"][0], stored.size, wide)
        if key not in self._known:
            self._known[key] = Buffer(unpacked(stored, element))
        return self._known[key]

    def shape(self, fields: Mapping[str, Any], where: str) -> np.ndarray:
        """The numbers of a constant shape."""
        data = np.zeros(0, np.uint8) if fields["data"] is None else fields["data"]
        stored = self._sized(data, 8 * fields["rank"], where)
        return np.array(stored).view(np.int64)

    def _bytes(self, fields: Mapping[str, Any], where: str) -> np.ndarray:
        """A tensor's bytes, in the flatbuffer or, in a large file, behind it."""
        data, offset, size = fields["data"], fields["offset"], fields["size"]
        inside = np.zeros(0, np.uint8) if data is None else data
        if offset <= 1:
            return inside
        if inside.size:
            raise InvalidModelError(f"{where}.offset", f"data both inside ({inside.size} bytes) and at {offset}")
        if offset + size > self._file.size:
            reason = f"bytes {offset} to {offset + size} are outside the file of {self._file.size}"
            raise InvalidModelError(f"{where}.offset", reason)
        return self._file[offset : offset + size]

    def _sized(self, data: np.ndarray, size: int, where: str) -> np.ndarray:
        """The data without padding; writers may fill it up to a multiple of 8 bytes."""
        if data.size not in (size, size + -size % 8):
            raise InvalidModelError(f"{where}.data", f"{data.size} bytes, its type and shape ask for {size}")
        return data[:size]


# Attribute tables.

GRAPHS: Final = frozenset(
    a.key for kind in (CondIf, WhileLoop) for t in kind.traits if isinstance(t, Calls) for a in t.attributes
)
"""Attributes that name a region in a file, a function by its index in the IR."""
REGION: Final = f"{{}} {IN_FILE} {{}}"
"""The name of the first region, which nothing refers to, with the metadata of kernel sets, for which TOSA has no place:
a name and the metadata's text."""
AS_1_0: Final = "write it as TOSA 1.0 has it"
"""The remedy for what a file has that the tosa form cannot hold."""
MODES: Final = {"NEAREST_NEIGHBOR": "NEAREST", "BILINEAR": "BILINEAR"}
"""TOSA's words for the modes of a RESIZE."""
MODES_READ: Final = {tosa: ours for ours, tosa in MODES.items()}

_DERIVED: Final[Mapping[str, Callable[[Any], Any]]] = {
    "acc_type": lambda op: dtype(accumulator(op)),
    "input_unsigned": lambda op: is_unsigned(op.input.type),
    "output_unsigned": lambda op: is_unsigned(op.result.type),
    "nan_mode": lambda _: "PROPAGATE",
    "local_bound": lambda _: False,
    "min_val": lambda op: _bound(op, "min_val"),
    "max_val": lambda op: _bound(op, "max_val"),
    "mode": lambda op: MODES[op.mode],
}


def reached(module: Module, functions: Iterable[int]) -> dict[int, Function]:
    """Functions, and those that control flow in them runs."""
    order, todo = dict[int, Function](), list(functions)
    while todo:
        index = todo.pop(0)
        if index not in order:
            function = order[index] = module.functions[index]
            todo += [called for op in function.ops_with(Calls) for called in callees(op)]
    return order


@cache
def member(operator: str) -> str:
    """The attribute table of an operator ("CONV2D" → "Conv2dAttribute"): union and enum have one order."""
    return TOSA.union("Attribute").names[TOSA.enum("Op").values[operator]]


def attribute_table(op: Op, regions: Mapping[int, str]) -> dict[str, Any]:
    """The fields of an op's attribute table; `regions` names the functions. KeyError if an attribute is missing."""
    fields: dict[str, Any] = {}
    for name, derive, is_graph in _fields(op.name):
        value = op.attributes[name] if derive is None else derive(op)
        fields[name] = regions[value] if is_graph else value
    return fields


@cache
def _fields(op: str) -> list[tuple[str, Callable[[Any], Any] | None, bool]]:
    """The fields of an op's attribute table: what makes each, and whether it names a function."""
    fields = TOSA.table(member(op.partition(".")[2].upper())).fields
    return [(field.name, _DERIVED.get(field.name), field.name in GRAPHS) for field in fields]


def _bound(op: Op, name: str) -> np.ndarray:
    element, value = element_storage(op.result.type.element), op.attributes[name]
    if element is bf16:
        return np.array([value], np.float32).view(np.uint8)[2:]
    return np.array([value], element.dtype).view(np.uint8)


def read_attributes(
    operator: str, fields: Mapping[str, Any], element: ScalarType, graph: Callable[[str], int]
) -> dict[str, Any]:
    """The attributes of an op from its attribute table. `element`: the type of its first result; `graph`: the index of
    a function by its name.

    InvalidModelError, its place within the table, for what is missing; Refused for what the IR lacks.
    """
    attributes: dict[str, Any] = {}
    for field in TOSA.table(member(operator)).fields:
        name, value = field.name, fields[field.name]
        if name == "nan_mode" and value == "IGNORE" and element.is_float:
            raise Refused("it ignores NaN (nan_mode IGNORE)")
        if name in ("min_val", "max_val"):
            attributes[name] = _read_bound(name, value, element)
        elif name in GRAPHS:
            attributes[name] = graph(value or "")
        elif name == "mode":
            attributes[name] = MODES_READ.get(value) or _missing(field)
        elif name not in _DERIVED:
            attributes[name] = _plain(field, value)
    return attributes


def _plain(field: Field, value: Any) -> Any:
    if field.kind == "vector":
        return () if value is None else tuple(int(v) for v in value)
    if value == "UNKNOWN":
        _missing(field)
    return "SINGLE_ROUND" if value == "INEXACT_ROUND" else value


def _missing(field: Field) -> NoReturn:
    raise InvalidModelError(field.name, f"no {field.type} is given")


def _read_bound(name: str, data: np.ndarray | None, element: ScalarType) -> int | float:
    """A number from the bytes of an element, which may be followed by padding."""
    if not element.numpy and element is not bf16:
        raise Refused(f"its bounds are {element}")
    size = max(element.bits // 8, 1)
    if data is None or data.size < size:
        raise InvalidModelError(name, f"{0 if data is None else data.size} bytes are too few for {element}")
    if element is bf16:
        return float(np.array([0, 0, *data[:2]], np.uint8).view(np.float32).item())
    number: int | float = np.array(data[:size]).view(element.dtype).item()
    return number
