"""Mutated TOSA graphs: a module, `InvalidModelError` or `UnsupportedError`, never anything else (`scripts/fuzz.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.one_op import CASES

from scripts import fuzz
from tflq.formats.tosa.write import tosa_bytes

ROOT = Path(__file__).resolve().parents[4]
COUNT = 600
SEEDS = ("conv2d i8", "rescale unsigned", "slice", "while_loop", "variable", "clamp f32", "constants", "conv2d i4")


@pytest.mark.slow
def test_mutants_are_modules_or_one_clear_error(tmp_path: Path) -> None:
    seeds = []
    for name in SEEDS:
        seeds.append(tmp_path / f"{name.replace(' ', '_')}.tosa")
        seeds[-1].write_bytes(tosa_bytes(CASES[name]()))
    outcome = fuzz.run(seeds, 7, range(COUNT))
    assert outcome.failures == []
    assert sum(outcome.counts.values()) == COUNT
    assert min(outcome.counts["accepted"], outcome.counts["refused"]) > COUNT // 20
