"""Small functions in C that the loops call, from `helpers.c`: each is written where a file uses it.

`scale_two` is TOSA's DOUBLE_ROUND with a shift above 31, without a branch: the high half of the doubled product, and a
division by a power of two, rounded half away from zero. It needs |a| < 2^31 - 2^(r - 1). Source: TOSA 1.0, RESCALE.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from tflq.base.files import resource

_CALL: Final = re.compile(r"\b(\w+)\(")
_MATH: Final = re.compile(r"\b(exp|log|sin|cos|tanh|erf|pow|sqrt)\(|\b(INFINITY|NAN)\b")


@cache
def _texts() -> dict[str, str]:
    """Each function by its name; one is defined before those that call it."""
    with open(resource("formats/c/helpers.c"), encoding="utf-8") as file:
        texts = file.read().strip().split("\n\n")[1:]
    return {name[1]: text for text in texts if (name := _CALL.search(text)) is not None}


def helpers(texts: Iterable[str]) -> list[str]:
    """The definitions of all functions that some text calls, in an order in which each is defined before its use."""
    used, wanted = set(_CALL.findall("\n".join(texts))), []
    for name, text in reversed(_texts().items()):
        if name in used:
            wanted.append(text)
            used |= set(_CALL.findall(text))
    return wanted[::-1]


def needs_math(texts: Iterable[str]) -> bool:
    """Whether a text uses `<math.h>`."""
    return any(_MATH.search(text) for text in texts)
