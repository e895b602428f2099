"""The evidence of a call of `tflq.quantize`: statistics or samples, and the metrics that are measured on these."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Final, NamedTuple

from tflq.analysis.statistics import Statistics
from tflq.base.arguments import not_expected
from tflq.base.errors import OptionError, Reason
from tflq.base.files import FilePath
from tflq.ir.module import Module
from tflq.tools.quantize.building import Network, Work
from tflq.tools.quantize.calibration.calibrate import Calibration, calibrate
from tflq.tools.quantize.choosing import seen_by
from tflq.tools.quantize.fidelity import FloatNetwork, Metric, Nearness, nearness
from tflq.tools.quantize.methods import Methods
from tflq.tools.quantize.recipe import Rule, Settings, fits_weights, rounds_by_products
from tflq.tools.samples.files import Images
from tflq.tools.samples.inputs import Entry, signature_keys
from tflq.tools.samples.reading import Spans
from tflq.tools.verify.metrics import Score, Scoring, check_metrics, default_metrics

OneStatistics = FilePath | Statistics | Calibration
"""A file of statistics, what it holds, or the calibration that it is of."""
_OF_STATISTICS: Final = "a file of tflq calibrate, its result, or a list of these"


class Evidence(NamedTuple):
    """Where ranges come from: statistics, or samples.

    samples: in an iterator they are gone through once. metrics: what is measured, by name. methods: those of the call.
    chooses: whether others are chosen by samples held back. judges: whether samples beside statistics are to judge by.
    """

    statistics: Sequence[Statistics]
    samples: Spans | Iterator[Any] | None
    images: Images | None
    metrics: tuple[str, ...]
    methods: Methods
    chooses: bool
    judges: bool

    @property
    def spans(self) -> Spans | None:
        """The samples, if they can be gone through again."""
        return self.samples if isinstance(self.samples, Spans) else None

    def seen(self, work: Work, methods: Methods, bins: bool) -> Sequence[Statistics]:
        """The statistics of the call, or those of its samples; empty without either. OptionError if it has both."""
        if self.samples is None or (self.statistics and self.judges):
            return self.statistics
        if self.statistics:
            what = "ranges come either from statistics or from samples to calibrate with"
            raise OptionError(Reason(what, remedy="give one of them"))
        if isinstance(self.samples, Spans):
            return seen_by(work, self.samples, methods, bins=bins)
        levels: dict[str, Any] = {} if self.images is None else {"mean": self.images.mean, "scale": self.images.scale}
        return [calibrate(work.source, self.samples, histogram=bins, **levels).statistics]

    def nearness(self, source: FilePath, network: Network) -> tuple[Nearness, tuple[Score, ...]]:
        """The nearness of outputs to those of the source on the samples, and their metrics, if the samples can be gone
        through once more."""
        if self.spans is None:
            return Nearness(None, None), ()
        with closing(FloatNetwork(source)) as floats:
            scoring = Scoring(default_metrics(self.metrics, self.spans.labels), self.spans.labels)
            near = nearness(scoring.over(floats.beside_bytes(network.data, self.spans)))
        return near, scoring.scores()


def listed_statistics(statistics: OneStatistics | Sequence[OneStatistics] | None) -> list[FilePath | Statistics]:
    """The statistics of the call. OptionError for what is none."""
    if statistics is None:
        return []
    several = statistics if isinstance(statistics, (list, tuple)) else [statistics]
    listed: list[FilePath | Statistics] = []
    for each in several:
        one = each.statistics if isinstance(each, Calibration) else each
        if not isinstance(one, (str, os.PathLike, Statistics)):
            raise not_expected("statistics", one, _OF_STATISTICS)
        listed.append(one)
    return listed


def need_of_samples(rules: Sequence[Rule], methods: Methods, default: Settings, *, searches: bool) -> tuple[str, int]:
    """The reason why samples are needed, and their least number; empty: they are not. searches: whether there are
    bounds."""
    if methods.equalize or methods.headroom or methods.correct_biases:
        return "channels, headroom and biases follow from samples", 2
    if rounds_by_products(rules, default):
        return "weights are rounded by gptq on samples", 2
    if fits_weights(rules, default):
        return "weights are fitted to samples", 2
    return ("how near the outputs are is measured on samples", 1) if searches else ("", 0)


def read_samples(
    data: Any,
    module: Module,
    images: Images | None,
    labels: Any,
    need: tuple[str, int],
    metric: str | Metric | None,
    max_drop: float | None,
) -> tuple[Spans | Iterator[Any] | None, tuple[str, ...], str | Metric | None]:
    """The samples of a call, the metrics that are measured by name, and the one that may be bounded: if a drop has
    none, that of the labels. need: as of `need_of_samples`. OptionError for fewer samples, or metrics that do not fit
    the labels."""
    names = check_metrics((metric,) if isinstance(metric, str) else ())
    needs_metric = metric is None and max_drop is not None
    again = labels is not None or bool(names) or needs_metric
    samples = _samples(data, module, images, labels, *need, again=again)
    if isinstance(samples, Spans):
        names = default_metrics(names, samples.labels) if needs_metric else names
        Scoring(names, samples.labels)
    return samples, names, names[0] if names else metric


def _samples(
    data: Any, module: Module, images: Images | None, labels: Any, need: str, least: int, *, again: bool
) -> Spans | Iterator[Any] | None:
    """The samples of the call; an iterator stays what it is if they are gone through once. OptionError if there are
    fewer than are needed.

    need: what needs them. again: whether they are gone through several times anyway.
    """
    if data is None and need:
        raise OptionError(Reason(need, remedy="give samples: --calibration"))
    once = isinstance(data, Iterator) and not need and not again and len(signature_keys(module)) < 2
    if data is None or once:
        return data
    samples = Spans.of(data, module, images, labels)
    if samples.least < least:
        what = f"{samples.least} samples are too few to fit to some and judge by others"
        raise OptionError(Reason(what, value=samples.least, remedy=f"give {least} at least"))
    return samples


def not_run(module: Module, samples: Spans | Iterator[Any]) -> list[str]:
    """The warning for signatures that samples did not run."""
    entries = [span.entry for span in samples.each] if isinstance(samples, Spans) else [Entry.of(module)]
    known = {entry.function for entry in entries}
    keys = [f"'{each.key}'" for each in module.signatures or [] if each.function not in known]
    if not keys:
        return []
    which = f"signature{'s' * (len(keys) > 1)} {', '.join(keys)}"
    remedy = "give some of each, {KEY: samples} or arrays KEY/NAME"
    return [f"there are no samples of {which}, and what only they compute stays float: {remedy}"]
