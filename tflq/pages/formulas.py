"""What an op of the integer form computes, as a formula with its numbers, and what an operator of the source says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from tflq.ir.core import Op, Value
from tflq.ir.short_text import attribute_text, quantization, shape_text
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType

__all__ = ["formula", "parameters", "real_multipliers"]

_ROUNDINGS: Final[Mapping[str, str]] = {
    "SINGLE_ROUND": "rounded once, half up",
    "DOUBLE_ROUND": "rounded twice (DOUBLE_ROUND)",
    "INEXACT_ROUND": "rounded as the target likes",
}


def formula(op: Op) -> str:
    """One line: `y = sat_int8((x - 0) * 1814478563 >> 39 ...)`."""
    special = _FORMULAS.get(op.name)
    if special is not None:
        return f"{_type(op.result)} = {special(op)}" if op.results else special(op)
    known = None if op.name.startswith("tfl.") else " ".join((type(op).__doc__ or "").split())
    numbers = ", ".join(f"{name} {attribute_text(value)}" for name, value in op.attributes.items() if value is not None)
    operands = ", ".join("none" if v is None else _operand(v) for v in op.operands)
    results = ", ".join(map(_type, op.results))
    text = f"{results} = {op.name.partition('.')[2]}({operands})" if results else f"{op.name}({operands})"
    return "; ".join(part for part in (text, numbers, known) if part)


def _rescale(op: Op) -> str:
    a = op.attributes
    x = _less("x", a["input_zp"])
    if a["multiplier"].size == 1:
        scaled = f"{x} · {int(a['multiplier'][0])} / 2^{int(a['shift'][0])} (= {_span(_real(a))})"
    else:
        scaled = (
            f"{x} · M[c] / 2^s[c], M {_span(a['multiplier'])}, s {_span(a['shift'])}, {a['multiplier'].size} channels"
        )
    rounding = a.get("rounding") or _ROUNDINGS[a["rounding_mode"]]
    return f"saturate({scaled}, {rounding}{_plus(a['output_zp'])})"


def _real(attributes: Mapping[str, Any]) -> np.ndarray:
    """What a RESCALE multiplies by."""
    return attributes["multiplier"] / np.exp2(attributes["shift"].astype(np.float64))


def _rescale_f64(op: Op) -> str:
    a = op.attributes
    scale = f"{a['scale'][0]:.17g}" if a["scale"].size == 1 else f"scale[c], {_span(a['scale'])}"
    return f"saturate(round(x · {scale}) in float64, half away from zero{_plus(a['output_zp'])})"


def _convolution(op: Op) -> str:
    a = op.attributes
    taps = f"Σ {_less('x', a.get('input_zp', 0))} · {_less('w', a.get('weight_zp', 0))} + b"
    shown = {name: a[name] for name in ("pad", "out_pad", "stride", "dilation") if name in a}
    weights = op.operand(1)
    return f"{taps}; w {shape_text(weights.type)}, {', '.join(f'{n} {attribute_text(v)}' for n, v in shown.items())}"


def _table(op: Op) -> str:
    entries = op.operand(len(op.operands) - 1)
    return (
        f"table[x], {shape_text(entries.type)}: {attribute_text(entries.array)}" if entries.is_constant else "table[x]"
    )


def _clamp(op: Op) -> str:
    return f"min(max(x, {attribute_text(op.attributes['min_val'])}), {attribute_text(op.attributes['max_val'])})"


_FORMULAS: Final[Mapping[str, Callable[[Op], str]]] = {
    "tosa.rescale": _rescale,
    "ext.rescale_f64": _rescale_f64,
    "tosa.conv2d": _convolution,
    "tosa.depthwise_conv2d": _convolution,
    "tosa.conv3d": _convolution,
    "tosa.transpose_conv2d": _convolution,
    "tosa.table": _table,
    "ext.table_2d": _table,
    "ext.table_16bit": _table,
    "tosa.clamp": _clamp,
}


def parameters(op: Op) -> list[tuple[str, str]]:
    """What the source says of an operator: its options, then each tensor's type and quantization."""
    options = [(name, attribute_text(value)) for name, value in op.attributes.items() if value is not None]
    sides = [(f"input {i}", v) for i, v in enumerate(op.operands) if v is not None]
    sides += [("result" if len(op.results) == 1 else f"result {i}", v) for i, v in enumerate(op.results)]
    return options + [(side, _quantized(value)) for side, value in sides]


def real_multipliers(op: Op) -> str:
    """The scale of the products that an operator sums, over the scale of its result: what RESCALE stands for."""
    if len(op.operands) < 2 or op.name not in _PRODUCTS or not op.results:
        return ""
    types = [v.type.element if v is not None else None for v in (*op.operands[:2], op.result)]
    scales = [_scales(element) for element in types]
    if any(scale is None for scale in scales):
        return ""
    x, w, y = (scale for scale in scales if scale is not None)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = x * w / y
    return _span(found) if found.size == 1 else f"{_span(found)}, {found.size} channels"


_PRODUCTS: Final = frozenset(
    {"tfl.conv_2d", "tfl.depthwise_conv_2d", "tfl.fully_connected", "tfl.mul", "tfl.batch_matmul", "tfl.conv_3d"}
)


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
