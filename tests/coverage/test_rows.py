"""Every row of the coverage table is held to its claim: its model is converted and run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from harness import edge_inputs, interpret

import tflq
from tflq.coverage import CoverageRow, coverage, samples
from tflq.targets import load_target

MODELS = dict(samples())
GROUPS = sorted({key.partition(" ")[0] for key in MODELS})
WITHOUT_REFERENCE = {"CEIL", "ELU", "ROUND", "SEGMENT_SUM", "SUM"}
"""Operators that the reference resolver lacks, and SUM, whose reference kernel gives a constant."""
DIVISIONS = {"DIV", "FLOOR_DIV", "FLOOR_MOD"}
PATHS = {"kept", "integer", "table", "float", "refused"}


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, CoverageRow]]:
    """The rows of each target by their samples' names."""
    return {name: {row.key: row for row in coverage(load_target(name))} for name in ("integer", "kernels")}


@pytest.mark.parametrize("target", ["integer", "kernels"])
@pytest.mark.parametrize("name", GROUPS)
def test_rows_are_what_they_claim(name: str, target: str, rows: dict[str, dict[str, CoverageRow]]) -> None:
    for key, model in MODELS.items():
        if key.partition(" ")[0] == name:
            _hold(rows[target][key], model, target)


def _hold(row: CoverageRow, model: bytes, target: str) -> None:
    assert row.path in PATHS
    if row.path == "refused":
        assert row.reason
        with pytest.raises(tflq.TflqError):
            tflq.convert(model, target=target)
        return
    if row.path == "float":
        assert row.reason
    converted = tflq.convert(model, target=target).data
    batches = _batches(row, model)
    resolver = "BUILTIN_REF" if row.operator not in WITHOUT_REFERENCE else "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
    got = interpret(converted, batches, resolver)
    try:
        wanted = interpret(model, batches, resolver)
    except RuntimeError:  # no interpreter has such a kernel: the conversion gives it one
        return
    if row.path != "float":
        for ws, gs in zip(wanted, got, strict=True):
            for w, g in zip(ws, gs, strict=True):
                np.testing.assert_array_equal(g, w, err_msg=row.key)


def _batches(row: CoverageRow, model: bytes) -> list[list[np.ndarray]]:
    """Inputs for the row; divisors, stored and real, are not zero, at which kernels stop."""
    inputs = tflq.read(model).main.inputs
    batches = edge_inputs(inputs)
    if row.operator in DIVISIONS:
        zeros = [0, inputs[1].type.element.zero_point]  # type: ignore[union-attr]
        for batch in batches:
            batch[1] += np.isin(batch[1], zeros).astype(batch[1].dtype)
    return batches


def test_the_page_is_current() -> None:
    from importlib.util import module_from_spec, spec_from_file_location

    root = Path(__file__).resolve().parents[2]
    spec = spec_from_file_location("make_coverage", root / "scripts" / "make_coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (root / "docs" / "coverage.md").read_text(encoding="utf-8") == module.page(), (
        "make it anew: make_coverage.py"
    )
