"""Operators between floats: which are quantized, and which would only be rounded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.float_nets import SIZE, dense, samples, written

import tflq
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, f32
from tflq.tools.quantize.recipe import BETWEEN

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")
ROOT = Path(__file__).resolve().parents[3]


def chain(*names: str) -> Module:
    """Operators in a row, each on what the one before makes, of tensors a, b, c, ..."""
    values = [Value(TensorType((1, SIZE), f32), chr(ord("a") + place)) for place in range(len(names) + 1)]
    weights = np.eye(SIZE, dtype=np.float32) * 3
    ops = [
        dense(weights, x, y, y.name) if name == "fully_connected" else Op(f"tfl.{name}", [x], [y], {})
        for name, x, y in zip(names, values, values[1:], strict=False)
    ]
    return Module([Function("main", values[:1], values[-1:], ops)])


@pytest.mark.parametrize(
    ("names", "islands"),
    [
        (("neg", "relu", "tanh", "neg"), ["c", "d"]),
        (("neg", "relu", "fully_connected", "neg"), []),
        (("relu", "neg", "tanh"), []),
        (("tanh", "neg", "relu", "neg", "logistic"), ["d"]),
    ],
)
def test_without_products_between_floats_operators_stay_float(
    names: tuple[str, ...], islands: list[str], tmp_path: Path
) -> None:
    model = written(tmp_path, chain(*names, "fully_connected"))
    result = tflq.quantize(model, calibration=list(samples(20)), range="minmax")
    assert [row.tensor for row in result.kept if row.why == BETWEEN] == islands
    others = [row.operator for row in result.kept if row.why != BETWEEN]
    assert others == ["neg"] * names.count("neg")


def test_what_a_row_keeps_float_makes_an_island(tmp_path: Path) -> None:
    model = written(tmp_path, chain("tanh", "relu", "logistic", "fully_connected"))
    result = tflq.quantize(model, calibration=list(samples(20)), range="minmax", keep_float=["b", "d"])
    assert [row.tensor for row in result.kept] == ["b", "c", "d"]


def test_the_variance_of_a_layer_normalization_stays_float() -> None:
    model = ROOT / "models" / "transformer_float.tflite"
    given = np.random.default_rng(0).normal(size=(8, 1, 12, 24)).astype(np.float32)
    result = tflq.quantize(model, scheme="int16x8", calibration=list(given), range="minmax", io="int16")
    assert [row.operator for row in result.kept if row.why == BETWEEN] == ["mean", "add"] * 2
    assert [op.short_name for op in result.module.main.ops].count("quantize") == 4
