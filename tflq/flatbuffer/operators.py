"""The `OperatorCode` and `Operator` tables ↔ `Op`.

A builtin operator is `tfl.<name in lower case>` with the fields of its options table as attributes; a custom one is
`tfl.custom` with its `custom_code`. The builtin code of a row is the larger of its two code fields (the older one is
a byte and stays at 127 for later operators). What else a file says of an operator is kept in `Op.info`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from tflq.dialects.tfl import builtin_of, op_name
from tflq.errors import InvalidModelError
from tflq.flatbuffer.layout import enum, options_of, table, union

__all__ = ["OpcodeTable", "builtin_name", "options_field", "read_attributes", "unstated_attributes"]

PLACEHOLDER: Final = 127
"""BuiltinOperator PLACEHOLDER_FOR_GREATER_OP_CODES: what the byte-sized field holds for codes that it cannot."""

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
    """The union field of `Operator` that an options table belongs in."""
    return "builtin_options" if member in union("BuiltinOptions").values else "builtin_options_2"


def read_attributes(fields: Mapping[str, Any], builtin: str, info: dict[str, Any]) -> dict[str, Any]:
    """An operator's attributes; `info` gets what is beside them or differs from what the operator usually has."""
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
    """What an interpreter takes the attributes of an operator without its options table for: all bits zero.

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
    """The operator codes to write: the rows of a file, then those that new operators need."""

    def __init__(self, rows: list[Mapping[str, Any]]) -> None:
        self.rows = list(rows)
        builtins = [builtin_name(row, f"operator_codes[{i}]") for i, row in enumerate(rows)]
        self.keys = [self._key(b, r["custom_code"], r["version"]) for b, r in zip(builtins, rows, strict=True)]
        self._first: dict[tuple[str, str | None, int], int] = {}
        for index, key in enumerate(self.keys):
            self._first.setdefault(key, index)

    @staticmethod
    def _key(builtin: str, custom_code: str | None, version: int) -> tuple[str, str | None, int]:
        return op_name(builtin), (custom_code or "") if builtin == "CUSTOM" else None, version

    def index(self, name: str, custom_code: str | None, version: int, kept: int | None = None) -> int:
        """The row of an operator: the one it was read with, else the first that fits, else a new one.

        ValueError if there is no such builtin operator.
        """
        key = (name, custom_code, version)
        if kept is not None and kept < len(self.keys) and self.keys[kept] == key:
            return kept
        found = self._first.get(key)
        return self._add(key) if found is None else found

    def _add(self, key: tuple[str, str | None, int]) -> int:
        name, custom_code, version = key
        builtin = builtin_of(name)
        code = enum("BuiltinOperator").values.get(builtin)
        if code is None or op_name(builtin) != name:
            raise ValueError("TFLite has no such operator")
        row = {"deprecated_builtin_code": min(code, PLACEHOLDER), "custom_code": custom_code, "version": version}
        self.rows.append({**row, "builtin_code": builtin})
        self.keys.append(key)
        self._first[key] = len(self.rows) - 1
        return len(self.rows) - 1
