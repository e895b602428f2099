"""Samples of operators that call subgraphs, hold variables, read sparse constants or are recurrent, and of
StableHLO."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import (
    ElementType,
    ScalarType,
    TensorType,
    UniformQuantizedType,
    f32,
    i1,
    i8,
    i16,
    i32,
    resource,
    ui8,
)
from tflq.tools.coverage.samples_of_layers import (
    STORED,
    Entry,
    Plain,
    Samples,
    Shaped,
    condition,
    entry,
    file_of,
    ints,
    longs,
    op_of,
    per_layer,
    stored,
)

_SHAPE = (2, 3)

_COMPOSITE = {
    "name": "tflq.relu",
    "version": 1,
    "composite_attributes": np.asarray([0, 0, 1, 0, 0, 36, 1], np.uint8),  # a flexbuffer of no attributes
}


def _tensor(element: ElementType, name: str, shape: Shaped = _SHAPE) -> Value:
    return Value(TensorType(shape, element), name)


def _relu(element: UniformQuantizedType, name: str) -> Function:
    """A subgraph of one RELU."""
    x, y = _tensor(element, f"{name}_in"), _tensor(element, f"{name}_out")
    return Function(name, [x], [y], [op_of("relu", [x], [y])])


def _call(name: str, storage: ScalarType) -> bytes:
    element = per_layer(storage)
    attribute = "subgraph" if name == "call" else "decomposition_subgraph_index"
    options = {attribute: 1, **(_COMPOSITE if name == "stablehlo_composite" else {})}
    return file_of(name, [_tensor(element, "in0")], [_tensor(element, "out0")], options, [_relu(element, "body")])


def _branches(name: str, storage: ScalarType) -> bytes:
    element = per_layer(storage)
    x, other = _tensor(element, "else_in"), _relu(element, "then")
    functions = [other, Function("else", [x], [x], [])]
    if name == "if":
        chosen = _tensor(i1, "in1", ())
        options: dict[str, Any] = {"then_subgraph_index": 1, "else_subgraph_index": 2}
    else:
        chosen = _tensor(i32, "in1", ())
        options = {"branch_subgraph_indices": np.asarray([1, 2], np.int32)}
    return file_of(name, [chosen, _tensor(element, "in0")], [_tensor(element, "out0")], options, functions)


def _loop(name: str, storage: ScalarType) -> bytes:
    """A loop over a counter and a tensor: three rounds of RELU."""
    element = per_layer(storage)
    counters = [_tensor(i32, f"n{i}", ()) for i in range(3)]
    unused = _tensor(element, "cond_in")
    goes_on, limit = _tensor(i1, "goes_on", ()), stored((), i32, "limit", np.asarray(3))
    test = op_of("less", [counters[1], limit], [goes_on])
    body = _relu(element, "body")
    more, one = _tensor(i32, "more", ()), stored((), i32, "one", np.asarray(1))
    body.ops.append(op_of("add", [counters[2], one], [more]))
    body.inputs.insert(0, counters[2])
    body.outputs.insert(0, more)
    functions = [Function("cond", [counters[1], unused], [goes_on], [test]), body]
    results = [_tensor(i32, "out0", ()), _tensor(element, "out1")]
    options = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
    return file_of(name, [counters[0], _tensor(element, "in0")], results, options, functions)


def _variable(storage: ScalarType) -> bytes:
    """A variable that starts as a constant, is read, and takes the input."""
    element = per_layer(storage)
    x, state = _tensor(element, "in0"), _tensor(element, "out0")
    first, handle = _handle("first"), _handle("handle")
    start = op_of("assign_variable", [first.result, stored(_SHAPE, element, "start")], [])
    ops = [
        op_of("call_once", [], [], {"init_subgraph_index": 1}),
        handle,
        op_of("read_variable", [handle.result], [state]),
        op_of("assign_variable", [handle.result, x], []),
    ]
    return bytes(write(Module([Function("main", [x], [state], ops), Function("start", [], [], [first, start])])))


def _handle(name: str) -> Op:
    return op_of("var_handle", [], [_tensor(resource, name, ())], {"container": "", "shared_name": "state"})


def _custom(storage: ScalarType) -> bytes:
    element = per_layer(storage)
    return file_of("custom", [_tensor(element, "in0")], [_tensor(element, "out0")], {"custom_code": "TflqUnknown"})


def _densify(storage: ScalarType) -> bytes:
    """A constant of two rows, of which every other element is stored."""
    value = stored((4,), per_layer(storage), "sparse")
    value.type = TensorType((2, 4), value.type.element)
    dense = {"format": "DENSE", "dense_size": 2, "array_segments": None, "array_indices": None}
    level = {"format": "SPARSE_CSR", "dense_size": 0}
    level["array_segments"] = ("Int32Vector", {"values": np.asarray([0, 2, 4], np.int32)})
    level["array_indices"] = ("Int32Vector", {"values": np.asarray([0, 2, 1, 3], np.int32)})
    order = np.asarray([0, 1], np.int32)
    value.info = {"sparsity": {"traversal_order": order, "block_map": None, "dim_metadata": (dense, level)}}
    result = Value(TensorType((2, 4), value.type.element), "out0")
    return file_of("densify", [value], [result], {})


def _each(make: Callable[[ScalarType], bytes], name: str) -> Samples:
    for storage in (i8,) if name in _UNTYPED else STORED:
        yield f"{name} {storage}: ", make(storage)


_UNTYPED = ("call_once", "var_handle")
"""Operators that have no tensor of the variable's type."""


_MAKERS: Mapping[str, Callable[[ScalarType], bytes]] = {
    **{name: partial(_call, name) for name in ("call", "stablehlo_composite")},
    **{name: partial(_branches, name) for name in ("if", "stablehlo_case")},
    **{name: partial(_loop, name) for name in ("while", "stablehlo_while")},
    **dict.fromkeys(("var_handle", "read_variable", "assign_variable", "call_once"), _variable),
    "custom": _custom,
    "densify": _densify,
}


# Recurrent operators: integer kernels where TFLite has them, and hybrid ones (float activations, int8 weights).
#
# Operands in the order of kernels/lstm_shared.h, svdf.cc, basic_rnn.cc and bidirectional_sequence_{lstm,rnn}.cc.


_BATCH, _STEPS, _DEPTH, _CELLS = 2, 3, 5, 4
_CLIPS = {"cell_clip": 0.0, "proj_clip": 0.0}
_TANH = {"fused_activation_function": "TANH"}


def _state(shape: Shaped, element: ElementType, name: str) -> Value:
    return Value(TensorType(shape, element), name, info={"is_variable": True})


def _weights(rows: int, columns: int, name: str, storage: ScalarType = i8) -> Value:
    return stored((rows, columns), per_layer(storage, 0.01, 128 if storage == ui8 else 0), name)


def _vector(element: ElementType, name: str) -> Value:
    return stored((_CELLS,), element, name, np.arange(_CELLS) * 0.125 if element == f32 else np.arange(_CELLS) * 50)


def _svdf() -> Samples:
    filters, memory, rank = 2 * _CELLS, 4, 2

    def build(
        x: ElementType, w: ScalarType, time: ElementType, bias: ElementType, state: ElementType, y: ElementType
    ) -> bytes:
        operands = [
            _tensor(x, "in0", (_BATCH, _DEPTH)),
            _weights(filters, _DEPTH, "feature", w),
            stored((filters, memory), time, "time"),
            _vector(bias, "bias"),
            _state((_BATCH, filters * memory), state, "state"),
        ]
        return file_of(
            "svdf",
            operands,
            [_tensor(y, "out0", (_BATCH, _CELLS))],
            {"rank": rank, "fused_activation_function": "RELU"},
        )

    memory_type = per_layer(i16, 0.001)
    yield (
        "svdf i8 × i8: integer",
        build(per_layer(i8), i8, memory_type, per_layer(i32, 1e-6), memory_type, per_layer(i8)),
    )
    for w in (i8, ui8):
        yield f"svdf f32 × {w}: hybrid", build(f32, w, per_layer(w, 0.01, 128 if w == ui8 else 0), f32, f32, f32)


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

    def build(
        element: ElementType,
        output: ElementType,
        states: Sequence[ElementType],
        bias: ElementType,
        inner: Sequence[Value],
        w: ScalarType = i8,
    ) -> bytes:
        weights = lambda rows, columns, label: _weights(rows, columns, label, w)  # noqa: E731
        state = [_state((_BATCH, _CELLS), e, n) for e, n in zip(states, ("h", "c"), strict=True)]
        operands = [_tensor(element, "in0", x), *_gates(x, weights, bias), *state, *[None] * 4]
        return file_of(name, operands, [_tensor(output, "out0", y)], options, intermediates=inner)

    inner = [_tensor(per_layer(i16, 2.0**-11), f"i{g}", (0,)) for g in range(4)]
    inner.append(_tensor(hidden, "hidden", (0,)))
    yield f"{name} i8 × i8: integer", build(per_layer(i8), hidden, (hidden, cell), per_layer(i32, 5e-4), inner)
    for w in (i8, ui8):
        yield f"{name} f32 × {w}: hybrid", build(f32, f32, (f32, f32), f32, (), w)
    if not sequence:
        yield "lstm ui8 × ui8: basic", _basic()


def _basic() -> bytes:
    activation, cell = per_layer(ui8, 2.0**-7, 128), per_layer(i16, 2.0**-11)
    operands = [
        _tensor(activation, "in0", (_BATCH, _DEPTH)),
        _state((_BATCH, _CELLS), activation, "h"),
        _weights(4 * _CELLS, _DEPTH + _CELLS, "weights", ui8),
        stored((4 * _CELLS,), per_layer(i32, 0.01 * 2.0**-7), "bias"),
        _state((_BATCH, _CELLS), cell, "c"),
    ]
    results = [
        _tensor(activation, "out0", (_BATCH, _CELLS)),
        _tensor(cell, "out1", (_BATCH, _CELLS)),
        _tensor(activation, "out2", (_BATCH, _DEPTH + _CELLS)),
        _tensor(per_layer(i16, 2.0**-12), "out3", (_BATCH, 4 * _CELLS)),
    ]
    return file_of("lstm", operands, results, {**_TANH, **_CLIPS, "kernel_type": "BASIC"})


def _bidirectional_lstm() -> Samples:
    x = (_BATCH, _STEPS, _DEPTH)
    for w in (i8, ui8):
        weights = lambda rows, columns, label, w=w: _weights(rows, columns, label, w)  # noqa: E731
        states = [_state((_BATCH, _CELLS), f32, n) for n in ("fh", "fc", "bh", "bc")]
        gates = [*_gates(x, weights, f32, "f"), *_gates(x, weights, f32, "b")]
        operands = [_tensor(f32, "in0", x), *gates, *states, *[None] * 9]
        result = _tensor(f32, "out0", (_BATCH, _STEPS, 2 * _CELLS))
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
        operands = [_tensor(element, "in0", x), *cells, *([None] * 3 if both else [])]
        result = _tensor(element, "out0", (*x[:-1], _CELLS * (2 if both else 1)))
        words = "hybrid" if element == f32 else "no kernel"
        yield (
            f"{name} {getattr(element, 'storage', element)} × {w}: {words}",
            file_of(name, operands, [result], options),
        )


_RECURRENT: Mapping[str, Callable[[], Samples]] = {
    "svdf": _svdf,
    "lstm": lambda: _lstm("lstm"),
    "unidirectional_sequence_lstm": lambda: _lstm("unidirectional_sequence_lstm"),
    "bidirectional_sequence_lstm": _bidirectional_lstm,
    "rnn": lambda: _rnn("rnn"),
    "unidirectional_sequence_rnn": lambda: _rnn("unidirectional_sequence_rnn"),
    "bidirectional_sequence_rnn": lambda: _rnn("bidirectional_sequence_rnn"),
}


# StableHLO operators of TFLite files, also those that combine elements by a subgraph.


_X = (2, 3)
_UNARY = "abs cbrt convert cosine exponential floor log logistic negate rsqrt tanh".split()
_BINARY = "add and divide maximum minimum multiply or power remainder shift_left subtract".split()


def _start() -> np.ndarray:
    return np.asarray(1, np.int32)


_PADDED: dict[str, Any] = {
    "edge_padding_low": longs(1, 0),
    "edge_padding_high": longs(0, 2),
    "interior_padding": longs(0, 1),
}
_DOT: dict[str, Any] = {
    "lhs_batching_dimensions": longs(),
    "rhs_batching_dimensions": longs(),
    "lhs_contracting_dimensions": longs(1),
    "rhs_contracting_dimensions": longs(0),
}
_CONVOLUTION: dict[str, Any] = {
    "window_strides": longs(1, 1),
    "padding": longs(0, 0, 0, 0),
    "lhs_dilation": longs(1, 1),
    "rhs_dilation": longs(1, 1),
    "input_batch_dimension": 0,
    "input_feature_dimension": 3,
    "input_spatial_dimensions": longs(1, 2),
    "kernel_input_feature_dimension": 2,
    "kernel_output_feature_dimension": 3,
    "kernel_spatial_dimensions": longs(0, 1),
    "output_batch_dimension": 0,
    "output_feature_dimension": 3,
    "output_spatial_dimensions": longs(1, 2),
    "feature_group_count": 1,
    "batch_group_count": 1,
}
_GATHERED: dict[str, Any] = {
    "offset_dims": longs(1),
    "collapsed_slice_dims": longs(0),
    "start_index_map": longs(0),
    "index_vector_dim": 1,
    "slice_sizes": longs(1, 3),
}

_ENTRIES: Mapping[str, Entry] = {
    **dict.fromkeys(_UNARY, entry([_X], [_X])),
    **dict.fromkeys(_BINARY, entry([_X, _X], [_X])),
    "broadcast_in_dim": entry([(3,)], [_X], broadcast_dimensions=longs(1)),
    "clamp": entry([_X, _X, _X], [_X]),
    "compare": entry([_X, _X], [condition(*_X)], comparison_direction="STABLEHLO_COMPARISON_DIRECTION_LT"),
    "concatenate": entry([_X, _X], [(2, 6)], dimension=1),
    "convolution": entry([(1, 4, 4, 2), (2, 2, 2, 3)], [(1, 3, 3, 3)], **_CONVOLUTION),
    "custom_call": entry([_X], [_X], call_target_name="tflq.unknown"),
    "dot_general": entry([_X, (3, 4)], [(2, 4)], **_DOT),
    "dynamic_slice": entry([_X, _start(), _start()], [(1, 2)], slice_sizes=longs(1, 2)),
    "dynamic_update_slice": entry([_X, (1, 2), _start(), _start()], [_X]),
    "gather": entry([_X, ints([[1], [0]])], [_X], **_GATHERED),
    "iota": entry([], [_X], iota_dimension=1),
    "pad": entry([_X, ()], [(3, 7)], **_PADDED),
    "reshape": entry([_X], [(3, 2)]),
    "select": entry([condition(*_X), _X, _X], [_X]),
    "slice": entry([_X], [(1, 2)], start_indices=longs(1, 0), limit_indices=longs(2, 3), strides=longs(1, 2)),
    "transpose": entry([_X], [(3, 2)], permutation=longs(1, 0)),
}
ENTRIES: Mapping[str, Entry] = {f"stablehlo_{name}": layer for name, layer in _ENTRIES.items()}


def _combiner(element: UniformQuantizedType, name: str, result: UniformQuantizedType | ScalarType) -> Function:
    """A subgraph of one operator on two scalars."""
    operands: list[Value | None] = [_tensor(element, f"{name}{i}", ()) for i in range(2)]
    op = op_of(name, operands, [_tensor(result, f"{name}_out", ())])
    return Function(name, [v for v in operands if v], op.results, [op])


def _combined(name: str, operands: list[Plain | np.ndarray | Shaped], y: Shaped, options: Mapping[str, Any]) -> Samples:
    """An operator that combines elements by a subgraph: the larger of two; a sort's order."""
    compares = name == "stablehlo_sort"
    for storage in STORED:
        element = per_layer(storage)
        values = [
            constant(slot, name=f"in{i}")
            if isinstance(slot, np.ndarray)
            else Value(TensorType(slot, element), f"in{i}")  # type: ignore[arg-type]
            for i, slot in enumerate(operands)
        ]
        called = _combiner(element, "less" if compares else "maximum", i1 if compares else element)
        yield f"{name} {storage}: ", file_of(name, values, [Value(TensorType(y, element), "out0")], options, [called])


_REDUCED = {"dimensions": longs(1), "body_subgraph_index": 1}
_WINDOW = {
    "window_dimensions": longs(2, 2),
    "window_strides": longs(1, 1),
    "base_dilations": longs(1, 1),
    "window_dilations": longs(1, 1),
    "padding": longs(0, 0, 0, 0),
    "body_subgraph_index": 1,
}
_SCATTERED = {
    "update_window_dims": longs(1),
    "inserted_window_dims": longs(0),
    "scatter_dims_to_operand_dims": longs(0),
    "index_vector_dim": 1,
    "update_computation_subgraph_index": 1,
}
_SORTED = {"dimension": 1, "is_stable": True, "comparator_subgraph_index": 1}
_STABLEHLO: Mapping[str, Callable[[], Samples]] = {
    "stablehlo_reduce": partial(_combined, "stablehlo_reduce", [_X, ()], (2,), _REDUCED),
    "stablehlo_reduce_window": partial(_combined, "stablehlo_reduce_window", [_X, ()], (1, 2), _WINDOW),
    "stablehlo_scatter": partial(_combined, "stablehlo_scatter", [_X, ints([[1]]), (1, 3)], _X, _SCATTERED),
    "stablehlo_sort": partial(_combined, "stablehlo_sort", [_X], _X, _SORTED),
}

SAMPLES: Mapping[str, Callable[[], Samples]] = {
    **{name: partial(_each, make, name) for name, make in _MAKERS.items()},
    **_RECURRENT,
    **_STABLEHLO,
}
