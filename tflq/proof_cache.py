"""Proofs kept in a folder, by what went into them: `--cache DIR`.

An entry is a file whose name is the SHA-256 of the function, the source of `tflq.numerics`, and the arguments. It is
written beside its place and renamed, so any number of processes may share a folder; what is damaged is computed anew.
Of a folder that outgrows its limit, the entries that were not read for the longest time go.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from tflq.files import file_errors, replace_file
from tflq.resources import PACKAGE

__all__ = ["LIMIT", "Argument", "Arrays", "ProofCache"]

LIMIT: Final = 256 << 20
"""Bytes that a folder may hold."""

LOG = logging.getLogger(__name__)
_SUFFIX: Final = ".proof"

Argument: TypeAlias = np.ndarray | int | float | str | bool
Arrays: TypeAlias = Sequence[np.ndarray]


class ProofCache:
    """A folder of what slow functions of numbers gave. FileError if it cannot be made; what goes wrong later costs only
    time, and is logged."""

    def __init__(self, folder: str | os.PathLike[str], limit: int = LIMIT) -> None:
        self.folder = Path(folder)
        self.limit = limit
        self._wrote = False
        with file_errors(folder):
            self.folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, function: Callable[..., Arrays], *arguments: Argument) -> Arrays:
        """`function(*arguments)`, read where it is known. The function has to be pure, and of `tflq.numerics`."""
        path = self.folder / (_key(function, arguments) + _SUFFIX)
        known = _read(path)
        if known is None:
            known = function(*arguments)
            self._write(path, known)
        return known

    def trim(self) -> None:
        """Removes the entries unread for the longest time where this wrote one and there are too many."""
        if not self._wrote:
            return
        self._wrote = False
        with suppress(OSError):  # another process may have removed it
            found = sorted(self.folder.glob(f"*{_SUFFIX}"), key=lambda path: path.stat().st_mtime_ns)
            excess = sum(path.stat().st_size for path in found) - self.limit
            for path in found:
                if excess <= 0:
                    break
                excess -= path.stat().st_size
                path.unlink(missing_ok=True)

    def _write(self, path: Path, arrays: Arrays) -> None:
        content = _packed(arrays)
        try:
            replace_file(path, [hashlib.sha256(content).digest(), content])
            self._wrote = True
        except OSError as error:
            LOG.warning("%s: a result is not kept: %s", path, error)


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


def _read(path: Path) -> Arrays | None:
    """The arrays of an entry; None if there is none that is whole."""
    try:
        data = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    digest, content = data[:32], data[32:]
    if hashlib.sha256(content).digest() != digest:
        return None
    stream = io.BytesIO(content)
    arrays: list[np.ndarray] = []
    while stream.tell() < len(content):
        arrays.append(np.load(stream, allow_pickle=False))
    return arrays
