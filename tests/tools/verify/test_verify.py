"""Two models in the interpreter, compared: equal ones, different ones, and ones that take the interpreter down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflq
from tflq.cli.main import run
from tflq.ir.ops import Buffer
from tflq.tools.verify.tflite_runner import TfliteRunner

pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")


def changed_weights(path: Path) -> bytes:
    """The model with every weight of its third operator changed."""
    module = tflq.read(path)
    weights = module.main.ops[2].operand(1)
    assert weights.buffer is not None
    weights.buffer = Buffer(weights.buffer.data ^ np.uint8(0x20))
    return tflq.write(module)


def test_a_model_equals_itself(models: Path) -> None:
    result = tflq.verify(models / "cnn_int8.tflite", models / "cnn_int8.tflite", layers=True)
    assert (result.verdict, result.failures, result.interface) == ("equal", [], [])
    assert [run.inputs for run in result.runs] == ["random 0", "random 1", "minimum", "maximum", "zero point"]
    assert result.layers is not None
    assert (result.layers.compared, result.layers.results, result.layers.missing) == (9, 9, ())
    assert result.interpreter


def test_results_that_no_tensor_of_the_other_model_has_are_named(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = tflq.read(models / "cnn_int8.tflite")
    renamed = module.main.ops[3].results[0]
    was, renamed.name = renamed.name, "elsewhere"
    tflq.write(module, tmp_path / "b.tflite")
    command = ["verify", str(models / "cnn_int8.tflite"), str(tmp_path / "b.tflite"), "--layers", "--seeds", "1"]
    assert run(command) == 0
    out = capsys.readouterr().out
    assert "8 of 9 operator results compared, all equal" in out
    assert f"not compared, as the second model has no tensor of that name: ADD 3 '{was}'" in out


def test_the_first_diverging_tensor_is_named(models: Path) -> None:
    path = models / "cnn_uint8.tflite"
    result = tflq.verify(path, changed_weights(path), layers=True)
    assert result.verdict == "differs"
    assert result.layers is not None
    first = result.layers.first
    assert first is not None
    assert (first.operator, first.opcode, first.tensor) == (2, "CONV_2D", "pointwise")
    assert first.difference.unit == "LSB"
    document = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert (document["format"], document["version"], document["verdict"]) == ("tflq.verification", 1, "differs")
    assert document["layers"]["diverging"][0]["tensor"] == "pointwise"


def test_every_signature_runs(models: Path) -> None:
    path = models / "two_signatures.tflite"
    result = tflq.verify(path, path.read_bytes(), seeds=1, layers=True)
    assert result.equal
    assert set(result.outputs) == {("", "PartitionedCall:0"), ("classify", "scores"), ("embed", "features")}
    assert result.layers is not None
    assert (result.layers.compared, result.layers.results) == (14, 14)


def test_batch(models: Path) -> None:
    path = models / "two_signatures.tflite"
    result = tflq.verify(path, path, seeds=1, batch=3)
    assert result.equal
    assert {key: d.elements for key, d in result.outputs.items()}["classify", "scores"] == 4 * 3 * 10


def test_given_inputs(models: Path) -> None:
    path = models / "pad.tflite"
    result = tflq.verify(path, path, inputs={"x": np.ones((2, 2), np.int8)})
    assert [(run.inputs, run.entry) for run in result.runs] == [("given", "")]
    assert result.equal
    with pytest.raises(tflq.TflqError, match=r"is int8, and the sample of .* is uint8"):
        tflq.verify(path, path, inputs={"x": np.ones((2, 2), np.uint8)})


def test_the_interface_counts(models: Path) -> None:
    result = tflq.verify(models / "add_per_axis.tflite", models / "pad.tflite")
    assert result.verdict == "nothing comparable"
    result = tflq.verify(models / "split.tflite", models / "pad.tflite")
    assert result.verdict == "differs"
    assert "outputs are 'y' instead of 'part0', 'part1', 'part2'" in result.interface
    assert "input 'x': shape is [2, 2] instead of [1, 4, 9, 2]" in result.interface


def test_an_abort_is_a_result_that_names_the_model(models: Path) -> None:
    path = models / "add_per_axis.tflite"
    result = tflq.verify(path, path)
    assert result.verdict == "nothing comparable"
    assert result.reason == f"{path}: the original does not run: the interpreter's process aborted (SIGABRT)"
    result = tflq.verify(models / "pad.tflite", path)
    assert (result.verdict, result.reason) == ("failed", "")
    assert result.failures == [f"{path}: the interpreter's process aborted (SIGABRT)"]


def test_what_is_no_model_is_refused(models: Path) -> None:
    with pytest.raises(tflq.InvalidModelError, match=r"^<bytes>: this is a text"):
        tflq.verify(models / "pad.tflite", b"this is no model, and too short")


def test_a_timeout_is_a_result(models: Path) -> None:
    result = tflq.verify(models / "pad.tflite", models / "pad.tflite", timeout=0.001)
    assert result.verdict == "nothing comparable"
    assert "no answer in 0.001 s" in result.reason


def test_no_such_file() -> None:
    with pytest.raises(tflq.TflqError, match=r"nowhere\.tflite: there is no such file"):
        tflq.verify("nowhere.tflite", "nowhere.tflite")


def test_without_an_interpreter(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ai_edge_litert", "tensorflow"):
        (tmp_path / f"{name}.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(tflq.TflqError, match=r"pip install '\.\[verify\]'"):
        TfliteRunner(str(models / "pad.tflite"), "reference", 60)


def test_differences_that_are_accepted(models: Path) -> None:
    path = models / "cnn_uint8.tflite"
    other = changed_weights(path)
    exact = tflq.verify(path, other)
    largest = max(found.largest for found in exact.outputs.values() if found.unit == "LSB")
    assert (exact.verdict, exact.passed) == ("differs", False)
    accepted = tflq.verify(path, other, max_lsb=largest, atol=1e9)
    assert (accepted.verdict, accepted.passed, accepted.equal) == ("accepted", True, False)
    assert tflq.verify(path, other, max_lsb=largest - 1, atol=1e9).verdict == "differs"


def test_an_output_that_is_listed_twice(models: Path, tmp_path: Path) -> None:
    module = tflq.read(models / "pad.tflite")
    module.main.outputs = [module.main.outputs[0]] * 2
    module.signatures = None
    source = tmp_path / "twice.tflite"
    tflq.write(module, source)
    for suffix in ("tflite", "tosa"):
        if suffix == "tosa":
            pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
        tflq.convert(source, tmp_path / f"out.{suffix}")
        result = tflq.verify(source, tmp_path / f"out.{suffix}", layers=True)
        assert (result.verdict, result.interface) == ("equal", [])


def test_a_seed_gives_other_random_sets(models: Path) -> None:
    path = models / "cnn_uint8.tflite"
    other = changed_weights(path)
    found = [tflq.verify(path, other, seeds=1, seed=seed).runs[0].outputs[0][1] for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("option", [{"seeds": -1}, {"batch": 0}, {"max_lsb": -1}, {"rtol": float("nan")}, {"seed": -1}])
def test_options_out_of_range(models: Path, option: dict[str, Any]) -> None:
    with pytest.raises(tflq.OptionError, match=next(iter(option))):
        tflq.verify(models / "pad.tflite", models / "pad.tflite", **option)
