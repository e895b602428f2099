"""Second moments of tensors on samples: what weights are multiplied with, for `numerics.ranges`.

As in calibration a process opens the model once and runs one sample after the other; of a batch it answers the sums,
which the caller adds in the order of the samples.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from tflq.calibration.calibrating import checked
from tflq.calibration.collecting import opened
from tflq.errors import InvalidModelError, TflqError
from tflq.light import NamedTuple
from tflq.processes import in_processes

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
    path: str | os.PathLike[str], entry: str, factors: Sequence[Factor], samples: Iterable[Sequence[np.ndarray]]
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
