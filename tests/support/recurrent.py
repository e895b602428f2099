"""Models with one recurrent operator, and their state over several runs: the evaluator against the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from support.harness import argument, const, interpret
from support.running import reference
from tflq.analysis.evaluate.registry import Run, evaluate_function
from tflq.conversion.convert import convert
from tflq.formats.tflite.reader import read
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, f32, i8, i16, i32
from tflq.legalize.deciding import Policy
from tflq.legalize.engine import legalize


def per_layer(storage: ScalarType, scale: float, zero_point: int = 0) -> UniformQuantizedType:
    return UniformQuantizedType(storage, f32, scale, zero_point, storage.minimum, storage.maximum)


def state(shape: tuple[int, ...], element: UniformQuantizedType, name: str) -> Value:
    return Value(TensorType(shape, element), name, info={"is_variable": True})


def recurrent_model(
    name: str,
    operands: Sequence[Value | None],
    result: Value,
    attributes: dict[str, Any],
    intermediates: Sequence[Value] = (),
) -> bytes:
    """The file of a model whose input is the operator's first operand."""
    op = Op(name, list(operands), [result], attributes, info={"version": 1}, intermediates=list(intermediates))
    return bytes(write(Module([Function("main", [v for v in operands[:1] if v], [result], [op])])))


def svdf_model(
    rng: np.random.Generator,
    batch: int = 2,
    depth: int = 5,
    units: int = 3,
    rank: int = 2,
    memory: int = 4,
    **given: Any,
) -> bytes:
    filters = units * rank
    time = rng.integers(-given.get("time", 900), given.get("time", 900) + 1, (filters, memory))
    bias = const(rng.integers(-given.get("bias", 900), given.get("bias", 900) + 1, units), per_layer(i32, 2e-5), "bias")
    operands = [
        argument((batch, depth), per_layer(i8, 0.05, 7)),
        const(rng.integers(-127, 128, (filters, depth)), per_layer(i8, 0.01), "feature"),
        const(time, per_layer(i16, 0.001), "time"),
        bias if given.get("biased", True) else None,
        state((batch, filters * memory), per_layer(i16, 0.0009), "state"),
    ]
    result = argument((batch, units), per_layer(i8, given.get("scale", 0.03), -5), "y")
    attributes = {
        "rank": rank,
        "fused_activation_function": given.get("activation", "RELU"),
        "asymmetric_quantize_inputs": False,
    }
    return recurrent_model("tfl.svdf", operands, result, attributes)


def lstm_model(
    rng: np.random.Generator,
    name: str = "unidirectional_sequence_lstm",
    *,
    batch: int = 2,
    steps: int = 3,
    depth: int = 5,
    cells: int = 6,
    outputs: int = 0,
    cifg: bool = False,
    peephole: bool = False,
    norm: bool = False,
    time_major: bool = False,
    cell_clip: float = 0.0,
    proj_clip: float = 0.0,
    cell_exponent: int = -11,
) -> bytes:
    """An LSTM with random weights; a projection if `outputs` is given."""
    projected, outputs = bool(outputs), outputs or cells

    def weights(rows: int, columns: int, label: str) -> Value:
        scale = float(rng.uniform(0.005, 0.02))
        return const(rng.integers(-127, 128, (rows, columns)), per_layer(i8, scale), label)

    def gates(make: Any, *left_out: int) -> list[Value | None]:
        return [None if g in left_out else make(g) for g in range(4)]

    none = (0,) if cifg else ()
    hidden = per_layer(i8, 0.0078, 4)
    output = per_layer(i8, 0.009, 3) if projected else hidden
    wide = [const(rng.integers(-9000, 9000, cells), per_layer(i16, 2e-4), f"p{g}") for g in range(3)]
    norms = [const(rng.integers(5000, 20000, cells), per_layer(i16, 6e-5), f"n{g}") for g in range(4)]
    biases = [const(rng.integers(-3000, 3000, cells), per_layer(i32, 5e-4), f"b{g}") for g in range(4)]
    shape = (steps, batch, depth) if time_major else (batch, steps, depth)
    made = (*shape[:2], outputs)
    if name == "lstm":
        shape, made = (batch, depth), (batch, outputs)  # type: ignore[assignment]
    operands = [
        argument(shape, per_layer(i8, 0.05, 3)),
        *gates(lambda g: weights(cells, depth, f"w{g}"), *none),
        *gates(lambda g: weights(cells, outputs, f"r{g}"), *none),
        *[None if not peephole or (cifg and g == 0) else wide[g] for g in range(3)],
        *gates(lambda g: biases[g], *none),
        weights(outputs, cells, "projection") if projected else None,
        const(rng.integers(-900, 900, outputs), per_layer(i32, 1e-4), "pb") if projected else None,
        state((batch, outputs), output, "h"),
        state((batch, cells), per_layer(i16, 2.0**cell_exponent), "c"),
        *gates(lambda g: norms[g], *(none if norm else range(4))),
    ]
    attributes: dict[str, Any] = {
        "fused_activation_function": "TANH",
        "cell_clip": cell_clip,
        "proj_clip": proj_clip,
        "asymmetric_quantize_inputs": False,
    }
    if name == "lstm":
        attributes["kernel_type"] = "FULL"
    else:
        attributes |= {"time_major": time_major, "diagonal_recurrent_tensors": False}
    inner = [argument((0,), per_layer(i16, float(rng.uniform(4e-4, 9e-4))), f"i{g}") for g in range(4)]
    inner.append(argument((0,), hidden, "hidden"))
    return recurrent_model(f"tfl.{name}", operands, argument(made, output, "y"), attributes, inner)


def assert_same_states(model: bytes, rng: np.random.Generator, runs: int = 4) -> None:
    """The interpreter's results over several runs are the evaluator's, those of the TOSA file brought back to TFLite,
    and, of the first run, the reference model's."""
    module = legalize(read(model), Policy(state="lowered"))[0]
    main, run = module.main, Run(module)
    shape = tuple(d or 0 for d in main.inputs[0].type.shape or ())
    batches = [[rng.integers(-128, 128, shape).astype(np.int8)] for _ in range(runs)]
    wanted = interpret(model, batches)
    for (x,), (want,) in zip(batches, wanted, strict=True):
        got = evaluate_function(main, {main.inputs[0]: x}, run)[main.outputs[0]]
        np.testing.assert_array_equal(got, want)
    assert np.unique(wanted).size > 3, "the test tells nothing"
    tosa = convert(model, format="tosa")
    np.testing.assert_array_equal(reference(tosa.module, batches[0])[0], wanted[0][0])
    for (got,), (want,) in zip(interpret(convert(tosa.data).data, batches), wanted, strict=True):
        np.testing.assert_array_equal(got, want)
