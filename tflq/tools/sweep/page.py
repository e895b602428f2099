"""Output of a finished sweep: counts, a page, Markdown, JUnit XML.

The page is one HTML file, which works from disk. Its script reads lines of JSON, two for each result: a row of the
table, and what is shown of it when it is opened.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

from tflq.base.files import replace_file, text_bytes
from tflq.tools.pages import render_pieces
from tflq.tools.sweep.baseline import (
    BASELINE,
    FAILING,
    Change,
    Entry,
    changes_document,
    entry_of,
    failing,
    read_entries,
    write_baseline,
)
from tflq.tools.sweep.driver import first_layer
from tflq.tools.sweep.store import expected_keys, read_results, read_settings
from tflq.tools.sweep.task import COMPARED, STATUSES, Key, Result, key_of, label, shared_prefix

# Counts, which every page and message begins with.


NAMED: Final = 5  # models of one cause that are named


@dataclass(slots=True)
class Cause:
    """Failures of one cause: how many, and model and target of the first of them."""

    text: str
    count: int = 0
    unexpected: int = 0
    first: list[Key] = field(default_factory=list)

    def named(self, prefix: str = "") -> str:
        """The first of them in words, without what all ids of a sweep begin with."""
        shown = ", ".join(label(key, prefix) for key in self.first)
        return f"{shown} …" if self.count > len(self.first) else shown


@dataclass(slots=True)
class Summary:
    """Counts of a sweep's results. prefix: the folders that all ids are in."""

    total: int = 0
    unexpected: int = 0
    passes: int = 0  # that were not expected to
    statuses: dict[str, Counter[str]] = field(default_factory=dict)  # by target
    causes: dict[str, Cause] = field(default_factory=dict)
    missing: list[Key] = field(default_factory=list)  # models and targets without a result
    incomplete: list[str] = field(default_factory=list)  # sentences on parts that lack results, or are not there
    prefix: str = ""

    def add(self, result: Result) -> None:
        self.prefix = shared_prefix([result["id"], *([self.prefix] if self.total else [])])
        self.total += 1
        self.statuses.setdefault(result["target"], Counter())[result["status"]] += 1
        if not result["expected"]:
            self.unexpected += 1
            self.passes += result["status"] == "ok"
        if result["cause"]:
            cause = self.causes.setdefault(result["cause"], Cause(result["cause"]))
            cause.count += 1
            cause.unexpected += not result["expected"]
            if len(cause.first) < NAMED:
                cause.first.append(key_of(result))

    @property
    def failed(self) -> bool:
        """Whether something is not as expected, or not there."""
        return bool(self.unexpected or self.missing or self.incomplete)

    @property
    def verdict(self) -> str:
        """The counts in words."""
        counts = [f"{self.unexpected} of {self.total} not as expected"] if self.unexpected else []
        if self.missing:
            counts.append(f"{len(self.missing)} of {self.total + len(self.missing)} missing")
        elif self.incomplete:
            counts.append("parts missing")
        if not counts:
            counts.append("all as expected")
        if self.uncompared:
            counts.append(f"{self.uncompared} of {self.total} not compared")
        return ", ".join(counts)

    @property
    def uncompared(self) -> int:
        """Number of results that were not compared with the original's: it does not run, or there is no conversion."""
        return self.total - sum(counts[status] for counts in self.statuses.values() for status in COMPARED)

    @property
    def named_missing(self) -> str:
        """The first that are missing, in words."""
        return Cause("", len(self.missing), first=self.missing[:NAMED]).named(self.prefix)

    @property
    def columns(self) -> list[str]:
        """The statuses that there are, in their order."""
        return [status for status in STATUSES if any(counts[status] for counts in self.statuses.values())]

    @property
    def grouped(self) -> list[Cause]:
        """Causes, those of unexpected failures first, the commonest before the rarer."""
        return sorted(self.causes.values(), key=lambda c: (not c.unexpected, -c.count, c.text))

    def to_json(self) -> dict[str, Any]:
        return {
            "total": self.total,
            "unexpected": self.unexpected,
            "unexpected_passes": self.passes,
            "uncompared": self.uncompared,
            "statuses": {target: dict(counts) for target, counts in self.statuses.items()},
            "causes": [
                {
                    "cause": cause.text,
                    "count": cause.count,
                    "unexpected": cause.unexpected,
                    "first": list(map(label, cause.first)),
                }
                for cause in self.grouped
            ],
            "missing": list(map(label, self.missing)),
            "incomplete": self.incomplete,
        }


LEFT_OUT: Final = frozenset(
    {"format", "version", "id", "target", "status", "expected", "why", "cause", "fingerprint", "cached", "recorded"}
)
"""Fields of a result that are not among its details: the row has them, or they say nothing of the model."""

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
    """Totals for the page's head, complete after the last result."""

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
    regressions: Sequence[Change] = (),
) -> None:
    """Writes the page of some results, whole or not at all. What it takes in memory does not grow with the results.

    earlier: sweeps' folders or baselines to show next to it; changes: those since a baseline; known: what is missing;
    regressions: the changes that make the sweep fail, which are red.
    FileError if it cannot be written or one of `earlier` cannot be read, OptionError if that is not a sweep,
    TflqError without jinja2.
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
        failing={change.kind for change in regressions},
        compared=changes is not None,
        more_changes=max(len(changes or ()) - CHANGES, 0),
    )
    replace_file(path, _together(pieces))


def _together(pieces: Iterator[str]) -> Iterator[bytes]:
    while some := "".join(islice(pieces, PIECES)):
        yield text_bytes(some)


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
    """A row in the order of the script's COLUMNS; null if a value is unknown."""
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
    """A value before and after, and their ratio."""
    ratio = after / before if before and after is not None else math.inf
    return before, after, round(ratio, 6) if math.isfinite(ratio) else None


def _seconds(result: Result, when: str) -> float | None:
    """Seconds of a run of all entries; None if it was not measured."""
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


def _output(document: Mapping[str, Any], more: tuple[str, ...] = ()) -> dict[str, Any]:
    """A difference, without what says nothing."""
    return {name: document[name] for name in (*more, *OUTPUT) if document.get(name) not in ("", None, {})}


def _entry(entry: Entry) -> dict[str, Any]:
    names = ("status", "why", "sha256", "converted", "numbers", "static", "seconds")
    return {name: value for name, value in entry.to_json().items() if name in names}


# A sweep in Markdown, for the summary of a job or a comment.


SHOWN: Final = 30


def markdown(summary: Summary, changes: Sequence[Change] | None = None) -> str:
    """Counts per target, what changed if it was compared, and causes of failures."""
    return "\n".join(_markdown_lines(summary, changes)) + "\n"


def _markdown_lines(summary: Summary, changes: Sequence[Change] | None) -> Iterator[str]:
    columns = summary.columns
    yield "## Sweep"
    yield ""
    yield f"| target | {' | '.join(columns)} |"
    yield f"|---|{'---:|' * len(columns)}"
    for target, counts in summary.statuses.items():
        yield f"| {_cell(target)} | {' | '.join(str(counts[c] or '') for c in columns)} |"
    yield ""
    yield f"{summary.total} results, {summary.unexpected} not as expected."
    if summary.missing or summary.incomplete:
        yield ""
        yield f"**{len(summary.missing)} missing**: {_cell(summary.named_missing)}"
        yield from (f"- {_cell(text)}" for text in summary.incomplete)
    if changes is not None:
        yield ""
        yield from markdown_changes(changes, summary.prefix)
    causes = [cause for cause in summary.grouped if cause.unexpected]
    if causes:
        yield ""
        yield "### Causes"
        yield ""
        yield "| count | cause | first |"
        yield "|---:|---|---|"
        for cause in causes[:SHOWN]:
            yield f"| {cause.count} | {_cell(cause.text)} | {_cell(cause.named(summary.prefix))} |"


def markdown_changes(changes: Sequence[Change], prefix: str = "") -> Iterator[str]:
    """The lines of what changed. prefix: what ids are shown without."""
    yield "### Since the baseline"
    yield ""
    if not changes:
        yield "No change."
        return
    yield "| change | model | what | first layer |"
    yield "|---|---|---|---|"
    for kind, group in groupby(changes, key=lambda change: change.kind):
        listed = list(group)
        name = f"**{kind}**" if kind in FAILING else kind
        for change in listed[:SHOWN]:
            yield f"| {name} | {_cell(change.place(prefix))} | {_cell(change.what)} | {_cell(change.layer)} |"
        if len(listed) > SHOWN:
            yield f"| {name} | and {len(listed) - SHOWN} more | | |"


def _cell(text: str) -> str:
    """A text that ends no cell, row or tag."""
    text = " ".join(text.split())
    for mark in "\\|`*_[]#":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("<", "&lt;").replace("@", "@\u200b")[:300]


# JUnit XML of a sweep, for the pages of a continuous integration service.


BUGS: Final = frozenset({"crash", "internal-error", "timeout", "out-of-memory"})
_NOT_IN_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(
    results: Iterable[Result],
    path: Path,
    regressions: Sequence[Change] | None = None,
    missing: Sequence[Key] = (),
) -> None:
    """One test case for each model and target. Those that are not as expected fail, or with `regressions` these; and
    those that are missing. An expected failure is skipped, with its reason.
    """
    worse = None if regressions is None else {(c.id, c.target): c for c in regressions}
    cases, failures, errors, skipped, seconds = [], 0, 0, 0, 0.0
    for result in results:
        regression = worse.pop(key_of(result), None) if worse is not None else None
        fails = not result["expected"] if worse is None else regression is not None
        body = ""
        if fails:
            kind = "error" if result["status"] in BUGS else "failure"
            failures += kind == "failure"
            errors += kind == "error"
            message = regression.what if regression else result["why"] or result["status"]
            more = "\n".join(filter(None, [result["why"], first_layer(result), result.get("log", "")]))
            body = f"<{kind} type={_quoted(result['status'])} message={_quoted(message)}>{_text(more)}</{kind}>"
        elif result["status"] != "ok":
            skipped += 1
            reason = (result["expectation"] or {}).get("reason") or result["why"]
            body = f"<skipped message={_quoted(result['status'] + ': ' + reason)}/>"
        duration = result.get("seconds", 0.0)
        seconds += duration
        cases.append(_case(key_of(result), f' time="{duration:.3f}"', body))
    gone = [((change.id, change.target), str(change.kind), change.what) for change in (worse or {}).values()]
    gone += [(key, "missing", "there is no result") for key in missing]
    for key, kind, what in gone:
        failures += 1
        cases.append(_case(key, "", f"<failure type={_quoted(kind)} message={_quoted(what)}/>"))
    counts = f'tests="{len(cases)}" failures="{failures}" errors="{errors}" skipped="{skipped}" time="{seconds:.3f}"'
    head = f'<?xml version="1.0" encoding="utf-8"?>\n<testsuites {counts}>\n<testsuite name="tflq sweep" {counts}>\n'
    replace_file(path, [text_bytes(head), *cases, b"</testsuite>\n</testsuites>\n"])


def _case(key: Key, time: str, body: str) -> bytes:
    name, group = _quoted(key[0]), _quoted("tflq." + key[1])
    return text_bytes(f"<testcase name={name} classname={group}{time}>{body}</testcase>\n")


def _text(text: str) -> str:
    return escape(_in_xml(text))


def _quoted(text: str) -> str:
    return quoteattr(_in_xml(text))


def _in_xml(text: str) -> str:
    """The text, with JSON's escapes for what XML has no place for."""
    return _NOT_IN_XML.sub(lambda match: json.dumps(match[0])[1:-1], text)


# All of them.


def write_outputs(
    folder: Path,
    changes: Sequence[Change] | None = None,
    fail_on: Sequence[str] = (),
    earlier: Sequence[Path] = (),
) -> Summary:
    """Writes baseline.json, summary.md, junit.xml, index.html, and changes.json if there was a comparison. Returns the
    counts. Jobs without a result, as after a merge of some parts, are missing.

    earlier: sweeps' folders or baselines to show next to this one.
    """
    summary = summary_of(folder)
    write_baseline(read_results(folder), folder / BASELINE)
    replace_file(folder / "summary.md", [text_bytes(markdown(summary, changes))])
    regressions = None if changes is None else failing(changes, fail_on)
    write_junit(read_results(folder), folder / "junit.xml", regressions, summary.missing)
    if changes is not None:
        replace_file(folder / "changes.json", [json.dumps(changes_document(changes), indent=1).encode(), b"\n"])
    else:
        (folder / "changes.json").unlink(missing_ok=True)
    write(read_results(folder), folder / "index.html", earlier, changes, summary, regressions or ())
    return summary


def summary_of(folder: Path) -> Summary:
    """The counts of the results in a folder, and the jobs of its settings that have no result."""
    summary, settings, there = Summary(), read_settings(folder), set()
    for result in read_results(folder):
        summary.add(result)
        there.add(key_of(result))
    summary.missing = [key for key in expected_keys(settings) if key not in there]
    summary.incomplete = settings.get("incomplete", [])
    return summary
