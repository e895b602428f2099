"""Standard input and output: `-` as a model, and what is printed, which is written whole, or an error says so.

With PYTHONUNBUFFERED Python's own streams write once and drop the rest of what a pipe or a full disk does not take.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tflq.arguments import nearest
from tflq.errors import FileError, OptionError, Reason

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = [
    *(
        "FILE",
        "MODEL",
        "STREAM",
        "Undelivered",
        "check_output",
        "is_stream",
        "name_of",
        "open_standard_streams",
        "size_of",
    ),
    *("source", "stream_or_path", "write_output"),
]

STREAM = "-"


class _Model(click.Path):
    """The path of a model that is there: the errors are those of the library."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = os.fspath(value)
        if self.allow_dash and is_stream(path):
            return value
        if os.path.isdir(path):
            from tflq.flatbuffer.foreign import folder_error

            raise folder_error(path)
        if not os.path.exists(path):
            raise FileError(path, "there is no such file", remedy=_nearest_file(path), errno=errno.ENOENT)
        return super().convert(value, param, ctx)


def _nearest_file(path: str) -> str:
    """What to do where a file is not there."""
    folder, name = os.path.split(path)
    try:
        there = os.listdir(folder or os.curdir)
    except OSError:
        return f"there is no folder {folder} either"
    return nearest(name, there) or "check the path"


MODEL = _Model(dir_okay=False, allow_dash=True)
"""The path of a model as text, in which `-` is standard input and `./-` a file of that name."""
FILE = _Model(dir_okay=False, path_type=Path)
"""The path of a model that is no stream."""


class Undelivered(BaseException):
    """A standard stream does not take what is printed. `closed`: what reads it has ended, such as `head`; else `error`
    is for the user. It is no Exception, so that nothing between the printing and `main` handles it."""

    def __init__(self, stream: str, cause: OSError) -> None:
        super().__init__(stream, cause)
        self.closed = isinstance(cause, BrokenPipeError)
        self.error = FileError(stream, cause.strerror or str(cause), errno=cause.errno)


class _Whole(io.RawIOBase):
    """A standard stream whose writes loop until all is written. After an error it swallows what still comes."""

    def __init__(self, number: int, name: str) -> None:
        self._number = number
        self._name = name
        self._failed = False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def write(self, data: ReadableBuffer, /) -> int:
        left = memoryview(data).cast("B")
        size = len(left)
        while left and not self._failed:
            try:
                left = left[os.write(self._number, left) :]
            except BlockingIOError:
                select.select([], [self._number], [])
            except OSError as error:
                self._failed = True
                raise Undelivered(self._name, error) from error
        return size


def open_standard_streams() -> None:
    """Has standard output and error write all, or raise `Undelivered`; names of tensors that they cannot show are
    escaped. Terminals, and streams that are no files, stay as they are.

    The place of a stream that is closed is taken, lest the next file that is opened gets it, and what is printed.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)
    sys.stdout = _whole(1, "standard output", sys.stdout)
    sys.stderr = _whole(2, "standard error", sys.stderr) if sys.stderr is not None else sys.stderr


def _whole(number: int, name: str, stream: Any) -> Any:
    if stream is None:
        return io.TextIOWrapper(io.BufferedWriter(_Whole(number, name)), "utf-8", "backslashreplace")
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.reconfigure(errors="backslashreplace")
    if stream.isatty() or stream.fileno() != number:
        return stream
    stream.flush()
    buffer = io.BufferedWriter(_Whole(number, name))
    buffered = bool(stream.line_buffering)
    return io.TextIOWrapper(buffer, stream.encoding, stream.errors, None, buffered, stream.write_through)


class _Input(io.BytesIO):
    """What standard input held."""

    name = "<stdin>"


def is_stream(path: str | os.PathLike[str]) -> bool:
    return os.fspath(path) == STREAM


def stream_or_path(path: str, stream: int) -> str | int:
    """What `tflq.files` checks: `-` as the number of its stream."""
    return stream if is_stream(path) else path


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
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
