"""The range that is chosen on samples held back, and biases that are corrected where that is nearer there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.float_nets import SIZE, net, samples, written

import tflq
from tflq.base.errors import OptionError, TflqError
from tflq.tools.quantize import choosing
from tflq.tools.quantize.correction import correcting
from tflq.tools.quantize.fidelity import signal_to_noise
from tflq.tools.quantize.methods import Methods

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")


@pytest.mark.slow
def test_what_is_nearer_on_samples_held_back_is_taken(tmp_path: Path) -> None:
    """One number is far away, and nothing comes of it: the range of all costs more than what is clipped."""
    module = net(last="tfl.relu")
    first, second = (module.main.ops[place].operand(1).array for place in (0, 2))
    first[:, 2] = second[:, 0] = 0
    first[0, 2] = 1
    model, out = written(tmp_path, module), tmp_path / "out.tflite"
    data = samples(240)
    data[5, 2] = 300
    result = tflq.quantize(model, out, calibration=list(data))
    by_name = {trial.name: trial for trial in result.trials}
    (best,) = (trial for name, trial in by_name.items() if name.startswith("range ") and trial.chosen)
    assert best.name != "range minmax"
    assert best.decibels >= by_name["range minmax"].decibels + 0.3
    assert result.to_json()["trials"][2]["name"] == "range minmax"
    other = samples(60, 1)
    near = signal_to_noise(model, out, list(other))
    tflq.quantize(model, out, calibration=list(data), range="minmax", force=True)
    assert near > signal_to_noise(model, out, list(other)) + 3


def test_methods_that_are_stated_stay(tmp_path: Path) -> None:
    model, data = written(tmp_path, net()), list(samples(20))
    plain = tflq.quantize(model, calibration=data, range="minmax")
    seen = tflq.calibrate(model, data)
    rule = {"name": "second", "range": "minmax"}
    for options in (
        {"statistics": seen},
        {"calibration": data, "recipe": [rule]},
        {"calibration": iter(data)},
    ):
        result = tflq.quantize(model, **options)
        assert not result.trials
        assert tflq.write(result.module) == tflq.write(plain.module)
    assert not tflq.quantize(model, calibration=data[:7]).trials


def test_minmax_comes_back_where_all_samples_have_other_tails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice on three quarters of the samples clips half of what all of them have."""
    model, data = written(tmp_path, net()), list(samples(20))
    choice = choosing.Choice(Methods("percentile:60"), (), [tflq.calibrate(model, data).statistics], 30)
    monkeypatch.setattr("tflq.tools.quantize.quantize.chosen_methods", lambda *_, **__: choice)
    result = tflq.quantize(model, calibration=data)
    assert [(trial.name, trial.chosen) for trial in result.trials[-2:]] == [
        ("range percentile:60, all samples", False),
        ("range minmax, all samples", True),
    ]
    plain = tflq.quantize(model, calibration=data, range="minmax")
    assert tflq.write(result.module) == tflq.write(plain.module)
    assert "percentile" not in result.recipe


@pytest.mark.slow
def test_biases_are_corrected_where_that_is_nearer(tmp_path: Path) -> None:
    """Weights whose errors of rounding have one sign, on inputs that have one, too."""
    module = net(last="tfl.relu")
    for op in (module.main.ops[0], module.main.ops[2]):
        weights = op.operand(1).array
        weights[:] = 0.4 / 127
        weights[:, 0] = 1
    model, out = written(tmp_path, module), tmp_path / "out.tflite"
    data = np.random.default_rng(0).uniform(0.9, 1, size=(60, SIZE)).astype(np.float32)
    result = tflq.quantize(model, out, calibration=list(data))
    assert "bias correction" in {trial.name for trial in result.trials if trial.chosen}
    ratio = signal_to_noise(model, out, list(data))
    tflq.quantize(model, out, calibration=list(data), range="minmax", force=True)
    assert ratio > signal_to_noise(model, out, list(data)) + 3


def test_networks_whose_parts_do_not_run_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*_: object, **__: object) -> None:
        raise TflqError("the interpreter's process ended")

    monkeypatch.setattr(correcting, "corrected", ended)
    trials = tflq.quantize(written(tmp_path, net()), calibration=list(samples(12))).trials
    assert not trials[-1].chosen


def test_labels_beside_samples_are_named(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"has 2 arrays, and the model 1 inputs; .* leave labels out"):
        tflq.quantize(written(tmp_path, net()), calibration=[(each, np.int64(3)) for each in samples(2)])
