"""`tflq verify`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tflq
from tflq.cli import main
from tflq.ir.ops import Buffer

pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")


def test_equal_models(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(models / "cnn_int8.tflite")
    assert main.run(["verify", path, path, "--layers", "--seeds", "1"]) == 0
    out = capsys.readouterr().out
    assert "inputs      random 0, minimum, maximum, zero point" in out
    assert "9 of 9 operator results compared, all equal" in out
    assert out.endswith("\nEQUAL\n")


def test_different_models(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["verify", str(models / "pad.tflite"), str(models / "split.tflite")]) == 5
    assert capsys.readouterr().out.endswith("\nDIFFERS\n")


@pytest.mark.slow
def test_a_model_that_aborts(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(models / "add_per_axis.tflite")
    assert main.run(["verify", path, path]) == 6
    out = capsys.readouterr().out
    assert f"not compared: {path}: the original does not run: the interpreter's process aborted (SIGABRT)" in out
    assert out.endswith("\nNOTHING COMPARABLE\n")
    assert main.run(["verify", path, path, "--json"]) == 6
    document = json.loads(capsys.readouterr().out)
    assert (document["verdict"], document["reason"]) == ("nothing comparable", document["incomparable"][0])
    assert main.run(["verify", str(models / "pad.tflite"), path]) == 5
    assert capsys.readouterr().out.endswith("\nFAILED\n")


def test_json(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(models / "pad.tflite")
    np.savez(tmp_path / "in.npz", x=np.zeros((2, 2), np.int8))
    assert main.run(["verify", path, path, "--inputs", str(tmp_path / "in.npz"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["verdict"], [run["inputs"] for run in document["runs"]]) == ("equal", ["given"])


def test_inputs_that_do_not_fit(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(models / "pad.tflite")
    np.savez(tmp_path / "in.npz", x=np.zeros((2, 3), np.int8))
    assert main.run(["verify", path, path, "--inputs", str(tmp_path / "in.npz")]) == 2
    assert "has the shape (2, 2), and the sample of row 0 of" in capsys.readouterr().err


def test_exit_codes_follow_what_is_accepted(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, other = models / "cnn_uint8.tflite", tmp_path / "other.tflite"
    module = tflq.read(path)
    weights = module.main.ops[2].operand(1)
    assert weights.buffer is not None
    weights.buffer = Buffer(weights.buffer.data ^ np.uint8(0x20))
    tflq.write(module, other)
    assert main.run(["verify", str(path), str(other)]) == 5
    out = capsys.readouterr().out
    assert " dB" in out
    assert out.endswith("\nDIFFERS\n")
    assert main.run(["verify", str(path), str(other), "--max-lsb", "255", "--atol", "1e9"]) == 0
    assert capsys.readouterr().out.endswith("\nACCEPTED\n")


def test_shapes_and_a_folder_of_inputs(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(models / "pad.tflite")
    np.save(tmp_path / "x.npy", np.zeros((2, 2), np.int8))
    assert main.run(["verify", path, path, "--inputs", str(tmp_path)]) == 0
    assert main.run(["verify", path, path, "--shape", "y=2,2"]) == 2
    assert "the model has no input 'y'" in capsys.readouterr().err
