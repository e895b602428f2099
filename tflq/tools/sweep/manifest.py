"""Models of a sweep: manifests, TOML files that list them, and how each is got.

version = 1
targets = ["integer", "kernels"]        # of models that name none; by default those of the sweep

[[model]]
id = "mobilenet_v2"                     # by default the file's name
path = "mobilenet_v2.tflite"            # relative to the manifest, a pattern gives a model for each file
# or  url = "https://..."
# or  kaggle = "owner/model/tfLite/variation/version"  with  file = "*.tflite"
source = "https://..."                  # the page that cites it
sha256 = "..."
verified = true                         # false until someone pinned it
targets = ["tosa"]
inputs = "mobilenet_v2.npz"
shapes = { image = [1, 224, 224, 3] }

[[model.expect]]                        # `expect = { ... }` for a single one
status = "refused"
targets = ["tosa"]                      # by default all
reason = "a custom operator"

[[expect]]                              # for all models whose id matches
match = "detection/*"
status = "original-fails"
reason = "..."
"""

from __future__ import annotations

import glob
import hashlib
import http.client
import logging
import os
import re
import shutil
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
import weakref
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Final, Protocol, Required, Self, TypedDict

from tflq.base.documents import Check, TomlFile, exactly
from tflq.base.errors import FileError, OptionError, Reason, to_install
from tflq.base.files import FilePath, check_link, reads_once, replace_file
from tflq.formats.backend import of_target
from tflq.formats.sources import on_disk
from tflq.tools.sweep.task import Expectation, Model, Result, Status

SUFFIX: Final = ".tflite"
_SUFFIX_IN_ANY_CASE: Final = ".[tT][fF][lL][iI][tT][eE]"
MANIFEST_VERSION: Final = 1
PLACES: Final = ("path", "url", "kaggle")
HANDLE: Final = re.compile(r"[\w.-]+/[\w.-]+/[A-Za-z0-9]+/[\w.-]+/[1-9]\d*", re.ASCII)
"""owner/model/framework/variation/version."""
_HANDLE_OR_NONE: Final = re.compile(f"(?:{HANDLE.pattern})?", re.ASCII)
_SHA256: Final = re.compile("(?:[0-9a-f]{64})?")

_Text = Annotated[str, Check("a text without NUL", lambda text: "\0" not in text)]
_Dim = Annotated[int, Check("a dim, from 1 on", lambda dim: dim > 0)]


class _Expectation(TypedDict, total=False):
    match: str
    status: Required[Status]
    targets: list[_Text]
    reason: Required[Annotated[str, Check("a reason", bool)]]


class _Entry(TypedDict, total=False):
    id: _Text
    path: _Text
    url: _Text
    kaggle: Annotated[str, Check("a handle: owner/model/tfLite/variation/version", _HANDLE_OR_NONE.fullmatch)]
    file: _Text
    source: _Text
    sha256: Annotated[str, Check("a SHA-256: 64 hex digits, in lower case", _SHA256.fullmatch)]
    inputs: _Text
    targets: list[_Text]
    shapes: Mapping[str, list[_Dim]]
    expect: list[_Expectation] | _Expectation
    verified: bool


class _Document(TypedDict, total=False):
    """A manifest."""

    version: Annotated[int, exactly(MANIFEST_VERSION)]
    targets: list[_Text]
    model: list[Annotated[_Entry, Check(f"a model with one of {', '.join(PLACES)}", lambda entry: _has_place(entry))]]
    expect: list[_Expectation] | _Expectation


def _has_place(entry: Mapping[str, Any]) -> bool:
    return sum(bool(entry.get(key)) for key in PLACES) == 1


def read_manifest(path: Path) -> list[Model]:
    """The models of a manifest, in its order. OptionError names line, entry and key of what is wrong, FileError a
    pattern that no file matches."""
    file = TomlFile(path)
    document: _Document = file.checked(_Document, "a manifest")
    _check_targets(file, ("targets",), document.get("targets", []))
    for i, entry in enumerate(document.get("model", [])):
        _check_targets(file, ("model", i, "targets"), entry.get("targets", []))
    common = _expectations(document.get("expect", []))
    entries = enumerate(document.get("model", []))
    return [model for i, entry in entries for model in _of_entry(path, i, entry, document.get("targets", []), common)]


def _check_targets(file: TomlFile, place: tuple[str | int, ...], targets: Sequence[str]) -> None:
    """OptionError for a target that is neither known nor a file."""
    for target in targets:
        try:
            of_target(target, static=True)
        except OptionError as error:
            what, line = error.reason, str(file.locate(place)[0])
            if what.path:  # a fault of a target's own file
                raise
            raise OptionError(Reason(what.what, file.path, place=line, value=target, remedy=what.remedy)) from error


def _of_entry(
    manifest: Path, number: int, entry: _Entry, targets: Sequence[str], common: tuple[Expectation, ...]
) -> Iterator[Model]:
    inputs = entry.get("inputs", "")
    id, place = entry.get("id", ""), entry.get("path", "")
    model = Model(
        id or place_name(entry.get("url") or entry.get("kaggle", "")),
        url=entry.get("url", ""),
        kaggle=entry.get("kaggle", ""),
        file=entry.get("file", ""),
        source=entry.get("source", ""),
        sha256=entry.get("sha256", ""),
        targets=tuple(entry.get("targets") or targets),
        inputs=inputs and str(manifest.parent / inputs),
        shapes={name: tuple(shape) for name, shape in entry.get("shapes", {}).items()},
        expect=(*_expectations(entry.get("expect", [])), *common),
        verified=entry.get("verified", True),
    )
    if not place:
        yield model
        return
    pattern = str(manifest.parent / place)
    several = is_pattern(pattern)
    files = expanded(pattern) if several else [(Path(pattern).name, Path(pattern))]
    if not files:
        raise FileError(pattern, "no file matches", remedy=f"see model[{number}] of {manifest}")
    for name, path in files:
        stem = name.removesuffix(SUFFIX)
        model_id = "/".join(part for part in (id, stem) if part) if several else id or stem
        yield replace(model, id=model_id, path=str(path))


def _expectations(entries: list[_Expectation] | _Expectation) -> tuple[Expectation, ...]:
    listed = entries if isinstance(entries, list) else [entries]
    return tuple(
        Expectation(each["status"], each["reason"], tuple(each.get("targets", ())), each.get("match") or "*")
        for each in listed
    )


def place_name(place: str) -> str:
    """A name for what is at a URL or under a handle."""
    return place.split("://")[-1].split("?")[0].removesuffix(SUFFIX).strip("/")


# The models of a sweep's sources: folders, patterns, single files and manifests.


def find_models(sources: Sequence[FilePath]) -> list[Model]:
    """The models of all sources, in their order.

    A folder gives every .tflite file in it, named by the folder and the path in it: "zoo/vision/net"; so does a
    pattern, named by the path from its first wild part. A URL is a model of its own. A .toml file is a manifest.

    FileError for a source that is not there or holds no model; OptionError if two models have one id.
    """
    texts = [os.fspath(source) for source in sources]
    labels = _labels([Path(text) for text in texts if Path(text).is_dir()])
    models: list[Model] = []
    for text in texts:
        added = list(_models(text, labels))
        if not added:
            remedy = "name a folder, a file or a pattern that has models"
            raise FileError(text, f"no {SUFFIX} file is in it", remedy=remedy)
        models += added
    models = list({(m.id, m.place, m.targets): m for m in models}.values())
    _check_ids(models)
    return models


def _models(text: str, labels: dict[Path, str]) -> Iterator[Model]:
    path = Path(text)
    if "://" in text:
        yield Model(place_name(text), url=text)
    elif path.is_dir():
        label = labels[path.resolve()]
        for file in sorted(map(Path, glob.glob(f"**/*{_SUFFIX_IN_ANY_CASE}", root_dir=path, recursive=True))):
            if (path / file).is_file():
                yield Model(f"{label}/{file.with_suffix('').as_posix()}", path=str(path / file))
    elif is_pattern(text):
        for name, file in expanded(text):
            yield Model(name.removesuffix(SUFFIX), path=str(file))
    elif path.suffix == ".toml" and path.is_file():
        yield from read_manifest(path)
    elif path.exists():
        yield Model(path.name.removesuffix(SUFFIX), path=text)
    else:
        check_link(path)
        raise FileError(text, "there is no such file or folder")


def _labels(folders: Iterable[Path]) -> dict[Path, str]:
    """A name for each folder: as much of the end of its path as tells it from the others."""
    paths = list(dict.fromkeys(folder.resolve() for folder in folders))
    names = dict.fromkeys(paths, 1)
    while True:
        labels = {path: "/".join(path.parts[-n:]) for path, n in names.items()}
        counts = Counter(labels.values())
        if len(counts) == len(paths):
            return labels
        for path, label in labels.items():
            names[path] += counts[label] > 1


def _check_ids(models: Sequence[Model]) -> None:
    places: dict[str, str] = {}
    for model in models:
        other = places.setdefault(model.id, model.place)
        if other != model.place:
            raise OptionError(
                f"{other} and {model.place} both have the id '{model.id}': a manifest can name them, or their folders"
            )


# Pins: the SHA-256 of models that were fetched, written into the manifest that lists them. Only the lines `sha256` and
# `verified` of an entry change.


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

    FileError if the manifest is not written in plain [[model]] tables; then it stays as it is.
    """
    file = TomlFile(path)
    text, document = file.text, file.content
    pinned = {i: id for i, entry in enumerate(document.get("model", [])) if (id := _unpinned(entry)) in hashes}
    if not pinned:
        return []
    for i, id in pinned.items():
        document["model"][i] |= {"sha256": hashes[id], "verified": True}
    edited = _edited(text, {i: hashes[id] for i, id in pinned.items()})
    try:
        same = tomllib.loads(edited) == document
    except tomllib.TOMLDecodeError:
        same = False
    if not same:
        raise FileError(str(path), "its entries are not plain [[model]] tables", remedy="write the pins by hand")
    replace_file(path, [edited.encode("utf-8")])
    return list(pinned.values())


def _unpinned(entry: Mapping[str, Any]) -> str:
    place = entry.get("kaggle") or entry.get("url")
    return (entry.get("id") or place_name(place)) if place and not entry.get("sha256") else ""


def _edited(text: str, hashes: Mapping[int, str]) -> str:
    """The lines of a manifest; after the last key of an entry's table come its pins."""
    lines = text.splitlines(keepends=True)
    starts = [n for n, line in enumerate(lines) if re.match(r"\s*\[\[\s*model\s*\]\]", line)]
    for i, start in sorted(enumerate(starts), reverse=True):
        if i not in hashes:
            continue
        end = next((n for n in range(start + 1, len(lines)) if re.match(r"\s*\[", lines[n])), len(lines))
        table = [line for line in lines[start:end] if not re.match(r"\s*(sha256|verified)\s*=", line)]
        last = max(n for n, line in enumerate(table) if line.strip() and not line.lstrip().startswith("#"))
        table[last] = table[last].rstrip("\r\n") + "\n"
        table[last + 1 : last + 1] = [f'sha256 = "{hashes[i]}"\n', "verified = true\n"]
        lines[start:end] = table
    return "".join(lines)


# Getting models: a `Fetcher` for each kind of place, all with one method.


CHUNK: Final = 1 << 20
TRIES: Final = 3


class UnavailableError(Exception):
    """A model is unavailable; the message says why, and what can be done."""


class Fetcher(Protocol):
    """Gets models of one kind of place.

    `takes` says whether a model is for it; `fetch` returns the path of its file, or raises UnavailableError. The
    caller checks the model's hash. `remote`: whether it takes time; then it runs in threads, several at once.
    """

    remote: bool

    def takes(self, model: Model) -> bool: ...

    def fetch(self, model: Model) -> Path: ...


class FileFetcher:
    """Files of this machine."""

    remote = False

    def __init__(self) -> None:
        self._copies: dict[str, Path] = {}

    def takes(self, model: Model) -> bool:
        return bool(model.path)

    def fetch(self, model: Model) -> Path:
        """The file; of one that can be read once only a copy, which all targets share."""
        path = Path(model.path)
        if path.is_file() and not reads_once(path):
            return path
        if path.is_dir() or not path.exists():
            raise UnavailableError(f"there is no file {path}")
        if model.path not in self._copies:
            folder = tempfile.mkdtemp(prefix="tflq-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            self._copies[model.path] = Path(on_disk(path, folder))
        return self._copies[model.path]


@dataclass(eq=False)
class UrlFetcher:
    """http, https and file URLs, kept in a folder by the hash that is pinned, or by the URL's.

    offline: only those that are there already.
    """

    remote = True

    folder: Path
    timeout: float = 60.0
    offline: bool = False

    def takes(self, model: Model) -> bool:
        return bool(model.url)

    def fetch(self, model: Model) -> Path:
        if model.url.split("://")[0] not in ("http", "https", "file"):
            raise UnavailableError(f"{model.url}: only http, https and file URLs are fetched")
        path = self.folder / f"{model.sha256 or hashlib.sha256(model.url.encode()).hexdigest()}.tflite"
        if path.is_file():
            return path
        if self.offline and not model.url.startswith("file://"):
            raise UnavailableError(f"{model.url}: it is not in the cache, and the sweep is offline")
        self.folder.mkdir(parents=True, exist_ok=True)
        return _retried(
            lambda: self._download(model.url, path),
            (OSError, http.client.HTTPException),
            lambda error: not (isinstance(error, urllib.error.HTTPError) and error.code < 500),
            lambda error: f"{model.url}: {getattr(error, 'reason', '') or error}",
        )

    def _download(self, url: str, path: Path) -> Path:
        with urllib.request.urlopen(url, timeout=self.timeout) as answer:  # noqa: S310 - checked by the caller
            replace_file(path, iter(lambda: answer.read(CHUNK), b""))
        return path


def _retried(
    get: Callable[[], Path],
    kinds: tuple[type[Exception], ...],
    passing: Callable[[Any], bool],
    why: Callable[[Any], str],
    pause: float = 0.0,
) -> Path:
    """Result of `get`, in at most three tries, with pauses that double. UnavailableError for an error of these kinds
    that another try cannot pass, or that the last one raised."""
    for left in reversed(range(TRIES)):
        try:
            return get()
        except kinds as error:
            if not left or not passing(error):
                raise UnavailableError(why(error)) from error
        time.sleep(pause)
        pause *= 2
    raise AssertionError


# Models made available ahead of the tasks: remote ones are fetched in threads while others run.


THREADS: Final = 4
AHEAD: Final = 8  # models fetched before their turn


@dataclass(frozen=True, slots=True)
class Supplied:
    """A model under a target, with its file, or why it is missing."""

    model: Model
    target: str
    path: Path | None
    why: str = ""


class Supply:
    """Jobs in order, their models fetched; one that several targets need in a row is fetched once."""

    def __init__(self, jobs: Sequence[tuple[Model, str]], fetchers: Sequence[Fetcher]) -> None:
        self._jobs = iter(jobs)
        self._fetchers = fetchers
        self._pool = ThreadPoolExecutor(THREADS, "fetch")
        self._ahead: deque[tuple[Model, str, Future[Path] | None]] = deque()
        self._last: tuple[Model, Future[Path]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def __iter__(self) -> Iterator[Supplied]:
        while True:
            self._fetch_ahead()
            if not self._ahead:
                return
            model, target, future = self._ahead.popleft()
            if future is None:
                yield Supplied(model, target, None, f"{model.place}: nothing here fetches such a model")
                continue
            try:
                yield Supplied(model, target, future.result())
            except UnavailableError as error:
                yield Supplied(model, target, None, str(error))

    def _fetch_ahead(self) -> None:
        for model, target in self._jobs:
            self._ahead.append((model, target, self._fetch(model)))
            if len(self._ahead) > AHEAD:
                return

    def _fetch(self, model: Model) -> Future[Path] | None:
        if self._last is not None and self._last[0] is model:
            return self._last[1]
        fetcher = next((f for f in self._fetchers if f.takes(model)), None)
        if fetcher is None:
            return None
        if fetcher.remote:
            future = self._pool.submit(fetcher.fetch, model)
        else:
            future = Future()
            try:
                future.set_result(fetcher.fetch(model))
            except UnavailableError as error:
                future.set_exception(error)
        self._last = model, future
        return future


# Files by pattern.


def is_pattern(text: str) -> bool:
    """Whether a path is a pattern, and not the name of a file."""
    return glob.has_magic(text) and not Path(text).exists()


def expanded(pattern: str) -> list[tuple[str, Path]]:
    """The files that match a pattern, sorted, each with its path below the folder that the pattern starts from."""
    parts = Path(pattern).parts
    fixed = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    root = Path(*parts[:fixed])
    matches = sorted(Path(p) for p in glob.glob(pattern, recursive=True) if Path(p).is_file())
    return [(path.relative_to(root).as_posix(), path) for path in matches]


# Models of Kaggle, by kagglehub: its cache, its credentials, its way of checking what came.
#
# A handle is `owner/model/tfLite/variation/version`. Models that are public come without credentials; those that want
# consent need an account that gave it.


ANY_FILE: Final = "*.tflite"
PAUSE: Final = 0.5  # seconds before another try, doubled each time
CREDENTIALS: Final = (
    "there are no Kaggle credentials: set KAGGLE_API_TOKEN, or KAGGLE_USERNAME and KAGGLE_KEY, or put the "
    "kaggle.json of an account where KAGGLE_CONFIG_DIR says (~/.kaggle)"
)


class KaggleFetcher:
    """Models of Kaggle, kept in kagglehub's cache. offline: only those that are there already."""

    remote = True

    def __init__(self, *, offline: bool = False, pause: float = PAUSE) -> None:
        self._offline = offline
        self._pause = pause
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)  # one download of a handle at a time
        self._lock = Lock()

    def takes(self, model: Model) -> bool:
        return bool(model.kaggle)

    def fetch(self, model: Model) -> Path:
        hub = _hub()
        pattern = model.file or ANY_FILE
        name = "" if is_pattern(pattern) else pattern
        with self._lock:
            lock = self._locks[model.kaggle]
        with lock:
            place = self._cached(model, name) or _retried(
                lambda: Path(hub.model_download(model.kaggle, name or None)),
                (Exception,),  # kagglehub has no class of its own for what it raises
                _passing,
                lambda error: _why(error, model),
                self._pause,
            )
        return place if place.is_file() else _chosen(place, pattern)

    def _cached(self, model: Model, name: str) -> Path | None:
        """The bundle or, if `name` says which, the file, if it came whole; else None, and when offline
        UnavailableError."""
        from kagglehub.cache import Cache
        from kagglehub.handle import parse_model_handle

        handle = parse_model_handle(model.kaggle)
        bundle = Cache().load_from_cache(handle)
        if bundle is not None and name and not Path(bundle, name).is_file():
            bundle = None
        place = str(Path(bundle, name)) if bundle is not None else name and Cache().load_from_cache(handle, name)
        if place:
            return Path(place)
        if self._offline:
            raise UnavailableError("it is not in kagglehub's cache, and the sweep is offline")
        return None


def _hub() -> Any:
    """kagglehub, made to print only what is wrong."""
    os.environ.setdefault("TQDM_DISABLE", "1")  # read when tqdm is imported
    try:
        import kagglehub
    except ImportError as error:
        raise UnavailableError(f"kagglehub is not installed; {to_install('kaggle')}") from error
    if "KAGGLEHUB_VERBOSITY" not in os.environ:
        logging.getLogger("kagglehub").setLevel(logging.ERROR)
    return kagglehub


def _chosen(folder: Path, pattern: str) -> Path:
    """The one file of a bundle that the pattern matches."""
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    fits = [name for name in names if fnmatchcase(name, pattern) or fnmatchcase(Path(name).name, pattern)]
    if len(fits) == 1:
        return folder / fits[0]
    if not fits:
        raise UnavailableError(f"no file matches '{pattern}'; there are {_listed(names)}")
    raise UnavailableError(f"`file` must say which: '{pattern}' matches {_listed(fits)}")


def _listed(names: list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "") or "no files"


def _status(error: BaseException) -> int:
    """The HTTP status behind an error; 0 without one."""
    return getattr(getattr(error, "response", None), "status_code", 0) or 0


def _passing(error: Exception) -> bool:
    """Whether another try may do better."""
    from kagglehub.exceptions import DataCorruptionError

    status = _status(error)
    return isinstance(error, DataCorruptionError) or _is_of_network(error) or status == 429 or status >= 500


def _is_of_network(error: Exception) -> bool:
    """Whether it is what requests raises without an answer: an OSError, but not the system's."""
    return isinstance(error, OSError) and error.errno is None and not _status(error)


def _why(error: Exception, model: Model) -> str:
    page = f"https://www.kaggle.com/models/{model.kaggle}"
    status = _status(error)
    if status in (401, 403):
        if not _has_credentials():
            return f"Kaggle wants to know who asks (HTTP {status}), and {CREDENTIALS}"
        return f"Kaggle does not give it to this account (HTTP {status}); {page} says if it wants consent to its terms"
    if status == 404:
        return f"Kaggle has no such model or file (HTTP 404): {page}"
    if _is_of_network(error):
        return f"Kaggle cannot be reached: {_first_line(error)}"
    return f"Kaggle answered HTTP {status}: {_first_line(error)}" if status else _first_line(error)


def _has_credentials() -> bool:
    from kagglehub.config import get_kaggle_credentials

    read: Callable[[], object] = get_kaggle_credentials
    try:
        return read() is not None
    except ValueError:
        return False


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
