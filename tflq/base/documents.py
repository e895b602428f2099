"""Documents from outside, JSON and TOML, as values of declared types: the one reader of what nobody vouches for.

A declaration is a type of Python's. A `TypedDict` or a dataclass is a table with fields, `Mapping[str, T]` one with any
keys, `list[T]` and `tuple[T, ...]` are lists, `tuple[A, B]` is a list of two, `A | B` is either, `Literal` one of some
values, and `Annotated[T, Check(...)]` fulfils a condition, too. `Any` is a document of
any form, and `object` is not looked at.

    class Layer(TypedDict, total=False):
        name: Required[str]
        sizes: list[Annotated[int, Check("a size, from 1 on", lambda size: size > 0)]]

    layers: list[Layer] = read_json("layers.json", list[Layer], "a list of layers")

A file is refused with one kind of error: an `OptionError` with file, line, field and what is wrong there. So is a file
that is not UTF-8 or nested over 100 deep, and one that has a key twice in a table, NaN or Infinity, half of a surrogate
pair, or a whole number that 64 bits do not hold. Fields that are not declared stay, or with `closed` are refused. Of
lines of JSON a last one without an end, of a process that was killed, is left out.

Metadata, and what comes through a pipe or from a cache, is read by `parse_json`, which raises a `DocumentError`.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Required,
    TypeAlias,
    Union,
    get_args,
    get_origin,
)

from tflq.base.errors import OptionError, Reason
from tflq.base.files import FilePath, file_errors

Path: TypeAlias = tuple[str | int, ...]
"""Keys of tables and indices of lists, from the top of a document."""
_Checker: TypeAlias = Callable[[Any], Any]
_DEEPEST: Final = 100
_WHOLE: Final = 1 << 63
_MOST: Final = float.fromhex("0x1.fffffffffffffp+1023")
_SHORT: Final = 60


class DocumentError(ValueError):
    """A document that is not as declared: what is wrong at a path; or at a line of what is no document at all."""

    def __init__(self, what: str, line: int = 0, path: Path = ()) -> None:
        super().__init__(what)
        self.what = what
        self.line = line
        self.path = path

    def inside(self, key: str | int) -> DocumentError:
        """The fault of a table or list that has this one at a key."""
        return DocumentError(self.what, self.line, (key, *self.path))

    def __str__(self) -> str:
        field = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.path).removeprefix(".")
        return f"{field}: {self.what}" if field else self.what


class Check:
    """A condition that a value fulfils, and the noun for those that do: "a size, from 1 on"."""

    __slots__ = ("noun", "test")

    def __init__(self, noun: str, test: Callable[[Any], object]) -> None:
        self.noun: Final = noun
        self.test: Final = test


def exactly(value: object) -> Check:
    """The check that a value is this one."""
    return Check(repr(value), lambda other: other == value)


# Values against declarations.


def checked(value: Any, kind: Any, *, closed: bool = False) -> Any:
    """A document's value as its kind, with dataclasses and tuples as declared. DocumentError if it is another."""
    return _checker(kind, closed)(value)


@cache
def _checker(kind: Any, closed: bool) -> _Checker:
    """The function that checks values of a kind. Made once, as lines are many."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind is object:
        return lambda value: value
    if kind is Any:
        return _any
    if kind in _SCALARS:
        return _tested(lambda value: value, kind, _SCALARS[kind].test)
    if origin is Annotated:
        return _tested(_checker(parts[0], closed), kind, *(check.test for check in parts[1:]))
    if origin is Literal:
        known = [(type(value), value) for value in parts]
        return _tested(lambda value: value, kind, lambda value: (type(value), value) in known)
    if origin in (Union, UnionType):
        return _either(kind, [_checker(part, closed) for part in parts])
    if origin is tuple and parts[-1] is not ...:
        return _row(kind, [_checker(part, closed) for part in parts])
    if origin in (list, tuple, Sequence):
        return _list(kind, _checker(parts[0], closed), list if origin is list else tuple)
    if origin in (dict, Mapping):
        return _map(kind, _checker(parts[1], closed))
    return _table(kind, closed)


_SCALARS: Final[Mapping[Any, Check]] = {
    str: Check("a text", lambda value: type(value) is str),
    bool: Check("true or false", lambda value: type(value) is bool),
    int: Check("a whole number of 64 bits", lambda value: type(value) is int and -_WHOLE <= value < _WHOLE),
    float: Check("a finite number", lambda value: type(value) in (int, float) and -_MOST <= value <= _MOST),
    NoneType: Check("null", lambda value: value is None),
}


def _noun(kind: Any) -> str:
    """The noun for a value of a kind, in messages."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind in _SCALARS:
        return _SCALARS[kind].noun
    if origin is Annotated:
        return str(parts[-1].noun)
    if origin is Literal:
        return f"one of {', '.join(map(str, parts))}"
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_noun, parts)))
    if origin is tuple and parts[-1] is not ...:
        return f"a list of {len(parts)}"
    return "a list" if origin in (list, tuple, Sequence) else "a table"


def _shown(value: Any) -> str:
    """A value in a message."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, (Mapping, list, tuple)):
        return f"{'a table' if isinstance(value, Mapping) else 'a list'} of {len(value)}"
    if isinstance(value, int) and abs(value) >= _WHOLE:
        return "a number of more than 64 bits"
    text = repr(value)
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}…"


def _wrong(value: Any, kind: Any) -> DocumentError:
    return DocumentError(f"{_shown(value)} is not {_noun(kind)}")


def _tested(check: _Checker, kind: Any, *tests: Callable[[Any], object]) -> _Checker:
    def tested(value: Any) -> Any:
        value = check(value)
        for test in tests:
            if not test(value):
                raise _wrong(value, kind)
        return value

    return tested


class _Twice(dict[str, Any]):
    """A table that had a key twice."""


def _is_table(value: Any) -> bool:
    if isinstance(value, _Twice):
        raise DocumentError(f"'{next(iter(value))}' is there twice")
    return isinstance(value, Mapping)


def _any(value: Any, left: int = _DEEPEST) -> Any:
    """Any value, of which tables, lists and numbers are looked at."""
    if not left:
        raise DocumentError(f"it is nested over {_DEEPEST} deep")
    if _is_table(value) or isinstance(value, list):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            if isinstance(item, (dict, list, float)):
                _at(key, lambda item: _any(item, left - 1), item)
    elif isinstance(value, float) and not math.isfinite(value):
        raise _wrong(value, float)
    return value


def _either(kind: Any, checks: Sequence[_Checker]) -> _Checker:
    def either(value: Any) -> Any:
        faults = []
        for check in checks:
            try:
                return check(value)
            except DocumentError as fault:
                faults.append(fault)
        furthest = max(faults, key=lambda fault: len(fault.path))
        raise furthest if furthest.path else _wrong(value, kind)

    return either


def _list(kind: Any, check: _Checker, of: Callable[[list[Any]], Any]) -> _Checker:
    def items(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            raise _wrong(value, kind)
        return of([_at(i, check, item) for i, item in enumerate(value)])

    return items


def _row(kind: Any, checks: Sequence[_Checker]) -> _Checker:
    def row(value: Any) -> Any:
        if not isinstance(value, (list, tuple)) or len(value) != len(checks):
            raise _wrong(value, kind)
        return tuple(_at(i, check, item) for i, (check, item) in enumerate(zip(checks, value, strict=True)))

    return row


def _map(kind: Any, check: _Checker) -> _Checker:
    def entries(value: Any) -> Any:
        if not _is_table(value) or not all(isinstance(key, str) for key in value):
            raise _wrong(value, kind)
        return {key: _at(key, check, item) for key, item in value.items()}

    return entries


def _table(kind: Any, closed: bool) -> _Checker:
    fields = _fields(kind)
    checks = {name: _checker(each, closed) for name, (each, _) in fields.items()}
    needed = {name for name, (_, required) in fields.items() if required}
    is_typed_dict = hasattr(kind, "__total__")

    def table(value: Any) -> Any:
        if not _is_table(value):
            raise _wrong(value, kind)
        checked = {}
        for name, check in checks.items():
            if name in value:
                checked[name] = _at(name, check, value[name])
            elif name in needed:
                raise DocumentError("it is missing", path=(name,))
        for name, item in value.items():
            if closed and name not in checks:
                raise DocumentError(f"there is no such key; there are {', '.join(sorted(checks))}", path=(str(name),))
            if is_typed_dict and name not in checks:
                _at(name, _any, item)
        return {name: checked.get(name, item) for name, item in value.items()} if is_typed_dict else kind(**checked)

    return table


def _at(key: str | int, check: _Checker, value: Any) -> Any:
    try:
        return check(value)
    except DocumentError as fault:
        raise fault.inside(key) from None


def _fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """The fields of a table: of what kind each is, and whether it must be there."""
    from dataclasses import MISSING, fields, is_dataclass
    from typing import get_type_hints

    hints = get_type_hints(kind, include_extras=True)
    if is_dataclass(kind):
        free = (MISSING, MISSING)
        return {each.name: (hints[each.name], (each.default, each.default_factory) == free) for each in fields(kind)}
    needed: Collection[str] = kind.__required_keys__
    marks = {name: get_origin(hint) for name, hint in hints.items()}
    return {
        name: (
            get_args(hint)[0] if marks[name] in (Required, NotRequired) else hint,
            marks[name] is Required or (name in needed and marks[name] is not NotRequired),
        )
        for name, hint in hints.items()
    }


# JSON.


def parse_json(text: str | bytes, kind: Any, *, closed: bool = False) -> Any:
    """The document that a text is, as its kind. DocumentError if it is none, or of another kind."""
    text = _decoded(text) if isinstance(text, bytes) else text
    try:
        return checked(_loaded(text), kind, closed=closed)
    except DocumentError as fault:
        line = _json_line(text, fault.path) if fault.path else fault.line
        raise DocumentError(fault.what, line, fault.path) from None


def read_json(path: FilePath, kind: Any, what: str, *, closed: bool = False, remedy: str = "") -> Any:
    """The document in a file, as its kind. what: a noun for such a file. FileError if it cannot be read, OptionError if
    it is another."""
    with file_errors(path), open(path, "rb") as file:
        data = file.read()
    with _faults_of(path, what, remedy):
        return parse_json(data, kind, closed=closed)


def read_json_lines(path: FilePath, kind: Any, what: str, *, remedy: str = "") -> Iterator[Any]:
    """The documents in a file, one in a line. Errors as of `read_json`."""
    with file_errors(path), open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            with _faults_of(path, what, remedy, number):
                document = parse_json(line, kind)
            yield document


@contextmanager
def _faults_of(path: FilePath, what: str, remedy: str, line: int = 0) -> Iterator[None]:
    """Turns a fault into the error of a file."""
    try:
        yield
    except DocumentError as fault:
        raise _error(path, fault, what, line or fault.line, remedy) from fault


def _error(path: FilePath, fault: DocumentError, what: str, line: int, remedy: str) -> OptionError:
    whole = f"not {what}: " if fault.path in ((), ("format",)) else ""
    return OptionError(Reason(f"{whole}{fault}", os.fspath(path), place=str(line or ""), remedy=remedy))


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DocumentError(f"this is not a text file in UTF-8: {error.reason} at byte {error.start}", line) from None


def _loaded(text: str) -> Any:
    import json

    try:
        document = json.loads(text, object_pairs_hook=_table_of)
        if (
            "\\ud" in text or "\\uD" in text
        ):  # bytes of a file name that are not UTF-8 are halves, too, and may be there
            json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogateescape")
    except RecursionError:
        raise DocumentError(f"it is nested over {_DEEPEST} deep") from None
    except UnicodeEncodeError:
        raise DocumentError("a text has half of a surrogate pair", _line_of_half_pair(text)) from None
    except ValueError as error:
        what, line = getattr(error, "msg", str(error)), getattr(error, "lineno", 0)
        raise DocumentError(f"not a JSON file: {what}", line) from None
    return document


def _line_of_half_pair(text: str) -> int:
    """The line of the first string of a JSON document that no UTF-8 file holds."""
    import json

    for string in re.finditer(r'"(?:[^"\\]|\\.)*"', text):
        try:
            json.loads(string[0]).encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return text.count("\n", 0, string.start()) + 1
    return 0


def _table_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) == len(pairs):
        return table
    keys = [key for key, _ in pairs]
    return _Twice((key, None) for key in keys if keys.count(key) > 1)


def _json_line(text: str, path: Path) -> int:
    """The line of what a path leads to in a JSON text, or of the table that lacks it."""
    import json
    from json.decoder import scanstring  # type: ignore[attr-defined]

    skip = re.compile(r"[\s,:]*").match
    scan = json.JSONDecoder().raw_decode
    at = _end(skip(text, 0))
    for step in path:
        table, at, index = at, _end(skip(text, at + 1)), 0
        while text[at : at + 1] not in ("", "]", "}"):
            key: str | int = index
            if isinstance(step, str):
                key, at = scanstring(text, at + 1, True)
                at = _end(skip(text, at))
            if key == step:
                break
            at, index = _end(skip(text, scan(text, at)[1])), index + 1
        else:
            at = table
            break
    return text.count("\n", 0, at) + 1


def _end(match: re.Match[str] | None) -> int:
    return match.end() if match else 0


# TOML.

_WORD: Final = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_KEY: Final = rf"\s*({_WORD}(?:\s*\.\s*{_WORD})*)\s*"
_HEAD: Final = rf"\s*(\[?)\[{_KEY}\]\]?\s*(?:#.*)?"
_ASSIGNMENT: Final = _KEY + "="
_OF_TOML: Final = "mend the line: key = value, texts in quotes"


class TomlFile:
    """One file: its `content`, and its text, which says the line of what is wrong."""

    def __init__(self, path: FilePath) -> None:
        """FileError if it cannot be read, OptionError if it is not TOML."""
        import tomllib

        self.path = os.fspath(path)
        with file_errors(path), open(path, "rb") as file:
            data = file.read()
        try:
            self.text = _decoded(data).replace("\r\n", "\n").replace("\r", "\n")
        except DocumentError as fault:
            remedy = "give a .toml file, in UTF-8"
            raise OptionError(Reason(fault.what, self.path, place=str(fault.line), remedy=remedy)) from None
        try:
            self.content: dict[str, Any] = tomllib.loads(self.text)
        except RecursionError:
            raise OptionError(Reason(f"it is nested over {_DEEPEST} deep", self.path, remedy=_OF_TOML)) from None
        except ValueError as error:
            raise OptionError(self._repeated() or self._of_toml(str(error))) from error

    def checked(self, kind: Any, what: str, *, remedy: str = "") -> Any:
        """The content as its kind, with no other keys. OptionError if it is of another."""
        try:
            return checked(self.content, kind, closed=True)
        except DocumentError as fault:
            raise _error(self.path, fault, what, self.locate(fault.path)[0], remedy) from fault

    def locate(self, path: Path) -> tuple[int, int]:
        """The line of a key or of a table in a list, or of what holds it: an inline table, the head of a section; 1 if
        there is nothing. And how many steps of the path lead there."""
        depth, line = 0, 1
        for number, place in self._places():
            shared = min(len(place), len(path))
            if shared > depth and place[:shared] == path[:shared]:
                depth, line = shared, number
        return line, depth

    def _places(self) -> Iterator[tuple[int, Path]]:
        """The lines that name a section, a table in a list or a key, and its path."""
        section: Path = ()
        counts: dict[Path, int] = {}
        for number, line in enumerate(self.text.split("\n"), 1):
            if head := re.fullmatch(_HEAD, line):
                *above, name = _words(head[2])
                section = ()
                for word in above:
                    section = _last((*section, word), counts)
                if head[1]:
                    counts[*section, name] = counts.get((*section, name), 0) + 1
                section = _last((*section, name), counts)
                yield number, section
            elif assignment := re.match(_ASSIGNMENT, line):
                yield number, (*section, *_words(assignment[1]))

    def _of_toml(self, what: str) -> Reason:
        """The fault that TOML's own reader names, at its line: "Invalid value (at line 2, column 3)"."""
        at = re.search(r" \(at line (\d+), column \d+\)$", what)
        what = what[: at.start()] if at else what
        return Reason(f"not a TOML file: {what}", self.path, place=at[1] if at else "", remedy=_OF_TOML)

    def _repeated(self) -> Reason | None:
        """A key that is there twice: TOML's own reader does not say the line."""
        seen: dict[Path, int] = {}
        for number, place in self._places():
            first = seen.setdefault(place, number)
            if first != number:
                what = f"'{'.'.join(map(str, place))}' is said in line {first} already"
                return Reason(what, self.path, place=str(number), remedy=_OF_TOML)
        return None


def _last(path: Path, counts: Mapping[Path, int]) -> Path:
    """The last table of a list of tables so far; the path itself if it is no list."""
    return (*path, counts[path] - 1) if path in counts else path


def _words(key: str) -> Path:
    """The words of a dotted key, without quotes."""
    return tuple(word.strip("\"'") for word in re.findall(_WORD, key))
