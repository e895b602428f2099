"""Products of a quantized network, corrected one after the other on the inputs that the network so far gives them.

A process runs the float network and the quantized one on all samples for each product, in the order of the network, and
fits its bias, or its weights as well (`numerics.reconstruction`), on all samples but the last quarter. An output keeps
this where it is nearer on the last quarter, behind the activation. The next product sees what the corrected ones give.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from tflq.analysis.evaluate.stablehlo_elementwise import quantized, real
from tflq.base.files import replace_file
from tflq.formats.sources import read, write
from tflq.ir.module import Module
from tflq.ir.rewriting import forget_tables
from tflq.ir.types import TensorType
from tflq.numerics.ranges import GPTQ
from tflq.numerics.reconstruction import Rows, Stored, errors, reconstructed, rounded_again, with_mean_bias
from tflq.tools.quantize.calibration.collecting import in_order
from tflq.tools.quantize.correction.layers import Layer, layers_of, separate_biases
from tflq.tools.quantize.correction.stepwise import Stepwise, runs_in_parts
from tflq.tools.quantize.debugging.debugging import side_of
from tflq.tools.quantize.preparing import spread_constants
from tflq.tools.samples.inputs import Entry
from tflq.tools.samples.reading import Span, Spans, fitted_of

MOST: Final = 128
"""Samples that products are fitted on, at most, evenly spread."""
_ROWS: Final = 16000
"""Rows of inputs that a product is fitted on, about."""
_NUMBERS: Final = 1 << 24
"""Numbers of a matrix of inputs, at most."""


@dataclass(frozen=True)
class Job:
    """Work of a process.

    Attributes:
        floats: The file of the float network.
        quantized: That of the quantized one.
        keys: The keys of the entries of both that samples run.
        methods: The method of the weights of products, by the names of their results; None: biases alone, of all.
    """

    floats: str
    quantized: str
    keys: tuple[str, ...]
    methods: Mapping[str, str] | None


class Corrected(NamedTuple):
    """The network that comes of it, and how many outputs of each product changed, of how many, by the float network's
    result."""

    data: bytes
    outputs: dict[str, tuple[int, int]]


Arrays = list[np.ndarray]
"""The arrays of a sample, in the order of a run."""


def corrected(source: str, data: bytes, samples: Spans, methods: Mapping[str, str] | None = None) -> Corrected:
    """A quantized network with other biases, and weights if asked for. source: the float network. samples: two of each
    entry at least. methods: as of `Job`. Errors as of the interpreter's process."""
    arrays = [list(_spread(span)) for span in samples.each]
    with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
        path = os.path.join(folder, "quantized.tflite")
        replace_file(path, [data])
        job = Job(os.fspath(source), path, tuple(span.entry.key for span in samples.each), methods)
        (result,) = in_order(_corrected, job, [arrays], 1)
    return result


def _spread(span: Span) -> Iterator[Arrays]:
    """The samples that products are fitted on."""
    step = max(1, -(-len(span) // MOST))
    for sample in islice(span, 0, None, step):
        yield [sample[input_.name] for input_ in span.entry.in_run_order]


def _corrected(job: Job, samples: Sequence[Sequence[Arrays]]) -> Corrected:
    """Corrects the products of a network. In a process of its own."""
    return _Correcting(job, samples).run()


class _Entry:
    """An entry of both networks, which run in parts on its samples. later: the products that are not corrected yet."""

    def __init__(self, floats: Module, quantized: Module, job: Job, key: str, samples: Sequence[Arrays]) -> None:
        sides = [side_of(module, Entry.of(module, key or None)) for module in (floats, quantized)]
        self.function = sides[1].function
        self.count = len(samples)
        runs = all(runs_in_parts(side.function) for side in sides)
        separate_biases(self.function)
        layers = layers_of(*sides) if runs else []
        self.later = [layer for layer in layers if job.methods is None or layer.name in job.methods]
        stored = [
            [_stored(value.type, array) for value, array in zip(sides[1].inputs, arrays, strict=True)]
            for arrays in samples
        ]
        prefix = f"{job.quantized}.{key and sides[1].function.name}"
        self.networks = [
            Stepwise(side.function, side.inputs, arrays, f"{prefix}.{name}")
            for side, arrays, name in zip(sides, (samples, stored), ("float", "stored"), strict=True)
        ]

    def rows(self, layer: Layer, most: int) -> tuple[Rows, np.ndarray]:
        """The inputs of a product in both networks, and which rows are of samples to fit to. most: rows of a
        sample."""
        arrays = [
            self.networks[0].advance(layer.real, {other.real for other in self.later}),
            self.networks[1].advance(layer.stored_input, {other.stored_input for other in self.later}),
        ]
        counts = [layer.count(array) for array in arrays[0]]
        places = [_drawn(count, most, number) for number, count in enumerate(counts)]
        kinds = layer.real.type, layer.stored_input.type
        sides = (
            np.concatenate([layer.rows(real(kind, x), at) for x, at in zip(side, places, strict=True)])
            for side, kind in zip(arrays, kinds, strict=True)
        )
        real_rows, stored_rows = (np.moveaxis(side, 0, 1).astype(np.float64) for side in sides)
        owners = np.repeat(np.arange(self.count), [len(at) for at in places])
        return Rows(real_rows, stored_rows), owners < fitted_of(self.count)


class _Correcting:
    def __init__(self, job: Job, samples: Sequence[Sequence[Arrays]]) -> None:
        self.methods = job.methods
        floats, self.module = read(job.floats), read(job.quantized)
        spread_constants(floats, integers=True)
        self.entries = [
            _Entry(floats, self.module, job, key, arrays) for key, arrays in zip(job.keys, samples, strict=True)
        ]

    def run(self) -> Corrected:
        outputs: dict[str, tuple[int, int]] = {}
        for entry in self.entries:
            while entry.later:
                layer = entry.later[0]
                places = [(entry, layer), *self._with_weights_of(layer, entry)]
                changed = self._correct(places)
                for each, other in places:
                    each.later.remove(other)
                    outputs[other.name] = changed
        forget_tables(self.module)
        return Corrected(write(self.module), outputs)

    def _with_weights_of(self, layer: Layer, entry: _Entry) -> list[tuple[_Entry, Layer]]:
        """The entries with a product of the same stored weights, which are fitted to the samples of all."""
        if self.methods is None:
            return []
        others = [(each, other) for each in self.entries if each is not entry for other in each.later]
        return [(each, other) for each, other in others if layer.is_same(other)]

    def _correct(self, places: Sequence[tuple[_Entry, Layer]]) -> tuple[int, int]:
        """Corrects a product that several entries can have. Returns how many of its outputs changed, of how many."""
        layer = places[0][1]
        before = layer.stored()
        count = before.bias.size
        if not layer.has_bias and self.methods is None:
            return 0, count
        numbers = layer.columns * layer.floats.weights.shape[0]
        most = max(min(_ROWS, _NUMBERS // numbers) // sum(entry.count for entry, _ in places), 4)
        parts, are_fitted = zip(*(entry.rows(each, most) for entry, each in places), strict=True)
        rows = Rows(*(np.concatenate(side, axis=1) for side in zip(*parts, strict=True)))
        is_fitted = np.concatenate(are_fitted)
        fitted, judge = (rows.at(np.flatnonzero(each)) for each in (is_fitted, ~is_fitted))
        after = self._fitted(layer, before, fitted)
        off = [errors(layer.floats, each, judge, layer.ends) for each in (after, before)]
        better = (off[0] < off[1]) & np.all([each.takes(after) for _, each in places], axis=0)
        if better.any():
            for entry, each in places:
                each.put(after.where(better, each.stored()), entry.function)
        return int(better.sum()), count

    def _fitted(self, layer: Layer, before: Stored, rows: Rows) -> Stored:
        if self.methods is None:
            return with_mean_bias(layer.floats, before, rows)
        bits, centered = layer.weights.type.storage.bits, layer.has_bias
        if self.methods[layer.name] == GPTQ:
            return rounded_again(layer.floats, before, rows, bits, centered=centered)
        return reconstructed(layer.floats, before, rows, bits, centered=centered, as_stored=layer.as_stored)


def _drawn(count: int, most: int, seed: int) -> np.ndarray:
    """So many of the first numbers, in order."""
    return np.sort(np.random.default_rng(seed).choice(count, min(count, most), replace=False))


def _stored(kind: TensorType, array: np.ndarray) -> np.ndarray:
    """An array as the quantized network takes it."""
    steps = quantized(kind, array) if kind.quantized and array.dtype.kind == "f" else array
    return steps.astype(kind.storage.dtype)
