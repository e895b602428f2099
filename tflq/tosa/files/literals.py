"""Types, constants and strings as MLIR text.

`dense<...>` lists a few elements, states one that stands for all, and gives the rest as the hexadecimal digits of their
bytes: an element takes whole bytes, i4 one and i48 six. Digits of i1 are not the same in all versions of MLIR: lists.
"""

from __future__ import annotations

from binascii import b2a_hex
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from tflq.ir.core import Value
from tflq.ir.types import SCALARS, ScalarType, Shape, TensorType, element_storage, i1, i4, i64, index
from tflq.tosa.files.dtypes import packed
from tflq.tosa.operands import Constant, signless

__all__ = [
    "array_text",
    "constant_text",
    "constant_type",
    "dense",
    "element_text",
    "listed",
    "number_text",
    "string",
    "type_text",
    "value_pieces",
    "value_text",
]

_ELEMENTS: Final = {t.name: "i48" if t == i64 else signless(t).name for t in SCALARS.values()}

LISTED: Final = 16
"""Up to so many elements are listed."""
_PIECE: Final = 1 << 18
"""Elements that are compared, or written, at a time."""


def element_text(element: ScalarType) -> str:
    """i48 for i64, which stands for it; i8 for ui8."""
    return _ELEMENTS.get(element.name) or element.name


def type_text(type: TensorType) -> str:
    """`tensor<1x?xi8>`"""
    return f"tensor<{_dims(type.shape)}{element_text(element_storage(type.element))}>"


def _dims(shape: Shape) -> str:
    return "*x" if shape is None else "".join("?x" if d is None else f"{d}x" for d in shape)


def string(text: str) -> str:
    """A string in quotes; what is not plain ASCII as hexadecimal digits of its UTF-8 bytes."""
    if text.isascii() and text.isprintable() and not {'"', "\\"} & set(text):
        return f'"{text}"'
    plain = "".join(
        chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in text.encode("utf-8", "surrogateescape")
    )
    return f'"{plain}"'


def number_text(value: float, element: ScalarType) -> str:
    """A typed number: `5 : i8`, `0x3F800000 : f32`."""
    if not element.is_float:
        return f"{int(value)} : {element_text(element)}"
    if not element.numpy:  # bf16: the upper half of a float32
        bits = int(np.float32(value).view(np.uint32)) >> 16
    else:
        bits = int.from_bytes(np.array(value, element.dtype).tobytes(), "little")
    return f"0x{bits:0{element.bits // 4}X} : {element_text(element)}"


def array_text(values: Any, element: str = "i64") -> str:
    """`array<i64: 1, 2>`"""
    return f"array<{element}: {', '.join(map(str, values))}>"


def value_text(value: Value) -> tuple[str, str]:
    """The elements of a constant, and its type."""
    return "".join(value_pieces(value)), type_text(value.type)


def value_pieces(value: Value) -> Iterator[str]:
    """The elements of a constant, in pieces."""
    element, shape = element_storage(value.type.element), tuple(d or 0 for d in value.type.shape or ())
    assert value.buffer is not None
    data = value.array if element.bits < 8 else value.buffer.data
    yield from _dense(np.ascontiguousarray(data).reshape(-1).view(np.uint8), element, shape)
    yield f" : {type_text(value.type)}"


def constant_text(constant: Constant) -> str:
    """The elements of a compile-time-constant operand."""
    shape = constant.array.shape
    if constant.is_shape:
        return f"{dense(constant.array.view(np.uint8), index, shape)} : tensor<{constant.array.size}xindex>"
    return f"{dense(constant.array.view(np.uint8), constant.element, shape)} : {constant_type(constant)}"


def constant_type(constant: Constant) -> str:
    """The type of a compile-time-constant operand: a tensor's, or `!tosa.shape<n>`."""
    if constant.is_shape:
        return f"!tosa.shape<{constant.array.size}>"
    return f"tensor<{_dims(constant.array.shape)}{element_text(constant.element)}>"


def dense(data: np.ndarray, element: ScalarType, shape: tuple[int, ...]) -> str:
    """`dense<...>` of elements as bytes: int64 for i64 and index, one byte each for packed types."""
    return "".join(_dense(data, element, shape))


def _dense(data: np.ndarray, element: ScalarType, shape: tuple[int, ...]) -> Iterator[str]:
    width = 8 if element is index else max(1, element.bits // 8)
    rows = data.reshape(-1, width)
    if len(rows) > 1 and _alike(rows):
        yield f"dense<{listed(rows[:1], element, ())}>"
    elif len(rows) > LISTED and element not in (i1, index):
        yield 'dense<"0x'
        for at in range(0, data.size, width * _PIECE):
            yield b2a_hex(packed(data[at : at + width * _PIECE], element).data).decode("ascii")
        yield '">'
    else:
        yield f"dense<{listed(rows, element, shape)}>"


def _alike(rows: np.ndarray) -> bool:
    """Whether all elements are the same."""
    first, pieces = rows[0], range(0, len(rows), _PIECE)
    return bool((first == rows[-1]).all()) and all((rows[at : at + _PIECE] == first).all() for at in pieces)


def listed(rows: np.ndarray, element: ScalarType, shape: tuple[int, ...]) -> str:
    """Elements as nested lists, a row of bytes each."""
    if element == i1:
        return str(rows.reshape(shape).astype(bool).tolist()).lower()
    if element.is_float:
        bits = [f"0x{int.from_bytes(row.tobytes(), 'little'):0{element.bits // 4}X}" for row in rows]
        if element.numpy and np.isfinite(numbers := rows.reshape(-1).view(element.dtype)).all():
            bits = [f"{number:.8e}" for number in numbers.tolist()]
        return str(np.array(bits, object).reshape(shape).tolist()).replace("'", "")
    dtype = np.dtype(np.int64) if element is index else np.dtype(np.int8) if element == i4 else element.dtype
    return str(rows.reshape(-1).view(dtype).reshape(shape).tolist())
