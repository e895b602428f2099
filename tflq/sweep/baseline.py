"""Baselines: what a sweep found, in one JSON file small enough to commit, to compare later sweeps with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from tflq.errors import InvalidModelError
from tflq.files import file_errors, replace_file
from tflq.sweep.result import Key, Result
from tflq.sweep.store import read_results

__all__ = ["BASELINE", "Entry", "entry_of", "options_of", "read_entries", "write_baseline"]

BASELINE: Final = "baseline.json"
FORMAT: Final = "tflq.sweep-baseline"
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """What is compared of a result.

    sha256, bytes: of the model; converted: bytes of the converted one. numbers: how far outputs are from the original,
    for each verification, as "name: differing of elements, largest". paths: operators per opcode and path. static:
    whether static memory was kept; None if that is not known. seconds: CPU time of reading and converting.
    """

    id: str
    target: str
    status: str
    expected: bool
    why: str = ""
    cause: str = ""
    sha256: str = ""
    bytes: int = 0
    converted: int = 0
    converted_sha256: str = ""
    numbers: tuple[str, ...] = ()
    paths: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    static: bool | None = None
    seconds: float = 0.0
    cpu: str = ""

    @property
    def key(self) -> Key:
        return self.id, self.target

    def to_json(self) -> dict[str, Any]:
        """Its fields, but for those that say nothing."""
        return {name: value for name, value in asdict(self).items() if value not in ("", None, 0, (), {})}


def entry_of(result: Result) -> Entry:
    cpu = result.get("cpu", {})
    return Entry(
        result["id"],
        result["target"],
        result["status"],
        result["expected"],
        result["why"],
        result["cause"],
        result["model"].get("sha256", ""),
        result["model"].get("bytes", 0),
        result.get("converted", {}).get("bytes", 0),
        result.get("converted", {}).get("sha256", ""),
        tuple(_numbers(result)),
        result.get("operators", {}).get("paths", {}),
        result.get("static", {}).get("kept"),
        round(cpu.get("read", 0.0) + cpu.get("convert", 0.0), 4),
        result["fingerprint"].get("cpu", ""),
    )


def _numbers(result: Result) -> Iterator[str]:
    for part in ("verification", "given"):
        for output in result.get(part, {}).get("outputs", []):
            if output["differing"] or output["problem"]:
                where = f"{output['entry']}:{output['name']}" if output["entry"] else output["name"]
                unit = " LSB" if output["unit"] == "LSB" else ""
                how = output["problem"] or (
                    f"{output['differing']} of {output['elements']}, up to {output['largest']}{unit}"
                )
                yield f"{part} {where}: {how}"


def write_baseline(results: Iterable[Result], path: Path) -> None:
    """Writes the baseline of some results: one line per model and target, sorted, so that its changes can be read."""
    options: dict[str, Any] = {}
    entries = []
    for result in results:
        options = options or _options(result)
        entries.append(entry_of(result))
    entries.sort(key=lambda entry: entry.key)
    lines = (json.dumps(entry.to_json(), sort_keys=True) for entry in entries)
    said = f'"options": {json.dumps(options, sort_keys=True)}, ' if options else ""
    head = f'{{"format": "{FORMAT}", "version": {VERSION}, {said}"entries": [\n'
    replace_file(path, [head.encode(), ",\n".join(lines).encode(), b"\n]}\n"])


def read_entries(place: Path) -> list[Entry]:
    """The entries of a baseline's file, or of a sweep's folder. FileError or InvalidModelError if it is neither."""
    if place.is_dir():
        return [entry_of(result) for result in read_results(place)]
    return [_entry(entry) for entry in _document(place)["entries"]]


def options_of(place: Path) -> dict[str, Any]:
    """The options of the conversion that a baseline, or a sweep, was made with, but for those that were as by default.
    Errors as of `read_entries`."""
    if place.is_dir():
        return next((_options(result) for result in read_results(place)), {})
    found: dict[str, Any] = _document(place).get("options", {})
    return found


def _options(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = result["fingerprint"].get("convert", {})
    return found


def _document(place: Path) -> dict[str, Any]:
    """A baseline's file."""
    with file_errors(place):
        text = place.read_text("utf-8")
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InvalidModelError("", f"not a baseline: {error}", path=str(place)) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT or document.get("version") != VERSION:
        raise InvalidModelError("", f"not a baseline of version {VERSION}", path=str(place))
    return document


def _entry(document: dict[str, Any]) -> Entry:
    known = Entry.__dataclass_fields__
    fields = {name: value for name, value in document.items() if name in known}
    return Entry(**{"expected": False, **fields, "numbers": tuple(document.get("numbers", ()))})
