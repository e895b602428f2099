"""Quantization parameters of each tensor by itself.

What has no clear meaning is refused; what has one, but is refused or disregarded by an interpreter, is noted. Scales
of 0,
infinite and denormal ones, and ratios of any size are valid: kernels compute with them. Parameters of an operator's
tensors among each other: `dialects.traits.quantization`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflq.dialects.traits.quantization import NARROW
from tflq.flatbuffer.tensors import quantized_element
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType

if TYPE_CHECKING:
    from tflq.ir.core import Value
    from tflq.ir.notes import Notes

__all__ = ["verify_parameters"]


def verify_parameters(value: Value, where: str, notes: Notes) -> None:
    """A tensor's own parameters: valid, along one of its dims, as many as that dim is long."""
    element = value.type.element
    if isinstance(element, UniformQuantizedType):
        return
    if isinstance(element, UniformQuantizedPerAxisType):
        _verify_axis(value, element, where, notes)
        return
    raw = value.info.get("quantization") if value.info else None
    if raw is None:
        return
    if raw.get("details") is not None:
        what = f"has quantization details of type {raw['details'][0]}, which stay as they are"
        notes.warn(where, what, remedy="state scales and zero points to have it converted")
        return
    if not value.type.storage.is_integer:
        return
    try:
        quantized_element(raw, value.type.storage)
    except ValueError as error:
        if value.type.storage.bits <= NARROW:
            notes.fail(f"{where}.quantization", str(error))
        notes.warn(f"{where}.quantization", f"{error}, so it is ignored", remedy="leave the quantization out")


def _verify_axis(value: Value, element: UniformQuantizedPerAxisType, where: str, notes: Notes) -> None:
    shape, count = value.type.shape, element.scales.size
    if shape is None:
        return
    axis = value.info.get("quantized_dimension", element.axis)
    if axis >= len(shape):
        described = f"quantized_dimension {axis} is not a dim of a tensor of rank {len(shape)}"
        if element.axis:
            notes.fail(f"{where}.quantization", described)
        what = f"{described}; it is read as 0, the only dim, and a conversion writes 0"
        notes.warn(f"{where}.quantization", what, remedy="write 0")
        return
    dim = shape[element.axis]
    if dim is not None and dim != count:
        notes.fail(f"{where}.quantization", f"{count} scales for dim {element.axis}, which is {dim} long")
