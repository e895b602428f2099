"""Convolution in its general form, also of floating-point activations and quantized weights."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from tflq.dialects.declare import Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.dialects.stablehlo.hybrid import (
    Hybrid,
    all_quantized_or_hybrid,
    along,
    lhs_per_tensor,
    one_expressed_type,
    one_storage_type,
    real_as_expressed,
)
from tflq.dialects.stablehlo.rules import agree, integers, is_per_tensor
from tflq.ir.core import Op, Value
from tflq.ir.op_checks import constraint

__all__ = ["ConvNumbers", "Convolution", "Window", "window"]


class Window(NamedTuple):
    """How a window moves over the spatial dimensions: one item for each."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    base_dilations: tuple[int, ...]
    dilations: tuple[int, ...]

    def counts(self, shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """How many windows there are along each dimension of a shape."""
        rows = zip(shape, *self, strict=True)
        return tuple(None if row[0] is None else _count(*row) for row in rows)


def _count(n: int, size: int, stride: int, padding: tuple[int, int], base: int, dilation: int) -> int:
    padded = sum(padding) + ((n - 1) * base + 1 if n else 0)
    reach = (size - 1) * dilation + 1 if size else 0
    return 0 if padded <= 0 or reach > padded else (padded - reach) // stride + 1


def window(op: Op, rank: int, sizes: tuple[int, ...] | None, base: str, dilations: str) -> Window | None:
    """The window that attributes say, with the defaults of those left out; None if one does not fit the rank."""
    ones = (1,) * rank
    lists = [sizes, *(integers(op, key, ones) for key in ("window_strides", base, dilations))]
    stated = op.attributes.get("padding")
    padding = np.zeros((rank, 2), np.int64) if stated is None else np.asarray(stated)
    if any(item is None or len(item) != rank for item in lists) or padding.shape != (rank, 2):
        return None
    known, strides, base_dilations, window_dilations = (item or () for item in lists)
    pads = tuple((int(low), int(high)) for low, high in padding)
    return Window(known, strides, pads, base_dilations, window_dilations)


class ConvNumbers(NamedTuple):
    """Which dimension is what: of the input (batch, feature, spatial ones), the kernel (input feature, output feature,
    spatial ones) and the output."""

    input: tuple[int, int, tuple[int, ...]]
    kernel: tuple[int, int, tuple[int, ...]]
    output: tuple[int, int, tuple[int, ...]]


_SIDES = re.compile(r"<\s*\[([^\]]*)\]\s*x\s*\[([^\]]*)\]\s*->\s*\[([^\]]*)\]\s*>")
_FIELD = re.compile(r"(\w+)\s*=\s*(?:\[([^\]]*)\]|(-?\d+))")


def _side(text: str, first: str, second: str) -> tuple[int, int, tuple[int, ...]] | None:
    """`b, 0, 1, f`: where each of them is."""
    words = text.replace(",", " ").split()
    spatial = [str(i) for i in range(len(words) - 2)]
    if sorted(words) != sorted([first, second, *spatial]):
        return None
    return words.index(first), words.index(second), tuple(words.index(name) for name in spatial)


def _raw(text: str) -> ConvNumbers | None:
    fields = {name: many or one for name, many, one in _FIELD.findall(text)}
    sides = []
    for prefix, first, second in (
        ("input", "input_batch", "input_feature"),
        ("kernel", "kernel_input_feature", "kernel_output_feature"),
        ("output", "output_batch", "output_feature"),
    ):
        try:
            spatial = tuple(
                int(word) for word in fields.get(f"{prefix}_spatial_dimensions", "").replace(",", " ").split()
            )
            sides.append((int(fields[f"{first}_dimension"]), int(fields[f"{second}_dimension"]), spatial))
        except (KeyError, ValueError):
            return None
    return ConvNumbers(*sides)


@constraint
def _numbered(op: Convolution) -> bool:
    """'dimension_numbers' must name every dimension of lhs, rhs and result once, with as many spatial ones of each"""
    numbers = op.numbers
    if numbers is None or len({len(side[2]) for side in numbers}) != 1:
        return False
    for value, (first, second, spatial) in zip(op.tensors, numbers, strict=True):
        named = (first, second, *spatial)
        if sorted(named) != list(range(len(named))) or value.type.rank not in (None, len(named)):
            return False
    return True


@constraint
def _windowed(op: Convolution) -> bool:
    """'window_strides', 'padding', 'lhs_dilation', 'rhs_dilation' and 'window_reversal' must have an item for each
    spatial dimension, strides and dilations from 1 up"""
    if op.rhs.type.shape is None:
        return True
    spread = op.window
    if spread is None or min((*spread.strides, *spread.base_dilations, *spread.dilations), default=1) < 1:
        return False
    reversal = integers(op, "window_reversal", (0,) * len(spread.sizes))
    return reversal is not None and len(reversal) == len(spread.sizes)


@constraint
def _grouped(op: Convolution) -> bool:
    """the groups must divide the features, and one of 'feature_group_count' and 'batch_group_count' must be 1"""
    groups, batches = op.feature_group_count, op.batch_group_count
    if min(groups, batches) != 1 or op.numbers is None:
        return False
    left, right = op.lhs.type.shape, op.rhs.type.shape
    if left is None or right is None:
        return True
    batch, feature, _ = op.numbers.input
    inputs, outputs, _ = op.numbers.kernel
    channels, made = left[feature], right[outputs]
    if made is not None and made % (groups * batches):
        return False
    if (left[batch] or 0) % batches or (channels or 0) % groups:
        return False
    return channels is None or right[inputs] is None or channels == (right[inputs] or 0) * groups


@constraint
def _sized(op: Convolution) -> bool:
    """the result must have the shape that the windows give"""
    left, right, made = op.lhs.type.shape, op.rhs.type.shape, op.result.type.shape
    if left is None or right is None or made is None or op.numbers is None or op.window is None:
        return True
    batch, _, spatial = op.numbers.input
    pairs = zip(spatial, op.numbers.kernel[2], strict=True)
    counts = op.window.counts(tuple(None if right[b] is None else left[a] for a, b in pairs))
    at_batch, at_feature, at_spatial = op.numbers.output
    rows = left[batch]
    wanted: list[int | None] = [None] * len(made)
    wanted[at_batch] = None if rows is None else rows // op.batch_group_count
    wanted[at_feature] = right[op.numbers.kernel[1]]
    for place, count in zip(at_spatial, counts, strict=True):
        wanted[place] = count
    return agree(tuple(wanted), made)


@constraint
def _one_element_type(op: Convolution) -> bool:
    """(C27) lhs and rhs must have the same element type, if none is quantized"""
    return any(v.type.quantized for v in op.tensors) or op.lhs.type.element == op.rhs.type.element


@constraint
def _kernel_axis(op: Convolution) -> bool:
    """(C29) the quantization dimension of rhs must be kernel_output_feature_dimension"""
    return op.numbers is None or along(op.rhs.type, op.numbers.kernel[1])


@constraint
def _result_axis(op: Convolution) -> bool:
    """(C30) the quantization dimension of the result must be output_feature_dimension"""
    return op.numbers is None or along(op.result.type, op.numbers.output[1])


@constraint
def _one_scale(op: Convolution) -> bool:
    """(C33) if rhs is quantized per tensor, so must be the result"""
    return not op.lhs.type.quantized or not is_per_tensor(op.rhs.type) or is_per_tensor(op.result.type)


class Convolution(Operator, name="stablehlo.convolution"):
    """Dot products of windows of lhs with slices of rhs. Of a floating-point lhs and a quantized rhs, the rhs is
    dequantized; of quantized ones, the numbers that they stand for are multiplied, and the sums are quantized."""

    __slots__ = ()
    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    feature_group_count: int = attribute(default=1)
    batch_group_count: int = attribute(default=1)
    constraints = (
        declared,
        _one_element_type,
        all_quantized_or_hybrid("C28"),
        _kernel_axis,
        _result_axis,
        one_storage_type("C31"),
        one_expressed_type("C32"),
        _one_scale,
        real_as_expressed("C34"),
        lhs_per_tensor,
        _numbered,
        _windowed,
        _grouped,
        _sized,
    )
    traits = (Hybrid(),)

    @property
    def numbers(self) -> ConvNumbers | None:
        """Its dimension numbers; None if the attribute says none."""
        text = str(getattr(self.attributes.get("dimension_numbers"), "text", ""))
        found = _SIDES.search(text)
        if found is None:
            return _raw(text)
        sides = [_side(found[1], "b", "f"), _side(found[2], "i", "o"), _side(found[3], "b", "f")]
        return None if None in sides else ConvNumbers(*sides)  # type: ignore[arg-type]

    @property
    def window(self) -> Window | None:
        """The window of its kernel, of known size; None if an attribute does not fit it."""
        numbers, shape = self.numbers, self.rhs.type.shape
        if numbers is None or shape is None:
            return None
        sizes = tuple(shape[i] or 0 for i in numbers.kernel[2])
        return window(self, len(sizes), sizes, "lhs_dilation", "rhs_dilation")
