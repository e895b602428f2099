"""Delta debugging."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tflq.tools.debug.reduction import minimize


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), min_size=1))))
def test_what_is_needed_is_left_in_order(case: tuple[int, set[int]]) -> None:
    count, needed = case
    tried: list[tuple[int, ...]] = []

    def fails(part: Sequence[int]) -> bool:
        tried.append(tuple(part))
        return needed <= set(part)

    assert minimize(range(count), fails) == sorted(needed)
    assert len(set(tried)) == len(tried)


def test_one_of_many_takes_few() -> None:
    tried = []

    def fails(part: Sequence[int]) -> bool:
        tried.append(part)
        return 700 in part

    assert minimize(range(1000), fails) == [700]
    assert len(tried) <= 20


def test_any_of_two_is_enough() -> None:
    assert len(minimize(range(9), lambda part: not {2, 7}.isdisjoint(part))) == 1
