"""The choice of values that are computed inside of the loops of others.

A kernel is a tree of elementwise operators with one root, whose result is stored, and at most one operator that makes
rows: a convolution, product, pool or reduction. The rows' sums never leave the kernel. A reduction also takes the tree
of its operand in.

A value is inside where all that reads it is in the trees of one root, or where it is cheap to compute again. It must
have as many elements as the root. Constants of a channel need its last dim, those that broadcast otherwise all dims.
Of two convolutions in one tree the earlier is cut off, at the narrowest value on its way to the root.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from tflq.dialects.declare import Operator
from tflq.dialects.tosa import convolution as conv
from tflq.dialects.tosa import elementwise as ew
from tflq.dialects.tosa import movement as move
from tflq.dialects.traits import Broadcasts, Elementwise, SameShape
from tflq.formats.c.names import around, bytes_of, count, dims_of
from tflq.ir.module import Function
from tflq.ir.ops import Op, Value
from tflq.ir.types import i8, ui8

_ROWS: Final = (conv.Weighted, conv.MatMul, conv.Pool, move.Reduction)
_CHEAP: Final = (ew.Add, ew.Sub, ew.Clamp, ew.Minimum, ew.Maximum, move.Cast, move.Table)
_ALIASES: Final = (move.Reshape, move.Identity)
_DEEPEST: Final = 100
"""Operators of a tree from a leaf to its root: an expression is written by recursion."""
_SIGN: Final = (0, -128, 1 << 30, 30)


def makes_rows(op: Op) -> bool:
    """Whether an operator computes a row of sums at a time."""
    return isinstance(op, _ROWS) or (isinstance(op, move.Resize) and op.mode == "BILINEAR")


def is_elementwise(op: Op) -> bool:
    """Whether each element of the result follows from one of each operand, tables aside."""
    if isinstance(op, move.Gather):
        return op.of_table
    return isinstance(op, Operator) and op.has(SameShape, Elementwise, Broadcasts) and not isinstance(op, _ALIASES)


def reads(op: Op) -> list[Value]:
    """The operands that an elementwise operator reads at the place of its result; a table's entries are not."""
    if isinstance(op, move.Gather):
        return [op.indices]
    return [op.input] if isinstance(op, move.Table) else op.present_operands


class Fusion:
    """The kernels of a function."""

    def __init__(self, function: Function) -> None:
        self.function: Final = function
        self._alias = {op.result: op.operands[0] for op in function.ops if isinstance(op, _ALIASES)}
        self.outputs: Final = [self.root(v) for v in function.outputs]
        self.views: Final[dict[Value, tuple[Value, int]]] = {}
        self.pieces: Final[dict[Value, tuple[Value, int]]] = {}
        self.raw: Final[dict[Value, Value]] = {}
        self.users: Final[dict[Value, list[Op]]] = defaultdict(list)
        for op in function.ops:
            if not isinstance(op, _ALIASES):
                for value in dict.fromkeys(self.root(v) for v in op.present_operands):
                    self.users[value].append(op)
        self.inside: Final[set[Value]] = set()
        self._order = {v: at for at, op in enumerate(function.ops) for v in op.results}
        self._returned = set(self.outputs)
        named = [value for op in function.ops for value in op.results if value.name]
        self.named: Final = {self.root(value): value for value in reversed(named)}
        """By value: itself, or the first of its elements in another shape that has a name."""
        self._decide()
        self._cut()
        self._look_through()

    # What a value is.

    def root(self, value: Value) -> Value:
        """The value itself, behind operators that only change its shape."""
        while (source := self._alias.get(value)) is not None:
            value = source
        return value

    def base(self, value: Value) -> tuple[Value, int]:
        """The value in whose memory another is, and the element at which it begins."""
        value, at = self.root(value), 0
        while (whole := self.views.get(value) or self.pieces.get(value)) is not None:
            value, start = whole
            at += start
        return value, at

    def is_placeable(self, value: Value) -> bool:
        """Whether a kernel computes a value into memory that is not yet chosen."""
        known = value in self._returned or value in self.views or value in self.pieces or value in self.inside
        return not known and value.producer is not None and not isinstance(value.producer, move.VariableRead)

    def is_root(self, op: Op) -> bool:
        """Whether an operator has a kernel: something needs it, or it has an effect, and no loop of another has it."""
        if isinstance(op, (*_ALIASES, move.Variable)) or (op.results and self.inside.issuperset(op.results)):
            return False
        return not op.results or any(self.users[v] or v in self._returned for v in op.results)

    def row_of(self, value: Value) -> Op | None:
        """The operator of the tree of a root that makes rows."""
        return next((op for op in self.tree(value) if makes_rows(op)), None)

    def tree(self, value: Value) -> Iterator[Op]:
        """The operators of the tree of a root, the root's first."""
        seen, todo = {value}, [value]
        while todo:
            op = todo.pop().producer
            if op is None:
                continue
            yield op
            if makes_rows(op):
                continue
            for operand in map(self.root, reads(op)):
                if operand in self.inside and operand not in seen:
                    seen.add(operand)
                    todo.append(operand)

    # Choice of what is inside.

    def _decide(self) -> None:
        roots: dict[Value, set[Op]] = {}
        depths: dict[Value, int] = defaultdict(int)  # operators between a value and the root, for those inside
        for op in reversed(self.function.ops):
            if isinstance(op, _ALIASES) or len(op.results) != 1:
                continue
            value, users = op.result, self.users[op.result]
            targets: set[Op] = set()
            for user in users:
                inner = user.results and user.results[0] in self.inside and not makes_rows(user)
                targets |= roots[user.results[0]] if inner else {user}
            depth = 1 + max((depths[v] for user in users for v in user.results), default=0)
            if value not in self._returned and depth <= _DEEPEST and self._fits(op, users, targets):
                self.inside.add(value)
                roots[value] = targets
                depths[value] = depth

    def _fits(self, op: Op, users: list[Op], targets: set[Op]) -> bool:
        if not users or not (makes_rows(op) or is_elementwise(op)) or (len(targets) > 1 and not self._is_repeated(op)):
            return False
        return all(self._is_read_by(user, op) for user in users) and all(self._fits_in(op, each) for each in targets)

    def _is_read_by(self, user: Op, op: Op) -> bool:
        """Whether an operator reads each element of a result in a loop, at its place."""
        if isinstance(user, move.Reduction):
            return not makes_rows(op)
        return is_elementwise(user) and op.result in map(self.root, reads(user))

    def _is_repeated(self, op: Op) -> bool:
        """Whether several roots each compute a result, since it follows cheaply from what is stored. What is computed
        from several values in memory is stored, if that is smaller."""
        chain, source = [op.result], op
        while isinstance(source, _CHEAP):
            operands = [self.root(v) for v in reads(source) if count(v) == count(op.result) and not v.is_constant]
            before = operands[0].producer if operands else None
            if before is None or not (makes_rows(before) or is_elementwise(before)):
                return True
            if len(operands) > 1:
                break
            source = before
            chain.append(before.result)
        return min(chain[::-1], key=bytes_of) is not op.result

    def _fits_in(self, op: Op, target: Op) -> bool:
        """Whether an operator's result can be computed at each element of what a root iterates over."""
        reduced = isinstance(target, move.Reduction)
        if not reduced and op.result.type.shape == target.result.type.shape and not isinstance(op, move.Reduction):
            return True
        there = dims_of(target.operands[0] if reduced else target.result)  # type: ignore[arg-type]
        dims, need = dims_of(op.result), self.need(op)
        if count(op.result) != math.prod(there) or (reduced and need > 0):
            return False
        if isinstance(op, move.Reduction) and around(dims_of(op.input), op.axis)[2] != (there[-1:] or (1,))[0]:
            return False
        return need == 0 or dims[-1:] == there[-1:] if need < 2 else _stripped(dims) == _stripped(there)

    def need(self, op: Op) -> int:
        """The need of an operator in a loop: 0 a running index, 1 also the channel, 2 all indices."""
        if makes_rows(op):
            return 1
        dims, need = dims_of(op.result), 0
        if isinstance(op, move.Rescale) and op.multiplier.size > 1:
            need = 1
        for operand in reads(op):
            size = count(operand)
            if size not in (1, count(op.result)):
                need = max(need, 1 if (*dims_of(operand)[-1:], size) == (dims[-1], dims[-1]) else 2)
        return need

    def _cut(self) -> None:
        """Leaves one operator that makes rows in each tree, and none where it does not fit. What is cut off is a root,
        too, and comes later in this order."""
        for op in reversed(self.function.ops):
            if not op.results or op.result in self.inside or not is_elementwise(op):
                continue
            tree = [*self.tree(op.result)]
            while rows := [each for each in tree if makes_rows(each)]:
                wide = any(self.need(each) > 1 for each in tree)
                first = min(rows, key=lambda each: self._order[each.result])
                if len(rows) < 2 and not wide and dims_of(first.result)[-1:] == dims_of(op.result)[-1:]:
                    break
                self.inside.discard(self._narrowest(first.result, op))
                tree = [*self.tree(op.result)]

    def _narrowest(self, value: Value, root: Op) -> Value:
        """The value with the fewest bytes from a value on to the first that several operators read."""
        way = [value]
        while len(users := self.users[way[-1]]) == 1 and users[0] is not root and users[0].result in self.inside:
            way.append(users[0].result)
        return min(way, key=bytes_of)

    def _look_through(self) -> None:
        """Arguments of uint8 that only convolutions read, less 128, are read as they are."""
        for op in self.function.ops:
            if not isinstance(op, move.Rescale) or op.input.producer is not None or op.input.type.storage != ui8:
                continue
            numbers = (op.input_zp, op.output_zp, *op.multiplier.tolist(), *op.shift.tolist())
            readers = [u for u in self.users[op.result] if isinstance(u, conv.Weighted)]
            plain = op.result.type.storage == i8 and numbers == _SIGN and op.result not in self._returned
            if plain and readers == self.users[op.result] and all(self.root(u.input) is op.result for u in readers):
                self.raw[op.result] = op.input
                self.inside.add(op.result)


def _stripped(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Dims without those of 1 in front."""
    return dims[next((at for at, dim in enumerate(dims) if dim != 1), len(dims)) :]
