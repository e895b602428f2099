"""Parameters that runtimes refuse: ranges are widened, or operators stay float, so that every file runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.float_nets import SIZE, dense, written

import tflq
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, f32
from tflq.tools.quantize.fidelity import signal_to_noise

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")


def value(name: str) -> Value:
    return Value(TensorType((1, SIZE), f32), name)


def product(folder: Path, large: float) -> Path:
    """Two products, the first with a channel of large weights whose result is negative, so that RELU leaves nothing."""
    first, second = (np.random.default_rng(n).normal(size=(SIZE, SIZE)).astype(np.float32) for n in range(2))
    first[3] = -large
    x, y, z, end = map(value, ("x", "y", "z", "end"))
    ops = [dense(first, x, y, "y"), Op("tfl.relu", [y], [z], {}), dense(second, z, end, "end")]
    return written(folder, Module([Function("main", [x], [end], ops)]))


def positive(count: int) -> list[np.ndarray]:
    return list(np.random.default_rng(1).uniform(0.5, 1, size=(count, SIZE)).astype(np.float32))


@pytest.mark.parametrize(
    ("large", "quantized", "text"),
    [(1e3, True, ""), (3e5, True, "times as wide as seen"), (1e7, False, "times what runtimes take")],
)
def test_factors_of_products_are_within_the_bound(tmp_path: Path, large: float, quantized: bool, text: str) -> None:
    model, out = product(tmp_path, large), tmp_path / "int8.tflite"
    for options in ({"calibration": positive(8)}, {"statistics": tflq.calibrate(model, positive(8))}):
        row, last = tflq.quantize(model, out, force=True, range="minmax", **options).rows
        assert last.quantized
        assert row.quantized == quantized
        assert text in row.note + row.why
        assert signal_to_noise(model, out, positive(8)) > 25


def test_other_factors_have_bounds_too(tmp_path: Path) -> None:
    """A sum of numbers that cancel, and HARD_SWISH of a number that it makes nothing of."""
    x, huge, less, y, z = map(value, ("x", "huge", "less", "y", "z"))
    ops = [
        dense(np.eye(SIZE, dtype=np.float32) * np.float32(-1e7), x, huge, "huge"),
        dense(np.eye(SIZE, dtype=np.float32) * np.float32(1e7), x, less, "less"),
        Op("tfl.add", [huge, less], [y], {"fused_activation_function": "NONE"}),
        Op("tfl.hard_swish", [huge], [z], {}),
    ]
    model, out = written(tmp_path, Module([Function("main", [x], [y, z], ops)])), tmp_path / "int8.tflite"
    rows = {row.tensor: row for row in tflq.quantize(model, out, calibration=positive(8), range="minmax").rows}
    assert [name for name, row in rows.items() if not row.quantized] == ["y", "z"]


def test_a_search_goes_on_where_factors_are_refused(tmp_path: Path) -> None:
    model = product(tmp_path, 1e7)
    search = tflq.quantize(model, calibration=positive(8), min_snr=20).search
    assert search is not None
    assert search.after.decibels >= 20
