"""Writing ONNX files, with the package `onnx`.

An op of the dialect is a node of its class's name. Constants are initializers. A first dim that is open is called
"batch", others by their tensor. An argument with a first value, a state, is an input with an initializer, which a
caller may leave out; or an input that is given in every run, for runtimes that take an initializer as a constant. (A
sparse initializer would serve both, but ONNX's inference of types refuses it.) Metadata: the scales and zero points of
inputs and outputs, which input each state's output is for, the first values that no initializer has, and which runtimes
compute the model exactly.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tflq.base.errors import MissingPackageError, Reason, UnsupportedError
from tflq.formats.onnx.dialect import Cast
from tflq.formats.onnx.engine import OPSET, exact_in
from tflq.ir.module import Function, Module
from tflq.ir.ops import Block, Op, Value
from tflq.ir.types import ScalarType, parameters
from tflq.numerics.kernel_sets import IN_FILE, Exactness

if TYPE_CHECKING:
    import onnx


IR_VERSION: Final = 8
"""The first version of the file format that has the opset."""

_LARGEST = (1 << 31) - 1
"""Bytes of a file: protobuf's limit."""
_NAMES: Final = {"i1": "BOOL", "f32": "FLOAT", "f64": "DOUBLE"}


def onnx_pieces(module: Module, function: int = 0) -> Iterable[bytes]:
    """The file of an entry. TflqError without the package `onnx`; UnsupportedError for a file of 2 GB or more."""
    model = onnx_model(module, function)
    if model.ByteSize() > _LARGEST:
        raise UnsupportedError(
            Reason("an ONNX file holds less than 2 GB", module.source, remedy="convert a part (--cut)")
        )
    return [model.SerializeToString(deterministic=True)]


def onnx_model(module: Module, function: int = 0) -> onnx.ModelProto:
    """An entry as a model of the package `onnx`. UnsupportedError for one without outputs."""
    try:
        import onnx
    except ImportError:
        raise MissingPackageError("writing ONNX needs the package onnx", "onnx") from None
    if not module.functions[function].outputs:
        raise UnsupportedError(
            Reason("ONNX Runtime loads no graph without outputs", module.source, remedy="name a tensor (--cut)")
        )
    graph = _Graph(module.functions[function], onnx)
    model = onnx.helper.make_model(
        graph.proto(),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="tflq",
        doc_string=module.description or "",
    )
    properties = graph.metadata()
    if (exactness := Exactness.read(module.metadata_of(IN_FILE))) is not None:
        properties[IN_FILE] = exactness.text
    onnx.helper.set_model_props(model, properties)
    return model


class _Graph:
    """One function as a graph."""

    def __init__(self, function: Function, library: Any) -> None:
        self.function = function
        self.onnx = library
        self.names, self.used = named(function)
        self.constants: dict[str, Value] = {}

    def proto(self) -> onnx.GraphProto:
        helper = self.onnx.helper
        nodes = [self._node(op) for op in self.function.ops]
        tensors = [self._tensor(name, value.array, value.type.storage) for name, value in self.constants.items()]
        tensors += [self._tensor(self.names[v], start, v.type.storage) for v, start in self._starts(required=False)]
        sides = ([self._described(v) for v in side] for side in (self.function.inputs, self.function.outputs))
        return helper.make_graph(nodes, self.function.name or "main", *sides, initializer=tensors)

    def metadata(self) -> dict[str, str]:
        """The properties of the file beyond the graph."""
        values = {self.names[v]: v for v in (*self.function.inputs, *self.function.outputs)}
        scales = {name: _parameters(v) for name, v in values.items() if "quantized" in v.info}
        starts = {v.name: self.names[v] for v in self.function.inputs if "start" in v.info}
        state = {self.names[v]: starts[v.info["state"]] for v in self.function.outputs if "state" in v.info}
        properties: dict[str, Any] = {"tflq.exact_in": exact_in(self.function), "tflq.quantization": scales}
        if state:
            properties["tflq.state"] = state
        if start := {self.names[v]: _first(array) for v, array in self._starts(required=True)}:
            properties["tflq.start"] = start
        results = (v for op in self.function.ops for v in op.results if "holds" in v.info)
        properties["tflq.tensors"] = {v.name: (self.names[v], *v.info["holds"]) for v in results}
        return {key: json.dumps(value, separators=(",", ":")) for key, value in properties.items()}

    def _starts(self, *, required: bool) -> list[tuple[Value, np.ndarray]]:
        """The states that callers have to give, or those that they may leave out, with their first values."""
        states = (v for v in self.function.inputs if "start" in v.info)
        return [(v, v.info["start"]) for v in states if v.info["given"] == required]

    def _node(self, op: Op) -> onnx.NodeProto:
        attributes = {key: list(v) if isinstance(v, tuple) else v for key, v in op.attributes.items()}
        if isinstance(op, Cast):
            attributes["to"] = self._code(op.result.type.storage)
        for name, region in zip(getattr(op, "graphs", ()), op.regions, strict=True):
            attributes[name] = self._inner(name, region.block)
        inputs = ["" if v is None else self._name(v) for v in op.operands]
        outputs = [self.names[v] for v in op.results]
        return self.onnx.helper.make_node(type(op).__name__, inputs, outputs, **attributes)

    def _inner(self, name: str, block: Block) -> onnx.GraphProto:
        """A graph inside of an operator. Each of its results must come from a node of its own."""
        *ops, end = block.ops
        helper, nodes = self.onnx.helper, [self._node(op) for op in ops]
        inside = {value for op in ops for value in op.results}
        outputs: list[str] = []
        for value in end.present_operands:
            result = self._name(value)
            if value not in inside or result in outputs:
                result = _free(f"{result}_result", self.used)
                nodes.append(helper.make_node("Identity", [self._name(value)], [result]))
            outputs.append(result)
        types = [(n, self._code(v.type.storage), None) for n, v in zip(outputs, end.present_operands, strict=True)]
        arguments = [(self.names[v], self._code(v.type.storage), v.type.shape) for v in block.arguments]
        sides = ([helper.make_tensor_value_info(*row) for row in side] for side in (arguments, types))
        return helper.make_graph(nodes, name, *sides)

    def _name(self, value: Value) -> str:
        name = self.names[value]
        if value.is_constant:
            self.constants[name] = value
        return name

    def _code(self, element: ScalarType) -> int:
        """ONNX's number of an element type."""
        name = _NAMES.get(element.name) or element.name.replace("ui", "UINT").replace("i", "INT")
        return int(self.onnx.TensorProto.DataType.Value(name.upper()))

    def _tensor(self, name: str, array: np.ndarray, element: ScalarType) -> onnx.TensorProto:
        little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
        return self.onnx.helper.make_tensor(name, self._code(element), array.shape, little.tobytes(), raw=True)

    def _described(self, value: Value) -> onnx.ValueInfoProto:
        """An input or output: its name, type and dims."""
        name = self.names[value]
        dims = value.type.shape
        shape = None if dims is None else [_dim(name, i, d) for i, d in enumerate(dims)]
        return self.onnx.helper.make_tensor_value_info(name, self._code(value.type.storage), shape)


def _dim(name: str, index: int, dim: int | None) -> int | str:
    if dim is not None:
        return dim
    return f"{name}_{index}" if index else "batch"


def _first(array: np.ndarray) -> Any:
    """The elements, in a row, or the one number that all of them are."""
    elements = array.reshape(-1)
    alike = elements.size and np.array_equal(np.resize(elements[:1], elements.shape), elements)
    return elements[0].item() if alike else elements.tolist()


def _parameters(value: Value) -> Mapping[str, Any]:
    """Scale and zero point of an input or output."""
    element = value.info["quantized"]
    scale, zero_point = parameters(value.type.with_element(element))
    scaling = {"scale": np.reshape(scale, -1).tolist(), "zero_point": np.reshape(zero_point, -1).tolist()}
    return scaling | ({"axis": int(axis)} if (axis := getattr(element, "axis", None)) is not None else {})


def named(function: Function) -> tuple[dict[Value, str], set[str]]:
    """A name for each value, and all of them: its own for inputs and outputs, and for others as far as it is free; else
    a number."""
    names: dict[Value, str] = {}
    used: set[str] = set()
    edges = [*((v, "input") for v in function.inputs), *((v, "output") for v in function.outputs)]
    for value, kind in edges:
        if value not in names:
            names[value] = _free(value.name or kind, used)
    for value in function.values():
        if value not in names:
            names[value] = _free(value.name or "t", used, numbered=not value.name)
    return names, used


def _free(name: str, used: set[str], *, numbered: bool = False) -> str:
    """The name, or with a number that makes it one of its own."""
    number, candidate = len(used), f"{name}{len(used)}" if numbered else name
    while candidate in used:
        number += 1
        candidate = f"{name}_{number}"
    used.add(candidate)
    return candidate
