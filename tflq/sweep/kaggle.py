"""Models of Kaggle, by kagglehub: its cache, its credentials, its way of checking what came.

A handle is `owner/model/tfLite/variation/version`. Models that are public come without credentials; those that want
consent need an account that gave it.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock
from typing import Any, Final

from tflq.errors import to_install
from tflq.sweep.fetching import TRIES, UnavailableError
from tflq.sweep.globs import is_pattern
from tflq.sweep.models import Model

__all__ = ["ANY_FILE", "HANDLE", "KaggleFetcher"]

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
            found = self._cached(model, name) or self._download(hub, model, name)
        return found if found.is_file() else _chosen(found, pattern)

    def _cached(self, model: Model, name: str) -> Path | None:
        """The bundle or, if `name` says which, the file, if it came whole. UnavailableError if that has to do."""
        from kagglehub.cache import Cache
        from kagglehub.handle import parse_model_handle

        handle = parse_model_handle(model.kaggle)
        bundle = Cache().load_from_cache(handle)
        if bundle is not None and name and not Path(bundle, name).is_file():
            bundle = None
        found = str(Path(bundle, name)) if bundle is not None else name and Cache().load_from_cache(handle, name)
        if found:
            return Path(found)
        if self._offline:
            raise UnavailableError("it is not in kagglehub's cache, and the sweep is offline")
        return None

    def _download(self, hub: Any, model: Model, name: str) -> Path:
        pause = self._pause
        for attempt in range(TRIES):
            try:
                return Path(hub.model_download(model.kaggle, name or None))
            except Exception as error:  # kagglehub has no class of its own for what it raises
                if attempt == TRIES - 1 or not _passing(error):
                    raise UnavailableError(_why(error, model)) from error
            time.sleep(pause)
            pause *= 2
        raise AssertionError


def _hub() -> Any:
    """kagglehub, which writes nothing on the terminal but what is wrong."""
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
    raise UnavailableError(f"`file` has to say which: '{pattern}' matches {_listed(fits)}")


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
    """What requests raises without an answer is an OSError, but not of the system."""
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
