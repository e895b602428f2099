"""A sweep from end to end, on tiny models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.harness import argument, const
from support.sweeps import stable

import tflq
from tflq.base.errors import OptionError
from tflq.cli.main import run
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op
from tflq.ir.types import UniformQuantizedType, i8, i32
from tflq.tools.sweep.store import Selection, read_results
from tflq.tools.sweep.sweeping import Plan, sweep


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


def test_results_are_the_same_wherever_they_come_from(tmp_path: Path) -> None:
    """Also where other kernels than the reference ones run operators, of which differences are expected."""
    x, halves = argument((1, 4, 8), UniformQuantizedType.of(i8, 0.1, 3)), UniformQuantizedType.of(i8, 0.5, -2)
    sums, ops = [], []
    for name, axis in (("rows", 1), ("columns", 2)):
        axes = const(np.array([axis], np.int32), i32, f"{name}/axes")
        sums.append(argument((1, 8) if axis == 1 else (1, 4), halves, name))
        ops.append(Op("tfl.sum", [x, axes], [sums[-1]], {"keep_dims": False}, info={"version": 2}))
    model = tflq.write(Module([Function("main", [x], sums, ops)]))
    found = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sum.tflite").write_bytes(model)
        sweep(Plan([tmp_path / name / "sum.tflite"], tmp_path / name / "out"))
        found.append(stable(next(iter(read_results(tmp_path / name / "out")))))
        del found[-1]["model"]["place"]
    assert [each["model"] for each in found[0]["verification"]["apart"]] == ["original"]
    assert [each["tensor"] for each in found[0]["verification"]["expected"]] == ["rows", "columns"]
    assert found[0] == found[1]
    assert str(tmp_path) not in json.dumps(found)


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
