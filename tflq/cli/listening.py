"""What listens to the library's logger for the commands: lines on stderr, or the stage in a display."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tflq.logs import logger

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["Listening", "lines", "stages"]


class Listening:
    """A handler on the library's logger, until it is called."""

    def __init__(self, handler: logging.Handler) -> None:
        self._log = logger()
        self._handler, self._before = handler, self._log.level
        self._log.addHandler(handler)
        self._log.setLevel(logging.DEBUG)

    def __call__(self) -> None:
        self._log.removeHandler(self._handler)
        self._log.setLevel(self._before)


def lines(level: int) -> Listening:
    """Prints up to the level, without warnings: the commands print these themselves."""
    handler = logging.StreamHandler()
    handler.setLevel(level)
    handler.setFormatter(logging.Formatter("tflq: %(message)s"))
    handler.addFilter(lambda record: record.levelno < logging.WARNING)
    return Listening(handler)


def stages(display: Progress, task: TaskID, what: str) -> Listening:
    """Shows the stage that has begun."""
    return Listening(_Stages(display, task, what))


class _Stages(logging.Handler):
    def __init__(self, display: Progress, task: TaskID, what: str) -> None:
        super().__init__(logging.DEBUG)
        self._display, self._task, self._what = display, task, what

    def emit(self, record: logging.LogRecord) -> None:
        if stage := getattr(record, "begins", ""):
            self._display.update(self._task, description=f"{self._what}: {stage}")
