"""A search of networks that run, on samples that nothing was calibrated with."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.float_nets import SIZE, net, samples, written

import tflq
from tflq.base.errors import OptionError
from tflq.cli.main import run
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, f32
from tflq.tools.quantize import choosing
from tflq.tools.quantize.calibration.calibrate import Calibration, calibrate
from tflq.tools.quantize.fidelity import FloatNetwork, signal_to_noise
from tflq.tools.quantize.search import judging
from tflq.tools.samples.reading import Span
from tflq.tools.verify.outcome import RunTime
from tflq.tools.verify.runner import Opened

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


def test_the_worst_operator_stays_float(model: Path) -> None:
    data = list(samples(40))
    plain = quantized(model, scheme="weight-only", calibration=data)
    assert plain.decibels is not None
    least = plain.decibels + 3
    result = quantized(model, scheme="weight-only", calibration=data, min_snr=least)
    search = result.search
    assert search is not None
    assert (search.calibrated, search.judged, search.before.decibels) == (0, 40, plain.decibels)
    assert search.after.decibels >= least
    assert search.after.decibels == signal_to_noise(model, model.with_name("quantized.tflite"), data) == result.decibels
    assert search.after.bytes == result.bytes_out
    assert [row.tensor for row in result.kept if row.why == "it was to stay float"] == ["second"]


def test_weights_of_few_bits_get_more(model: Path) -> None:
    result = quantized(model, scheme="weight-only", weights="int4", calibration=list(samples(40)), min_snr=20)
    assert result.search is not None
    assert result.search.steps[0].scheme == "weights of 8 bits"
    assert not [row for row in result.kept if row.why == "it was to stay float"]


def test_a_static_network_is_judged_on_the_last_quarter(model: Path) -> None:
    data = samples(40)
    seen = tflq.calibrate(model, list(data[:30])).statistics
    quantized(model, statistics=seen)
    before = signal_to_noise(model, model.with_name("quantized.tflite"), list(data[30:]))
    result = quantized(model, calibration=list(data), min_snr=before + 1)
    search = result.search
    assert search is not None
    assert (search.calibrated, search.judged, search.before.decibels) == (30, 10, before)
    assert search.after.decibels >= before + 1
    other = quantized(model, statistics=seen, calibration=list(data[30:]), min_snr=before + 1)
    assert other.search is not None
    assert other.search.after == search.after
    assert other.recipe == result.recipe


@pytest.mark.parametrize(("range", "least"), [("auto", 48), ("minmax", 20)])
def test_its_recipe_repeats_the_result(tmp_path: Path, range: str, least: float) -> None:
    """With channels that are equalized, too."""
    module = net()
    scales = np.logspace(-1.5, 1.5, SIZE).astype(np.float32)
    module.main.ops[0].operand(1).array[:] *= scales[:, None]
    module.main.ops[2].operand(1).array[:] /= scales
    model, data = written(tmp_path, module), list(samples(40))
    path = tmp_path / "recipe.toml"
    result = quantized(model, calibration=data, range=range, min_snr=least, keep_float=["y"])
    assert result.search is not None
    assert result.search.steps
    path.write_text(result.recipe)
    assert 'name = "y"\nscheme = "float"' in result.recipe
    assert ("equalize = true" in result.recipe) == (range == "auto")
    again = quantized(model, calibration=data, recipe=path)
    assert not again.trials
    assert again.search is None
    assert tflq.write(again.module) == tflq.write(result.module)
    assert again.recipe == result.recipe


def test_the_float_network_runs_once_on_each_sample(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, run = Counter[int](), Opened.run

    def counted(opened: Opened, *arguments: Any) -> list[np.ndarray]:
        runs[opened._number] += 1
        return run(opened, *arguments)

    monkeypatch.setattr(Opened, "run", counted)
    result = quantized(model, scheme="weight-only", weights="int4", calibration=list(samples(6)), min_snr=25)
    assert result.search is not None
    assert runs[0] == 2 * 6  # the first that is opened, in the search and for the result
    assert sum(runs.values()) == 2 * 6 + 6 * (result.search.trials + 1)


def test_the_samples_of_a_search_are_calibrated_with_once(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside those of the trial of equalized channels, and of the result."""
    counts, original = Counter[int](), calibrate

    def counted(source: str, data: Span, **options: Any) -> Calibration:
        counts[len(data)] += 1
        return original(source, data, **options)

    monkeypatch.setattr(choosing, "calibrate", counted)
    result = quantized(model, calibration=list(samples(12)), range="auto", min_snr=1)
    assert result.search is not None
    assert counts == {9: 2 * any(trial.name.startswith("channels") for trial in result.trials) + 1, 12: 1}


def agreement(floats: list[list[np.ndarray]], others: list[list[np.ndarray]]) -> float:
    same = [a[0].argmax() == b[0].argmax() for a, b in zip(floats, others, strict=True)]
    return float(np.mean(same))


def test_a_metric_decides(model: Path) -> None:
    data = list(samples(40))
    plain = quantized(model, scheme="weight-only", weights="int4", calibration=data, min_snr=0.1, metric=agreement)
    assert plain.search is not None
    assert plain.search.metric == "agreement()"
    assert plain.search.before.value == plain.search.after.value < 1
    result = quantized(model, scheme="weight-only", weights="int4", calibration=data, max_drop=0, metric=agreement)
    assert result.search is not None
    assert result.search.after.value == 1
    assert result.search.bounds == ("agreement() at least 1",)


def leave(*_: object) -> float:
    raise SystemExit(0)


@pytest.mark.parametrize(
    ("metric", "what"),
    [
        (leave, "the metric 'leave' raises SystemExit: 0"),
        (lambda _: 1, "raises TypeError: .* takes 1 positional argument but 2 were given"),
        (lambda *_: 1 / 0, r"test_judging.py:\d+: .*raises ZeroDivisionError: division by zero; mend"),
        (lambda *_: None, r"test_judging.py:\d+: the metric '<lambda>' returns None, not a number; mend"),
        (lambda *_: np.zeros(2), "returns array.* not a number"),
        (lambda *_: "0.5", "returns '0.5', not a number"),
        (lambda *_: math.nan, "returns nan, not a number"),
    ],
    ids=["leaves", "parameters", "raises", "nothing", "several", "text", "nan"],
)
def test_a_metric_with_faults_is_an_error_that_names_it(metric: Any, what: str) -> None:
    with pytest.raises(OptionError, match=what):
        judging._value(metric, [[np.zeros(1)]], [[np.zeros(1)]])
    half: Any = np.float32(0.5)
    assert judging._value(lambda *_: half, [], []) == 0.5


def test_a_fault_of_a_metric_ends_the_search(model: Path) -> None:
    """Also where only outputs of the quantized network make it."""

    def metric(floats: list[list[np.ndarray]], others: list[list[np.ndarray]]) -> float:
        calls.append(1)
        return math.nan if len(calls) > 3 else 0.0

    calls: list[int] = []
    with pytest.raises(OptionError, match="returns nan"):
        quantized(model, scheme="weight-only", calibration=list(samples(2)), metric=metric, min_snr=0.5)
    assert len(calls) == 4


def test_time_is_that_of_the_first_network_times_the_ratio(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each further network is timed as half as long."""
    ratios = iter([1.0, *(0.5 for _ in range(100))])
    timed: list[str] = []

    def run_time(_: object, first: str, second: str, sample: object) -> RunTime:
        timed.append(second)
        return RunTime("", 0.004, 0.0, next(ratios), 3)

    monkeypatch.setattr(FloatNetwork, "run_time", run_time)
    result = quantized(model, calibration=list(samples(8)), max_time=3)
    assert result.search is not None
    assert (result.search.before.milliseconds, result.search.after.milliseconds) == (4, 2)
    assert len(timed) <= result.search.trials


def test_a_run_is_timed(model: Path) -> None:
    result = quantized(model, calibration=list(samples(8)), max_time=1000, min_snr=1)
    assert result.search is not None
    assert 0 < result.search.after.milliseconds < 1000


def test_operators_with_a_scheme_of_the_call_keep_it(model: Path) -> None:
    rule = {"name": "second", "scheme": "int8", "range": "minmax"}
    result = quantized(model, calibration=list(samples(12)), max_bytes=10_000, recipe=[rule])
    assert result.search is not None
    assert next(row for row in result.rows if row.tensor == "second").quantized


def test_what_cannot_be_reached_or_judged_is_an_error(model: Path) -> None:
    for options, what in (
        ({"min_snr": 30}, "is measured on samples"),
        ({"min_snr": 30, "calibration": list(samples(1))}, "1 samples are too few"),
        ({"metric": max, "calibration": list(samples(2))}, "a metric needs the number"),
        ({"max_drop": 0.1, "calibration": list(samples(2))}, "a drop is of a metric"),
        ({"max_bytes": 0, "calibration": list(samples(2))}, "max_bytes=0 makes no sense"),
        ({"max_time": 0, "calibration": list(samples(2))}, "max_time=0 makes no sense; give more than 0"),
        ({"max_time": math.inf, "calibration": list(samples(2))}, "max_time=inf makes no sense"),
        ({"min_snr": math.inf, "calibration": list(samples(2))}, "min_snr=inf makes no sense"),
        ({"min_snr": math.nan, "calibration": list(samples(2))}, "min_snr=nan makes no sense"),
        ({"min_snr": 300, "max_bytes": 100, "calibration": list(samples(8))}, "300 dB, at most 100 bytes; the nearest"),
    ):
        with pytest.raises(OptionError, match=what):
            quantized(model, **options)
    assert not model.with_name("quantized.tflite").exists()


def test_a_search_says_what_it_tries(model: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", logger="tflq"):
        quantized(model, scheme="weight-only", weights="int4", calibration=list(samples(6)), min_snr=25)
    begun = [record.begins for record in caplog.records if hasattr(record, "begins")]
    assert any("bytes, network 2" in text for text in begun)
    assert any("networks tried" in record.getMessage() for record in caplog.records)


def residual(folder: Path) -> Path:
    """A network with large numbers that are added to small ones: x, and products of it."""
    y, first = Value(TensorType((1, SIZE), f32), "sum"), net().main
    ops = [*first.ops, Op("tfl.add", [first.outputs[0], first.inputs[0]], [y], {"fused_activation_function": "NONE"})]
    return written(
        folder,
        Module(
            [Function("main", first.inputs, [y], ops)],
            [Signature("serve", 0, [("given", first.inputs[0])], [("made", y)])],
        ),
    )


def test_kinds_and_parts_are_in_one_search(tmp_path: Path) -> None:
    model, data = residual(tmp_path), list(samples(40))
    plain = quantized(model, calibration=data, min_snr=1).search
    assert plain is not None
    result = quantized(model, calibration=data, min_snr=plain.before.decibels + 6)
    assert result.search is not None
    assert result.search.reached
    other = signal_to_noise(model, model.with_name("quantized.tflite"), list(samples(60, 1)))
    assert other > plain.before.decibels + 3


def test_the_command_writes_a_recipe(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, metric, out, recipe = (tmp_path / name for name in ("data.npz", "metric.py", "out.tflite", "recipe.toml"))
    np.savez(data, given=samples(8))
    metric.write_text("def metric(floats, quantized):\n    return -abs(floats[0][0] - quantized[0][0]).max()\n")
    words = ["quantize", str(model), str(out), "--calibration", str(data)]
    words += ["--metric", str(metric), "--min-snr", "-0.5", "--save-recipe", str(recipe), "--force"]
    assert run(words) == 0
    assert "on 2 samples not calibrated with (6 were)" in capsys.readouterr().out
    assert recipe.exists()
    metric.write_text("")
    assert run(words) == 2
    assert "has no function metric" in capsys.readouterr().err


def test_a_network_of_all_samples_beyond_the_bounds_is_not_the_result(tmp_path: Path) -> None:
    """Made of 15 of 20 samples it has 38.8 dB on the others, made of all 38.6."""
    model, data = written(tmp_path, net()), list(samples(20))
    out = model.with_name("quantized.tflite")
    near = quantized(model, calibration=data, min_snr=38.5)
    assert near.search is not None
    assert near.search.refused is None
    assert signal_to_noise(model, out, data[15:]) >= 38.5
    result = quantized(model, calibration=data, min_snr=38.7)
    assert result.search is not None
    assert result.search.refused is not None
    assert result.search.refused.decibels < 38.7 < signal_to_noise(model, out, data[15:])
    assert "made of all samples it has 38.61 dB" in result.warnings[0]
    assert "of the first 15 alone" in result.warnings[0]


def test_outputs_on_all_samples_beyond_the_bounds_are_warned_of(tmp_path: Path) -> None:
    """What is cut off is far in the samples that are calibrated with."""
    model, data = written(tmp_path, net()), [*samples(15), *samples(5) / 4]
    result = quantized(model, calibration=data, range="percentile:97", min_snr=20)
    assert result.search is not None
    assert result.decibels is not None
    assert result.decibels < 20 <= result.search.after.decibels
    assert "less near than it has to be, and is on the 5 that judge" in result.warnings[0]
    small = quantized(model, calibration=data, range="percentile:97", max_bytes=result.search.before.bytes)
    assert small.search is not None
    assert f"dB, {small.bytes_out} bytes, and {small.search.after.decibels:.2f} dB on the 5" in small.warnings[0]
