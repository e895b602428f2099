"""A sweep as a call of the library."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tflq.sweep import page
from tflq.sweep.driver import Driver, Observer, Silent
from tflq.sweep.executor import Executor, LocalExecutor
from tflq.sweep.fetching import Fetcher, FileFetcher, UrlFetcher
from tflq.sweep.fingerprint import fingerprint
from tflq.sweep.result import key_of
from tflq.sweep.selection import jobs_of
from tflq.sweep.sources import find_models
from tflq.sweep.store import Store
from tflq.sweep.summary import Summary, summarize
from tflq.sweep.supply import Supply
from tflq.sweep.task import Limits, Settings

__all__ = ["Plan", "cache_folder", "sweep"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to sweep, and how.

    sources: folders, patterns, files, URLs and manifests. targets: of models that name none.
    workers: processes at once; 0 for one per CPU. cache: a folder for models and for what verification found; None for
    neither to be kept beyond the sweep.
    only, failed_from, shard: which of the models; see `selection.jobs_of`.
    """

    sources: Sequence[str | os.PathLike[str]]
    folder: Path
    targets: Sequence[str] = ("integer",)
    settings: Settings = field(default_factory=Settings)
    limits: Limits = field(default_factory=Limits)
    workers: int = 0
    cache: Path | None = None
    only: Sequence[str] = ()
    failed_from: Path | None = None
    shard: tuple[int, int] | None = None
    resume: bool = False
    force: bool = False

    def to_json(self) -> dict[str, Any]:
        """What a sweep that goes on must have the same."""
        return {
            "targets": list(self.targets),
            "only": list(self.only),
            "shard": self.shard and list(self.shard),
            "seconds": self.limits.seconds,
            "bytes": self.limits.bytes,
        }


def sweep(
    plan: Plan,
    *,
    observer: Observer | None = None,
    stop: Callable[[], bool] = lambda: False,
    begin: Callable[[int, int], None] = lambda _, __: None,
    executor: Callable[[Path, int], Executor] = LocalExecutor,
    fetchers: Sequence[Fetcher] = (),
) -> Summary:
    """Sweeps; what was found, in counts. Results are in the plan's folder, with `index.html`.

    begin: told how many jobs there are, and how many of them are done already. stop: asked now and then; the sweep ends
    with StoppedError then, and can be resumed. fetchers: beside those of files and URLs.
    OptionError, FileError or InvalidModelError if the plan makes no sense or a source is not there.
    """
    models = find_models(plan.sources)
    jobs = jobs_of(models, plan.targets, only=plan.only, failed_from=plan.failed_from, shard=plan.shard)
    marks = fingerprint(plan.settings)
    with Store(plan.folder) as store:
        settings = {"settings": plan.to_json(), "fingerprint": marks, "sources": [str(s) for s in plan.sources]}
        store.begin(settings, resume=plan.resume, force=plan.force)
        done = {key_of(result) for result in store.results()}
        left = [(model, target) for model, target in jobs if (model.id, target) not in done]
        begin(len(jobs), len(jobs) - len(left))
        cache = plan.cache or store.work.with_name("cache")
        if left:
            runner = executor(store.work, plan.workers)
            try:
                known = (*fetchers, FileFetcher(), UrlFetcher(cache / "models"))
                driver = Driver(
                    store,
                    runner,
                    plan.settings,
                    plan.limits,
                    marks,
                    plan.cache and plan.cache / "verified",
                    observer or Silent(),
                    stop,
                )
                with Supply(left, known) as supply:
                    driver.run(iter(supply))
            finally:
                runner.close()
        page.write(store.results(), plan.folder / "index.html")
        return summarize(store.results())


def cache_folder() -> Path:
    """Where models and verifications are kept from sweep to sweep, by default."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tflq"
