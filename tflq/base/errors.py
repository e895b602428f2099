"""The errors that a caller can catch, and the reasons that they carry.

    TflqError
      InvalidModelError    the bytes are not a valid model
        ParseError         the text form is not valid
      UnsupportedError     the model is valid, but cannot be converted as asked
      VerificationError    what must hold does not: IR of a form, or two models that should be equal
      OptionError          an option, or a combination of them, makes no sense (also a ValueError)
      FileError            a file cannot be read or written (also an OSError)
      MissingPackageError  a package that is not installed is needed (also an ImportError)

Each has `reasons`: what is wrong, where, and what can be done, as data. Its message says the same in words. All can be
pickled and copied.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Protocol

    class Location(Protocol):
        """Where an operator comes from, as `tflq.ir.ops.Location` says it."""

        @property
        def file(self) -> str: ...
        @property
        def function(self) -> int: ...
        @property
        def operator(self) -> int: ...
        @property
        def opcode(self) -> str: ...
        @property
        def tensor(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something is not possible: what is wrong, and where. `str(reason)` is the sentence.

    Attributes:
        what: What is wrong.
        path: The file. Empty if the model came as bytes.
        subgraph: Number of the subgraph in the file.
        operator: Number of the operator in the subgraph.
        opcode: The operator's type, such as "CONV_2D".
        tensor: Name of the tensor.
        place: Where in the file, if it is not an operator or more precise than one: "tensor 3 'x'.quantization", or a
            line: "12".
        value: The wrong value, if it is a single one.
        remedy: What you can do.

    Example:
        ```python
        try:
            tflq.convert("in.tflite", "out.tosa")
        except tflq.UnsupportedError as error:
            for reason in error.reasons:
                print(reason.opcode, reason.tensor, reason.what, reason.remedy)
        ```
    """

    what: str
    path: str = ""
    subgraph: int | None = None
    operator: int | None = None
    opcode: str = ""
    tensor: str = ""
    place: str = ""
    value: Any = None
    remedy: str = ""

    @classmethod
    def at(cls, location: Location | None, what: str, *, value: Any = None, remedy: str = "") -> Reason:
        """Make a reason that concerns the operator at a location, if there is one.

        Args:
            location: Where the operator is.
            what: What is wrong.
            value: The wrong value.
            remedy: What the user can do.
        """
        if location is None:
            return cls(what, value=value, remedy=remedy)
        place = location.file, location.function, location.operator, location.opcode, location.tensor
        return cls(what, *place, value=value, remedy=remedy)

    @classmethod
    def within(cls, place: str, what: str, *, path: str = "", remedy: str = "") -> Reason:
        """Make a reason at a place in a file.

        Args:
            place: Such as "subgraphs[0].tensors[3].name" or "subgraph 0, tensor 3 'x'.quantization".
            what: What is wrong.
            path: The file.
            remedy: What the user can do.
        """
        numbers = {key: int(n) for key, n in re.findall(_NUMBERS, place)}
        tensor = re.search(_TENSOR, place)
        return cls(
            what,
            path,
            numbers.get("subgraph"),
            numbers.get("operator"),
            tensor=tensor[1] if tensor else "",
            place=place,
            remedy=remedy,
        )

    @property
    def where(self) -> str:
        """The path and the place in it, in words for a message."""
        place = self.place
        if not place and self.operator is not None:
            opcode = f" ({self.opcode})" if self.opcode else ""
            tensor = f", tensor '{self.tensor}'" if self.tensor else ""
            place = f"subgraph {self.subgraph or 0}, operator {self.operator}{opcode}{tensor}"
        between = ":" if place[:1].isdigit() else ": "
        return between.join(part for part in (self.path, place) if part)

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.where, self.what) if part)
        return f"{text}; {self.remedy}" if self.remedy else text

    def to_json(self) -> dict[str, Any]:
        """The fields by name. A number that is not finite, or a value that JSON cannot express, becomes a text."""
        from dataclasses import fields

        value = self.value
        if hasattr(value, "item") and not getattr(value, "shape", ()):
            value = value.item()
        plain = isinstance(value, (str, int, float)) or value is None
        document = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**document, "value": plain_numbers(value) if plain else str(value)}


class Refused(Exception):  # noqa: N818 an answer, not an error
    """An operator cannot be converted in this way. The walk over the model catches it and collects the reasons in one
    `TflqError`.

    Args:
        what: Why not.
        remedy: What the user can do.
    """

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.reason = Reason(what, remedy=remedy)

    def at(self, location: Location | None) -> Reason:
        """The reason, for the operator at a location."""
        return Reason.at(location, self.reason.what, remedy=self.reason.remedy)

    def within(self, place: str, path: str = "", subgraph: int | None = None) -> Reason:
        """The reason, at a place in a file."""
        return Reason(self.reason.what, path, subgraph, place=place, remedy=self.reason.remedy)


def to_install(extras: str) -> str:
    """The command that installs some of tflq's extras: "verify", or "tosa,verify"."""
    return f"pip install '.[{extras}]' in a checkout of tflq"


_NUMBERS = r"\b(subgraph|operator)(?:s\[| )(\d+)"
_TENSOR = r"tensor(?: \d+)? '([^']*)'"


class TflqError(Exception):
    """Base class of all errors of tflq. `NotApplicable`, which only a rule raises, is not one.

    Attributes:
        reasons: What is wrong: one `Reason` for each problem.
        message: The line above the reasons, or the only reason.
        remedy: What can be done about reasons that have no `remedy` of their own. Empty if nothing general can be said.

    Example:
        ```python
        try:
            tflq.convert("in.tflite", "out.tflite")
        except tflq.TflqError as error:
            print(error.reason.what, error.reason.remedy)
        ```
    """

    remedy = ""

    def __init__(self, message: str | Reason, reasons: Iterable[str | Reason] = (), *, remedy: str = "") -> None:
        if remedy:
            self.remedy = remedy
        listed = tuple(r if isinstance(r, Reason) else Reason(r) for r in reasons)
        self.reasons: tuple[Reason, ...] = listed or (message if isinstance(message, Reason) else Reason(message),)
        self.message = str(message)
        self._listed = bool(listed)
        super().__init__(str(self))

    @property
    def reason(self) -> Reason:
        """The first of the reasons."""
        return self.reasons[0]

    def __str__(self) -> str:
        if not self._listed:
            return self.message
        paths = {reason.path for reason in self.reasons}
        path = paths.pop() if len(paths) == 1 else ""
        head = self.message if self.message.startswith(path) else f"{path}: {self.message}"
        lines = _groups(self.reasons, path)
        return "\n  ".join([head, *lines, *([self.remedy] if self.remedy and not self.reasons[0].remedy else [])])

    def __repr__(self) -> str:
        text = str(self.reason)
        return f"{type(self).__name__}({text if len(text) < _SHORT else text[:_SHORT] + '…'!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self._state())

    def _state(self) -> dict[str, Any]:
        return dict(self.__dict__)


_SHORT = 100
_MOST_GROUPS = 10
_VARIABLE = r"'[^']*'|(?<=tensor )\d+"
"""The parts of a sentence in which reasons of one kind differ: names and numbers of tensors."""


def _groups(reasons: Sequence[Reason], path: str) -> list[str]:
    """A line for each kind of reason, the path left out. First those about the model's own operators, then those
    about operators inside of what they become."""
    kinds: dict[tuple[str, str], list[Reason]] = {}
    for reason in reasons:
        kinds.setdefault((re.sub(_VARIABLE, "", reason.what), reason.remedy), []).append(reason)
    ordered = sorted(kinds.values(), key=lambda alike: _is_inner(alike[0]))
    lines = [_line(alike, path) for alike in ordered[:_MOST_GROUPS]]
    rest = len(ordered) - _MOST_GROUPS
    return lines + ([f"and {rest} more kinds; --json, or `error.reasons` in Python, has all"] if rest > 0 else [])


def _is_inner(reason: Reason) -> bool:
    """Whether a reason names an operator that is not the one it is about."""
    dialect = re.match(r"(?:tfl|tosa|ext)\.(\w+)", reason.what)
    return dialect is not None and dialect[1] != reason.opcode.lower()


def _line(alike: Sequence[Reason], path: str) -> str:
    first = alike[0]
    if len(alike) == 1 or first.operator is None:
        whole = str(first)
        text = whole.removeprefix(path).removeprefix(":").lstrip() if path else whole
        return text if len(alike) == 1 else f"{text} (and {len(alike) - 1} more)"
    outside = f"{first.subgraph}:" if first.subgraph else ""
    text = f"{first.what}: {len(alike)} operators, the first {first.opcode} {outside}{first.operator}"
    return f"{text}; {first.remedy}" if first.remedy else text


def operators(count: int) -> str:
    """The number of operators, in words: "1 operator", "2 operators"."""
    return f"{count} operator{'s' * (count != 1)}"


def _restored(kind: type[TflqError], state: Mapping[str, Any]) -> TflqError:
    """The error that was pickled or copied, without its constructor, whose arguments `args` does not hold."""
    error = kind.__new__(kind)
    for name, value in state.items():
        setattr(error, name, value)
    error.args = (str(error),)
    return error


class InvalidModelError(TflqError):
    """The bytes are not a valid model."""

    def __init__(self, where: str | Location, what: str, *, hint: str = "", path: str = "") -> None:
        if isinstance(where, str):
            reason = Reason.within(where, what, path=path, remedy=hint)
        else:
            reason = Reason.at(where, what, remedy=hint)
        super().__init__(reason)

    def inside(self, outer: str) -> InvalidModelError:
        """Put the place of the error inside another one: "tensors[3]" inside "subgraphs[0]" is
        "subgraphs[0].tensors[3]".

        Args:
            outer: The outer place.
        """
        reason = self.reason
        place = ".".join(part for part in (outer, reason.place) if part)
        return InvalidModelError(place, reason.what, hint=reason.remedy, path=reason.path)

    def of_file(self, path: str) -> InvalidModelError:
        """Add the path of the file, unless the error has one.

        Args:
            path: The path.
        """
        reason = self.reason
        if not path or reason.path:
            return self
        error = InvalidModelError("", "")
        TflqError.__init__(error, replace(reason, path=path))
        return error

    @property
    def where(self) -> str:
        """The place in the file."""
        return self.reason.where


class UnsupportedError(TflqError):
    """The model is valid but cannot be converted as asked. `reasons` has an entry for each operator in the way."""


class VerificationError(TflqError):
    """IR or results break a rule that must hold: an op is illegal in its form, or two models differ."""


class OptionError(TflqError, ValueError):
    """An option, or a combination of options, makes no sense for the model, the format or the target."""


class FileError(TflqError, OSError):
    """A file cannot be read or written.

    Attributes:
        filename: The path, as in OSError.
        strerror: What is wrong, as in OSError.
        errno: The number of the error, as in OSError. None if there is none.
    """

    def __init__(self, path: str, what: str, *, remedy: str = "", errno: int | None = None) -> None:
        super().__init__(Reason(what, path, remedy=remedy))
        self.filename, self.strerror, self.errno = path, what, errno

    def _state(self) -> dict[str, Any]:
        return {**self.__dict__, "filename": self.filename, "strerror": self.strerror, "errno": self.errno}


class MissingPackageError(TflqError, ImportError):
    """A package that is not installed is needed. The remedy says how to install it."""

    def __init__(self, what: str, extras: str) -> None:
        super().__init__(Reason(what, remedy=to_install(extras)))


class ParseError(InvalidModelError):
    """The text form is not valid: `line` and `column` (from 1) are in the message, `excerpt` shows the place."""

    def __init__(self, file: str, line: int, column: int, reason: str, excerpt: str) -> None:
        TflqError.__init__(self, Reason(reason, file, place=f"{line}:{column}"))
        self.line = line
        self.column = column
        self.excerpt = excerpt
        self.message = f"{file}:{line}:{column}: {reason}\n{excerpt}"
        self.args = (self.message,)


def plain_numbers(document: Any) -> Any:
    """A document for JSON, which has finite numbers only: "NaN", "Infinity" and "-Infinity", which `float()` reads,
    stand for the others. Tuples become lists."""
    if isinstance(document, dict):
        return {key: plain_numbers(value) for key, value in document.items()}
    if isinstance(document, (list, tuple)):
        return [plain_numbers(value) for value in document]
    if isinstance(document, float) and not math.isfinite(document):
        return "NaN" if math.isnan(document) else "Infinity" if document > 0 else "-Infinity"
    return document
