"""The search: operators get more bits, or stay float, until a network keeps within its bounds.

In each round the moves are tried, and the best is made: that with the most decibels less the price of what it adds to
the file and to a run. Moves are all operators of a kind, and parts of the network; the halves of the best parts are
tried in the next round. Size and time never leave their bounds once they are within. When all bounds hold, what is not
needed for that is changed back, in halves.

At most `trials_of` networks are made, so that what is tried depends on the network alone, and not on the machine
(but for a bound of time, which is measured).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tflq.base.errors import InvalidModelError, OptionError, Reason
from tflq.base.logs import DEBUG, INFO, log
from tflq.tools.quantize.building import Network
from tflq.tools.quantize.recipe import Rule
from tflq.tools.quantize.search.bounds import FLOAT, Bounds, Figures, shown
from tflq.tools.quantize.search.moves import Move, Operators, Overrides, State
from tflq.tools.quantize.search.outcome import BACK, Search, Step

PRICE: Final = 10.0
"""Decibels that have to be gained for a growth of 1 (`Bounds.growth`)."""
LEAST_GAIN: Final = 0.1
"""Decibels, less the price, for which operators are changed where outputs only have to be as near as possible."""
_PARTS: Final = 8
"""Parts that are tried in each round."""
_MOST, _FEWEST, _WORK = 200, 40, 15000
"""Networks that are tried at most, at least allowed, and allowed times operators."""


def trials_of(operators: int) -> int:
    """The most networks that are tried for so many operators."""
    return max(_FEWEST, min(_MOST, _WORK // max(operators, 1)))


Build = Callable[[Sequence[Rule]], Network]
"""A network with further rules."""
Measure = Callable[[Network], Figures]


@dataclass
class _Networks:
    """Figures of states that were tried; None: it is no result."""

    build: Build
    measure: Measure
    operators: Operators
    choices: Mapping[str, Overrides]
    most: int
    figures: dict[frozenset[tuple[str, str]], Figures | None] = field(default_factory=dict)

    def first(self) -> Figures:
        """The figures without changes."""
        figures = self.measure(self.build(()))
        self.figures[frozenset()] = figures
        return figures

    def of(self, state: State) -> Figures | None:
        """The figures of a state; None where nothing would be quantized, a rule does not fit, or it does not run."""
        key = frozenset(state.items())
        if key not in self.figures:
            self.figures[key] = self._figures(state)
        return self.figures[key]

    @property
    def exhausted(self) -> bool:
        return len(self.figures) >= self.most

    def _figures(self, state: State) -> Figures | None:
        try:
            network = self.build(self.operators.rules(state, self.choices))
        except (OptionError, InvalidModelError):
            return None
        try:
            return self.measure(network) if any(row.quantized for row in network.rows) else None
        except InvalidModelError:
            return None


def searched(
    operators: Operators, choices: Mapping[str, Overrides], build: Build, measure: Measure, bounds: Bounds
) -> tuple[tuple[Rule, ...], Search]:
    """Searches, and returns the rules of the result. An interruption (KeyboardInterrupt) ends the search with the best
    so far. OptionError if nothing keeps within the bounds. The samples of the search are entered by the caller."""
    networks = _Networks(build, measure, operators, choices, trials_of(len(operators.tensors)))
    before = networks.first()
    searching = _Searching(networks, bounds, before)
    interrupted = False
    try:
        searching.run()
    except KeyboardInterrupt:
        interrupted = True
        searching.make_best()
    reached = bounds.hold(searching.figures)
    search = Search(bounds.metric, tuple(bounds.texts()), 0, 0, before, searching.figures, len(networks.figures))
    search = replace(search, steps=tuple(searching.steps), reached=reached, interrupted=interrupted)
    if not reached and not interrupted:
        raise _missed(searching, bounds)
    return operators.rules(searching.state, choices), search


def _missed(searching: _Searching, bounds: Bounds) -> OptionError:
    figures = searching.nearest
    wanted = ", ".join(bounds.texts())
    what = f"no network with an operator quantized has {wanted}; the nearest of {len(searching.networks.figures)} has "
    remedy = "ask for less, give more samples, or take a scheme of more bits"
    return OptionError(Reason(what + shown(figures, bounds.metric), value=wanted, remedy=remedy))


class _Searching:
    """The state of a search: the best network so far."""

    def __init__(self, networks: _Networks, bounds: Bounds, before: Figures) -> None:
        self.networks = networks
        self.bounds = bounds
        self.operators = networks.operators
        self.first = self.figures = self.nearest = before
        self.state: dict[str, str] = {}
        self.steps: list[Step] = []
        self._moved: list[Move] = []
        self._parts = self._first_parts()
        self._gains: dict[Move, float] = {}
        self._best: tuple[tuple[bool, float], Move, Figures] | None = None

    def run(self) -> None:
        """Makes the best move of each round, then changes back what is not needed."""
        while not self._done() and not self.networks.exhausted:
            self._try_moves()
            if not self.make_best():
                break
        if self.bounds.hold(self.figures):
            before = dict(self.state), self.figures
            try:
                for move in reversed(self._moved):
                    self._change_back(list(move.tensors))
            finally:
                self._enter_changed_back(*before)

    def _done(self) -> bool:
        """Whether nothing is to be gained. Without a bound of fidelity, outputs are to be as near as possible."""
        return self.bounds.of_fidelity and self.bounds.hold(self.figures)

    def _first_parts(self) -> list[Move]:
        whole = (0, len(self.operators.tensors))
        parts = [*self.operators.whole(), *self.operators.halves(whole)]
        ends = dict.fromkeys(move.ends for move in parts if move.ends != whole)
        return parts + [half for each in ends for half in self.operators.halves(each)]

    def make_best(self) -> bool:
        """Makes the best move that the round has tried. Returns whether one gains enough."""
        if self._best is None:
            return False
        _, move, after = self._best
        self._best = None
        self._moved.append(move)
        self.state = move.on(self.state)
        self._enter(Step(move.name, move.alternative, move.tensors, after.decibels - self.figures.decibels, after))
        return True

    def _try_moves(self) -> None:
        """Tries the moves of a round, until one is enough that is worth its price."""
        for move in self._moves():
            after = self._after(move)
            if after is None:
                continue
            score = self._score(after)
            is_enough = self.bounds.of_fidelity and self.bounds.hold(after)
            rank = is_enough, score
            if (is_enough or self._gains_enough(after, score)) and (self._best is None or rank > self._best[0]):
                self._best = rank, move, after
            if (is_enough and score > 0) or self.networks.exhausted:
                break

    def _gains_enough(self, after: Figures, score: float) -> bool:
        """Whether a move is worth making: outside the bounds all that comes nearer to them, at any price."""
        if self._excess():
            return True
        if self.bounds.of_fidelity:
            return score > 0 or self.bounds.gain(self.figures, after) > 0
        return score > LEAST_GAIN

    def _moves(self) -> Iterator[Move]:
        """The moves of a round, those first that gained most before: kinds, and the best parts with their halves."""
        rank = lambda move: -self._gains.get(move, math.inf)  # noqa: E731
        if self.steps:
            best = sorted(self._parts, key=rank)[:_PARTS]
            ends = dict.fromkeys(move.ends for move in best)
            halves = [half for each in ends for half in self.operators.halves(each)]
            self._parts += [half for half in dict.fromkeys(halves) if half not in self._gains]
        parts = sorted(self._parts, key=rank)[: 2 * _PARTS if self.steps else None]
        yield from sorted([*self.operators.kinds(), *parts], key=rank)

    def _after(self, move: Move) -> Figures | None:
        """The figures with a move; None where it changes nothing, is no result, or leaves the bounds of size and time
        further behind."""
        state = move.on(self.state)
        if state == self.state:
            return None
        log(DEBUG, "", extra={"begins": f"{shown(self.figures, self.bounds.metric)}, network {self._count() + 1}"})
        after = self.networks.of(state)
        if after is None:
            return None
        self._gains[move] = self.bounds.gain(self.figures, after)
        excess = self.bounds.excess(after)
        if not excess or excess < self._excess():
            self.nearest = max(self.nearest, after, key=self._nearness)
            return after
        return None

    def _nearness(self, figures: Figures) -> tuple[float, float, float]:
        return -self.bounds.excess(figures), figures.value, figures.decibels

    def _count(self) -> int:
        return len(self.networks.figures)

    def _excess(self) -> float:
        return self.bounds.excess(self.figures)

    def _score(self, after: Figures) -> float:
        """Decibels that are gained, less the price; what is over a bound of size or time counts before all."""
        price = PRICE * self.bounds.growth(self.figures, after)
        less = self._excess() - self.bounds.excess(after)
        return self.bounds.gain(self.figures, after) - price + 10 * FLOAT * less

    def _enter(self, step: Step) -> None:
        self.steps.append(step)
        self.figures = step.figures
        text = shown(step.figures, self.bounds.metric)
        log(INFO, "%s %s: %s, %d networks tried", step.operators, step.scheme, text, self._count())

    def _enter_changed_back(self, state: State, before: Figures) -> None:
        """Enters the operators of a state that were changed back, as one step."""
        if changed := tuple(tensor for tensor in state if tensor not in self.state):
            name = f"{len(changed)} of them" if len(changed) > 1 else f"'{changed[0]}'"
            self._enter(Step(name, BACK, changed, self.figures.decibels - before.decibels, self.figures))

    def _change_back(self, tensors: list[str]) -> None:
        """Changes operators back together, or else each half, where all bounds hold and the file does not grow."""
        changed = [tensor for tensor in tensors if tensor in self.state]
        if not changed or self.networks.exhausted or not self.bounds.of_fidelity:
            return
        state = {tensor: name for tensor, name in self.state.items() if tensor not in changed}
        log(DEBUG, "", extra={"begins": f"{shown(self.figures, self.bounds.metric)}, network {self._count() + 1}"})
        after = self.networks.of(state)
        if after is not None and self.bounds.hold(after) and after.bytes <= self.figures.bytes:
            self.state, self.figures = state, after
        elif len(changed) > 1:
            middle = len(changed) // 2
            self._change_back(changed[:middle])
            self._change_back(changed[middle:])
