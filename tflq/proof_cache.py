"""Proofs kept in a folder, by what went into them: `--cache DIR`.

A key is the SHA-256 of the function, the source of `tflq.numerics`, and the arguments. Any number of processes may
share a folder, and what is damaged is computed anew.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from tflq.disk_cache import DiskCache
from tflq.files import file_errors
from tflq.resources import PACKAGE

__all__ = ["LIMIT", "Argument", "Arrays", "ProofCache"]

LIMIT: Final = 256 << 20
"""Bytes that a folder may hold."""

SHELVES: Final = 16
"""Few, so that a large table fits on one."""

Argument: TypeAlias = np.ndarray | int | float | str | bool
Arrays: TypeAlias = Sequence[np.ndarray]


class ProofCache:
    """A folder of what slow functions of numbers gave. FileError if it cannot be made."""

    def __init__(self, folder: str | os.PathLike[str], limit: int = LIMIT) -> None:
        with file_errors(folder):
            os.makedirs(folder, exist_ok=True)
        self._entries = DiskCache(folder, limit, SHELVES)

    def __call__(self, function: Callable[..., Arrays], *arguments: Argument) -> Arrays:
        """`function(*arguments)`, read where it is known. The function has to be pure, and of `tflq.numerics`."""
        key = _key(function, arguments)
        if (known := self._entries.get(key)) is not None:
            return _unpacked(known)
        arrays = function(*arguments)
        self._entries.put(key, _packed(arrays))
        return arrays


def _key(function: Callable[..., object], arguments: Sequence[Argument]) -> str:
    digest = hashlib.sha256(f"{function.__module__}.{function.__qualname__} {_revision()}".encode())
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            digest.update(f"{argument.dtype.str}{argument.shape}".encode())
            digest.update(np.ascontiguousarray(argument).data)
        else:
            digest.update(f"{type(argument).__name__} {argument!r}".encode())
    return digest.hexdigest()


@cache
def _revision() -> str:
    """What tells one state of the code that computes from another."""
    digest = hashlib.sha256()
    for path in sorted(Path(PACKAGE, "numerics").glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _packed(arrays: Arrays) -> bytes:
    stream = io.BytesIO()
    for array in arrays:
        np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def _unpacked(content: bytes) -> Arrays:
    stream = io.BytesIO(content)
    arrays: list[np.ndarray] = []
    while stream.tell() < len(content):
        arrays.append(np.load(stream, allow_pickle=False))
    return arrays
