"""What is where in a TFLite flatbuffer: slot, type and default of every field, members of enums and unions.

Read from `schema/tflite.toml`, which holds one line per table, enum and union; a line is parsed when it is asked for.
A table field sits at `slot` of the vtable (entry `4 + 2 * slot`). A union takes two: its type, then its value.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final, Literal, TypeAlias

from tflq.resources import resource

__all__ = [
    "SCALAR_CODES",
    "SCALAR_SIZES",
    "Enum",
    "Field",
    "Kind",
    "TableLayout",
    "Union",
    "enum",
    "options_of",
    "table",
    "union",
]

Kind: TypeAlias = Literal["scalar", "enum", "string", "table", "union_type", "union", "vector", "enums", "tables"]

_SCALARS: Final = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float32",
    "float64",
)

SCALAR_CODES: Final[dict[str, str]] = dict(zip(_SCALARS, "?bBhHiIqQfd", strict=True))
"""Scalar type -> `struct` code (little endian)."""

SCALAR_SIZES: Final[dict[str, int]] = dict(zip(_SCALARS, (1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8), strict=True))


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `kind` says what is stored inline, `type` names it:

    - `scalar`: a number of scalar type `type`; `enum`: a number of the underlying type of enum `type`
    - `union_type`: the uint8 that says which member of union `type` the next slot holds
    - offset to: `string`; `table` of layout `type`; `union` member; `vector` of scalars `type`, `enums` of enum
      `type`, or `tables` of layout `type`

    `scalar` is the scalar type of what is stored inline, or of a vector's elements; "" for offsets to anything else.
    `align` is the alignment of a vector's first element.
    """

    slot: int
    name: str
    kind: Kind
    type: str
    default: int | float | bool | None
    scalar: str
    align: int

    @property
    def is_offset(self) -> bool:
        """Whether the table holds an offset to the value, not the value."""
        return self.kind not in ("scalar", "enum", "union_type")

    @property
    def size(self) -> int:
        """Bytes taken inline in the table."""
        return 4 if self.is_offset else SCALAR_SIZES[self.scalar]


@dataclass(frozen=True)
class TableLayout:
    """A table and its fields in slot order, one per slot."""

    name: str
    fields: tuple[Field, ...]

    @cached_property
    def by_name(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields}


@dataclass(frozen=True)
class Enum:
    """An enum: its underlying scalar type and its members, both ways."""

    name: str
    scalar: str
    values: dict[str, int]
    names: dict[int, str]


@dataclass(frozen=True)
class Union:
    """A union: its members (table names) by type code; 0 is NONE."""

    name: str
    values: dict[str, int]
    names: dict[int, str]


@cache
def _lines() -> dict[str, dict[str, str]]:
    return tomllib.loads(resource("schema/tflite.toml").read_text(encoding="utf-8"))


def _members(words: list[str]) -> dict[str, int]:
    values: dict[str, int] = {}
    last = -1
    for word in words:
        name, _, value = word.partition("=")
        last = int(value) if value else last + 1
        values[name] = last
    return values


@cache
def enum(name: str) -> Enum:
    """The enum called `name`. KeyError if there is none."""
    scalar, *words = _lines()["enum"][name].split()
    values = _members(words)
    return Enum(name, scalar, values, {v: k for k, v in values.items()})


@cache
def union(name: str) -> Union:
    """The union called `name`. KeyError if there is none."""
    values = _members(_lines()["union"][name].split())
    return Union(name, values, {v: k for k, v in values.items()})


def _fields(line: str) -> list[Field]:
    fields: list[Field] = []
    lines = _lines()
    for word in line.split():
        name, _, declared = word.partition(":")
        declared, _, default = declared.partition("=")
        declared, _, align = declared.partition("@")
        slot = len(fields)
        if declared.startswith("["):
            element = declared[1:-1]
            if element in lines["table"]:
                fields.append(Field(slot, name, "tables", element, None, "", 4))
                continue
            is_enum = element in lines["enum"]
            scalar = enum(element).scalar if is_enum else element
            alignment = int(align or max(4, SCALAR_SIZES[scalar]))
            fields.append(Field(slot, name, "enums" if is_enum else "vector", element, None, scalar, alignment))
        elif declared == "string":
            fields.append(Field(slot, name, "string", "string", None, "", 4))
        elif declared in lines["table"]:
            fields.append(Field(slot, name, "table", declared, None, "", 4))
        elif declared in lines["union"]:
            fields.append(Field(slot, f"{name}_type", "union_type", declared, 0, "uint8", 1))
            fields.append(Field(slot + 1, name, "union", declared, None, "", 4))
        elif declared in lines["enum"]:
            scalar = enum(declared).scalar
            fields.append(Field(slot, name, "enum", declared, int(default or 0), scalar, SCALAR_SIZES[scalar]))
        else:
            number = {"b": bool, "f": float}.get(declared[0], int)(float(default or 0))
            fields.append(Field(slot, name, "scalar", declared, number, declared, SCALAR_SIZES[declared]))
    return fields


@cache
def table(name: str) -> TableLayout:
    """The layout of the table called `name`. KeyError if there is none."""
    return TableLayout(name, tuple(_fields(_lines()["table"][name])))


@cache
def _options_by_operator() -> dict[str, str]:
    lines = _lines()
    members = (*union("BuiltinOptions").values, *union("BuiltinOptions2").values)
    tables = {member.removesuffix("Options").upper(): member for member in members}
    named = {op: tables.get(op.replace("_", "")) for op in enum("BuiltinOperator").values}
    return {op: t for op, t in named.items() if t} | lines["options"]


def options_of(operator: str) -> str | None:
    """The options table of a builtin operator (`CONV_2D` -> `Conv2DOptions`), None if it has none."""
    return _options_by_operator().get(operator)
