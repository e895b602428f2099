"""TOML files of rules, the user's own among them: read, and their faults, all of them, told as one `OptionError` that
names file, line and key of each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from tflq.arguments import choices
from tflq.errors import OptionError, Reason
from tflq.files import file_errors
from tflq.toml import read_toml

__all__ = ["RulesFile"]

_WORD = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_KEY = rf"\s*({_WORD}(?:\s*\.\s*{_WORD})*)\s*"
_HEAD = rf"\s*\[{_KEY}\]\s*(?:#.*)?"
_ASSIGNMENT = _KEY + "="

_OF_TOML = "mend the line: key = value, texts in quotes"

_Path = tuple[str, ...]


class RulesFile:
    """One file: its `content`, and its text, which finds the line of a fault."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """FileError if there is no such file, OptionError if it is not TOML."""
        self.path = os.fspath(path)
        self._faults: list[Reason] = []
        try:
            with file_errors(path), open(path, encoding="utf-8") as file:
                self._text = file.read()
            self.content: dict[str, Any] = read_toml(self._text)
        except UnicodeDecodeError as error:
            what = f"this is not a text file: {error.reason} at byte {error.start}"
            raise OptionError(Reason(what, self.path, remedy="give a .toml file, in UTF-8")) from error
        except ValueError as error:
            raise OptionError(self._repeated() or self._of_toml(str(error))) from error

    def fault(
        self,
        reason: str,
        section: str = "",
        key: str = "",
        *,
        item: str = "",
        known: Iterable[object] = (),
        remedy: str = "",
    ) -> None:
        """Notes what is wrong at a key of a section ("level.8k"), or at an item of the key's list; `known`: what could
        be there instead. `check_faults` raises it."""
        where = f"[{section}] " if section else ""
        remedy = remedy or choices(item or key, map(str, known))
        self._faults.append(self._reason(self.line(section, key, item), where + reason, remedy))

    def fail(
        self, reason: str, section: str = "", key: str = "", *, item: str = "", known: Iterable[object] = ()
    ) -> NoReturn:
        """OptionError for a fault after which there is no going on, and for those before it."""
        self.fault(reason, section, key, item=item, known=known)
        self.check_faults()
        raise AssertionError

    def check_faults(self) -> None:
        """OptionError with all that was noted, if anything was."""
        if len(self._faults) == 1:
            raise OptionError(self._faults[0])
        if self._faults:
            reasons = sorted(self._faults, key=lambda reason: int(reason.place))
            raise OptionError(f"{self.path} has {len(reasons)} faults:", reasons)

    def _reason(self, line: int, what: str, remedy: str = "") -> Reason:
        return Reason(what, self.path, place=str(line), remedy=remedy)

    def line(self, section: str, key: str, item: str = "") -> int:
        """The line of a key, or of what holds it: an inline table, the section's head; 1 if there is nothing."""
        wanted = (*(section.split(".") if section else ()), *((key,) if key else ()))
        depth, found = 0, 1
        for number, place in self._places():
            shared = min(len(place), len(wanted))
            if shared > depth and place[:shared] == wanted[:shared]:
                depth, found = shared, number
        if not item or depth < len(wanted):
            return found
        lines = self._text.splitlines()[found - 1 :]
        return next((number for number, line in enumerate(lines, found) if item in line), found)

    def _places(self) -> Iterator[tuple[int, _Path]]:
        """The lines that name a section or a key, and its path."""
        section: _Path = ()
        for number, line in enumerate(self._text.splitlines(), 1):
            if head := re.fullmatch(_HEAD, line):
                section = _words(head[1])
                yield number, section
            elif assignment := re.match(_ASSIGNMENT, line):
                yield number, (*section, *_words(assignment[1]))

    def _of_toml(self, said: str) -> Reason:
        """What TOML's own reader says, at its line: "Invalid value (at line 2, column 3)"."""
        at = re.search(r" \(at line (\d+), column \d+\)$", said)
        return Reason(said[: at.start()] if at else said, self.path, place=at[1] if at else "", remedy=_OF_TOML)

    def _repeated(self) -> Reason | None:
        """What is said twice, of which TOML's own reader does not say the line."""
        seen: dict[_Path, int] = {}
        for number, place in self._places():
            first = seen.setdefault(place, number)
            if first != number:
                return self._reason(number, f"'{'.'.join(place)}' is said in line {first} already")
        return None


def _words(key: str) -> _Path:
    """The words of a dotted key, without quotes."""
    return tuple(word.strip("\"'") for word in re.findall(_WORD, key))
