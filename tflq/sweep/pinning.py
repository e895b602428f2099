"""Pins: the SHA-256 of models that were fetched, written into the manifest that lists them.

Only lines change: `sha256` and `verified` of an entry. What a manifest says else, and how, stays as it is.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from tflq.errors import FileError
from tflq.files import file_errors, replace_file
from tflq.sweep.manifest import place_name
from tflq.sweep.result import Result

__all__ = ["hashes_of", "pin"]

UNREAD: Final = ("invalid", "checksum")


def hashes_of(results: Iterable[Result]) -> dict[str, str]:
    """The SHA-256 of each model that was read, by id."""
    return {
        result["id"]: result["model"]["sha256"]
        for result in results
        if result["status"] not in UNREAD and result.get("model", {}).get("sha256")
    }


def pin(path: Path, hashes: Mapping[str, str]) -> list[str]:
    """Writes the hashes of entries of a manifest that have a URL or a handle, and no hash. Returns their ids.

    FileError if the manifest is written in a way that its lines cannot be told apart; then it stays as it is.
    """
    with file_errors(path):
        text = path.read_text("utf-8")
    document = tomllib.loads(text)
    found = {i: id for i, entry in enumerate(document.get("model", [])) if (id := _unpinned(entry)) in hashes}
    if not found:
        return []
    for i, id in found.items():
        document["model"][i] |= {"sha256": hashes[id], "verified": True}
    edited = _edited(text, {i: hashes[id] for i, id in found.items()})
    try:
        same = tomllib.loads(edited) == document
    except tomllib.TOMLDecodeError:
        same = False
    if not same:
        raise FileError(str(path), "its entries are not plain [[model]] tables", remedy="write the pins by hand")
    with file_errors(path):
        replace_file(path, [edited.encode("utf-8")])
    return list(found.values())


def _unpinned(entry: Mapping[str, Any]) -> str:
    place = entry.get("kaggle") or entry.get("url")
    return (entry.get("id") or place_name(place)) if place and not entry.get("sha256") else ""


def _edited(text: str, hashes: Mapping[int, str]) -> str:
    """The lines of a manifest; after the last key of an entry's own table come its pins."""
    lines = text.splitlines(keepends=True)
    starts = [n for n, line in enumerate(lines) if re.match(r"\s*\[\[\s*model\s*\]\]", line)]
    for i, start in sorted(enumerate(starts), reverse=True):
        if i not in hashes:
            continue
        end = next((n for n in range(start + 1, len(lines)) if re.match(r"\s*\[", lines[n])), len(lines))
        own = [line for line in lines[start:end] if not re.match(r"\s*(sha256|verified)\s*=", line)]
        last = max(n for n, line in enumerate(own) if line.strip() and not line.lstrip().startswith("#"))
        own[last] = own[last].rstrip("\r\n") + "\n"
        own[last + 1 : last + 1] = [f'sha256 = "{hashes[i]}"\n', "verified = true\n"]
        lines[start:end] = own
    return "".join(lines)
