"""Facts of a function that passes need: users, values, ops by class, element types.

The answers are computed by a walk. While passes run, the pass manager keeps them until a pass has changed something;
`convert`, until the result is written. Two of them, users and ops by class, outlive a pass that changes ops by
`Function.replace` and `take_out` alone (`Pass.in_step`): these keep them true, which costs as much as what they change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import wraps
from typing import Final, TypeAlias, TypeVar, cast

from tflq.ir.ops import Fact, Op, Value

V = TypeVar("V", bound=Value | None)


def walk(ops: Iterable[Op]) -> Iterator[Op]:
    """The ops and those inside of them, each before what is inside."""
    for op in ops:
        yield op
        if op.regions:
            for region in op.regions:
                for block in region.blocks:
                    yield from walk(block.ops)


def unique(values: Iterable[Value | None]) -> list[Value]:
    """The values, in order and each once, without None."""
    distinct = dict.fromkeys(values)
    distinct.pop(None, None)
    return cast("list[Value]", list(distinct))


def final(value: V, replacements: Mapping[Value, Value]) -> V:
    """The value that is read in the place of another: itself, or the end of the chain of its replacements."""
    while value in replacements:
        value = cast("V", replacements[cast("Value", value)])
    return value


def ends(replacements: Mapping[Value, Value]) -> dict[Value, Value]:
    """The end of the chain of replacements, for each replaced value."""
    last: dict[Value, Value] = {}
    for value in replacements:
        passed: list[Value] = []
        while value in replacements and value not in last:
            passed.append(value)
            value = replacements[value]
        last.update(dict.fromkeys(passed, last.get(value, value)))
    return last


_FACTS_DEPEND_ON: Final = frozenset({"ops", "inputs", "outputs"})
_INDEX: Final = "_index"
_Users: TypeAlias = dict[Value, list[Op]]
_Places: TypeAlias = dict[type[Op], dict[Op, int]]
_Op = TypeVar("_Op", bound=Op)


def _remembered(compute: Callable[[Facts], Fact]) -> Callable[[Facts], Fact]:
    """A method whose answer is kept, if facts of the function are, until it changes."""
    name = compute.__name__

    @wraps(compute)
    def answer(self: Facts) -> Fact:
        facts = self._facts
        if facts is not None and name in facts:
            return cast("Fact", facts[name])
        return self.once(name, lambda: compute(self))

    return answer


class Facts:
    """The part of a function that answers for its ops, and that changes them.

    What `users`, `values` and `ops_of` answer is not to be changed: while passes run, it is kept from one to the next
    (`keep_facts`). Other ops, inputs or outputs drop it, and the pass manager does after a pass that changed something.
    A pass that asks again after it has changed operands or results by itself says `changed()` before.
    """

    inputs: list[Value]
    outputs: list[Value]
    ops: list[Op]
    _facts: dict[str, object] | None = None
    _in_step: bool = False

    def keep_facts(self, keep: bool = True, *, in_step: bool = False) -> None:
        """Keeps what is asked of it from now on, or nothing any more. in_step: until that is said again, ops, and which
        values they read, are changed by `replace` and `take_out` alone."""
        self._in_step = in_step
        if not keep:
            self._facts = None
        elif self._facts is None:
            self._facts = {}

    def once(self, key: str, compute: Callable[[], Fact]) -> Fact:
        """A fact that several passes need, computed once as long as nothing changes; `key` names it."""
        if self._facts is None:
            return compute()
        if key not in self._facts:
            self._facts[key] = compute()
        return cast("Fact", self._facts[key])

    def changed(self) -> None:
        """Drops what was kept: operands or results are others now. In step users and ops by class stay."""
        if self._facts:
            index = self._index_in_step()
            self._facts = {} if index is None else {_INDEX: index}

    def forget_users(self) -> None:
        """Drops what was kept of users."""
        if self._facts and _INDEX in self._facts:
            cast("_Index", self._facts[_INDEX]).users = None

    def __setattr__(self, name: str, value: object) -> None:
        if name in _FACTS_DEPEND_ON:
            self.changed()
        object.__setattr__(self, name, value)

    def replace(self, replacements: Mapping[Value, Value]) -> None:
        """Put values in the place of others, in every operand and output; chains of replacements are followed."""
        if not replacements:
            return
        replacements = ends(replacements)
        index = self._index_in_step()
        for op in walk(self.ops) if index is None or index.users is None else index.replace(replacements):
            if not replacements.keys().isdisjoint(op.operands):
                op.operands = [v and replacements.get(v, v) for v in op.operands]
        self.outputs = [replacements.get(v, v) for v in self.outputs]

    def take_out(self, dead: Set[Op], stay: list[Op] | None = None) -> None:
        """Take ops out, also those inside of others. stay: the other ops of the function, if they are known and hold
        none of these."""
        index = self._index_in_step()
        if index is not None:
            index.take_out(dead)
        self.ops = _without(self.ops, dead) if stay is None else stay

    def _index_in_step(self) -> _Index | None:
        """The index that `replace` and `take_out` update, if it is known."""
        return cast("_Index | None", self._facts.get(_INDEX)) if self._in_step and self._facts else None

    def users(self) -> Mapping[Value, Sequence[Op]]:
        """The ops that read each value, also those inside of others, in order; one that reads it twice is there
        twice."""
        index = self.once(_INDEX, lambda: _Index(self.ops, users=True))
        if index.users is None:  # only classes were asked for before
            index.users = _Index(self.ops, users=True).users
        assert index.users is not None
        return index.users

    def places(self) -> Mapping[type[Op], Mapping[Op, int]]:
        """The ops of each class, also those inside of others, in order. Each has a number that is larger than those
        of the ops before it."""
        return self.once(_INDEX, lambda: _Index(self.ops, users=False)).places

    def place_of(self) -> Callable[[Op], int]:
        """The function from an op to its place, to sort by."""
        return self.once(_INDEX, lambda: _Index(self.ops, users=False)).place

    @_remembered
    def by_signature(self) -> Mapping[tuple[object, ...], Sequence[Op]]:
        """The ops, but for those inside of others, by name and element types: those of the operands, None, and those of
        the results; None for one left out."""
        ops_by_signature: dict[tuple[object, ...], list[Op]] = {}
        for op in self.ops:
            signature = (op.name, *[v and v.type.element for v in (*op.operands, None, *op.results)])
            ops_by_signature.setdefault(signature, []).append(op)
        return ops_by_signature

    def has_ops(self, *kinds: type) -> bool:
        """Whether some op is of one of these classes, or has one of these traits."""
        return any(of_class.matches(kind) for of_class in self.places() for kind in kinds)

    def is_flat(self) -> bool:
        """Whether there are no ops inside of others."""
        return sum(map(len, self.places().values())) == len(self.ops)

    def ops_of(self, *kinds: type[_Op]) -> Sequence[_Op]:
        """The ops of some classes, also those inside of others, in order."""
        return cast("Sequence[_Op]", self.ops_with(*kinds))

    def ops_with(self, *kinds: type) -> Sequence[Op]:
        """The ops of some classes or with some traits, also those inside of others, in order."""
        places = self.places()
        classes = [ops for of_class, ops in places.items() if any(map(of_class.matches, kinds))]
        if len(classes) > 1:
            together = {op: place for ops in classes for op, place in ops.items()}
            return sorted(together, key=together.__getitem__)
        return [*classes[0]] if classes else ()

    @_remembered
    def values(self) -> Sequence[Value]:
        """Every value in use, once: inputs, then operands, intermediates and results in op order, then outputs."""
        occurrences: list[Value | None] = [*self.inputs]
        for op in walk(self.ops):
            occurrences += op.operands
            occurrences += op.intermediates
            occurrences += op.results
            if op.regions:
                occurrences += [value for region in op.regions for block in region.blocks for value in block.arguments]
        occurrences += self.outputs
        return unique(occurrences)


class _Index:
    """The ops of each class with their places, and, if they were asked for, the users of values."""

    __slots__ = ("places", "users")

    def __init__(self, ops: Iterable[Op], *, users: bool) -> None:
        self.places: _Places = {}
        self.users: _Users | None = {} if users else None
        known, places = self.users, self.places
        for place, op in enumerate(walk(ops)):
            of_class = places.get(op.__class__)
            if of_class is None:
                of_class = places[op.__class__] = {}
            of_class[op] = place
            if known is not None:
                for value in op.operands:
                    if value in known:
                        known[value].append(op)
                    elif value is not None:
                        known[value] = [op]

    def place(self, op: Op) -> int:
        return self.places[op.__class__][op]

    def replace(self, replacements: Mapping[Value, Value]) -> Sequence[Op]:
        """The ops that read replaced values; they are users of what replaces them, in the end, from now on."""
        users = self.users
        assert users is not None
        changed: dict[Op, None] = {}
        joined: dict[Value, list[Op]] = {}
        for value, end in replacements.items():
            if readers := users.pop(value, None):
                changed.update(dict.fromkeys(readers))
                joined.setdefault(end, []).extend(readers)
        for end, readers in joined.items():
            users[end] = sorted((*users.get(end, ()), *readers), key=self.place)
        return list(changed)

    def take_out(self, dead: Set[Op]) -> None:
        """Takes out ops, with those inside of them."""
        users, places = self.users, self.places
        gone = set(walk(dead))
        for op in gone:
            of_class = places[op.__class__]
            del of_class[op]
            if not of_class:
                del places[op.__class__]
        if users is None:
            return
        for value in {value for op in gone for value in op.operands if value is not None}:
            left = [op for op in users.get(value, ()) if op not in gone]
            if left:
                users[value] = left
            else:
                users.pop(value, None)


def _without(ops: Iterable[Op], dead: Set[Op]) -> list[Op]:
    live = [op for op in ops if op not in dead]
    for op in live:
        for region in op.regions:
            for block in region.blocks:
                block.ops = _without(block.ops, dead)
    return live
