"""What runs found, kept by content: the same bytes on the same inputs in the same interpreter give the same.

Any number of processes may use a folder at once: a file is complete or not there, and one that is gone is a miss.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import numpy as np

import tflq.verification
from tflq.files import replace_file
from tflq.sweep.fingerprint import cpu_name
from tflq.verification.worker import receive, send

__all__ = ["Cache", "Originals", "Shelves", "surroundings"]

SHELVES: Final = 256
MOST: Final = 2 << 30  # bytes of a folder


class Shelves:
    """A folder of at most `most` bytes: it has 256 shelves, and what was used longest ago goes when one is full.

    What a key does not say is in it, too: the versions of the interpreter, numpy and TOSA's tools, the CPU (float
    kernels are chosen by it), and the source of the package that verifies.
    """

    def __init__(self, folder: Path, most: int = MOST) -> None:
        self._folder = folder
        self._most = most // SHELVES

    def get(self, key: str) -> bytes | None:
        place = self._place(key)
        try:
            data = place.read_bytes()
            os.utime(place)
        except OSError:
            return None
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keeps it, unless it is larger than a shelf, or the disk does not take it."""
        if len(data) > self._most:
            return
        place = self._place(key)
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            replace_file(place, [data])
            self._tidy(place.parent)

    def _place(self, key: str) -> Path:
        digest = hashlib.sha256(f"{surroundings()} {key}".encode()).hexdigest()
        return self._folder / digest[:2] / digest

    def _tidy(self, shelf: Path) -> None:
        """Takes files from a shelf that is too full; another process may be at the same."""
        found = []
        for entry in os.scandir(shelf):
            with suppress(FileNotFoundError):
                status = entry.stat()
                found.append((status.st_mtime_ns, status.st_size, entry.path))
        spare = sum(size for _, size, _ in found) - self._most
        for _, size, path in sorted(found):
            if spare <= 0:
                return
            with suppress(FileNotFoundError):
                os.unlink(path)
            spare -= size


class Cache:
    """JSON documents."""

    def __init__(self, folder: Path) -> None:
        self._shelves = Shelves(folder)

    def get(self, key: str) -> dict[str, Any] | None:
        data = self._shelves.get(key)
        try:
            document: dict[str, Any] | None = None if data is None else json.loads(data)
        except ValueError:
            return None
        return document

    def put(self, key: str, document: dict[str, Any]) -> None:
        self._shelves.put(key, json.dumps(document).encode())


@dataclass
class Originals:
    """Outputs of one model, by kernels, entry and inputs: `tflq.verification.Recorded`.

    model: the SHA-256 of the file. hits: how often outputs were there.
    """

    shelves: Shelves
    model: str
    hits: int = 0

    def get(self, kernels: str, entry: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        data = self.shelves.get(self._key(kernels, entry, inputs))
        if data is None:
            return None
        try:
            _, outputs = receive(io.BytesIO(data))
        except (EOFError, LookupError, TypeError, ValueError):  # cut off when the machine went down
            return None
        self.hits += 1
        return outputs

    def put(self, kernels: str, entry: str, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        stream = io.BytesIO()
        send(stream, {}, outputs)
        self.shelves.put(self._key(kernels, entry, inputs), stream.getvalue())

    def _key(self, kernels: str, entry: str, inputs: Sequence[np.ndarray]) -> str:
        stream = io.BytesIO()
        send(stream, {"kernels": kernels, "entry": entry}, inputs)
        return f"{self.model} {hashlib.sha256(stream.getbuffer()).hexdigest()}"


@cache
def surroundings() -> str:
    """A digest of what results rest on beside the models, the inputs and the options."""
    digest = hashlib.sha256(f"{cpu_name()}\n".encode())
    for name in ("ai-edge-litert", "tensorflow", "numpy", "tosa-tools"):
        try:
            digest.update(f"{name} {version(name)}\n".encode())
        except PackageNotFoundError:
            digest.update(f"{name} -\n".encode())
    for path in sorted(Path(tflq.verification.__path__[0]).glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
