"""The library's logger, `tflq`. It is silent until the caller gives it, or the root logger, a handler.

INFO: a line for each stage of a conversion, with its seconds. DEBUG: also one for each pass, and one when a stage
begins (its record has `begins`). WARNING: what the report warns of.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from logging import Logger

DEBUG: Final = 10
INFO: Final = 20
WARNING: Final = 30
"""The levels of `logging`, which is not imported if nobody else has: then no handler can listen."""


def logger() -> Logger:
    import logging

    library = logging.getLogger("tflq")
    if not library.handlers:
        library.addHandler(logging.NullHandler())
    return library


def log(level: int, text: str, *values: object, extra: Mapping[str, Any] | None = None) -> None:
    """Logs a text with values in it, if anybody may listen."""
    if "logging" in sys.modules:
        logger().log(level, text, *values, extra=extra)


@contextmanager
def stage(what: str, level: int = INFO) -> Iterator[None]:
    """Logs that a stage begins, and how long it took. Whoever handles an error logs it."""
    log(DEBUG, "%s ...", what, extra={"begins": what})
    start = time.perf_counter()
    yield
    log(level, "%s: %.3f s", what, time.perf_counter() - start)
