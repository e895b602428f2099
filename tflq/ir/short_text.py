"""Types, constants and attributes as short texts for people; long ones are cut off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tflq.ir.core import Value
from tflq.ir.types import (
    CalibratedQuantizedType,
    ElementType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
)

__all__ = ["attribute_text", "constant_text", "quantization", "shape_text"]

SHOWN = 16
"""Elements of an array, or of a list, that are shown."""


def shape_text(type: TensorType) -> str:
    """`int8[1,24,24,3]`, open dims as ?, an unknown rank as *."""
    dims = "*" if type.shape is None else ",".join("?" if dim is None else str(dim) for dim in type.shape)
    return f"{_dtype(type)}[{dims}]"


def quantization(element: ElementType) -> Mapping[str, str]:
    """What is shown of an element type's parameters; nothing of a plain one. `quantization` is Model Explorer's own
    key: a formula per scale."""
    if isinstance(element, UniformQuantizedType):
        shown = {"quantization": _formula(element.scale, element.zero_point)}
    elif isinstance(element, UniformQuantizedPerAxisType):
        pairs = zip(element.scales.tolist(), element.zero_points.tolist(), strict=True)
        formulas = [_formula(scale, zero) for scale, zero in pairs]
        shown = {"quantization": ",".join(formulas), "quantized_dimension": str(element.axis)}
    elif isinstance(element, UniformQuantizedSubChannelType):
        blocks = ", ".join(
            f"{size} of axis {axis}" for axis, size in zip(element.axes, element.block_sizes, strict=True)
        )
        return {"block_sizes": blocks, "scales": attribute_text(element.scales)}
    elif isinstance(element, CalibratedQuantizedType):
        return {"calibrated": f"{element.minimum:g} to {element.maximum:g}"}
    else:
        return {}
    storage = element.storage
    if (element.storage_min, element.storage_max) != (storage.minimum, storage.maximum):
        shown["storage_range"] = f"{element.storage_min} to {element.storage_max}"
    return shown


def constant_text(value: Value) -> str:
    """The first elements of a constant; nothing of a type that numpy has not, strings say."""
    if not value.is_constant or not value.type.storage.numpy:
        return ""
    return attribute_text(value.array)


def attribute_text(value: Any) -> str:
    """An attribute in words, long ones cut off with their length."""
    if isinstance(value, np.ndarray):
        text = ", ".join(_number(item) for item in value.reshape(-1)[:SHOWN].tolist())
        return f"[{text}]" if value.size <= SHOWN else f"[{text}, …] ({'×'.join(map(str, value.shape))})"
    if isinstance(value, (list, tuple)):
        text = ", ".join(map(attribute_text, value[:SHOWN]))
        return f"[{text}]" if len(value) <= SHOWN else f"[{text}, …] ({len(value)})"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{len(value)} bytes"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {attribute_text(item)}" for name, item in value.items())
    if isinstance(value, Value):
        return value.name
    return _number(value)


def _number(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _formula(scale: float, zero: int) -> str:
    """The real value that a stored integer q stands for."""
    shown = f"{scale:.9g}"
    return f"{shown} * q" if not zero else f"{shown} * (q {'-' if zero > 0 else '+'} {abs(zero)})"


def _dtype(type: TensorType) -> str:
    storage = type.storage
    if storage.is_integer:
        return f"{'int' if storage.signed else 'uint'}{storage.bits}"
    return storage.numpy or storage.name.removeprefix("!tfl.")
