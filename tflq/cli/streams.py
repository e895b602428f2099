"""`-` as a model: standard input and output, as bytes."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from typing import Any

import click

from tflq.errors import OptionError, Reason

__all__ = ["MODEL", "STREAM", "check_output", "is_stream", "name_of", "size_of", "source", "write_output"]

STREAM = "-"
MODEL = click.Path(exists=True, dir_okay=False, allow_dash=True)
"""The path of a model as text, in which `-` is standard input and `./-` a file of that name."""
CLOSED = 141
"""The exit code where what reads a model from standard output ends early, as that of a process that SIGPIPE ends."""


class _Input(io.BytesIO):
    """What standard input held."""

    name = "<stdin>"


def is_stream(path: str | os.PathLike[str]) -> bool:
    return os.fspath(path) == STREAM


def name_of(path: str) -> str:
    """What messages call the source."""
    return "standard input" if is_stream(path) else path


def source(path: str) -> str | _Input:
    """What the library reads a model from: a path, or all of standard input."""
    if not is_stream(path):
        return path
    if sys.stdin.isatty():
        raise OptionError(Reason("standard input is a terminal", value=path, remedy="pipe a model in, or name a file"))
    return _Input(sys.stdin.buffer.read())


def size_of(given: str | _Input) -> int:
    """Bytes of a source."""
    return len(given.getbuffer()) if isinstance(given, _Input) else os.stat(given).st_size


def check_output(*, text: bool) -> None:
    """OptionError if standard output is a terminal: that gets no models but in the form of text."""
    if sys.stdout.isatty() and not text:
        raise OptionError(Reason("standard output is a terminal", value=STREAM, remedy="redirect it, or name a file"))


def write_output(pieces: Iterable[Any]) -> None:
    """Writes a model to standard output."""
    sys.stdout.flush()
    try:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        click.get_current_context().exit(CLOSED)
