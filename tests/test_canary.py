"""The canary's verdicts: an interpreter by its kernels, and results that no kernel set gives."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from matrix.run import case_of

from scripts import canary
from tflq.numerics.kernel_sets import NAMES, NEWEST

ROOT = Path(__file__).resolve().parents[1]
NUMBERS = (5, 38)
"""Of LEAKY_RELU, whose models tell sets apart."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[canary.Sample]:
    folder = tmp_path_factory.mktemp("canary")
    samples = [canary.sample_of(case_of("leaky_relu", n), folder, f"leaky-{n}") for n in NUMBERS]
    return [sample for sample in samples if sample is not None]


def test_an_interpreter_is_the_sets_whose_results_it_gives(models: list[canary.Sample], tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    assert all(set(sample.results) == set(NAMES) for sample in models)
    for resolver, family in canary.FAMILIES.items():
        found = canary.answer(Path(sys.executable), resolver, models, tmp_path)
        assert found.ran == len(models)
        assert not found.new
        assert NEWEST[family] in found.sets
        assert canary.verdict("newest", resolver, found)[1]
    reference = canary.answer(Path(sys.executable), "reference", models, tmp_path)
    assert "reference-2.4-dev" not in reference.sets


def test_results_of_no_set_are_new(models: list[canary.Sample], tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    changed: dict[str, Path | None] = {}
    for name, file in models[0].results.items():
        assert file is not None
        with np.load(file) as arrays:
            results = {key: arrays[key].copy() for key in arrays}
        next(iter(results.values())).flat[0] ^= 1
        changed[name] = tmp_path / file.name
        np.savez(tmp_path / file.name, **results)
    found = canary.answer(Path(sys.executable), "reference", [models[0]._replace(results=changed)], tmp_path)
    assert found.new == {"LEAKY_RELU": 1}
    text, fine = canary.verdict("nightly", "reference", found)
    assert (text, fine) == ("new, models that agree with no set: LEAKY_RELU (1)", False)


@pytest.mark.parametrize(
    ("name", "differing", "fine"),
    [
        ("newest", {"reference-2.3": 0, "reference-2.4-dev": 3}, True),
        ("newest", {"reference-2.3": 3, "reference-2.4-dev": 0}, False),
        ("nightly", {"reference-2.3": 3, "reference-2.4-dev": 0}, True),
        ("nightly", {"reference-2.3": 3, "reference-2.4-dev": 1}, False),
    ],
)
def test_a_release_is_the_newest_set(name: str, differing: dict[str, int], fine: bool) -> None:
    assert canary.verdict(name, "reference", canary.Answer(9, Counter(differing), Counter()))[1] == fine
    assert not canary.verdict(name, "reference", canary.Answer(0, Counter(differing), Counter()))[1]


def test_the_workflow_runs_it() -> None:
    workflow = (ROOT / "examples" / "github-actions-canary.yml").read_text("utf-8")
    assert "make canary SEED=" in workflow
    assert "scripts/canary.py --seed $(SEED)" in (ROOT / "Makefile").read_text("utf-8")
