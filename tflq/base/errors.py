"""The errors that a caller can catch, the reasons that they carry, and the checks of a call's arguments.

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
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Protocol

    class _Location(Protocol):
        """Where an operator comes from, as `tflq.ir.core.Location` says it."""

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
    def at(cls, location: _Location | None, what: str, *, value: Any = None, remedy: str = "") -> Reason:
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

    def at(self, location: _Location | None) -> Reason:
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

    def __init__(self, where: str | _Location, what: str, *, hint: str = "", path: str = "") -> None:
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


# Arguments of a call. A value of the wrong kind is an `OptionError` that says what is expected.

_SHORT_VALUE = 60
_MANY = 32


def not_expected(name: str, value: object, expected: str, *, remedy: str = "") -> OptionError:
    """The error for an argument of the wrong kind."""
    text = repr(value)
    shown = text if len(text) <= _SHORT_VALUE else f"<{type(value).__name__}>"
    return OptionError(Reason(f"{name}={shown}: expected {expected}", value=value, remedy=remedy))


def choices(value: object, known: Iterable[str]) -> str:
    """The remedy for an unknown word: the nearest known one, and all of them unless they are many."""
    words = list(known)
    listed = f"known are {', '.join(words)}" if 0 < len(words) <= _MANY else ""
    return " ".join(filter(None, (nearest(value, words), listed)))


def unknown_target(target: object, known: Iterable[str], suffix: str = "", *, files: bool = True) -> OptionError:
    """The error for the name of a target that there is not. known: the names of those of files with the suffix, or of
    all. files: whether a target can be a file, too."""
    words = list(known)
    of = f" for .{suffix} files" if suffix else ""
    listed = f"known{of}: {', '.join(words)}{', and target files (.toml)' if files else ''}"
    remedy = " ".join(filter(None, (nearest(target, words), listed)))
    return OptionError(Reason(f"target '{target}' is not known", value=target, remedy=remedy))


def nearest(value: object, known: Iterable[str]) -> str:
    """A question that suggests the nearest of the known words; empty if none is near."""
    from difflib import get_close_matches

    near = get_close_matches(value, list(known), n=1) if isinstance(value, str) else []
    return f"did you mean '{near[0]}'?" if near else ""


def check_choice(name: str, value: object, known: Sequence[str], *, optional: bool = False) -> None:
    """One of some words, or None if it is optional."""
    if value is None and optional:
        return
    if not isinstance(value, str) or value not in known:
        raise OptionError(Reason(f"{name}={value!r} is not known", value=value, remedy=choices(value, known)))


def check_flags(**flags: object) -> None:
    """Each must be True or False."""
    for name, value in flags.items():
        if value is None or not hasattr(value, "__bool__"):
            raise not_expected(name, value, "True or False")


def check_number(name: str, value: Any, least: float, *, whole: bool = False, optional: bool = False) -> None:
    """A number that is at least `least`, or None if it is optional."""
    if value is None and optional:
        return
    try:
        number = operator.index(value) if whole else float(value)
    except (TypeError, ValueError):
        number = None
    if number is None or isinstance(value, (bool, str)):
        what = "a whole number" if whole else "a number"
        raise not_expected(name, value, f"{what}, {least:g} or more")
    if math.isnan(number) or number < least:
        raise OptionError(Reason(f"{name}={number:g} makes no sense", value=value, remedy=f"give {least:g} or more"))


def check_numbers(least: float, *, whole: bool = False, **numbers: Any) -> None:
    """Numbers that are at least `least`."""
    for name, value in numbers.items():
        check_number(name, value, least, whole=whole)


def check_path(name: str, value: object, *, optional: bool = True) -> None:
    """A path, or None where it is optional."""
    if not (isinstance(value, (str, os.PathLike)) or (value is None and optional)):
        raise not_expected(name, value, "a path")
    if value is not None and "\0" in str(value):
        raise not_expected(name, value, "a path, which has no NUL")


def check_source(name: str, source: object) -> None:
    """A model: a path, bytes or a file object."""
    if not (isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview)) or hasattr(source, "read")):
        raise not_expected(name, source, "a model: a path, bytes, or a file opened for reading bytes")
    if isinstance(source, (str, os.PathLike)):
        check_path(name, source)


def check_text(name: str, value: object, what: str) -> None:
    """A text, or None."""
    if not (value is None or isinstance(value, str)):
        raise not_expected(name, value, what)


def check_shapes(shapes: object) -> None:
    """Whole shapes of inputs by name, or None."""
    if shapes is None:
        return
    example = "{'image': (1, 224, 224, 3)}"
    if not isinstance(shapes, Mapping):
        raise not_expected("shapes", shapes, f"shapes by input name, such as {example}")
    for name, shape in shapes.items():
        if isinstance(shape, (str, bytes)) or not hasattr(shape, "__iter__"):
            raise not_expected(f"shapes[{name!r}]", shape, f"a sequence of whole numbers, as in {example}")
        for size in shape:
            check_number(f"shapes[{name!r}]", size, 0, whole=True)


def items(name: str, value: Any, kinds: tuple[type, ...], what: str) -> tuple[Any, ...]:
    """The items of a sequence, each of one of these kinds. For a single item instead of a sequence, the error says how
    to write it."""
    if isinstance(value, kinds):
        shown = repr(value) if isinstance(value, str) else "..."
        raise not_expected(name, value, f"a list of {what}", remedy=f"write {name}=[{shown}]")
    if value is None or not hasattr(value, "__iter__"):
        raise not_expected(name, value, f"a list of {what}", remedy="leave it out for none" if value is None else "")
    values = tuple(value)
    for i, item in enumerate(values):
        if not isinstance(item, kinds):
            raise not_expected(f"{name}[{i}]", item, f"a list of {what}")
    return values


# Faults in Python code of a user, reported with file, line and what was raised there, not as a bug of tflq.

_MEND = "mend the file"


def fault_of_file(error: BaseException, path: str) -> OptionError:
    """The error for what importing a file raised."""
    if isinstance(error, SyntaxError) and error.filename in (path, os.path.abspath(path)):
        text = f": {error.text.strip()}" if error.text else ""
        return OptionError(Reason(f"{error.msg}{text}", path, place=str(error.lineno or 1), remedy=_MEND))
    return OptionError(_raised(error, path, 1, "importing the file"))


def fault_of_rule(error: Exception, rule: Callable[..., Any], at: _Location | None, name: str) -> OptionError:
    """The error for an exception of a rule or for invalid IR from it. It names the operator's location or, without
    one, the operator."""
    reason = _raised(error, *_place(rule), f"the rule '{name_of(rule)}' for {at or name}")
    if at is not None:
        what = reason.what.replace(f": {at}: ", ": ", 1)  # the verifier says it as well
        place = at.function, at.operator, at.opcode, at.tensor
        reason = Reason(what, reason.path, *place, place=reason.place, remedy=reason.remedy)
    return OptionError(reason)


def fault_of_pass(error: BaseException, name: str, run: Callable[..., Any]) -> OptionError:
    """The error for what a pass raised, or for the invalid IR that it left."""
    return OptionError(_raised(error, *_place(run), f"the pass '{name}'"))


def name_of(rule: Callable[..., Any]) -> str:
    """The name of a rule in messages."""
    return getattr(rule, "__qualname__", "") or repr(rule)


def _place(function: Callable[..., Any]) -> tuple[str, int]:
    """The file and the line of a function, if it is written in Python."""
    code = getattr(function, "__code__", None)
    return ("", 1) if code is None else (code.co_filename, code.co_firstlineno)


def _raised(error: BaseException, path: str, line: int, who: str) -> Reason:
    """The reason, at the innermost line of the file that the error went through, or else at `line`."""
    from traceback import extract_tb

    files, frames = (path, os.path.abspath(path)), extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename in files and frame.lineno]
    if isinstance(error, VerificationError):
        did = f"makes invalid IR: {str(error).splitlines()[0]}"
    else:
        did = f"raises {type(error).__name__}" + (f": {error}" if str(error) else "")
    missing = error.name if isinstance(error, ImportError) else None
    remedy = f"install '{missing}' where tflq runs, or leave the import out" if missing else _MEND
    return Reason(f"{who} {did}", path, place=str(lines[-1] if lines else line), remedy=remedy)


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
