"""A few of the random graphs: nothing is lost at other sizes. `make drop-ins` examines 200."""

from __future__ import annotations

import pytest

from resizing.examine import examine

SEED = 20
COUNT = 20


@pytest.mark.slow
@pytest.mark.long
def test_nothing_is_lost_at_other_sizes() -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    ran = numbers = 0
    for number in range(COUNT):
        result = examine(SEED, number)
        assert not any(result.lost.values()), f"{number}: {result.lost}\n{result.text}"
        ran += result.runs > 2
        numbers += not result.announced
    assert ran > COUNT * 3 // 4
    assert numbers > COUNT // 2
