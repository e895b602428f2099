"""Python's collector of cycles, paused while objects are made by the hundred thousand and none of them is garbage."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collector_paused"]

_LOCK = threading.Lock()
_paused = 0
_was_on = False


@contextmanager
def collector_paused() -> Iterator[None]:
    """Meanwhile no cycles are looked for; afterwards the collector is as it was. Threads may do so at the same time:
    the last one to end sets it going again."""
    global _paused, _was_on
    with _LOCK:
        if not _paused:
            _was_on = gc.isenabled()
            gc.disable()
        _paused += 1
    try:
        yield
    finally:
        with _LOCK:
            _paused -= 1
            if not _paused and _was_on:
                gc.enable()
