"""`tflq calibrate` and `tflq calibrate merge`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.float_nets import net, samples, written

from tflq.analysis.statistics import read_statistics
from tflq.cli import main

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")


def run(*arguments: object) -> int:
    return main.run(["calibrate", *map(str, arguments)])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return written(tmp_path, net())


def data(folder: Path, count: int, name: str = "data.npz", seed: int = 0) -> Path:
    np.savez(folder / name, given=samples(count, seed))
    return folder / name


def test_a_run_says_what_it_saw(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    destination = tmp_path / "s.json"
    assert run(model, data(tmp_path, 5), "-o", destination) == 0
    printed = capsys.readouterr().out
    assert "samples     5" in printed
    assert "points      5 tensors, 0 of them from earlier statistics" in printed
    assert run(model, data(tmp_path, 5), "-o", destination) == 2
    assert "--force" in capsys.readouterr().err
    assert run(model, data(tmp_path, 5), "-o", destination, "--resume", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["samples"] == document["points"] == len(document["reused"]) == 5


def test_runs_are_merged_in_order(model: Path, tmp_path: Path) -> None:
    for place, seed in enumerate((1, 2)):
        assert run(model, data(tmp_path, 3, seed=seed), "-o", tmp_path / f"{place}.json", "--no-histogram") == 0
    assert run("merge", tmp_path / "0.json", tmp_path / "1.json", "-o", tmp_path / "both.json") == 0
    both, first = (read_statistics(tmp_path / name) for name in ("both.json", "0.json"))
    assert both.samples[:3] == first.samples
    assert not both.points["x"].bins
    assert run("merge", tmp_path / "0.json", "-o", tmp_path / "0.json", "--force") == 2


def test_images_need_both_numbers(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(model, data(tmp_path, 3), "-o", tmp_path / "s.json", "--mean", "127.5") == 2
    assert "give both, one number or one for each channel: --mean 127.5 --scale" in capsys.readouterr().err


def test_ranges_for_another_quantizer_quantize_to_the_same_bytes(model: Path, tmp_path: Path) -> None:
    theirs, ours, again = (tmp_path / f"{name}.json" for name in ("theirs", "ours", "again"))
    asked = ["--format", "ai-edge-quantizer", "--range", "ema"]
    assert run(model, data(tmp_path, 5), "-o", theirs, *asked) == 0
    assert run(model, data(tmp_path, 5), "-o", ours) == 0
    assert run("merge", ours, "-o", again, *asked) == 0
    assert again.read_bytes() == theirs.read_bytes()
    for statistics, method in ((theirs, "minmax"), (ours, "ema")):
        result = statistics.with_suffix(".tflite")
        assert main.run(["quantize", str(model), str(result), "--statistics", str(statistics), "--range", method]) == 0
    assert theirs.with_suffix(".tflite").read_bytes() == ours.with_suffix(".tflite").read_bytes()
    assert run(model, data(tmp_path, 5), "-o", tmp_path / "s.json", "--range", "ema") == 2
    assert run(model, data(tmp_path, 5), "-o", tmp_path / "s.json", *asked[:2], "--range", "mse", "--no-histogram") == 2
