"""A sweep as a call of the library."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from tflq.base.caches import make_private, user_cache
from tflq.base.errors import MissingPackageError, OptionError, Reason
from tflq.base.files import FilePath
from tflq.conversion.extensions import extension_of
from tflq.formats.backend import Backend, backend, of_target
from tflq.formats.options import Fallback, Mac, Prefer, Semantics, State, changed, options_from_arguments
from tflq.numerics.kernel_sets import DEFAULT as DEFAULT_SET
from tflq.numerics.kernel_sets import NEWEST
from tflq.tools.sweep.baseline import Change, failing, options_of, read_entries
from tflq.tools.sweep.driver import Driver, Observer, Silent, changes_since, task_for
from tflq.tools.sweep.fetchers import Fetcher, FileFetcher, Supply, UrlFetcher
from tflq.tools.sweep.kaggle import KaggleFetcher
from tflq.tools.sweep.manifest import find_models, hashes_of, pin
from tflq.tools.sweep.measure import JOB
from tflq.tools.sweep.page import Summary, write_outputs
from tflq.tools.sweep.server import Executor, LocalExecutor
from tflq.tools.sweep.store import (
    CACHE,
    MODELS,
    RESULTS,
    Job,
    Selection,
    Store,
    jobs_of,
    keys_of,
    other_options,
    read_results,
    read_shard,
)
from tflq.tools.sweep.task import Key, Limits, Settings, Task, fingerprint, key_of


@dataclass(frozen=True, slots=True)
class Plan:
    """Models to sweep, and options.

    sources: folders, patterns, files, URLs and manifests. targets: of models that name none.
    workers: processes at once; 0 for one per CPU. cache: a folder for models and for what verification found; None:
    neither is kept beyond the sweep.
    baseline: the folder of a sweep, or a baseline's file, to compare with. fail_on: changes that are failures, in
    addition to those that always are: `baseline.KINDS`.
    scheduler: the address of a Dask scheduler whose workers run the tasks; without one, this machine does.
    offline: models come from caches only. pin: the manifests among the sources get the SHA-256 of what was fetched.
    """

    sources: Sequence[FilePath]
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
        """The settings that a resumed sweep must share."""
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
    """Sweeps. The plan's folder gets the results, `index.html`, `summary.md`, `junit.xml` and `baseline.json`.

    observer: told what goes on. stop: asked now and then; if it says so the sweep ends with StoppedError, and can be
    resumed. executor: makes one of a folder, the number of workers and a job, by default as the plan says. fetchers:
    asked before those of files, URLs and Kaggle.
    OptionError or FileError, before anything is run or written, if the plan makes no sense, a
    package that it needs is not installed, or a source or the baseline is not there.
    """
    if plan.cache is not None:
        make_private(plan.cache)
    models = find_models(plan.sources)
    jobs = jobs_of(models, plan.targets, plan.selection)
    check(jobs, plan.settings, plan.scheduler, kaggle=not fetchers)
    marks = fingerprint(plan.settings)
    if plan.baseline is not None:
        read_entries(plan.baseline)
        _check_options(plan.baseline, {"kernel_set": marks["kernel_set"], **marks["convert"]})
    make = executor or _executor(plan)
    who = observer or Silent()
    with closing(Store(plan.folder)) as store:
        whole = jobs_of(models, plan.targets, replace(plan.selection, shard=None))
        settings: dict[str, Any] = {"settings": plan.to_json(), "fingerprint": marks}
        settings |= {"sources": list(map(str, plan.sources)), "jobs": keys_of(whole)}
        store.begin(settings, inputs=_inputs(plan, jobs), resume=plan.resume, force=plan.force)
        done = {key_of(result) for result in read_results(plan.folder)}
        left = [(model, target) for model, target in jobs if (model.id, target) not in done]
        who.begin(keys_of(jobs), len(jobs) - len(left))
        known = _fetchers(plan, store.folder / CACHE, fetchers)
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
        pinned = _pinned(plan, hashes_of(read_results(plan.folder))) if plan.pin else None
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
    """OptionError if a baseline is of a sweep with other options of the conversion: they would be what changed."""
    if other := other_options(options_of(baseline), now):
        what = f"the baseline is of a sweep with {', '.join(other)}"
        remedy = "give the same options, or compare the two with `tflq sweep diff`"
        raise OptionError(Reason(what, str(baseline), remedy=remedy))


def _fetchers(plan: Plan, cache: Path, others: Sequence[Fetcher]) -> Sequence[Fetcher]:
    """The fetchers for a plan's models. cache: a folder for models, if the plan has none."""
    folder = (plan.cache or cache) / MODELS
    return *others, FileFetcher(), UrlFetcher(folder, offline=plan.offline), KaggleFetcher(offline=plan.offline)


def _pinned(plan: Plan, hashes: Mapping[str, str]) -> dict[str, list[str]]:
    """Pins in the manifests among the sources."""
    manifests = [source for source in map(str, plan.sources) if source.endswith(".toml")]
    return {manifest: pin(Path(manifest), hashes) for manifest in manifests}


def _executor(plan: Plan) -> Callable[..., Executor]:
    if not plan.scheduler:
        return LocalExecutor
    from tflq.tools.sweep.cluster import ClusterExecutor

    return partial(ClusterExecutor, plan.scheduler)


def _task(key: Key, jobs: Sequence[Job], fetchers: Sequence[Fetcher], plan: Plan) -> Task | None:
    """The task of a job, its model fetched again; None if it is unavailable."""
    wanted = [(model, target) for model, target in jobs if (model.id, target) == key]
    with Supply(wanted, fetchers) as supply:
        for supplied in supply:
            if supplied.path is not None:
                return task_for(supplied.model, supplied.target, supplied.path, plan.settings, plan.limits)
    return None


# What can be known to go wrong before a sweep starts, and is said once, not for each model: a missing package, a target
# or an option that no model could be converted with.


_Package = tuple[tuple[str, ...], str, str, str]
_PACKAGES: Final[Mapping[str, _Package]] = {
    "page": (("jinja2",), "jinja2", "to write its page", "verify"),
    "kaggle": (("kagglehub",), "kagglehub", "to fetch models from Kaggle", "kaggle"),
    "dask": (("distributed",), "dask", "to run on the workers of a scheduler", "dask"),
}
"""Packages for sweeps: modules, one of which must be there; the package that has it; what for; tflq's extra with it."""


def check(jobs: Sequence[Job], settings: Settings, scheduler: str = "", *, kaggle: bool = True) -> None:
    """Raises the error that every model, or every one under some target, would end with. Nothing is run or written.

    kaggle: whether models of Kaggle are fetched from there, not by a fetcher of the caller's.
    OptionError for a package that is not installed, a target or an option that is unknown or does nothing for a target,
    a file of rules without rules, or a scheduler that does not answer. FileError for a target's file that cannot be
    read.
    """
    targets = list(dict.fromkeys(target for _, target in jobs))
    chosen = dict.fromkeys(_for_target(target, settings) for target in targets)
    for path in settings.rules:
        extension_of(Path(path))
    _check_packages(_needed(jobs, chosen, scheduler, kaggle))
    if scheduler:
        from tflq.tools.sweep.cluster import connected

        connected(scheduler).close()


def _for_target(target: str, settings: Settings) -> Backend:
    """The format of a target, if models can be converted to it with the sweep's options."""
    options = {name: value for name, value in settings.convert.items() if name != "rules"}
    chosen = of_target(target, static=True)
    try:
        options_from_arguments(chosen.name, target, **options)
    except OptionError as error:
        if any(reason.value == target for reason in error.reasons):
            raise
        first = error.reasons[0]
        remedy = first.remedy or "leave it out, or sweep the targets that take it on their own"
        raise OptionError(Reason(f"target {target}: {first.what}", value=first.value, remedy=remedy)) from error
    return chosen


def _needed(jobs: Sequence[Job], chosen: Iterable[Backend], scheduler: str, kaggle: bool) -> Iterator[_Package]:
    """Packages. Models run on the workers of a scheduler, which have packages of their own."""
    if scheduler:
        yield _PACKAGES["dask"]
    else:
        yield from _runs(backend("tflite"), "to run models")
        for each in chosen:
            if not each.interpreted:
                yield from _runs(each, f"to run {each.name.upper()} files")
    yield _PACKAGES["page"]
    if kaggle and any(model.kaggle for model, _ in jobs):
        yield _PACKAGES["kaggle"]


def _runs(chosen: Backend, purpose: str) -> Iterator[_Package]:
    if chosen.requires is not None:
        modules, package, extra = chosen.requires
        yield modules, package, purpose, extra


def _check_packages(needed: Iterator[_Package]) -> None:
    missing = [
        (package, purpose, extra)
        for modules, package, purpose, extra in needed
        if not any(find_spec(module) for module in modules)
    ]
    if missing:
        listed = " and ".join(f"{package} ({purpose})" for package, purpose, _ in missing)
        extras = ",".join(dict.fromkeys(extra for _, _, extra in missing))
        what = f"a sweep of these models needs {listed}, which {'is' if len(missing) == 1 else 'are'} not installed"
        raise MissingPackageError(what, extras)


# A sweep as one call, whose keywords are the options of `tflq sweep`.


def run_sweep(
    sources: FilePath | Sequence[FilePath],
    folder: FilePath,
    *,
    targets: Sequence[str] = ("integer",),
    mac: Mac = "integer",
    prefer: Prefer = "speed",
    fallback: Fallback = "float",
    semantics: Semantics = "interpreter",
    kernel_set: str = DEFAULT_SET,
    state: State | None = None,
    reset_signature: bool = False,
    rules: Sequence[FilePath] = (),
    cut_before_custom: bool = False,
    batch: int | None = None,
    seeds: int = 2,
    xnnpack: bool = True,
    time: bool = False,
    max_lsb: float = 0,
    atol: float = 0.0,
    rtol: float = 0.0,
    workers: int = 0,
    scheduler: str = "",
    timeout: float = 300.0,
    memory: int = 4096,
    only: Sequence[str] = (),
    failed_from: FilePath | None = None,
    shard: str | None = None,
    baseline: FilePath | None = None,
    fail_on: Sequence[str] = (),
    cache: FilePath | None = None,
    no_cache: bool = False,
    offline: bool = False,
    pin: bool = False,
    resume: bool = False,
    force: bool = False,
    observer: Observer | None = None,
    stop: Callable[[], bool] | None = None,
) -> Outcome:
    """Convert many models to several targets, and verify each result against its original.

    Each model runs in a process of its own, with limits. The folder gets `results.jsonl`, `index.html`, `summary.md`,
    `junit.xml`, `baseline.json` and what failures left behind. If a model fails, that is its status and not an error:
    the errors below come before any model is run.

    Args:
        sources: Folders, patterns, files, URLs and manifests (.toml), or a single one of these.
        folder: Where to write the results.
        targets: Targets of models for which a manifest names none: "integer", "kernels", "tosa", or targets' files.
        mac: As in `tflq.convert`, for all models and targets.
        prefer: As in `tflq.convert`, for all models and targets.
        fallback: As in `tflq.convert`, for all models and targets.
        semantics: As in `tflq.convert`, for all models and targets.
        kernel_set: As in `tflq.convert`, for all models and targets.
        state: As in `tflq.convert`, for all models and targets.
        reset_signature: As in `tflq.convert`, for all models and targets.
        rules: Python files with an `EXTENSION`. An `Extension` itself cannot be sent to another process.
        cut_before_custom: As in `tflq.convert`, for all models and targets.
        batch: As in `tflq.convert`, for all models and targets. Shapes are stated in a manifest.
        seeds: Number of sets of random inputs to compare on; sets of edge values follow them.
        xnnpack: Run the interpreter's default kernels as well.
        time: Measure how long a run of each takes, in turns, as `tflq.verify` does. Use one worker for times without
            other load.
        max_lsb: Accepted difference of integers, in counts, as in `tflq.verify`.
        atol: Accepted absolute difference of floats, as in `tflq.verify`.
        rtol: Accepted relative difference of floats, as in `tflq.verify`.
        workers: Number of processes at once; 0 for one per CPU.
        scheduler: Address of a Dask scheduler, "tcp://HOST:PORT".
        timeout: Seconds for one model.
        memory: MiB for one model.
        only: Run only the models whose ids match these patterns or contain these words.
        failed_from: Folder of an earlier sweep: leave out what was as expected there.
        shard: Run one part of the models: "1/4" is the first of four.
        baseline: Folder of an earlier sweep, or its `baseline.json`, to compare with.
        fail_on: Kinds of changes that count as failures, in addition to those that always do: "slower", "larger",
            "new", ...
        cache: Folder for models and results of verification, by default `~/.cache/tflq`.
        no_cache: Keep nothing.
        offline: Fetch nothing.
        pin: Write the SHA-256 of fetched models into the manifests.
        resume: Continue an interrupted sweep.
        force: Replace the results in `folder`.
        observer: Told what happens: its methods are `begin`, `started`, `staged` and `finished`.
        stop: Asked now and then. If it returns true, the sweep ends with StoppedError; `resume` continues it.

    Returns:
        Counts by target and status (`summary`), and whether something is not as expected or got worse than the baseline
        (`failed`). `tflq.tools.sweep.store.read_results(folder)` yields the results one by one.

    Raises:
        OptionError: A target or an option is unknown, or has no effect on one of the targets. Or a required package is
            missing. Or `folder` already holds results, or with `resume` those of a sweep with other options.
            Or a manifest or the baseline has a fault.
        FileError: A source or the baseline is missing, or others can write to the cache.

    Example:
        ```python
        outcome = tflq.run_sweep("models", "out", targets=["integer", "kernels"], mac="float32")
        print(outcome.summary.total, "results,", outcome.summary.unexpected, "not as expected")
        ```
    """
    convert = changed(
        mac=mac,
        prefer=prefer,
        fallback=fallback,
        semantics=semantics,
        kernel_set=NEWEST.get(kernel_set, kernel_set),
        state=state,
        reset_signature=reset_signature,
        rules=[os.path.abspath(path) for path in rules],
        cut_before_custom=cut_before_custom,
        batch=batch,
    )
    models = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    selection = Selection(tuple(only), _path(failed_from), read_shard(shard) if shard else None)
    settings = Settings(seeds, xnnpack, max_lsb, atol, rtol, convert, time)
    what = models, Path(folder), tuple(targets), selection, settings, Limits(timeout, memory << 20)
    cache_path = None if no_cache else _path(cache) or user_cache()
    plan = Plan(*what, workers, cache_path, _path(baseline), tuple(fail_on), scheduler, offline, pin, resume, force)
    return sweep(plan, observer=observer, stop=stop or (lambda: False))


def _path(path: FilePath | None) -> Path | None:
    return None if path is None else Path(path)
