"""Output files are never half there: they are written beside their place and renamed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

__all__ = ["replace_file"]


def replace_file(destination: Path, pieces: Iterable[bytes | bytearray | memoryview]) -> None:
    """Writes pieces beside a file's place and renames; what is no regular file, such as a pipe, is written."""
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
