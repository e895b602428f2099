"""No change slows conversions or the start of a process unseen: their instructions are held to a budget."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(__file__).resolve().parents[1] / "benchmarks" / "instructions.py"


def test_a_small_conversion_and_the_start_keep_to_their_budget() -> None:
    run = subprocess.run([sys.executable, str(COMMAND), "cnn_int8"], capture_output=True, text=True, check=False)
    if "SKIPPED" in run.stdout:
        pytest.skip(run.stdout.partition("SKIPPED: ")[2].splitlines()[0])
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("| met |") == 3, run.stdout
