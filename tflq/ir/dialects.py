"""The declarations in `schema/`: what ops each dialect has, their operands and results, their attributes.

A dialect is a file, one line per op, parsed when the op is first met:

    name = "operand operand -> result | ...; T = types; attribute:kind ..."

The heads of `schema/tosa.toml` and `schema/tfl.toml` say how to read a line. A line of `tfl` states arity alone; its
attributes are the fields of its options table, and what follows its first `;` are traits, for
`flatbuffer.verify_schema`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from tflq.ir.types import SCALARS, ScalarType
from tflq.resources import resource

__all__ = [
    "GROUPS",
    "QUANTIZED",
    "Attribute",
    "Declaration",
    "Signature",
    "Slot",
    "declaration",
    "op_names",
    "signature",
    "table",
]

QUANTIZED: Final = "quantized"
"""Stands for every quantized element type."""

_FILES: Final = {"tfl": "tfl", "quant": "quant", "tosa": "tosa", "ext": "tosa"}
_FLAGS: Final = "?*#!"


@dataclass(frozen=True, slots=True)
class Slot:
    """One operand or result; `type` is a key of `Declaration.types`, equal for values of one element type (tfl: "")."""

    name: str
    optional: bool
    variadic: bool
    integer: bool  # holds axes, shapes or indices
    constant: bool = False
    type: str = ""


@dataclass(frozen=True, slots=True)
class Signature:
    """The operands and results of an op, in order. Only the last of either can be variadic."""

    operands: tuple[Slot, ...]
    results: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute; `kind` as the head of `schema/tosa.toml` lists them."""

    name: str
    kind: str
    optional: bool


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a dialect says of one op; `types` are the names of the element types that each type of a slot stands for."""

    name: str
    signatures: tuple[Signature, ...]
    types: Mapping[str, frozenset[str]]
    attributes: tuple[Attribute, ...]


@cache
def declaration(name: str) -> Declaration | None:
    """The declaration of an op called `tosa.add`; None if its dialect has none. ValueError if the line is not one."""
    dialect, _, short = name.partition(".")
    line = _line(dialect, short)
    if line is None:
        return None
    ports, *parts = line.split(";")
    signatures = tuple(signature(alternative) for alternative in ports.split("|"))
    if dialect == "tfl":
        return Declaration(name, signatures, {}, ())
    types: dict[str, frozenset[str]] = {}
    attributes: list[Attribute] = []
    for part in parts:
        variable, equals, members = part.partition("=")
        if equals:
            types[variable.strip()] = _types(members.split(), name)
        else:
            attributes += map(_attribute, part.split())
    for side in signatures:
        for slot in (*side.operands, *side.results):
            if slot.type not in types:
                types[slot.type] = _types([slot.type], name)
    return Declaration(name, signatures, types, tuple(attributes))


def op_names(dialect: str) -> frozenset[str]:
    """All ops of a dialect: `tosa.add` ..."""
    return frozenset(f"{dialect}.{name}" for name in _section(dialect))


def signature(text: str) -> Signature:
    """`x? y*:T -> z:T`"""
    operands, arrow, results = text.partition("->")
    if not arrow:
        raise ValueError(f"'{text.strip()}' has no ->")
    return Signature(_slots(operands), _slots(results))


@cache
def table(dialect: str) -> dict[str, Any]:
    """The file of a dialect."""
    return tomllib.loads(resource(f"schema/{_FILES[dialect]}.toml").read_text(encoding="utf-8"))


def _section(dialect: str) -> Mapping[str, Any]:
    if dialect not in _FILES:
        return {}
    return table(dialect) if dialect == "quant" else table(dialect)["op" if dialect == "tfl" else dialect]


def _line(dialect: str, name: str) -> str | None:
    found = _section(dialect).get(name)
    return found["signature"] if isinstance(found, dict) else found


def _slots(text: str) -> tuple[Slot, ...]:
    return tuple(map(_slot, text.split()))


def _slot(word: str) -> Slot:
    port, _, type = word.partition(":")
    name = port.rstrip(_FLAGS)
    flags = port[len(name) :]
    return Slot(name, "?" in flags, "*" in flags, "#" in flags, "!" in flags, type)


def _attribute(word: str) -> Attribute:
    name, colon, kind = word.partition(":")
    if not colon:
        raise ValueError(f"'{word}' is no attribute:kind")
    return Attribute(name.removesuffix("?"), kind, name.endswith("?"))


GROUPS: Final[Mapping[str, frozenset[str]]] = {
    "any": frozenset(SCALARS),
    "integer": frozenset(name for name, t in SCALARS.items() if t.is_integer),
    "float": frozenset(name for name, t in SCALARS.items() if t.is_float),
    QUANTIZED: frozenset({QUANTIZED}),
}
"""Names for many element types; a slot of one takes any of them, whatever the other slots have."""


def _types(names: Sequence[str], op: str) -> frozenset[str]:
    """The members of a type variable: scalar types and groups of them."""
    members: set[str] = set()
    for name in names:
        if name not in GROUPS and not isinstance(SCALARS.get(name), ScalarType):
            raise ValueError(f"{op}: '{name}' is no element type; groups are {', '.join(GROUPS)}")
        members |= GROUPS.get(name, {name})
    return frozenset(members)
