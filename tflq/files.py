"""Output files are never half there: they are written beside their place and renamed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from tflq.errors import FileError

__all__ = ["file_errors", "replace_file", "tidy"]


@contextmanager
def file_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """What the system says against reading or writing a file is a FileError."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise FileError(os.fspath(path), error.strerror or str(error), errno=error.errno) from error


def replace_file(destination: str | os.PathLike[str], pieces: Iterable[bytes | bytearray | memoryview]) -> None:
    """Writes pieces beside a file's place and renames; what is no regular file, such as a pipe, is written. A link is
    written through: the file that it leads to is replaced. FileError if that cannot be."""
    with file_errors(destination):
        path = os.fspath(destination)
        _replace(os.path.realpath(path) if os.path.islink(path) else path, pieces)


def _replace(path: str, pieces: Iterable[bytes | bytearray | memoryview]) -> None:
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            file.writelines(pieces)
        return
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.urandom(4).hex()}")
    try:
        with open(temporary, "xb") as file:
            file.writelines(pieces)
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def tidy(path: str | os.PathLike[str]) -> str:
    """A path without "." and doubled slashes, as `pathlib` writes it; ".." stays, as it may lead out of a link."""
    text = os.fspath(path)
    return text if ".." in text else os.path.normpath(text)
