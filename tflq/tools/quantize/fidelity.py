"""Fidelity of a quantized network on samples: its outputs compared with those of its float original.

Operators are restored to float, worst first, until the outputs are as near as they are to be.

First each operator is tried alone: how near are the outputs with just this one in float? In that order, the most gain
first, they are given back, and the outputs measured after each; one that gains nothing then is taken again. Errors of
operators can cancel. If the outputs are not near enough then, the least number of the first ones is sought that
together are.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np

from tflq.base.errors import InvalidModelError, OptionError, Reason
from tflq.base.files import FilePath, replace_file
from tflq.base.logs import DEBUG, log
from tflq.formats.sources import read
from tflq.tools.quantize.recipe import FLOAT, Rule
from tflq.tools.quantize.report import QuantizedRow
from tflq.tools.samples.files import Images
from tflq.tools.samples.inputs import Entry
from tflq.tools.samples.reading import samples_of
from tflq.tools.verify.difference import in_decibels
from tflq.tools.verify.runner import RunError
from tflq.tools.verify.tflite_runner import TfliteRunner

_TIMEOUT: Final = 60.0
MOST: Final = 100
"""Samples that outputs are measured on, at most."""

Outputs = list[np.ndarray]
"""The outputs of a sample, as float64."""
Metric = Callable[[list[Outputs], list[Outputs]], float]
"""Fidelity of the second outputs to the first, sample by sample; more is nearer."""


def signal_to_noise(
    original: FilePath,
    result: FilePath,
    data: Any,
    *,
    signature: str | None = None,
    images: Images | None = None,
) -> float:
    """10 log10(Σf² / Σ(f-q)²) in decibels, f and q all outputs of two models on the first `MOST` samples; infinite
    where they are equal. Both run on the default kernels. Stored integers count as the reals that they stand for.
    signature: the entry that runs, as for `tflq.calibrate`. InvalidModelError if one of them does not run."""
    with closing(FloatNetwork(original, signature=signature)) as floats:
        return decibels(floats.beside(result, data, images=images))


class Nearness(NamedTuple):
    """Fidelity of outputs, over all samples.

    decibels: the signal-to-noise ratio; None if it was not measured. agreement: the share of rows of outputs
    [rows, classes] whose largest element stays a largest one; None if there are fewer than `ROWS` rows.
    """

    decibels: float | None
    agreement: float | None

    def warnings(self) -> list[str]:
        """The warnings for outputs that are far off."""
        signs = []
        if self.decibels is not None and self.decibels < LEAST_DECIBELS:
            signs.append(f"their signal to noise is {self.decibels:.1f} dB")
        if self.agreement is not None and self.agreement < LEAST_AGREEMENT:
            signs.append(f"{self.agreement:.0%} of the samples have the same largest element")
        return [f"the outputs are far from the float network's: {', '.join(signs)}; {_REMEDY}"] if signs else []


ROWS: Final = 10
LEAST_DECIBELS: Final = 10.0
LEAST_AGREEMENT: Final = 0.9
_REMEDY: Final = (
    "see which operators do it (tflq debug), keep those in float (--keep-float, --min-snr), "
    "or take another --range, more samples, or a scheme of more bits"
)


def decibels(outputs: Iterable[tuple[Outputs, Outputs]]) -> float:
    """The signal-to-noise ratio of outputs, sample by sample."""
    ratio = nearness(outputs).decibels
    assert ratio is not None
    return ratio


def nearness(outputs: Iterable[tuple[Outputs, Outputs]]) -> Nearness:
    """The fidelity of outputs, sample by sample."""
    signal = noise = 0.0
    rows = same = 0
    for floats, others in outputs:
        signal += sum(float((array**2).sum()) for array in floats)
        noise += sum(float(((array - other) ** 2).sum()) for array, other in zip(floats, others, strict=True))
        for array, other in zip(floats, others, strict=True):
            if array.ndim == other.ndim == 2 and array.shape[1] > 1:
                rows += len(array)
                at_largest = np.take_along_axis(other, array.argmax(axis=1)[:, None], axis=1)
                same += int((at_largest[:, 0] == other.max(axis=1)).sum())
    return Nearness(in_decibels(signal, noise), same / rows if rows >= ROWS else None)


class FloatNetwork:
    """A float network that any number of results are compared with, always on the same samples: it runs once on each.

    What it gives is kept in a temporary file, of the first `MOST` samples; memory holds the outputs of one sample."""

    def __init__(self, path: FilePath, *, signature: str | None = None) -> None:
        self.entry = Entry.of(read(path), signature)
        self.path = os.fspath(path)
        with _running(self.path):
            self._runner = TfliteRunner(self.path, "default", _TIMEOUT)
        self._outputs_file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the network
        self._places: list[int] = []

    def beside(
        self, result: FilePath, data: Any, *, images: Images | None = None, called: str = ""
    ) -> Iterator[tuple[Outputs, Outputs]]:
        """The outputs of the network and of a result, as `signal_to_noise` compares them. called: what messages call
        the result, if not by its path."""
        path = os.fspath(result)
        with _running(called or path):
            after = TfliteRunner(path, "default", _TIMEOUT, beside=self._runner)
        with closing(after):
            sides = after.entries[self.entry.key]
            input_types, output_types = ([described for _, described in sides[side]] for side in ("inputs", "outputs"))
            for place, sample in enumerate(islice(samples_of(data, self.entry, images).arrays, MOST)):
                arrays = [sample[input_.name] for input_ in self.entry.in_run_order]
                floats = self._outputs(place, arrays)
                with _running(called or path):
                    others = after.run(self.entry.key, list(map(_stored, arrays, input_types)), {})
                yield [array.astype(np.float64) for array in floats], list(map(_real, others, output_types))
            after.release()

    def beside_bytes(
        self, data: bytes, samples: Any, *, images: Images | None = None
    ) -> Iterator[tuple[Outputs, Outputs]]:
        """The outputs of the network and of a result that is not in a file: `beside`."""
        with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
            path = os.path.join(folder, "quantized.tflite")
            replace_file(path, [data])
            yield from self.beside(path, samples, images=images, called="the quantized network")

    def close(self) -> None:
        """Ends the interpreter's process, and forgets what it gave."""
        self._outputs_file.close()
        self._runner.close()

    def _outputs(self, place: int, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs for the sample at a place: of the interpreter, the first time."""
        if place == len(self._places):
            with _running(self.path):
                outputs = self._runner.run(self.entry.key, arrays, {})
            self._places.append(self._outputs_file.seek(0, os.SEEK_END))
            for output in outputs:
                np.save(self._outputs_file, output, allow_pickle=False)
            return outputs
        self._outputs_file.seek(self._places[place])
        return [
            np.load(self._outputs_file, allow_pickle=False) for _ in self._runner.entries[self.entry.key]["outputs"]
        ]


@contextmanager
def _running(called: str) -> Iterator[None]:
    """Says which model does not run."""
    try:
        yield
    except RunError as error:
        raise InvalidModelError("", f"the interpreter does not run it: {error}", path=called) from error


def _stored(array: np.ndarray, described: Mapping[str, Any]) -> np.ndarray:
    dtype = np.dtype(described["dtype"])
    if array.dtype == dtype or not described["scales"]:
        return array.astype(dtype)
    ends = np.iinfo(dtype)
    steps = np.rint(array / np.float32(described["scales"][0])) + described["zero_points"][0]
    return np.clip(steps, ends.min, ends.max).astype(dtype)


def _real(array: np.ndarray, described: Mapping[str, Any]) -> np.ndarray:
    if array.dtype.kind == "f" or not described["scales"]:
        return array.astype(np.float64)
    return (array.astype(np.float64) - described["zero_points"][0]) * described["scales"][0]


# Operators are given back.


CALIBRATED: Final = 3 / 4
"""The share of samples that ranges are taken from, where the others are to judge; the first ones."""


@dataclass(frozen=True, slots=True)
class Step:
    """An operator that was tried in float.

    Attributes:
        operator: Its kernel, or the operator.
        tensor: The name of its result.
        gain: By how much the outputs came nearer.
        value: How near they were then.
        kept: Whether it stays float.
    """

    operator: str
    tensor: str
    gain: float
    value: float
    kept: bool


@dataclass(frozen=True, slots=True)
class Search:
    """Search for the operators that are restored to float.

    Attributes:
        metric: What was measured: "decibels", or the function's name.
        least: How near the outputs were to be.
        calibrated: Samples that ranges were taken from.
        judged: Samples that the outputs were measured on, of which no range was taken.
        before: How near they were with all operators quantized.
        after: How near they are.
        alone: Each operator in float, the others quantized; worst first.
        steps: Operators given back, in order.
    """

    metric: str
    least: float
    calibrated: int
    judged: int
    before: float
    after: float
    alone: tuple[Step, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def unit(self) -> str:
        """Unit of the metric, for texts: " dB", or "" for a function's."""
        return " dB" if self.metric == "decibels" else ""

    def lines(self) -> list[str]:
        """The steps of the search, as text."""
        unit = self.unit
        on = f"on {self.judged} samples not calibrated with" + (f" ({self.calibrated} were)" if self.calibrated else "")
        lines = [f"{self.metric} {self.before:.2f} → {self.after:.2f}, at least {self.least:g}, {on}"]
        for step in self.steps:
            what = "back to float" if step.kept else "gains nothing, stays quantized"
            lines.append(f"{step.operator} '{step.tensor}': {step.gain:+.2f}{unit}, {what}: {step.value:.2f}{unit}")
        return lines


Measure = Callable[[Sequence[Rule]], float]
"""Fidelity of the outputs of a network with further rules."""


def restore_float(rows: Sequence[QuantizedRow], measure: Measure, least: float, attributes: dict[str, Any]) -> Search:
    """Finds the operators that have to stay float. rows: of the network with no operator given back. attributes:
    the other ones of the result. OptionError if nothing but a network in float is near enough, or not even that."""
    before = measure(())
    search = Search(least=least, before=before, after=before, **attributes)
    if before >= least:
        return search
    candidates = [row for row in rows if row.quantized and row.tensor]
    alone: list[Step] = []
    for number, row in enumerate(candidates, 1):
        log(DEBUG, "", extra={"begins": f"operator {number} of {len(candidates)} alone in float"})
        value = measure((_of_name(row.tensor),))
        alone.append(Step(row.operator, row.tensor, value - before, value, kept=False))
    alone.sort(key=lambda step: -step.value)
    after, steps = _one_by_one(alone, measure, before, least)
    if after < least:
        nearest = max([before, after, *(step.value for step in alone[:1] if len(alone) > 1)])
        after, steps = _together(alone, measure, nearest, least, search.unit)
    return replace(search, after=after, alone=tuple(alone), steps=tuple(steps))


def _one_by_one(alone: Sequence[Step], measure: Measure, before: float, least: float) -> tuple[float, list[Step]]:
    """The fidelity with operators given back in order, but for those that gain nothing, and the steps to it. The last
    operator is not tried: with it none would be quantized."""
    steps: list[Step] = []
    rules: tuple[Rule, ...] = ()
    value = before
    for step in alone:
        if value >= least or len(rules) == len(alone) - 1:
            break
        log(DEBUG, "", extra={"begins": f"{len(rules) + 1} operators in float, {value:.2f} of {least:g}"})
        more = (*rules, _of_name(step.tensor))
        now = measure(more)
        better = now > value
        steps.append(Step(step.operator, step.tensor, now - value, now, better))
        if better:
            rules, value = more, now
    return value, steps


def _together(
    alone: Sequence[Step], measure: Measure, nearest: float, least: float, unit: str
) -> tuple[float, list[Step]]:
    """The fidelity with the fewest of the first operators given back that together are near enough, by halving.
    nearest: the best that was measured before. unit: of the metric. OptionError if only all of them are near enough,
    or not even these."""
    values: dict[int, float] = {}
    low, high = 0, len(alone)
    while high - low > 1:
        middle = (low + high) // 2
        log(DEBUG, "", extra={"begins": f"the first {middle} operators in float"})
        values[middle] = measure([_of_name(step.tensor) for step in alone[:middle]])
        low, high = (low, middle) if values[middle] >= least else (middle, high)
    if high < len(alone):
        return values[high], [replace(step, value=values[high], kept=True) for step in alone[:high]]
    nearest, everything = max([nearest, *values.values()]), measure([_of_name(step.tensor) for step in alone])
    wanted = f"and {least:g}{unit} is asked for"
    what = f"the outputs come no nearer than {nearest:.2f}{unit} with an operator quantized, {wanted}"
    if everything < least:
        what += f"; with all operators in float they come to {everything:.2f}{unit}"
    else:
        what += ": only the float network is as near"
    raise OptionError(Reason(what, value=least, remedy="ask for less, or take a scheme of more bits"))


def rules_of(search: Search) -> tuple[Rule, ...]:
    """The rules that keep what was found as floats."""
    return tuple(_of_name(step.tensor) for step in search.steps if step.kept)


def _of_name(tensor: str) -> Rule:
    """The rule that keeps the operator float that makes a tensor."""
    return Rule(name=f"re:{re.escape(tensor)}", what=(("scheme", FLOAT),))
