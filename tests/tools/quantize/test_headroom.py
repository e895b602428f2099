"""Headroom before SOFTMAX: classes that are surer than all samples that were seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.float_nets import SIZE, net, samples, written

import tflq
from tflq.ir.module import Module
from tflq.ir.ops import Value
from tflq.ir.types import TensorType, UniformQuantizedType, f32
from tflq.tools.quantize.fidelity import signal_to_noise
from tflq.tools.quantize.headroom import WIDER, with_headroom

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")


def classifier() -> Module:
    module = net(last="tfl.softmax")
    module.main.ops[-1].attributes["beta"] = 1.0
    return module


def test_classes_may_be_surer_than_all_samples(tmp_path: Path) -> None:
    model, data = written(tmp_path, classifier()), list(samples(40))
    result = tflq.quantize(model, scheme="int16x8", calibration=data)
    assert "headroom" in {trial.name for trial in result.trials if trial.chosen}
    plain = tflq.quantize(model, scheme="int16x8", calibration=data, range="minmax")
    (after, before) = (largest(each.module, "second") for each in (result, plain))
    assert after > before * 1.1


def test_of_16_bits_all_have_headroom(tmp_path: Path) -> None:
    """Other samples are larger: what is cut off costs more than rounding."""
    path = written(tmp_path, net())
    data = list(samples(40))
    seen = tflq.calibrate(path, data).statistics
    for key, point in with_headroom(tflq.read(path), seen, 1 << 16).points.items():
        assert (point.minimum, point.maximum) == (
            (seen.points[key].minimum or 0) * WIDER,
            (seen.points[key].maximum or 0) * WIDER,
        )
    larger = [sample * 1.3 for sample in samples(60)][40:]
    out, ratios = tmp_path / "int16.tflite", []
    for method in ("minmax", "auto"):
        tflq.quantize(path, out, scheme="int16x8", calibration=data, range=method, force=True)
        ratios.append(signal_to_noise(path, out, larger))
    assert ratios[1] > ratios[0] + 3


def largest(module: Module, name: str) -> float:
    """The largest number that a tensor can have."""
    (kind,) = (v.type.element for op in module.main.ops for v in op.results if v.name == name)
    assert isinstance(kind, UniformQuantizedType)
    return kind.scale * (kind.storage.maximum - kind.zero_point)


def test_only_what_a_softmax_of_one_row_reads_has_headroom(tmp_path: Path) -> None:
    module = classifier()
    path = written(tmp_path, module)
    seen = tflq.calibrate(path, list(samples(6))).statistics
    further = with_headroom(tflq.read(path), seen, 256)
    assert {key for key, point in further.points.items() if point != seen.points[key]} == {"second"}
    assert (further.points["second"].maximum or 0) > (seen.points["second"].maximum or 0)
    module.main.outputs = [*module.main.outputs, module.main.ops[2].result]
    assert with_headroom(module, seen, 256) is seen
    rows = classifier()
    for value in dict.fromkeys(v for op in rows.main.ops for v in (op.operand(0), op.result)):
        value.type = TensorType((2, SIZE), f32)
    assert with_headroom(rows, seen, 256) is seen
    assert isinstance(rows.main.ops[0].operand(0), Value)
