"""Lexical facts of the text form, which printer and parser share (quoting, numbers, names), and the scanner.

The text form is MLIR's (https://mlir.llvm.org/docs/LangRef). Floats are the shortest decimals that read back the same;
NaN and infinities are their bits in hexadecimal, as in MLIR.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import numpy as np

from tflq.base.errors import ParseError
from tflq.ir.types import SCALARS, ScalarType

INLINE_LIMIT = 64
"""Arrays of up to so many elements are written out; larger ones are hexadecimal."""

CAST_OPS = frozenset({"quant.dcast", "quant.qcast", "quant.scast"})
"""Ops with the custom form `op %x : type to type`."""

REGION_OP = "quant.region"
CLOSED_OPS = frozenset({REGION_OP})
"""Ops whose regions read nothing that is defined outside, constants included."""

TFL_CONSTANT = "tfl.pseudo_const"
TOSA_CONSTANT = "tosa.const"
ARITH_CONSTANT = "arith.constant"
STABLEHLO_CONSTANT = "stablehlo.constant"
CONSTANT_OPS = frozenset(
    {TFL_CONSTANT, "tfl.pseudo_qconst", TOSA_CONSTANT, ARITH_CONSTANT, STABLEHLO_CONSTANT, "tf.Const"}
)
"""Ops that stand for a constant value."""

STRUCTURED_OP = "linalg.generic"
"""An op with a custom form of its own, since MLIR's tools write enumerations into its generic form."""

REPEATED = {"tfl.quantize": "qtype"}
"""By op, the attribute by which MLIR repeats the type of the result: it is checked, and not kept."""

NO_VALUE_OP = "tfl.no_value"
"""The op that stands for an optional operand that is left out."""

PLACEHOLDER_OP = "tflq.tensor"
"""The op that stands for a tensor without data that nothing produces: a variable, scratch space, or unused."""

BARE_KEY = re.compile(r"[A-Za-z_][\w$.]*")

SCALAR_OF_DTYPE: dict[str, ScalarType] = {
    t.dtype.str: t for t in SCALARS.values() if t.numpy and t.bits >= 8 and t.kind != "index"
}

_QUOTED = r'"(?:[^"\\\n]|\\.)*"'
_PLAIN = re.compile(r"[ !#-\[\]-~]*")
_ESCAPE = re.compile(rb'\\(n|t|"|\\|[0-9A-Fa-f]{2})')
_ESCAPED = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\"}


class Symbol(str):
    """The name of a function in an attribute: `@name`."""

    __slots__ = ()


def quote(text: str) -> str:
    """A string literal. Bytes of its UTF-8 form that are not printable ASCII are written as `\\XX`."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    data = text.encode("utf-8", "surrogateescape")
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in data) + '"'


def unquote(body: str) -> str:
    """The string that a literal stands for, from the text between its quotes."""
    if "\\" not in body:
        return body
    raw = body.encode("utf-8", "surrogateescape")
    data = _ESCAPE.sub(lambda m: _ESCAPED.get(m[1]) or bytes([int(m[1], 16)]), raw)
    return data.decode("utf-8", "surrogateescape")


def float_text(value: float | np.floating) -> str:
    """A finite float as the shortest decimal in its own precision, any other as its bits in hexadecimal."""
    scalar = value if isinstance(value, np.floating) else np.float64(value)
    if not np.isfinite(scalar):
        return bits_text(scalar)
    text = str(scalar)
    if "." in text:
        return text
    return text.replace("e", ".0e") if "e" in text else f"{text}.0"


def bits_text(scalar: np.generic) -> str:
    """The bits of a number in hexadecimal."""
    return f"0x{int(scalar.view(f'u{scalar.itemsize}')):0{2 * scalar.itemsize}X}"


def float_of(text: str) -> float:
    """The counterpart of `float_text`. ValueError if bits are not those of 16, 32 or 64."""
    if not text.startswith("0x"):
        return float(text)
    size = (len(text) - 2) // 2
    if size not in (2, 4, 8):
        raise ValueError(f"{text} is not the bits of a float")
    return float(np.array([int(text, 16)], f"u{size}").view(f"f{size}")[0])


_BLANK = re.compile(r"(?:\s+|//[^\n]*)*")
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_INTEGER = re.compile(r"-?(?:0x[0-9A-Fa-f]+|\d+)")
_NUMBER = re.compile(r"0x[0-9A-Fa-f]+|[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
_BRACKETS = re.compile(_QUOTED + r"|//[^\n]*|->|[<>]=|[()\[\]{}<>]")
_RUNS = re.compile(_QUOTED + r"|(?:\s+|//[^\n]*)+")
_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}


MOST_NESTED = 64
"""Attributes, types, regions and locations inside of each other; Python's own stack bounds what can be read."""


class Scanner:
    """Reads `text` from `pos` on. Every method first skips blanks and `//` comments."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.pos = 0
        self.depth = 0

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Counts what is read inside of something. ParseError if that is too deep."""
        if self.depth == MOST_NESTED:
            self.fail(f"this is inside of {MOST_NESTED} others, which is as deep as tflq reads")
        self.depth += 1
        yield
        self.depth -= 1

    def fail(self, reason: str, at: int | None = None) -> NoReturn:
        """ParseError, with the line of the text, at a position; by default where the scanner is."""
        if at is None:
            self.skip()
            at = self.pos
        start = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        line = self.text[start : end if end >= 0 else len(self.text)]
        column = at - start
        shown = line.replace("\t", " ")
        if column > 100 or len(line) > 200:
            cut = max(0, column - 60)
            shown, pointer = shown[cut : cut + 120], column - cut
        else:
            pointer = column
        raise ParseError(self.file, self.text.count("\n", 0, at) + 1, column + 1, reason, f"{shown}\n{' ' * pointer}^")

    def skip(self) -> None:
        match = _BLANK.match(self.text, self.pos)
        if match is not None:
            self.pos = match.end()

    def peek(self, literal: str) -> bool:
        self.skip()
        return self.text.startswith(literal, self.pos)

    def accept(self, literal: str) -> bool:
        """Steps over punctuation if it is next."""
        self.skip()
        if self.text.startswith(literal, self.pos):
            self.pos += len(literal)
            return True
        return False

    def expect(self, literal: str) -> None:
        if not self.accept(literal):
            self.fail(f"expected '{literal}'")

    def items(self, end: str) -> Iterator[None]:
        """Stops where each item of a list begins; steps over the commas after items, and over the end."""
        while not self.accept(end):
            yield
            if not self.accept(","):
                self.expect(end)
                return

    def peek_word(self) -> str:
        """The word that is next, or ""."""
        self.skip()
        match = BARE_KEY.match(self.text, self.pos)
        return match[0] if match else ""

    def accept_word(self, word: str) -> bool:
        if self.peek_word() != word:
            return False
        self.pos += len(word)
        return True

    def expect_word(self, word: str) -> None:
        if not self.accept_word(word):
            self.fail(f"expected '{word}'")

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Steps over what a pattern matches here, and returns it."""
        self.skip()
        match = pattern.match(self.text, self.pos)
        if match is None:
            return None
        self.pos = match.end()
        return match[0]

    def take(self, pattern: re.Pattern[str], what: str) -> str:
        text = self.match(pattern)
        if text is None:
            self.fail(f"expected {what}")
        return text

    def word(self, what: str) -> str:
        return self.take(BARE_KEY, what)

    def name_or_string(self, what: str) -> str:
        """A name, in quotes or not."""
        quoted = self.string_or_none()
        return self.word(what) if quoted is None else quoted

    def integer(self) -> int:
        text = self.take(_INTEGER, "an integer")
        return int(text, 16 if "x" in text else 10)

    def number(self) -> str:
        return self.take(_NUMBER, "a number")

    def string_or_none(self) -> str | None:
        """A string literal's value, if one is next."""
        self.skip()
        match = _STRING.match(self.text, self.pos)
        if match is None:
            return None
        self.pos = match.end()
        return unquote(match[1])

    def string(self) -> str:
        value = self.string_or_none()
        if value is None:
            self.fail("expected a string")
        return value

    def balanced(self) -> str:
        """The text from an opening bracket to the one that closes it, with one blank for each run of blanks."""
        self.skip()
        start, closers = self.pos, ""
        for match in _BRACKETS.finditer(self.text, start):
            piece = match[0]
            if piece in _PAIRS:
                closers += _PAIRS[piece]
            elif piece in ")]}>":
                if not closers.endswith(piece):
                    self.fail(f"'{piece}' closes nothing", match.start())
                closers = closers[:-1]
            if not closers:
                self.pos = match.end()
                break
        else:
            self.fail("a bracket is open that is not closed", start)
        return _RUNS.sub(lambda m: m[0] if m[0][0] == '"' else " ", self.text[start : self.pos])
