"""Bytes kept in a folder by key, for any number of processes at once: an entry is whole, or it is a miss.

An entry is a file that begins with the SHA-256 of the rest. It is written under another name and renamed. The folder
has shelves, each with a share of the limit. When one is too full, what was not read for the longest time goes.
"""

from __future__ import annotations

import hashlib
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from tflq.files import replace_file

__all__ = ["DiskCache"]

LOG = logging.getLogger(__name__)
_DIGEST: Final = 32  # bytes of a SHA-256


class DiskCache:
    """A folder of at most `limit` bytes. What goes wrong costs only time; what cannot be kept is logged."""

    def __init__(self, folder: str | os.PathLike[str], limit: int, shelves: int = 256) -> None:
        self._folder = Path(folder)
        self._shelves = shelves
        self._most = limit // shelves

    def get(self, key: str) -> bytes | None:
        place = self._place(key)
        try:
            data = place.read_bytes()
            os.utime(place)
        except OSError:
            return None
        content = data[_DIGEST:]
        return content if hashlib.sha256(content).digest() == data[:_DIGEST] else None

    def put(self, key: str, content: bytes) -> None:
        """Keeps it, unless it is larger than a shelf."""
        if len(content) + _DIGEST > self._most:
            return
        place = self._place(key)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            replace_file(place, [hashlib.sha256(content).digest(), content])
            self._trim(place.parent)
        except OSError as error:
            LOG.warning("%s: a result is not kept: %s", place, error)

    def _place(self, key: str) -> Path:
        digest = hashlib.sha256(key.encode()).hexdigest()
        return self._folder / f"{int(digest[:2], 16) % self._shelves:02x}" / digest

    def _trim(self, shelf: Path) -> None:
        """Removes files from a shelf that is too full; another process may do the same."""
        entries = []
        for entry in os.scandir(shelf):
            with suppress(FileNotFoundError):
                status = entry.stat()
                entries.append((status.st_mtime_ns, status.st_size, entry.path))
        excess = sum(size for _, size, _ in entries) - self._most
        for _, size, path in sorted(entries):
            if excess <= 0:
                return
            with suppress(FileNotFoundError):
                os.unlink(path)
            excess -= size
