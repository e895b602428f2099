"""Fidelity of a quantized network on samples: its outputs compared with those of its float original."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np

from tflq.base.errors import InvalidModelError
from tflq.base.files import FilePath, replace_file
from tflq.dialects.tfl.state import VarHandle
from tflq.formats.sources import read
from tflq.tools.samples.inputs import Entry
from tflq.tools.samples.reading import Span, Spans, samples_of
from tflq.tools.verify.difference import in_decibels
from tflq.tools.verify.metrics import agreements, real
from tflq.tools.verify.outcome import RunTime
from tflq.tools.verify.runner import Child, Opened, RunError
from tflq.tools.verify.timing import run_time_of

_TIMEOUT: Final = 60.0
MOST: Final = 100
"""Samples that outputs are measured on, at most."""

Outputs = Sequence[np.ndarray]
"""The outputs of a sample, as float64."""
Metric = Callable[[list[Outputs], list[Outputs]], float]
"""Fidelity of the second outputs to the first, sample by sample; more is nearer."""


def signal_to_noise(original: FilePath, result: FilePath, data: Any, *, signature: str | None = None) -> float:
    """10 log10(Σf² / Σ(f-q)²) in decibels, f and q all outputs of two models on the first `MOST` samples; infinite
    where they are equal. Both run on the default kernels. Stored integers count as the reals that they stand for.
    signature: the entry that runs, as for `tflq.calibrate`. InvalidModelError if one of them does not run."""
    with closing(FloatNetwork(original, signature=signature)) as floats:
        return decibels(floats.beside(result, data))


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
                same += int(agreements(array, other).sum())
    return Nearness(in_decibels(signal, noise), same / rows if rows >= ROWS else None)


class FloatNetwork:
    """A float network that any number of results are compared with, always on the same samples: it runs once on each.

    What it gives is kept in a temporary file, of the first `MOST` samples; memory holds the outputs of one sample."""

    def __init__(self, path: FilePath, *, signature: str | None = None, entry: Entry | None = None) -> None:
        module = read(path)
        self.entry = Entry.of(module, signature) if entry is None else entry
        self.path = os.fspath(path)
        self._has_variables = any(isinstance(op, VarHandle) for op in module.ops())
        self._child = Child("the interpreter", _TIMEOUT)
        try:
            self._floats = self._opened(self.path)
        except BaseException:
            self._child.close()
            raise
        self._outputs_file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the network
        self._places: list[int] = []

    def _opened(self, path: str, called: str = "") -> Opened:
        """A model with the network's variables, in the process of the interpreter."""
        request = {"model": os.path.abspath(path), "resolver": "default", "anew": self._has_variables}
        with _running(called or path):
            return Opened(self._child, request)

    def beside(
        self, result: FilePath, data: Any, *, called: str = "", most: int | None = MOST
    ) -> Iterator[tuple[Outputs, Outputs]]:
        """The outputs of the network and of a result, as `signal_to_noise` compares them. called: what messages call
        the result, if not by its path. most: samples, at most; None: all."""
        after = self._opened(os.fspath(result), called)
        entries = after.head["entries"]
        try:
            for place, (entry, arrays) in enumerate(self._inputs(data, most)):
                floats = self._outputs(place, entry, arrays)
                key = entry.key if entry.key in entries else next(iter(entries))
                inputs, outputs = ([described for _, described in entries[key][side]] for side in ("inputs", "outputs"))
                with _running(called or os.fspath(result)):
                    others = after.run(key, list(map(_stored, arrays, inputs)))
                yield [array.astype(np.float64) for array in floats], list(map(real, others, outputs))
        finally:
            with suppress(RunError):  # the process has ended
                after.close()

    def outputs(self, data: Any) -> Iterator[Outputs]:
        """The outputs of the network for the same samples."""
        for place, (entry, arrays) in enumerate(self._inputs(data, MOST)):
            yield [array.astype(np.float64) for array in self._outputs(place, entry, arrays)]

    def beside_bytes(self, data: bytes, samples: Any) -> Iterator[tuple[Outputs, Outputs]]:
        """The outputs of the network and of a result that is not in a file: `beside`."""
        with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
            path = os.path.join(folder, "quantized.tflite")
            replace_file(path, [data])
            yield from self.beside(path, samples, called="the quantized network")

    def run_time(self, first: FilePath, second: FilePath, samples: Spans) -> RunTime:
        """Durations of a run of two results on the first of the samples, measured in turns on one thread."""
        one, other = (self._opened(os.fspath(path)) for path in (first, second))
        entry, arrays = next(self._inputs(samples, 1))
        described = [each for _, each in one.head["entries"][entry.key]["inputs"]]
        with _running("the quantized network"):
            time = run_time_of(one, other, entry.key, list(map(_stored, arrays, described)))
        one.close()
        other.close()
        return time

    def close(self) -> None:
        """Ends the interpreter's process, and forgets what it gave."""
        self._outputs_file.close()
        self._child.close()

    def _inputs(self, data: Any, most: int | None) -> Iterator[tuple[Entry, list[np.ndarray]]]:
        """The entry of each sample and its arrays, as a run takes them. most: samples of an entry, at most; None:
        all."""
        for part in data.each if isinstance(data, Spans) else (data,):
            entry = part.entry if isinstance(part, Span) else self.entry
            for sample in islice(samples_of(part, entry).arrays, most):
                yield entry, [sample[input_.name] for input_ in entry.in_run_order]

    def _outputs(self, place: int, entry: Entry, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs for the sample at a place: of the interpreter, the first time."""
        if place == len(self._places):
            with _running(self.path):
                outputs = self._floats.run(entry.key, arrays)
            self._places.append(self._outputs_file.seek(0, os.SEEK_END))
            for output in outputs:
                np.save(self._outputs_file, output, allow_pickle=False)
            return outputs
        self._outputs_file.seek(self._places[place])
        described = self._floats.head["entries"][entry.key]["outputs"]
        return [np.load(self._outputs_file, allow_pickle=False) for _ in described]


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
