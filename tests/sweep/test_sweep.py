"""A sweep from end to end, on tiny models."""

from __future__ import annotations

from pathlib import Path

import pytest

from tflq.cli.main import run
from tflq.errors import OptionError
from tflq.sweep import Plan, Selection, read_results, sweep


def test_a_folder_gives_a_line_per_model_and_target(models: Path, tmp_path: Path) -> None:
    plan = Plan([models], tmp_path / "out", ["integer", "tosa"], Selection(("cnn_int8", "/pad")))
    outcome = sweep(plan)
    results = {(r["id"], r["target"]): r for r in read_results(tmp_path / "out")}
    assert set(results) == {(f"models/{name}", t) for name in ("cnn_int8", "pad") for t in ("integer", "tosa")}
    assert all(r["status"] == "ok" and r["expected"] for r in results.values())
    assert outcome.summary.unexpected == 0
    assert not outcome.failed
    found = results["models/cnn_int8", "integer"]
    assert found["operators"]["paths"]["CONV_2D"] == {"integer": 3}
    assert found["static"]["kept"]
    assert found["verification"]["inputs"] == ["random 0", "random 1", "minimum", "maximum", "zero point"]
    assert found["xnnpack"]["verdict"] == "equal"
    assert found["peak_bytes"] > 1 << 20
    assert found["fingerprint"]["model"] == found["model"]["sha256"]
    assert not (tmp_path / "out" / "artifacts").exists()
    assert (tmp_path / "out" / "index.html").exists()


def test_results_are_replaced_only_by_force(models: Path, tmp_path: Path) -> None:
    plan = Plan([models / "pad.tflite"], tmp_path)
    sweep(plan)
    with pytest.raises(OptionError, match="--resume"):
        sweep(plan)


def test_the_command_line_exits_with_5_for_the_unexpected(models: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.tflite"
    broken.write_bytes((models / "pad.tflite").read_bytes()[:100])
    assert run(["sweep", str(models / "pad.tflite"), "-o", str(tmp_path / "a"), "--no-cache"]) == 0
    assert run(["sweep", str(broken), "-o", str(tmp_path / "b"), "--no-cache"]) == 5
    (result,) = read_results(tmp_path / "b")
    assert result["status"] == "invalid"
