"""Runs of a float network, of its quantized one, and of float operators alone, and sums over how they differ.

As in calibration a process opens the models once and runs one sample after the other; what it answers of a batch is a
few small arrays, which the caller joins in the order of the samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from tflq.calibration.collecting import opened
from tflq.errors import InvalidModelError, TflqError
from tflq.evaluate.stablehlo_elementwise import quantized, real
from tflq.ir.types import TensorType
from tflq.numerics.histogram import finite_bins, histogram
from tflq.verification.worker import Model

SIGNAL, NOISE, PRODUCT, POWER, COUNT, CLIPPED = range(6)
"""Columns of sums: Σf², Σ(f-q)², Σfq, Σq², elements, and those that lie beyond what the type can hold."""


class Tensor(NamedTuple):
    """A tensor of a file: subgraph and index, and its type."""

    place: tuple[int, int]
    type: TensorType


@dataclass(frozen=True)
class Compared:
    """What is compared of a pair.

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
    """Files of the float network, of the quantized one and of the float operators alone; the entries' keys of the
    first two; the types of the quantized network's inputs, each with its place among the float one's."""

    floats: str
    quantized: str
    alone: str
    entries: tuple[str, str]
    inputs: tuple[tuple[int, TensorType], ...]
    compared: tuple[Compared, ...]


class Job(NamedTuple):
    """Samples to compare on: for each the arrays in the order of the float network's inputs."""

    plan: Plan
    samples: Sequence[Sequence[np.ndarray]]


class Sums(NamedTuple):
    """What some samples showed of each pair. own, reached: of shape [pairs, 6], the sums of its own error, and of the
    error that has reached it. least, largest: of the float network's numbers, and of the quantized one's, [pairs, 2].
    bins: histograms of both, [pairs][2], by bin."""

    own: np.ndarray
    reached: np.ndarray
    least: np.ndarray
    largest: np.ndarray
    bins: list[list[Counter[int]]]

    def __add__(self, other: Sums) -> Sums:  # type: ignore[override]
        return Sums(
            self.own + other.own,
            self.reached + other.reached,
            np.minimum(self.least, other.least),
            np.maximum(self.largest, other.largest),
            [[a + b for a, b in zip(mine, own, strict=True)] for mine, own in zip(self.bins, other.bins, strict=True)],
        )


def compare(job: Job) -> Sums | TflqError:
    """Runs both networks and the float operators alone. In a process of its own. Errors are returned."""
    plan = job.plan
    models = [opened(path) for path in (plan.floats, plan.quantized, *([plan.alone] if plan.alone else []))]
    for model in models:
        if isinstance(model, TflqError):
            return model
    return _Comparing(plan, [model for model in models if isinstance(model, Model)]).run(job.samples)


class _Comparing:
    def __init__(self, plan: Plan, models: Sequence[Model]) -> None:
        self.plan = plan
        self.floats, self.quantized, *rest = models
        self.alone = rest[0] if rest else None
        count = len(plan.compared)
        self.own, self.reached = np.zeros((count, 6)), np.zeros((count, 6))
        self.least, self.largest = np.full((count, 2), np.inf), np.full((count, 2), -np.inf)
        self.bins = [[histogram(np.zeros(0, np.float32)) for _ in range(2)] for _ in range(count)]

    def run(self, samples: Sequence[Sequence[np.ndarray]]) -> Sums | TflqError:
        for arrays in samples:
            path = self.plan.floats
            try:
                self.floats.run(self.plan.entries[0], list(arrays), {}, follows=False)
                path = self.plan.quantized
                stored = [_stored(kind, arrays[place]) for place, kind in self.plan.inputs]
                self.quantized.run(self.plan.entries[1], stored, {}, follows=False)
                path = self.plan.floats
                outputs = self._alone()
            except (ValueError, RuntimeError) as error:
                return InvalidModelError("", f"the interpreter does not run it: {error}", path=path)
            for row, compared in enumerate(self.plan.compared):
                self._note(row, compared, outputs)
        bins = [[Counter(finite_bins(counts)) for counts in row] for row in self.bins]
        return Sums(self.own, self.reached, self.least, self.largest, bins)

    def _alone(self) -> list[np.ndarray]:
        """What the float operators make of the numbers that the quantized ones got."""
        if self.alone is None:
            return []
        fed = [tensor for compared in self.plan.compared if compared.output >= 0 for tensor in compared.fed]
        return self.alone.run("", [_real(self.quantized, tensor) for tensor in fed], {}, follows=False)

    def _note(self, row: int, compared: Compared, outputs: Sequence[np.ndarray]) -> None:
        floats, numbers = _real(self.floats, compared.real), _real(self.quantized, compared.stored)
        self.reached[row] += _sums(floats, numbers, compared.ends)
        if compared.output >= 0:
            self.own[row] += _sums(outputs[compared.output], numbers, compared.ends)
        elif compared.output == CAST:
            source = _real(self.quantized, compared.fed[0]) if compared.fed else floats
            self.own[row] += _sums(source, numbers, compared.ends)
        for side, array in enumerate((floats, numbers)):
            finite = array[np.isfinite(array)]
            if finite.size:
                self.least[row, side] = min(self.least[row, side], finite.min())
                self.largest[row, side] = max(self.largest[row, side], finite.max())
                self.bins[row][side] += histogram(finite)


def _stored(kind: TensorType, array: np.ndarray) -> np.ndarray:
    """An array as the quantized network takes it."""
    if kind.quantized and array.dtype.kind == "f":
        return quantized(kind, array).astype(kind.storage.dtype)
    return array.astype(kind.storage.dtype)


def _real(model: Model, tensor: Tensor) -> np.ndarray:
    """The numbers of a tensor after a run. ValueError if it has none."""
    fetched = model.fetch(list(tensor.place))
    if not fetched:
        raise ValueError(f"there is no tensor {tensor.place[1]} after a run")
    return real(tensor.type, fetched[0])


def _sums(floats: np.ndarray, numbers: np.ndarray, ends: tuple[float, float, float]) -> np.ndarray:
    """The sums of a pair of arrays, over what is finite in both."""
    if floats.shape != numbers.shape:
        raise ValueError(f"the shapes {floats.shape} and {numbers.shape} of one tensor differ")
    f, q = floats.reshape(-1).astype(np.float64), numbers.reshape(-1).astype(np.float64)
    finite = np.isfinite(f) & np.isfinite(q)
    if not finite.all():
        f, q = f[finite], q[finite]
    apart = f - q
    low, high, step = ends
    clipped = np.count_nonzero((f < low - step / 2) | (f > high + step / 2))
    return np.array([f @ f, apart @ apart, f @ q, q @ q, f.size, clipped])
