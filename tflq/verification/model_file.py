"""What a TFLite file says of its entries, tensors and operators, read with the `tflite` package.

Nothing here is shared with the reader and the writer of the project: what they get wrong shows in a comparison.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import tflite

from tflq.errors import InvalidModelError
from tflq.files import file_errors

__all__ = ["RESET", "Entry", "Graph", "ModelFile", "Operator", "Tensor", "entry_of"]

RESET: Final = "tflq_reset"
"""The signature that a conversion adds to reset state; it is no entry of the model."""


def _names(enumeration: type) -> dict[int, str]:
    return {number: name for name, number in vars(enumeration).items() if isinstance(number, int)}


_OPCODES: Final = _names(tflite.BuiltinOperator)
_TYPES: Final = _names(tflite.TensorType)
_CUSTOM: Final = tflite.BuiltinOperator.CUSTOM

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
            self.data: np.ndarray = np.memmap(path, np.uint8, "r") if os.path.getsize(path) else np.zeros(0, np.uint8)
        try:
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
        """The entry of each signature; None for one that is no entry of the model."""
        found: list[Entry | None] = []
        for signature in self._signatures():
            key = _text(signature.SignatureKey())
            inputs = [signature.Inputs(i) for i in range(signature.InputsLength())]
            outputs = [signature.Outputs(i) for i in range(signature.OutputsLength())]
            sides = [tuple(sorted((_text(m.Name()), m.TensorIndex()) for m in side)) for side in (inputs, outputs)]
            found.append(Entry(key, signature.SubgraphIndex(), *sides) if key and key != RESET else None)
        return found


_BROKEN: Final = (struct.error, IndexError, ValueError, TypeError, AttributeError, OverflowError)
"""What the package raises for a file that is none: it checks nothing."""


def entry_of(file: ModelFile, key: str) -> tuple[Entry, Graph]:
    """An entry and its graph."""
    entry = file.entries[key]
    return entry, file.graphs[entry.graph]


def _code(table: tflite.OperatorCode) -> tuple[str, int]:
    """Name and version; the name of a custom operator is its own."""
    number = max(table.BuiltinCode(), table.DeprecatedBuiltinCode())
    name = _text(table.CustomCode()) if number == _CUSTOM else _OPCODES.get(number, f"BUILTIN {number}")
    return name, table.Version()


def _tensor(table: tflite.Tensor) -> Tensor:
    shape = _integers(table.ShapeAsNumpy())
    signature = _integers(table.ShapeSignatureAsNumpy()) or shape
    kind = _TYPES.get(table.Type(), f"type {table.Type()}").lower()
    name, found = _text(table.Name()), table.Quantization()
    if found is None:
        return Tensor(name, kind, shape, signature, variable=table.IsVariable())
    scales = found.ScaleAsNumpy() if found.ScaleLength() else np.zeros(0, np.float32)
    axis = found.QuantizedDimension() if scales.size > 1 else 0
    zero_points = tuple(int(z) for z in found.ZeroPointAsNumpy()) if found.ZeroPointLength() else ()
    return Tensor(name, kind, shape, signature, scales, zero_points, axis, found.DetailsType(), table.IsVariable())


def _operator(table: tflite.Operator, codes: Sequence[str]) -> Operator:
    code = table.OpcodeIndex()
    inputs, outputs = _integers(table.InputsAsNumpy()), _integers(table.OutputsAsNumpy())
    calls = _calls(table.BuiltinOptions(), table.BuiltinOptionsType(), tflite.BuiltinOptions, _CALLS)
    calls += _calls(table.BuiltinOptions2(), table.BuiltinOptions2Type(), tflite.BuiltinOptions2, _CALLS_2)
    return Operator(codes[code], code, inputs, outputs, calls)


def _calls(options: Any, number: int, kinds: type, callers: dict[str, tuple[str, ...]]) -> tuple[int, ...]:
    name = _names_of(kinds).get(number, "")
    if options is None or name not in callers:
        return ()
    table = getattr(tflite, name)()
    table.Init(options.Bytes, options.Pos)
    return tuple(int(getattr(table, getter)()) for getter in callers[name])


def _names_of(kinds: type) -> dict[int, str]:
    if kinds not in _UNIONS:
        _UNIONS[kinds] = _names(kinds)
    return _UNIONS[kinds]


_UNIONS: Final[dict[type, dict[int, str]]] = {}


def _integers(vector: Any) -> tuple[int, ...]:
    return tuple(vector.tolist()) if isinstance(vector, np.ndarray) else ()


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")
