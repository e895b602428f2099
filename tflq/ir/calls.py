"""Which functions of its module an op runs: branches, bodies, decompositions, named by index in its attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tflq.ir.core import Function, Module, Op

__all__ = ["called_functions", "callees", "entry_functions", "renumber"]

_ATTRIBUTES: Final = (
    *("subgraph", "then_subgraph_index", "else_subgraph_index", "cond_subgraph_index", "body_subgraph_index"),
    *("init_subgraph_index", "decomposition_subgraph_index", "branch_subgraph_indices"),
    *("update_computation_subgraph_index", "comparator_subgraph_index", "called_computations"),
    *("then_graph", "else_graph", "cond_graph", "body_graph"),
)


def callees(op: Op) -> Iterator[int]:
    """The indices of the functions that an op runs."""
    for name in _ATTRIBUTES:
        index = op.attributes.get(name)
        if index is None:
            continue
        for i in [index] if isinstance(index, int) else index:
            if i >= 0:
                yield int(i)


def renumber(op: Op, numbers: Mapping[int, int]) -> None:
    """Puts new indices in the place of those an op names."""
    for name in _ATTRIBUTES:
        index = op.attributes.get(name)
        if isinstance(index, int):
            op.attributes[name] = numbers.get(index, index)
        elif index is not None:
            op.attributes[name] = [numbers.get(int(i), int(i)) for i in index]


def called_functions(module: Module) -> list[Function]:
    """The functions that some op runs, in order."""
    called = {index for op in module.ops() for index in callees(op)}
    return [function for index, function in enumerate(module.functions) if index in called]


def entry_functions(module: Module) -> list[int]:
    """The functions that a caller can run: the first, those of signatures, and those that no op runs."""
    called = {index for op in module.ops() for index in callees(op)}
    named = {signature.function for signature in module.signatures or ()}
    return [i for i in range(len(module.functions)) if i == 0 or i in named or i not in called]
