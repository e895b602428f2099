"""Files of models: a `Fetcher` for each kind of place, all with one method, and a supply that fetches ahead."""

from __future__ import annotations

import hashlib
import http.client
import shutil
import tempfile
import time
import urllib.error
import urllib.request
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, Self

from tflq.base.files import reads_once, replace_file
from tflq.formats.sources import on_disk
from tflq.tools.sweep.task import Model

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
        return retried(
            lambda: self._download(model.url, path),
            (OSError, http.client.HTTPException),
            lambda error: not (isinstance(error, urllib.error.HTTPError) and error.code < 500),
            lambda error: f"{model.url}: {getattr(error, 'reason', '') or error}",
        )

    def _download(self, url: str, path: Path) -> Path:
        with urllib.request.urlopen(url, timeout=self.timeout) as answer:  # noqa: S310 - checked by the caller
            replace_file(path, iter(lambda: answer.read(CHUNK), b""))
        return path


def retried(
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
