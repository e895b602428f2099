"""What the library logs, for commands: as lines for `-v`, or as the stage that a progress display shows.

Apart from the rest of `tflq.cli`, because most commands need no `logging`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tflq.logs import DEBUG, INFO, logger


@contextmanager
def spoken(count: int) -> Iterator[None]:
    """Prints what the library logs, as far as `-v`, given `count` times, asks for it. Warnings are left out: the
    commands print these themselves."""
    if not count:
        yield
        return
    handler = logging.StreamHandler()
    handler.setLevel(DEBUG if count > 1 else INFO)
    handler.setFormatter(logging.Formatter("tflq: %(message)s"))
    handler.addFilter(lambda record: record.levelno < logging.WARNING)
    with listening(handler):
        yield


@contextmanager
def listening(handler: logging.Handler) -> Iterator[None]:
    """Adds a handler to the library's logger for a while."""
    log = logger()
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


class Stages(logging.Handler):
    """Tells which stage of the library has begun."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.DEBUG)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        if stage := getattr(record, "begins", ""):
            self._tell(stage)
