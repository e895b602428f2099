"""The folder of a sweep: its lock, its settings, its results as they come, and what failures left.

DIR/sweep.json       settings and sources       DIR/results.jsonl   one line per model and target
DIR/artifacts/       of failures                DIR/lock            held while a sweep runs
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from tflq.base.documents import read_json, read_json_lines
from tflq.base.errors import FileError, OptionError, Reason
from tflq.base.files import check_outputs, file_errors, replace_file, replace_files
from tflq.tools.sweep.fields import MOST_PARTS, SETTINGS_FORMAT, SETTINGS_VERSION, Line, Settings, is_part
from tflq.tools.sweep.task import MACHINE, Key, Model, Result, in_part, key_of, label, write_all

# What two sweeps were started with, and how to say what differs.


_WORDS: Final[Mapping[str, str]] = {
    "seconds": "--timeout",
    "bytes": "--memory",
    "max_lsb": "--max-lsb",
    "tflq": "tflq",
    "commit": "tflq's commit",
    "interpreter": "the interpreter",
    "kernel_set": "--kernel-set",
    "tosa": "the TOSA reference model",
    "numpy": "numpy",
    "python": "Python",
    "platform": "the platform",
    "cpu": "the CPU",
}
"""The names of parts of `sweep.json` that are not an option of the same name."""
_SHOWN: Final[Mapping[str, Callable[[Any], str]]] = {
    "bytes": lambda value: str(value >> 20),
    "shard": lambda value: "/".join(map(str, value)),
}


def differences(before: Mapping[str, Any], now: Mapping[str, Any], free: Collection[str] = ()) -> list[str]:
    """Differences of the options and versions of two sweeps (`settings` and `fingerprint` of `sweep.json`), as
    "--target integer (now --target kernels)". free: parts that may differ."""
    changes = []
    for part in ("settings", "fingerprint"):
        a, b = before.get(part, {}), now.get(part, {})
        changes += other_options(a, b, {*free, "convert"})
        changes += other_options(a.get("convert", {}), b.get("convert", {}), {"kernel_set"})
    return changes


def other_options(before: Mapping[str, Any], now: Mapping[str, Any], free: Collection[str] = ()) -> list[str]:
    """The options that are not the same, as `differences` says them."""
    keys = sorted(key for key in {*before, *now} - {*free} if before.get(key) != now.get(key))
    return [f"{_setting_text(key, before.get(key))} (now {_setting_text(key, now.get(key))})" for key in keys]


def _setting_text(key: str, value: Any) -> str:
    """A setting as it is given in the command."""
    name = _WORDS.get(key) or f"--{key.replace('_', '-')}"
    if key == "targets":
        return " ".join(f"--target {target}" for target in value or ())
    if key == "xnnpack":
        return "--xnnpack" if value else "--no-xnnpack"
    if value in (None, "", [], False):
        return f"without {name}"
    if value is True:
        return name
    shown = _SHOWN.get(key, _listed)(value)
    return f"{name} {shown}"


def _listed(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


RESULTS: Final = "results.jsonl"
SETTINGS: Final = "sweep.json"
FILES: Final = (RESULTS, SETTINGS, "baseline.json", "summary.md", "junit.xml", "changes.json", "index.html")
"""All files of a sweep but those in the folders below."""
ARTIFACTS: Final = "artifacts"
CACHE: Final = "cache"
MODELS: Final = "models"
WORK: Final = "work"
_LOCK: Final = "lock"


def place_in(folder: Path, name: str) -> Path:
    """A file or a folder of a sweep's folder. FileError if it is a link: these could lead anywhere, and none is
    followed."""
    place = folder / name
    if place.is_symlink():
        remedy = "remove it, or give another folder"
        raise FileError(str(place), "this is a link, which is not followed in the folder of a sweep", remedy=remedy)
    return place


class Store:
    """The folder, opened by the one driver that may write to it."""

    def __init__(self, folder: Path) -> None:
        """Makes the folder and takes its lock. OptionError if another sweep has it.

        FileError if a file of that name is not a lock, or something that a sweep writes to is a link.
        """
        self.folder = folder
        for name in (*FILES, ARTIFACTS, WORK, CACHE, f"{CACHE}/{MODELS}", _LOCK):
            place_in(folder, name)
        with file_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            _check_lock(folder / _LOCK)
            self._lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._lock, 20, 0).decode().strip()
            os.close(self._lock)
            raise OptionError(f"{folder}: another sweep (process {owner}) is writing to it") from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, str(os.getpid()).encode(), 0)
        self._file: int | None = None

    @property
    def work(self) -> Path:
        """Where tasks put their files."""
        return self.folder / WORK

    def begin(
        self, settings: Mapping[str, Any], *, inputs: Iterable[object] = (), resume: bool, force: bool = False
    ) -> None:
        """Starts the results, or goes on with them. inputs: what the sweep reads.

        OptionError if there are some already, or other settings; FileError if there are other files of such names, or
        an input is among what is replaced.
        """
        path = self.folder / RESULTS
        if path.exists() and not resume and not force:
            raise OptionError(f"{path} exists already: --resume goes on with it, --force starts over")
        goes_on = resume and (path.exists() or (self.folder / SETTINGS).exists())
        self._check(inputs, force=force or goes_on)
        if goes_on and path.exists():
            self._same_settings(settings)
            _drop_torn_line(path)
        replace_file(self.folder / SETTINGS, [_document(settings)])
        if not goes_on:
            path.unlink(missing_ok=True)
            shutil.rmtree(self.folder / ARTIFACTS, ignore_errors=True)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        _sync_folder(self.folder)

    def put(
        self, settings: Mapping[str, Any], results: Iterable[Result], *, inputs: Iterable[object] = (), force: bool
    ) -> None:
        """Writes all results at once, whole or not at all. FileError as of `begin`."""
        self._check(inputs, force=force)
        lines = (_line(result) for result in results)
        replace_files([(self.folder / SETTINGS, [_document(settings)]), (self.folder / RESULTS, lines)])
        shutil.rmtree(self.folder / ARTIFACTS, ignore_errors=True)

    def _check(self, inputs: Iterable[object], *, force: bool) -> None:
        read = list(inputs)
        check_outputs([(name, self.folder / name) for name in FILES], inputs=read, force=force)
        replaced = [(self.folder / name).resolve() for name in (ARTIFACTS, WORK)]
        for place in read:
            if isinstance(place, (str, os.PathLike)) and any(map(Path(place).resolve().is_relative_to, replaced)):
                what = f"this is an input, in a folder that the sweep in {self.folder} replaces"
                raise FileError(os.fspath(place), what, remedy="give another folder, or move it")

    def append(self, result: Result) -> None:
        """Writes one result, which is on disk when this returns."""
        assert self._file is not None
        write_all(self._file, _line(result))
        os.fsync(self._file)

    def keep(self, id: str, target: str, left: Path) -> str:
        """Moves what a failure left to its place under the folder, whose name it returns."""
        name = f"{ARTIFACTS}/{_file_name(id)}--{_file_name(target)}"
        place = self.folder / name
        if place.is_symlink():
            place.unlink()
        shutil.rmtree(place, ignore_errors=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(left, place)
        return name

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
        os.close(self._lock)

    def _same_settings(self, settings: Mapping[str, Any]) -> None:
        other = differences(read_settings(self.folder), json.loads(json.dumps(settings)), MACHINE)
        if other:
            what = f"the sweep there was started with {', '.join(other)}"
            remedy = "give the same options to go on with it; --force starts over, -o names another folder"
            raise OptionError(Reason(what, str(self.folder), remedy=remedy))


def _document(settings: Mapping[str, Any]) -> bytes:
    return json.dumps({"format": SETTINGS_FORMAT, "version": SETTINGS_VERSION, **settings}, indent=1).encode() + b"\n"


def _line(result: Result) -> bytes:
    return json.dumps(result, allow_nan=False).encode() + b"\n"


def _check_lock(path: Path) -> None:
    """FileError if a file is there that is not what a sweep leaves: the number of its process."""
    if path.exists() and not re.fullmatch(rb"\d*\s*", path.read_bytes()):
        raise FileError(str(path), "it exists already, and is not the lock of a sweep", remedy="give another folder")


def expected_keys(settings: Mapping[str, Any]) -> list[Key]:
    """The models and targets that a sweep with these settings has results of when it is done. Empty for a sweep of tflq
    1, which did not say."""
    shard = settings["settings"].get("shard")
    return [(id, target) for id, target in settings.get("jobs", ()) if in_part(id, shard)]


def read_settings(folder: Path) -> dict[str, Any]:
    """The settings that a sweep was started with. FileError if they cannot be read, OptionError for a fault."""
    remedy = "give another folder, or sweep anew"
    settings: dict[str, Any] = read_json(_file_in(folder, SETTINGS), Settings, "the settings of a sweep", remedy=remedy)
    return settings


def read_results(folder: Path) -> Iterator[Result]:
    """The results in a folder, one by one. A torn last line, of a sweep that was killed, is left out. FileError if they
    cannot be read, OptionError for a line with a fault, or for a model and target that an earlier line has."""
    path = _file_in(folder, RESULTS)
    lines: dict[Key, int] = {}
    for number, result in enumerate(read_json_lines(path, Line, "the result of a sweep", remedy="sweep anew"), 1):
        key = key_of(result)
        if (first := lines.setdefault(key, number)) != number:
            what = f"{label(key)} is in line {first}, too"
            raise OptionError(Reason(what, str(path), place=str(number), remedy="leave one of the lines out"))
        yield result


def _file_in(folder: Path, name: str) -> Path:
    path = place_in(folder, name)
    if not path.is_file():
        raise FileError(str(path), "there is no such file: not the folder of a sweep")
    return path


def _drop_torn_line(path: Path) -> None:
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        end = size
        while end:
            start = max(0, end - (1 << 16))
            file.seek(start)
            at = file.read(end - start).rfind(b"\n")
            if at >= 0:
                end = start + at + 1
                break
            end = start
        if end < size:
            file.truncate(end)
            os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def _file_name(text: str) -> str:
    """A text as the name of a file; different texts get different names."""
    name = re.sub(r"[^\w.-]+", "_", text)
    return (
        name
        if name == text and name.strip(".")
        else f"{name[-100:]}-{zlib.crc32(text.encode('utf-8', 'surrogateescape')):08x}"
    )


# Which models and targets a sweep runs: some by name, those that failed before, or one part of several.


Job = tuple[Model, str]


@dataclass(frozen=True, slots=True)
class Selection:
    """Some of the models and targets of a sweep.

    only: patterns of ids, or words in them; empty: all. failed_from: the folder of a sweep; what was as expected there
    is left out. shard: the part i of n; a model is always in the same part.
    """

    only: tuple[str, ...] = ()
    failed_from: Path | None = None
    shard: tuple[int, int] | None = None

    def test(self) -> Callable[[Key], bool]:
        """Whether something is selected. FileError if there is no sweep to look in."""
        failed: set[Key] | None = None
        if self.failed_from:
            failed = {key_of(result) for result in read_results(self.failed_from) if not result["expected"]}

        def selected(key: Key) -> bool:
            return self.names(key[0]) and (failed is None or key in failed) and in_part(key[0], self.shard)

        return selected

    def names(self, id: str) -> bool:
        """Whether `only` has this id."""
        return not self.only or any(_fits(pattern, id) for pattern in self.only)


def _fits(pattern: str, id: str) -> bool:
    return pattern in id or fnmatchcase(id, pattern)


def jobs_of(models: Sequence[Model], targets: Sequence[str], selection: Selection) -> list[Job]:
    """Each model under each of its targets, or of the sweep's if it names none, in order, of those that are selected.

    OptionError if a pattern of `only` matches no model.
    """
    selected = selection.test()
    if lone := [pattern for pattern in selection.only if not any(_fits(pattern, model.id) for model in models)]:
        raise OptionError(f"no model's id matches {', '.join(lone)}")
    jobs = [(model, target) for model in models for target in dict.fromkeys(model.targets or targets)]
    return [(model, target) for model, target in jobs if selected((model.id, target))]


def keys_of(jobs: Iterable[Job]) -> list[Key]:
    return [(model.id, target) for model, target in jobs]


def read_shard(text: str) -> tuple[int, int]:
    """The part of a sweep that "i/n" names: 1/4 to 4/4. OptionError for any other text."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not is_part(int(match[1]), int(match[2])):
        raise OptionError(f"'{text}' is not a part of a sweep: 1/4 is the first of four, and {MOST_PARTS} are the most")
    return int(match[1]), int(match[2])
