"""Operators that call subgraphs, hold variables or read sparse constants: what passes through them is quantized."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tflq.coverage.samples.entry import SCALE, file_of, per_layer, stored
from tflq.dialects.tfl import op_name
from tflq.dialects.tfl.activation import Relu
from tflq.dialects.tfl.arithmetic import Add
from tflq.dialects.tfl.comparison import Less
from tflq.dialects.tfl.control import CallOnce, Custom
from tflq.dialects.tfl.state import VarHandle
from tflq.flatbuffer.writer import write
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, i1, i8, i16, i32, resource, ui8

__all__ = ["SAMPLES"]

_SHAPE = (2, 3)
Samples = Iterator[tuple[str, bytes]]


_COMPOSITE = {
    "name": "tflq.relu",
    "version": 1,
    "composite_attributes": np.asarray([0, 0, 1, 0, 0, 36, 1], np.uint8),  # a flexbuffer of no attributes
}


def _tensor(element: UniformQuantizedType, name: str) -> Value:
    return Value(TensorType(_SHAPE, element), name)


def _relu(element: UniformQuantizedType, name: str) -> Function:
    """A subgraph of one RELU."""
    x, y = _tensor(element, f"{name}_in"), _tensor(element, f"{name}_out")
    return Function(name, [x], [y], [Op(Relu.op_name, [x], [y], {}, info={"version": 1})])


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
        chosen = Value(TensorType((), i1), "in1")
        options: dict[str, Any] = {"then_subgraph_index": 1, "else_subgraph_index": 2}
    else:
        chosen = Value(TensorType((), i32), "in1")
        options = {"branch_subgraph_indices": np.asarray([1, 2], np.int32)}
    return file_of(name, [chosen, _tensor(element, "in0")], [_tensor(element, "out0")], options, functions)


def _loop(name: str, storage: ScalarType) -> bytes:
    """A loop over a counter and a tensor: three rounds of RELU."""
    element = per_layer(storage)
    counters = [Value(TensorType((), i32), f"n{i}") for i in range(3)]
    unused = _tensor(element, "cond_in")
    goes_on, limit = Value(TensorType((), i1), "goes_on"), stored((), i32, "limit", np.asarray(3))
    test = Op(Less.op_name, [counters[1], limit], [goes_on], {}, info={"version": 1})
    body = _relu(element, "body")
    more, one = Value(TensorType((), i32), "more"), stored((), i32, "one", np.asarray(1))
    body.ops.append(Op(Add.op_name, [counters[2], one], [more], {}, info={"version": 1}))
    body.inputs.insert(0, counters[2])
    body.outputs.insert(0, more)
    functions = [Function("cond", [counters[1], unused], [goes_on], [test]), body]
    results = [Value(TensorType((), i32), "out0"), _tensor(element, "out1")]
    options = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
    return file_of(name, [counters[0], _tensor(element, "in0")], results, options, functions)


def _variable(storage: ScalarType) -> bytes:
    """A variable that starts as a constant, is read, and takes the input."""
    element = per_layer(storage)
    x, held = _tensor(element, "in0"), _tensor(element, "out0")
    first, handle = _handle("first"), _handle("handle")
    start = _op("assign_variable", [first.result, stored(_SHAPE, element, "start")], [])
    ops = [
        Op(CallOnce.op_name, [], [], {"init_subgraph_index": 1}, info={"version": 1}),
        handle,
        _op("read_variable", [handle.result], [held]),
        _op("assign_variable", [handle.result, x], []),
    ]
    return bytes(write(Module([Function("main", [x], [held], ops), Function("start", [], [], [first, start])])))


def _handle(name: str) -> Op:
    made = Op(VarHandle.op_name, [], [Value(TensorType((), resource), name)], {"container": "", "shared_name": "state"})
    made.info = {"version": 1}
    return made


def _op(name: str, operands: Sequence[Value], results: Sequence[Value]) -> Op:
    return Op(op_name(name), list(operands), list(results), {}, info={"version": 1})


def _custom(storage: ScalarType) -> bytes:
    element = per_layer(storage, SCALE)
    x, y = _tensor(element, "in0"), _tensor(element, "out0")
    op = Op(Custom.op_name, [x], [y], {"custom_code": "TflqUnknown"}, info={"version": 1})
    return bytes(write(Module([Function("main", [x], [y], [op])])))


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
    for storage in (i8,) if name in _UNTYPED else (i8, ui8, i16):
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
SAMPLES: Mapping[str, Callable[[], Samples]] = {name: partial(_each, make, name) for name, make in _MAKERS.items()}
