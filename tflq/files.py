"""Output files are never half there: they are written beside their place and renamed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tflq.errors import FileError

__all__ = ["file_errors", "replace_file"]


@contextmanager
def file_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """What the system says against reading or writing a file is a FileError."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise FileError(os.fspath(path), error.strerror or str(error), errno=error.errno) from error


def replace_file(destination: Path, pieces: Iterable[bytes | bytearray | memoryview]) -> None:
    """Writes pieces beside a file's place and renames; what is no regular file, such as a pipe, is written. A link is
    written through: the file that it leads to is replaced. FileError if that cannot be."""
    with file_errors(destination):
        _replace(destination.resolve() if destination.is_symlink() else destination, pieces)


def _replace(destination: Path, pieces: Iterable[bytes | bytearray | memoryview]) -> None:
    if destination.exists() and not destination.is_file():
        with destination.open("wb") as file:
            file.writelines(pieces)
        return
    temporary = destination.with_name(f".{destination.name}.{os.urandom(4).hex()}")
    try:
        with temporary.open("xb") as file:
            file.writelines(pieces)
        temporary.replace(destination)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
