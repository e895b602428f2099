"""Choices by samples: whether channels are equalized, the method of ranges, whether biases are corrected, and weights
reconstructed.

Networks are made by the first three quarters of the samples and judged on the last. Channels are equalized if that is
nearer there by `GAIN`, and biases corrected if that is nearer by as much with ranges of `minmax`. What a SOFTMAX reads
gets headroom unless that costs as much: few samples held back reach beyond the others. `minmax` gives way to a method
that is nearer by `GAIN`, with biases corrected where they are; where not, that is tried again with the method. What was
chosen is then made of all samples, which can have other tails: `minmax` comes back where it is nearer by `GAIN` then.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Final, NamedTuple

from tflq.analysis.statistics import Statistics
from tflq.base.errors import TflqError
from tflq.base.logs import WARNING, log
from tflq.formats.sources import read
from tflq.numerics.ranges import GPTQ, RECONSTRUCT
from tflq.tools.quantize.building import Network, Work
from tflq.tools.quantize.calibration.calibrate import calibrate
from tflq.tools.quantize.equalization.equalizing import equalized
from tflq.tools.quantize.fidelity import FloatNetwork, decibels
from tflq.tools.quantize.headroom import with_headroom
from tflq.tools.quantize.methods import Methods
from tflq.tools.quantize.recipe import STATIC, Choices, Rule
from tflq.tools.quantize.report import Trial
from tflq.tools.samples.reading import Spans

Seen = list[Statistics]
"""What samples showed, of each entry that they run."""
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
    work: Work, rules: Sequence[Rule], samples: Spans, folder: str
) -> tuple[Work, tuple[Trial, ...], frozenset[str]]:
    """The work on a network with equalized channels, in a folder, if these are nearer; else the work as it is.

    Returns as well what was tried, and the names of the tensors whose channels are equalized. Errors as of `calibrate`
    and `Work.build`.
    """
    first, judge = samples.parts()
    trial = os.path.join(folder, "equalized.trial.tflite")
    if not equalized(work.source, first, trial):
        return work, (), frozenset()
    networks = [_plain_network(each, rules, first) for each in (work, replace(work, source=trial))]
    with closing(FloatNetwork(work.source)) as floats:
        before, after = (decibels(floats.beside_bytes(network.data, judge)) for network in networks)
    is_better = after >= before + GAIN
    trials = Trial(_AS_IT_IS, before, not is_better), Trial(_EQUALIZED, after, is_better)
    if not is_better:
        return work, trials, frozenset()
    better, tensors = equalized_by(work, samples, folder)
    return better, trials, tensors


def equalized_by(work: Work, samples: Spans, folder: str) -> tuple[Work, frozenset[str]]:
    """The work on a network whose channels are equalized on samples, in a folder, and the names of their tensors. The
    work as it is, if there are none. InvalidModelError if the interpreter refuses the network."""
    path = os.path.join(folder, "equalized.all.tflite")
    tensors = equalized(work.source, samples, path)
    return (replace(work, source=path) if tensors else work), tensors


def _plain_network(work: Work, rules: Sequence[Rule], samples: Spans) -> Network:
    """The network by the least and the largest of samples."""
    return by_range(work, _PLAIN).build(rules, lambda bins: seen_by(work, samples, Methods(_PLAIN), bins=bins), {})


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


class Choice(NamedTuple):
    """The methods that are nearest on the last quarter of samples, and what was tried.

    seen: the statistics of the other samples, with headroom where methods have it. decibels: how near they are."""

    methods: Methods
    trials: tuple[Trial, ...]
    seen: Seen
    decibels: float


def chosen_methods(work: Work, rules: Sequence[Rule], samples: Spans, *, biases: bool = True) -> Choice:
    """The choice of methods. biases: whether their correction is tried. Errors as of `calibrate` and `Work.build`."""
    with _choosing(work, rules, samples) as choosing:
        methods, seen, value = choosing.choose(seen_by(work, choosing.first, Methods(_PLAIN)), biases=biases)
        return Choice(methods, tuple(choosing.trials), seen, value)


def of_all_samples(
    work: Work, samples: Spans, choice: Choice, network: Callable[[Methods], Network]
) -> tuple[Network, Methods, tuple[Trial, ...]]:
    """The network of all samples, by the methods of a choice or with ranges of `minmax`.

    It has these where it is less near on all samples than on the last quarter, and they are nearer. Returns its methods
    as well, and what was tried if they are others. network: makes one by methods.
    """
    methods, result = choice.methods, network(choice.methods)
    if methods.range == _PLAIN:
        return result, methods, ()
    with closing(FloatNetwork(work.source)) as floats:
        value = decibels(floats.beside_bytes(result.data, samples))
        if value >= choice.decibels - GAIN:
            return result, methods, ()
        plain = replace(methods, range=_PLAIN)
        other = network(plain)
        after = decibels(floats.beside_bytes(other.data, samples))
    if after < value + GAIN:
        return result, methods, ()
    tried = (methods.range, value, False), (_PLAIN, after, True)
    return other, plain, tuple(Trial(f"{_range(name)}, all samples", near, chosen) for name, near, chosen in tried)


def corrected_methods(
    work: Work, rules: Sequence[Rule], samples: Spans, choice: Choice, before: float
) -> tuple[Methods, tuple[Trial, ...]]:
    """Methods with biases corrected if that is nearer on the last quarter of samples, and the trial. before: the
    decibels without. Errors as of `chosen_methods`."""
    with _choosing(work, rules, samples) as choosing:
        methods, _ = choosing.correct(choice.methods, choice.seen, before)
        return methods, tuple(choosing.trials)


@contextmanager
def _choosing(work: Work, rules: Sequence[Rule], samples: Spans) -> Iterator[_Choosing]:
    """Trials of networks of the first samples, judged on the last quarter."""
    first, judge = samples.parts()
    with closing(FloatNetwork(work.source)) as floats:
        yield _Choosing(work, rules, first, lambda network: decibels(floats.beside_bytes(network.data, judge)))


def seen_by(work: Work, samples: Spans, methods: Methods, *, bins: bool = True) -> Seen:
    """Statistics of samples, of each entry, with headroom where methods have it."""
    seen = [
        calibrate(work.source, span, signature=span.entry.key or None, histogram=bins).statistics
        for span in samples.each
    ]
    return _further(work, seen) if methods.headroom else seen


def _further(work: Work, seen: Seen) -> Seen:
    """Statistics with headroom; the same object where nothing gets it."""
    module = read(work.source)
    further = [with_headroom(module, each, STATIC[work.default.scheme]) for each in seen]
    return seen if all(new is old for new, old in zip(further, seen, strict=True)) else further


class _Choosing:
    """Trials of networks, one after the other. measure: fidelity on samples held back."""

    def __init__(self, work: Work, rules: Sequence[Rule], first: Spans, measure: Callable[[Network], float]) -> None:
        self.work = work
        self.rules = rules
        self.first = first
        self.measure = measure
        self.trials: list[Trial] = []

    def choose(self, seen: Seen, *, biases: bool) -> tuple[Methods, Seen, float]:
        """Chooses the methods. Returns statistics with their headroom, and how near they are. seen: of samples, without
        headroom."""
        methods = Methods(_PLAIN)
        least = self._tried(_range(_PLAIN), seen, methods, -math.inf)
        if biases:
            methods, least = self.correct(methods, seen, least)
        further = _further(self.work, seen)
        if further is not seen:
            with_it = replace(methods, headroom=True)
            value = self._tried(_HEADROOM, further, with_it, least - GAIN)
            if self.trials[-1].chosen:
                seen, least, methods = further, value, with_it
        values = {
            each: self._tried(_range(each), seen, replace(methods, range=each), least + GAIN) for each in _METHODS
        }
        best = max(values, key=lambda method: values[method])
        if values[best] >= least + GAIN:
            methods, least = replace(methods, range=best), values[best]
            if biases and not methods.correct_biases:
                methods, least = self.correct(methods, seen, least)
        unchosen = {_range(each) for each in (_PLAIN, *_METHODS)} - {_range(methods.range)}
        self.trials = [replace(each, chosen=each.chosen and each.name not in unchosen) for each in self.trials]
        return methods, seen, least

    def correct(self, methods: Methods, seen: Seen, before: float) -> tuple[Methods, float]:
        """Methods with biases corrected if that is nearer, and how near they are."""
        corrected = replace(methods, correct_biases=True)
        after = self._tried(_BIASES, seen, corrected, before + GAIN)
        return (corrected, after) if self.trials[-1].chosen else (methods, before)

    def _tried(self, name: str, seen: Seen, methods: Methods, least: float) -> float:
        network = by_range(self.work, methods.range).build(self.rules, lambda _: seen, {})
        if methods.correct_biases:
            network = corrected_network(self.work, network, self.first)
        value = self.measure(network)
        self.trials.append(Trial(name, value, value >= least))
        return value


def _range(method: str) -> str:
    return f"range {method}"


def by_range(work: Work, method: str) -> Work:
    """The work with another method of ranges."""
    return replace(work, default=replace(work.default, range=method))


def corrected_network(work: Work, network: Network, samples: Spans) -> Network:
    """A network with the biases of its products corrected; as it is, if parts of it do not run by themselves."""
    from tflq.tools.quantize.correction.correcting import corrected

    try:
        result = corrected(os.fspath(work.source), network.data, samples)
    except TflqError as error:
        log(WARNING, "biases are not corrected: %s", error)
        return network
    return network._replace(module=read(result.data), data=result.data)


def fitted_network(work: Work, rules: Sequence[Rule], network: Network, samples: Spans) -> Network:
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
