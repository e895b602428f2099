"""The measure of kernel sets: how many models, converted under a name, equal their original."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.harness import argument, one_op

from scripts import kernel_sets
from tflq.ir.types import UniformQuantizedType, i8
from tflq.tools.verify.kernels import probe


def leaky(folder: Path) -> None:
    """A model that XNNPACK computes otherwise, and inputs for it."""
    x, y = (argument((1, 256), UniformQuantizedType.of(i8, s, 0), n) for s, n in ((0.5, "x"), (0.75, "y")))
    (folder / "leaky.tflite").write_bytes(one_op("tfl.leaky_relu", [x], [y], {"alpha": 0.3}))
    np.savez(folder / "leaky.npz", in0=np.arange(-128, 128).astype(np.int8)[None])


def test_models_are_counted_by_outcome(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    leaky(tmp_path)
    (tmp_path / "none.tflite").write_bytes(b"none")
    kernel_sets.main(["xnnpack-2.3", str(tmp_path), "--form", "integer", "--json", str(tmp_path / "out.json")])
    text = capsys.readouterr().out
    assert "xnnpack-2.3 integer: 1 of 2 equal" in text
    assert "xnnpack-2.3 integer: 1 of 2 refused" in text
    assert "xnnpack-2.3 original: 1 of 2 has other results on the reference kernels" in text
    outcomes = json.loads((tmp_path / "out.json").read_text())
    assert outcomes[str(tmp_path / "leaky.tflite")]["integer"] == {"outcome": "equal", "warnings": []}


def test_another_interpreters_numbers_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    (tmp_path / "probe.tflite").write_bytes(probe())
    kernel_sets.main(["reference-1.0", str(tmp_path), "--form", "integer"])
    assert "probe.tflite integer: differs: 1 threads:" in capsys.readouterr().out


def test_results_compare_in_every_bit(tmp_path: Path) -> None:
    first, second = tmp_path / "a.npz", tmp_path / "b.npz"
    np.savez(first, **{"0 0": np.asarray([1.0, np.nan])})
    for array, words in (
        (np.asarray([1.0, np.nan]), ""),
        (np.asarray([2.0, np.nan]), "1 of 2 elements of output 0 0 differ, by 1 at most"),
        (np.asarray([1.0]), "output 0 0 is float64 (1,) instead of float64 (2,)"),
    ):
        np.savez(second, **{"0 0": array})
        assert kernel_sets.difference(first, second) == words
