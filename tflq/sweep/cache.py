"""What runs found, kept by content: the same bytes on the same inputs in the same interpreter give the same.

What a key does not say is added to it: the versions of the interpreter, numpy and TOSA's tools, the CPU (float kernels
are chosen by it), and the source of the package that verifies.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import numpy as np

import tflq.verification
from tflq.disk_cache import DiskCache
from tflq.sweep.fingerprint import cpu_name
from tflq.verification.worker import receive, send

__all__ = ["Cache", "Originals", "surroundings"]

MOST: Final = 2 << 30  # bytes of a folder


class Cache:
    """JSON documents."""

    def __init__(self, folder: Path) -> None:
        self._entries = DiskCache(folder, MOST)

    def get(self, key: str) -> dict[str, Any] | None:
        data = self._entries.get(f"{surroundings()} {key}")
        document: dict[str, Any] | None = None if data is None else json.loads(data)
        return document

    def put(self, key: str, document: dict[str, Any]) -> None:
        self._entries.put(f"{surroundings()} {key}", json.dumps(document).encode())


class Originals:
    """Outputs of one model, by kernels, entry and inputs: `tflq.verification.options.Recorded`."""

    def __init__(self, folder: Path, model: str) -> None:
        """model: the SHA-256 of the file."""
        self._entries = DiskCache(folder, MOST)
        self._model = model
        self.hits = 0
        """How often outputs were there."""

    def get(self, kernels: str, entry: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        data = self._entries.get(self._key(kernels, entry, inputs))
        if data is None:
            return None
        _, outputs = receive(io.BytesIO(data))
        self.hits += 1
        return outputs

    def put(self, kernels: str, entry: str, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        stream = io.BytesIO()
        send(stream, {}, outputs)
        self._entries.put(self._key(kernels, entry, inputs), stream.getvalue())

    def _key(self, kernels: str, entry: str, inputs: Sequence[np.ndarray]) -> str:
        stream = io.BytesIO()
        send(stream, {"kernels": kernels, "entry": entry}, inputs)
        return f"{surroundings()} {self._model} {hashlib.sha256(stream.getbuffer()).hexdigest()}"


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
