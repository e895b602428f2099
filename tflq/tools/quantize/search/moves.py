"""Moves of a search: operators that compute otherwise together, all of one kind or a part of the network.

A part is a run of operators. It is cut where a cast is cheap: in its middle half where the fewest elements go from one
side to the other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tflq.ir.module import Module
from tflq.tools.quantize.debugging.outcome import shortened
from tflq.tools.quantize.recipe import FLOAT, STATIC, Rule, Settings
from tflq.tools.quantize.report import QuantizedRow

Overrides = tuple[tuple[str, Any], ...]
"""The settings of operators that a move changes, as of a rule."""
State = Mapping[str, str]
"""Of each operator that is changed, by the name of its result, the alternative that it has."""


def alternatives(default: Settings, *, is_chosen: bool) -> dict[str, Overrides]:
    """The settings that operators may have in place of a network's, by name. is_chosen: whether the method of ranges is
    chosen by samples: steps of 16 bits are so small that the whole range is best."""
    result: dict[str, Overrides] = {}
    if default.bits < 8:
        result["weights of 8 bits"] = (("weights", "int8"),)
    if default.scheme in STATIC and default.scheme != "int16x8":
        result["int16x8"] = (("scheme", "int16x8"), *((("range", "minmax"),) if is_chosen else ()))
    return result | {FLOAT: (("scheme", FLOAT),)}


@dataclass(frozen=True, slots=True)
class Move:
    """Operators that get an alternative. tensors: the names of their results. ends: of a part, the number of the first
    operator and of the one behind it; (0, 0): they are all operators of a kind."""

    name: str
    tensors: tuple[str, ...]
    alternative: str
    ends: tuple[int, int] = (0, 0)

    def on(self, state: State) -> dict[str, str]:
        """A state with this move."""
        return {**state, **dict.fromkeys(self.tensors, self.alternative)}


class Operators:
    """The quantized operators of a network, in order. rows: of the network without changes."""

    def __init__(self, module: Module, rows: Sequence[QuantizedRow], names: Collection[str]) -> None:
        self.rows = [row for row in rows if row.quantized and row.tensor]
        self.names = names
        self.tensors = tuple(row.tensor for row in self.rows)
        self._by_kind: dict[str, list[str]] = {}
        for row in self.rows:
            self._by_kind.setdefault(row.operator, []).append(row.tensor)
        results: dict[str, set[str]] = {}
        for op in module.ops():
            results.setdefault(op.short_name, set()).update(value.name for value in op.results)
        self._whole = {kind for kind, tensors in self._by_kind.items() if results.get(kind) == set(tensors)}
        self._crossing = _crossing(module, self.tensors)

    def kinds(self) -> list[Move]:
        """All operators of a kind, the most frequent kinds first."""
        by_count = sorted(self._by_kind.items(), key=lambda pair: -len(pair[1]))[:MOST_KINDS]
        return [
            Move(f"{len(tensors)} {kind}", tuple(tensors), name)
            for kind, tensors in by_count
            for name in self.names
            if len(self._by_kind) > 1 or name != FLOAT
        ]

    def whole(self) -> list[Move]:
        """All operators, but for floats."""
        return [self._part(0, len(self.tensors), name) for name in self.names if name != FLOAT]

    def halves(self, ends: tuple[int, int]) -> list[Move]:
        """The two sides of a part, for each alternative; none of one operator."""
        low, high = ends
        if high - low < 2:
            return []
        middle = self.cut(low, high)
        return [self._part(*side, name) for side in ((low, middle), (middle, high)) for name in self.names]

    def cut(self, low: int, high: int) -> int:
        """The operator before which a part is cut."""
        count = high - low
        first, last = low + max(count // 4, 1), high - max(count // 4, 1)
        middle = (low + high) / 2
        return min(range(first, max(last, first) + 1), key=lambda at: (self._crossing[at], abs(at - middle)))

    def _part(self, low: int, high: int, name: str) -> Move:
        inside = self.rows[low:high]
        first, last = inside[0], inside[-1]
        ends = [shortened(row.tensor) for row in (first, last)]
        one = f"{first.operator} '{ends[0]}'"
        text = one if len(inside) == 1 else f"{len(inside)} operators from '{ends[0]}' to '{ends[1]}'"
        return Move(text, self.tensors[low:high], name, (low, high))

    def rules(self, state: State, choices: Mapping[str, Overrides]) -> tuple[Rule, ...]:
        """The rules that make a state: one for each kind that is changed as a whole, one for the others of an
        alternative."""
        rules: list[Rule] = []
        for name, what in choices.items():
            rest = dict.fromkeys(tensor for tensor in self.tensors if state.get(tensor) == name)
            for kind in sorted(self._whole):
                if all(tensor in rest for tensor in self._by_kind[kind]):
                    rules.append(Rule(operator=kind, what=what))
                    rest = {tensor: None for tensor in rest if tensor not in self._by_kind[kind]}
            if rest:
                rules.append(Rule(name=_pattern(rest), what=what))
        return tuple(rules)


MOST_KINDS: Final = 20


def _pattern(names: Iterable[str]) -> str:
    """The pattern of names that fits these alone."""
    return f"re:{'|'.join(map(re.escape, names))}"


def _crossing(module: Module, tensors: Sequence[str]) -> np.ndarray:
    """Before each operator the elements that go from those before it to itself and those behind it."""
    number = {tensor: place for place, tensor in enumerate(tensors)}
    last = len(tensors) - 1
    changes = np.zeros(len(tensors) + 2, np.int64)
    for function in module.functions:
        place, places = 0, {}
        for op in function.ops:
            inside = next((number[value.name] for value in op.results if value.name in number), None)
            place = place if inside is None else inside
            places[op] = place
            place = min(place + (inside is not None), max(last, 0))
        for value, users in function.users().items():
            if value.producer in places:
                ends = places[value.producer], max((places[user] for user in users if user in places), default=0)
                if ends[1] > ends[0]:
                    changes[ends[0] + 1] += value.type.size
                    changes[ends[1] + 1] -= value.type.size
    return np.cumsum(changes)
