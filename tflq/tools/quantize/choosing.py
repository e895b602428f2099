"""Choices by samples: whether channels are equalized, the method of ranges, whether biases are corrected, and weights
reconstructed.

Networks are made by the first three quarters of the samples and judged on the last. Channels are equalized if that is
nearer there by `GAIN`. The range of `minmax` is taken unless another method is nearer by as much, and biases are
corrected if that is nearer by as much again. What was chosen is then made of all samples.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final

from tflq.base.errors import TflqError
from tflq.base.logs import WARNING, log
from tflq.formats.sources import read
from tflq.tools.quantize.building import Network, Work
from tflq.tools.quantize.calibration.calibrate import calibrate
from tflq.tools.quantize.equalization.equalizing import equalized
from tflq.tools.quantize.fidelity import CALIBRATED, FloatNetwork, decibels
from tflq.tools.quantize.recipe import Choices, Rule
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
    networks = [_network(each, rules, _PLAIN, first) for each in (work, replace(work, source=trial))]
    with closing(FloatNetwork(work.source)) as floats:
        before, after = (decibels(floats.beside_bytes(network.data, judge)) for network in networks)
    is_better = after >= before + GAIN
    trials = Trial(_AS_IT_IS, before, not is_better), Trial(_EQUALIZED, after, is_better)
    if not is_better:
        return work, trials, frozenset()
    return replace(work, source=path), trials, equalized(work.source, samples, path)


def _network(work: Work, rules: Sequence[Rule], method: str, samples: Span) -> Network:
    """The network by a method of ranges, which follow from samples."""
    work = replace(work, default=replace(work.default, range=method))
    return work.build(rules, lambda bins: [calibrate(work.source, samples, histogram=bins).statistics], {})


def noted_network(network: Network, tensors: frozenset[str]) -> Network:
    """A network whose rows say which results have equalized channels."""
    return network._replace(
        rows=tuple(
            replace(row, note="; ".join(filter(None, (row.note, _EQUALIZED)))) if row.tensor in tensors else row
            for row in network.rows
        )
    )


def chosen_network(
    work: Work, rules: Sequence[Rule], samples: Span, *, biases: bool
) -> tuple[Network, tuple[Trial, ...]]:
    """The network by the method of ranges that is chosen, and what was tried. biases: whether these may be corrected.
    Errors as of `calibrate` and `Work.build`."""
    first, judge = samples.split(math.ceil(len(samples) * CALIBRATED))
    seen = calibrate(work.source, first).statistics
    trials: list[Trial] = []
    with closing(FloatNetwork(work.source)) as floats:

        def tried(name: str, network: Network, least: float) -> float:
            value = decibels(floats.beside_bytes(network.data, judge))
            trials.append(Trial(name, value, value >= least + GAIN))
            return value

        networks = {method: _by(work, method).build(rules, lambda _: [seen], {}) for method in (_PLAIN, *_METHODS)}
        plain = tried(f"range {_PLAIN}", networks[_PLAIN], -math.inf)
        values = {method: tried(f"range {method}", networks[method], plain) for method in _METHODS}
        best = max(values, key=lambda method: values[method])
        method, value = (best, values[best]) if values[best] >= plain + GAIN else (_PLAIN, plain)
        if biases:
            tried(_BIASES, corrected_network(work, networks[method], first), value)
    names = f"range {method}", _BIASES
    trials = [replace(each, chosen=each.chosen and each.name in names) for each in trials]
    network = _network(work, rules, method, samples)
    if any(each.chosen and each.name == _BIASES for each in trials):
        network = corrected_network(work, network, samples)
    return network, tuple(trials)


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


def reconstructed_network(work: Work, rules: Sequence[Rule], network: Network, samples: Span) -> Network:
    """A network with the weights and biases of its products reconstructed, where a rule or the call asks for it."""
    from tflq.tools.quantize.correction.correcting import corrected

    tensors = Choices(read(work.source), rules, work.default).reconstructed()
    result = corrected(os.fspath(work.source), network.data, samples, weights=True, tensors=tensors)
    rows = tuple(replace(row, note=_note(row.note, *result.outputs.get(row.tensor, (0, 0)))) for row in network.rows)
    return network._replace(module=read(result.data), data=result.data, rows=rows)


def _note(note: str, changed: int, count: int) -> str:
    more = f"{changed} of {count} outputs reconstructed" if count else ""
    return "; ".join(filter(None, (note, more)))
