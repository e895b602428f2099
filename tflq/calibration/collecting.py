"""Runs of a model in processes of their own, and what they see at its points: least, largest and histogram.

A process opens the model once, with all tensors kept, on the default kernels, which are the fastest, and runs one
sample after the other. What it has seen of some samples goes back as a few small arrays. The caller joins these in the
order of the samples, so that the result does not depend on how many processes there are, nor on which is first.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tflq.analysis.statistics import PointStatistics
from tflq.errors import InvalidModelError, TflqError, to_install
from tflq.light import NamedTuple
from tflq.numerics.histogram import add_histogram, finite_bins, histogram
from tflq.verification.worker import Model

_ENOUGH: Final = 1 << 16
"""Fewer elements than these wait for others, and are put into a histogram together."""


@dataclass(frozen=True)
class Watched:
    """A model's file, the entry that runs, and the tensors that are watched: (subgraph, index) each."""

    path: str
    entry: str
    places: tuple[tuple[int, int], ...]
    bins: bool


class Job(NamedTuple):
    """Samples to run a model on: for each the arrays in the order of the entry's inputs."""

    watched: Watched
    samples: Sequence[Sequence[np.ndarray]]


class Seen(NamedTuple):
    """What some samples showed of each watched tensor: of shape [tensors, samples] least and largest finite elements,
    NaN where there is none, and the numbers of finite, infinite and other elements; and of each tensor its bins, where
    they are asked for."""

    least: np.ndarray
    largest: np.ndarray
    counts: np.ndarray
    bins: list[dict[int, int]]


_opened: dict[str, Model] = {}
"""The model of this process, by its path."""


def observe(job: Job) -> Seen | TflqError:
    """Runs a model on samples. In a process of its own: the interpreter may abort. Errors are returned."""
    model = opened(job.watched.path)
    return model if isinstance(model, TflqError) else _Watch(job.watched).run(model, job.samples)


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
    """What is seen of each tensor."""

    def __init__(self, watched: Watched) -> None:
        self.watched = watched
        self.rest: list[list[np.ndarray]] = [[] for _ in watched.places]
        self.waiting = [0 for _ in watched.places]
        self.totals = [histogram(np.zeros(0, np.float32)) for _ in watched.places if watched.bins]

    def run(self, model: Model, samples: Sequence[Sequence[np.ndarray]]) -> Seen | TflqError:
        shape = len(self.watched.places), len(samples)
        least, largest = (np.full(shape, np.nan, np.float32) for _ in range(2))
        counts = np.zeros((3, *shape), np.int64)
        for column, arrays in enumerate(samples):
            try:
                model.run(self.watched.entry, list(arrays), {}, follows=False)
            except (ValueError, RuntimeError) as error:
                return InvalidModelError("", f"the interpreter does not run it: {error}", path=self.watched.path)
            for row, place in enumerate(self.watched.places):
                for tensor in model.fetch(list(place)):
                    self._note(row, column, tensor, least, largest, counts)
        for row in range(len(self.totals)):
            self._count(row)
        return Seen(least, largest, counts, [finite_bins(total) for total in self.totals])

    def _note(
        self, row: int, column: int, tensor: np.ndarray, least: np.ndarray, largest: np.ndarray, counts: np.ndarray
    ) -> None:
        if not tensor.size:
            return
        low, high = tensor.min(), tensor.max()
        finite = tensor
        if not np.isfinite(low) or not np.isfinite(high):
            finite = tensor[np.isfinite(tensor)]
            counts[1, row, column] = np.isinf(tensor).sum()
            counts[2, row, column] = np.isnan(tensor).sum()
            low, high = (finite.min(), finite.max()) if finite.size else (np.nan, np.nan)
        counts[0, row, column] = finite.size
        least[row, column], largest[row, column] = low, high
        if self.watched.bins:
            self.rest[row].append(finite.reshape(-1))
            self.waiting[row] += finite.size
            if self.waiting[row] >= _ENOUGH:
                self._count(row)

    def _count(self, row: int) -> None:
        parts = self.rest[row]
        if parts:
            add_histogram(self.totals[row], parts[0] if len(parts) == 1 else np.concatenate(parts))
            self.rest[row], self.waiting[row] = [], 0


def statistics_of(seen: Seen, digests: Sequence[str]) -> Iterator[PointStatistics]:
    """What was seen of each watched tensor, as statistics of its point."""
    empty = np.isnan(seen.least)
    lows, highs = (side.astype(object) for side in (seen.least, seen.largest))
    lows[empty] = highs[empty] = None
    for row, digest in enumerate(digests):
        finite, infinite, nan = (int(kind[row].sum()) for kind in seen.counts)
        yield PointStatistics(
            finite,
            min((v for v in lows[row] if v is not None), default=None),
            max((v for v in highs[row] if v is not None), default=None),
            sample_minima=tuple(lows[row].tolist()),
            sample_maxima=tuple(highs[row].tolist()),
            bins=seen.bins[row] if seen.bins else {},
            nan=nan,
            infinite=infinite,
            digest=digest,
        )
