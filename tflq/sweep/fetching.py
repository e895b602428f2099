"""Getting models: a `Fetcher` for each kind of place, all with one method."""

from __future__ import annotations

import hashlib
import http.client
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final, Protocol

from tflq.files import replace_file
from tflq.sweep.models import Model

__all__ = ["Fetcher", "FileFetcher", "UnavailableError", "UrlFetcher"]

CHUNK: Final = 1 << 20
TRIES: Final = 3


class UnavailableError(Exception):
    """A model cannot be had; the message says why, and what can be done."""


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
        for attempt in range(TRIES):
            try:
                self._download(model.url, path)
            except (OSError, http.client.HTTPException) as error:
                permanent = isinstance(error, urllib.error.HTTPError) and error.code < 500
                if permanent or attempt == TRIES - 1:
                    raise UnavailableError(f"{model.url}: {getattr(error, 'reason', '') or error}") from error
            else:
                return path
        raise AssertionError

    def _download(self, url: str, path: Path) -> None:
        with urllib.request.urlopen(url, timeout=self._timeout) as answer:  # noqa: S310 - checked by the caller
            replace_file(path, iter(lambda: answer.read(CHUNK), b""))
