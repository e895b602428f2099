"""Bytes kept in a folder by key, proofs kept in one (`--cache DIR`), and the folder of this user (`user_cache`).

Any number of processes may share a folder: an entry is whole, or it is a miss. An entry is a file that begins with the
SHA-256 of its key and the rest; it is written under another name and renamed. That proves integrity, not origin: who
can write to the folder can make an entry, so nobody but its user may (`make_private`). The folder has shelves, each
with a share of the limit. When a shelf is too full, the entries that were not read for the longest time go.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from tflq.base.errors import FileError
from tflq.base.files import PACKAGE, FilePath, file_errors, replace_file
from tflq.base.results import Arrays, is_result

LOG = logging.getLogger(__name__)
_DIGEST: Final = 32  # bytes of a SHA-256


def user_cache() -> Path:
    """The folder of tflq among the caches of this user. FileError if the user has no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tflq"
    except RuntimeError as error:
        raise FileError("~", str(error), remedy="set XDG_CACHE_HOME to a folder for caches") from error


def make_private(folder: FilePath) -> None:
    """Makes a folder, with mode 0700, of which this user alone decides what is in it. FileError if it cannot be made;
    if it is there, and another user owns it or can write to it."""
    path = os.fspath(folder)
    with file_errors(path):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
        status = os.stat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise FileError(path, "this is not a folder", remedy="give a folder for the cache")
    if not hasattr(os, "geteuid"):
        return
    if status.st_uid != os.geteuid():
        what = f"this folder belongs to another user (number {status.st_uid}), and what is in a cache is believed"
        raise FileError(path, what, remedy="give a folder of your own")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        what = f"others can write to this folder (mode {status.st_mode & 0o777:o}), and what is in a cache is believed"
        raise FileError(
            path, what, remedy=f"chmod 700 {path}, if nobody else has written to it; or give another folder"
        )


class DiskCache:
    """A folder of at most `limit` bytes, of this user alone: FileError if it is not (`make_private`). Later errors only
    cost time; a result that cannot be kept is logged."""

    def __init__(self, folder: FilePath, limit: int, shelves: int = 256) -> None:
        make_private(folder)
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
        return content if _digest(key, content) == data[:_DIGEST] else None

    def put(self, key: str, content: bytes) -> None:
        """Keeps the content, unless it is larger than a shelf."""
        if len(content) + _DIGEST > self._most:
            return
        place = self._place(key)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            replace_file(place, [_digest(key, content), content])
            self._trim(place.parent)
        except OSError as error:
            LOG.warning("%s: a result is not kept: %s", place, error)

    def _place(self, key: str) -> Path:
        digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
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


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(key.encode()).digest() + content).digest()


LIMIT: Final = 256 << 20
"""Bytes that a folder of proofs may hold."""

SHELVES: Final = 16
"""Of a folder of proofs: few, so that a large table fits on one."""

Argument: TypeAlias = np.ndarray | int | float | str | bool


class ProofCache:
    """A folder of results of slow functions of numbers. FileError if it cannot be made, or is not this user's alone.

    A key is the SHA-256 of the function, the source of `tflq.numerics`, and the arguments. What is read has the number,
    types and shapes of arrays that the function says it returns (`base.results`), else it is a miss.
    """

    def __init__(self, folder: FilePath, limit: int = LIMIT) -> None:
        self._entries = DiskCache(folder, limit, SHELVES)

    def __call__(self, function: Callable[..., Arrays], *arguments: Argument) -> Arrays:
        """`function(*arguments)`, read if it is known. The function must be pure, and one of `tflq.numerics`."""
        key = _key(function, arguments)
        known = self._entries.get(key)
        entry = None if known is None else _unpacked(known)
        if entry is not None and is_result(function, arguments, entry):
            return entry
        arrays = function(*arguments)
        if is_result(function, arguments, arrays):
            self._entries.put(key, _packed(arrays))
        return arrays


def _key(function: Callable[..., object], arguments: Sequence[Argument]) -> str:
    owner = getattr(function, "__self__", None)  # the class, if it is a method of one
    place = [function] if owner is None else [owner, function]
    name = ".".join([place[0].__module__, *(each.__qualname__ for each in place)])
    digest = hashlib.sha256(f"{name} {_revision()}".encode())
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            digest.update(f"{argument.dtype.str}{argument.shape}".encode())
            digest.update(np.ascontiguousarray(argument).data)
        else:
            digest.update(f"{type(argument).__name__} {argument!r}".encode())
    return digest.hexdigest()


@cache
def _revision() -> str:
    """Tells different states of the code of `tflq.numerics` apart."""
    digest = hashlib.sha256()
    for path in sorted(Path(PACKAGE, "numerics").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _packed(arrays: Arrays) -> bytes:
    stream = io.BytesIO()
    for array in arrays:
        np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def _unpacked(content: bytes) -> Arrays | None:
    """The arrays of an entry; None if it is something else."""
    stream = io.BytesIO(content)
    arrays: list[np.ndarray] = []
    try:
        while stream.tell() < len(content):
            arrays.append(np.lib.format.read_array(stream, allow_pickle=False))  # type: ignore[no-untyped-call]
    except (EOFError, MemoryError, OverflowError, ValueError):
        return None
    return arrays
