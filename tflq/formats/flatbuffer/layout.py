"""The layout of a schema's flatbuffers: slot, type and default of every field, members of enums and unions; and what
the tables of TFLite's operators mean.

It is read from `schema/tflite.json` or `schema/tosa_flatbuffer.json`, which hold one line per table, enum and union; a
line is parsed when it is asked for:

    table     fields in slot order, "name:type=default"; "[type]" is a vector, "@n" its alignment
    enum      underlying type, then members; a member without "=value" is one more than the last
    union     NONE, then tables
    options   operators whose options table is not called like them

A table field sits at `slot` of the vtable (entry `4 + 2 * slot`). A union takes two: its type, then its value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from typing import Any, Final, Literal, TypeAlias

from tflq.base.errors import InvalidModelError
from tflq.base.files import content
from tflq.dialects.tfl import builtin_of, op_name

Kind: TypeAlias = Literal[
    "scalar", "enum", "string", "table", "union_type", "union", "vector", "enums", "strings", "tables"
]

_SCALARS: Final = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64".split()

SCALAR_CODES: Final[dict[str, str]] = dict(zip(_SCALARS, "?bBhHiIqQfd", strict=True))
"""Scalar type -> `struct` code (little endian)."""

SCALAR_SIZES: Final[dict[str, int]] = dict(zip(_SCALARS, (1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8), strict=True))


class Field:
    """One field. `kind` says what is stored inline, `type` names it:

    - `scalar`: a number of scalar type `type`; `enum`: a number of the underlying type of enum `type`
    - `union_type`: the uint8 that says which member of union `type` the next slot holds
    - offset to: `string`; `table` of layout `type`; `union` member; `vector` of scalars `type`, `enums` of enum
      `type`, `strings`, or `tables` of layout `type`

    `scalar` is the scalar type of what is stored inline, or of a vector's elements; "" for offsets to anything else.
    `align` is the alignment of a vector's first element.
    """

    __slots__ = ("align", "default", "kind", "name", "scalar", "slot", "type")

    def __init__(
        self, slot: int, name: str, kind: Kind, type: str, default: int | float | bool | None, scalar: str, align: int
    ) -> None:
        self.slot: Final = slot
        self.name: Final = name
        self.kind: Final = kind
        self.type: Final = type
        self.default: Final = default
        self.scalar: Final = scalar
        self.align: Final = align

    @property
    def is_offset(self) -> bool:
        """Whether the table holds an offset to the value, not the value."""
        return self.kind not in ("scalar", "enum", "union_type")

    @property
    def size(self) -> int:
        """Bytes taken inline in the table."""
        return 4 if self.is_offset else SCALAR_SIZES[self.scalar]


class TableLayout:
    """A table and its fields in slot order, one per slot."""

    def __init__(self, name: str, fields: tuple[Field, ...]) -> None:
        self.name: Final = name
        self.fields: Final = fields

    @cached_property
    def by_name(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields}

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each field in the table."""
        return tuple(field.size for field in self.fields)

    @cached_property
    def entries(self) -> tuple[tuple[str, int, Kind, int | float | bool | None, Field], ...]:
        """Name, slot, kind and default of each field, and the field."""
        return tuple((field.name, field.slot, field.kind, field.default, field) for field in self.fields)


class Enum:
    """An enum: its underlying scalar type and its members, both ways."""

    def __init__(self, name: str, scalar: str, values: dict[str, int], names: dict[int, str]) -> None:
        self.name: Final = name
        self.scalar: Final = scalar
        self.values: Final = values
        self.names: Final = names


class Union:
    """A union: its members (table names) by type code; 0 is NONE."""

    def __init__(self, name: str, values: dict[str, int], names: dict[int, str]) -> None:
        self.name: Final = name
        self.values: Final = values
        self.names: Final = names


def _members(words: list[str]) -> dict[str, int]:
    values: dict[str, int] = {}
    last = -1
    for word in words:
        name, _, value = word.partition("=")
        last = int(value) if value else last + 1
        values[name] = last
    return values


class Schema:
    """The layouts of one schema file. `table`, `enum` and `union` find them by name; KeyError if there is none.

    exclusive: tables that stand for one thing each, so that a second reference to one is corrupted.
    viewed: vectors, as (table, field), that readers never copy, so that they may overlap.
    table_bytes, reuse: bound what reading a file takes. So many bytes of a file allow one more table, and all other
    vectors and strings together may have so many times its size.
    """

    def __init__(
        self,
        what: str,
        file: str,
        identifier: bytes,
        root: str,
        exclusive: Iterable[str] = (),
        viewed: Iterable[tuple[str, str]] = (),
        table_bytes: int = 64,
        reuse: int = 2,
    ) -> None:
        self.what = what
        self.identifier = identifier
        self.root = root
        self.exclusive = frozenset(exclusive)
        self.viewed = frozenset(viewed)
        self.table_bytes = table_bytes
        self.reuse = reuse
        self._file = file
        self.table: Callable[[str], TableLayout] = cache(self._table)
        self.enum: Callable[[str], Enum] = cache(self._enum)
        self.union: Callable[[str], Union] = cache(self._union)

    @cached_property
    def lines(self) -> Mapping[str, Any]:
        """The file's sections, each with a line per name."""
        return content(self._file)

    def _enum(self, name: str) -> Enum:
        scalar, *words = self.lines["enum"][name].split()
        values = _members(words)
        return Enum(name, scalar, values, {v: k for k, v in values.items()})

    def _union(self, name: str) -> Union:
        values = _members(self.lines["union"][name].split())
        return Union(name, values, {v: k for k, v in values.items()})

    def _table(self, name: str) -> TableLayout:
        fields: list[Field] = []
        for word in self.lines["table"][name].split():
            fields += self._fields(word, len(fields))
        return TableLayout(name, tuple(fields))

    def _fields(self, word: str, slot: int) -> list[Field]:
        """The field, or the two of a union, that a word declares."""
        lines = self.lines
        name, _, declared = word.partition(":")
        declared, _, default = declared.partition("=")
        declared, _, align = declared.partition("@")
        if declared.startswith("["):
            return [self._vector(slot, name, declared[1:-1], align)]
        if declared == "string":
            return [Field(slot, name, "string", "string", None, "", 4)]
        if declared in lines["table"]:
            return [Field(slot, name, "table", declared, None, "", 4)]
        if declared in lines["union"]:
            kind = Field(slot, f"{name}_type", "union_type", declared, 0, "uint8", 1)
            return [kind, Field(slot + 1, name, "union", declared, None, "", 4)]
        if declared in lines["enum"]:
            scalar = self.enum(declared).scalar
            return [Field(slot, name, "enum", declared, int(default or 0), scalar, SCALAR_SIZES[scalar])]
        number = {"b": bool, "f": float}.get(declared[0], int)(float(default or 0))
        return [Field(slot, name, "scalar", declared, number, declared, SCALAR_SIZES[declared])]

    def _vector(self, slot: int, name: str, element: str, align: str) -> Field:
        if element == "string":
            return Field(slot, name, "strings", element, None, "", 4)
        if element in self.lines["table"]:
            return Field(slot, name, "tables", element, None, "", 4)
        is_enum = element in self.lines["enum"]
        scalar = self.enum(element).scalar if is_enum else element
        alignment = int(align or max(4, SCALAR_SIZES[scalar]))
        return Field(slot, name, "enums" if is_enum else "vector", element, None, scalar, alignment)


TFLITE: Final = Schema(
    "a TFLite model",
    "schema/tflite.json",
    b"TFL3",
    "Model",
    exclusive=("SubGraph", "Tensor", "Operator", "OperatorCode", "SignatureDef", "TensorMap", "Metadata"),
    viewed=[("Buffer", "data")],
)
TOSA: Final = Schema(
    "a TOSA graph",
    "schema/tosa_flatbuffer.json",
    b"TOSA",
    "TosaGraph",
    exclusive=("TosaRegion", "TosaBasicBlock", "TosaOperator", "TosaTensor", "TosaShape"),
    viewed=[("TosaTensor", "data"), ("TosaTensor", "scale_data")],
    reuse=8,
)

table: Final = TFLITE.table
enum: Final = TFLITE.enum
union: Final = TFLITE.union


@cache
def _options_by_operator() -> dict[str, str]:
    lines = TFLITE.lines
    members = (*union("BuiltinOptions").values, *union("BuiltinOptions2").values)
    tables = {member.removesuffix("Options").upper(): member for member in members}
    named = {op: tables.get(op.replace("_", "")) for op in enum("BuiltinOperator").values}
    return {op: t for op, t in named.items() if t} | lines["options"]


def options_of(operator: str) -> str | None:
    """The options table of a builtin operator (`CONV_2D` -> `Conv2DOptions`), None if it has none."""
    return _options_by_operator().get(operator)


# The tables `OperatorCode` and `Operator` ↔ `Op`. A builtin operator is `tfl.<name in lower case>`, with the fields of
# its options table as attributes; a custom one is `tfl.custom` with its `custom_code`. The builtin code of a row is the
# larger of its two code fields: the older one is a byte, and is 127 for later operators. `Op.info` has what else a file
# says.

PLACEHOLDER: Final = 127
"""BuiltinOperator PLACEHOLDER_FOR_GREATER_OP_CODES: what the byte-sized field holds for larger codes."""

_VECTORS: Final = ("mutating_variable_inputs", "custom_options")
_NUMBERS: Final = (("custom_options_format", "FLEXBUFFERS"), ("debug_metadata_index", -1))


def builtin_name(row: Mapping[str, Any], where: str) -> str:
    """The BuiltinOperator of a decoded `OperatorCode`. InvalidModelError if there is no such operator."""
    codes = enum("BuiltinOperator")
    code = max(row["deprecated_builtin_code"], codes.values[row["builtin_code"]])
    if code not in codes.names:
        raise InvalidModelError(where, f"unknown builtin operator {code}")
    return codes.names[code]


def options_field(member: str) -> str:
    """The union field of `Operator` for an options table."""
    return "builtin_options" if member in union("BuiltinOptions").values else "builtin_options_2"


def read_attributes(fields: Mapping[str, Any], builtin: str, info: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an operator. `info` gets everything else that differs from what the operator usually has."""
    first, second = fields["builtin_options"], fields["builtin_options_2"]
    if first is not None and second is not None:
        raise InvalidModelError("builtin_options_2", f"options in both unions: {first[0]} and {second[0]}")
    options = first or second
    if (options[0] if options else None) != options_of(builtin):
        info["options"] = options[0] if options else None
    for key in _VECTORS:
        if fields[key] is not None:
            info[key] = fields[key]
    for key, default in _NUMBERS:
        if fields[key] != default:
            info[key] = fields[key]
    return options[1] if options else unstated_attributes(builtin)


def unstated_attributes(builtin: str) -> dict[str, Any]:
    """The attributes that an interpreter assumes for an operator without its options table: all bits zero.

    Source: `AllocatePOD` in tflite/core/api/flatbuffer_conversions.cc. The defaults of the schema do not hold there.
    """
    return dict(_unstated(builtin))


@cache
def _unstated(builtin: str) -> dict[str, Any]:
    member = options_of(builtin)
    zeros: dict[str, Any] = {}
    for field in table(member).fields if member else ():
        if field.kind == "enum":
            zeros[field.name] = enum(field.type).names[0]
        elif field.kind == "scalar":
            zeros[field.name] = False if field.scalar == "bool" else 0.0 if field.scalar.startswith("float") else 0
        elif field.kind != "union_type":
            zeros[field.name] = None
    return zeros


class OpcodeTable:
    """The operator codes to write: the rows of the source, then those that new operators need."""

    def __init__(self, rows: list[Mapping[str, Any]]) -> None:
        self.rows = list(rows)
        self.builtins = [builtin_name(row, f"operator_codes[{i}]") for i, row in enumerate(rows)]
        self.keys = [self._key(b, r["custom_code"], r["version"]) for b, r in zip(self.builtins, rows, strict=True)]
        self.first: dict[tuple[str, str | None, int], int] = {}
        for index, key in enumerate(self.keys):
            self.first.setdefault(key, index)

    @staticmethod
    def _key(builtin: str, custom_code: str | None, version: int) -> tuple[str, str | None, int]:
        return op_name(builtin), (custom_code or "") if builtin == "CUSTOM" else None, version

    def index(self, name: str, custom_code: str | None, version: int, source_index: int | None = None) -> int:
        """The row of an operator: `source_index`, with which it was read, else the first that fits, else a new one.

        ValueError if there is no such builtin operator.
        """
        key = (name, custom_code, version)
        if source_index is not None and source_index < len(self.keys) and self.keys[source_index] == key:
            return source_index
        first = self.first.get(key)
        return self._add(key) if first is None else first

    def _add(self, key: tuple[str, str | None, int]) -> int:
        name, custom_code, version = key
        builtin = builtin_of(name)
        code = enum("BuiltinOperator").values.get(builtin)
        if code is None or op_name(builtin) != name:
            raise ValueError("TFLite has no such operator")
        row = {"deprecated_builtin_code": min(code, PLACEHOLDER), "custom_code": custom_code, "version": version}
        self.rows.append({**row, "builtin_code": builtin})
        self.keys.append(key)
        self.first[key] = len(self.rows) - 1
        return len(self.rows) - 1
