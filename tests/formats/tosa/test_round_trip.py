"""TFLite → TOSA → TFLite: the same outputs for the same inputs, under the same names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.harness import edge_inputs, interpret

import tflq
from tflq.ir.ops import Value

MODELS = Path(__file__).resolve().parents[3] / "models"
EXACT = ["cnn_int8", "cnn_uint8", "cnn_int16x8", "pad", "split", "log_softmax", "l2_normalization"]


def edges(values: list[Value]) -> list[tuple[str, object]]:
    return [(v.name, v.type.storage) for v in values]


@pytest.mark.parametrize("name", EXACT)
def test_a_model_comes_back_equal(name: str, tmp_path: Path) -> None:
    source, between = MODELS / f"{name}.tflite", tmp_path / "model.tosa"
    original = tflq.read(source)
    is_open = any(None in (v.type.shape or ()) for v in original.main.inputs)
    tflq.convert(source, between, batch=1 if is_open else None)
    back = tflq.convert(between)
    assert edges(back.module.main.inputs) == edges(original.main.inputs)
    assert edges(back.module.main.outputs) == edges(original.main.outputs)
    batches = edge_inputs(original.main.inputs)
    for want, got in zip(interpret(source.read_bytes(), batches), interpret(back.data, batches), strict=True):
        for w, g in zip(want, got, strict=True):
            np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("name", ["cnn_int8", "cnn_uint8"])
def test_what_comes_back_is_about_as_small(name: str, tmp_path: Path) -> None:
    source, between = MODELS / f"{name}.tflite", tmp_path / "model.tosa"
    tflq.convert(source, between)
    direct, back = (len(tflq.convert(path).module.main.ops) for path in (source, between))
    assert back <= direct * 1.2
