"""Minimum cuts against all assignments, and how long a large one takes."""

from __future__ import annotations

import itertools
import random

import pytest

from tflq.tools.quantize.solver.solution import ONE, ZERO, Cut


@pytest.mark.parametrize("seed", range(20))
def test_the_least_of_all_assignments(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(20):
        count = draw.randint(1, 7)
        names = range(2, count + 2)
        costs = [(draw.choice([ONE, *names]), draw.choice([ZERO, *names]), draw.randint(0, 9)) for _ in range(12)]

        def cost(values: tuple[int, ...], costs: list[tuple[int, int, int]] = costs) -> int:
            return sum(amount for x, y, amount in costs if values[x] and not values[y])

        cut = Cut()
        assert [cut.variable() for _ in range(count)] == list(names)
        for x, y, amount in costs:
            cut.cost(x, y, amount)
        solved = cut.solve()
        every = [(1, 0, *values) for values in itertools.product((0, 1), repeat=count)]
        least = min(map(cost, every))
        assert (solved[ONE], solved[ZERO]) == (True, False)
        assert cost(tuple(map(int, solved))) == cut.least == least
        assert sum(solved) == min(sum(values) for values in every if cost(values) == least)


def test_a_cost_between_the_given_values_is_always_paid() -> None:
    cut = Cut()
    cut.cost(ONE, ZERO, 5)
    cut.cost(ZERO, ONE, 7)
    assert cut.solve() == [True, False]
    assert cut.least == 5


def test_a_chain_of_many_variables() -> None:
    """One way of 20,000 steps, whose cheapest step is the cut."""
    cut = Cut()
    chain = [ONE, *(cut.variable() for _ in range(20_000)), ZERO]
    for place, (x, y) in enumerate(itertools.pairwise(chain)):
        cut.cost(x, y, 3 if place == 12_345 else 10)
    solved = cut.solve()
    assert cut.least == 3
    assert sum(solved) == 12_346
