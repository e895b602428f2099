"""Lexical facts of the text form, shared by printer and parser: quoting, numbers, names.

The text form is MLIR's (https://mlir.llvm.org/docs/LangRef). Floats are decimal, shortest that reads back the same;
NaN and infinities are the hexadecimal bits, as in MLIR.
"""

from __future__ import annotations

import re

import numpy as np

from tflq.ir.types import SCALARS, ScalarType

__all__ = [
    "BARE_KEY",
    "CAST_OPS",
    "CLOSED_OPS",
    "CONSTANT_OPS",
    "INLINE_LIMIT",
    "NO_VALUE_OP",
    "PLACEHOLDER_OP",
    "SCALAR_OF_DTYPE",
    "Symbol",
    "bits_text",
    "float_of",
    "float_text",
    "pack",
    "quote",
    "storage_name",
    "unquote",
]

INLINE_LIMIT = 64
"""Elements up to which an array is written out; larger ones are hexadecimal."""

CAST_OPS = frozenset({"quant.dcast", "quant.qcast", "quant.scast"})
"""Ops with the custom form `op %x : type to type`."""

CLOSED_OPS = frozenset({"quant.region"})
"""Ops whose regions read nothing that is defined outside of them, constants included."""

CONSTANT_OPS = frozenset(
    {"tfl.pseudo_const", "tfl.pseudo_qconst", "tosa.const", "arith.constant", "stablehlo.constant"}
)
"""Ops that stand for a constant value; the first is the one that is printed."""

NO_VALUE_OP = "tfl.no_value"
"""Stands for an optional operand that is left out."""

PLACEHOLDER_OP = "tflq.tensor"
"""Stands for a tensor without data that nothing produces: a variable, scratch space, or unused."""

BARE_KEY = re.compile(r"[A-Za-z_][\w$.]*")

SCALAR_OF_DTYPE: dict[str, ScalarType] = {
    t.dtype.str: t for t in SCALARS.values() if t.numpy and t.bits >= 8 and t.kind != "index"
}

_PLAIN = re.compile(r"[ !#-\[\]-~]*")
_ESCAPE = re.compile(rb'\\(n|t|"|\\|[0-9A-Fa-f]{2})')
_ESCAPED = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\"}


class Symbol(str):
    """The name of a function that an attribute refers to: `@name`."""

    __slots__ = ()


def quote(text: str) -> str:
    """A string literal; bytes of its UTF-8 form that are not printable ASCII are written as `\\XX`."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    data = text.encode("utf-8", "surrogateescape")
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in data) + '"'


def unquote(body: str) -> str:
    """What is between the quotes of a string literal, as the string it stands for."""
    if "\\" not in body:
        return body
    raw = body.encode("utf-8", "surrogateescape")
    data = _ESCAPE.sub(lambda m: _ESCAPED.get(m[1]) or bytes([int(m[1], 16)]), raw)
    return data.decode("utf-8", "surrogateescape")


def float_text(value: float | np.floating) -> str:
    """A finite float as shortest decimal of its own precision, any other as hexadecimal bits."""
    scalar = value if isinstance(value, np.floating) else np.float64(value)
    if not np.isfinite(scalar):
        return bits_text(scalar)
    text = str(scalar)
    if "." in text:
        return text
    return text.replace("e", ".0e") if "e" in text else f"{text}.0"


def bits_text(scalar: np.generic) -> str:
    """The bits of a number, hexadecimal."""
    return f"0x{int(scalar.view(f'u{scalar.itemsize}')):0{2 * scalar.itemsize}X}"


def float_of(text: str) -> float:
    """The counterpart of `float_text`. ValueError if bits are not those of 16, 32 or 64."""
    if not text.startswith("0x"):
        return float(text)
    size = (len(text) - 2) // 2
    if size not in (2, 4, 8):
        raise ValueError(f"{text} is not the bits of a float")
    return float(np.array([int(text, 16)], f"u{size}").view(f"f{size}")[0])


def storage_name(storage: ScalarType) -> str:
    """A storage type inside a quantized type, where `u8` is what is `ui8` elsewhere."""
    return storage.name.removeprefix("u").replace("i", "u", 1) if storage.kind == "uint" else storage.name


def pack(array: np.ndarray, storage: ScalarType) -> np.ndarray:
    """Elements of a type of fewer than 8 bits, packed as TFLite stores them: low bits first."""
    per = 8 // storage.bits
    flat = array.reshape(-1).view(np.uint8) & np.uint8((1 << storage.bits) - 1)
    padded = np.zeros(-(-flat.size // per) * per, np.uint8)
    padded[: flat.size] = flat
    shifts = np.arange(per, dtype=np.uint8) * storage.bits
    packed: np.ndarray = np.bitwise_or.reduce(padded.reshape(-1, per) << shifts, axis=1).astype(np.uint8)
    return packed
