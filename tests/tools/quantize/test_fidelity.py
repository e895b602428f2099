"""Fidelity of outputs, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.float_nets import net, samples, written

import tflq
from tflq.cli.quantize import print_quantization
from tflq.tools.quantize.fidelity import nearness

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")


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


@pytest.mark.parametrize(
    ("ratio", "text"), [(None, "not measured"), (np.inf, "equal"), (-np.inf, "nothing left"), (31.25, "31.2 dB")]
)
def test_the_ratio_is_printed_as_debug_prints_it(
    tmp_path: Path, ratio: float | None, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Outputs of zeros alone that come out otherwise are not equal."""
    result = tflq.quantize(written(tmp_path, net()), scheme="weight-only")
    print_quantization(replace(result, decibels=ratio), tmp_path / "out.tflite")
    assert f"outputs     signal to noise {text}\n" in capsys.readouterr().out
