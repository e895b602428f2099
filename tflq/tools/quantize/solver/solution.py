"""The choice for each op that moves elements, reals or integers, so that casts cost the least.

The forms of a tensor are in order: the integers of its grid, reals, the integers that these are rounded to, the reals
of those, and so on. Each is one cast from the next, and from reals one can go back to the grid that they are on. An op
that moves elements has its operands and results in one of them (`Moves.level`). A content is cast once for all readers.
So the least is a minimum cut, with a variable for each op and level: whether it is at that level or above (Ishikawa,
"Exact optimization for Markov random fields with convex priors", PAMI 25, 2003). Among forms that cost the same, the
fewest elements are moved as reals.

Where an op moves a tensor that is on a grid together with others, and the result is rounded to that grid, the order of
forms does not hold: the integers are there before the reals and after. For such an op it is decided first whether it is
put behind the rounding. All decisions are tried where that is little work in a part of the graph that hangs together;
else all ones, none, and what changing single ones gains.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple

from tflq.dialects.quant import Qcast
from tflq.tools.quantize.solver.contents import REAL, Content, Contents, Moves, Rounding, Steps

# The least cost of an assignment of two values to each of many variables: a minimum cut.
#
# Costs are of single variables and of pairs: so much if x is 1 and y is 0. Of such sums the least is found exactly, by
# a maximum flow (Dinic: paths of equal length, all of them in one sweep). Source: Picard and Ratliff, "Minimum cuts and
# related problems", Networks 5 (1975); Dinic, Soviet Math. Doklady 11 (1970).


ONE, ZERO = 0, 1
"""The variables whose values are given."""


class Cut:
    """Variables 0 or 1, and what their values cost together. `ONE` and `ZERO` are variables, too."""

    def __init__(self) -> None:
        self._out: list[list[int]] = [[], []]  # by variable, its edges; edge e ^ 1 is edge e backwards
        self._to: list[int] = []
        self._room: list[int] = []
        self.least = 0
        """Cost of the solved assignment."""

    def variable(self) -> int:
        """A new variable."""
        self._out.append([])
        return len(self._out) - 1

    def cost(self, x: int, y: int, amount: int) -> None:
        """`amount` if x is 1 and y is 0."""
        if amount and x != y and x != ZERO and y != ONE:
            self._out[x].append(len(self._to))
            self._out[y].append(len(self._to) + 1)
            self._to += (y, x)
            self._room += (amount, 0)

    def solve(self) -> list[bool]:
        """The value of each variable. Where several assignments cost the least, the one with the fewest ones."""
        while True:
            level = self._levels()
            if level[ZERO] < 0:
                return [depth >= 0 for depth in level]
            self._block(level)

    def _levels(self) -> list[int]:
        """Number of edges with room between `ONE` and each variable; -1 if there is no way."""
        level = [-1] * len(self._out)
        level[ONE] = 0
        reached = [ONE]
        for x in reached:
            for edge in self._out[x]:
                y = self._to[edge]
                if self._room[edge] and level[y] < 0:
                    level[y] = level[x] + 1
                    reached.append(y)
        return level

    def _block(self, level: Sequence[int]) -> None:
        """Sends all that fits along shortest ways."""
        out, to, room = self._out, self._to, self._room
        following = [0] * len(out)
        way: list[int] = []
        x = ONE
        while True:
            if x == ZERO:
                sent = min(room[edge] for edge in way)
                self.least += sent
                for edge in way:
                    room[edge] -= sent
                    room[edge ^ 1] += sent
                full = next(place for place, edge in enumerate(way) if not room[edge])
                x = to[way[full] ^ 1]
                del way[full:]
                continue
            edges = out[x]
            while following[x] < len(edges):
                edge = edges[following[x]]
                if room[edge] and level[to[edge]] == level[x] + 1:
                    break
                following[x] += 1
            else:
                if not way:
                    return
                x = to[way.pop() ^ 1]
                following[x] += 1
                continue
            way.append(edge)
            x = to[edge]


# The levels of ops, as such an assignment.


_NEVER: Final = 1 << 62
_WORK: Final = 20_000
"""Ops in a part times the times that it is solved, at most."""


def solve(contents: Contents) -> None:
    """Decides the level of each op that moves elements."""
    for part in _parts(contents):
        part.solve()


@dataclass(slots=True)
class _Part:
    """Ops that hang together by what they read and make, and the contents that are made there, none rounded."""

    moves: list[Moves]
    contents: list[Content]

    def solve(self) -> None:
        undecided = [op for op in self.moves if any(_returns(op, content) for content in op.sources.values())]
        self._best(undecided).decide()

    def _best(self, ops: Sequence[Moves]) -> _Try:
        """The cheapest of what is tried."""
        size, cost = len(self.moves), attrgetter("cost")
        if size << len(ops) <= _WORK:
            every = itertools.product((False, True), repeat=len(ops))
            return min((_Try(self, dict(zip(ops, behind, strict=True))) for behind in every), key=cost)
        best = min(_Try(self, {}), _Try(self, dict.fromkeys(ops, True)), key=cost)
        for op in ops[: _WORK // size]:
            best = min(best, _Try(self, {**best.behind, op: not best.behind.get(op, False)}), key=cost)
        return best


def _parts(contents: Contents) -> Iterator[_Part]:
    """The parts of a function."""
    whole: dict[Moves, Moves] = {}

    def first(op: Moves) -> Moves:
        while (other := whole.setdefault(op, op)) is not op:
            whole[op] = whole[other]
            op = other
        return op

    roots = [content for content in contents.all if content.rounded_from is None]
    users = {content: list(_users(content)) for content in roots}
    for ops in users.values():
        for op in ops[1:]:
            whole[first(op)] = first(ops[0])
    parts: dict[Moves, _Part] = {}
    for step in contents.steps:
        if isinstance(step, Moves):
            parts.setdefault(first(step), _Part([], [])).moves.append(step)
    for content, ops in users.items():
        if ops:
            parts[first(ops[0])].contents.append(content)
    yield from parts.values()


def _users(content: Content) -> Iterator[Moves]:
    """The ops that make a content, or read it or its roundings."""
    if content.moves is not None:
        yield content.moves
    for reader in content.readers:
        if isinstance(reader, Moves):
            yield reader
        elif isinstance(reader, Rounding):
            yield from _users(content.rounded[reader])


def _returns(op: Moves, content: Content) -> bool:
    """Whether an op could be behind a rounding that leaves what it reads as it is."""
    first = op.steps[0] if op.steps else None
    return first is not None and content.stays(first)


class _Levels(NamedTuple):
    """Of an op, what it makes or reads: a variable for each level from 1, whether it is at that or above. `steps`:
    those above level 1."""

    variables: tuple[int, ...]
    steps: Steps = ()

    def least(self, level: int) -> int:
        return self.variables[level - 1] if level <= len(self.variables) else ZERO

    def behind(self) -> _Levels:
        """The levels as seen from reals that are rounded by the first step."""
        return _Levels(self.variables[2:], self.steps[2:])


_INTEGERS: Final = _Levels(())
_REALS: Final = _Levels((ONE,))


class _Try:
    """The best levels of the ops of a part, with a decision for those that may be behind a rounding that returns."""

    def __init__(self, part: _Part, behind: Mapping[Moves, bool]) -> None:
        cut = Cut()
        self.behind = behind
        self.levels = {op: self._levels(cut, op) for op in part.moves}
        unit = 1 + sum(content.type.size for op in part.moves for content in op.results)
        for op, at in self.levels.items():
            for level in range(1, len(at.variables) + 1, 2):
                cut.cost(at.least(level), at.least(level + 1), sum(content.type.size for content in op.results))
        for content in part.contents:
            form = _REALS if content.form == REAL else _INTEGERS
            form = form if content.moves is None else self.levels[content.moves]
            if not content.folds:
                _Casts(cut, self.levels, form, unit * content.type.size).state(content, [], 0)
        self.solved = cut.solve()
        self.cost = cut.least

    def _levels(self, cut: Cut, op: Moves) -> _Levels:
        if op.integers:
            return _INTEGERS
        first = cut.variable() if op.grid is not None else ONE
        if not any(_returns(op, content) for content in op.sources.values()):
            variables = (first, *(cut.variable() for _ in op.steps))
        elif self.behind.get(op, False):
            variables = (ONE, ONE, *(cut.variable() for _ in op.steps[1:]))
        else:
            return _Levels((first,))
        for level, variable in enumerate(variables[1:]):
            cut.cost(variable, variables[level], _NEVER)
        return _Levels(variables, op.steps)

    def decide(self) -> None:
        for op, at in self.levels.items():
            op.level = sum(self.solved[variable] for variable in at.variables)


class _Casts:
    """Cost of the casts of one content and of its roundings, each `price`. `form`: the form in which it is made."""

    def __init__(self, cut: Cut, levels: Mapping[Moves, _Levels], form: _Levels, price: int) -> None:
        self.cut = cut
        self.levels = levels
        self.form = form
        self.price = price

    def state(self, content: Content | None, inherited: list[_Levels], base: int) -> None:
        """The casts of a content that the one that is made becomes by roundings, `base` levels above it. `inherited`:
        readers of what it is rounded from that may go on to it; None: only they read it."""
        cut = self.cut
        readers = [] if content is None else [self._reader(content, reader) for reader in content.readers]
        reals, back = cut.variable(), cut.variable()
        cut.cost(reals, self.form.least(base + 1), self.price)
        cut.cost(self.form.least(base + 1), back, self.price if self._goes_back(content) else _NEVER)
        for reader in (*readers, *inherited):
            cut.cost(reader.least(1), reals, _NEVER)
            cut.cost(back, reader.least(1), _NEVER)
            cut.cost(self.form.least(base + 2), reader.least(2), _NEVER)
        going = (*readers, *inherited)
        roundings = [reader.steps[0] for reader in going if reader.steps]
        for rounding in dict.fromkeys(step for step in roundings if step is not None):
            self._round(content, rounding, [reader for reader in going if reader.steps[:1] == (rounding,)], base)

    def _round(self, content: Content | None, rounding: Rounding, readers: list[_Levels], base: int) -> None:
        """A cast to stored integers, for those that read them or go on behind."""
        cut = self.cut
        stored = cut.variable()
        cut.cost(stored, self.form.least(base + 2), self.price)
        for reader in readers:
            cut.cost(reader.least(2), stored, _NEVER)
        known = None if content is None else content.rounded.get(rounding)
        behind = [reader.behind() for reader in readers if len(reader.variables) > 2]
        self.state(known, behind, base + 2)

    def _reader(self, content: Content, reader: object) -> _Levels:
        """The level that a reader needs; a rounding that is there needs its integers."""
        if isinstance(reader, Moves):
            at = self.levels[reader]
            return at.behind() if _returns(reader, content) and at.steps else at
        if isinstance(reader, Rounding):
            return _Levels((ONE, ONE), (reader,))
        return _REALS if reader == REAL else _INTEGERS

    def _goes_back(self, content: Content | None) -> bool:
        """Whether reals of this content can be made integers of its grid again."""
        return content is not None and content.grid is not None and content.stays(Rounding(Qcast, content.grid))
