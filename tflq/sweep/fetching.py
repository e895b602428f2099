"""Getting models: a `Fetcher` for each kind of place, all with one method."""

from __future__ import annotations

import glob
import hashlib
import http.client
import logging
import os
import re
import time
import urllib.error
import urllib.request
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock
from typing import Any, Final, Protocol, Self

from tflq.errors import to_install
from tflq.files import replace_file
from tflq.sweep.result import Model

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

    def takes(self, model: Model) -> bool:
        return bool(model.path)

    def fetch(self, model: Model) -> Path:
        path = Path(model.path)
        if not path.is_file():
            raise UnavailableError(f"there is no file {path}")
        return path


class UrlFetcher:
    """http, https and file URLs, kept in a folder by the hash that is pinned, or by the URL's.

    offline: only those that are there already.
    """

    remote = True

    def __init__(self, folder: Path, timeout: float = 60.0, *, offline: bool = False) -> None:
        self._folder = folder
        self._timeout = timeout
        self._offline = offline

    def takes(self, model: Model) -> bool:
        return bool(model.url)

    def fetch(self, model: Model) -> Path:
        if model.url.split("://")[0] not in ("http", "https", "file"):
            raise UnavailableError(f"{model.url}: only http, https and file URLs are fetched")
        path = self._folder / f"{model.sha256 or hashlib.sha256(model.url.encode()).hexdigest()}.tflite"
        if path.is_file():
            return path
        if self._offline and not model.url.startswith("file://"):
            raise UnavailableError(f"{model.url}: it is not in the cache, and the sweep is offline")
        self._folder.mkdir(parents=True, exist_ok=True)
        return _retried(
            lambda: self._download(model.url, path),
            (OSError, http.client.HTTPException),
            lambda error: not (isinstance(error, urllib.error.HTTPError) and error.code < 500),
            lambda error: f"{model.url}: {getattr(error, 'reason', '') or error}",
        )

    def _download(self, url: str, path: Path) -> Path:
        with urllib.request.urlopen(url, timeout=self._timeout) as answer:  # noqa: S310 - checked by the caller
            replace_file(path, iter(lambda: answer.read(CHUNK), b""))
        return path


def _retried(
    get: Callable[[], Path],
    kinds: tuple[type[Exception], ...],
    passing: Callable[[Any], bool],
    why: Callable[[Any], str],
    pause: float = 0.0,
) -> Path:
    """What `get` returns, in at most three tries, with pauses that double. UnavailableError for an error of these kinds
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
    fixed = next((i for i, part in enumerate(parts) if re.search(r"[*?\[]", part)), len(parts) - 1)
    root = Path(*parts[:fixed])
    matches = sorted(Path(p) for p in glob.glob(pattern, recursive=True) if Path(p).is_file())
    return [(path.relative_to(root).as_posix(), path) for path in matches]


# Models of Kaggle, by kagglehub: its cache, its credentials, its way of checking what came.
#
# A handle is `owner/model/tfLite/variation/version`. Models that are public come without credentials; those that want
# consent need an account that gave it.


HANDLE: Final = re.compile(r"[\w.-]+/[\w.-]+/[A-Za-z0-9]+/[\w.-]+/[1-9]\d*", re.ASCII)
"""owner/model/framework/variation/version."""
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
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
