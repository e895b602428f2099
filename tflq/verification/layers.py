"""Comparison of operator results by tensor name: where two models begin to differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tflq.ir.core import Function, Module
from tflq.verification.difference import difference
from tflq.verification.outcome import Divergence, Layers

__all__ = ["Places", "Plan", "combine", "compare", "function_of", "places", "plan"]

Place = tuple[int, int]
Places = Mapping[str, Place]
"""Where to fetch each named tensor."""


@dataclass(frozen=True, slots=True)
class Named:
    """An operator result of the original, by operator index, opcode and tensor name."""

    operator: int
    opcode: str
    tensor: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Which tensors to fetch from either model after running one entry; `results` of the original could be."""

    entry: str
    results: int
    named: tuple[Named, ...]
    a: tuple[Place, ...]
    b: tuple[Place, ...]


def plan(original: Function, entry: str, a: Places, b: Places) -> Plan:
    """The operator results of the original's function that have a name of their own in both models."""
    results = 0
    named: list[Named] = []
    for i, op in enumerate(original.ops):
        results += len(op.results)
        opcode = op.name.partition(".")[2].upper()
        named += [Named(i, opcode, v.name) for v in op.results if v.name in a and v.name in b]
    return Plan(entry, results, tuple(named), tuple(a[n.tensor] for n in named), tuple(b[n.tensor] for n in named))


def function_of(entry: str, module: Module) -> int:
    """The index of an entry's function."""
    return next((s.function for s in module.signatures or () if entry and s.key == entry), 0)


def places(module: Module, entry: str) -> Places:
    """Where a TFLite model keeps each tensor of an entry that has a name of its own."""
    index = function_of(entry, module)
    tensors = module.functions[index].tensors
    counts = Counter(value.name for value in tensors)
    return {v.name: (index, i) for i, v in enumerate(tensors) if v.name and counts[v.name] == 1}


def compare(plan: Plan, a: Sequence[np.ndarray | None], b: Sequence[np.ndarray | None]) -> Layers:
    """The fetched tensors of both; one that has no data after a run, in either, is not compared."""
    compared = 0
    diverging: list[Divergence] = []
    for named, want, got in zip(plan.named, a, b, strict=True):
        if want is None or got is None:
            continue
        compared += 1
        found = difference(seen_as(got, want.dtype), want)
        if not found.equal:
            diverging.append(Divergence(plan.entry, named.operator, named.opcode, named.tensor, found))
    return Layers(plan.results, compared, tuple(diverging))


def seen_as(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """An array as one of another model's type: int8 as uint8 is the same integers plus 128 (what TOSA has of an inner
    uint8 tensor), int32 as int64 are the same."""
    if array.dtype == np.int8 and dtype == np.uint8:
        return array.view(np.uint8) ^ np.uint8(128)
    return array.astype(dtype) if array.dtype == np.int32 and dtype == np.int64 else array


def combine(parts: Sequence[Layers]) -> Layers:
    diverging = tuple(d for part in parts for d in part.diverging)
    return Layers(sum(p.results for p in parts), sum(p.compared for p in parts), diverging)
