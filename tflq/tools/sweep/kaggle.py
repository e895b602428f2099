"""Models of Kaggle, by kagglehub: its cache, its credentials, its check of what came.

A handle is `owner/model/tfLite/variation/version`. Models that are public come without credentials; those that want
consent need an account that gave it.
"""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock
from typing import Any, Final

from tflq.base.errors import to_install
from tflq.tools.sweep.fetchers import UnavailableError, retried
from tflq.tools.sweep.manifest import is_pattern
from tflq.tools.sweep.task import Model

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
            place = self._cached(model, name) or retried(
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
