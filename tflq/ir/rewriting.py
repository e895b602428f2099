"""Functions that passes share: replacing values wherever a module refers to them, taking out and copying ops,
comparing modules.

Two modules are equal if a writer would make the same file of both. Values and buffers are compared by what they hold
and by who shares them: the values of one module map one to one to those of the other, and so do the buffers; two
constants that share a buffer equal only two that do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from tflq.ir.facts import ends, walk
from tflq.ir.module import Function, Module
from tflq.ir.ops import NO_DATA, Block, Buffer, Op, Region, Value


def replace_values(module: Module, function: Function, replacements: Mapping[Value, Value]) -> None:
    """Put values in the place of others in `function` and in the signatures; chains are followed.

    The replaced ones leave the tensor table.
    """
    replace_inside(function, replacements)
    replace_in_signatures(module, replacements)


def replace_inside(function: Function, replacements: Mapping[Value, Value]) -> None:
    """Put values in the place of others in a function alone, as `replace_values` does. Who changes many functions
    changes the signatures once after them (`replace_in_signatures`)."""
    if not replacements:
        return
    function.replace(replacements)
    function.tensors = [value for value in function.tensors if value not in replacements]


def replace_in_signatures(module: Module, replacements: Mapping[Value, Value]) -> None:
    """Put values in the place of others in all signatures; chains are followed."""
    if not replacements:
        return
    replacements = ends(replacements)
    for signature in module.signatures or []:
        if replacements.keys().isdisjoint(signature.values):
            continue
        if signature.inputs is not None:
            signature.inputs = [(name, replacements.get(value, value)) for name, value in signature.inputs]
        if signature.outputs is not None:
            signature.outputs = [(name, replacements.get(value, value)) for name, value in signature.outputs]


def insert_after(module: Module, function: Function, inserted: Mapping[Value, Op]) -> None:
    """Put ops behind values of a function: each reads its value, and all that used the value uses its result."""
    behind = {value: op.result for value, op in inserted.items()}
    function.replace(behind)
    module.signatures = module.signatures and [signature.with_outputs(behind) for signature in module.signatures]
    after: dict[Op | None, list[Op]] = {}
    for value, op in inserted.items():
        op.operands = [value]
        after.setdefault(value.producer, []).append(op)
    ops = after.get(None, [])
    for op in function.ops:
        ops += [op, *after.get(op, ())]
    function.ops = ops


def split_dead(
    ops: Sequence[Op], needed: Iterable[Value], removable: Callable[[Op], bool], pinned: Set[Value] = frozenset()
) -> tuple[list[Op], set[Op]]:
    """The ops that stay, in order, and the removable ones whose results neither a `needed` or `pinned` value nor an op
    that stays depends on."""
    live, dead = set[Value | None](needed), set[Op]()
    stay: list[Op] = []
    for op in reversed(ops):
        if live.isdisjoint(op.results) and pinned.isdisjoint(op.results) and removable(op):
            dead.add(op)
            continue
        stay.append(op)
        live.update(op.operands)
        for inner in walk([op]) if op.regions else ():
            live.update(inner.operands)
    stay.reverse()
    return stay, dead


def remove_unneeded(module: Module, removable: Callable[[Op], bool]) -> bool:
    """Take out removable ops that neither the module's results nor its signatures need; whether there are any."""
    pinned = {value for signature in module.signatures or [] for value in signature.values}
    modified = False
    for function in module.functions:
        stay, dead = split_dead(function.ops, function.outputs, removable, pinned)
        remove_ops(function, dead, stay)
        modified |= bool(dead)
    return modified


def remove_ops(function: Function, dead: Set[Op], stay: list[Op] | None = None) -> None:
    """Take ops out of a function, also those inside of others, and the results they leave without a producer out of its
    tensor table. stay: the others, if they are known, where none of the dead is inside of one."""
    if not dead:
        return
    function.take_out(dead, stay)
    gone = {result for op in dead for result in op.results if result.producer is op}
    if gone:
        function.tensors = [value for value in function.tensors if value not in gone]


def read_constants(module: Module) -> set[Value]:
    """The constants that ops read or a function returns."""
    read = {v for op in walk(list(module.ops())) for v in op.present_operands}
    return {value for value in read.union(*(function.outputs for function in module.functions)) if value.is_constant}


def forget_constants(module: Module, constants: Set[Value] | None = None) -> None:
    """Drops constants that nothing reads any more from the tables of a file, with their data. constants: of these
    alone."""
    if constants is None:
        constants = {value for function in module.functions for value in function.tensors if value.is_constant}
    unread = constants - read_constants(module)
    for function in module.functions:
        function.tensors = [value for value in function.tensors if value not in unread]
    used = read_constants(module).union(*(function.tensors for function in module.functions))
    gone = {value.buffer for value in unread} - {value.buffer for value in used}
    module.buffers = [Buffer(NO_DATA) if buffer in gone else buffer for buffer in module.buffers]


def forget_tables(module: Module) -> None:
    """Has the writer make the tables of buffers and operator codes anew. Equal constants of several functions, such as
    weights that signatures share, have one buffer."""
    from hashlib import sha256

    module.buffers, module.operator_codes = [], []
    if len(module.functions) < 2:
        return
    known: dict[bytes, Buffer] = {}
    for function in module.functions:
        pairs = [(value, value.buffer) for value in function.values() if value.buffer and value.buffer.data.size]
        digests = [sha256(buffer.data.data).digest() for _, buffer in pairs]
        for (value, buffer), digest in zip(pairs, digests, strict=True):
            value.buffer = known.get(digest, buffer)
        known |= {digest: value.buffer for (value, _), digest in zip(pairs, digests, strict=True) if value.buffer}


def rewrite_ops(owner: Function | Block, rewritten: Callable[[Op], Sequence[Op] | None]) -> bool:
    """Put other ops in the place of those for which there are some; whether there were any."""
    ops: list[Op] = []
    modified = False
    for op in owner.ops:
        others = rewritten(op)
        modified |= others is not None
        ops += [op] if others is None else others
    if modified:  # else what is known of the function stays
        owner.ops = ops
    return modified


def rewrite_all_ops(module: Module, rewritten: Callable[[Op], Sequence[Op] | None]) -> bool:
    """`rewrite_ops` of all functions, and inside of ops."""
    blocks = [block for op in walk(module.ops()) for region in op.regions for block in region.blocks]
    owners: list[Function | Block] = [*blocks, *module.functions]
    modified = [rewrite_ops(owner, rewritten) for owner in owners]
    return any(modified)


def replace_result(result: Value, original: Value) -> None:
    """The op that produces `result` results in `original` instead, which keeps its users and its name."""
    producer = result.producer
    assert producer is not None
    producer.results = [original]
    original.producer = producer


def move_name(unnamed: Value, named: Value) -> bool:
    """Lets the producer of `unnamed` result in `named` instead. False, and nothing done, unless `unnamed` is a
    result without a name, and both have the same type. The producer stays where it is, so every user of either
    still comes after it.
    """
    producer = unnamed.producer
    if producer is None or unnamed.name or unnamed.type != named.type:
        return False
    producer.results = [named if result is unnamed else result for result in producer.results]
    named.producer = producer
    return True


def copied(ops: Sequence[Op], known: dict[Value, Value]) -> list[Op]:
    """Copies of ops on other values; `known` learns what their results are."""
    copies: list[Op] = []
    for op in ops:
        operands = [value and known.get(value, value) for value in op.operands]
        for value in op.results:
            known[value] = Value(value.type, info=value.info)
        regions = [Region([_block(block, known) for block in region.blocks]) for region in op.regions]
        results = [known[value] for value in op.results]
        copies.append(Op(op.name, operands, results, dict(op.attributes), op.location, info=op.info, regions=regions))
    return copies


def _block(block: Block, known: dict[Value, Value]) -> Block:
    for value in block.arguments:
        known[value] = Value(value.type)
    return Block([known[value] for value in block.arguments], copied(block.ops, known))
