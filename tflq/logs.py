"""The library's logger, `tflq`: silent until the caller gives it, or the root logger, a handler.

INFO has a line per stage of a conversion, with its seconds; DEBUG one per pass, too, and one when a stage begins
(marked `begins`). WARNING has what the report warns of.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["LOG", "stage"]

LOG: Final = logging.getLogger("tflq")


@contextmanager
def stage(what: str, level: int = logging.INFO) -> Iterator[None]:
    """Logs that a stage begins, and how long it took; what it raises is logged by whoever handles it."""
    LOG.debug("%s ...", what, extra={"begins": what})
    start = time.perf_counter()
    yield
    LOG.log(level, "%s: %.3f s", what, time.perf_counter() - start)
