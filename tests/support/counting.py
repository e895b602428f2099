"""Work that is counted, not timed: the same on any machine, however busy."""

from __future__ import annotations

import sys
from collections.abc import Callable


def calls(function: Callable[[], object]) -> int:
    """How many functions a call calls."""
    count = 0

    def profile(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event.endswith("call")

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count
