"""Faults planted in conversions of real networks are found, in at most three operators."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.corpus import CORPUS
from support.planted import FAULTS, Fault, plant

from tflq.tools.debug.reduction import reduce

pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "network", "kind", "operators"),
    [
        pytest.param(*row, id=row[0].__name__, marks=() if row[1].startswith("models") else pytest.mark.corpus)
        for row in FAULTS
    ],
)
def test_a_fault_is_found(
    fault: Fault, network: str, kind: str, operators: int, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = models.parent / network if network.startswith("models") else CORPUS / network
    if not path.exists():
        pytest.skip(f"NO CORPUS at {CORPUS}: set TFLQ_CORPUS to the folder of models")
    plant(fault, monkeypatch)
    found = reduce(path)
    assert found is not None
    assert found.kind.startswith(kind)
    assert len(found.operators) == operators <= 3
    assert len(found.data) < path.stat().st_size
