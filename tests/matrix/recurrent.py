"""Operators with state, over several runs: SVDF and LSTM on integers, kept or lowered to variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from support.harness import argument, const, edge_inputs
from support.recurrent import state

from matrix.draw import Case, Draw, describe, generator
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, UniformQuantizedType, i8, i16, i32, ui8


def stateful(draw: Draw, name: str, operands: Sequence[Value | None], results: Sequence[Value], **given: Any) -> Case:
    """The case of one operator whose inputs are its operands without data that hold no state."""
    op = Op(f"tfl.{name}", list(operands), list(results), given["attributes"], info={"version": 1})
    op.intermediates = given.get("intermediates", [])
    inputs = [v for v in operands if v is not None and v.buffer is None and not v.info]
    for i, value in enumerate(results):
        value.name = f"y{i}"
    model = bytes(write(Module([Function("main", inputs, list(results), [op])])))
    text = f"{name}({', '.join(map(describe, operands))}) -> {', '.join(map(describe, results))} {op.attributes}"
    options = draw.one({}, {"state": "variables"}, {"state": "variables", "mac": draw.one("integer", "float32")})
    batches = edge_inputs(inputs, draw.whole(0, 1 << 30))
    return Case(
        model,
        [batches[i] for i in draw.rng.permutation(5)],
        text,
        "state" in options,
        conversion=options,
        stateful=True,
    )


def _quantized(storage: ScalarType, scale: float, zero_point: int = 0) -> UniformQuantizedType:
    return UniformQuantizedType.of(storage, float(np.float32(scale)), zero_point)


def _scale(draw: Draw, low: float, high: float) -> float:
    """One within bounds: far beyond, the kernels' arithmetic is undefined."""
    return float(np.float32(2.0 ** draw.rng.uniform(low, high)))


def _constant(draw: Draw, shape: tuple[int, ...], element: UniformQuantizedType, reach: int | None = None) -> Value:
    storage = element.storage
    low, high = (storage.minimum, storage.maximum) if reach is None else (-reach, reach)
    return const(draw.integers(storage, shape, low, high), element, f"c{draw.whole(0, 1 << 30)}")


@generator("svdf")
def svdf(draw: Draw) -> Case:
    batch, depth, units, rank, memory = (draw.whole(1, most) for most in (3, 30, 5, 3, 12))
    filters = units * rank
    x, feature, time = (
        draw.quantized(i8, _scale(draw, -8, 0)),
        _quantized(i8, _scale(draw, -10, -3)),
        _scale(draw, -16, -8),
    )
    held = draw.near(x.scale * feature.scale * 2**14 * np.sqrt(depth) / 2**15)
    y = draw.near(held * time * 2**26 * np.sqrt(rank * memory) / 2**8)
    bias = None
    if draw.chance(0.8):
        bias = _constant(draw, (units,), _quantized(i32, held * time), draw.one(1 << 10, 1 << 20, 1 << 28))
    operands = [
        argument((batch, depth), x),
        _constant(draw, (filters, depth), feature),
        _constant(draw, (filters, memory), _quantized(i16, time), draw.one(None, 900)),
        bias,
        state((batch, filters * memory), _quantized(i16, held), "state"),
    ]
    results = [argument((batch, units), draw.quantized(i8, y))]
    options = {"rank": rank, "fused_activation_function": "RELU", "asymmetric_quantize_inputs": False}
    return stateful(draw, "svdf", operands, results, attributes=options)


@generator("integer_lstm")
def integer_lstm(draw: Draw) -> Case:
    """LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM with gates and cell state in int16."""
    name = draw.one("lstm", "unidirectional_sequence_lstm", "unidirectional_sequence_lstm")
    batch, steps, depth, cells = (draw.whole(1, most) for most in (3, 4, 12, 10))
    cifg, peephole, norm, projected, first = (draw.chance(p) for p in (0.3, 0.35, 0.3, 0.4, 0.5))
    outputs = draw.whole(1, cells) if projected else cells
    exponent = draw.whole(-15, -9)
    if not cifg and draw.chance(0.15):  # the kernel has no tanh for these
        exponent = draw.one(-16, -16, -18, -22) if name == "lstm" or peephole else draw.one(-16, -20, -8, -4, 1)
    x = draw.quantized(i8, _scale(draw, -8, -2))
    hidden = _quantized(i8, draw.one(2.0**-7, draw.near(2.0**-7)), draw.zero_point(i8))
    output = draw.quantized(i8, draw.near(2.0**-7)) if projected else hidden

    def gates(make: Any, *, cell: bool = True, there: bool = True) -> list[Value | None]:
        found = [make() for _ in range(4 if cell else 3)] if there else [None] * (4 if cell else 3)
        return [None, *found[1:]] if cifg else found

    def weights(rows: int, columns: int) -> Value:
        zero = draw.whole(-9, 9) if draw.chance(0.02) else 0
        return _constant(draw, (rows, columns), _quantized(i8, _scale(draw, -11, -5), zero), draw.one(None, 127))

    def bias(rows: int) -> Value:
        return _constant(draw, (rows,), _quantized(i32, _scale(draw, -16, -8)), draw.one(100, 5000, 1 << 20))

    shape: tuple[int, ...] = (steps, batch) if first else (batch, steps)
    if name == "lstm":
        shape = (batch,)
    operands = [
        argument((*shape, depth), x),
        *gates(lambda: weights(cells, depth)),
        *gates(lambda: weights(cells, outputs)),
        *gates(lambda: _constant(draw, (cells,), _quantized(i16, _scale(draw, -15, -10))), cell=False, there=peephole),
        *gates(lambda: bias(cells)),
        weights(outputs, cells) if projected else None,
        bias(outputs) if projected and draw.chance(0.7) else None,
        state((batch, outputs), output, "h"),
        state((batch, cells), _quantized(i16, 2.0**exponent), "c"),
        *gates(lambda: _constant(draw, (cells,), _quantized(i16, _scale(draw, -16, -12)), 32767), there=norm),
    ]
    options: dict[str, Any] = {
        "fused_activation_function": "TANH",
        "cell_clip": draw.one(0.0, 0.0, float(np.float32(draw.rng.uniform(0.01, 9)))),
        "proj_clip": draw.one(0.0, float(np.float32(draw.rng.uniform(0.01, 2)))) if projected else 0.0,
        "asymmetric_quantize_inputs": False,
    }
    options |= {"kernel_type": "FULL"} if name == "lstm" else {"time_major": first, "diagonal_recurrent_tensors": False}
    inner = [argument((0,), _quantized(i16, _scale(draw, -13, -9)), f"i{g}") for g in range(4)]
    inner.append(argument((0,), hidden, "hidden"))
    results = [argument((*shape, outputs), output)]
    return stateful(draw, name, operands, results, attributes=options, intermediates=inner)


@generator("basic_lstm")
def basic_lstm(draw: Draw) -> Case:
    """The basic kernel, on uint8."""
    batch, depth, cells = draw.whole(1, 5), draw.whole(1, 20), 4 * draw.whole(1, 5)
    activation, held = _quantized(ui8, 2.0**-7, 128), _quantized(i16, 2.0**-11)
    weights = _scale(draw, -12, -6)
    bias = _quantized(i32, weights * 2.0**-7)
    rows, total = 4 * cells, depth + cells
    operands = [
        argument((batch, depth), activation),
        state((batch, cells), activation, "h"),
        _constant(draw, (rows, total), _quantized(ui8, weights, draw.whole(0, 255))),
        _constant(draw, (rows,), bias, draw.one(100, 3000, 1 << 20)),
        state((batch, cells), held, "c"),
    ]
    elements = (activation, held, activation, _quantized(i16, 2.0**-12))
    results = [argument((batch, d), e) for d, e in zip((cells, cells, total, rows), elements, strict=True)]
    options = {
        "fused_activation_function": "TANH",
        "cell_clip": 0.0,
        "proj_clip": 0.0,
        "kernel_type": "BASIC",
        "asymmetric_quantize_inputs": False,
    }
    return stateful(draw, "lstm", operands, results, attributes=options)
