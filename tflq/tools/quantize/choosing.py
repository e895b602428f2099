"""Choices by samples: whether channels are equalized, the method of ranges, whether biases are corrected, and weights
reconstructed.

Networks are made by the first three quarters of the samples and judged on the last. Channels are equalized if that is
nearer there by `GAIN`, and biases corrected if that is nearer by as much with ranges of `minmax`. What a SOFTMAX reads
gets headroom unless that costs as much: few samples held back reach beyond the others. `minmax` gives way to a method
that is nearer by `GAIN`, with biases corrected where they are; where not, that is tried again with the method. What was
chosen is then made of all samples.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final

from tflq.analysis.statistics import Statistics
from tflq.base.errors import TflqError
from tflq.base.logs import WARNING, log
from tflq.formats.sources import read
from tflq.numerics.ranges import GPTQ, RECONSTRUCT
from tflq.tools.quantize.building import Network, Work
from tflq.tools.quantize.calibration.calibrate import calibrate
from tflq.tools.quantize.equalization.equalizing import equalized
from tflq.tools.quantize.fidelity import CALIBRATED, FloatNetwork, decibels
from tflq.tools.quantize.headroom import with_headroom
from tflq.tools.quantize.recipe import STATIC, Choices, Rule
from tflq.tools.quantize.report import Trial
from tflq.tools.samples.reading import Span

AUTO: Final = "auto"
FEWEST: Final = 8
"""Samples without which nothing is chosen."""
GAIN: Final = 0.3
"""Decibels."""
_PLAIN: Final = "minmax"
_METHODS: Final = ("mse", "ema", "percentile:99.9", "percentile:99.99")
_BIASES: Final = "bias correction"
_HEADROOM: Final = "headroom"
_FITTED: Final = {RECONSTRUCT: "reconstructed", GPTQ: "rounded by gptq"}
_AS_IT_IS: Final = "channels as they are"
_EQUALIZED: Final = "channels equalized"


def equalized_work(
    work: Work, rules: Sequence[Rule], samples: Span, folder: str
) -> tuple[Work, tuple[Trial, ...], frozenset[str]]:
    """The work on a network with equalized channels, in a folder, if these are nearer; else the work as it is.

    Returns as well what was tried, and the names of the tensors whose channels are equalized. Errors as of `calibrate`
    and `Work.build`.
    """
    first, judge = samples.split(math.ceil(len(samples) * CALIBRATED))
    trial, path = (os.path.join(folder, f"equalized.{name}.tflite") for name in ("trial", "all"))
    if not equalized(work.source, first, trial):
        return work, (), frozenset()
    networks = [_plain_network(each, rules, first) for each in (work, replace(work, source=trial))]
    with closing(FloatNetwork(work.source)) as floats:
        before, after = (decibels(floats.beside_bytes(network.data, judge)) for network in networks)
    is_better = after >= before + GAIN
    trials = Trial(_AS_IT_IS, before, not is_better), Trial(_EQUALIZED, after, is_better)
    if not is_better:
        return work, trials, frozenset()
    return replace(work, source=path), trials, equalized(work.source, samples, path)


def _plain_network(work: Work, rules: Sequence[Rule], samples: Span) -> Network:
    """The network by the least and the largest of samples."""
    build = _by(work, _PLAIN).build
    return build(rules, lambda bins: [calibrate(work.source, samples, histogram=bins).statistics], {})


def noted_network(network: Network, tensors: frozenset[str]) -> Network:
    """A network whose rows say which results have equalized channels."""
    return _with_notes(network, dict.fromkeys(tensors, _EQUALIZED))


def _with_notes(network: Network, notes: Mapping[str, str]) -> Network:
    """A network with further notes on its operators, by the names of their results."""
    return network._replace(
        rows=tuple(
            replace(row, note="; ".join(filter(None, (row.note, notes.get(row.tensor, ""))))) for row in network.rows
        )
    )


def chosen_network(work: Work, rules: Sequence[Rule], samples: Span) -> tuple[Network, tuple[Trial, ...]]:
    """The network by the methods that are chosen, and what was tried. Errors as of `calibrate` and `Work.build`."""
    first, judge = samples.split(math.ceil(len(samples) * CALIBRATED))
    seen = calibrate(work.source, first).statistics
    with closing(FloatNetwork(work.source)) as floats:
        choosing = _Choosing(work, rules, first, lambda network: decibels(floats.beside_bytes(network.data, judge)))
        method = choosing.choose(seen)
    seen = calibrate(work.source, samples).statistics
    seen = choosing.further(seen) if choosing.has_headroom else seen
    return choosing.built(method, seen, samples), tuple(choosing.trials)


class _Choosing:
    """Trials of networks, one after the other. measure: fidelity on samples held back."""

    def __init__(self, work: Work, rules: Sequence[Rule], first: Span, measure: Callable[[Network], float]) -> None:
        self.work = work
        self.rules = rules
        self.first = first
        self.measure = measure
        self.corrects = self.has_headroom = False
        self.trials: list[Trial] = []

    def built(self, method: str, seen: Statistics, samples: Span) -> Network:
        """The network by a method of ranges, with biases corrected if that is chosen."""
        network = _by(self.work, method).build(self.rules, lambda _: [seen], {})
        return corrected_network(self.work, network, samples) if self.corrects else network

    def choose(self, seen: Statistics) -> str:
        """Chooses, and returns the method of ranges."""
        plain = self._tried(_range(_PLAIN), self.built(_PLAIN, seen, self.first), -math.inf)
        least = self._correct(_PLAIN, seen, plain)
        further = self.further(seen)
        if further is not seen:
            value = self._tried(_HEADROOM, self.built(_PLAIN, further, self.first), least - GAIN)
            self.has_headroom = self.trials[-1].chosen
            seen, least = (further, value) if self.has_headroom else (seen, least)
        values = {
            method: self._tried(_range(method), self.built(method, seen, self.first), least + GAIN)
            for method in _METHODS
        }
        best = max(values, key=lambda method: values[method])
        method = best if values[best] >= least + GAIN else _PLAIN
        if method != _PLAIN and not self.corrects:
            self._correct(method, seen, values[method])
        others = {_range(each) for each in (_PLAIN, *_METHODS)} - {_range(method)}
        self.trials = [replace(each, chosen=each.chosen and each.name not in others) for each in self.trials]
        return method

    def _correct(self, method: str, seen: Statistics, before: float) -> float:
        """Corrects biases from now on if that is nearer. Returns how near it is."""
        self.corrects = True
        after = self._tried(_BIASES, self.built(method, seen, self.first), before + GAIN)
        self.corrects = self.trials[-1].chosen
        return after if self.corrects else before

    def _tried(self, name: str, network: Network, least: float) -> float:
        value = self.measure(network)
        self.trials.append(Trial(name, value, value >= least))
        return value

    def further(self, seen: Statistics) -> Statistics:
        """Statistics with headroom; the same object where nothing gets it."""
        return with_headroom(read(self.work.source), seen, STATIC[self.work.default.scheme])


def _range(method: str) -> str:
    return f"range {method}"


def _by(work: Work, method: str) -> Work:
    return replace(work, default=replace(work.default, range=method))


def corrected_network(work: Work, network: Network, samples: Span) -> Network:
    """A network with the biases of its products corrected; as it is, if parts of it do not run by themselves."""
    from tflq.tools.quantize.correction.correcting import corrected

    try:
        result = corrected(os.fspath(work.source), network.data, samples)
    except TflqError as error:
        log(WARNING, "biases are not corrected: %s", error)
        return network
    return network._replace(module=read(result.data), data=result.data)


def fitted_network(work: Work, rules: Sequence[Rule], network: Network, samples: Span) -> Network:
    """A network with the weights and biases of its products fitted, where a rule or the call asks for it."""
    from tflq.tools.quantize.correction.correcting import corrected

    methods = Choices(read(work.source), rules, work.default).fitted()
    result = corrected(os.fspath(work.source), network.data, samples, methods)
    notes = {
        name: f"{changed} of {count} outputs {_FITTED[methods[name]]}"
        for name, (changed, count) in result.outputs.items()
        if count
    }
    return _with_notes(network, notes)._replace(module=read(result.data), data=result.data)
