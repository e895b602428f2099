"""Effects of an op: whether it only computes its results, which functions it runs, whether it is a hybrid operator.

Only pure ops may be removed or merged. An op is pure if it is declared, is not `Impure`, reads no variable tensor, and
all ops inside of it are pure. Of ops that nobody declares, those of MLIR's dialects on tensors and scalars are pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.tfl.casts import Dequantize
from tflq.dialects.tfl.indexing import EmbeddingLookup
from tflq.dialects.traits import Atomic, Calls, Impure
from tflq.ir.module import Function, Module
from tflq.ir.ops import Block, Op, Value, op_class
from tflq.ir.types import f32, resource

PURE_DIALECTS = frozenset({"arith", "linalg", "math", "shape", "tensor"})
"""Dialects whose ops are pure without being declared."""

_TERMINATORS = frozenset({"linalg.yield", "onnx.yield", "quant.return", "stablehlo.return", "tensor.yield"})


def is_pure(op: Op) -> bool:
    """Whether the op can be removed if its results are unused, and, if it has no ops inside, merged with an identical
    one."""
    if not _is_pure_kind(op.name):
        return False
    for value in op.operands:
        if value is not None and value.info and is_variable(value):
            return False
    return not op.regions or all(
        inner.name in _TERMINATORS or is_pure(inner)
        for region in op.regions
        for block in region.blocks
        for inner in block.ops
    )


@cache
def _is_pure_kind(name: str) -> bool:
    declared = op_class(name)
    if declared is not None:
        return not declared.has(Impure)
    return name == "func.constant" or name.partition(".")[0] in PURE_DIALECTS


def visible_blocks(op: Op) -> list[Block]:
    """The blocks of an op that passes look into: none of an atomic one."""
    if not op.regions or (isinstance(op, Operator) and op.has(Atomic)):
        return []
    return [block for region in op.regions for block in region.blocks]


def inner_blocks(ops: Iterable[Op]) -> Iterator[Block]:
    """The blocks inside of ops, each before those inside of it; none of an atomic op."""
    for op in ops:
        for block in visible_blocks(op) if op.regions else ():
            yield block
            yield from inner_blocks(block.ops)


def reachable(ops: Iterable[Op]) -> Iterator[Op]:
    """The ops and those inside of them, each before what is inside; of an atomic op itself only."""
    for op in ops:
        yield op
        for block in visible_blocks(op) if op.regions else ():
            yield from reachable(block.ops)


def is_variable(value: Value) -> bool:
    """Whether the value is a variable tensor: state that outlives a run."""
    return bool(value.info) and bool(value.info.get("is_variable"))


# Functions of the module that an op runs: branches, bodies, decompositions, named by index in its attributes.


def callees(op: Op) -> Sequence[int]:
    """The indices of the functions that an op runs."""
    calls = trait_of(op, Calls)
    return () if calls is None else [index for _, index in calls.called(op) if index >= 0]


def renumber(op: Op, numbers: Mapping[int, int]) -> None:
    """Puts new indices in the place of those an op names."""
    calls = trait_of(op, Calls)
    for attribute in calls.attributes if calls is not None else ():
        index = op.attributes.get(attribute.key)
        if isinstance(index, int):
            op.attributes[attribute.key] = numbers.get(index, index)
        elif index is not None:
            op.attributes[attribute.key] = [numbers.get(int(i), int(i)) for i in index]


def called_functions(module: Module) -> list[Function]:
    """The functions that some op runs, in order."""
    called = _called(module)
    return [function for index, function in enumerate(module.functions) if index in called]


def _called(module: Module) -> set[int]:
    return {index for function in module.functions for op in function.ops_with(Calls) for index in callees(op)}


MOST_NESTED: Final = 64
MOST_RUNS: Final = 10_000
"""Limits on calls inside of each other: so many levels (each is some calls of Python's own, which has a limit of
1,000), and so many runs of functions, since each run is looked at by itself."""


def nesting_problem(calls: Sequence[Sequence[int]], labels: Sequence[str]) -> tuple[int, str] | None:
    """The first function whose calls cannot be followed, and why; None if all can. `calls`: the functions that each
    function runs; `labels`: what messages call them.

    The walk goes depth first without recursion, which a long chain of functions would exhaust.
    """
    nested: dict[int, tuple[int, int]] = {}  # levels below a function, and runs of functions
    running: set[int] = set()
    for root in range(len(calls)):
        path = [] if root in nested else [(root, iter(calls[root]))]
        while path:
            function, rest = path[-1]
            following = next(rest, None)
            if following is None:
                path.pop()
                running.discard(function)
                inner = [nested[called] for called in calls[function]]
                levels, runs = max((1 + n for n, _ in inner), default=0), 1 + sum(n for _, n in inner)
                nested[function] = levels, runs
                if levels > MOST_NESTED:
                    return function, f"its calls are {levels} deep; up to {MOST_NESTED} are handled"
                if runs > MOST_RUNS:
                    return function, f"it and what it calls are {runs} runs of functions; up to {MOST_RUNS} are handled"
            elif following not in nested:
                running.add(function)
                if following in running:
                    places = [place for place, _ in path]
                    chain = " → ".join(labels[i] for i in (*places[places.index(following) :], following))
                    return following, f"it calls itself: {chain}"
                path.append((following, iter(calls[following])))
    return None


def is_handle(value: Value) -> bool:
    """Whether it stands for a variable."""
    return value.type.element == resource


def entry_functions(module: Module) -> list[int]:
    """The functions that a caller can run: the first, those of signatures, and those that no op runs."""
    if len(module.functions) == 1:
        return [0]
    called = _called(module)
    named = {signature.function for signature in module.signatures or ()}
    return [i for i in range(len(module.functions)) if i == 0 or i in named or i not in called]


# Hybrid operators: float activations, quantized constants.


def is_hybrid(op: Op) -> bool:
    """Whether an op computes in float on quantized constants."""
    if isinstance(op, Dequantize) or any(v.type.quantized for v in op.results):
        return False
    quantized = [v for v in op.present_operands if v.type.quantized]
    activations = [v for v in op.present_operands if not v.is_constant]
    if isinstance(op, EmbeddingLookup):
        return all(v.is_constant for v in quantized) and op.result.type.storage == f32
    return all(v.is_constant for v in quantized) and any(v.type.storage.is_float for v in activations)
