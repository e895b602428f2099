"""Statistics of a model on samples, collected in child processes.

Of each point: the least, the largest and a histogram. Of the numbers that weights are multiplied with: the second
moments.

A process opens the model once, with all tensors kept, on the default kernels, which are the fastest, and runs one
sample after the other. What it has seen of some samples goes back as a few small arrays. The caller joins these in the
order of the samples, so that the result does not depend on how many processes there are, nor on which is first.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import islice
from typing import Final, NamedTuple, TypeVar

import numpy as np

from tflq.base.errors import InvalidModelError, MissingPackageError, TflqError
from tflq.base.files import FilePath
from tflq.base.processes import Died, in_processes
from tflq.numerics.ranges import add_histogram, finite_bins, histogram
from tflq.tools.samples.files import Batch
from tflq.tools.samples.inputs import Sample
from tflq.tools.verify.worker import Model

Place = tuple[int, ...]
"""The subgraph and the index of a tensor, or the subgraph and the indices of its least and its largest element."""
UNSEEN: Final = (np.finfo(np.float32).max, np.finfo(np.float32).min)
"""The ends of what was not computed."""


@dataclass(frozen=True)
class Watched:
    """A model's file, the entry that runs, and its inputs' names in the order of the model and of the entry's runner.

    places: the tensors that are watched. Without any the model does not run. Of one whose ends are known alone these
    two count as its elements.
    """

    path: str
    entry: str
    inputs: tuple[str, ...]
    order: tuple[str, ...]
    places: tuple[Place, ...]
    bins: bool


class Seen(NamedTuple):
    """Observations of each watched tensor on some samples.

    Of shape [tensors, samples]: least and largest finite elements, NaN where there is none, and the numbers of finite,
    infinite and other elements. Of each tensor its bins, where they are asked for. Of each sample a hash.
    """

    least: np.ndarray
    largest: np.ndarray
    counts: np.ndarray
    bins: list[dict[int, int]]
    samples: tuple[str, ...]


Context = TypeVar("Context")
Samples = TypeVar("Samples")
Answer = TypeVar("Answer")


def in_order(
    work: Callable[[Context, Samples], Answer], context: Context, batches: Iterable[Samples], workers: int
) -> Iterator[Answer]:
    """Answers of child processes for each batch, in the order of the batches: the interpreter may abort. work: a
    function of a module, of a context and a batch. TflqError if it raises one, or if a process ends."""
    waiting: dict[int, Answer] = {}
    following = 0
    for number, answer in in_processes(_answer, ((work, context, batch) for batch in batches), workers):
        if isinstance(answer, Died):
            raise TflqError(f"the interpreter's process ended: {answer}", remedy="run one sample alone: tflq verify")
        if isinstance(answer, TflqError):
            raise answer
        waiting[number] = answer
        while following in waiting:
            yield waiting.pop(following)
            following += 1


def _answer(job: tuple[Callable[[Context, Samples], Answer], Context, Samples]) -> Answer | TflqError:
    work, context, batch = job
    try:
        return work(context, batch)
    except TflqError as error:
        return error


@cache
def opened(path: str) -> Model:
    """The model of a file, with all tensors kept, in this process. What the interpreter says while it is opened is for
    nobody. TflqError if there is no interpreter, or if it refuses the model."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 2)
    os.close(silence)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Model(path, "default", anew=False, inner=False, keep=True)
    except LookupError as error:
        raise MissingPackageError("no TFLite interpreter is installed", "verify") from error
    except (ValueError, RuntimeError) as error:
        raise InvalidModelError("", f"the interpreter refuses it: {error}", path=path) from error


def run(path: str, entry: str, arrays: list[np.ndarray], called: str = "") -> list[np.ndarray]:
    """The outputs of a model. called: the path in messages, if it is another. InvalidModelError if it does not run."""
    try:
        return opened(path).run(entry, arrays, {}, follows=False)
    except (ValueError, RuntimeError) as error:
        raise InvalidModelError("", f"the interpreter does not run it: {error}", path=called or path) from error


def observe(watched: Watched, samples: Batch) -> Seen:
    """Runs a model on samples. InvalidModelError if one does not run; errors of files that hold them."""
    watch, model, hashes = _Watch(watched, len(samples)), opened(watched.path), []
    for column, (sample, digest) in enumerate(_hashed(samples, watched.inputs)):
        hashes.append(digest)
        if watched.places:
            run(watched.path, watched.entry, [sample[name] for name in watched.order])
            watch.look(model, column)
    return Seen(watch.least, watch.largest, watch.counts, list(map(finite_bins, watch.totals)), tuple(hashes))


class _Watch:
    """Observations of each tensor in so many samples."""

    def __init__(self, watched: Watched, count: int) -> None:
        self.watched = watched
        shape = len(watched.places), count
        self.least, self.largest = (np.full(shape, np.nan, np.float32) for _ in range(2))
        self.counts = np.zeros((3, *shape), np.int64)
        self.totals = [histogram(np.zeros(0, np.float32)) for _ in watched.places if watched.bins]

    def look(self, model: Model, column: int) -> None:
        """Goes through what the model holds after a run. No view of it is left behind."""
        lows, highs, sizes = ([empty] * len(self.watched.places) for empty in (np.nan, np.nan, 0))
        low_of, high_of, views = np.minimum.reduce, np.maximum.reduce, _views(model, self.watched.places)
        for row, tensor in enumerate(views):
            if tensor is not None and tensor.size:
                elements = tensor.reshape(-1)
                lows[row], highs[row], sizes[row] = low_of(elements), high_of(elements), elements.size
                if self.watched.bins:
                    add_histogram(self.totals[row], elements)
        self.least[:, column], self.largest[:, column], self.counts[0, :, column] = lows, highs, sizes
        with np.errstate(invalid="ignore"):
            others = ~(np.isfinite(self.least[:, column]) & np.isfinite(self.largest[:, column]))
        for row in np.flatnonzero(others & (self.counts[0, :, column] > 0)):
            self._note(row, column, views[row].reshape(-1))

    def _note(self, row: int, column: int, elements: np.ndarray) -> None:
        """Enters what elements are of which some are not finite."""
        finite = elements[np.isfinite(elements)]
        self.counts[:, row, column] = finite.size, np.isinf(elements).sum(), np.isnan(elements).sum()
        ends = (finite.min(), finite.max()) if finite.size else (np.nan, np.nan)
        self.least[row, column], self.largest[row, column] = ends


def _views(model: Model, places: Sequence[Place]) -> list[np.ndarray | None]:
    """Tensors after a run, None for one without data; the ends of a tensor of which these are known, if it was
    computed."""
    views = model.views([(graph, index) for graph, index, *_ in places])
    for row, (graph, *indices) in enumerate(places):
        if len(indices) > 1:
            ends = np.array([model.fetch([graph, index])[0] for index in indices])
            views[row] = None if tuple(ends) == UNSEEN else ends
    return views


def _hashed(samples: Iterable[Sample], names: Sequence[str]) -> Iterator[tuple[Sample, str]]:
    """Samples, and a hash of the arrays of each in the order of names. Of files one more is read and hashed by a
    thread, while the interpreter runs on the one before."""
    waiting = iter(samples)

    def following() -> tuple[Sample, str] | None:
        for sample in waiting:
            digest = hashlib.blake2b(digest_size=8)
            for name in names:
                digest.update(np.ascontiguousarray(sample[name]).view(np.uint8).data)
            return sample, digest.hexdigest()
        return None

    if isinstance(samples, list):
        yield from iter(following, None)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        ahead = thread.submit(following)
        while (hashed_sample := ahead.result()) is not None:
            ahead = thread.submit(following)
            yield hashed_sample


# Ranges of channels, for `numerics.equalization`: of a batch a process answers the largest magnitudes.


class Channels(NamedTuple):
    """A tensor, its subgraph and index, whose last dim holds so many channels, once or several times in a row."""

    place: tuple[int, int]
    channels: int


def channel_ranges(
    path: FilePath, entry: str, watched: Sequence[Channels], samples: Iterable[Sequence[np.ndarray]]
) -> list[np.ndarray]:
    """The largest magnitude of each channel in runs of a model: float64, [channels] of each tensor. entry, samples and
    errors as of `second_moments`."""
    return _over_batches(_channel_ranges, np.maximum, (os.fspath(path), entry, tuple(watched)), samples)


def _channel_ranges(
    context: tuple[str, str, tuple[Channels, ...]], samples: Sequence[Sequence[np.ndarray]]
) -> list[np.ndarray]:
    """The ranges on some samples. context: the model, its entry and the tensors."""
    path, entry, watched = context
    ranges = [np.zeros(tensor.channels) for tensor in watched]
    for arrays in samples:
        run(path, entry, list(arrays))
        for tensor, largest in zip(watched, ranges, strict=True):
            np.maximum(largest, _magnitudes(opened(path), tensor), out=largest)
    return ranges


def _magnitudes(model: Model, tensor: Channels) -> np.ndarray:
    """The largest magnitude of each channel after a run. No view of what the model holds is left behind."""
    largest = np.zeros(tensor.channels)
    for array in model.view(tensor.place):
        columns = array.reshape(-1, tensor.channels)
        largest = np.maximum(columns.max(axis=0, initial=0), -columns.min(axis=0, initial=0))
    return largest


# Second moments of tensors, for `numerics.ranges`: of a batch a process answers the sums.


_BATCH: Final = 64
"""Samples that a process runs at once: sums are large."""


class Factor(NamedTuple):
    """A tensor that weights are multiplied with: its subgraph and index, the columns of the weights, and of how many
    rows and columns of pixels one is multiplied."""

    place: tuple[int, int]
    columns: int
    strides: tuple[int, int] = (1, 1)


def second_moments(
    path: FilePath, entry: str, factors: Sequence[Factor], samples: Iterable[Sequence[np.ndarray]]
) -> list[np.ndarray]:
    """Σ x xᵀ over all that a factor holds in runs of a model: float64, [columns, columns] of each factor.

    entry: the signature's key; empty: the first subgraph. samples: for each, at least one, the arrays in the order in
    which the entry's runner takes them. InvalidModelError if the interpreter refuses the model."""

    return _over_batches(_sums, np.add, (os.fspath(path), entry, tuple(factors)), samples)


def _over_batches(
    work: Callable[[Context, list[Sequence[np.ndarray]]], list[np.ndarray]],
    joined: np.ufunc,
    context: Context,
    samples: Iterable[Sequence[np.ndarray]],
) -> list[np.ndarray]:
    """Answers of a process on batches of samples, joined array by array."""
    waiting = iter(samples)
    batches = iter(lambda: list(islice(waiting, _BATCH)), [])
    return reduce(lambda one, other: list(map(joined, one, other)), in_order(work, context, batches, 1))


def _sums(context: tuple[str, str, tuple[Factor, ...]], samples: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """The sums over some samples. context: the model, its entry and the factors."""
    path, entry, factors = context

    totals = [np.zeros((factor.columns, factor.columns)) for factor in factors]
    for arrays in samples:
        run(path, entry, list(arrays))
        for factor, total in zip(factors, totals, strict=True):
            total += _sum(factor, opened(path).fetch(list(factor.place)))
    return totals


def _sum(factor: Factor, tensors: Sequence[np.ndarray]) -> np.ndarray:
    """Σ x xᵀ of one sample; zeros if the interpreter does not hold the tensor."""
    total = np.zeros((factor.columns, factor.columns))
    for tensor in tensors:
        pixels = tensor[:, :: factor.strides[0], :: factor.strides[1]] if factor.strides != (1, 1) else tensor
        rows = pixels.reshape(-1, factor.columns).astype(np.float64)
        total += rows.T @ rows
    return total
