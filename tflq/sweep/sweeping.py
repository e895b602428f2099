"""A sweep as a call of the library."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from tflq.errors import OptionError, Reason
from tflq.sweep.baseline import options_of, read_entries
from tflq.sweep.changes import Change, failing
from tflq.sweep.checking import check
from tflq.sweep.comparing import changes_since
from tflq.sweep.driver import Driver, Observer, Silent, task_for
from tflq.sweep.executor import Executor, LocalExecutor
from tflq.sweep.fetching import Fetcher, FileFetcher, UrlFetcher
from tflq.sweep.fingerprint import fingerprint
from tflq.sweep.kaggle import KaggleFetcher
from tflq.sweep.measure import JOB
from tflq.sweep.outputs import write_outputs
from tflq.sweep.pinning import hashes_of, pin
from tflq.sweep.result import Key, key_of
from tflq.sweep.same import other_options
from tflq.sweep.selection import Job, Selection, jobs_of
from tflq.sweep.sources import find_models
from tflq.sweep.store import RESULTS, Store
from tflq.sweep.summary import Summary
from tflq.sweep.supply import Supply
from tflq.sweep.task import Limits, Settings, Task

__all__ = ["Outcome", "Plan", "cache_folder", "sweep"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to sweep, and how.

    sources: folders, patterns, files, URLs and manifests. targets: of models that name none.
    workers: processes at once; 0 for one per CPU. cache: a folder for models and for what verification found; None for
    neither to be kept beyond the sweep.
    baseline: the folder of a sweep, or a baseline's file, to compare with. fail_on: changes that are failures beside
    those that always are; see `changes.KINDS`.
    scheduler: the address of a Dask scheduler whose workers run the tasks; without one, this machine does.
    offline: models come from caches only. pin: the manifests among the sources get the SHA-256 of what was fetched.
    """

    sources: Sequence[str | os.PathLike[str]]
    folder: Path
    targets: Sequence[str] = ("integer",)
    selection: Selection = field(default_factory=Selection)
    settings: Settings = field(default_factory=Settings)
    limits: Limits = field(default_factory=Limits)
    workers: int = 0
    cache: Path | None = None
    baseline: Path | None = None
    fail_on: Sequence[str] = ()
    scheduler: str = ""
    offline: bool = False
    pin: bool = False
    resume: bool = False
    force: bool = False

    def to_json(self) -> dict[str, Any]:
        """What a sweep that goes on must have the same."""
        shard = self.selection.shard
        return {
            "targets": list(self.targets),
            "only": list(self.selection.only),
            "shard": shard and list(shard),
            "seconds": self.limits.seconds,
            "bytes": self.limits.bytes,
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a sweep: returned by `tflq.run_sweep`.

    Attributes:
        summary: Counts by target and status.
        changes: What changed since the baseline. None without a baseline.
        fail_on: Kinds of changes that count as failures, in addition to those that always do.
        pinned: For each manifest, ids of the models whose hashes were written into it. None without `pin`.
    """

    summary: Summary
    changes: Sequence[Change] | None = None
    fail_on: Sequence[str] = ()
    pinned: Mapping[str, Sequence[str]] | None = None

    @property
    def failed(self) -> bool:
        """Whether something is not as expected, or with a baseline, got worse: the command then exits with 5."""
        if self.changes is None:
            return self.summary.failed
        return bool(failing(self.changes, self.fail_on))


def sweep(
    plan: Plan,
    *,
    observer: Observer | None = None,
    stop: Callable[[], bool] = lambda: False,
    executor: Callable[..., Executor] | None = None,
    fetchers: Sequence[Fetcher] = (),
) -> Outcome:
    """Sweeps. Results are in the plan's folder; beside them `index.html`, `summary.md`, `junit.xml` and
    `baseline.json`.

    observer: told what goes on. stop: asked now and then; the sweep ends with StoppedError then, and can be resumed.
    executor: makes one of a folder, the number of workers and a job, by default as the plan says. fetchers: beside
    those of files, URLs and Kaggle.
    OptionError, FileError or InvalidModelError, before anything is run or written, if the plan makes no sense, a
    package that it needs is not installed, or a source or the baseline is not there.
    """
    models = find_models(plan.sources)
    jobs = jobs_of(models, plan.targets, plan.selection)
    check(jobs, plan.settings, plan.scheduler, kaggle=not fetchers)
    marks = fingerprint(plan.settings)
    if plan.baseline is not None:
        read_entries(plan.baseline)
        _check_options(plan.baseline, marks["convert"])
    make = executor or _executor(plan)
    who = observer or Silent()
    with Store(plan.folder) as store:
        whole = jobs_of(models, plan.targets, replace(plan.selection, shard=None))
        settings: dict[str, Any] = {
            "settings": plan.to_json(),
            "fingerprint": marks,
            "sources": [str(s) for s in plan.sources],
        }
        settings |= {"jobs": [(model.id, target) for model, target in whole]}
        store.begin(settings, inputs=_inputs(plan, jobs), resume=plan.resume, force=plan.force)
        done = {key_of(result) for result in store.results()}
        left = [(model, target) for model, target in jobs if (model.id, target) not in done]
        who.begin([(model.id, target) for model, target in jobs], len(jobs) - len(left))
        known = _fetchers(plan, store.folder / "cache", fetchers)
        if left:
            with closing(make(store.work, plan.workers, JOB)) as runner, Supply(left, known) as supply:
                Driver(store, runner, plan.settings, plan.limits, marks, plan.cache, who, stop).run(iter(supply))
        changes = None
        if plan.baseline is not None:
            changes = changes_since(
                plan.baseline,
                plan.folder,
                plan.selection.test(),
                lambda key: _task(key, jobs, known, plan),
                lambda job: make(store.work / job.rpartition(":")[2], 1, job),
                plan.limits,
            )
        earlier = () if plan.baseline is None else (plan.baseline,)
        summary = write_outputs(plan.folder, changes, plan.fail_on, earlier)
        pinned = _pinned(plan, hashes_of(store.results())) if plan.pin else None
        return Outcome(summary, changes, plan.fail_on, pinned)


def _inputs(plan: Plan, jobs: Sequence[Job]) -> Iterator[object]:
    """The files that a sweep reads, and folders of them."""
    yield from plan.sources
    yield from plan.targets
    yield from plan.settings.rules
    for model, target in jobs:
        yield from filter(None, (model.path, model.inputs, target))
    for place in (plan.baseline, plan.selection.failed_from):
        if place is not None:
            yield place / RESULTS if place.is_dir() else place


def _check_options(baseline: Path, now: Mapping[str, Any]) -> None:
    """OptionError if a baseline is of a sweep with other options of the conversion: what changed would be theirs."""
    if other := other_options(options_of(baseline), now):
        what = f"the baseline is of a sweep with {', '.join(other)}"
        remedy = "give the same options, or compare the two with `tflq sweep diff`"
        raise OptionError(Reason(what, str(baseline), remedy=remedy))


def _fetchers(plan: Plan, cache: Path, others: Sequence[Fetcher]) -> Sequence[Fetcher]:
    """Those that get a plan's models; cache: for models, if the plan has no folder for them."""
    folder = (plan.cache or cache) / "models"
    return *others, FileFetcher(), UrlFetcher(folder, offline=plan.offline), KaggleFetcher(offline=plan.offline)


def _pinned(plan: Plan, hashes: Mapping[str, str]) -> dict[str, list[str]]:
    """Pins in the manifests among the sources."""
    manifests = [source for source in map(str, plan.sources) if source.endswith(".toml")]
    return {manifest: pin(Path(manifest), hashes) for manifest in manifests}


def _executor(plan: Plan) -> Callable[..., Executor]:
    if not plan.scheduler:
        return LocalExecutor
    from tflq.sweep.cluster import ClusterExecutor

    return partial(ClusterExecutor, plan.scheduler)


def _task(key: Key, jobs: Sequence[Job], fetchers: Sequence[Fetcher], plan: Plan) -> Task | None:
    """The task of a job, its model fetched again; None if it cannot be had."""
    found = [(model, target) for model, target in jobs if (model.id, target) == key]
    with Supply(found, fetchers) as supply:
        for supplied in supply:
            if supplied.path is not None:
                return task_for(supplied.model, supplied.target, supplied.path, plan.settings, plan.limits)
    return None


def cache_folder() -> Path:
    """Where models and verifications are kept from sweep to sweep, by default."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tflq"
