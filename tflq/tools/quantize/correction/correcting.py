"""Products of a quantized network, corrected one after the other on the inputs that the network so far gives them.

A process runs the float network and the quantized one on all samples for each product, in the order of the network, and
fits its bias, or its weights as well (`numerics.reconstruction`), on all samples but the last quarter. An output keeps
this where it is nearer on the last quarter, behind the activation. The next product sees what the corrected ones give.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from tflq.analysis.evaluate.stablehlo_elementwise import quantized, real
from tflq.base.files import replace_file
from tflq.formats.sources import read, write
from tflq.ir.types import TensorType
from tflq.numerics.ranges import GPTQ
from tflq.numerics.reconstruction import Rows, Stored, errors, reconstructed, rounded_again, with_mean_bias
from tflq.tools.quantize.calibration.collecting import in_order
from tflq.tools.quantize.correction.layers import Layer, layers_of, separate_biases
from tflq.tools.quantize.correction.stepwise import Stepwise, runs_in_parts
from tflq.tools.quantize.debugging.debugging import side_of
from tflq.tools.quantize.fidelity import CALIBRATED
from tflq.tools.quantize.preparing import spread_constants
from tflq.tools.samples.inputs import Entry
from tflq.tools.samples.reading import Span

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
        key: The key of the entry of both.
        methods: The method of the weights of products, by the names of their results; None: biases alone, of all.
    """

    floats: str
    quantized: str
    key: str
    methods: Mapping[str, str] | None


class Corrected(NamedTuple):
    """The network that comes of it, and how many outputs of each product changed, of how many, by the float network's
    result."""

    data: bytes
    outputs: dict[str, tuple[int, int]]


def corrected(source: str, data: bytes, samples: Span, methods: Mapping[str, str] | None = None) -> Corrected:
    """A quantized network with other biases, and weights if asked for. source: the float network. samples: two at
    least. methods: as of `Job`. Errors as of the interpreter's process."""
    entry = samples.entry
    step = max(1, -(-len(samples) // MOST))
    arrays = [
        [sample[input_.name] for input_ in entry.in_run_order]
        for place, sample in enumerate(samples)
        if place % step == 0
    ]
    with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
        path = os.path.join(folder, "quantized.tflite")
        replace_file(path, [data])
        job = Job(os.fspath(source), path, entry.key, methods)
        (result,) = in_order(_corrected, job, [arrays], 1)
    return result


def _corrected(job: Job, samples: Sequence[list[np.ndarray]]) -> Corrected:
    """Corrects the products of a network. In a process of its own."""
    return _Correcting(job, samples).run()


class _Correcting:
    def __init__(self, job: Job, samples: Sequence[list[np.ndarray]]) -> None:
        self.job = job
        self.count = len(samples)
        floats, self.module = read(job.floats), read(job.quantized)
        sides = [side_of(module, Entry.of(module, job.key or None)) for module in (floats, self.module)]
        spread_constants(floats, integers=True)
        self.floats, self.quantized = sides
        separate_biases(self.quantized.function)
        stored = [
            [_stored(value.type, array) for value, array in zip(self.quantized.inputs, arrays, strict=True)]
            for arrays in samples
        ]
        self.networks = [
            Stepwise(side.function, side.inputs, arrays, f"{job.quantized}.{name}")
            for side, arrays, name in zip(sides, (samples, stored), ("float", "stored"), strict=True)
        ]

    def run(self) -> Corrected:
        outputs: dict[str, tuple[int, int]] = {}
        if all(runs_in_parts(side.function) for side in (self.floats, self.quantized)):
            layers = [
                layer
                for layer in layers_of(self.floats, self.quantized)
                if self.job.methods is None or layer.name in self.job.methods
            ]
            for place, layer in enumerate(layers):
                outputs[layer.name] = self._correct(layer, layers[place:])
        self.module.buffers, self.module.operator_codes = [], []  # the writer makes these tables anew
        return Corrected(write(self.module), outputs)

    def _correct(self, layer: Layer, later: Sequence[Layer]) -> tuple[int, int]:
        """Corrects a product. Returns how many of its outputs changed, of how many."""
        before = layer.stored()
        count = before.bias.size
        if not layer.has_bias and self.job.methods is None:
            return 0, count
        rows, owners = self._rows(layer, later)
        split = min(math.ceil(self.count * CALIBRATED), self.count - 1)
        fitted, judge = (rows.at(np.flatnonzero(each)) for each in (owners < split, owners >= split))
        after = self._fitted(layer, before, fitted)
        off = [errors(layer.floats, each, judge, layer.ends) for each in (after, before)]
        better = (off[0] < off[1]) & layer.takes(after)
        if better.any():
            layer.put(after.where(better, before), self.quantized.function)
        return int(better.sum()), count

    def _fitted(self, layer: Layer, before: Stored, rows: Rows) -> Stored:
        if self.job.methods is None:
            return with_mean_bias(layer.floats, before, rows)
        bits, centered = layer.weights.type.storage.bits, layer.has_bias
        if self.job.methods[layer.name] == GPTQ:
            return rounded_again(layer.floats, before, rows, bits, centered=centered)
        return reconstructed(layer.floats, before, rows, bits, centered=centered, as_stored=layer.as_stored)

    def _rows(self, layer: Layer, later: Sequence[Layer]) -> tuple[Rows, np.ndarray]:
        """The inputs of a product in both networks, on all samples, and the number of the sample of each row."""
        numbers = layer.columns * layer.floats.weights.shape[0]
        each = max(min(_ROWS, _NUMBERS // numbers) // self.count, 4)
        arrays = [
            self.networks[0].advance(layer.real, {other.real for other in later}),
            self.networks[1].advance(layer.stored_input, {other.stored_input for other in later}),
        ]
        counts = [layer.count(array) for array in arrays[0]]
        places = [_drawn(count, each, number) for number, count in enumerate(counts)]
        kinds = layer.real.type, layer.stored_input.type
        sides = (
            np.concatenate([layer.rows(real(kind, x), at) for x, at in zip(side, places, strict=True)])
            for side, kind in zip(arrays, kinds, strict=True)
        )
        real_rows, stored_rows = (np.moveaxis(side, 0, 1).astype(np.float64) for side in sides)
        return Rows(real_rows, stored_rows), np.repeat(np.arange(self.count), [len(at) for at in places])


def _drawn(count: int, most: int, seed: int) -> np.ndarray:
    """So many of the first numbers, in order."""
    return np.sort(np.random.default_rng(seed).choice(count, min(count, most), replace=False))


def _stored(kind: TensorType, array: np.ndarray) -> np.ndarray:
    """An array as the quantized network takes it."""
    steps = quantized(kind, array) if kind.quantized and array.dtype.kind == "f" else array
    return steps.astype(kind.storage.dtype)
