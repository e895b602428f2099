"""A job of a process in which the exception of a signal is lost."""

from __future__ import annotations

import time
from pathlib import Path


class _Finalized:
    """Python prints what a finalizer raises, and goes on."""

    def __init__(self, entered: Path) -> None:
        self._entered = entered

    def __del__(self) -> None:
        self._entered.touch()
        time.sleep(30)


def finalized(entered: Path | None) -> None:
    """Says by a file that it is in a finalizer, and stays there; without a file it does nothing."""
    if entered is not None:
        _Finalized(entered)
