"""The bytes of a file: mapped where it has a path that can be."""

from __future__ import annotations

import mmap
import os
from typing import IO, TypeAlias

from tflq.base.files import FilePath, file_errors

Source: TypeAlias = FilePath | bytes | bytearray | memoryview | IO[bytes]


def open_source(source: Source) -> tuple[memoryview, str]:
    """The bytes of a source, and its path if it has one."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return memoryview(source).cast("B").toreadonly(), ""
    if not isinstance(source, (str, os.PathLike)):
        return memoryview(source.read()), str(getattr(source, "name", ""))
    path = os.fspath(source)
    with file_errors(path), open(path, "rb") as file:
        try:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)), path
        except (ValueError, OSError):  # an empty file, or one that cannot be mapped, such as a pipe
            return memoryview(file.read()), path
