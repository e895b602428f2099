"""Python's collector of cycles, made rare during a conversion.

A conversion makes hundreds of thousands of objects, few of them garbage. The collector is not turned off: if threads
convert without end, one of them is always converting, and nothing would ever be collected. With these thresholds a
network of some thousand operators is converted before the first collection.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

RARELY: Final = 50_000
"""Objects made, less those freed, before a collection. Python's own number is below a thousand: it would search a
hundred times during imports or a conversion, and find nothing."""
_RARE: Final = (RARELY, 2, 3)
"""Older objects are searched after fewer collections than usual."""

_LOCK = threading.Lock()
_running = 0
_before: tuple[int, ...] = ()


@contextmanager
def collected_rarely() -> Iterator[None]:
    """Cycles are searched rarely inside, or as rarely as before if that is rarer. Threads may do this at the same time:
    the last one to end restores the thresholds, unless the program has set others."""
    global _running, _before
    with _LOCK:
        if not _running:
            _before = gc.get_threshold()
            if 0 < _before[0] < _RARE[0]:  # 0: never
                gc.set_threshold(*_RARE)
        _running += 1
    try:
        yield
    finally:
        with _LOCK:
            _running -= 1
            if not _running and gc.get_threshold()[0] == _RARE[0]:
                gc.set_threshold(*_before)
