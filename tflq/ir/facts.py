"""What passes ask of a function: users, values, ops by class, element types.

A pass builds a new op list and replaces values in one sweep, so the answers are computed by a walk, never kept in step
with single edits. While passes run, the pass manager keeps them until a pass has changed something; `convert`, until
the result is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import wraps
from typing import TYPE_CHECKING, Final, TypeVar, cast

if TYPE_CHECKING:
    from tflq.ir.core import Op, Value


def walk(ops: Iterable[Op]) -> Iterator[Op]:
    """The ops and those inside of them, each before what is inside."""
    for op in ops:
        yield op
        if op.regions:
            for region in op.regions:
                for block in region.blocks:
                    yield from walk(block.ops)


def unique(values: Iterable[Value | None]) -> list[Value]:
    """Those that are there, in order, and each once."""
    found = dict.fromkeys(values)
    found.pop(None, None)
    return cast("list[Value]", list(found))


_FACTS_DEPEND_ON: Final = frozenset({"ops", "inputs", "outputs"})
Fact = TypeVar("Fact")
_Op = TypeVar("_Op", bound="Op")


def _kept(compute: Callable[[Facts], Fact]) -> Callable[[Facts], Fact]:
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
    """The part of a function that answers for its ops.

    What `users`, `values` and `ops_of` answer is not to be changed: while passes run, it is kept from one to the next
    (`keep_facts`). Other ops, inputs or outputs drop it, and the pass manager does after a pass that changed something.
    A pass that asks again after it has changed operands or results says `changed()` before.
    """

    inputs: list[Value]
    outputs: list[Value]
    ops: list[Op]
    _facts: dict[str, object] | None = None

    def keep_facts(self, keep: bool = True) -> None:
        """Keeps what is asked of it from now on, or nothing any more."""
        if not keep:
            self._facts = None
        elif self._facts is None:
            self._facts = {}

    def once(self, key: str, compute: Callable[[], Fact]) -> Fact:
        """What several passes ask, computed once as long as nothing changes; `key` says what it is."""
        if self._facts is None:
            return compute()
        if key not in self._facts:
            self._facts[key] = compute()
        return cast("Fact", self._facts[key])

    def changed(self) -> None:
        """Drops what was kept: operands or results are others now."""
        if self._facts:
            self._facts = {}

    def __setattr__(self, name: str, value: object) -> None:
        if name in _FACTS_DEPEND_ON:
            self.changed()
        object.__setattr__(self, name, value)

    @_kept
    def users(self) -> Mapping[Value, Sequence[Op]]:
        """The ops that read each value, also those inside of others, in order; one that reads it twice is there
        twice."""
        users: dict[Value, list[Op]] = {}
        for op in walk(self.ops):
            for value in op.operands:
                if value in users:
                    users[value].append(op)
                elif value is not None:
                    users[value] = [op]
        return users

    def readers(self, values: Set[Value]) -> Mapping[Value, Sequence[Op]]:
        """`users` of some values alone, which costs little for few."""
        if self._facts is not None and "users" in self._facts:
            return self.users()
        readers: dict[Value, list[Op]] = {}
        for op in walk(self.ops):
            if not values.isdisjoint(op.operands):
                for value in filter(values.__contains__, op.operands):
                    readers.setdefault(cast("Value", value), []).append(op)
        return readers

    @_kept
    def _by_class(self) -> Mapping[type[Op], Sequence[Op]]:
        """The ops of each class, also those inside of others, in order."""
        found: dict[type[Op], list[Op]] = {}
        for op in walk(self.ops):
            found.setdefault(op.__class__, []).append(op)
        return found

    @_kept
    def by_signature(self) -> Mapping[tuple[object, ...], Sequence[Op]]:
        """The ops, but for those inside of others, by name and element types: those of the operands, None, and those of
        the results; None for one left out."""
        found: dict[tuple[object, ...], list[Op]] = {}
        for op in self.ops:
            signature = (op.name, *[v and v.type.element for v in (*op.operands, None, *op.results)])
            found.setdefault(signature, []).append(op)
        return found

    def has_ops(self, *kinds: type) -> bool:
        """Whether some op is of one of these classes, or has one of these traits."""
        return any(of_class.shows(kind) for of_class in self._by_class() for kind in kinds)

    def ops_of(self, *kinds: type[_Op]) -> Sequence[_Op]:
        """The ops of some classes, also those inside of others, in order."""
        return cast("Sequence[_Op]", self.ops_with(*kinds))

    def ops_with(self, *kinds: type) -> Sequence[Op]:
        """The ops of some classes or with some traits, also those inside of others, in order."""
        found = [of_class for of_class in self._by_class() if any(map(of_class.shows, kinds))]
        if len(found) > 1:
            return [op for op in walk(self.ops) if op.__class__ in found]
        return self._by_class()[found[0]] if found else ()

    @_kept
    def values(self) -> Sequence[Value]:
        """Every value in use, once: inputs, then operands, intermediates and results in op order, then outputs."""
        found: list[Value | None] = [*self.inputs]
        for op in walk(self.ops):
            found += op.operands
            found += op.intermediates
            found += op.results
            if op.regions:
                found += [value for region in op.regions for block in region.blocks for value in block.arguments]
        found += self.outputs
        return unique(found)
