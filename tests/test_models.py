"""The project's own models: what they are, that they are made as they stand, and that they convert and stay equal."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Literal

import numpy as np
import pytest
from support.harness import interpret

import tflq
from tflq.conversion.report import short_type
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType

FOLDER = Path(__file__).resolve().parents[1] / "models"
NETWORKS = ["cnn_int8", "cnn_uint8", "cnn_int16x8", "two_signatures"]
FLOATS = {"residual_float": 40, "transformer_float": 30, "unet_float": 45, "lstm_float": 33}
"""Networks to quantize, and how many decibels from them their int8 is at least."""
OPERATORS = ["log_softmax", "l2_normalization", "pad", "split", "arg_min"]
PER_AXIS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add_per_axis": np.add,
    "mul_per_axis": np.multiply,
}
IN_FLOAT = "atan2_int16"

pytestmark = pytest.mark.usefixtures("forked")


@pytest.fixture(scope="module")
def handmade() -> ModuleType:
    """The script that makes models without TensorFlow."""
    spec = importlib.util.spec_from_file_location("handmade", FOLDER / "handmade.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_model_is_here_and_small() -> None:
    files = {path.stem: path.stat().st_size for path in FOLDER.glob("*.tflite")}
    assert set(files) == {*NETWORKS, *FLOATS, *OPERATORS, *PER_AXIS, IN_FLOAT}
    assert max(files.values()) < 100_000
    text = (FOLDER / "README.md").read_text()
    assert all(f"`{name}.tflite`" in text for name in files)


def test_handmade_models_are_made_as_they_stand(handmade: ModuleType) -> None:
    for make in handmade.MODELS:
        assert tflq.write(make()) == (FOLDER / f"{make.__name__}.tflite").read_bytes(), make.__name__


@pytest.mark.parametrize(
    ("name", "storage", "weights"),
    [("cnn_int8", "qi8", "qi8/axis0"), ("cnn_uint8", "qui8", "qui8"), ("cnn_int16x8", "qi16", "qi8/axis0")],
)
def test_networks_are_quantized_as_said(name: str, storage: str, weights: str) -> None:
    ops = {op.name: op for op in tflq.read(FOLDER / f"{name}.tflite").main.ops}
    assert {short_type(v) for op in ops.values() for v in op.results} == {storage}
    assert short_type(ops["tfl.conv_2d"].operand(1)) == weights
    assert {"tfl.depthwise_conv_2d", "tfl.add", "tfl.fully_connected"} <= set(ops)


def test_two_signatures_with_any_batch() -> None:
    module = tflq.read(FOLDER / "two_signatures.tflite")
    assert [s.key for s in module.signatures or ()] == ["classify", "embed"]
    assert all(v.type.shape is not None and v.type.shape[0] is None for f in module.functions for v in f.inputs)


@pytest.mark.parametrize("mac", ["integer", "float32"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_converted_network_is_equal_in_every_layer(name: str, mac: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    path = FOLDER / f"{name}.tflite"
    conversion = tflq.convert(path, mac=mac)  # type: ignore[arg-type]
    assert conversion.report.counts["float"] == 0, [r.reason for r in conversion.report.rows if r.path == "float"]
    result = tflq.verify(path, conversion.data, layers=True)
    assert result.equal, [result.failures, result.interface, result.layers and str(result.layers.first)]
    assert result.layers is not None
    if mac == "float32":  # what stays a float between two kernels has no tensor of the original's
        assert 0 < result.layers.compared <= result.layers.results
    else:
        assert result.layers.compared == result.layers.results


@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
@pytest.mark.parametrize("name", FLOATS)
def test_a_float_network_is_quantized_then_converted_exactly(name: str, scheme: str, tmp_path: Path) -> None:
    """Only NEG, and of int16x8 RSQRT and SQUARED_DIFFERENCE, have no kernel that computes right."""
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    path, made = FOLDER / f"{name}.tflite", tmp_path / "quantized.tflite"
    shape = [size or 1 for size in tflq.read(path).main.inputs[0].type.shape or ()]
    samples = list(np.random.default_rng(1).normal(size=(32, *shape)).astype(np.float32))
    io: Literal["int8", "int16"] = "int8" if scheme == "int8" else "int16"
    result = tflq.quantize(path, made, scheme=scheme, calibration=samples, range="minmax", io=io)  # type: ignore[arg-type]
    assert result.decibels is not None
    assert result.decibels > FLOATS[name]
    between = {"mean", "add"}  # floats alone come to these in int16x8
    without = {"neg"} if scheme == "int8" else {"neg", "rsqrt", "squared_difference", *between}
    assert {row.operator for row in result.kept} == (without if name == "transformer_float" else set())
    assert tflq.verify(made, tflq.convert(made).data, seeds=2).equal


@pytest.mark.parametrize("batch", [1, 4])
def test_a_converted_model_takes_any_batch(batch: int) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    path = FOLDER / "two_signatures.tflite"
    assert tflq.verify(path, tflq.convert(path).data, batch=batch, seeds=1).equal


@pytest.mark.parametrize("name", OPERATORS)
def test_a_failing_case_of_the_rfc_works(name: str) -> None:
    """Equal, or one count off where the operator is computed in float."""
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    path = FOLDER / f"{name}.tflite"
    conversion = tflq.convert(path)
    result = tflq.verify(path, conversion.data, seeds=4)
    assert (result.failures, result.interface) == ([], [])
    allowed = 1 if conversion.report.counts["float"] else 0
    assert all(not d.problem and d.largest <= allowed for d in result.outputs.values()), result.outputs


@pytest.mark.parametrize("name", PER_AXIS)
def test_per_axis_operands_are_computed(name: str) -> None:
    """Within one count of the real result: the interpreter itself aborts on ADD and gives zeros for MUL."""
    path = FOLDER / f"{name}.tflite"
    module = tflq.read(path)
    x, y, z = (v.type.element for v in (*module.main.inputs, *module.main.outputs))
    assert isinstance(x, UniformQuantizedPerAxisType)
    assert isinstance(y, UniformQuantizedType)
    assert isinstance(z, UniformQuantizedType)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 127, (1, 5, 6, 4), np.int8, endpoint=True) for _ in range(2))
    got = interpret(tflq.convert(path).data, [[a, b]])[0][0]
    real = PER_AXIS[name](a * x.scales.astype(np.float64), b * y.scale)
    want = np.clip(np.rint(real / z.scale), -128, 127)
    assert np.abs(got - want).max() <= 1


def test_what_has_no_integer_form_is_computed_in_float() -> None:
    """Within one count of the real result, by a float operator of a version that interpreters have: the model's is of
    one that there is not."""
    path = FOLDER / f"{IN_FLOAT}.tflite"
    conversion = tflq.convert(path)
    assert conversion.report.counts == {"integer": 0, "float": 1, "kept": 0}
    y, x = np.random.default_rng(0).integers(-32768, 32767, (2, 4, 6), np.int16, endpoint=True)
    got = interpret(conversion.data, [[y, x]])[0][0]
    want = np.rint(np.arctan2(y.astype(np.float64), x) * 2**13)
    assert np.abs(got - want).max() <= 1
