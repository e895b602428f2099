"""Recurrent operators in float on TOSA: on the reference model, and back in the interpreter over several runs."""

from __future__ import annotations

import numpy as np
import pytest
from matrix.run import case_of
from matrix.run_tosa import run_tosa
from support.harness import argument, const, interpret
from support.running import reference

import tflq
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, UniformQuantizedType, f32, i8


@pytest.mark.parametrize("name", ["float_svdf", "float_rnn", "float_sequence_rnn", "float_both_ways_rnn"])
def test_steps_written_out(name: str) -> None:
    outcome = run_tosa(case_of(name, 4), back=True)
    assert outcome.kind == "ok", outcome.detail


def _both_ways(steps: int) -> bytes:
    rng, element = np.random.default_rng(0), UniformQuantizedType.of(i8, 0.004)
    x = argument((steps, 2, 8), f32, "x")
    operands: list[Value | None] = [x]
    for units in (4, 4):
        operands += [const(rng.integers(-127, 128, (units, depth)), element, "w") for depth in (8, units)]
        operands.append(const(rng.normal(0, 0.1, units).astype(np.float32), f32, "bias"))
        operands.append(Value(TensorType((2, units), f32), "state", info={"is_variable": True}))
    options = {"time_major": True, "merge_outputs": True, "fused_activation_function": "TANH"}
    options["asymmetric_quantize_inputs"] = True
    results = [argument((steps, 2, 8), f32, "y")]
    op = Op("tfl.bidirectional_sequence_rnn", [*operands, None, None, None], results, options, info={"version": 1})
    return bytes(write(Module([Function("main", [x], results, [op])])))


@pytest.mark.parametrize("steps", [1, 3])
def test_hybrid_kernel_repeats_its_sequence(steps: int) -> None:
    model, words = _both_ways(steps), "as many times as it has steps"
    x = np.random.default_rng(1).normal(0, 1, (steps, 2, 8)).astype(np.float32)
    (wanted,) = interpret(model, [[x]])[0]
    kept, tosa, real = (tflq.convert(model), tflq.convert(model, format="tosa"), tflq.convert(model, semantics="real"))
    assert all((words in c.report.rows[0].warning) == (steps > 1) for c in (kept, tosa))
    np.testing.assert_array_equal(interpret(kept.data, [[x]])[0][0], wanted)
    (got,) = reference(tosa.module, [x])
    np.testing.assert_allclose(got, wanted, atol=0.03)
    assert (real.report.rows[0].path == "float") == (steps > 1)
    far = np.abs(interpret(real.data, [[x]])[0][0] - wanted).max()
    assert (far > 0.05) == (steps > 1)
