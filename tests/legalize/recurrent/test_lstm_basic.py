"""The basic LSTM kernel on uint8: all of its results, the state over several runs."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, interpret
from support.recurrent import per_layer, state
from support.running import reference

from tflq.analysis.evaluate.registry import Run, evaluate_function
from tflq.base.errors import UnsupportedError
from tflq.conversion.convert import convert
from tflq.formats.tflite.reader import read
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import i16, i32, ui8
from tflq.legalize.deciding import Policy
from tflq.legalize.engine import legalize

BATCH, DEPTH, CELLS = 16, 5, 8


def _model(rng: np.random.Generator, weights: float = 0.02, state_scale: float = 2.0**-11) -> bytes:
    activation, total = per_layer(ui8, 2.0**-7, 128), DEPTH + CELLS
    x = argument((BATCH, DEPTH), activation)
    operands: list[Value | None] = [
        x,
        state((BATCH, CELLS), activation, "h"),
        const(rng.integers(0, 256, (4 * CELLS, total)), per_layer(ui8, weights, 117), "weights"),
        const(rng.integers(-3000, 3000, 4 * CELLS), per_layer(i32, weights * 2.0**-7), "bias"),
        state((BATCH, CELLS), per_layer(i16, state_scale), "c"),
    ]
    results = [
        argument((BATCH, CELLS), activation, "activation"),
        argument((BATCH, CELLS), per_layer(i16, state_scale), "state"),
        argument((BATCH, total), activation, "rows"),
        argument((BATCH, 4 * CELLS), per_layer(i16, 2.0**-12), "gates"),
    ]
    attributes = {
        "fused_activation_function": "TANH",
        "cell_clip": 0.0,
        "proj_clip": 0.0,
        "kernel_type": "BASIC",
        "asymmetric_quantize_inputs": False,
    }
    op = Op("tfl.lstm", operands, results, attributes, info={"version": 2})
    return bytes(write(Module([Function("main", [x], results, [op])])))


@pytest.mark.parametrize("weights", [0.02, 0.012, 0.005, 0.002])
def test_results_over_runs(weights: float) -> None:
    rng = np.random.default_rng(2)
    model = _model(rng, weights)
    batches = [[rng.integers(0, 256, (BATCH, DEPTH)).astype(np.uint8)] for _ in range(5)]
    wanted = interpret(model, batches)
    module = legalize(read(model), Policy(state="lowered"))[0]
    main, run = module.main, Run(module)
    for (x,), want in zip(batches, wanted, strict=True):
        env = evaluate_function(main, {main.inputs[0]: x}, run)
        for value, array in zip(main.outputs, want, strict=True):
            np.testing.assert_array_equal(env[value], array, err_msg=value.name)
    for got, array in zip(reference(convert(model, format="tosa").module, batches[0]), wanted[0], strict=True):
        np.testing.assert_array_equal(got, array)


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"state_scale": 2.0**-12}, "the basic kernel has only 2"), ({"weights": 0.1}, "more than the gates'")],
)
def test_refused(options: dict[str, float], reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        convert(_model(np.random.default_rng(0), **options), format="tosa")
