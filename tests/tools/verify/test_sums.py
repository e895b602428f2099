"""Sums of a program in C: faults of a requantization that inputs do not show, and the sums that are tried."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from support.on_c import need_compiler

import tflq
from tflq.formats.sources import read
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import TensorType, UniformQuantizedType, f32, i8, i32
from tflq.tools.verify.sums import trials
from tflq.tools.verify.tflite_runner import TfliteRunner

MODELS: Final = Path(__file__).parents[3] / "models"


def _written(model: Path, folder: Path) -> Path:
    tflq.convert(model, folder / "net.c")
    return folder / "net.c"


def _with_fault(source: Path, call: str) -> None:
    """Changes the multiplier in a call, or the first of its channels, by 2^16 or the part that this is of it."""
    text = source.read_text()
    argument = re.compile(r"scale_\w+\([^,{}]*, (\w+)").search(text, text.index(call))
    assert argument is not None
    array = re.search(rf"{argument[1]}\[\d+\] NET_DATA = {{\n(\d+)", text)
    place = argument if array is None else array
    number = int(place[1])
    changed = number + (1 if number < 1 << 15 else 1 << 16)
    source.write_text(text[: place.start(1)] + str(changed) + text[place.end(1) :])


@need_compiler
@pytest.mark.parametrize("model", ["cnn_int8", "cnn_uint8", "cnn_int16x8"])
def test_a_multiplier_off_by_its_last_half_is_found(tmp_path: Path, model: str) -> None:
    path = MODELS / f"{model}.tflite"
    source = _written(path, tmp_path)
    _with_fault(source, "_fully_connected(const")
    result = tflq.verify(path, source, seeds=1, layers=True, cc="cc -O0")
    assert result.layers is not None
    assert {each.opcode for each in result.layers.diverging} == {"FULLY_CONNECTED"}
    assert not result


@need_compiler
def test_a_bound_that_only_extreme_sums_reach_is_found(tmp_path: Path) -> None:
    path = MODELS / "cnn_uint8.tflite"
    source = _written(path, tmp_path)
    text = source.read_text()
    start = text.index("127))", text.index("_fully_connected(const"))
    source.write_text(f"{text[:start]}126{text[start + 3 :]}")
    result = tflq.verify(path, source, seeds=1, layers=True, cc="cc -O0")
    assert result.layers is not None
    assert result.layers.diverging


def test_every_level_of_a_result_is_tried_from_both_sides() -> None:
    path = str(MODELS / "cnn_int8.tflite")
    names = [op.results[0].name for op in read(path).functions[0].ops]
    runner = TfliteRunner(path, "reference", 60.0)
    try:
        chosen = list(trials(path, 0, names, names))
        assert [each.tensor for each in chosen] == [names[at] for at in (0, 1, 2, 4, 7)]
        for each in chosen:
            order = np.argsort(each.sums, axis=0)
            sums, results = (np.take_along_axis(a, order, 0) for a in (each.sums, each.results(runner, {}, 60.0)))
            steps = np.diff(results.astype(int), axis=0)
            assert steps.min() == 0
            assert steps.max() == 1
            assert (np.diff(sums, axis=0)[steps > 0] == 1).all()
    finally:
        runner.close()


def test_a_result_of_no_product_or_of_two_is_not_tried() -> None:
    path = str(MODELS / "cnn_int8.tflite")
    names = [op.results[0].name for op in read(path).functions[0].ops]
    assert not list(trials(path, 0, [names[3], names[5], names[8]], []))
    residual = next(iter(trials(path, 0, [names[3]], [names[0]])))
    assert [*residual.operands] == [names[0]]


def _squashed(path: Path, *, elu: bool) -> None:
    """Writes a model of a product and TANH; with `elu` also of ELU, which has no reference kernel."""
    q = [UniformQuantizedType.of(i8, scale) for scale in (0.1, 0.01, 0.02, 1 / 128)]
    x, y, z = (Value(TensorType((1, 4), e), name) for e, name in ((q[0], "x"), (q[2], "y"), (q[3], "z")))
    rows = Buffer.of(np.arange(-8, 8, dtype=np.int8).reshape(4, 4) * 15)
    w = Value(TensorType((4, 4), q[1]), "w", buffer=rows)
    ops = [Op("tfl.fully_connected", [x, w, None], [y], {}), Op("tfl.tanh", [y], [z], {})]
    outputs = [z]
    if elu:
        a, b = (Value(TensorType((1, 4), f32), name) for name in ("real", "elu"))
        ops += [Op("tfl.dequantize", [z], [a], {}), Op("tfl.elu", [a], [b], {})]
        outputs += [a, b]
    path.write_bytes(bytes(write(Module([Function("main", [x], outputs, ops)]))))


def test_sums_run_on_the_kernels_that_are_compared(tmp_path: Path) -> None:
    """Not on those that run the whole model, some operator of which has no reference kernel: they round TANH apart."""
    results = []
    for elu in (False, True):
        model = tmp_path / f"{elu}.tflite"
        _squashed(model, elu=elu)
        runner = TfliteRunner(str(model), "reference", 60.0)
        try:
            assert (runner.kernels == "reference") is not elu
            (trial,) = trials(str(model), 0, ["z"], [])
            results.append(trial.results(runner, {}, 60.0))
        finally:
            runner.close()
    assert (results[0] == results[1]).all()


def _residual(path: Path) -> None:
    """Writes a model of a convolution with an odd number of places, to whose result its input is added. The batch is
    open: what the program stores has dims that the file does not say."""
    rng = np.random.default_rng(3)
    x, r, y, z = (
        Value(TensorType((None, 1, 1003, 4), UniformQuantizedType.of(i8, scale, zero)), name)
        for name, scale, zero in (("x", 0.09, 5), ("r", 0.1013, 3), ("y", 0.2971, -5), ("z", 0.2539, 7))
    )
    weights = rng.integers(-127, 128, (4, 1, 1, 4)).astype(np.int8)
    w = Value(TensorType(weights.shape, UniformQuantizedType.of(i8, 0.01)), "w", buffer=Buffer.of(weights))
    bias = UniformQuantizedType.of(i32, 0.1013 * 0.01)
    b = Value(TensorType((4,), bias), "b", buffer=Buffer.of(np.arange(4, dtype=np.int32)))
    attributes = {"padding": "VALID", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    ops = [Op("tfl.conv_2d", [r, w, b], [y], attributes), Op("tfl.add", [y, r], [z], {})]
    ops.insert(0, Op("tfl.relu", [x], [r], {}))
    path.write_bytes(bytes(write(Module([Function("main", [x], [z], ops)]))))


@need_compiler
def test_each_loop_is_tried_beside_what_is_added(tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    _residual(model)
    source = _written(model, tmp_path)
    options: dict[str, Any] = {"seeds": 1, "layers": True, "cc": "cc -O0", "interface": False}
    result = tflq.verify(model, source, **options)
    assert result
    assert result.layers is not None
    assert [each.difference.elements for each in result.layers.every] == [4012, 4012 + 3 * 2 * 4 * 1056]
    text = source.read_text()
    calls = [*re.finditer(r"scale_\w+\([^,]*, (\d{9,})", text)]
    last = max(calls, key=lambda call: call.start())
    source.write_text(text[: last.start(1)] + str(int(last[1]) + (1 << 16)) + text[last.end(1) :])
    changed = tflq.verify(model, source, **options)
    assert changed.layers is not None
    assert changed.layers.diverging
