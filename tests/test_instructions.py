"""No change slows conversions or the start of a process unseen: their instructions are held to a budget."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

COMMAND = Path(__file__).resolve().parents[1] / "benchmarks" / "instructions.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "forms", "counts"),
    [
        ("cnn_int8", ["tflite", "tosa", "float32", "onnx"], 5),
        pytest.param("mobilenet_v2_1.0_224_quant", ["tflite", "tosa"], 2, marks=pytest.mark.long),
        pytest.param("mobilenet_v2_1.0_224_quant", ["float32", "onnx"], 2, marks=pytest.mark.long),
        pytest.param("tf2_mobilenet_v2_1.0_224_ptq", ["tflite", "tosa"], 2, marks=pytest.mark.long),
        pytest.param("tf2_mobilenet_v2_1.0_224_ptq", ["float32", "onnx"], 2, marks=pytest.mark.long),
    ],
)
def test_conversions_and_the_start_keep_to_their_budget(network: str, forms: list[str], counts: int) -> None:
    """The start is counted with the small network."""
    command = [sys.executable, str(COMMAND), network, "--forms", *forms]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if "SKIPPED" in run.stdout:
        pytest.skip(run.stdout.partition("SKIPPED: ")[2].splitlines()[0])
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("| met |") == counts, run.stdout


ORDINARY = {"CONFIG_ARGS": "'--enable-shared'", "PY_CORE_CFLAGS": "-O3 -Wall", "PGO_PROF_USE_FLAG": "-fprofile-use"}


@pytest.mark.parametrize(
    ("said", "optimised"),
    [
        (ORDINARY, False),
        (ORDINARY | {"CONFIG_ARGS": "'--enable-optimizations' '--with-lto'"}, True),
        (ORDINARY | {"PY_CORE_CFLAGS": "-O2 -fprofile-use -fprofile-correction"}, True),
        (ORDINARY | {"CONFIG_ARGS": "'--with-system-ffi'", "PGO_PROF_USE_FLAG": ""}, True),  # Debian
        ({}, False),  # Windows says nothing
    ],
)
def test_whether_python_was_built_with_profiles(said: dict[str, Any], optimised: bool) -> None:
    assert runpy.run_path(str(COMMAND.parent / "claims.py"))["is_optimised"](said) is optimised
