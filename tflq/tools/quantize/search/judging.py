"""A search on samples: networks are made by some of them, and judged by the others."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from tflq.analysis.statistics import Statistics
from tflq.base.errors import OptionError, Reason
from tflq.base.faults import fault_of_metric, no_number_of_metric
from tflq.base.files import replace_file
from tflq.formats.sources import read
from tflq.tools.quantize.building import Network, Work
from tflq.tools.quantize.fidelity import MOST, FloatNetwork, Metric, Outputs, decibels
from tflq.tools.quantize.methods import Methods
from tflq.tools.quantize.recipe import Choices, Rule, rounds_by_products
from tflq.tools.quantize.report import Trial
from tflq.tools.quantize.search.bounds import Bounds, Figures
from tflq.tools.quantize.search.moves import Operators, alternatives
from tflq.tools.quantize.search.outcome import Search
from tflq.tools.quantize.search.searching import searched
from tflq.tools.quantize.weights import moments_of
from tflq.tools.samples.reading import Spans
from tflq.tools.verify.metrics import Scoring, nearness_of

Seen = Callable[[Spans], Sequence[Statistics]]
"""Statistics of samples."""


class Completed(NamedTuple):
    """The network of all samples, its methods, and what was tried for it."""

    network: Network
    methods: Methods
    trials: tuple[Trial, ...] = ()

    def replaced(self, network: Network) -> Completed:
        """Another network in its place, whose biases are not corrected."""
        trials = tuple(replace(trial, chosen=False) for trial in self.trials)
        return Completed(network, replace(self.methods, correct_biases=False), trials)


Complete = Callable[[tuple[Rule, ...], Search], Completed]
"""What completes a search, by the rules that it ends with."""


def search_network(
    work: Work,
    rules: tuple[Rule, ...],
    samples: Spans,
    bounds: Bounds,
    complete: Complete,
    *,
    seen: Seen | Sequence[Statistics],
    metric: str | Metric | None,
    is_chosen: bool,
) -> tuple[Completed, tuple[Rule, ...], Search]:
    """The network that a search ends with, its rules, those of the call among them, and the search.

    The network of all samples is measured as well. If it is not within the bounds, the result is the one that was.
    seen: statistics, or how they are made of the samples that networks are made by. metric: what is bounded besides
    decibels, by name or a function. is_chosen: whether the method of ranges is chosen by samples. Operators to which
    the call gives a scheme keep it. Errors as of `searched`; OptionError for too few samples.
    """
    chosen = Choices(read(work.source), rules, work.default)
    rounds = rounds_by_products(rules, work.default)
    is_split = rounds or (chosen.static and callable(seen))
    least = 3 if rounds else 2 if is_split else 1
    if samples.least < least:
        what = f"{samples.least} samples are too few to calibrate with some and judge by others"
        raise OptionError(Reason(what, value=samples.least, remedy=f"give {least} at least"))
    first, judge = samples.parts() if is_split else (samples, samples)
    known = list(seen(first) if callable(seen) else seen) if chosen.static else []
    moments = moments_of(work.source, first) if rounds else {}
    leading = max((place for place, rule in enumerate(rules, 1) if "scheme" in dict(rule.what)), default=0)

    def inserted(more: Sequence[Rule]) -> tuple[Rule, ...]:
        return (*rules[:leading], *more, *rules[leading:])

    def build(more: Sequence[Rule]) -> Network:
        return work.build(inserted(more), lambda _: known, moments)

    choices = alternatives(work.default, is_chosen=is_chosen)
    operators = Operators(read(work.source), build(()).rows, tuple(choices))
    with closing(_Judge(work, judge, metric, is_timed=bounds.milliseconds is not None)) as measure:
        bounds = bounds.below(measure.of_floats())
        changes, search = searched(operators, choices, build, measure, bounds)
        judged = sum(min(len(span), MOST) for span in judge.each)
        search = replace(search, calibrated=len(samples) - len(judge), judged=judged)
        completed = complete(inserted(changes), search)
        after = measure.untimed(completed.network)
        if search.reached and not bounds.hold(after):
            completed, search = completed.replaced(build(changes)), replace(search, refused=after)
    return completed, inserted(changes), search


def _value(metric: Metric, floats: list[Outputs], others: list[Outputs]) -> float:
    """The number that a user's metric returns. OptionError if it raises, or returns something else."""
    result: Any
    try:
        result = metric(floats, others)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also SystemExit, which would end the search without a word
        raise fault_of_metric(error, metric) from error
    value = float(result) if np.ndim(result) == 0 and hasattr(result, "__float__") else math.nan
    if math.isnan(value):
        raise no_number_of_metric(result, metric)
    return value


class _Judge:
    """Figures of networks on samples. is_timed: whether runs are timed: the ratio to the first network, in turns with
    it, times what this took."""

    def __init__(self, work: Work, samples: Spans, metric: str | Metric | None, *, is_timed: bool) -> None:
        self._floats = FloatNetwork(work.source)
        self._samples = samples
        self._metric = metric
        self._is_timed = is_timed
        self._folder = tempfile.TemporaryDirectory(prefix="tflq-")
        self._seconds: float | None = None
        self._known: dict[bytes, Figures] = {}

    def of_floats(self) -> float:
        """The metric of the float network's outputs; infinite without one."""
        return self._fidelity((each, each) for each in self._floats.outputs(self._samples))[1]

    def _fidelity(self, outputs: Iterable[tuple[Outputs, Outputs]]) -> tuple[float, float]:
        """The signal-to-noise ratio of outputs, and the metric; the ratio again without one."""
        if isinstance(self._metric, str):
            scoring = Scoring([self._metric], self._samples.labels)
            ratio = decibels(scoring.over(outputs))
            if not (scores := scoring.scores()):
                what = f"the outputs have no rows for {self._metric}"
                raise OptionError(Reason(what, value=self._metric, remedy="take another metric"))
            return ratio, nearness_of(scores[0])
        if self._metric is None:
            ratio = decibels(outputs)
            return ratio, ratio
        pairs = list(outputs)
        floats, others = (list(each) for each in zip(*pairs, strict=True))
        return decibels(pairs), _value(self._metric, floats, others)

    def __call__(self, network: Network) -> Figures:
        figures = self.untimed(network)
        return replace(figures, milliseconds=self._milliseconds(network)) if self._is_timed else figures

    def untimed(self, network: Network) -> Figures:
        """The figures without the time."""
        key = sha256(network.data).digest()
        if key not in self._known:
            outputs = self._floats.beside_bytes(network.data, self._samples)
            self._known[key] = Figures(*self._fidelity(outputs), len(network.data))
        return self._known[key]

    def _milliseconds(self, network: Network) -> float:
        first, path = (os.path.join(self._folder.name, name) for name in ("first.tflite", "timed.tflite"))
        replace_file(path, [network.data], force=True)
        if self._seconds is None:
            replace_file(first, [network.data])
        time = self._floats.run_time(first, path, self._samples)
        self._seconds = self._seconds or time.before
        return (self._seconds or 0.0) * (time.ratio or 0.0) * 1000

    def close(self) -> None:
        """Ends the process, and removes the files."""
        self._floats.close()
        self._folder.cleanup()
