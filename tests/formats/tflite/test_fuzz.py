"""Mutated models, a few seconds of them: a module or `InvalidModelError`, never anything else (`scripts/fuzz.py`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scripts import fuzz, fuzz_mutants

ROOT = Path(__file__).resolve().parents[3]
COUNT = 600


def seeds() -> list[Path]:
    return sorted((ROOT / "models").glob("*.tflite"))[:10]


@pytest.mark.slow
def test_mutants_are_modules_or_one_clear_error() -> None:
    outcome = fuzz.run(seeds(), 7, range(COUNT))
    assert outcome.failures == []
    assert sum(outcome.counts.values()) == COUNT
    assert min(outcome.counts["accepted"], outcome.counts["refused"]) > COUNT // 20


def test_a_mutant_is_the_same_every_time() -> None:
    models = [path.read_bytes() for path in seeds()]
    first, again = ([fuzz_mutants.mutant(models, 3, number) for number in range(30)] for _ in range(2))
    assert first == again
    assert len(set(first)) > 20


def test_a_finding_is_reported_and_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception that is not the reader's, and a hang: both are said with their number, and the rest still runs."""
    reports: list[dict[str, Any]] = []

    def examine(data: bytes) -> str:
        number = reports[-1]["number"]
        if number == 1:
            raise KeyError("reader")
        while number == 2:
            pass
        return "refused"

    monkeypatch.setattr(fuzz, "examine", examine)
    monkeypatch.setattr(fuzz, "SECONDS", 0.2)
    fuzz.work(fuzz.Job([str(path) for path in seeds()], 7, 0, 4), reports.append)
    results = [(*report["counts"], *report["findings"]) for report in reports if "counts" in report]
    assert [result[-1].split(":")[0] for result in results] == ["refused", "KeyError", "TimeoutError", "refused"]


@pytest.mark.slow
def test_a_dead_worker_is_replaced(tmp_path: Path) -> None:
    outcome = fuzz.run([tmp_path / "missing.tflite"], 7, range(2))
    assert outcome.counts["died"] == 2
    assert all("FileNotFoundError" in what for _, what in outcome.failures)
