"""A few of the unreasonable models: what the interpreter runs is converted, and equal, or announced.

`scripts/unreasonable.py` runs more.
"""

from __future__ import annotations

import pytest
from support.harness import in_child

from matrix.unreasonable import FAILURES, OPERATORS, Subject, Verdict, subject
from matrix.unreasonable.judge import judged, runs
from matrix.unreasonable.twist import SCALES

COUNT = 2


def _verdicts(drawn: Subject, dead: bool) -> list[Verdict]:
    return list(judged(drawn, ("integer", "kernels"), lambda _: None, dead))


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS)
def test_equal_or_announced(operator: str) -> None:
    for number in range(COUNT):
        drawn = subject(operator, number)  # here: a child that died would begin by trying all generators again
        try:
            dead = not in_child(runs, drawn)
        except RuntimeError:
            dead = True
        try:
            verdicts = in_child(_verdicts, drawn, dead)
        except RuntimeError:
            assert dead, f"{operator}:{number}: the interpreter dies of the conversion alone"
            continue
        for verdict in verdicts:
            words = f"{operator}:{number} {verdict.target} {verdict.kind}: {verdict.detail}"
            assert verdict.kind not in FAILURES, f"{words}\n{drawn.text}"


def test_draws_are_the_same_in_every_run() -> None:
    first, second = (subject("add", 3, seed=5) for _ in range(2))
    assert first.model == second.model
    assert all(
        (a == b).all() for x, y in zip(first.batches, second.batches, strict=True) for a, b in zip(x, y, strict=True)
    )


@pytest.mark.slow
@pytest.mark.long
def test_every_operator_is_drawn() -> None:
    for operator in OPERATORS:
        assert operator in subject(operator, 0).text


@pytest.mark.slow
@pytest.mark.long
def test_scales_reach_from_zero_to_infinity() -> None:
    texts = " ".join(subject("relu", number).text for number in range(200))
    assert min(SCALES) == 0.0
    assert all(f":{scale:.4g}:" in texts for scale in (0.0, float("inf"), 1e-38, 1e38))
