"""Quantization parameters: of each tensor by itself, and of an operator's tensors among each other.

An interpreter checks little of this and computes something anyway; a converter would compute something else. So what
has no clear meaning is refused; what has one, but is refused or disregarded by an interpreter, is noted. Scales of 0,
infinite and denormal ones, and ratios of any size are valid: kernels compute with them. Source: the Prepare functions
of tflite/kernels; `GetQuantizedConvolutionMultipler` and `PopulateConvolutionQuantizationParams` in
kernels/kernel_util.cc; `QuantizeMultiplier` in kernels/internal/quantization_util.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tflq.flatbuffer.tensors import quantized_element
from tflq.flatbuffer.verify_notes import COPIED
from tflq.flatbuffer.verify_schema import fixed_parameters
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType

if TYPE_CHECKING:
    from collections.abc import Callable

    from tflq.flatbuffer.verify_notes import Notes, Site
    from tflq.ir.core import Value

    Check = Callable[[Site, tuple[str, ...]], None]

__all__ = ["CHECKS", "verify_parameters"]

_NARROW: Final = 16
"""Integers up to this width are nearly always quantized values; wider ones are accumulators, indices or biases."""
_BIAS_TOLERANCE: Final = 0.02
"""Of the output's scale: how far a bias scale may be from input × filter in an interpreter."""
_UNSEEN: Final = 1 / 16
"""Of the output's scale: how far apart what a bias stands for by its own scale and by the kernels' may be unnoticed."""


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
        notes.warn(where, f"has quantization details of type {raw['details'][0]}, kept as they are")
        return
    if not value.type.storage.is_integer:
        return
    try:
        quantized_element(raw, value.type.storage)
    except ValueError as error:
        if value.type.storage.bits <= _NARROW:
            notes.fail(f"{where}.quantization", str(error))
        notes.warn(f"{where}.quantization", f"{error}; disregarded")


def _verify_axis(value: Value, element: UniformQuantizedPerAxisType, where: str, notes: Notes) -> None:
    shape, count = value.type.shape, element.scales.size
    if shape is None:
        return
    axis = value.info.get("quantized_dimension", element.axis)
    if axis >= len(shape):
        described = f"quantized_dimension {axis} is not a dim of a tensor of rank {len(shape)}"
        if element.axis:
            notes.fail(f"{where}.quantization", described)
        notes.warn(f"{where}.quantization", f"{described}; read as 0, the only dim, and so written by a conversion")
        return
    dim = shape[element.axis]
    if dim is not None and dim != count:
        notes.fail(f"{where}.quantization", f"{count} scales for dim {element.axis}, which is {dim} long")


def _has_details(value: Value) -> bool:
    raw = value.info.get("quantization")
    return raw is not None and raw.get("details") is not None


def _lacks(value: Value) -> bool:
    """Whether a tensor of integers has no quantization parameters of any kind."""
    return value.type.storage.is_integer and not value.type.quantized and not _has_details(value)


def _quantized(site: Site, names: tuple[str, ...]) -> None:
    values = [v for name in names for v in site.values(name)]
    if not any(isinstance(v.type.element, (UniformQuantizedType, UniformQuantizedPerAxisType)) for v in values):
        return
    for value in values:
        if _lacks(value) and value.type.storage.bits <= _NARROW:
            site.fail(f"'{value.name}' has no quantization parameters, but other tensors of the operator have")


def _needs(site: Site, names: tuple[str, ...]) -> None:
    for name in names:
        for value in site.values(name):
            if _lacks(value):
                site.fail(f"{name} '{value.name}' needs quantization parameters and has none")


def _zero(site: Site, names: tuple[str, ...]) -> None:
    for name in names:
        for value in site.values(name):
            element = value.type.element
            if value.type.storage.bits == 16 and isinstance(element, UniformQuantizedType) and element.zero_point:
                site.warn(f"{name} '{value.name}' is int16 with zero point {element.zero_point}; kernels need 0")


def _same(site: Site, names: tuple[str, ...]) -> None:
    first: Value | None = None
    for name in names:
        for value in site.values(name):
            element = value.type.element
            if not isinstance(element, UniformQuantizedType):
                continue
            if first is None:
                first = value
            elif element is not first.type.element and element != first.type.element:
                one, other = first.type.element, element
                assert isinstance(one, UniformQuantizedType)
                left = f"'{first.name}' ({one.scale}, {one.zero_point})"
                right = f"'{value.name}' ({other.scale}, {other.zero_point})"
                site.warn(f"{left} and {right} differ in scale or zero point; {COPIED}")
                return


def _fixed(site: Site, arguments: tuple[str, ...]) -> None:
    data, result = site.op.operands[0], site.op.results[0]
    element = result.type.element
    if not isinstance(element, UniformQuantizedType) or data is None or data.type.storage != element.storage:
        return
    fixed = fixed_parameters(arguments[0], element.storage.name)
    if fixed is None or (site.op.name == "tfl.tanh" and element.storage.bits == 8):  # whose kernel takes any
        return
    scale, zero_point = fixed
    if abs(element.scale - scale) > scale / 1000 or element.zero_point != zero_point:
        stated = f"scale {element.scale} and zero point {element.zero_point}"
        site.warn(f"result '{result.name}' has {stated}, where kernels expect {scale} and {zero_point}")


def _mac(site: Site, arguments: tuple[str, ...]) -> None:
    axis = int(arguments[0])
    data, bias = site.value("input"), site.value("bias")
    weights, result = site.value("filter" if "filter" in site.schema.places else "weights"), site.op.results[0]
    if data is None or weights is None or not isinstance(data.type.element, UniformQuantizedType):
        return
    filter_element = weights.type.element
    if isinstance(filter_element, UniformQuantizedType):
        scales = np.array([filter_element.scale], np.float64)
        if filter_element.storage.signed and filter_element.zero_point and site.op.name != "tfl.fully_connected":
            site.warn(f"filter '{weights.name}' has zero point {filter_element.zero_point}, which kernels disregard")
    elif isinstance(filter_element, UniformQuantizedPerAxisType):
        scales = filter_element.scales.astype(np.float64)
        _verify_filter_axes(site, weights, filter_element, axis)
    else:
        return
    if isinstance(result.type.element, UniformQuantizedType):
        with np.errstate(all="ignore"):
            _verify_bias(site, weights, bias, scales * data.type.element.scale, result.type.element.scale)
    _verify_accumulator(site, data, weights, axis)


def _verify_filter_axes(site: Site, weights: Value, element: UniformQuantizedPerAxisType, axis: int) -> None:
    if element.axis != axis and weights.type.rank != 1:
        site.fail(f"filter '{weights.name}' is quantized along dim {element.axis}, where dim {axis} is expected")
    if element.zero_points.any():
        if element.storage.signed:
            site.fail(f"filter '{weights.name}' is per-axis with zero points other than 0")
        site.warn(f"filter '{weights.name}' is per-axis with zero points other than 0, which no kernel supports")


def _verify_bias(site: Site, weights: Value, bias: Value | None, scales: np.ndarray, output_scale: float) -> None:
    """Kernels add a bias to the accumulator as it is: its scale must be the accumulator's, its zero point 0."""
    if bias is None:
        return
    element = bias.type.element
    if isinstance(element, UniformQuantizedType):
        stated, zero = np.array([element.scale]), element.zero_point != 0
    elif isinstance(element, UniformQuantizedPerAxisType):
        stated, zero = element.scales.astype(np.float64), bool(element.zero_points.any())
    else:
        return
    if zero:
        site.fail(f"bias '{bias.name}' has a zero point other than 0")
    if stated.size not in (1, scales.size) and scales.size != 1:
        site.fail(f"bias '{bias.name}' has {stated.size} scales for {scales.size} channels")
    apart = np.abs(stated - scales)
    kernel_checks = not weights.type.storage.signed or site.op.name == "tfl.fully_connected"
    if scales.size == 1 and kernel_checks and not (apart / np.float64(output_scale) <= _BIAS_TOLERANCE).all():
        site.fail(f"bias '{bias.name}' has a scale far from input × filter ({stated[0]}, {scales[0]})")
    other = (apart > 0.01 * scales) & (stated != scales.astype(np.float32))
    if other.any() and not (bias.is_constant and _unseen(np.where(other, apart, 0), bias.array, output_scale)):
        site.warn(f"bias '{bias.name}' has a scale other than input × filter, which is used instead")


def _unseen(apart: np.ndarray, bias: np.ndarray, output_scale: float) -> bool:
    """Whether no bias [C] is another number of the result's steps at scales [1 or C] this far apart."""
    flat = np.abs(bias.astype(np.float64)).reshape(-1)
    if apart.size not in (1, flat.size):
        return not flat.any()
    return bool(np.all((flat == 0) | (apart * flat < _UNSEEN * output_scale)))


def _verify_accumulator(site: Site, data: Value, weights: Value, axis: int) -> None:
    shape = weights.type.shape
    if weights.type.storage.bits > 8 or shape is None or None in shape or axis >= len(shape):
        return
    terms = 1
    for index, dim in enumerate(shape):
        terms *= (dim or 0) if index != axis else 1
    span, largest = 255, 127 if weights.type.storage.signed else 255
    if data.type.storage.bits <= 8 and terms * span * largest >= 1 << 31:
        site.warn(f"{terms} products per output may overflow an int32 accumulator")


CHECKS: Final[dict[str, Check]] = {
    "quantized": _quantized,
    "needs": _needs,
    "zero": _zero,
    "same": _same,
    "fixed": _fixed,
    "mac": _mac,
}
"""Trait -> its check; a check raises for a defect without a clear meaning and notes the others."""
