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
    """Converts many models to each of some targets, verifies each result against its original, and writes `folder`:
    `results.jsonl`, `index.html`, `summary.md`, `junit.xml`, `baseline.json` and what failures left. Each model has
    a process of its own, with limits.

    sources: folders, patterns, files, URLs and manifests (.toml), or one of these.
    targets: of models for which a manifest names none: "integer", "kernels", "tosa", or targets' files.
    mac, prefer, fallback, semantics, state, reset_signature, cut_before_custom, batch: as `convert` takes them, the
        same for all models and targets. Shapes are stated by a manifest. rules: files of Python with an EXTENSION; an
        `Extension` itself cannot go to another process.
    seeds: sets of random inputs to compare on, beside the edges. xnnpack: run the interpreter's default kernels, too.
    time: measure what a run of each takes, too, in turns, as `verify` does; for times of a machine that does nothing
        else, with one worker.
    max_lsb, atol, rtol: differences that are accepted, as `verify` takes them.
    workers: processes at once; 0 for one per CPU. scheduler: the address of a Dask scheduler, "tcp://HOST:PORT".
    timeout, memory: seconds and MiB for one model.
    only: patterns of ids, or words in them. failed_from: the folder of a sweep; what was as expected there is left
        out. shard: "1/4" is the first of four parts.
    baseline: the folder of a sweep, or its `baseline.json`, to compare with. fail_on: kinds of changes that are
        failures, beside those that always are: "slower", "larger", "new", ...
    cache: a folder for models and for what verification found, by default `~/.cache/tflq`. no_cache: keep nothing.
    offline: fetch nothing. pin: write the SHA-256 of what was fetched into the manifests.
    resume: go on with a sweep that was interrupted. force: replace the results in `folder`.
    observer: is told what goes on (`begin`, `started`, `staged`, `finished`). stop: asked now and then; true ends the
        sweep with StoppedError, and `resume` goes on with it.

    Returns what was found: `summary` has the counts by target and status, `failed` says whether something is not as
    expected or, with a baseline, got worse; `tflq.sweep.read_results(folder)` gives the results one by one.

    OptionError: a target or an option is not known, or does nothing for one of the targets; a package that is needed
    is not installed; there are results in `folder` already, or with `resume` those of a sweep with other options.
    FileError: a source or the baseline is not there. InvalidModelError: a manifest or the baseline is not valid.
    These come before any model is run. What is wrong with a model is no error, but its status.

        outcome = tflq.run_sweep("models", "out", targets=["integer", "kernels"], mac="float32")
        print(outcome.summary.total, "results,", outcome.summary.unexpected, "not as expected")
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
    plan = Plan(
        [sources] if isinstance(sources, (str, os.PathLike)) else list(sources),
        Path(folder),
        tuple(targets),
        Selection(tuple(only), _path(failed_from), read_shard(shard) if shard else None),
        Settings(seeds, xnnpack, max_lsb, atol, rtol, convert, time),
        Limits(timeout, memory << 20),
        workers,
        None if no_cache else _path(cache) or cache_folder(),
        _path(baseline),
        tuple(fail_on),
        scheduler,
        offline,
        pin,
        resume,
        force,
    )
    return sweep(plan, observer=observer, stop=stop or (lambda: False))


def _path(given: _Path | None) -> Path | None:
    return None if given is None else Path(given)
