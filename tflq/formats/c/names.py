"""Names and numbers in C: identifiers, comments, element types, literals.

A name from a model reaches C in comments alone, through `comment`. Symbols are made of one identifier, which is the
user's or follows from the name of the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from tflq.base.errors import OptionError, Reason, Refused
from tflq.base.files import resource
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, i4, i8, i16, i32, i64, ui8, ui16

NAME: Final = "@"
MACRO: Final = "$"
CALLED: Final = f"{NAME}_f"
"""Where symbols and macros have the name of a file, and what functions that control flow calls begin with."""
_LONGEST: Final = 64
_COMMENT: Final = re.compile(r"[^A-Za-z0-9_.:;,()=+/ \[\]-]")
_TYPES: Final = {
    **{type.name: f"{type.dtype.name}_t" for type in (i4, i8, ui8, i16, ui16, i32, i64)},
    "i1": "uint8_t",
    "f32": "float",
}


@cache
def _words() -> frozenset[str]:
    """Words that are no names in C, in C++, or in the files that are written."""
    with open(resource("formats/c/words.txt"), encoding="utf-8") as file:
        return frozenset(file.read().split())


def identifier(name: str | None, stem: str = "") -> str:
    """The identifier that all symbols begin with: a name of the user's, or one made of the stem of a file. OptionError
    for a name that C or C++ has another use for."""
    if name is not None:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in _words() or len(name) > _LONGEST:
            what = f"'{comment(name)}' cannot begin the names of C's functions"
            remedy = f"give letters, digits and _, a letter first, at most {_LONGEST}, and no word of C"
            raise OptionError(Reason(what, value=name, remedy=remedy))
        return name
    word = re.sub(r"[^A-Za-z0-9]+", "_", stem).strip("_")[: _LONGEST - 6]
    return word if word and word[0].isalpha() and word not in _words() else f"model_{word}".rstrip("_")


def comment(text: str, most: int | None = 120) -> str:
    """A text of a model as it may stand in a comment: no character of it can end the comment or join lines. Others than
    the plain ones are bytes after %, as in a URL."""
    return _COMMENT.sub(lambda c: "".join(f"%{b:02X}" for b in _bytes(c[0])), text)[:most]


def _bytes(character: str) -> bytes:
    """A character in UTF-8; one that stands for a byte of a file that is not UTF-8 is that byte."""
    try:
        return character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return character.encode("utf-8", "surrogatepass")


def c_type(value: Value) -> str:
    """The type of a tensor's elements. Refused if C has none that is everywhere."""
    storage = value.type.storage
    if storage.name not in _TYPES:
        raise Refused(f"'{value.name}' is {storage}, which C99 has no type for")
    return _TYPES[storage.name]


def described(value: Value) -> str:
    """The type, dims and name of a tensor, for a comment that `tflq verify` reads."""
    type = "bool" if value.type.storage.name == "i1" else c_type(value)
    return f"{type}[{','.join(map(str, dims_of(value)))}] {comment(value.name, None)}"


def declared(value: Value, name: str) -> str:
    """The declaration of a name for a tensor's elements: one at least, since C has no empty arrays."""
    return f"{c_type(value)} {name}[{max(count(value), 1)}]"


def bytes_of(value: Value) -> int:
    """The bytes that a tensor takes in C."""
    return count(value) * max(value.type.storage.bits // 8, 1)


def dims_of(value: Value) -> tuple[int, ...]:
    """The dims of a tensor. Refused if one is not known, or if an index does not fit int32."""
    dims: Any = value.type.shape
    if dims is None or None in dims:
        raise Refused(f"the shape of '{value.name}' is not known before a run")
    if math.prod(dims) >= 1 << 28:
        raise Refused(f"'{value.name}' has too many elements for an index of 32 bits")
    return dims


def count(value: Value) -> int:
    return math.prod(dims_of(value))


def index_of(strides: Iterable[int]) -> str:
    """The index of an element at i0, i1, ..., by strides."""
    terms = [f"i{at} * {step}" if step > 1 else f"i{at}" for at, step in enumerate(strides) if step]
    return " + ".join(terms) or "0"


def around(dims: Sequence[int], axis: int) -> tuple[int, int, int]:
    """The elements of the dims before an axis, of it, and of those behind it."""
    axis %= len(dims)
    return math.prod(dims[:axis]), dims[axis], math.prod(dims[axis + 1 :])


def literal(number: int | float) -> str:
    """A number in C, as a term that an operator can stand before."""
    if isinstance(number, float):
        if math.isnan(number):
            return "NAN"
        if not math.isfinite(number):
            return "INFINITY" if number > 0 else "(-INFINITY)"
        text = np.format_float_scientific(np.float32(number), unique=True, trim="0") + "f"
        return text if number >= 0 else f"({text})"
    number = int(number)  # truth values, too
    if number in (-(1 << 31), -(1 << 63)):
        return "INT32_MIN" if number == -(1 << 31) else "INT64_MIN"
    text = str(number) if -(1 << 31) < number < 1 << 31 else f"INT64_C({abs(number)})"
    return f"(-{text.lstrip('-')})" if number < 0 else text


def plus(text: str, number: int) -> str:
    """A term and a number, added."""
    return text if not number else f"{text} + {number}" if number > 0 else f"{text} - {-number}"


_ROW: Final = 32
"""Elements of a constant that stand in one line."""
_BYTES: Final = np.asarray([f"{number},{end}" for end in ("", "\n") for number in range(-128, 256)], "S6")
"""The text of each number of a byte from -128 on, within a line and at its end."""


def elements(array: np.ndarray, storage: ScalarType) -> str:
    """The elements of a constant, between braces."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype in (np.int8, np.uint8):
        at = flat.astype(np.int16) + 128
        at[_ROW - 1 :: _ROW] += 384
        texts = _BYTES[at]
    elif storage.is_float and np.isfinite(flat).all():
        texts = np.rec.fromarrays(_hexadecimal(flat))
    else:
        plain = not storage.is_float and flat.size and flat.min() > -(1 << 31) and flat.max() < 1 << 31
        words = [*map(str, flat.astype(np.int64).tolist())] if plain else [*map(literal, flat.tolist())]
        return ",\n".join([",".join(words[at : at + _ROW]) for at in range(0, len(words), _ROW)])
    return texts.tobytes().translate(None, b"\0").decode().rstrip(",\n")


def _hexadecimal(flat: np.ndarray) -> list[np.ndarray]:
    """The texts of finite floats in parts, exact by their bits: sign, six digits behind the point, exponent."""
    bits = flat.astype(np.float32).view(np.uint32)
    heads = np.asarray([f"{sign}0x{int(n > 0)}." for sign in ("", "-") for n in range(256)], "S5")
    digits = np.asarray([f"{byte:02x}" for byte in range(256)], "S2")
    tails = np.asarray([f"p{max(n, 1) - 127}f,{end}" for end in ("", "\n") for n in range(256)], "S8")
    power, fraction, tail = bits >> 23, bits << 1, bits >> 23 & 255
    tail[_ROW - 1 :: _ROW] += 256
    return [heads[power], *(digits[fraction >> at & 255] for at in (16, 8, 0)), tails[tail]]
