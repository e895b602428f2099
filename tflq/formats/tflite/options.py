"""The options of operators: which table holds those of an operator, and the values that its fields take.

A file states the type of each field, a text that of each value. `settle_options` brings the two together: it refuses
what no field takes, `true` where a file has an integer, and rounds floats as a file does. Source: schema.fbs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import inf
from typing import Any, Final

import numpy as np

from tflq.base.errors import VerificationError
from tflq.dialects.tfl import builtin_of
from tflq.formats.flatbuffer.layout import Field, enum, options_of, table, unstated_attributes
from tflq.ir.module import Module
from tflq.ir.ops import Op

_FLOAT_MAX: Final = float(np.finfo(np.float32).max)
_LONGEST: Final = 60
"""Characters of a value that a message shows."""
_ARRAYS: Final = {"bool": "b", "float32": "fiu"}
"""The kinds of numpy arrays that a vector takes; all others take integers."""


def options_table(op: Op) -> str | None:
    """The options table of an operator: the one it was read with, else the usual one of its builtin."""
    member: str | None = op.info.get("options")
    if member is None and ("options" not in op.info or _has_new_attributes(op)):
        return usual_table(op.name)
    return member


def _has_new_attributes(op: Op) -> bool:
    """Whether an operator that was read without options has been given attributes since."""
    unstated = unstated_attributes(builtin_of(op.name))
    return any(unstated.get(name) != value for name, value in op.attributes.items())


@cache
def usual_table(name: str) -> str | None:
    """The options table of the builtin of an op's name; None if it has none."""
    return options_of(builtin_of(name))


def check_options(member: str, attributes: Mapping[str, Any]) -> None:
    """ValueError if an attribute is none that its field of the options table takes."""
    for field in table(member).fields:
        if field.name in attributes and not _takes(field, attributes[field.name]):
            value = attributes[field.name]
            stated = "has no value" if value is None else f"is {_text(value)}"
            raise ValueError(f"{field.name} {stated}, and {member} has {_kind(field)} there")


def _takes(field: Field, value: Any) -> bool:
    """Whether a field of an options table can hold a value. A vector may be left out."""
    match field.kind:
        case "scalar":
            return _is_number(field.scalar, value)
        case "enum":
            return isinstance(value, str) and value in enum(field.type).values
        case "string":
            return value is None or isinstance(value, str)
        case "vector":
            if isinstance(value, np.ndarray):
                return value.ndim == 1 and value.dtype.kind in _ARRAYS.get(field.scalar, "iu")
            if isinstance(value, (list, tuple)):
                return all(_is_number(field.scalar, item) for item in value)
            return value is None or (field.scalar == "uint8" and isinstance(value, bytes))
    return True


def _is_number(scalar: str, value: Any) -> bool:
    """Whether a value is a number of a scalar type. The writer checks the range of integers."""
    if scalar == "bool":
        return isinstance(value, (bool, np.bool_))
    is_integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if scalar != "float32":
        return is_integer
    return (is_integer or isinstance(value, (float, np.floating))) and not _FLOAT_MAX < abs(value) < inf


def _kind(field: Field) -> str:
    """The kind of value that a field takes, in words."""
    if field.kind == "enum":
        return f"one of {', '.join(enum(field.type).values)}"
    number = {"bool": "true or false", "float32": "a float of 32 bits"}.get(field.scalar, "an integer")
    return {"scalar": number, "string": "a string"}.get(field.kind, f"a list, each {number},")


def _text(value: Any) -> str:
    """A value as a text states it."""
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def settle_options(module: Module) -> None:
    """Gives the operators of a text the options that a file would hold: floats are rounded to float32.

    VerificationError if a file has no place for one.
    """
    for op in module.ops():
        if not op.name.startswith("tfl."):
            continue
        try:
            member = options_table(op)
            if member is None:
                continue
            check_options(member, op.attributes)
        except (KeyError, ValueError) as error:
            raise VerificationError(f"{op.location or op.name}: {op.name} cannot be written: {error}") from error
        for field in table(member).fields:
            value = op.attributes.get(field.name)
            if field.scalar == "float32" and value is not None:
                rounded = np.asarray(value, np.float32)
                op.attributes[field.name] = rounded.item() if field.kind == "scalar" else tuple(rounded.tolist())
