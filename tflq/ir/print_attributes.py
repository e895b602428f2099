"""Attributes as text.

MLIR's builtin attributes where they say it: integers, floats, strings, booleans, `unit` for None, lists, dictionaries,
types, `dense<...>` for arrays (of at most `INLINE_LIMIT` elements, else hexadecimal). What MLIR has no builtin for:
`#tflq.bytes<"0x..">`, `#tflq.tuple<[...]>`, `#tflq.scalar<dense<..>>` for numpy scalars, `#tflq.value<"%0">`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tflq.ir.attributes import AffineMap, Opaque, TypedArray, TypedFloat, TypedInt, TypedString
from tflq.ir.core import Value
from tflq.ir.print_types import TypePrinter
from tflq.ir.syntax import BARE_KEY, INLINE_LIMIT, SCALAR_OF_DTYPE, Symbol, float_text, quote
from tflq.ir.types import (
    AnyQuantizedType,
    CalibratedQuantizedType,
    ElementType,
    FunctionType,
    NoQuantizedType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    bf16,
    element_storage,
)
from tflq.numerics.bfloat16 import bfloat16_bits, bfloat16_values

__all__ = ["AttributePrinter", "elements_text", "float_literal"]

_TYPES = (
    *(TensorType, ScalarType, UniformQuantizedType, UniformQuantizedPerAxisType, UniformQuantizedSubChannelType),
    *(AnyQuantizedType, CalibratedQuantizedType, NoQuantizedType, FunctionType),
)


class AttributePrinter:
    """Prints attributes. `name` gives the SSA name of a value that an attribute refers to, where there are any."""

    def __init__(self, types: TypePrinter, name: Callable[[Value], str] | None = None) -> None:
        self.types = types
        self._name = name

    def text(self, value: Any) -> str:
        """An attribute's text. TypeError if the text form has none for it."""
        if value is None:
            return "unit"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (TypedInt, TypedFloat, TypedString)):
            return f"{_plain(value)} : {self.types.text(value.type)}"
        if isinstance(value, str):
            return _symbol(value) if isinstance(value, Symbol) else quote(value)
        if isinstance(value, np.generic):
            return f"#tflq.scalar<{_array(np.asarray(value))}>"
        if isinstance(value, int):
            return int.__repr__(value)
        if isinstance(value, float):
            return float_text(value) if np.isfinite(value) else f"{float_text(value)} : f64"
        return self._compound(value)

    def _compound(self, value: Any) -> str:
        if isinstance(value, TypedArray) and value.element is not None:
            return self._typed_array(value, value.element)
        if isinstance(value, np.ndarray):
            return _array(value)
        if isinstance(value, (AffineMap, Opaque)):
            return value.text
        if isinstance(value, (bytes, bytearray, memoryview)):
            return f'#tflq.bytes<"0x{bytes(value).hex()}">'
        if isinstance(value, list):
            return f"[{', '.join(map(self.text, value))}]"
        if isinstance(value, tuple):
            return f"#tflq.tuple<[{', '.join(map(self.text, value))}]>"
        if isinstance(value, Mapping):
            return self.dictionary(value)
        if isinstance(value, _TYPES):
            return self.types.text(value)
        if isinstance(value, Value) and self._name is not None:
            return f"#tflq.value<{quote(self._name(value))}>"
        raise TypeError(f"the text form has no attribute for a {type(value).__name__}")

    def _typed_array(self, array: TypedArray, element: ElementType) -> str:
        storage = element_storage(element)
        values = bfloat16_values(np.asarray(array)) if storage is bf16 else np.asarray(array)
        if array.type is None:
            literals = f": {', '.join(map(_literal, values))}" if array.size else ""
            return f"array<{self.types.text(element)}{literals}>"
        shown = elements_text(values)
        return f"dense<{_hex(_narrow(array, storage)) if shown is None else shown}> : {self.types.text(array.type)}"

    def dictionary(self, items: Mapping[str, Any]) -> str:
        """`{key = value, flag}`, where a lone key has the value None."""
        return f"{{{', '.join(self._entry(key, value) for key, value in items.items())}}}"

    def _entry(self, key: str, value: Any) -> str:
        name = key if BARE_KEY.fullmatch(key) else quote(key)
        return name if value is None else f"{name} = {self.text(value)}"


def _plain(value: TypedInt | TypedFloat | TypedString) -> str:
    if isinstance(value, TypedInt):
        return int.__repr__(value)
    if isinstance(value, TypedString):
        return quote(value)
    return float_literal(float(value), value.type)


def float_literal(value: float, type: TensorType | ElementType) -> str:
    """A float of a type: shortest decimal that gives it back, or its bits if it is not finite."""
    if type is bf16:
        return float_text(np.float32(value)) if np.isfinite(value) else f"0x{int(bfloat16_bits(value)):04X}"
    dtype = type.dtype if isinstance(type, ScalarType) and type.numpy else np.dtype(np.float64)
    return float_text(dtype.type(value))


def _symbol(name: str) -> str:
    return f"@{name}" if BARE_KEY.fullmatch(name) else f"@{quote(name)}"


def _array(array: np.ndarray) -> str:
    scalar = SCALAR_OF_DTYPE.get(array.dtype.str)
    if scalar is None:
        raise TypeError(f"the text form has no attribute for an array of {array.dtype}")
    dims = "".join(f"{dim}x" for dim in array.shape)
    elements = elements_text(array)
    return f"dense<{_hex(array) if elements is None else elements}> : tensor<{dims}{scalar.name}>"


def _narrow(array: np.ndarray, storage: ScalarType) -> np.ndarray:
    """The bytes of elements, as many each as their bits need."""
    size = max(1, -(-storage.bits // 8))
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
    return data[:, :size]


def _hex(array: np.ndarray) -> str:
    return f'"0x{np.ascontiguousarray(array).tobytes().hex()}"'


def elements_text(array: np.ndarray) -> str | None:
    """The elements, nested as the shape says; one of them if they are all the same; None if they are too many."""
    if array.dtype.kind not in "biuf":
        return None
    if array.size > 1 and _is_splat(array):
        return _literal(array.flat[0])
    if array.size > INLINE_LIMIT:
        return None
    if not array.size:
        return ""
    if array.dtype.kind in "iu":
        return str(array.tolist())
    return _nested(array)


def _is_splat(array: np.ndarray) -> bool:
    bits = np.ascontiguousarray(array).reshape(-1).view(f"u{array.itemsize}")
    return bool(bits[0] == bits[-1]) and bool((bits == bits[0]).all())


def _nested(array: np.ndarray) -> str:
    if not array.ndim:
        return _literal(array.flat[0])
    return f"[{', '.join(map(_nested, array))}]"


def _literal(value: np.generic) -> str:
    return float_text(value) if isinstance(value, np.floating) else str(value.item()).lower()
