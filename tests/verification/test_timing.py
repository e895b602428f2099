"""`verify` with `time`: what a run takes in both models."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import tflq
from tflq.cli import main
from tflq.verification import timing
from tflq.verification.runner import Child, Opened, RunError

pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")


@pytest.fixture(autouse=True)
def few_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "TURNS", 3)


def test_both_sides_are_measured(models: Path) -> None:
    path = models / "cnn_int8.tflite"
    result = tflq.verify(path, tflq.convert(path).data, seeds=1, time=True)
    assert result.equal
    assert result.time is not None
    (found,) = result.time
    assert (found.entry, found.turns, found.problem) == ("", 3, "")
    assert found.before is not None
    assert found.after is not None
    assert found.ratio is not None
    assert 0 < found.before < found.after  # by a factor of twenty
    assert found.ratio > 2
    document = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert document["time"] == [found.to_json()]


def test_it_is_measured_only_if_it_is_asked_for(models: Path) -> None:
    path = models / "pad.tflite"
    result = tflq.verify(path, path, seeds=1)
    assert result.time is None
    assert result.to_json()["time"] is None


def test_every_entry(models: Path) -> None:
    path = models / "two_signatures.tflite"
    result = tflq.verify(path, path, seeds=1, time=True)
    assert result.time is not None
    assert [(found.entry, found.problem) for found in result.time] == [("", ""), ("classify", ""), ("embed", "")]


def test_with_the_default_delegate_and_in_turns(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever kernels the comparison is made with."""
    asked: list[tuple[Child, str, str]] = []
    ask = Child.ask

    def recorded(self: Child, request: dict[str, Any], *rest: Any, **more: Any) -> Any:
        if request["do"] in ("open", "time"):
            asked.append((self, request["do"], request.get("resolver", "")))
        return ask(self, request, *rest, **more)

    monkeypatch.setattr(Child, "ask", recorded)
    path = models / "pad.tflite"
    tflq.verify(path, path, seeds=1, time=True, resolver="reference")
    first, second = (child for child, *rest in asked if rest == ["open", "default"])
    assert first is not second
    timed = [child for child, do, _ in asked if do == "time"]
    assert timed == [first, second] * 3


def test_a_tosa_file_is_not(models: Path) -> None:
    pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
    path = models / "pad.tflite"
    result = tflq.verify(path, tflq.convert(path, format="tosa").data, seeds=1, time=True)
    assert result.equal
    assert result.time is not None
    (found,) = result.time
    assert (found.before, found.after, found.ratio, found.turns) == (None, None, None, 0)
    assert "says nothing of a device's" in found.problem


def test_a_model_that_the_delegate_does_not_run(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison stands."""

    def refuse(*_: object) -> float:
        raise RunError("failed to delegate SPLIT")

    monkeypatch.setattr(Opened, "time", refuse)
    path = models / "pad.tflite"
    result = tflq.verify(path, path, seeds=1, time=True)
    assert result.equal
    assert result.time is not None
    assert result.time[0].problem == "the default kernels do not run both models: failed to delegate SPLIT"


def test_the_command(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(models / "pad.tflite")
    assert main.run(["verify", path, path, "--seeds", "1", "--time"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("time")]
    number = r"[\d.]+"
    assert re.fullmatch(rf"time +{number} → {number} [µm]s \(×{number}\)", line), line
