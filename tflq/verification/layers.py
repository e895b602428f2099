"""Comparison of operator results by tensor name: where two models begin to differ.

The tensors are outputs of copies of both models, so many to a copy as memory allows, and are fetched one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tflq.dialects.tfl import builtin_of
from tflq.verification.file_runner import FileRunner
from tflq.verification.tflite_runner import TfliteRunner

__all__ = ["BUDGET", "Named", "Plan", "plan", "seen_as"]

BUDGET: Final = 96 * 2**20
"""Bytes of the tensors that a copy returns."""

AnyRunner = TfliteRunner | FileRunner


@dataclass(frozen=True, slots=True)
class Named:
    """An operator result of the original, by operator index, opcode and tensor name."""

    operator: int
    opcode: str
    tensor: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Which tensors to fetch from copies of either model, per copy; `results` is how many the original has."""

    results: int
    chunks: tuple[tuple[Named, ...], ...]


def plan(a: AnyRunner, b: AnyRunner, key: str, besides: Collection[str]) -> Plan:
    """The operator results of an entry of the original that have a name of their own in both models, but those
    `besides`. Both have run the entry, so that the sizes of their tensors are known."""
    results = list(_results(a, key))
    there = a.names(key).keys() & b.names(key).keys() - set(besides)
    named = [each for each in results if each.tensor in there]
    names = [each.tensor for each in named]
    sizes = [max(pair) for pair in zip(a.sizes(key, names), b.sizes(key, names), strict=True)]
    return Plan(len(results), tuple(_chunks(named, sizes)))


def _results(runner: AnyRunner, key: str) -> Iterable[Named]:
    if isinstance(runner, FileRunner):
        ops = enumerate(runner.module.main.ops)
        return [Named(i, builtin_of(op.name), v.name) for i, op in ops for v in op.results]
    graph = runner.file.graphs[runner.file.entries[key].graph]
    tensors = [(i, op.opcode, graph.tensor(t)) for i, op in enumerate(graph.operators) for t in op.outputs if t >= 0]
    return [Named(i, opcode, t.name) for i, opcode, t in tensors if t.type not in ("resource", "variant")]


def _chunks(named: Sequence[Named], sizes: Sequence[int]) -> Iterable[tuple[Named, ...]]:
    """As many as fit into the budget; at least one."""
    chunk: list[Named] = []
    total = 0
    for each, size in zip(named, sizes, strict=True):
        if chunk and total + size > BUDGET:
            yield tuple(chunk)
            chunk, total = [], 0
        chunk.append(each)
        total += size
    if chunk:
        yield tuple(chunk)


def seen_as(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """An array as one of another model's type: int8 as uint8 is the same integers plus 128 (what TOSA has of an inner
    uint8 tensor), int32 as int64 are the same."""
    if array.dtype == np.int8 and dtype == np.uint8:
        return array.view(np.uint8) ^ np.uint8(128)
    return array.astype(dtype) if array.dtype == np.int32 and dtype == np.int64 else array
