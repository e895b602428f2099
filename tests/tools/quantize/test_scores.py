"""Metrics by name in `quantize`, `debug` and `verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.float_nets import net, samples, written

import tflq
from tflq.base.errors import OptionError
from tflq.cli.main import run
from tflq.tools.verify.tflite_runner import TfliteRunner

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    module = net()
    module.main.ops[2].operand(1).array[:, 0] *= 20
    return written(tmp_path, module)


def classes(model: Path, data: np.ndarray) -> np.ndarray:
    """The classes that the float network gives, the first two of them wrong."""
    runner = TfliteRunner(str(model), "default", 60.0)
    try:
        found = np.array([int(runner.run("serve", [row[None]])[0].argmax()) for row in data])
    finally:
        runner.close()
    found[:2] = (found[:2] + 1) % 8
    return found


def test_three_calls_measure_the_same(model: Path) -> None:
    data = samples(40)
    labels = classes(model, data)
    out = model.with_name("out.tflite")
    named = {"given": data, "labels": labels}
    result = tflq.quantize(model, out, scheme="weight-only", weights="int4", calibration=named)
    assert [score.metric for score in result.scores] == ["top-1"]
    assert result.scores[0].original == pytest.approx(0.95)
    debugged = tflq.debug(model, out, named, metric=["top-1", "kl"])
    verified = tflq.verify(
        model, out, inputs={"given": data}, labels=labels, metric=["top-1", "kl"], resolver="default"
    )
    assert [score.metric for score in debugged.scores] == ["top-1", "kl"]
    assert debugged.scores[0] == result.scores[0]
    assert verified.scores[0].value == pytest.approx(result.scores[0].value, abs=0.03)
    assert debugged.to_json()["scores"][1]["metric"] == "kl"
    assert result.to_json()["scores"][0]["rows"] == 40
    drawn = tflq.debug(model, out, named, samples=10, seed=3, metric=["top-1"])
    assert drawn.scores[0].rows == 10


def test_one_hot_labels_are_classes_to_all_three(model: Path) -> None:
    data = samples(12)
    labels = classes(model, data)
    out = model.with_name("out.tflite")
    named = {"given": data, "labels": np.eye(8)[labels]}
    result = tflq.quantize(model, out, range="minmax", calibration=named)
    for scores in (result.scores, tflq.debug(model, out, named).scores, tflq.verify(model, out, inputs=named).scores):
        assert [(score.metric, round(score.original * 12)) for score in scores] == [("top-1", 10)]
    named["labels"] = labels * np.nan
    for call in (
        lambda: tflq.quantize(model, calibration=named),
        lambda: tflq.debug(model, out, named),
        lambda: tflq.verify(model, out, inputs=named),
    ):
        with pytest.raises(OptionError, match="labels are 1 number a row, some of them not finite, and outputs have 8"):
            call()


def test_a_drop_bounds_a_search(model: Path) -> None:
    data = {"given": (rows := samples(40)), "y": classes(model, rows)}
    options: dict[str, Any] = {
        "scheme": "weight-only",
        "weights": "int4",
        "range": "minmax",
        "calibration": data,
        "labels": "y",
    }
    plain = tflq.quantize(model, **options)
    assert plain.search is None
    assert plain.scores[0].value < plain.scores[0].original
    result = tflq.quantize(model, **options, metric="top-1", max_drop=0)
    assert result.search is not None
    assert result.search.bounds == ("top-1 at least 95.0%",)
    assert result.search.after.value >= 0.95
    assert result.scores[0].value >= 0.95
    assert tflq.quantize(model, **options, max_drop=0).search == result.search
    near = tflq.quantize(model, **options, metric="kl", max_drop=1e-4, min_snr=30)
    assert near.search is not None
    assert near.search.bounds == ("kl at most 0.0001", "at least 30 dB")
    assert near.scores[0].value <= 1e-4
    assert near.decibels is not None
    assert near.decibels >= 30


def test_metrics_without_what_they_need(model: Path) -> None:
    data = list(samples(8))
    refused: list[tuple[dict[str, Any], str]] = [
        ({"metric": "top-1"}, "top-1 needs labels"),
        ({"metric": "best"}, "'best'"),
        ({"labels": [1, 2]}, "there are 2 labels, and 8 samples"),
    ]
    for options, what in refused:
        with pytest.raises(OptionError, match=what):
            tflq.quantize(model, calibration=data, **options)
    assert tflq.quantize(model, calibration=data, metric="agreement").scores[0].rows == 8
    with pytest.raises(OptionError, match="give inputs"):
        tflq.verify(model, model, metric=["kl"])
    with pytest.raises(OptionError, match="'best'"):
        tflq.debug(model, model, data, metric=["best"])


def test_the_commands_print_them(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = tmp_path / "data.npz", tmp_path / "out.tflite"
    rows = samples(12)
    np.savez(data, given=rows, y=classes(model, rows))
    for words in (
        ("quantize", model, out, "--calibration", data, "--range", "minmax", "--metric", "top-5"),
        ("debug", model, out, data, "--metric", "top-5", "--metric", "cosine"),
        ("verify", model, out, "--inputs", data, "--metric", "top-5"),
    ):
        run([*map(str, words), "--labels", "y"])
        printed = capsys.readouterr()
        assert "metric      top-5 " in printed.out, printed.err
