"""Checks of a call's arguments. A value of the wrong kind is an `OptionError` that says what is expected."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tflq.base.errors import OptionError, Reason

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
