"""Which functions of its module an op runs: branches, bodies, decompositions, named by index in its attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tflq.dialects.declare import Operator
from tflq.dialects.traits.effects import Calls
from tflq.ir.core import Function, Module, Op

__all__ = ["called_functions", "callees", "entry_functions", "renumber"]


def callees(op: Op) -> Sequence[int]:
    """The indices of the functions that an op runs."""
    calls = op.trait(Calls) if isinstance(op, Operator) else None
    return () if calls is None else [index for _, index in calls.called(op) if index >= 0]


def renumber(op: Op, numbers: Mapping[int, int]) -> None:
    """Puts new indices in the place of those an op names."""
    calls = op.trait(Calls) if isinstance(op, Operator) else None
    for attribute in calls.attributes if calls is not None else ():
        index = op.attributes.get(attribute.key)
        if isinstance(index, int):
            op.attributes[attribute.key] = numbers.get(index, index)
        elif index is not None:
            op.attributes[attribute.key] = [numbers.get(int(i), int(i)) for i in index]


def called_functions(module: Module) -> list[Function]:
    """The functions that some op runs, in order."""
    called = {index for op in module.ops() for index in callees(op)}
    return [function for index, function in enumerate(module.functions) if index in called]


def entry_functions(module: Module) -> list[int]:
    """The functions that a caller can run: the first, those of signatures, and those that no op runs."""
    if len(module.functions) == 1:
        return [0]
    called = {index for op in module.ops() for index in callees(op)}
    named = {signature.function for signature in module.signatures or ()}
    return [i for i in range(len(module.functions)) if i == 0 or i in named or i not in called]
