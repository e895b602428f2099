"""An operator's attribute table in a TOSA flatbuffer ↔ attributes of the op.

The tables' fields are called like the IR's attributes; what the IR lacks is made from types: `acc_type`, and
RESCALE's input_unsigned and output_unsigned. CLAMP's bounds are bytes of an element of its type. `local_bound`, a
promise about errors of floats, is left false. `nan_mode` is PROPAGATE. INEXACT_ROUND lets a device round as it likes
and is read as SINGLE_ROUND.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NoReturn

import numpy as np

from tflq.dialects.tosa.control import CondIf, WhileLoop
from tflq.dialects.traits.effects import Calls
from tflq.errors import InvalidModelError, Refused
from tflq.flatbuffer.layout import TOSA, Field
from tflq.ir.core import Op
from tflq.ir.types import ScalarType, bf16, element_storage
from tflq.tosa.files.dtypes import dtype
from tflq.tosa.operands import accumulator, is_unsigned

__all__ = ["AS_1_0", "GRAPHS", "MODES", "attribute_table", "member", "read_attributes"]

GRAPHS: Final = frozenset(
    a.key for kind in (CondIf, WhileLoop) for t in kind.traits if isinstance(t, Calls) for a in t.attributes
)
"""Attributes that name a region in a file, a function by its index in the IR."""
AS_1_0: Final = "write it as TOSA 1.0 has it"
"""The remedy for what a file has that the tosa form cannot hold."""
MODES: Final = {"NEAREST_NEIGHBOR": "NEAREST", "BILINEAR": "BILINEAR"}

_MADE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "acc_type": lambda op: dtype(accumulator(op)),
    "input_unsigned": lambda op: is_unsigned(op.input.type),
    "output_unsigned": lambda op: is_unsigned(op.result.type),
    "nan_mode": lambda _: "PROPAGATE",
    "local_bound": lambda _: False,
    "min_val": lambda op: _bound(op, "min_val"),
    "max_val": lambda op: _bound(op, "max_val"),
    "mode": lambda op: MODES[op.mode],
}


@cache
def member(operator: str) -> str:
    """The attribute table of an operator ("CONV2D" → "Conv2dAttribute"): union and enum have one order."""
    return TOSA.union("Attribute").names[TOSA.enum("Op").values[operator]]


def attribute_table(op: Op, regions: Mapping[int, str]) -> dict[str, Any]:
    """The fields of an op's attribute table; `regions` names the functions. KeyError if an attribute is missing."""
    fields: dict[str, Any] = {}
    for name, made, is_graph in _fields(op.name):
        value = op.attributes[name] if made is None else made(op)
        fields[name] = regions[value] if is_graph else value
    return fields


@cache
def _fields(op: str) -> list[tuple[str, Callable[[Any], Any] | None, bool]]:
    """The fields of an op's attribute table: what makes each, and whether it names a function."""
    fields = TOSA.table(member(op.partition(".")[2].upper())).fields
    return [(field.name, _MADE.get(field.name), field.name in GRAPHS) for field in fields]


def _bound(op: Op, name: str) -> np.ndarray:
    element, value = element_storage(op.result.type.element), op.attributes[name]
    if element is bf16:
        return np.array([value], np.float32).view(np.uint8)[2:]
    return np.array([value], element.dtype).view(np.uint8)


def read_attributes(
    operator: str, fields: Mapping[str, Any], element: ScalarType, graph: Callable[[str], int]
) -> dict[str, Any]:
    """The attributes of an op from its attribute table; `element` is its first result's type, `graph` finds functions.

    InvalidModelError, its place within the table, for what is missing; Refused for what the IR lacks.
    """
    attributes: dict[str, Any] = {}
    for field in TOSA.table(member(operator)).fields:
        name, value = field.name, fields[field.name]
        if name == "nan_mode" and value == "IGNORE" and element.is_float:
            raise Refused("it ignores NaN (nan_mode IGNORE)")
        if name in ("min_val", "max_val"):
            attributes[name] = _number(name, value, element)
        elif name in GRAPHS:
            attributes[name] = graph(value or "")
        elif name == "mode":
            attributes[name] = {tosa: ours for ours, tosa in MODES.items()}.get(value) or _missing(field)
        elif name not in _MADE:
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


def _number(name: str, data: np.ndarray | None, element: ScalarType) -> int | float:
    """A number from the bytes of an element, which may be followed by padding."""
    if not element.numpy and element is not bf16:
        raise Refused(f"its bounds are {element}")
    size = element.bits // 8
    if data is None or data.size < max(size, 1):
        raise InvalidModelError(name, f"{0 if data is None else data.size} bytes are too few for {element}")
    if element is bf16:
        return float(np.array([0, 0, *data[:2]], np.uint8).view(np.float32).item())
    number: int | float = np.array(data[:size]).view(element.dtype).item()
    return number
