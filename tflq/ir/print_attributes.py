"""Attributes as text.

MLIR's builtin attributes where they say it: integers, floats, strings, booleans, `unit` for None, lists, dictionaries,
types, `dense<...>` for arrays (of at most `INLINE_LIMIT` elements, else hexadecimal). What MLIR has no builtin for:
`#tflq.bytes<"0x..">`, `#tflq.tuple<[...]>`, `#tflq.scalar<dense<..>>` for numpy scalars, `#tflq.value<"%0">`.

In the standard form, floats alone are their bits, listed ones have nine digits, or all are bits if one is not finite;
up to `LISTED` elements are listed, but all of i1 and index: digits of i1 are not the same in all versions of MLIR.
"""

from __future__ import annotations

from binascii import b2a_hex
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from tflq.ir.attributes import AffineMap, Opaque, TypedArray, TypedFloat, TypedInt, TypedString
from tflq.ir.core import Value
from tflq.ir.print_types import TypePrinter
from tflq.ir.syntax import BARE_KEY, INLINE_LIMIT, SCALAR_OF_DTYPE, Symbol, bits_text, float_text, quote
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
    i1,
    index,
)
from tflq.numerics.bfloat16 import bfloat16_bits, bfloat16_values

__all__ = ["AttributePrinter", "elements_text", "float_literal"]

LISTED: Final = 16
"""Elements up to which the standard form lists them."""
_LARGE: Final = 1 << 10
"""Elements from which an array's text is not copied into that of its op."""
_PIECE: Final = 1 << 18
"""Elements that are compared, or written, at a time."""

_TYPES = (
    *(TensorType, ScalarType, UniformQuantizedType, UniformQuantizedPerAxisType, UniformQuantizedSubChannelType),
    *(AnyQuantizedType, CalibratedQuantizedType, NoQuantizedType, FunctionType),
)


class AttributePrinter:
    """Prints attributes. `name` gives the SSA name of a value that an attribute refers to, where there are any;
    `standard` asks for the standard form."""

    def __init__(
        self, types: TypePrinter, name: Callable[[Value], str] | None = None, *, standard: bool = False
    ) -> None:
        self.types = types
        self.standard = standard
        self._name = name

    def text(self, value: Any) -> str:
        """An attribute's text. TypeError if the text form has none for it."""
        if value is None:
            return "unit"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (TypedInt, TypedFloat, TypedString)):
            return f"{self._plain(value)} : {self.types.text(value.type)}"
        if isinstance(value, str):
            return _symbol(value) if isinstance(value, Symbol) else quote(value)
        if isinstance(value, np.generic):
            return f"#tflq.scalar<{self._array(np.asarray(value))}>"
        if isinstance(value, int):
            return int.__repr__(value)
        if isinstance(value, float):
            return float_text(value) if np.isfinite(value) else f"{float_text(value)} : f64"
        return self._compound(value)

    def _compound(self, value: Any) -> str:
        if isinstance(value, TypedArray) and value.element is not None:
            return self._typed_array(value, value.element)
        if isinstance(value, np.ndarray):
            return self._array(value)
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

    def _array(self, array: np.ndarray) -> str:
        scalar = SCALAR_OF_DTYPE.get(array.dtype.str)
        if scalar is None:
            raise TypeError(f"the text form has no attribute for an array of {array.dtype}")
        return "".join(self._dense(array, scalar, TensorType(array.shape, scalar)))

    def _typed_array(self, array: TypedArray, element: ElementType) -> str:
        if array.type is not None:
            return "".join(self._dense(array, element, array.type))
        data = _readable(array, element)
        items = map(_literal, data) if data.dtype.kind == "f" else (str(item).lower() for item in data.tolist())
        literals = f": {', '.join(items)}" if array.size else ""
        return f"array<{self.types.text(element)}{literals}>"

    def _dense(self, array: np.ndarray, element: ElementType, type: TensorType) -> Iterator[str]:
        """`dense<...> : type`, in pieces."""
        data, storage = np.asarray(array), element_storage(element)
        shown = _standard_elements(data, storage) if self.standard else elements_text(_readable(data, element))
        if shown is None:
            yield 'dense<"0x'
            flat = data.reshape(-1)
            for at in range(0, flat.size, _PIECE):
                yield b2a_hex(_narrow(flat[at : at + _PIECE], storage).data).decode("ascii")
            yield f'"> : {self.types.text(type)}'
        else:
            yield f"dense<{shown}> : {self.types.text(type)}"

    def large(self, items: Mapping[str, Any]) -> tuple[str, Iterator[str]] | None:
        """The name and the elements, in pieces, of a large array, if that is all a dictionary has."""
        (key, array), *others = items.items()
        if others or not isinstance(array, TypedArray) or array.size < _LARGE or not (array.element and array.type):
            return None
        return key, self._dense(array, array.element, array.type)

    def dictionary(self, items: Mapping[str, Any]) -> str:
        """`{key = value, flag}`, where a lone key has the value None."""
        return f"{{{', '.join(self._entry(key, value) for key, value in items.items())}}}"

    def _entry(self, key: str, value: Any) -> str:
        name = key if BARE_KEY.fullmatch(key) else quote(key)
        return name if value is None else f"{name} = {self.text(value)}"

    def _plain(self, value: TypedInt | TypedFloat | TypedString) -> str:
        if isinstance(value, TypedInt):
            return int.__repr__(value)
        if isinstance(value, TypedString):
            return quote(value)
        return float_literal(float(value), value.type, bits=self.standard)


def float_literal(value: float, type: TensorType | ElementType, *, bits: bool = False) -> str:
    """A float of a type: shortest decimal that gives it back, or its bits if it is not finite or they are asked for."""
    if type is bf16:
        decimal = np.isfinite(value) and not bits
        return float_text(np.float32(value)) if decimal else f"0x{int(bfloat16_bits(value)):04X}"
    dtype = type.dtype if isinstance(type, ScalarType) and type.numpy else np.dtype(np.float64)
    return bits_text(dtype.type(value)) if bits else float_text(dtype.type(value))


def _symbol(name: str) -> str:
    return f"@{name}" if BARE_KEY.fullmatch(name) else f"@{quote(name)}"


def _readable(array: np.ndarray, element: ElementType) -> np.ndarray:
    """Elements as numbers: bf16, which is held as bits, as float32."""
    return bfloat16_values(np.asarray(array)) if element_storage(element) is bf16 else np.asarray(array)


def _narrow(array: np.ndarray, storage: ScalarType) -> np.ndarray:
    """The bytes of elements, as many each as their bits need. ValueError if one needs more."""
    size = max(1, -(-storage.bits // 8))
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
    if 1 < size < array.itemsize and ((array < storage.minimum) | (array > storage.maximum)).any():
        raise ValueError(f"a constant does not fit {storage}")
    return np.ascontiguousarray(data[:, :size])


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


def _standard_elements(array: np.ndarray, storage: ScalarType) -> str | None:
    """As `elements_text`, in the standard form; of a float type that numpy has not, elements are bits."""
    if array.size > 1 and _is_splat(array):
        array = array.reshape(-1)[0]
    elif array.size > LISTED and storage not in (i1, index):
        return None
    if not storage.is_float:
        return str(array.tolist()).lower()
    flat = array.reshape(-1)
    if storage.numpy and np.isfinite(flat).all():
        numbers = [f"{number:.8e}" for number in flat.tolist()]
    else:
        numbers = [bits_text(number) for number in flat]
    return str(np.array(numbers, object).reshape(array.shape).tolist()).replace("'", "")


def _is_splat(array: np.ndarray) -> bool:
    bits, pieces = np.ascontiguousarray(array).reshape(-1).view(f"u{array.itemsize}"), range(0, array.size, _PIECE)
    return bool(bits[0] == bits[-1]) and all((bits[at : at + _PIECE] == bits[0]).all() for at in pieces)


def _nested(array: np.ndarray) -> str:
    if not array.ndim:
        return _literal(array.flat[0])
    return f"[{', '.join(map(_nested, array))}]"


def _literal(value: np.generic) -> str:
    return float_text(value) if isinstance(value, np.floating) else str(value.item()).lower()
