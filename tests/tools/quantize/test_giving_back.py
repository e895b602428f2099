"""Operators are given back to float until the outputs are near enough, on samples that nothing was calibrated with."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.float_nets import net, samples, written

import tflq
from tflq.base.errors import OptionError
from tflq.cli.quantize import print_quantization
from tflq.tools.quantize.fidelity import signal_to_noise
from tflq.tools.verify.tflite_runner import TfliteRunner

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A network whose second product is hard for few bits: one weight of a channel is large."""
    module = net()
    weights = next(op.operand(1) for op in reversed(module.main.ops) if op.short_name == "fully_connected")
    weights.array[:, 0] *= 40
    return written(tmp_path, module)


def quantized(model: Path, **options: Any) -> tflq.Quantization:
    return tflq.quantize(model, model.with_name("quantized.tflite"), force=True, **options)


def test_the_worst_operator_is_given_back_first(model: Path) -> None:
    data = samples(40)
    plain = quantized(model, scheme="weight-only", weights="int4", calibration=list(data))
    assert plain.decibels is not None
    least = plain.decibels + 3
    result = quantized(model, scheme="weight-only", weights="int4", calibration=list(data), min_snr=least)
    search = result.search
    assert search is not None
    assert (search.calibrated, search.judged, search.before) == (0, 40, plain.decibels)
    assert search.after >= least
    assert search.after == signal_to_noise(model, model.with_name("quantized.tflite"), list(data))
    assert [step.value for step in search.alone] == sorted((step.value for step in search.alone), reverse=True)
    kept = {step.tensor for step in search.steps if step.kept}
    assert kept == {row.tensor for row in result.kept if row.why == "it was to stay float"}
    assert search.steps[0].tensor == search.alone[0].tensor
    assert search.steps[0].gain == pytest.approx(search.steps[0].value - search.before)


def test_a_static_network_is_judged_on_the_last_quarter(model: Path) -> None:
    data = samples(40)
    seen = tflq.calibrate(model, list(data[:30])).statistics
    quantized(model, statistics=seen)
    before = signal_to_noise(model, model.with_name("quantized.tflite"), list(data[30:]))
    result = quantized(model, calibration=list(data), min_snr=before + 1)
    search = result.search
    assert search is not None
    assert (search.calibrated, search.judged, search.before) == (30, 10, before)
    assert search.after >= before + 1
    assert result.kept
    other = quantized(model, statistics=seen, calibration=list(data[30:]), min_snr=before + 1)
    assert tflq.write(other.module) == tflq.write(result.module)


def test_the_float_network_runs_once_on_each_sample(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, run = Counter[str](), TfliteRunner.run

    def counted(runner: TfliteRunner, *given: Any) -> list[np.ndarray]:
        runs[runner.path] += 1
        return run(runner, *given)

    monkeypatch.setattr(TfliteRunner, "run", counted)
    result = quantized(model, scheme="weight-only", weights="int4", calibration=list(samples(6)), min_snr=40)
    assert result.search is not None
    assert result.search.steps
    assert runs.pop(str(model)) == 6
    trials = 1 + len(result.search.alone) + len(result.search.steps)
    assert list(runs.values()) == [6] * trials


def test_what_holds_already_changes_nothing(model: Path) -> None:
    result = quantized(model, calibration=list(samples(40)), min_snr=1)
    assert result.search is not None
    assert not result.search.alone
    assert not result.kept


def test_another_metric_decides(model: Path) -> None:
    def agreement(floats: list[list[np.ndarray]], others: list[list[np.ndarray]]) -> float:
        same = [a[0].argmax() == b[0].argmax() for a, b in zip(floats, others, strict=True)]
        return float(np.mean(same))

    result = quantized(model, scheme="weight-only", calibration=list(samples(40)), min_snr=0.5, metric=agreement)
    assert result.search is not None
    assert result.search.metric == "agreement"
    assert 0.5 <= result.search.after <= 1


def always(floats: object, others: object) -> float:
    return float(floats is not others)


def test_what_cannot_be_reached_or_judged_is_an_error(model: Path) -> None:
    for options, what in (
        ({"min_snr": 30}, "is measured on samples"),
        ({"min_snr": 30, "calibration": list(samples(1))}, "1 samples are too few"),
        ({"metric": max, "calibration": list(samples(2))}, "a metric needs the number"),
        ({"min_snr": 500, "calibration": list(samples(8)), "metric": always}, "come no nearer than 1.00, and 500 is"),
        ({"min_snr": 500, "calibration": list(samples(8))}, r"come no nearer than [\d.]+ dB, and 500 dB is asked for"),
    ):
        with pytest.raises(OptionError, match=what):
            quantized(model, **options)
    assert not model.with_name("quantized.tflite").exists()


def test_the_command_takes_a_file_of_a_metric(model: Path, tmp_path: Path) -> None:
    data, metric, out = tmp_path / "data.npz", tmp_path / "metric.py", tmp_path / "out.tflite"
    np.savez(data, given=samples(8))
    metric.write_text("def metric(floats, quantized):\n    return -abs(floats[0][0] - quantized[0][0]).max()\n")
    command = [sys.executable, "-m", "tflq", "quantize", str(model), str(out), "--calibration", str(data)]
    command += ["--metric", str(metric), "--min-snr", "-0.5", "--force"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "on 2 samples not calibrated with (6 were)" in done.stdout
    metric.write_text("")
    failed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert "has no function metric" in failed.stderr


@pytest.mark.parametrize(
    ("ratio", "text"), [(None, "not measured"), (np.inf, "equal"), (-np.inf, "nothing left"), (31.25, "31.2 dB")]
)
def test_the_ratio_is_printed_as_debug_prints_it(
    model: Path, ratio: float | None, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Outputs of zeros alone that come out otherwise are not equal."""
    print_quantization(replace(quantized(model, scheme="weight-only"), decibels=ratio), model)
    assert f"outputs     signal to noise {text}\n" in capsys.readouterr().out
