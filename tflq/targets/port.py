"""Ports of a kernel's signature: what one operand or result may be.

i32             a plain tensor of that type
qi8             quantized, stored as that type, one scale (per layer)
qi8/axis        one scale per index of some axis; qi8/axis3: of that one
qi8/blocks      one scale per block
qi8/any         any of these
qi8<-127:127>   stored integers within these, by the type or, of a constant, by what it holds
qi8:0           zero point 0 (symmetric); qi8/axis:0
q               any quantized tensor; plain: any other; any: whatever
"""

from __future__ import annotations

import re
from typing import TypeAlias

import numpy as np

from tflq.ir.core import Value
from tflq.ir.types import (
    QUANTIZED_TYPES,
    SCALARS,
    ElementType,
    ScalarType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
)
from tflq.light import dataclass

__all__ = ["Kind", "Port", "is_port", "kind_of", "parse_port"]

_KINDS = {
    "": (UniformQuantizedType,),
    "axis": (UniformQuantizedPerAxisType,),
    "blocks": (UniformQuantizedSubChannelType,),
    "any": (UniformQuantizedType, UniformQuantizedPerAxisType, UniformQuantizedSubChannelType),
}
_QUANTIZED = r"q([a-z]+\d+)(?:<(-?\d+):(-?\d+)>)?(?:/(axis|blocks|any)(\d+)?)?(?::(-?\d+))?"


Kind: TypeAlias = tuple[type[ElementType], ScalarType]
"""What a port asks first of a tensor: the class of its element type, and its storage."""


def kind_of(value: Value) -> Kind:
    """The kind of a tensor."""
    return value.type.element.__class__, value.type.storage


@dataclass(frozen=True, slots=True)
class Port:
    """What a port takes; `kinds` empty: plain tensors, None: any at all."""

    text: str
    kinds: tuple[type, ...] | None
    storage: ScalarType | None = None
    axis: int | None = None
    zero_point: int | None = None
    low: int | None = None
    high: int | None = None

    def may_take(self, kind: Kind) -> bool:
        """Whether some tensor of a kind fits."""
        if self.kinds is None:
            return True
        element, storage = kind
        if not self.kinds and element is not ScalarType:
            return False
        return (not self.kinds or issubclass(element, self.kinds)) and self.storage in (None, storage)

    @property
    def asks_more(self) -> bool:
        """Whether it asks more of a quantized tensor than its kind."""
        return self.axis is not None or self.zero_point is not None or self.low is not None

    def takes(self, value: Value) -> bool:
        """Whether a tensor of a kind that fits does so itself."""
        element = value.type.element
        if not isinstance(element, QUANTIZED_TYPES):
            return True
        if self.axis is not None and getattr(element, "axis", None) != self.axis:
            return False
        if not self._holds(value, element.storage_min, element.storage_max):
            return False
        if self.zero_point is None:
            return True
        zero = element.zero_point if isinstance(element, UniformQuantizedType) else element.zero_points
        return bool(np.all(zero == self.zero_point))

    def why_not(self, value: Value) -> str:
        """Why a tensor does not fit, in the words of ports; empty if it does."""
        if self.may_take(kind_of(value)) and self.takes(value):
            return ""
        element = value.type.element
        words = value.type.storage.name
        if isinstance(element, QUANTIZED_TYPES):
            words = f"q{words}"
            if isinstance(element, UniformQuantizedPerAxisType):
                words += f"/axis{element.axis}"
            elif isinstance(element, UniformQuantizedSubChannelType):
                words += "/blocks"
            elif self.zero_point is not None and isinstance(element, UniformQuantizedType):
                words += f":{element.zero_point}"
        return f"'{value.name}' is {words}, not {self.text}"

    def _holds(self, value: Value, low: int, high: int) -> bool:
        if self.low is None or self.high is None or (self.low <= low and high <= self.high):
            return True
        if not value.is_constant:
            return False
        array = value.array
        return not array.size or bool(self.low <= array.min() and array.max() <= self.high)


def is_port(text: str) -> bool:
    """Whether a word is a port, as against a name that a signature gives."""
    try:
        parse_port(text)
    except ValueError:
        return False
    return True


def parse_port(text: str) -> Port:
    """ValueError says what is wrong."""
    if text == "any":
        return Port(text, None)
    if text == "plain":
        return Port(text, ())
    if text == "q":
        return Port(text, _KINDS["any"])
    if text in SCALARS:
        return Port(text, (), SCALARS[text])
    found = re.fullmatch(_QUANTIZED, text)
    if found is None or found[1] not in SCALARS or not SCALARS[found[1]].is_integer:
        raise ValueError(
            f"'{text}' is no port: known are i32, qi8, qi8/axis, qi8/blocks, qi8/any, qi8:0, q, plain, any"
        )
    kind, axis = found[4] or "", found[5]
    if axis is not None and kind != "axis":
        raise ValueError(f"'{text}': only /axis has a number")
    storage = SCALARS[found[1]]
    low, high, zero = (None if found[i] is None else int(found[i]) for i in (2, 3, 6))
    if low is not None and high is not None and not storage.minimum <= low < high <= storage.maximum:
        raise ValueError(f"'{text}': {low}:{high} is no range within {storage}")
    if zero is not None and not storage.minimum <= zero <= storage.maximum:
        raise ValueError(f"'{text}': zero point {zero} is outside {storage}")
    return Port(text, _KINDS[kind], storage, None if axis is None else int(axis), zero, low, high)
