"""Baselines: what a sweep found, in one JSON file small enough to commit, to compare later sweeps with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Required, TypedDict, get_args

from tflq.base.documents import exactly, read_json
from tflq.base.errors import OptionError, Reason
from tflq.base.files import file_errors, replace_file, text_bytes
from tflq.numerics.kernel_sets import DEFAULT as DEFAULT_SET
from tflq.tools.sweep.fields import Amount, Count, PathCounts
from tflq.tools.sweep.store import (
    ARTIFACTS,
    FILES,
    Store,
    differences,
    expected_keys,
    place_in,
    read_results,
    read_settings,
)
from tflq.tools.sweep.task import MACHINE, Key, Result, cause_of, how_far, in_part, key_of, label

BASELINE: Final = "baseline.json"
FORMAT: Final = "tflq.sweep-baseline"
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """The part of a result that is compared.

    sha256, bytes: of the model; converted: bytes of the converted one. numbers: how far outputs are from the original,
    for each verification, as "name: differing of elements, largest". paths: operators per opcode and path. static:
    whether static memory was kept; None if that is not known. seconds: CPU time of reading and converting.
    """

    id: str
    target: str
    status: str
    expected: bool = False
    why: str = ""
    cause: str = ""
    sha256: str = ""
    bytes: Count = 0
    converted: Count = 0
    converted_sha256: str = ""
    numbers: tuple[str, ...] = ()
    paths: Mapping[str, PathCounts] = field(default_factory=dict)
    static: bool | None = None
    seconds: Amount = 0.0
    cpu: str = ""

    @property
    def key(self) -> Key:
        return self.id, self.target

    def to_json(self) -> dict[str, Any]:
        """Its fields, without those that have their default."""
        usual = asdict(Entry("", "", ""))
        return {name: value for name, value in asdict(self).items() if value != usual[name]}


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
                where = ":".join(filter(None, (output.get("entry"), output.get("name"))))
                yield f"{part} {where}: {how_far(output)}"


def write_baseline(results: Iterable[Result], path: Path) -> None:
    """Writes the baseline of some results: one line per model and target, sorted, so that its changes can be read."""
    options: dict[str, Any] = {}
    entries = []
    for result in results:
        options = options or _options(result)
        entries.append(entry_of(result))
    entries.sort(key=lambda entry: entry.key)
    lines = (json.dumps(entry.to_json(), sort_keys=True) for entry in entries)
    shared = f'"options": {json.dumps(options, sort_keys=True)}, ' if options else ""
    head = f'{{"format": "{FORMAT}", "version": {VERSION}, {shared}"entries": [\n'
    replace_file(path, [text_bytes(head), text_bytes(",\n".join(lines)), b"\n]}\n"])


def read_entries(place: Path) -> list[Entry]:
    """The entries of a baseline's file, or of a sweep's folder. FileError or OptionError if it is neither."""
    if place.is_dir():
        return [entry_of(result) for result in read_results(place)]
    return _document(place)["entries"]


def options_of(place: Path) -> dict[str, Any]:
    """The options of the conversion that a baseline, or a sweep, was made with: the kernel set, and those that differ
    from the default. Errors as of `read_entries`."""
    if place.is_dir():
        return next(map(_options, read_results(place)), {})
    return {**_NAMED, **_document(place).get("options", {})}


def _options(result: Result) -> dict[str, Any]:
    return {**_NAMED, **result["fingerprint"].get("convert", {})}


_NAMED: Final = {"kernel_set": DEFAULT_SET}
"""The set where no other is among the options."""


class _Document(TypedDict, total=False):
    """A baseline's file."""

    format: Required[Annotated[str, exactly(FORMAT)]]
    version: Required[Annotated[int, exactly(VERSION)]]
    options: dict[str, Any]
    entries: Required[list[Entry]]


def _document(place: Path) -> _Document:
    document: _Document = read_json(place, _Document, "a baseline", remedy="write it anew with `tflq sweep`")
    return document


# What changed from one sweep to another.


Kind = Literal[
    "failing",  # it was ok or as expected, and no longer is
    "numbers",  # it differs from the original by something else
    "path",  # an operator takes another path: integer, float or kept
    "memory",  # static memory is no longer kept
    "cause",  # it fails still, for another reason
    "fixed",  # it failed, and is ok now
    "unexpected-pass",  # it is ok, and something else is expected of it
    "new",
    "gone",
    "renamed",
    "content",  # another model under the same name
    "larger",
    "slower",
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

FAILING: Final[frozenset[Kind]] = frozenset({"failing", "numbers", "path", "memory"})
"""Regressions: exit code 5. `--fail-on` adds others."""

SLOWER_BY: Final = 1.25, 0.15
"""Times as much, and seconds more: less than that is noise."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a model under a target. what: a sentence. layer: the first that differs, if any does."""

    kind: Kind
    id: str
    target: str
    what: str
    layer: str = ""

    def place(self, prefix: str = "") -> str:
        """Model and target in words, without what all ids of a sweep begin with."""
        return label((self.id, self.target), prefix)


def in_order(changes: Iterable[Change]) -> list[Change]:
    """The gravest kind first."""
    return sorted(changes, key=lambda c: (KINDS.index(c.kind), c.id, c.target))


def changes_document(changes: Iterable[Change]) -> dict[str, Any]:
    """Changes in a versioned JSON form."""
    return {"format": "tflq.sweep-changes", "version": 1, "changes": [asdict(change) for change in changes]}


def compare(before: Iterable[Entry], now: Iterable[Entry]) -> list[Change]:
    """The changes, the gravest kind first. Models are matched by name and target, and those that are left by content.

    Models that only take longer are not among them: see `is_slower`.
    """
    old = {entry.key: entry for entry in before}
    new = {entry.key: entry for entry in now}
    changes: list[Change] = []
    pairs = [(old.pop(key), new.pop(key)) for key in list(new) if key in old]
    known = {(e.sha256, e.target): e for e in old.values() if e.sha256}
    for entry in list(new.values()):
        if match := known.pop((entry.sha256, entry.target), None):
            changes.append(Change("renamed", entry.id, entry.target, f"was {match.id}"))
            pairs.append((old.pop(match.key), new.pop(entry.key)))
    changes += [Change("new", e.id, e.target, _words(e)) for e in new.values()]
    changes += [Change("failing", e.id, e.target, f"new, {_words(e)}") for e in new.values() if not e.expected]
    changes += [Change("gone", e.id, e.target, f"was {e.status}") for e in old.values()]
    for a, b in pairs:
        changes += _changes(a, b)
    return in_order(changes)


def _cause(entry: Entry) -> str:
    """The cause of a failure, made anew: an earlier release may have left out other names and numbers."""
    return cause_of(entry.status, entry.why) if entry.why else entry.cause


def _changes(a: Entry, b: Entry) -> Iterable[Change]:
    def change(kind: Kind, what: str) -> Change:
        return Change(kind, b.id, b.target, what)

    if a.sha256 and b.sha256 and a.sha256 != b.sha256:
        yield change("content", f"another model: {b.sha256[:12]}, was {a.sha256[:12]}")
    if a.status != b.status:
        if b.status == "ok":
            yield change("fixed", f"was {_words(a)}")
        elif a.status == "ok" or (a.expected and not b.expected):
            yield change("failing", f"{_words(b)}; was {a.status}")
        else:
            yield change("cause", f"{_words(b)}; was {_words(a)}")
    elif _cause(a) != _cause(b) and b.status != "differs":
        yield change("cause", f"{_words(b)}; was {_words(a)}")
    elif b.status == "differs" and (a.numbers, _cause(a)) != (b.numbers, _cause(b)):
        new_numbers = [text for text in b.numbers if text not in a.numbers] or [b.why]
        yield change("numbers", f"{new_numbers[0]}; was {next((t for t in a.numbers if t not in b.numbers), a.why)}")
    if b.status == "ok" and not b.expected:
        yield change("unexpected-pass", "ok, and something else is expected of it")
    if a.paths and b.paths and a.paths != b.paths and a.sha256 == b.sha256:
        yield change("path", "; ".join(_paths(a.paths, b.paths)))
    if a.static and b.static is False:
        yield change("memory", "the interpreter no longer allocates all of it before it runs")
    if a.converted and b.converted > a.converted and a.sha256 == b.sha256:
        yield change("larger", f"{b.converted} bytes, was {a.converted}")


def _words(entry: Entry) -> str:
    return f"{entry.status}: {entry.why}" if entry.why else entry.status


def _paths(a: Mapping[str, Mapping[str, int]], b: Mapping[str, Mapping[str, int]]) -> Iterable[str]:
    for opcode in sorted({*a, *b}):
        if a.get(opcode) != b.get(opcode):
            yield f"{opcode}: {_counts(b.get(opcode, {}))}, was {_counts(a.get(opcode, {}))}"


def _counts(counts: Mapping[str, int]) -> str:
    return " + ".join(f"{count} {path}" for path, count in counts.items()) or "none"


def is_slower(seconds: float, before: float) -> bool:
    """Whether a CPU time is above another by more than noise."""
    times, more = SLOWER_BY
    return before > 0 and seconds > before * times and seconds > before + more


def failing(changes: Iterable[Change], fail_on: Collection[str] = ()) -> list[Change]:
    """The changes that make a sweep fail."""
    return [change for change in changes if change.kind in FAILING or change.kind in fail_on]


# Sweeps of parts put together.


PARTS = ("shard", "only")
"""Settings that parts may have of their own."""


def merge(folders: Sequence[Path], into: Path, *, force: bool = False) -> None:
    """Puts the results of several sweeps, and what their failures left, into one folder. Its settings, and the summary,
    say what is missing of the whole sweep.

    OptionError if they were made with different settings or versions, or have results of the same model and target.
    """
    settings = [read_settings(folder) for folder in folders]
    for folder, folder_settings in zip(folders[1:], settings[1:], strict=True):
        if differing := differences(settings[0], folder_settings, {*PARTS, *MACHINE}):
            what = f"its options or versions are not those of {folders[0]}, {', '.join(differing)}"
            remedy = "sweep all parts with the same options and versions"
            raise OptionError(Reason(what, str(folder), remedy=remedy))
    parts = [_Part(folder, folder_settings) for folder, folder_settings in zip(folders, settings, strict=True)]
    _check_apart(parts)
    whole = {part: settings[0][part] for part in ("settings", "fingerprint")}
    whole["settings"] = {**whole["settings"], "shard": None}
    jobs = list(
        dict.fromkeys((id, target) for folder_settings in settings for id, target in folder_settings.get("jobs", ()))
    )
    whole |= {"sources": settings[0]["sources"], "jobs": jobs, "incomplete": list(_incomplete(parts, jobs))}
    inputs = [folder / name for folder in folders for name in FILES]
    with closing(Store(into)) as store:
        store.put(whole, (result for folder in folders for result in read_results(folder)), inputs=inputs, force=force)
        for folder in folders:
            for result in read_results(folder):
                if "artifacts" in result:
                    _copy(folder, result["artifacts"], into)


def _copy(folder: Path, name: str, into: Path) -> None:
    """Copies what a failure left, if it is there, without links and what is neither a file nor a folder."""
    place_in(folder, ARTIFACTS)
    left = place_in(folder, name)
    if left.is_dir():
        with file_errors(into / name):
            shutil.copytree(left, into / name, ignore=_not_copied)


def _not_copied(folder: str, names: list[str]) -> list[str]:
    places = [(name, Path(folder, name)) for name in names]
    return [name for name, place in places if place.is_symlink() or not (place.is_file() or place.is_dir())]


class _Part:
    """One of the sweeps that are put together."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.folder = folder
        self.shard: Sequence[int] | None = settings["settings"].get("shard")
        self.keys = [key_of(result) for result in read_results(folder)]
        self.missing = {*expected_keys(settings)} - {*self.keys}


def _check_apart(parts: Sequence[_Part]) -> None:
    seen: dict[Key, Path] = {}
    for part in parts:
        for key in part.keys:
            if key in seen:
                raise OptionError(f"{label(key)} is in both {seen[key]} and {part.folder}")
            seen[key] = part.folder


def _incomplete(parts: Sequence[_Part], jobs: Sequence[Key]) -> Iterator[str]:
    """Sentences on parts that are not among these, and on those that were interrupted."""
    shards = {tuple(part.shard) for part in parts if part.shard is not None}
    for count in sorted({count for _, count in shards}):
        for number in range(1, count + 1):
            if (number, count) in shards:
                continue
            missing = sum(in_part(id, (number, count)) for id, _ in jobs)
            if missing or not jobs:
                of = f", with {missing} of {len(jobs)} results" if jobs else ""
                yield f"part {number}/{count} is not among them{of}: merge it, too"
    for part in parts:
        if part.missing:
            whole = len(part.keys) + len(part.missing)
            yield f"{part.folder} lacks {len(part.missing)} of {whole} results: go on with that sweep by --resume"
