"""An operator's attribute table in a TOSA flatbuffer ↔ attributes of the op.

The tables' fields are called like the IR's attributes; what the IR has not is made from types: `acc_type`, and
RESCALE's input_unsigned and output_unsigned. CLAMP's bounds are bytes of an element of its type. `local_bound`, a
promise about errors of floats, is left false. `nan_mode` is PROPAGATE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import numpy as np

from tflq.flatbuffer.layout import TOSA
from tflq.ir.core import Op
from tflq.ir.types import bf16, element_storage
from tflq.tosa.dtypes import dtype
from tflq.tosa.operands import accumulator, is_unsigned

__all__ = ["GRAPHS", "MODES", "attribute_table", "member"]

GRAPHS: Final = ("then_graph", "else_graph", "cond_graph", "body_graph")
"""Attributes that name a region in a file, a function by its index in the IR."""
MODES: Final = {"NEAREST_NEIGHBOR": "NEAREST", "BILINEAR": "BILINEAR"}

_MADE: Final[Mapping[str, Callable[[Op], Any]]] = {
    "acc_type": lambda op: dtype(accumulator(op)),
    "input_unsigned": lambda op: is_unsigned(op.operand(0).type),
    "output_unsigned": lambda op: is_unsigned(op.result.type),
    "nan_mode": lambda _: "PROPAGATE",
    "local_bound": lambda _: False,
    "min_val": lambda op: _bound(op, "min_val"),
    "max_val": lambda op: _bound(op, "max_val"),
    "mode": lambda op: MODES[op.attributes["mode"]],
}


@cache
def member(operator: str) -> str:
    """The attribute table of an operator ("CONV2D" → "Conv2dAttribute"): union and enum have one order."""
    return TOSA.union("Attribute").names[TOSA.enum("Op").values[operator]]


def attribute_table(op: Op, regions: Mapping[int, str]) -> dict[str, Any]:
    """The fields of an op's attribute table; `regions` names the functions. KeyError if an attribute is missing."""
    fields: dict[str, Any] = {}
    for field in TOSA.table(member(op.name.removeprefix("tosa.").upper())).fields:
        made = _MADE.get(field.name)
        value = op.attributes[field.name] if made is None else made(op)
        fields[field.name] = regions[value] if field.name in GRAPHS else value
    return fields


def _bound(op: Op, name: str) -> np.ndarray:
    element, value = element_storage(op.result.type.element), op.attributes[name]
    if element is bf16:
        return np.array([value], np.float32).view(np.uint8)[2:]
    return np.array([value], element.dtype).view(np.uint8)
