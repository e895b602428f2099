"""Models made available ahead of the tasks: remote ones are fetched in threads while others run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tflq.sweep.fetching import Fetcher, UnavailableError
from tflq.sweep.models import Model

__all__ = ["Supplied", "Supply"]

THREADS: Final = 4
AHEAD: Final = 8  # models fetched before their turn


@dataclass(frozen=True, slots=True)
class Supplied:
    """A model under a target, with its file, or why there is none."""

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
