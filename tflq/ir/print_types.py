"""Types as text: MLIR's builtin types and the `!quant` types of the `quant` dialect."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.ir.syntax import float_text, storage_name
from tflq.ir.types import (
    AnyQuantizedType,
    BareType,
    CalibratedQuantizedType,
    ElementType,
    FunctionType,
    NoQuantizedType,
    QuantizedType,
    ScalarType,
    Shape,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    scale_dtype,
)

__all__ = ["TypePrinter", "type_text"]

ALIAS_FROM = 9
"""Number of scales from which a quantized type is written once, as an alias."""


class TypePrinter:
    """Prints types; remembers each one's text, and gives those with many scales an alias (`!q0`) if `aliases`."""

    def __init__(self, *, aliases: bool = True) -> None:
        self.aliases: dict[ElementType, str] = {}
        self._use_aliases = aliases
        self._texts: dict[TensorType | ElementType, str] = {}

    def alias_lines(self) -> list[str]:
        """The definitions of the aliases used so far."""
        return [f"{name} = {_element(element)}" for element, name in self.aliases.items()]

    def text(self, type: TensorType | ElementType) -> str:
        known = self._texts.get(type)
        if known is None:
            known = self._texts[type] = self._text(type)
        return known

    def _text(self, type: TensorType | ElementType) -> str:
        if isinstance(type, BareType):
            return self.text(type.element)
        if isinstance(type, TensorType):
            return f"tensor<{_dims(type.shape)}{self.text(type.element)}>"
        if isinstance(type, FunctionType):
            inputs, results = (", ".join(map(self.text, side)) for side in (type.inputs, type.results))
            plain = len(type.results) == 1 and not isinstance(type.results[0].element, FunctionType)
            return f"({inputs}) -> {results if plain else f'({results})'}"
        if self._use_aliases and _scale_count(type) >= ALIAS_FROM:
            return self.aliases.setdefault(type, f"!q{len(self.aliases)}")
        return _element(type)


def _scale_count(type: ElementType) -> int:
    many = (UniformQuantizedPerAxisType, UniformQuantizedSubChannelType)
    return type.scales.size if isinstance(type, many) else 0


def type_text(type: TensorType | ElementType) -> str:
    """A type on its own, without aliases."""
    return TypePrinter(aliases=False).text(type)


def _dims(shape: Shape) -> str:
    return "*x" if shape is None else "".join("?x" if dim is None else f"{dim}x" for dim in shape)


def _element(type: ElementType) -> str:
    if isinstance(type, ScalarType):
        return type.name
    if isinstance(type, FunctionType):
        return type_text(type)
    if isinstance(type, CalibratedQuantizedType):
        low, high = (float_text(_expressed(end, type.expressed)) for end in (type.minimum, type.maximum))
        return f"!quant.calibrated<{type.expressed.name}<{low}:{high}>>"
    if isinstance(type, NoQuantizedType):
        return f"!quant.none<{type.expressed.name}>"
    if isinstance(type, AnyQuantizedType):
        expressed = "" if type.expressed is None else f":{type.expressed.name}"
        return f"!quant.any<{_storage(type)}{expressed}>"
    head = f"!quant.uniform<{_storage(type)}:{type.expressed.name}"
    if isinstance(type, UniformQuantizedType):
        return f"{head}, {_pair(_expressed(type.scale, type.expressed), type.zero_point)}>"
    if isinstance(type, UniformQuantizedPerAxisType):
        pairs = map(_pair, type.scales, type.zero_points.tolist())
        return f"{head}:{type.axis}, {{{', '.join(pairs)}}}>"
    blocks = ", ".join(f"{axis}:{size}" for axis, size in zip(type.axes, type.block_sizes, strict=True))
    return f"{head}:{{{blocks}}}, {_nested(type.scales, type.zero_points)}>"


def _expressed(value: float, expressed: ScalarType) -> np.floating:
    """A number of the expressed type."""
    scalar: np.floating = np.float64(value).astype(scale_dtype(expressed))
    return scalar


def _storage(type: QuantizedType | AnyQuantizedType) -> str:
    full = type.storage_min == type.storage.minimum and type.storage_max == type.storage.maximum
    return storage_name(type.storage) + ("" if full else f"<{type.storage_min}:{type.storage_max}>")


def _pair(scale: np.floating, zero_point: int) -> str:
    return f"{float_text(scale)}:{zero_point}" if zero_point else float_text(scale)


def _nested(scales: np.ndarray, zero_points: np.ndarray) -> str:
    def level(scale: np.ndarray, zero: np.ndarray) -> str:
        item: Callable[..., str] = level if scale.ndim > 1 else _pair
        return "{" + ", ".join(item(s, z) for s, z in zip(scale, zero, strict=True)) + "}"

    return level(scales, zero_points)
