"""What an operator becomes is read in tests/golden; here it is compared with what the code makes of it today."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.golden import CASES, FOLDER, Case, q8, text_of

from tflq.dialects import tfl


def _held(family: str) -> list[str]:
    text = Path(FOLDER / f"{family}.mlir").read_text(encoding="utf-8")
    return ["// ===== " + part for part in text.removeprefix("// ===== ").split("\n// ===== ")]


@pytest.mark.parametrize("family", CASES)
def test_an_operator_becomes_what_the_golden_text_says(family: str) -> None:
    held = _held(family)
    assert len(held) == len(CASES[family]), f"write tests/golden/{family}.mlir again: scripts/make_golden.py"
    for case, text in zip(CASES[family], held, strict=True):
        assert text_of(case).rstrip() == text.rstrip(), f"{family}, {case.title}: see scripts/make_golden.py"


def test_golden_text_has_a_family_each_and_no_other() -> None:
    assert {path.stem for path in FOLDER.glob("*.mlir")} == set(CASES)


def test_every_family_of_operators_has_golden_text() -> None:
    declared = Path(tfl.__file__).parent.glob("[a-z]*.py")
    assert {path.stem for path in declared} <= set(CASES)


def test_another_multiplier_is_another_text() -> None:
    case = CASES["arithmetic"][0]
    other = Case(case.title, case.op, [case.operands[0], q8((1, 8), 0.03, -20, "y")], case.results, case.attributes)
    assert text_of(other) != text_of(case)
