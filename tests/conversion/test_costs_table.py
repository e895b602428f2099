"""The table of costs in README.md: how it is made, and that it is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from scripts.marked import marked, replaced
from tflq.base.errors import UnsupportedError

ROOT = Path(__file__).resolve().parents[2]


def script() -> Any:
    from benchmarks import costs

    return costs


def test_medians_and_the_worst() -> None:
    costs = script()
    integer, *_, tosa = costs.FORMS
    rows = [{integer: costs.Ratios(time, 2.0, arena)} for time, arena in ((3.0, 1.5), (None, None), (7.0, 1.0))]
    rows[0][tosa] = costs.Ratios(None, 1.5, None)
    lines = costs.block(rows).splitlines()
    assert "of 3 quantized networks" in lines[0]
    assert lines[5] == f"| {integer} | ×5, worst ×7 | ×2, worst ×2 | ×1.2, worst ×1.5 |"
    assert lines[-1] == f"| {tosa} | its compiler's | ×1.5, worst ×1.5 | its compiler's |"


def test_a_table_goes_between_its_marks() -> None:
    text = "before\n<!-- costs: begin -->\nold\n<!-- costs: end -->\nafter\n"
    assert marked(text, "costs") == "old\n"
    assert replaced(text, "costs", "new\n") == text.replace("old", "new")
    with pytest.raises(ValueError, match="no place for the table"):
        replaced(text, "other", "new\n")


def test_the_reason_of_a_refusal_is_the_networks_own() -> None:
    """Not that it has no batch to bind."""
    with pytest.raises(UnsupportedError, match="does not take"):
        script().converted(ROOT / "models" / "cnn_int16x8.tflite", {"target": "portable"})


def test_the_readme_has_it() -> None:
    costs = script()
    table = marked((ROOT / "README.md").read_text(encoding="utf-8"), "costs")
    for form in costs.FORMS:
        (row,) = [line for line in table.splitlines() if line.startswith(f"| {form} |")]
        assert re.findall(r"×[\d.]+, worst ×[\d.]+|its compiler's", row), row


@pytest.mark.slow
def test_a_network_is_measured(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    monkeypatch.setattr("tflq.tools.verify.timing.TURNS", 3)
    costs = script()
    assert costs.measured(models / "pad.tflite") == "no quantized network"
    found = costs.measured(models / "cnn_int8.tflite")
    assert list(found) == list(costs.FORMS)
    integer, *_, kernels, tosa = found.values()
    assert integer.time > 2 > kernels.time
    assert (round(integer.file, 1), round(integer.arena, 1)) == (9.5, 5.8)
    assert tosa.time is tosa.arena is None
