"""Patterns of tensors' names, as annotations and recipes have them.

`*`: any characters, `?`: one; `re:` and a regular expression of Python, which the whole name has to fit.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from typing import Final

from tflq.errors import OptionError, Reason

_REGULAR: Final = "re:"


def matcher(pattern: str) -> Callable[[str], object]:
    """Whether a name fits a pattern. OptionError for a regular expression that is not valid."""
    if pattern.startswith(_REGULAR):
        try:
            return re.compile(pattern.removeprefix(_REGULAR), re.DOTALL).fullmatch
        except re.error as error:
            remedy = "write a regular expression of Python behind 're:'"
            raise OptionError(Reason(f"'{pattern}': {error}", value=pattern, remedy=remedy)) from error
    words = {"*": ".*", "?": "."}
    expression = "".join(words.get(letter, re.escape(letter)) for letter in pattern)
    return re.compile(expression, re.DOTALL).fullmatch


def near(pattern: str, names: Iterable[str]) -> str:
    """What to do about a pattern that fits none of the names: those near it."""
    found = difflib.get_close_matches(pattern, list(names), 3, 0.4)
    return f"near are {', '.join(map(repr, found))}" if found else "see `tflq inspect` for names"
