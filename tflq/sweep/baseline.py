"""Baselines: what a sweep found, in one JSON file small enough to commit, to compare later sweeps with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal, get_args

from tflq.backends import Backend, backend, of_target
from tflq.errors import InvalidModelError, OptionError, Reason, to_install
from tflq.extensions import extension_of
from tflq.files import file_errors, replace_file
from tflq.options import asked
from tflq.sweep.result import Key, Result, key_of, part_of
from tflq.sweep.store import FILES, Job, Store, differences, expected_keys, read_results, read_settings
from tflq.sweep.task import MACHINE, Settings

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


# What changed from one sweep to another.


Kind = Literal[
    "failing",  # it was ok or as expected, and is not any more
    "numbers",  # it differs from the original by something else
    "path",  # an operator takes another path: integer, float or kept
    "memory",  # static memory is not kept any more
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
"""Times as much, and seconds more: what is slower by less is noise."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a model under a target. what: a sentence. layer: the first that differs, if any does."""

    kind: Kind
    id: str
    target: str
    what: str
    layer: str = ""

    def place(self, prefix: str = "") -> str:
        """Model and target, without what all ids of a sweep begin with."""
        return f"{self.id.removeprefix(prefix)} [{self.target}]"

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "id": self.id, "target": self.target, "what": self.what, "layer": self.layer}


def compare(before: Iterable[Entry], now: Iterable[Entry]) -> list[Change]:
    """The changes, the gravest kind first. Models are told by name and target, and those that are left by content.

    What only takes longer is not among them: see `is_slower`.
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
    return sorted(changes, key=lambda c: (KINDS.index(c.kind), c.id, c.target))


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
    elif a.cause != b.cause and b.status != "differs":
        yield change("cause", f"{_words(b)}; was {_words(a)}")
    elif b.status == "differs" and (a.numbers, a.cause) != (b.numbers, b.cause):
        told = [text for text in b.numbers if text not in a.numbers] or [b.why]
        yield change("numbers", f"{told[0]}; was {next((t for t in a.numbers if t not in b.numbers), a.why)}")
    if b.status == "ok" and not b.expected:
        yield change("unexpected-pass", "ok, and something else is expected of it")
    if a.paths and b.paths and a.paths != b.paths and a.sha256 == b.sha256:
        yield change("path", "; ".join(_paths(a.paths, b.paths)))
    if a.static and b.static is False:
        yield change("memory", "the interpreter does not allocate all of it before it runs any more")
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
    """Whether a CPU time is more than noise above another."""
    times, more = SLOWER_BY
    return before > 0 and seconds > before * times and seconds > before + more


def failing(changes: Iterable[Change], fail_on: Collection[str] = ()) -> list[Change]:
    """Those that make a sweep fail."""
    return [change for change in changes if change.kind in FAILING or change.kind in fail_on]


# Sweeps of parts put together.


PARTS = ("shard", "only")
"""Settings that parts may have of their own."""


def merge(folders: Sequence[Path], into: Path, *, force: bool = False) -> None:
    """Puts the results of several sweeps, and what their failures left, into one folder.

    What of the whole sweep is missing is said by the settings there, and by the summary.

    OptionError if they were made with different settings or versions, or have results of the same model and target.
    """
    settings = [read_settings(folder) for folder in folders]
    for folder, given in zip(folders[1:], settings[1:], strict=True):
        if differing := differences(settings[0], given, {*PARTS, *MACHINE}):
            what = f"its options or versions are not those of {folders[0]}, {', '.join(differing)}"
            remedy = "sweep all parts with the same options and versions"
            raise OptionError(Reason(what, str(folder), remedy=remedy))
    parts = [_Part(folder, given) for folder, given in zip(folders, settings, strict=True)]
    _check_apart(parts)
    whole = {part: settings[0][part] for part in ("settings", "fingerprint")}
    whole["settings"] = {**whole["settings"], "shard": None}
    jobs = list(dict.fromkeys((id, target) for given in settings for id, target in given.get("jobs", ())))
    whole |= {"sources": settings[0]["sources"], "jobs": jobs, "incomplete": list(_incomplete(parts, jobs))}
    inputs = [folder / name for folder in folders for name in FILES]
    with Store(into) as store:
        store.put(whole, (result for folder in folders for result in read_results(folder)), inputs=inputs, force=force)
        for folder in folders:
            for result in read_results(folder):
                left = folder / result.get("artifacts", "-")
                if "artifacts" in result and left.is_dir():
                    shutil.copytree(left, into / result["artifacts"], dirs_exist_ok=True)


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
        for id, target in part.keys:
            if (id, target) in seen:
                raise OptionError(f"{id} [{target}] is in both {seen[id, target]} and {part.folder}")
            seen[id, target] = part.folder


def _incomplete(parts: Sequence[_Part], jobs: Sequence[Key]) -> Iterator[str]:
    """Sentences on parts that are not among these, and on those that were interrupted."""
    given = {tuple(part.shard) for part in parts if part.shard is not None}
    for count in sorted({count for _, count in given}):
        for number in range(1, count + 1):
            if (number, count) in given:
                continue
            missing = sum(part_of(id, count) == number for id, _ in jobs)
            if missing or not jobs:
                of = f", with {missing} of {len(jobs)} results" if jobs else ""
                yield f"part {number}/{count} is not among them{of}: merge it, too"
    for part in parts:
        if part.missing:
            whole = len(part.keys) + len(part.missing)
            yield f"{part.folder} lacks {len(part.missing)} of {whole} results: go on with that sweep by --resume"


# What can be known to go wrong before a sweep starts: a package that is missing, a target or an option that no model
# could be converted with. Said at once, not once for each model.


_Package = tuple[tuple[str, ...], str, str, str]
_PACKAGES: Final[Mapping[str, _Package]] = {
    "page": (("jinja2",), "jinja2", "to write its page", "verify"),
    "kaggle": (("kagglehub",), "kagglehub", "to fetch models from Kaggle", "kaggle"),
    "dask": (("distributed",), "dask", "to run on the workers of a scheduler", "dask"),
}
"""What sweeps need: modules of which one has to be there, the package that has it, what for, tflq's extra with it."""


def check(jobs: Sequence[Job], settings: Settings, scheduler: str = "", *, kaggle: bool = True) -> None:
    """Raises the error that every model, or every one under some target, would end with. Nothing is run or written.

    kaggle: whether models of Kaggle are fetched from there, not by a fetcher of the caller's.
    OptionError for a package that is not installed, for a target or an option that is not known, or does nothing
    for a target, for a file of rules that has none, or a scheduler that does not answer. FileError for a target's
    file that cannot be read.
    """
    targets = list(dict.fromkeys(target for _, target in jobs))
    chosen = dict.fromkeys(_for_target(target, settings) for target in targets)
    for path in settings.rules:
        extension_of(Path(path))
    _check_packages(_needed(jobs, chosen, scheduler, kaggle))
    if scheduler:
        from tflq.sweep.cluster import connected

        connected(scheduler).close()


def _for_target(target: str, settings: Settings) -> Backend:
    """The format of a target, if models can be converted to it with the sweep's options."""
    options = {name: value for name, value in settings.convert.items() if name != "rules"}
    chosen = of_target(target, static=True)
    try:
        asked(chosen.name, target, **options)
    except OptionError as error:
        if any(reason.value == target for reason in error.reasons):
            raise
        first = error.reasons[0]
        remedy = first.remedy or "leave it out, or sweep the targets that take it on their own"
        raise OptionError(Reason(f"target {target}: {first.what}", value=first.value, remedy=remedy)) from error
    return chosen


def _needed(jobs: Sequence[Job], chosen: Iterable[Backend], scheduler: str, kaggle: bool) -> Iterator[_Package]:
    """Packages. Models run on the workers of a scheduler, which have packages of their own."""
    if scheduler:
        yield _PACKAGES["dask"]
    else:
        yield from _runs(backend("tflite"), "to run models")
        for each in chosen:
            if not each.builtins:
                yield from _runs(each, f"to run {each.name.upper()} files")
    yield _PACKAGES["page"]
    if kaggle and any(model.kaggle for model, _ in jobs):
        yield _PACKAGES["kaggle"]


def _runs(chosen: Backend, purpose: str) -> Iterator[_Package]:
    if chosen.requires is not None:
        modules, package, extra = chosen.requires
        yield modules, package, purpose, extra


def _check_packages(needed: Iterator[_Package]) -> None:
    missing = [
        (package, purpose, extra)
        for modules, package, purpose, extra in needed
        if not any(find_spec(module) for module in modules)
    ]
    if missing:
        listed = " and ".join(f"{package} ({purpose})" for package, purpose, _ in missing)
        extras = ",".join(dict.fromkeys(extra for _, _, extra in missing))
        what = f"a sweep of these models needs {listed}, which {'is' if len(missing) == 1 else 'are'} not installed"
        raise OptionError(Reason(what, remedy=to_install(extras)))
