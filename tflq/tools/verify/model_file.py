"""Entries, tensors and operators of a TFLite file, read with the `tflite` package.

Nothing here is shared with the project's own reader and writer, so that a comparison shows what they get wrong.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import flatbuffers
import numpy as np

from tflq.base.errors import InvalidModelError
from tflq.base.files import file_errors
from tflq.tools.verify.worker import RESET

if TYPE_CHECKING:
    import tflite


@cache
def names_of(enumeration: str) -> dict[int, str]:
    """The members of an enumeration of the schema, by number. The package of it has hundreds of modules: it is imported
    when the first file is read."""
    import tflite

    members = vars(getattr(tflite, enumeration))
    return {number: name for name, number in members.items() if isinstance(number, int)}


_CALLS: Final = {
    "IfOptions": ("ThenSubgraphIndex", "ElseSubgraphIndex"),
    "WhileOptions": ("CondSubgraphIndex", "BodySubgraphIndex"),
    "CallOnceOptions": ("InitSubgraphIndex",),
    "CallOptions": ("Subgraph",),
}
_CALLS_2: Final = {
    "StableHLOCompositeOptions": ("DecompositionSubgraphIndex",),
    "StablehloWhileOptions": ("CondSubgraphIndex", "BodySubgraphIndex"),
    "StablehloReduceOptions": ("BodySubgraphIndex",),
    "StablehloReduceWindowOptions": ("BodySubgraphIndex",),
    "StablehloScatterOptions": ("UpdateComputationSubgraphIndex",),
    "StablehloSortOptions": ("ComparatorSubgraphIndex",),
}


@dataclass(frozen=True)
class Tensor:
    """One row of a tensor table. `signature` is the shape with -1 for open dims; `scales` are float32."""

    name: str
    type: str
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    scales: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    zero_points: tuple[int, ...] = ()
    axis: int = 0
    details: int = 0
    variable: bool = False


@dataclass(frozen=True)
class Operator:
    """One operator. `code` is its row in the table of operator codes, `calls` are the graphs that it runs."""

    opcode: str
    code: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    calls: tuple[int, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A way into the model: "" is the first graph by position, any other key a signature, by names. Pairs of (name,
    index of the tensor)."""

    key: str
    graph: int
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]


class Graph:
    """One subgraph; `table` is what the package has of it."""

    def __init__(self, table: tflite.SubGraph, codes: Sequence[str]) -> None:
        self.table = table
        self.inputs = _integers(table.InputsAsNumpy())
        self.outputs = _integers(table.OutputsAsNumpy())
        self._codes = codes
        self._tensors: dict[int, Tensor] = {}

    def tensor(self, index: int) -> Tensor:
        if index not in self._tensors:
            self._tensors[index] = _tensor(self.table.Tensors(index))
        return self._tensors[index]

    @cached_property
    def operators(self) -> tuple[Operator, ...]:
        return tuple(_operator(self.table.Operators(i), self._codes) for i in range(self.table.OperatorsLength()))

    def behind_copy(self, index: int) -> int:
        """The tensor that a CAST to the same type copies to this one, which others read instead; else itself."""
        producer = next((op for op in self.operators if index in op.outputs), None)
        if producer is None or producer.opcode != "CAST" or producer.inputs[0] in self.inputs:
            return index
        (source,) = producer.inputs
        return source if self.tensor(source).type == self.tensor(index).type else index

    @cached_property
    def named(self) -> dict[str, int]:
        """The tensors that have a name of their own."""
        names = [_text(self.table.Tensors(i).Name()) for i in range(self.table.TensorsLength())]
        counts = Counter(names)
        return {name: i for i, name in enumerate(names) if name and counts[name] == 1}


class ModelFile:
    """One file. InvalidModelError where it cannot be read."""

    def __init__(self, path: str) -> None:
        self.path = path
        with file_errors(path):
            self.data = np.fromfile(path, np.uint8)  # a mapped file that is truncated would end this process
        try:
            import tflite

            self.model = tflite.Model.GetRootAs(self.data)
            self.codes = [_code(self.model.OperatorCodes(i)) for i in range(self.model.OperatorCodesLength())]
            graphs = [self.model.Subgraphs(i) for i in range(self.model.SubgraphsLength())]
            self.graphs = [Graph(graph, [name for name, _ in self.codes]) for graph in graphs]
            self.entries = {entry.key: entry for entry in self._entries()}
            self.resets = any(_text(s.SignatureKey()) == RESET for s in self._signatures())
        except _BROKEN as error:
            raise InvalidModelError("", f"not a TFLite model that can be read: {error}", path=path) from error

    @cached_property
    def metadata(self) -> dict[str, bytes]:
        """The contents by name."""
        items = [self.model.Metadata(i) for i in range(self.model.MetadataLength())]
        return {_text(item.Name()): self._buffer(item.Buffer()) for item in items}

    @cached_property
    def has_variables(self) -> bool:
        """Whether there are resource variables."""
        return any(name == "VAR_HANDLE" for name, _ in self.codes)

    def _buffer(self, index: int) -> bytes:
        buffer = self.model.Buffers(index)
        if buffer.Offset() > 1:
            return bytes(self.data[buffer.Offset() : buffer.Offset() + buffer.Size()])
        return bytes(buffer.DataAsNumpy()) if buffer.DataLength() else b""

    def _signatures(self) -> list[Any]:
        return [self.model.SignatureDefs(i) for i in range(self.model.SignatureDefsLength())]

    def _entries(self) -> list[Entry]:
        main = self.graphs[0]
        sides = [tuple((main.tensor(i).name, i) for i in indices) for indices in (main.inputs, main.outputs)]
        return [Entry("", 0, *sides), *(entry for entry in self.signatures if entry is not None)]

    @cached_property
    def signatures(self) -> list[Entry | None]:
        """The entry of each signature; None for one that does not count as an entry."""
        entries: list[Entry | None] = []
        for signature in self._signatures():
            key = _text(signature.SignatureKey())
            inputs = [signature.Inputs(i) for i in range(signature.InputsLength())]
            outputs = [signature.Outputs(i) for i in range(signature.OutputsLength())]
            sides = [tuple(sorted((_text(m.Name()), m.TensorIndex()) for m in side)) for side in (inputs, outputs)]
            entries.append(Entry(key, signature.SubgraphIndex(), *sides) if key and key != RESET else None)
        return entries


_BROKEN: Final = (struct.error, IndexError, ValueError, TypeError, AttributeError, OverflowError)
"""Errors that the package, which checks nothing, raises for a file that is not TFLite."""


def entry_of(file: ModelFile, key: str) -> tuple[Entry, Graph]:
    """An entry and its graph."""
    entry = file.entries[key]
    return entry, file.graphs[entry.graph]


def _code(table: tflite.OperatorCode) -> tuple[str, int]:
    """Name and version; the name of a custom operator is its own."""
    number = max(table.BuiltinCode(), table.DeprecatedBuiltinCode())
    name = names_of("BuiltinOperator").get(number, f"BUILTIN {number}")
    name = _text(table.CustomCode()) if name == "CUSTOM" else name
    return name, table.Version()


def _tensor(table: tflite.Tensor) -> Tensor:
    shape = _integers(table.ShapeAsNumpy())
    signature = _integers(table.ShapeSignatureAsNumpy()) or shape
    kind = names_of("TensorType").get(table.Type(), f"type {table.Type()}").lower()
    name, quantization = _text(table.Name()), table.Quantization()
    if quantization is None:
        return Tensor(name, kind, shape, signature, variable=table.IsVariable())
    scales = quantization.ScaleAsNumpy() if quantization.ScaleLength() else np.zeros(0, np.float32)
    axis = quantization.QuantizedDimension() if scales.size > 1 else 0
    zero_points = tuple(int(z) for z in quantization.ZeroPointAsNumpy()) if quantization.ZeroPointLength() else ()
    details, variable = quantization.DetailsType(), table.IsVariable()
    return Tensor(name, kind, shape, signature, scales, zero_points, axis, details, variable)


def _operator(table: tflite.Operator, codes: Sequence[str]) -> Operator:
    code = table.OpcodeIndex()
    inputs, outputs = _integers(table.InputsAsNumpy()), _integers(table.OutputsAsNumpy())
    calls = _calls(table.BuiltinOptions(), table.BuiltinOptionsType(), "BuiltinOptions", _CALLS)
    calls += _calls(table.BuiltinOptions2(), table.BuiltinOptions2Type(), "BuiltinOptions2", _CALLS_2)
    return Operator(codes[code], code, inputs, outputs, calls)


def _calls(options: Any, number: int, kinds: str, callers: dict[str, tuple[str, ...]]) -> tuple[int, ...]:
    name = names_of(kinds).get(number, "")
    if options is None or name not in callers:
        return ()
    table = options_table(name, options)
    return tuple(int(getattr(table, getter)()) for getter in callers[name])


def options_table(name: str, options: Any) -> Any:
    """An operator's options, of which the package does not know the table, as the table of that name."""
    import tflite

    table = getattr(tflite, name)()
    table.Init(options.Bytes, options.Pos)
    return table


def _integers(vector: Any) -> tuple[int, ...]:
    return tuple(vector.tolist()) if isinstance(vector, np.ndarray) else ()


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")


# Copies of a TFLite file that return other tensors, or hold a part of its operators.
#
# A copy is the same bytes with a few of them changed: offsets in a flatbuffer lead forward, so that a vector appended
# to the file can replace another, and tables can move up in the vector that lists them. Nothing is encoded anew, and no
# constant moves.


_SUBGRAPH_INPUTS: Final = 6
_SUBGRAPH_OUTPUTS: Final = 8
_SUBGRAPH_OPERATORS: Final = 10
_MODEL_CODES: Final = 6
_MODEL_SUBGRAPHS: Final = 8
_MODEL_SIGNATURES: Final = 18
"""Places in the vtables of SubGraph and Model, as schema.fbs orders their fields."""

_UINT32: Final = struct.Struct("<I")


class ModelCopy:
    """Changes to a file, and the copy that has them. Every change returns the copy."""

    def __init__(self, file: ModelFile) -> None:
        self._file = file
        self._model: flatbuffers.table.Table = file.model._tab
        self._graphs: list[flatbuffers.table.Table] = [graph.table._tab for graph in file.graphs]
        self._words: dict[int, int] = {}
        self._vectors: list[tuple[int, Sequence[int]]] = []

    def outputs(self, graph: int, tensors: Sequence[int]) -> ModelCopy:
        """Makes a graph return these tensors. ValueError if it has no list of them."""
        return self._vector(self._graphs[graph], _SUBGRAPH_OUTPUTS, tensors)

    def inputs(self, graph: int, tensors: Sequence[int]) -> ModelCopy:
        """Makes a graph take these tensors. ValueError if it has no list of them."""
        return self._vector(self._graphs[graph], _SUBGRAPH_INPUTS, tensors)

    def operators(self, graph: int, indices: Sequence[int]) -> ModelCopy:
        """Keeps these operators of a graph, in this order."""
        return self._keep(self._graphs[graph], _SUBGRAPH_OPERATORS, indices)

    def codes(self, rows: Collection[int]) -> ModelCopy:
        """Keeps these rows of the table of operator codes. The others, which no operator uses, become copies of one of
        them, because an interpreter looks for the kernels of all."""
        targets = self._targets(self._model, _MODEL_CODES)
        for row, (place, _) in enumerate(targets):
            if rows and row not in rows:
                self._words[place] = targets[min(rows)][1] - place
        return self

    def alone(self, graph: int) -> ModelCopy:
        """Makes a graph the first, and removes the signatures. No operator may run this graph or the first one."""
        if graph:
            targets = self._targets(self._model, _MODEL_SUBGRAPHS)
            for row, other in ((0, graph), (graph, 0)):
                self._words[targets[row][0]] = targets[other][1] - targets[row][0]
        return self.signatures(())

    def signatures(self, rows: Sequence[int]) -> ModelCopy:
        """Keeps these rows of the signatures, in this order."""
        return self._keep(self._model, _MODEL_SIGNATURES, rows)

    def write(self, stream: BinaryIO) -> None:
        """Writes the copy. ValueError if the file is too large."""
        data = self._file.data
        end = len(data) + -len(data) % 4
        tail = b""
        for place, vector in self._vectors:
            offset = end + len(tail) - place
            if offset >= 2**32:
                raise ValueError("a file of 4 GiB or more cannot be copied so")
            self._words[place] = offset
            tail += struct.pack(f"<I{len(vector)}i", len(vector), *vector)
        start = 0
        for place, word in sorted(self._words.items()):
            stream.write(data[start:place].data)
            stream.write(_UINT32.pack(word))
            start = place + _UINT32.size
        stream.write(data[start:].data)
        stream.write(bytes(end - len(data)) + tail)

    def _vector(self, table: flatbuffers.table.Table, field: int, values: Sequence[int]) -> ModelCopy:
        place = table.Offset(field)
        if place:
            self._vectors.append((table.Pos + place, tuple(values)))
        elif values:
            raise ValueError("the graph has no list of tensors that can be replaced")
        return self

    def _targets(self, table: flatbuffers.table.Table, field: int) -> list[tuple[int, int]]:
        """Place and target of each element of a vector of tables."""
        offset = table.Offset(field)
        if not offset:
            return []
        start = table.Vector(offset)
        places = [start + _UINT32.size * i for i in range(table.VectorLen(offset))]
        return [(place, table.Indirect(place)) for place in places]

    def _keep(self, table: flatbuffers.table.Table, field: int, indices: Sequence[int]) -> ModelCopy:
        targets = self._targets(table, field)
        if targets:
            self._words[targets[0][0] - _UINT32.size] = len(indices)
        for (place, _), index in zip(targets, indices, strict=False):
            self._words[place] = targets[index][1] - place
        return self
