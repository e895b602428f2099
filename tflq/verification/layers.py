"""Comparison of operator results by tensor name: where two models begin to differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.ir.core import Function, Module
from tflq.verification.difference import difference
from tflq.verification.outcome import Divergence, Layers

__all__ = ["Plan", "combine", "compare", "plan"]

Place = tuple[int, int]


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


def plan(entry: str, a: Module, b: Module) -> Plan:
    """The operator results of the entry's function that have a name of their own in both models."""
    ia, ib = _function_of(entry, a), _function_of(entry, b)
    places_a, places_b = _unique_names(a.functions[ia]), _unique_names(b.functions[ib])
    results = 0
    named: list[Named] = []
    for i, op in enumerate(a.functions[ia].ops):
        results += len(op.results)
        opcode = op.name.removeprefix("tfl.").upper()
        named += [Named(i, opcode, v.name) for v in op.results if v.name in places_a and v.name in places_b]
    at_a = tuple((ia, places_a[n.tensor]) for n in named)
    return Plan(entry, results, tuple(named), at_a, tuple((ib, places_b[n.tensor]) for n in named))


def _function_of(entry: str, module: Module) -> int:
    return next((s.function for s in module.signatures or () if entry and s.key == entry), 0)


def _unique_names(function: Function) -> dict[str, int]:
    counts = Counter(value.name for value in function.tensors)
    return {v.name: i for i, v in enumerate(function.tensors) if v.name and counts[v.name] == 1}


def compare(plan: Plan, a: Sequence[np.ndarray | None], b: Sequence[np.ndarray | None]) -> Layers:
    """The fetched tensors of both; one that has no data after a run, in either, is not compared."""
    compared = 0
    diverging: list[Divergence] = []
    for named, want, got in zip(plan.named, a, b, strict=True):
        if want is None or got is None:
            continue
        compared += 1
        found = difference(got, want)
        if not found.equal:
            diverging.append(Divergence(plan.entry, named.operator, named.opcode, named.tensor, found))
    return Layers(plan.results, compared, tuple(diverging))


def combine(parts: Sequence[Layers]) -> Layers:
    diverging = tuple(d for part in parts for d in part.diverging)
    return Layers(sum(p.results for p in parts), sum(p.compared for p in parts), diverging)
