"""A sweep as one call, whose keywords are the options of `tflq sweep`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from tflq.options import Fallback, Prefer, Semantics, State, changed
from tflq.select.lowering import Mac
from tflq.sweep.driver import Observer
from tflq.sweep.selection import Selection, read_shard
from tflq.sweep.sweeping import Outcome, Plan, cache_folder, sweep
from tflq.sweep.task import Limits, Settings

__all__ = ["run_sweep"]

_Path = str | os.PathLike[str]


def run_sweep(
    sources: _Path | Sequence[_Path],
    folder: _Path,
    *,
    targets: Sequence[str] = ("integer",),
    mac: Mac = "integer",
    prefer: Prefer = "speed",
    fallback: Fallback = "float",
    semantics: Semantics = "interpreter",
    state: State | None = None,
    reset_signature: bool = False,
    rules: Sequence[_Path] = (),
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
    failed_from: _Path | None = None,
    shard: str | None = None,
    baseline: _Path | None = None,
    fail_on: Sequence[str] = (),
    cache: _Path | None = None,
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
        (`failed`). `tflq.sweep.read_results(folder)` yields the results one by one.

    Raises:
        OptionError: A target or an option is unknown, or has no effect on one of the targets. Or a required package is
            missing. Or `folder` already holds results, or with `resume` those of a sweep with other options.
        FileError: A source or the baseline is missing.
        InvalidModelError: A manifest or the baseline is not valid.

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
    kept = None if no_cache else _path(cache) or cache_folder()
    plan = Plan(*what, workers, kept, _path(baseline), tuple(fail_on), scheduler, offline, pin, resume, force)
    return sweep(plan, observer=observer, stop=stop or (lambda: False))


def _path(given: _Path | None) -> Path | None:
    return None if given is None else Path(given)
