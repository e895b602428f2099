"""The least cost of an assignment of two values to each of many variables: a minimum cut.

Costs are of single variables and of pairs: so much if x is 1 and y is 0. Of such sums the least is found exactly, by a
maximum flow (Dinic: paths of equal length, all of them in one sweep). Source: Picard and Ratliff, "Minimum cuts and
related problems", Networks 5 (1975); Dinic, Soviet Math. Doklady 11 (1970).
"""

from __future__ import annotations

from collections.abc import Sequence

ONE, ZERO = 0, 1
"""The variables whose values are given."""


class Cut:
    """Variables 0 or 1, and what their values cost together. `ONE` and `ZERO` are variables, too."""

    def __init__(self) -> None:
        self._out: list[list[int]] = [[], []]  # by variable, its edges; edge e ^ 1 is edge e backwards
        self._to: list[int] = []
        self._room: list[int] = []
        self.least = 0
        """What the assignment that was found costs."""

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
        """How many edges with room lie between `ONE` and each variable; -1 if there is no way."""
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
