"""Operators are given back to float until the outputs are near enough, on samples that nothing was calibrated with."""

from __future__ import annotations

import math
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
from tflq.tools.quantize.fidelity import nearness, restore_float, rules_of, signal_to_noise
from tflq.tools.quantize.report import QuantizedRow
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
    options.setdefault("range", "minmax")
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
    result = quantized(model, scheme="weight-only", weights="int4", calibration=list(samples(6)), min_snr=25)
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
        ({"min_snr": 500, "calibration": list(samples(8)), "metric": always}, "come no nearer than 1.00 with"),
    ):
        with pytest.raises(OptionError, match=what):
            quantized(model, **options)
    assert not model.with_name("quantized.tflite").exists()


ROWS = [QuantizedRow("add", name, quantized=True) for name in "abcd"]
ATTRIBUTES = {"metric": "decibels", "calibrated": 0, "judged": 1}


def test_errors_that_cancel_are_given_back_together() -> None:
    """Alone each operator in float is worse, since the error of another has cancelled its own."""
    searched = restore_float(ROWS, lambda rules: {0: 20.0, 1: 19.0, 2: 18.0, 3: 40.0}[len(rules)], 30, ATTRIBUTES)
    assert (searched.before, searched.after) == (20, 40)
    assert [step.tensor for step in searched.steps] == ["a", "b", "c"]
    assert len(rules_of(searched)) == 3


@pytest.mark.parametrize(("everything", "what"), [(math.inf, "only the float network"), (28, "they come to 28.00")])
def test_a_network_in_float_is_no_result(everything: float, what: str) -> None:
    values = [20.0, 21.0, 25.0, 24.0, everything]
    with pytest.raises(OptionError, match=r"come no nearer than 25.00 dB with an operator quantized.*" + what):
        restore_float(ROWS, lambda rules: values[len(rules)], 300, ATTRIBUTES)


def test_a_float_network_is_not_written(model: Path) -> None:
    with pytest.raises(OptionError, match="only the float network is as near"):
        quantized(model, calibration=list(samples(8)), min_snr=300)
    assert not model.with_name("quantized.tflite").exists()


def test_a_search_says_what_it_tries(model: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", logger="tflq"):
        quantized(model, scheme="weight-only", weights="int4", calibration=list(samples(6)), min_snr=25)
    shown = [record.begins for record in caplog.records if hasattr(record, "begins")]
    assert "operator 1 of 2 alone in float" in shown
    assert any(each.startswith("1 operators in float, ") for each in shown)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_outputs_that_are_far_are_warned_of(noise: float) -> None:
    rng = np.random.default_rng(0)
    floats = rng.normal(size=(50, 1, 10))
    near = nearness([([each], [each + noise * rng.normal(size=each.shape)]) for each in floats])
    assert (near.agreement == 1) == (noise == 0)
    assert bool(near.warnings()) == bool(noise)
    assert all("keep those in float" in warning for warning in near.warnings())
    ties = nearness([([np.eye(4)], [np.ones((4, 4))])] * 10)
    assert ties.agreement == 1
    assert nearness([([np.eye(4)], [np.eye(4)])]).agreement is None


def test_the_command_warns_of_outputs_that_are_far(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = net()
    weights = module.main.ops[0].operand(1).array
    weights[:] *= np.logspace(-6, 0, len(weights), dtype=np.float32)[:, None]
    module.main.ops[2].operand(1).array[:] *= np.logspace(6, 0, len(weights), dtype=np.float32)
    result = tflq.quantize(written(tmp_path, module), calibration=list(samples(20)), range="minmax")
    assert result.decibels is not None
    assert result.decibels < 10
    print_quantization(result, tmp_path / "out.tflite")
    assert "warning     the outputs are far from the float network's" in capsys.readouterr().out


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
