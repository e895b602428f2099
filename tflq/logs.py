"""The library's logger, `tflq`: silent until the caller gives it, or the root logger, a handler.

INFO has a line per stage of a conversion, with its seconds; DEBUG one per pass, too, and one when a stage begins
(marked `begins`). WARNING has what the report warns of. Where nobody has imported `logging` there is no handler, and
it is not imported to find that out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from logging import Logger

__all__ = ["DEBUG", "INFO", "WARNING", "log", "logger", "stage"]

DEBUG: Final = 10
INFO: Final = 20
WARNING: Final = 30
"""The levels, as `logging` has them."""


def logger() -> Logger:
    """The logger itself."""
    import logging

    found = logging.getLogger("tflq")
    if not found.handlers:
        found.addHandler(logging.NullHandler())
    return found


def log(level: int, text: str, *values: object, extra: Mapping[str, Any] | None = None) -> None:
    """A line with values in it, if anybody may listen."""
    if "logging" in sys.modules:
        logger().log(level, text, *values, extra=extra)


@contextmanager
def stage(what: str, level: int = INFO) -> Iterator[None]:
    """Logs that a stage begins, and how long it took; what it raises is logged by whoever handles it."""
    log(DEBUG, "%s ...", what, extra={"begins": what})
    start = time.perf_counter()
    yield
    log(level, "%s: %.3f s", what, time.perf_counter() - start)
