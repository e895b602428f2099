"""What verification found, kept by content: the same bytes on the same inputs in the same interpreter give the same."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import tflq.verification
from tflq.files import replace_file

__all__ = ["Cache"]


class Cache:
    """A folder of JSON documents. What the key does not say is in it, too: the versions of the interpreter, numpy and
    TOSA's tools, and the source of the package that verifies."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> dict[str, Any] | None:
        try:
            document: dict[str, Any] = json.loads(self._place(key).read_bytes())
        except (OSError, ValueError):
            return None
        return document

    def put(self, key: str, document: dict[str, Any]) -> None:
        place = self._place(key)
        place.parent.mkdir(parents=True, exist_ok=True)
        replace_file(place, [json.dumps(document).encode()])

    def _place(self, key: str) -> Path:
        digest = hashlib.sha256(f"{_surroundings()} {key}".encode()).hexdigest()
        return self._folder / digest[:2] / f"{digest}.json"


@cache
def _surroundings() -> str:
    digest = hashlib.sha256()
    for name in ("ai-edge-litert", "tensorflow", "numpy", "tosa-tools"):
        try:
            digest.update(f"{name} {version(name)}\n".encode())
        except PackageNotFoundError:
            digest.update(f"{name} -\n".encode())
    for path in sorted(Path(tflq.verification.__path__[0]).glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
