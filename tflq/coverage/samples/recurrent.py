"""Recurrent operators: integer kernels where TFLite has them, and hybrid ones (float activations, int8 weights).

Operands in the order of kernels/lstm_shared.h, svdf.cc, basic_rnn.cc and bidirectional_sequence_{lstm,rnn}.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tflq.coverage.samples.entry import Shaped, file_of, per_layer, stored
from tflq.ir.core import Value
from tflq.ir.types import ElementType, ScalarType, TensorType, f32, i8, i16, i32, ui8

__all__ = ["SAMPLES"]

_BATCH, _STEPS, _DEPTH, _CELLS = 2, 3, 5, 4
_CLIPS = {"cell_clip": 0.0, "proj_clip": 0.0}
_TANH = {"fused_activation_function": "TANH"}
Samples = Iterator[tuple[str, bytes]]


def _tensor(shape: Shaped, element: ElementType, name: str) -> Value:
    return Value(TensorType(shape, element), name)


def _state(shape: Shaped, element: ElementType, name: str) -> Value:
    return Value(TensorType(shape, element), name, info={"is_variable": True})


def _weights(rows: int, columns: int, name: str, storage: ScalarType = i8) -> Value:
    return stored((rows, columns), per_layer(storage, 0.01, 128 if storage == ui8 else 0), name)


def _vector(element: ElementType, name: str) -> Value:
    return stored((_CELLS,), element, name, np.arange(_CELLS) * 0.125 if element == f32 else np.arange(_CELLS) * 50)


def _svdf() -> Samples:
    filters, memory, rank = 2 * _CELLS, 4, 2

    def made(
        x: ElementType, w: ScalarType, time: ElementType, bias: ElementType, state: ElementType, y: ElementType
    ) -> bytes:
        operands = [
            _tensor((_BATCH, _DEPTH), x, "in0"),
            _weights(filters, _DEPTH, "feature", w),
            stored((filters, memory), time, "time"),
            _vector(bias, "bias"),
            _state((_BATCH, filters * memory), state, "state"),
        ]
        return file_of(
            "svdf",
            operands,
            [_tensor((_BATCH, _CELLS), y, "out0")],
            {"rank": rank, "fused_activation_function": "RELU"},
        )

    memory_type = per_layer(i16, 0.001)
    yield (
        "svdf i8 × i8: integer",
        made(per_layer(i8), i8, memory_type, per_layer(i32, 1e-6), memory_type, per_layer(i8)),
    )
    for w in (i8, ui8):
        yield f"svdf f32 × {w}: hybrid", made(f32, w, per_layer(w, 0.01, 128 if w == ui8 else 0), f32, f32, f32)


def _gates(
    x: Shaped, weights: Callable[[int, int, str], Value], bias: ElementType, prefix: str = ""
) -> list[Value | None]:
    """Operands 1 to 17: input and recurrent weights, no peepholes, biases, no projection."""
    return [
        *(weights(_CELLS, x[-1], f"{prefix}w{g}") for g in range(4)),
        *(weights(_CELLS, _CELLS, f"{prefix}r{g}") for g in range(4)),
        *[None] * 3,
        *(_vector(bias, f"{prefix}b{g}") for g in range(4)),
        *[None] * 2,
    ]


def _lstm(name: str) -> Samples:
    sequence = name != "lstm"
    x = (_BATCH, _STEPS, _DEPTH) if sequence else (_BATCH, _DEPTH)
    y = (*x[:-1], _CELLS)
    options = {**_TANH, **_CLIPS, **({} if sequence else {"kernel_type": "FULL"})}
    hidden, cell = per_layer(i8, 0.0078, 4), per_layer(i16, 2.0**-11)

    def made(
        element: ElementType,
        output: ElementType,
        states: Sequence[ElementType],
        bias: ElementType,
        inner: Sequence[Value],
        w: ScalarType = i8,
    ) -> bytes:
        weights = lambda rows, columns, label: _weights(rows, columns, label, w)  # noqa: E731
        held = [_state((_BATCH, _CELLS), e, n) for e, n in zip(states, ("h", "c"), strict=True)]
        operands = [_tensor(x, element, "in0"), *_gates(x, weights, bias), *held, *[None] * 4]
        return file_of(name, operands, [_tensor(y, output, "out0")], options, intermediates=inner)

    inner = [_tensor((0,), per_layer(i16, 2.0**-11), f"i{g}") for g in range(4)]
    inner.append(_tensor((0,), hidden, "hidden"))
    yield f"{name} i8 × i8: integer", made(per_layer(i8), hidden, (hidden, cell), per_layer(i32, 5e-4), inner)
    for w in (i8, ui8):
        yield f"{name} f32 × {w}: hybrid", made(f32, f32, (f32, f32), f32, (), w)
    if not sequence:
        yield "lstm ui8 × ui8: basic", _basic()


def _basic() -> bytes:
    activation, cell = per_layer(ui8, 2.0**-7, 128), per_layer(i16, 2.0**-11)
    operands = [
        _tensor((_BATCH, _DEPTH), activation, "in0"),
        _state((_BATCH, _CELLS), activation, "h"),
        _weights(4 * _CELLS, _DEPTH + _CELLS, "weights", ui8),
        stored((4 * _CELLS,), per_layer(i32, 0.01 * 2.0**-7), "bias"),
        _state((_BATCH, _CELLS), cell, "c"),
    ]
    results = [
        _tensor((_BATCH, _CELLS), activation, "out0"),
        _tensor((_BATCH, _CELLS), cell, "out1"),
        _tensor((_BATCH, _DEPTH + _CELLS), activation, "out2"),
        _tensor((_BATCH, 4 * _CELLS), per_layer(i16, 2.0**-12), "out3"),
    ]
    return file_of("lstm", operands, results, {**_TANH, **_CLIPS, "kernel_type": "BASIC"})


def _bidirectional_lstm() -> Samples:
    x = (_BATCH, _STEPS, _DEPTH)
    for w in (i8, ui8):
        weights = lambda rows, columns, label, w=w: _weights(rows, columns, label, w)  # noqa: E731
        states = [_state((_BATCH, _CELLS), f32, n) for n in ("fh", "fc", "bh", "bc")]
        gates = [*_gates(x, weights, f32, "f"), *_gates(x, weights, f32, "b")]
        operands = [_tensor(x, f32, "in0"), *gates, *states, *[None] * 9]
        result = _tensor((_BATCH, _STEPS, 2 * _CELLS), f32, "out0")
        options = {**_TANH, **_CLIPS, "merge_outputs": True, "time_major": False}
        yield (
            f"bidirectional_sequence_lstm f32 × {w}: hybrid",
            file_of("bidirectional_sequence_lstm", operands, [result], options),
        )


def _rnn(name: str) -> Samples:
    both, sequence = name.startswith("bidirectional"), name != "rnn"
    x = (_BATCH, _STEPS, _DEPTH) if sequence else (_BATCH, _DEPTH)
    options = {**_TANH, **({"time_major": False} if sequence else {}), **({"merge_outputs": True} if both else {})}
    for element, w in ((f32, i8), (f32, ui8), (per_layer(i8), i8)):
        cells: list[Value | None] = []
        for prefix in ("f", "b") if both else ("",):
            cells += [_weights(_CELLS, _DEPTH, f"{prefix}w", w), _weights(_CELLS, _CELLS, f"{prefix}r", w)]
            cells += [_vector(f32, f"{prefix}b"), _state((_BATCH, _CELLS), f32, f"{prefix}h")]
        operands = [_tensor(x, element, "in0"), *cells, *([None] * 3 if both else [])]
        result = _tensor((*x[:-1], _CELLS * (2 if both else 1)), element, "out0")
        words = "hybrid" if element == f32 else "no kernel"
        yield (
            f"{name} {getattr(element, 'storage', element)} × {w}: {words}",
            file_of(name, operands, [result], options),
        )


SAMPLES: Mapping[str, Callable[[], Samples]] = {
    "svdf": _svdf,
    "lstm": lambda: _lstm("lstm"),
    "unidirectional_sequence_lstm": lambda: _lstm("unidirectional_sequence_lstm"),
    "bidirectional_sequence_lstm": _bidirectional_lstm,
    "rnn": lambda: _rnn("rnn"),
    "unidirectional_sequence_rnn": lambda: _rnn("unidirectional_sequence_rnn"),
    "bidirectional_sequence_rnn": lambda: _rnn("bidirectional_sequence_rnn"),
}
