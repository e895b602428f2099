"""Targets that have a part of the measured kernels: random models come to them by exact rescales, or are lowered, and
give the same either way."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from matrix.run import case_of, run

from tflq.base.files import resource

MEASURED = tomllib.loads(Path(resource("rules/kernels.toml")).read_text(encoding="utf-8"))["kernels"]
NARROW: dict[str, Callable[[str], bool]] = {
    "int8 alone": lambda line: "qi8" in line and "qui8" not in line and "qi16" not in line,
    "uint8 alone": lambda line: "qui8" in line and "qi8" not in line and "qi16" not in line,
    "int16 alone": lambda line: "qi16" in line and "qui8" not in line,
    "per layer": lambda line: "/axis" not in line,
}
GENERATORS = (
    *("chain", "signatures", "control_if", "binary", "softmax", "quantize", "comparison", "reshape", "strided_slice"),
    *("concatenation", "split", "gather", "diagonal", "pool", "conv_2d", "depthwise_conv_2d", "transpose_conv"),
    *("fully_connected", "reduce", "batch_matmul", "variables"),
)


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The file of each narrow target."""
    folder, paths = tmp_path_factory.mktemp("targets"), {}
    for name, fits in NARROW.items():
        lists = {kernel: [lines] if isinstance(lines, str) else lines for kernel, lines in MEASURED.items()}
        lines = [f"{kernel} = {json.dumps([x for x in found if fits(x)])}" for kernel, found in lists.items()]
        path = folder / f"{name}.toml"
        path.write_text("[kernels]\n" + "\n".join(lines))
        paths[name] = str(path)
    return paths


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("target", NARROW)
def test_random_models(name: str, target: str, targets: dict[str, str]) -> None:
    for number in range(3):
        case = replace(case_of(name, number, seed=11), conversion={"target": targets[target]}, everywhere=False)
        outcome = run(case)
        assert outcome.kind in ("ok", "skipped"), (number, outcome, case.text)
