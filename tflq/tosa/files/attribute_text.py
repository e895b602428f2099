"""Attributes of an operator as MLIR text: those of the IR that are no operands in TOSA, and what types say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tflq.dialects.tosa.casts import Rescale
from tflq.ir.core import Op
from tflq.ir.types import element_storage
from tflq.tosa.files.attributes import GRAPHS
from tflq.tosa.files.literals import array_text, element_text, number_text, string
from tflq.tosa.operands import Accumulates, accumulator, is_unsigned, slots

__all__ = ["attributes_text"]

_NOT_WRITTEN: Final = GRAPHS | {"input_range"}
"""Hints, and functions, which become regions."""
_ENUMS: Final = {"mode": "resize_mode", "rounding_mode": "rounding_mode"}


def attributes_text(op: Op) -> Iterator[str]:
    """`axis = 1 : i32`, one after another."""
    taken = {slot.name for slot in slots(type(op)) if slot.type} | _NOT_WRITTEN
    for key, value in op.attributes.items():
        if key not in taken:
            yield f"{key} = {_value(op, key, value)}"
    if isinstance(op, Accumulates):
        yield f"acc_type = {element_text(accumulator(op))}"
    if isinstance(op, Rescale):
        yield f"input_unsigned = {str(is_unsigned(op.input.type)).lower()}"
        yield f"output_unsigned = {str(is_unsigned(op.result.type)).lower()}"


def _value(op: Op, key: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if key in _ENUMS:
        return f"#tosa.{_ENUMS[key]}<{value}>"
    if isinstance(value, str):
        return string(value)
    if isinstance(value, tuple | list):
        return array_text(value, "i32" if key == "perms" else "i64")
    if key in ("min_val", "max_val"):
        return number_text(value, element_storage(op.result.type.element))
    return f"{value} : i32"
