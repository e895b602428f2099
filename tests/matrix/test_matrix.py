"""A bounded part of the random models: each conversion equals its original. `scripts/matrix.py` runs more."""

from __future__ import annotations

import pytest

from matrix import GENERATORS
from matrix.run import case_of, run

COUNT = 12
OTHERS = ("BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO")


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERATORS)
def test_conversion_equals_original(name: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    ran = 0
    for number in range(COUNT):
        case = case_of(name, number)
        outcome = run(case, OTHERS if number % 4 == 0 else ())
        assert outcome.kind in ("ok", "skipped"), f"{name} {number}: {outcome.kind}: {outcome.detail}\n{case.text}"
        ran += outcome.kind == "ok"
    assert ran, f"the interpreter refuses every original of {name}"
