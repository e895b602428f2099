"""What passes share: replacing values wherever a module refers to them, and which of two names survives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tflq.ir.core import Block, Function, Module, Op, Region, Value, walk

__all__ = ["copied", "remove_ops", "remove_unneeded", "replace_values", "stand_for", "take_over", "unneeded"]


def replace_values(module: Module, function: Function, replacements: Mapping[Value, Value]) -> None:
    """Put values in the place of others in `function` and in the signatures; chains are followed.

    The replaced ones leave the tensor table.
    """
    if not replacements:
        return
    function.replace(replacements)

    def final(value: Value) -> Value:
        while value in replacements:
            value = replacements[value]
        return value

    function.tensors = [value for value in function.tensors if value not in replacements]
    for signature in module.signatures or []:
        if module.functions[signature.function] is not function:
            continue
        if signature.inputs is not None:
            signature.inputs = [(name, final(value)) for name, value in signature.inputs]
        if signature.outputs is not None:
            signature.outputs = [(name, final(value)) for name, value in signature.outputs]


def unneeded(ops: Sequence[Op], needed: Iterable[Value], removable: Callable[[Op], bool]) -> set[Op]:
    """The removable ops of a function of which nothing that stays, and none of the values, needs a result."""
    live, dead = set(needed), set[Op]()
    for op in reversed(ops):
        if live.isdisjoint(op.results) and removable(op):
            dead.add(op)
        else:
            live.update(value for value in op.operands if value is not None)
            for inner in walk([op]) if op.regions else ():
                live.update(value for value in inner.operands if value is not None)
    return dead


def remove_unneeded(module: Module, removable: Callable[[Op], bool]) -> bool:
    """Take removable ops out of a module that neither its results nor its signatures need; whether there are any."""
    pinned = {
        value
        for signature in module.signatures or []
        for _, value in (*(signature.inputs or ()), *(signature.outputs or ()))
    }
    modified = False
    for function in module.functions:
        dead = unneeded(function.ops, pinned | set(function.outputs), removable)
        remove_ops(function, dead)
        modified |= bool(dead)
    return modified


def remove_ops(function: Function, dead: set[Op]) -> None:
    """Take ops out of a function, also those inside of others, and the results they leave without a producer out of its
    tensor table."""
    if not dead:
        return
    function.ops = _without(function.ops, dead)
    gone = {result for op in dead for result in op.results if result.producer is op}
    function.tensors = [value for value in function.tensors if value not in gone]


def _without(ops: Iterable[Op], dead: set[Op]) -> list[Op]:
    kept = [op for op in ops if op not in dead]
    for op in kept:
        for region in op.regions:
            for block in region.blocks:
                block.ops = _without(block.ops, dead)
    return kept


def stand_for(made: Value, original: Value) -> None:
    """The op that makes `made` results in `original` instead, which keeps its users and its name."""
    producer = made.producer
    assert producer is not None
    producer.results = [original]
    original.producer = producer


def take_over(kept: Value, named: Value) -> bool:
    """Let `named` be what `kept`'s producer results in; False, and nothing done, if `kept` is no unnamed result.

    Both must have the same type. The producer stays where it is, so every user of either still comes after it.
    """
    producer = kept.producer
    if producer is None or kept.name or kept.type != named.type:
        return False
    producer.results = [named if result is kept else result for result in producer.results]
    named.producer = producer
    return True


def copied(ops: Sequence[Op], known: dict[Value, Value]) -> list[Op]:
    """Copies of ops on other values; `known` learns what their results are."""
    made: list[Op] = []
    for op in ops:
        operands = [value and known.get(value, value) for value in op.operands]
        for value in op.results:
            known[value] = Value(value.type, info=value.info)
        regions = [Region([_block(block, known) for block in region.blocks]) for region in op.regions]
        results = [known[value] for value in op.results]
        made.append(Op(op.name, operands, results, dict(op.attributes), op.location, info=op.info, regions=regions))
    return made


def _block(block: Block, known: dict[Value, Value]) -> Block:
    for value in block.arguments:
        known[value] = Value(value.type)
    return Block([known[value] for value in block.arguments], copied(block.ops, known))
