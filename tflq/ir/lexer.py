"""A scanner over the text form: matches where it is, skips blanks and `//` comments, shows the line of an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from tflq.errors import ParseError
from tflq.ir.syntax import unquote

__all__ = ["Scanner"]

_BLANK = re.compile(r"(?:\s+|//[^\n]*)*")
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_WORD = re.compile(r"[A-Za-z_][\w$.]*")
_INTEGER = re.compile(r"-?(?:0x[0-9A-Fa-f]+|\d+)")
_NUMBER = re.compile(r"0x[0-9A-Fa-f]+|[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")


_BRACKETS = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[<>]=|[()\[\]{}<>]')
_RUNS = re.compile(r'"(?:[^"\\\n]|\\.)*"|(?:\s+|//[^\n]*)+')
_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}


class Scanner:
    """Reads `text` from `pos` on. Every method skips blanks first."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.pos = 0

    def fail(self, reason: str, at: int | None = None) -> NoReturn:
        """ParseError at a position, by default where the scanner is."""
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
        """Step over punctuation if it is next."""
        self.skip()
        if self.text.startswith(literal, self.pos):
            self.pos += len(literal)
            return True
        return False

    def expect(self, literal: str) -> None:
        if not self.accept(literal):
            self.fail(f"expected '{literal}'")

    def items(self, end: str) -> Iterator[None]:
        """Once where each item of a list begins; steps over the commas after items, and over the end."""
        while not self.accept(end):
            yield
            if not self.accept(","):
                self.expect(end)
                return

    def peek_word(self) -> str:
        """The word that is next, or ""."""
        self.skip()
        match = _WORD.match(self.text, self.pos)
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
        """What a pattern matches here, stepped over."""
        self.skip()
        match = pattern.match(self.text, self.pos)
        if match is None:
            return None
        self.pos = match.end()
        return match[0]

    def take(self, pattern: re.Pattern[str], what: str) -> str:
        found = self.match(pattern)
        if found is None:
            self.fail(f"expected {what}")
        return found

    def word(self, what: str) -> str:
        return self.take(_WORD, what)

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

    def balanced(self) -> str:
        """From an opening bracket to the one that closes it, as it is written but for blanks: one for each run."""
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

    def string(self) -> str:
        value = self.string_or_none()
        if value is None:
            self.fail("expected a string")
        return value
