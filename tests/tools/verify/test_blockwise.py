"""Products with a scale per block of weights: they run on the kernels that read these scales."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.float_nets import dense, written

import tflq
from tflq.analysis.evaluate.registry import evaluate_function
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, UniformQuantizedSubChannelType, f32

pytestmark = pytest.mark.usefixtures("forked")

interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="needs the interpreter")


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    x, y, z = (Value(TensorType((1, size), f32), name) for size, name in ((64, "x"), (16, "y"), (16, "z")))
    product = dense(rng.normal(size=(16, 64)).astype(np.float32), x, y, "y")
    floats = written(tmp_path, Module([Function("main", [x], [z], [product, Op("tfl.relu", [y], [z], {})])]))
    path = tmp_path / "blocks.tflite"
    tflq.quantize(floats, path, scheme="dynamic", weights="int4", blocks=32)
    return path


def test_what_is_compared_is_not_the_zeros_of_the_reference_kernel(stored: Path) -> None:
    result = tflq.verify(stored, tflq.convert(stored).data, layers=True)
    assert result.verdict == "equal"
    assert [(each.opcode, each.resolver) for each in result.apart] == [("FULLY_CONNECTED", "optimized")] * 2
    assert "ignores the scales per block" in result.apart[0].reason
    assert max(run.outputs[0][1].moments.signal for run in result.runs) > 1


def test_other_weights_differ(stored: Path, tmp_path: Path) -> None:
    module = tflq.read(stored)
    weights = module.main.ops[0].operand(1)
    changed = constant(np.roll(weights.array, 1), weights.type.element.storage, weights.name)  # type: ignore[union-attr]
    changed.type, changed.info = weights.type, weights.info
    module.main.ops[0].operands[1] = changed
    assert tflq.verify(stored, written(tmp_path, module, "changed.tflite"), interface=False).verdict == "differs"


def test_tosa_announces_what_it_does_not_round(stored: Path, tmp_path: Path) -> None:
    pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
    report = tflq.convert(stored, tmp_path / "blocks.tosa").report
    assert report.rows[0].exception == "inexact"
    assert tflq.verify(stored, tmp_path / "blocks.tosa", report=report).verdict == "accepted"
    assert "rounds activations to 8 bits" in tflq.verify(stored, tmp_path / "blocks.tosa").notes[0]


def test_the_evaluator_and_xnnpack_compute_stored_weights_times_the_scales_of_their_blocks(stored: Path) -> None:
    weights = tflq.read(stored).main.ops[0].operand(1)
    kind = weights.type.element
    assert isinstance(kind, UniformQuantizedSubChannelType)
    reals = weights.array.astype(np.float32) * np.repeat(kind.scales.astype(np.float32), 32, axis=1)
    module = tflq.convert(stored, format="tosa").module
    given = list(np.random.default_rng(1).normal(size=(50, 1, 64)).astype(np.float32))
    wanted = [np.maximum(x.astype(np.float64) @ reals.T, 0) for x in given]
    made = [evaluate_function(module.main, {module.main.inputs[0]: x})[module.main.outputs[0]] for x in given]
    np.testing.assert_allclose(np.stack(made), np.stack(wanted), rtol=1e-5, atol=1e-5)
    kernel = interpreter.Interpreter(str(stored))
    kernel.allocate_tensors()
    for x, want in zip(given, wanted, strict=True):
        kernel.set_tensor(kernel.get_input_details()[0]["index"], x)
        kernel.invoke()
        got = kernel.get_tensor(kernel.get_output_details()[0]["index"])
        np.testing.assert_allclose(got, want, atol=0.01 * np.abs(reals).sum(1).max() * np.abs(x).max())
