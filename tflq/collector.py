"""Python's collector of cycles, made rare while objects are made by the hundred thousand and few of them are garbage.

It is not turned off: where threads convert without end, one is always converting, and nothing would ever be collected.
With these thresholds the conversion of a network of some thousand operators ends before the first collection.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["RARELY", "collected_rarely"]

RARELY: Final = 50_000
"""Objects to be made, less those freed, before a collection. Python's number is below a thousand: it searches a hundred
times while modules are imported or a model is converted, and finds nothing."""
_RARE: Final = (RARELY, 2, 3)
"""The older objects are looked through after fewer collections than usual."""

_LOCK = threading.Lock()
_running = 0
_before: tuple[int, ...] = ()


@contextmanager
def collected_rarely() -> Iterator[None]:
    """Meanwhile cycles are looked for rarely, or as rarely as they were; afterwards as before. Threads may do so at the
    same time: the last one to end sets it back, unless the program has set something else."""
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
