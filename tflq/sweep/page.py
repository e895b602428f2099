"""The page of a sweep: one HTML file, which works from disk. Its data are lines of JSON that its script reads: two for
each result, a row of the table and what is shown of it when it is opened.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from tflq.files import replace_file
from tflq.pages.render import render_pieces
from tflq.sweep.baseline import Entry, entry_of, read_entries
from tflq.sweep.changes import Change
from tflq.sweep.result import Key, Result, key_of
from tflq.sweep.status import STATUSES
from tflq.sweep.summary import Summary

__all__ = ["write"]

LEFT_OUT: Final = frozenset(
    {"format", "version", "id", "target", "status", "expected", "why", "cause", "fingerprint", "cached", "recorded"}
)
"""Fields of a result that its details do without: the row has them, or they say nothing of the model."""

OUTPUT: Final = (
    "entry",
    "name",
    "elements",
    "differing",
    "largest",
    "mean",
    "unit",
    "problem",
    "accepted",
    "histogram",
)
LOG: Final = 4000  # characters of a log, from its end
CHANGES: Final = 500  # changes that are listed
PIECES: Final = 256  # pieces of the template that are written at once


class _Totals:
    """What the page's head says, complete once every result has gone by."""

    def __init__(self) -> None:
        self.summary = Summary()
        self.fingerprints: dict[str, Mapping[str, Any]] = {}
        self.bytes = 0
        self.converted = 0
        self.seconds = 0.0

    def add(self, result: Result) -> None:
        self.summary.add(result)
        marks = {k: v for k, v in result.get("fingerprint", {}).items() if k != "model" and v not in ("", None, {})}
        self.fingerprints.setdefault(json.dumps(marks, sort_keys=True), marks)
        if size := result.get("converted", {}).get("bytes"):
            self.bytes += result["model"].get("bytes", 0)
            self.converted += size
        self.seconds += result.get("cpu", {}).get("total", 0.0)


def write(
    results: Iterable[Result],
    path: Path,
    earlier: Sequence[Path] = (),
    changes: Sequence[Change] | None = None,
    known: Summary | None = None,
) -> None:
    """Writes the page of some results, whole or not at all. What it takes in memory does not grow with the results.

    earlier: sweeps' folders or baselines to show beside it; changes: those since a baseline; known: what is missing.
    FileError if it cannot be written or one of `earlier` not be read, InvalidModelError if that is no sweep, TflqError
    without jinja2.
    """
    before = [{entry.key: entry for entry in read_entries(place)} for place in earlier]
    totals = _Totals()
    if known is not None:
        totals.summary.missing, totals.summary.incomplete = known.missing, known.incomplete
    pieces = render_pieces(
        "sweep.html",
        lines=_lines(results, before, totals),
        totals=totals,
        summary=totals.summary,
        statuses=STATUSES,
        earlier=[str(place) for place in earlier],
        changes=changes and changes[:CHANGES],
        compared=changes is not None,
        more_changes=max(len(changes or ()) - CHANGES, 0),
    )
    replace_file(path, _together(pieces))


def _together(pieces: Iterator[str]) -> Iterator[bytes]:
    while some := "".join(islice(pieces, PIECES)):
        yield some.encode()


def _lines(results: Iterable[Result], earlier: Sequence[Mapping[Key, Entry]], totals: _Totals) -> Iterator[str]:
    for result in results:
        totals.add(result)
        before = [entries.get(key_of(result)) for entries in earlier]
        yield _json(_row(result, before))
        yield _json(_details(result, before))


def _json(document: Any) -> str:
    """A line of JSON that can be part of HTML: what would end the script there is escaped."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _row(result: Result, earlier: Sequence[Entry | None]) -> list[Any]:
    """As the script's COLUMNS have it; null where nothing is known."""
    counts = result.get("operators", {}).get("counts", {})
    cost = result.get("cost", {})
    arenas = [(cost.get(name) or {}).get("bytes") for name in ("arena_in", "arena")]
    was = next((entry.status for entry in earlier if entry is not None), "new") if earlier else ""
    return [
        result["id"],
        result["target"],
        result["status"],
        result["expected"],
        was,
        result["why"],
        *(counts.get(path) for path in ("integer", "float", "kept")),
        *_pair(result["model"].get("bytes"), result.get("converted", {}).get("bytes")),
        *_pair(*arenas),
        *_pair(*(_seconds(result, name) for name in ("before", "after"))),
        result.get("cpu", {}).get("total"),
        result.get("peak_bytes"),
    ]


def _pair(before: float | None, after: float | None) -> tuple[float | None, float | None, float | None]:
    """What something was, what it is, and how many times as much that is."""
    return before, after, round(after / before, 6) if before and after is not None else None


def _seconds(result: Result, when: str) -> float | None:
    """What a run of all entries takes; None where that was not measured."""
    times = [each[when] for each in result.get("run_time", [])]
    return None if not times or None in times else sum(times)


def _details(result: Result, earlier: Sequence[Entry | None]) -> dict[str, Any]:
    shown = {key: value for key, value in result.items() if key not in LEFT_OUT and value not in ("", None, [], {})}
    if "log" in shown:
        shown["log"] = shown["log"][-LOG:]
    for part in ("verification", "given", "xnnpack"):
        if part in shown:
            shown[part] = _verification(shown[part])
    if "layers" in shown:
        diverging = [_output(each, ("operator", "opcode", "tensor")) for each in shown["layers"]["diverging"]]
        shown["layers"] = {**shown["layers"], "diverging": diverging}
        shown["layers"].pop("first", None)
    if earlier:
        shown["now"] = _entry(entry_of(result))
        shown["earlier"] = [entry and _entry(entry) for entry in earlier]
    return shown


def _verification(part: Mapping[str, Any]) -> dict[str, Any]:
    lists = {name: part[name] for name in ("skipped", "interface", "original_failures", "failures") if part.get(name)}
    outputs = [_output(output) for output in part["outputs"]]
    return {"verdict": part["verdict"], "inputs": part["inputs"], "outputs": outputs, **lists}


def _output(found: Mapping[str, Any], more: tuple[str, ...] = ()) -> dict[str, Any]:
    """A difference, without what says nothing."""
    return {name: found[name] for name in (*more, *OUTPUT) if found.get(name) not in ("", None, {})}


def _entry(entry: Entry) -> dict[str, Any]:
    kept = ("status", "why", "sha256", "converted", "numbers", "static", "seconds")
    return {name: value for name, value in entry.to_json().items() if name in kept}
