"""What processes of their own see of a model on samples: of each point the least, the largest and a histogram; of what
weights are multiplied with the second moments.

A process opens the model once, with all tensors kept, on the default kernels, which are the fastest, and runs one
sample after the other. What it has seen of some samples goes back as a few small arrays. The caller joins these in the
order of the samples, so that the result does not depend on how many processes there are, nor on which is first.
"""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

import numpy as np

from tflq.calibration.data import Batch, Sample
from tflq.errors import InvalidModelError, TflqError, to_install
from tflq.files import FilePath
from tflq.light import NamedTuple
from tflq.numerics.ranges import add_histogram, finite_bins, histogram
from tflq.processes import Died, in_processes
from tflq.verification.worker import Model


@dataclass(frozen=True)
class Watched:
    """A model's file, the entry that runs, its inputs' names in the model's order and in that of the entry's runner,
    and the tensors that are watched: (subgraph, index) each. Without any the model does not run."""

    path: str
    entry: str
    inputs: tuple[str, ...]
    order: tuple[str, ...]
    places: tuple[tuple[int, int], ...]
    bins: bool


class Job(NamedTuple):
    """Samples to run a model on."""

    watched: Watched
    samples: Batch


class Seen(NamedTuple):
    """What some samples showed of each watched tensor: of shape [tensors, samples] least and largest finite elements,
    NaN where there is none, and the numbers of finite, infinite and other elements; of each tensor its bins, where
    they are asked for; and a hash of each sample."""

    least: np.ndarray
    largest: np.ndarray
    counts: np.ndarray
    bins: list[dict[int, int]]
    samples: tuple[str, ...]


Answer = TypeVar("Answer")

_opened: dict[str, Model] = {}
"""The model of this process, by its path."""


def observe(job: Job) -> Seen | TflqError:
    """Runs a model on samples. In a process of its own: the interpreter may abort. Errors are returned."""
    model = opened(job.watched.path)
    try:
        return model if isinstance(model, TflqError) else _Watch(job.watched, len(job.samples)).run(model, job.samples)
    except TflqError as error:
        return error


def opened(path: str) -> Model | TflqError:
    """The model of a file, with all tensors kept, in this process. Errors are returned."""
    try:
        return _opened.get(path) or _open(path)
    except LookupError:
        return TflqError("no TFLite interpreter is installed", remedy=to_install("verify"))
    except (ValueError, RuntimeError) as error:
        return InvalidModelError("", f"the interpreter refuses it: {error}", path=path)


def _open(path: str) -> Model:
    """Opens a model, once. What the interpreter says while it does is for nobody."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 2)
    os.close(silence)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _opened[path] = Model(path, "default", anew=False, inner=False, keep=True)
    return _opened[path]


class _Watch:
    """What is seen of each tensor in so many samples."""

    def __init__(self, watched: Watched, count: int) -> None:
        self.watched = watched
        shape = len(watched.places), count
        self.least, self.largest = (np.full(shape, np.nan, np.float32) for _ in range(2))
        self.counts = np.zeros((3, *shape), np.int64)
        self.totals = [histogram(np.zeros(0, np.float32)) for _ in watched.places if watched.bins]

    def run(self, model: Model, samples: Batch) -> Seen:
        """Runs the samples. InvalidModelError if one does not run; errors of files that hold them."""
        hashes = []
        for column, (sample, digest) in enumerate(_hashed(samples, self.watched.inputs)):
            hashes.append(digest)
            if self.watched.places:
                self._run(model, [sample[name] for name in self.watched.order])
                self._look(model, column)
        return Seen(self.least, self.largest, self.counts, list(map(finite_bins, self.totals)), tuple(hashes))

    def _run(self, model: Model, arrays: list[np.ndarray]) -> None:
        try:
            model.run(self.watched.entry, arrays, {}, follows=False)
        except (ValueError, RuntimeError) as error:
            raise InvalidModelError("", f"the interpreter does not run it: {error}", path=self.watched.path) from error

    def _look(self, model: Model, column: int) -> None:
        """Goes through what the model holds after a run. No view of it is left behind."""
        for row, place in enumerate(self.watched.places):
            for tensor in model.view(place):
                self._note(row, column, tensor.reshape(-1))

    def _note(self, row: int, column: int, elements: np.ndarray) -> None:
        if not elements.size:
            return
        low, high = float(np.minimum.reduce(elements)), float(np.maximum.reduce(elements))
        if math.isfinite(low) and math.isfinite(high):
            self.counts[0, row, column] = elements.size
        else:
            finite = elements[np.isfinite(elements)]
            self.counts[:, row, column] = finite.size, np.isinf(elements).sum(), np.isnan(elements).sum()
            low, high = (finite.min(), finite.max()) if finite.size else (np.nan, np.nan)
        self.least[row, column], self.largest[row, column] = low, high
        if self.watched.bins:
            add_histogram(self.totals[row], elements)


def _hashed(samples: Iterable[Sample], names: Sequence[str]) -> Iterator[tuple[Sample, str]]:
    """Samples, and a hash of the arrays of each in the order of names. One more is read and hashed by a thread, while
    the interpreter runs on the one before."""
    waiting = iter(samples)

    def following() -> tuple[Sample, str] | None:
        for sample in waiting:
            digest = hashlib.blake2b(digest_size=8)
            for name in names:
                digest.update(np.ascontiguousarray(sample[name]).view(np.uint8).data)
            return sample, digest.hexdigest()
        return None

    with ThreadPoolExecutor(1) as thread:
        ahead = thread.submit(following)
        while (found := ahead.result()) is not None:
            ahead = thread.submit(following)
            yield found


def checked(seen: Answer | TflqError | Died) -> Answer:
    """What a process answered. TflqError if it could not, or ended."""
    if isinstance(seen, Died):
        raise TflqError(f"the interpreter's process ended: {seen}", remedy="run one sample alone: tflq verify")
    if isinstance(seen, TflqError):
        raise seen
    return seen


# Second moments of tensors, for `numerics.ranges`: of a batch a process answers the sums.


_BATCH: Final = 64
"""Samples that a process runs at once: sums are large."""


class Factor(NamedTuple):
    """A tensor that weights are multiplied with: its subgraph and index, the columns of the weights, and of how many
    rows and columns of pixels one is multiplied."""

    place: tuple[int, int]
    columns: int
    strides: tuple[int, int] = (1, 1)


@dataclass(frozen=True)
class _Job:
    path: str
    entry: str
    factors: tuple[Factor, ...]
    samples: Sequence[Sequence[np.ndarray]]


def second_moments(
    path: FilePath, entry: str, factors: Sequence[Factor], samples: Iterable[Sequence[np.ndarray]]
) -> list[np.ndarray]:
    """Σ x xᵀ over all that a factor holds in runs of a model: float64, [columns, columns] of each factor.

    entry: the signature's key; empty: the first subgraph. samples: for each, at least one, the arrays in the order in
    which the entry's runner takes them. InvalidModelError if the interpreter refuses the model."""

    def jobs() -> Iterator[_Job]:
        waiting = iter(samples)
        while batch := list(islice(waiting, _BATCH)):
            yield _Job(os.fspath(path), entry, tuple(factors), batch)

    totals: list[np.ndarray] = []
    for _, answer in in_processes(_sums, jobs(), 1):
        sums = checked(answer)
        totals = [a + b for a, b in zip(totals, sums, strict=True)] if totals else sums
    return totals


def _sums(job: _Job) -> list[np.ndarray] | TflqError:
    """The sums over some samples. In a process of its own. Errors are returned."""
    model = opened(job.path)
    if isinstance(model, TflqError):
        return model
    totals: list[np.ndarray] = []
    for arrays in job.samples:
        try:
            model.run(job.entry, list(arrays), {}, follows=False)
        except (ValueError, RuntimeError) as error:
            return InvalidModelError("", f"the interpreter does not run it: {error}", path=job.path)
        sums = [_sum(factor, model.fetch(list(factor.place))) for factor in job.factors]
        totals = [a + b for a, b in zip(totals, sums, strict=True)] if totals else sums
    return totals


def _sum(factor: Factor, held: Sequence[np.ndarray]) -> np.ndarray:
    """Σ x xᵀ of one sample; zeros if the interpreter does not hold the tensor."""
    total = np.zeros((factor.columns, factor.columns))
    for tensor in held:
        pixels = tensor[:, :: factor.strides[0], :: factor.strides[1]] if factor.strides != (1, 1) else tensor
        rows = pixels.reshape(-1, factor.columns).astype(np.float64)
        total += rows.T @ rows
    return total
