"""What can become of a model under a target."""

from __future__ import annotations

from typing import Final, Literal, get_args

__all__ = ["ACCEPTED", "PASSING", "RETRIED", "STATUSES", "Status"]

Status = Literal[
    "ok",  # converted, and equal to the original
    "differs",  # the converted model gives something else, or does not run
    "refused",  # it cannot be converted as asked: `reasons` says why
    "invalid",  # not a valid model
    "original-fails",  # converted, but the interpreter does not run the original: nothing to compare with
    "unavailable",  # the model could not be had
    "checksum",  # the model is another one than was pinned
    "timeout",
    "out-of-memory",
    "crash",  # the process was killed by a signal, or ended without an answer
    "internal-error",  # a bug of tflq's own
    "flaky",  # two tries gave two answers
]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)

ACCEPTED: Final[frozenset[Status]] = frozenset({"ok", "original-fails"})
"""As expected, where nothing else is said of a model."""

PASSING: Final[frozenset[Status]] = frozenset({"ok"})

RETRIED: Final[frozenset[Status]] = frozenset({"differs", "timeout", "out-of-memory", "crash", "internal-error"})
"""Tried once more: what gives another status then is flaky."""
