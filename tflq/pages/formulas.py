"""What an op of the integer form computes, as a formula with its numbers, and what an operator of the source says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from tflq.dialects.ext.rescale import RescaleF64
from tflq.dialects.ext.tables import Table2D, Table16Bit
from tflq.dialects.tfl import convolution as tfl
from tflq.dialects.tfl.arithmetic import Mul
from tflq.dialects.tfl.matmul import BatchMatMul, FullyConnected
from tflq.dialects.tosa.activation import Clamp
from tflq.dialects.tosa.casts import Rescale
from tflq.dialects.tosa.convolution import Conv2D, Conv3D, DepthwiseConv2D, TransposeConv2D
from tflq.dialects.tosa.indexing import Table
from tflq.ir.core import Module, Op, Value
from tflq.ir.short_text import attribute_text, quantization, shape_text
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType

__all__ = ["formula", "parameters", "real_multipliers", "steps"]

_ROUNDINGS: Final[Mapping[str, str]] = {
    "SINGLE_ROUND": "rounded once, half up",
    "DOUBLE_ROUND": "rounded twice (DOUBLE_ROUND)",
    "INEXACT_ROUND": "rounded as the target likes",
}


def steps(form: Module, operands: Mapping[tuple[int, int], Sequence[str]]) -> dict[tuple[int, int], list[str]]:
    """The formulas of each operator of the source, by function and number, as the integer form computes it, in order.
    A step that uses the result of another calls it by its number: `#1` is the first.

    operands: names of each operator's operands, which are `input 0`, `input 1`, ...
    """
    found: dict[tuple[int, int], list[str]] = {}
    numbers: dict[Value, tuple[tuple[int, int], str]] = {}
    for op in form.ops():
        if op.location is None:
            continue
        key = op.location.function, op.location.operator
        lines = found.setdefault(key, [])
        names = {value: _name(value, key, numbers, operands.get(key, ())) for value in op.operands if value is not None}
        lines.append(formula(op, {value: name for value, name in names.items() if name}))
        for i, value in enumerate(op.results):
            numbers[value] = key, f"#{len(lines)}" + (f"[{i}]" if len(op.results) > 1 else "")
    return found


def _name(
    value: Value,
    key: tuple[int, int],
    numbers: Mapping[Value, tuple[tuple[int, int], str]],
    operands: Sequence[str],
) -> str:
    """What a step calls a value: the number of an earlier step, or an operand of its operator; "" for neither."""
    if value.is_constant:
        return ""
    owner, number = numbers.get(value, (key, ""))
    if number and owner == key:
        return number
    source = value
    while source.producer is not None and source.producer.location is None and len(source.producer.operands) == 1:
        before = source.producer.operands[0]
        if before is None:
            break
        source = before
    if source.name and source.name in operands:
        return f"input {operands.index(source.name)}"
    return f"{number} of operator {owner[1]}" if number else ""


def formula(op: Op, names: Mapping[Value, str] = MappingProxyType({})) -> str:
    """One line: `y = sat_int8((x - 0) * 1814478563 >> 39 ...)`. names: of operands; else they are x, or their type."""
    special = _special(op, names)
    if special:
        return f"{_type(op.result)} = {special}"
    known = None if op.name.startswith("tfl.") else " ".join((type(op).__doc__ or "").split())
    numbers = ", ".join(f"{name} {attribute_text(value)}" for name, value in op.attributes.items() if value is not None)
    operands = ", ".join("none" if v is None else names.get(v) or _operand(v) for v in op.operands)
    results = ", ".join(map(_type, op.results))
    text = f"{results} = {op.name.partition('.')[2]}({operands})" if results else f"{op.name}({operands})"
    return "; ".join(part for part in (text, numbers, known) if part)


def _special(op: Op, names: Mapping[Value, str]) -> str:
    """What a class of ops computes in a formula of its own; empty for all others."""
    first = op.operands[0] if op.operands else None
    x = (names.get(first) if first is not None else "") or "x"
    match op:
        case Rescale():
            return _rescale(op, x)
        case RescaleF64():
            scale = f"{op.scale[0]:.17g}" if op.scale.size == 1 else f"scale[c], {_span(op.scale)}"
            return f"saturate(round({x} · {scale}) in float64, half away from zero{_plus(op.output_zp)})"
        case Conv2D() | Conv3D() | DepthwiseConv2D() | TransposeConv2D():
            return _convolution(op, x)
        case Table() | Table2D() | Table16Bit():
            return _table(op.table, x)
        case Clamp():
            return f"min(max({x}, {attribute_text(op.min_val)}), {attribute_text(op.max_val)})"
    return ""


def _rescale(op: Rescale, x: str) -> str:
    x, multiplier, shift = _less(x, op.input_zp), op.multiplier, op.shift
    if multiplier.size == 1:
        real = multiplier / np.exp2(shift.astype(np.float64))
        scaled = f"{x} · {int(multiplier[0])} / 2^{int(shift[0])} (= {_span(real)})"
    else:
        scaled = f"{x} · M[c] / 2^s[c], M {_span(multiplier)}, s {_span(shift)}, {multiplier.size} channels"
    return f"saturate({scaled}, {op.rounding or _ROUNDINGS[op.rounding_mode]}{_plus(op.output_zp)})"


def _convolution(op: Conv2D | Conv3D | DepthwiseConv2D | TransposeConv2D, x: str) -> str:
    taps = f"Σ {_less(x, op.input_zp)} · {_less('w', op.weight_zp)} + b"
    shown = {name: op.attributes[name] for name in ("pad", "out_pad", "stride", "dilation") if name in op.attributes}
    listed = ", ".join(f"{name} {attribute_text(value)}" for name, value in shown.items())
    return f"{taps}; w {shape_text(op.weight.type)}, {listed}"


def _table(entries: Value, x: str) -> str:
    return (
        f"table[{x}], {shape_text(entries.type)}: {attribute_text(entries.array)}"
        if entries.is_constant
        else f"table[{x}]"
    )


def parameters(op: Op) -> list[tuple[str, str]]:
    """What the source says of an operator: its options, then each tensor's type and quantization."""
    options = [(name, attribute_text(value)) for name, value in op.attributes.items() if value is not None]
    sides = [(f"input {i}", v) for i, v in enumerate(op.operands) if v is not None]
    sides += [("result" if len(op.results) == 1 else f"result {i}", v) for i, v in enumerate(op.results)]
    return options + [(side, _quantized(value)) for side, value in sides]


def real_multipliers(op: Op) -> str:
    """The scale of the products that an operator sums, over the scale of its result: what RESCALE stands for."""
    if not isinstance(op, _PRODUCTS):
        return ""
    types = [v.type.element if v is not None else None for v in (*op.operands[:2], op.result)]
    scales = [_scales(element) for element in types]
    if any(scale is None for scale in scales):
        return ""
    x, w, y = (scale for scale in scales if scale is not None)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = x * w / y
    return _span(found) if found.size == 1 else f"{_span(found)}, {found.size} channels"


_PRODUCTS: Final = (tfl.Conv2D, tfl.DepthwiseConv2D, FullyConnected, Mul, BatchMatMul, tfl.Conv3D)


def _scales(element: Any) -> np.ndarray | None:
    if isinstance(element, UniformQuantizedType):
        return np.array([element.scale])
    return element.scales.astype(np.float64) if isinstance(element, UniformQuantizedPerAxisType) else None


def _quantized(value: Value) -> str:
    element = value.type.element
    if isinstance(element, UniformQuantizedPerAxisType):
        zeros = f", zero points {_span(element.zero_points)}" if element.zero_points.any() else ""
        said = f"scale {_span(element.scales)} along axis {element.axis}{zeros}"
    elif isinstance(element, UniformQuantizedType):
        said = f"scale {element.scale:.9g}, zero point {element.zero_point}"
    else:
        said = ", ".join(f"{name} {text}" for name, text in quantization(element).items())
    constant = "constant" if value.is_constant else ""
    return ", ".join(part for part in (shape_text(value.type), said, constant) if part)


def _operand(value: Value) -> str:
    if value.is_constant and value.type.storage.numpy and value.array.size <= 4:
        return attribute_text(value.array)
    return _type(value)


def _type(value: Value) -> str:
    return shape_text(value.type)


def _less(name: str, zero: int) -> str:
    return name if not zero else f"({name} {'-' if zero > 0 else '+'} {abs(zero)})"


def _plus(zero: int) -> str:
    return "" if not zero else f", {'+' if zero > 0 else '-'} {abs(zero)}"


def _span(values: np.ndarray) -> str:
    """`3 to 9`, or the one value that all have."""
    low, high = values.min(), values.max()
    shown = [f"{v:.7g}" if values.dtype.kind == "f" else str(int(v)) for v in (low, high)]
    return shown[0] if low == high else f"{shown[0]} to {shown[1]}"
