"""Runs of a float network, of its quantized one, and of float operators alone, and sums over how they differ.

As in calibration a process opens the models once and runs one sample after the other; what it answers of a batch is a
few small arrays, which the caller joins in the order of the samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from tflq.analysis.evaluate.stablehlo_elementwise import quantized, real
from tflq.base.errors import InvalidModelError
from tflq.ir.types import TensorType
from tflq.numerics.ranges import add_histogram, finite_bins, histogram
from tflq.tools.quantize.calibration.collecting import opened, run
from tflq.tools.samples.files import Batch
from tflq.tools.verify.worker import Model

SIGNAL, NOISE, PRODUCT, POWER, COUNT, CLIPPED, LEFT_OUT = COLUMNS = range(7)
"""Columns of sums: Σf², Σ(f-q)², Σfq, Σq², elements, those of them that lie beyond what the type can hold, and those
that were left out, since one of the two is not finite."""


class Tensor(NamedTuple):
    """A tensor of a file: subgraph and index, and its type."""

    place: tuple[int, int]
    type: TensorType


@dataclass(frozen=True)
class Compared:
    """The tensors of a pair that are compared.

    Attributes:
        real: The float network's tensor.
        stored: The quantized network's.
        fed: What the float operators alone get, if they run.
        output: Which output of the operators alone is its own; -1: it is cast, -2: nothing is known of its own error.
        ends: The least and the largest number that the stored type can hold, and a step; infinite for floats.
    """

    real: Tensor
    stored: Tensor
    fed: tuple[Tensor, ...]
    output: int
    ends: tuple[float, float, float]


CAST: Final = -1
UNKNOWN: Final = -2


@dataclass(frozen=True)
class Plan:
    """The models and comparisons of a process.

    Attributes:
        floats: The file of the float network.
        quantized: That of the quantized one.
        alone: That of the float operators alone; empty if there are none.
        entries: The keys of the entries of the first two.
        names: The names of the float network's inputs, in the order in which it takes them.
        inputs: The types of the quantized network's inputs, each with its place among the float one's.
        compared: What is compared.
        injected: The file of the float network to which own errors are added; empty if none are.
        groups: Whose errors are added together, by places in `compared`.
    """

    floats: str
    quantized: str
    alone: str
    entries: tuple[str, str]
    names: tuple[str, ...]
    inputs: tuple[tuple[int, TensorType], ...]
    compared: tuple[Compared, ...]
    injected: str = ""
    groups: tuple[tuple[int, ...], ...] = ()


class Sums(NamedTuple):
    """Sums over some samples for each pair.

    Attributes:
        samples: How many there were.
        own: The sums of its own error, of shape [pairs, columns].
        reached: The sums of the error that has reached it.
        least: Of the float network's numbers and of the quantized one's, [pairs, 2].
        largest: The same.
        bins: Histograms of both, [pairs][2], by bin.
    """

    samples: int
    own: np.ndarray
    reached: np.ndarray
    least: np.ndarray
    largest: np.ndarray
    bins: list[list[Counter[int]]]

    def __add__(self, other: Sums) -> Sums:  # type: ignore[override]
        return Sums(
            self.samples + other.samples,
            self.own + other.own,
            self.reached + other.reached,
            np.minimum(self.least, other.least),
            np.maximum(self.largest, other.largest),
            [
                [a + b for a, b in zip(mine, others, strict=True)]
                for mine, others in zip(self.bins, other.bins, strict=True)
            ],
        )


def influence(plan: Plan, samples: Batch) -> np.ndarray:
    """The power of the outputs' error that each group's own errors make. In a process of its own."""
    return _Running(plan).influence(samples)


def compare(plan: Plan, samples: Batch) -> Sums:
    """Runs both networks and the float operators alone. In a process of its own."""
    return _Running(plan).compare(samples)


class _Running:
    """The models of a plan. All it does raises InvalidModelError if one does not run."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.floats, self.quantized = opened(plan.floats), opened(plan.quantized)

    def compare(self, samples: Batch) -> Sums:
        count = len(self.plan.compared)
        pair_sums, reached = np.zeros((count, len(COLUMNS))), np.zeros((count, len(COLUMNS)))
        least, largest = np.full((count, 2), np.inf), np.full((count, 2), -np.inf)
        bins = [[histogram(np.zeros(0, np.float32)) for _ in range(2)] for _ in range(count)]
        for arrays in self._arrays(samples):
            alone = self._run(arrays)
            for row, compared in enumerate(self.plan.compared):
                floats, numbers = _real(self.floats, compared.real), _real(self.quantized, compared.stored)
                reached[row] += _sums(floats, numbers, compared.ends)
                if compared.output != UNKNOWN:
                    pair_sums[row] += _sums(self._wanted(compared, alone), numbers, compared.ends)
                for side, array in enumerate((floats, numbers)):
                    finite = array[np.isfinite(array)]
                    if finite.size:
                        least[row, side] = min(least[row, side], finite.min())
                        largest[row, side] = max(largest[row, side], finite.max())
                        add_histogram(bins[row][side], finite)
        counters = [[Counter(finite_bins(counts)) for counts in row] for row in bins]
        return Sums(len(samples), pair_sums, reached, least, largest, counters)

    def influence(self, samples: Batch) -> np.ndarray:
        places = [place for group in self.plan.groups for place in group]
        powers = np.zeros(len(self.plan.groups))
        for arrays in self._arrays(samples):
            alone = self._run(arrays)
            errors = []
            for compared in (self.plan.compared[place] for place in places):
                apart = _real(self.quantized, compared.stored) - self._wanted(compared, alone)
                errors.append(np.nan_to_num(apart, posinf=0.0, neginf=0.0).astype(np.float32))
            outputs = run(self.plan.injected, "", [*arrays, *errors], self.plan.floats)
            count = len(outputs) // (len(powers) + 1)
            for group in range(len(powers)):
                for wanted, got in zip(outputs[:count], outputs[count * (group + 1) :], strict=False):
                    if wanted.dtype.kind == "f":
                        powers[group] += _sums(wanted, got, (-np.inf, np.inf, 0.0))[NOISE]
        return powers

    def _arrays(self, samples: Batch) -> Iterator[list[np.ndarray]]:
        return ([sample[name] for name in self.plan.names] for sample in samples)

    def _run(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Runs both networks, then the float operators on the numbers that the quantized ones got, and returns what
        these make of them."""
        plan = self.plan
        run(plan.floats, plan.entries[0], arrays)
        run(plan.quantized, plan.entries[1], [_stored(kind, arrays[place]) for place, kind in plan.inputs])
        if not plan.alone:
            return []
        fed = [tensor for compared in plan.compared if compared.output >= 0 for tensor in compared.fed]
        return run(plan.alone, "", [_real(self.quantized, tensor) for tensor in fed], plan.floats)

    def _wanted(self, compared: Compared, alone: Sequence[np.ndarray]) -> np.ndarray:
        """The quantized network's tensor without its own error."""
        if compared.output >= 0:
            return alone[compared.output]
        return _real(self.quantized, compared.fed[0]) if compared.fed else _real(self.floats, compared.real)


def _stored(kind: TensorType, array: np.ndarray) -> np.ndarray:
    """An array as the quantized network takes it."""
    steps = quantized(kind, array) if kind.quantized and array.dtype.kind == "f" else array
    return steps.astype(kind.storage.dtype)


def _real(model: Model, tensor: Tensor) -> np.ndarray:
    """The numbers of a tensor after a run."""
    fetched = model.fetch(list(tensor.place))
    if not fetched:
        subgraph, index = tensor.place
        raise InvalidModelError(f"subgraph {subgraph}, tensor {index}", "it has no data after a run")
    return real(tensor.type, fetched[0])


def _sums(floats: np.ndarray, numbers: np.ndarray, ends: tuple[float, float, float]) -> np.ndarray:
    """The sums of a pair of arrays, over what is finite in both."""
    if floats.shape != numbers.shape:
        raise InvalidModelError("", f"the shapes {floats.shape} and {numbers.shape} of one tensor differ")
    f, q = floats.reshape(-1).astype(np.float64), numbers.reshape(-1).astype(np.float64)
    finite = np.isfinite(f) & np.isfinite(q)
    if not finite.all():
        f, q = f[finite], q[finite]
    apart = f - q
    low, high, step = ends
    clipped = np.count_nonzero((f < low - step / 2) | (f > high + step / 2))
    return np.array([f @ f, apart @ apart, f @ q, q @ q, f.size, clipped, finite.size - f.size])
