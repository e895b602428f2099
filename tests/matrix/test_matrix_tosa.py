"""A bounded part of the random models through TOSA. `scripts/matrix.py --tosa` runs more."""

from __future__ import annotations

from pathlib import Path

import pytest

from matrix import GENERATORS
from matrix.run import case_of
from matrix.run_tosa import INTEGER, run_tosa

FLOAT = {"dequantize", "float_edges", "quantize"}
"""Models that a device without floats cannot have."""

NOT_RUN = {
    *("unique", "where", "where_real"),  # results of a size that TOSA does not know
    *(
        "float_lstm",
        "float_both_ways_lstm",
        "hybrid_lstm",
        "hybrid_both_ways_lstm",
        "hashtable_lookup",
    ),  # TOSA has no form
    *("hybrid_svdf", "hybrid_rnn", "hybrid_sequence_rnn", "hybrid_both_ways_rnn"),  # the kernels quantize activations
}
"""Generators that may have nothing to compare."""


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERATORS)
def test_tosa_equals_original(name: str, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
    target = tmp_path / "integer.toml"
    target.write_text(INTEGER)
    narrow = None if name in FLOAT else target
    kinds = []
    for number, device, strict, back in ((40, narrow, True, False), (41, None, False, True), (42, narrow, False, True)):
        case = case_of(name, number)
        outcome = run_tosa(case, target=device, strict=strict, back=back)
        assert outcome.kind in ("ok", "skipped", "refused"), (
            f"{name} {number}: {outcome.kind}: {outcome.detail}\n{case.text}"
        )
        kinds.append(outcome.kind)
    assert name in NOT_RUN or "ok" in kinds, f"nothing of {name} was run"
