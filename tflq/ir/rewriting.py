"""Functions that passes share: replacing values wherever a module refers to them, taking out and copying ops,
comparing modules.

Two modules are equal if a writer would make the same file of both. Values and buffers are compared by what they hold
and by who shares them: the values of one module map one to one to those of the other, and so do the buffers; two
constants that share a buffer equal only two that do.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Final

import numpy as np

from tflq.ir.attributes import TypedArray, TypedFloat, TypedInt, TypedString
from tflq.ir.core import NO_DATA, Block, Buffer, Function, Module, Op, Region, Signature, Value
from tflq.ir.facts import ends, walk


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


# Structural equality.


_INT: Final = frozenset((int,))


def attribute_key(value: Any) -> Hashable:
    """The key by which an attribute is compared and hashed; equal keys mean equal attributes.

    Told apart, unlike by `==`: `True` and `1`, `1.0` and `1`, `0.0` and `-0.0`, lists and tuples, arrays by dtype.
    A NaN equals itself.
    """
    kind = value.__class__
    if kind is str or kind is bool:
        return (kind is bool, value)
    if kind is int:
        return ("int", value)
    if kind is tuple:
        return ("ints", value) if _INT.issuperset(map(type, value)) else (False, tuple(map(attribute_key, value)))
    if kind is np.ndarray:
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, (TypedInt, TypedFloat, TypedString)):
        return ("typed", value.type, attribute_key(value.plain))
    if value is None or isinstance(value, (str, bytes)):
        return (False, value)
    if isinstance(value, np.generic):
        return ("scalar", value.dtype.str, value.tobytes())
    if isinstance(value, int):
        return ("int", int(value))
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    if isinstance(value, TypedArray):
        return ("array", value.element, value.type, value.shape, value.tobytes())
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, Mapping):
        return ("dict", frozenset((key, attribute_key(item)) for key, item in value.items()))
    if isinstance(value, (list, tuple)):
        return (isinstance(value, list), tuple(attribute_key(item) for item in value))
    if isinstance(value, Buffer):
        return ("buffer", value.data.tobytes(), attribute_key(value.external))
    return ("object", value)


def difference(a: Module, b: Module) -> str | None:
    """The first difference between two modules as a sentence with its place, or None if they are equal."""
    return next(_Comparison().module(a, b), None)


class _Comparison:
    """One walk over two modules in step; every method yields differences, found lazily."""

    def __init__(self) -> None:
        self.values: dict[Value, Value] = {}
        self.values_back: dict[Value, Value] = {}
        self.buffers: dict[Buffer, Buffer] = {}
        self.buffers_back: dict[Buffer, Buffer] = {}

    def module(self, a: Module, b: Module) -> Iterator[str]:
        for field in ("version", "description", "source", "info", "operator_codes", "warnings"):
            yield from self.attribute(field, getattr(a, field), getattr(b, field))
        yield from self.lengths("buffers", a.buffers, b.buffers)
        for index, (left, right) in enumerate(zip(a.buffers, b.buffers, strict=True)):
            yield from self.buffer(f"buffer {index}", left, right)
        yield from self.lengths("functions", a.functions, b.functions)
        for index, (f, g) in enumerate(zip(a.functions, b.functions, strict=True)):
            yield from self.function(f"function {index}", f, g)
        yield from self.signatures(a.signatures, b.signatures)
        yield from self.lengths("metadata", a.metadata, b.metadata)
        for index, (m, n) in enumerate(zip(a.metadata or [], b.metadata or [], strict=True)):
            yield from self.attribute(f"metadata {index} name", m.name, n.name)
            yield from self.buffer(f"metadata {index}", m.buffer, n.buffer)

    def signatures(self, a: list[Signature] | None, b: list[Signature] | None) -> Iterator[str]:
        yield from self.lengths("signatures", a, b)
        for index, (s, t) in enumerate(zip(a or [], b or [], strict=True)):
            place = f"signature {index}"
            yield from self.attribute(place, [s.key, s.function, s.info], [t.key, t.function, t.info])
            for side in ("inputs", "outputs"):
                left, right = getattr(s, side), getattr(t, side)
                yield from self.lengths(f"{place} {side}", left, right)
                for (name_a, value_a), (name_b, value_b) in zip(left or [], right or [], strict=True):
                    yield from self.attribute(f"{place} {side}", name_a, name_b)
                    yield from self.value(f"{place} {side} '{name_a}'", value_a, value_b)

    def function(self, place: str, a: Function, b: Function) -> Iterator[str]:
        yield from self.attribute(f"{place} name", a.name, b.name)
        yield from self.attribute(f"{place} info", a.info, b.info)
        yield from self.sequence(f"{place} input", a.inputs, b.inputs)
        yield from self.ops(place, a.ops, b.ops)
        yield from self.sequence(f"{place} output", a.outputs, b.outputs)
        yield from self.sequence(f"{place} tensor", a.tensors, b.tensors)

    def op(self, place: str, a: Op, b: Op) -> Iterator[str]:
        if a.name != b.name:
            yield f"{place}: is {b.name} in the other"
        yield from self.sequence(f"{place} operand", a.operands, b.operands)
        yield from self.sequence(f"{place} result", a.results, b.results)
        yield from self.sequence(f"{place} intermediate", a.intermediates, b.intermediates)
        yield from self.attribute(f"{place} attributes", a.attributes, b.attributes)
        yield from self.attribute(f"{place} info", a.info, b.info)
        if a.regions or b.regions:
            yield from self.blocks(place, a, b)
        if a.location != b.location:
            yield f"{place}: location {a.location} against {b.location}"

    def blocks(self, place: str, a: Op, b: Op) -> Iterator[str]:
        yield from self.lengths(f"{place} regions", a.regions, b.regions)
        for index, (left, right) in enumerate(zip(a.regions, b.regions, strict=True)):
            yield from self.lengths(f"{place} region {index} blocks", left.blocks, right.blocks)
            for number, (x, y) in enumerate(zip(left.blocks, right.blocks, strict=True)):
                yield from self.block(f"{place} region {index} block {number}", x, y)

    def block(self, place: str, a: Block, b: Block) -> Iterator[str]:
        yield from self.sequence(f"{place} argument", a.arguments, b.arguments)
        yield from self.ops(place, a.ops, b.ops)

    def ops(self, place: str, a: Sequence[Op], b: Sequence[Op]) -> Iterator[str]:
        yield from self.lengths(f"{place} operators", a, b)
        for index, (left, right) in enumerate(zip(a, b, strict=True)):
            yield from self.op(f"{place}, operator {index} ({left.name})", left, right)

    def sequence(self, place: str, a: Sequence[Value | None], b: Sequence[Value | None]) -> Iterator[str]:
        yield from self.lengths(f"{place}s", a, b)
        for index, (left, right) in enumerate(zip(a, b, strict=True)):
            yield from self.value(f"{place} {index}", left, right)

    def value(self, place: str, a: Value | None, b: Value | None) -> Iterator[str]:
        if a is None or b is None:
            if a is not b:
                yield f"{place}: {a} against {b}"
            return
        if self.values.get(a) is b:
            return
        if a in self.values or b in self.values_back:
            yield f"{place}: '{a.name}' and '{b.name}' are tensors in different places"
            return
        self.values[a] = b
        self.values_back[b] = a
        if a.name != b.name:
            yield f"{place}: name '{a.name}' against '{b.name}'"
        if a.type != b.type:
            yield f"{place} '{a.name}': type {a.type} against {b.type}"
        yield from self.attribute(f"{place} '{a.name}' info", a.info, b.info)
        yield from self.buffer(f"{place} '{a.name}'", a.buffer, b.buffer)

    def buffer(self, place: str, a: Buffer | None, b: Buffer | None) -> Iterator[str]:
        if a is None or b is None:
            if a is not b:
                yield f"{place}: {a} against {b}"
            return
        if self.buffers.get(a) is b:
            return
        if a in self.buffers or b in self.buffers_back:
            yield f"{place}: shares its buffer with different tensors"
            return
        self.buffers[a] = b
        self.buffers_back[b] = a
        if not np.array_equal(a.data, b.data):
            yield f"{place}: the data differs"
        yield from self.attribute(f"{place} external", a.external, b.external)

    def attribute(self, place: str, a: Any, b: Any) -> Iterator[str]:
        if a is b or attribute_key(a) == attribute_key(b):
            return
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            for key in sorted(a.keys() | b.keys(), key=str):
                if key not in a or key not in b:
                    yield f"{place}: only one has '{key}'"
                else:
                    yield from self.attribute(f"{place}, {key}", a[key], b[key])
        elif isinstance(a, (list, tuple)) and type(a) is type(b) and len(a) == len(b):
            for index, (left, right) in enumerate(zip(a, b, strict=True)):
                yield from self.attribute(f"{place}, {index}", left, right)
        elif isinstance(a, Value) and isinstance(b, Value):
            yield from self.value(place, a, b)
        else:
            yield f"{place}: {a!r} against {b!r}"

    def lengths(self, place: str, a: Sequence[object] | None, b: Sequence[object] | None) -> Iterator[str]:
        if (a is None) != (b is None) or len(a or ()) != len(b or ()):
            count_a, count_b = ("none" if s is None else str(len(s)) for s in (a, b))
            yield f"{place}: {count_a} against {count_b}"
