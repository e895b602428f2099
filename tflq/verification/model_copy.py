"""Copies of a TFLite file that return other tensors, or hold a part of its operators.

A copy is the same bytes with a few of them changed: offsets in a flatbuffer lead forward, so that a vector put behind
the file can take another's place, and tables can move up in the vector that lists them. Nothing is encoded anew, and no
constant moves.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from typing import BinaryIO, Final

import flatbuffers

from tflq.verification.model_file import ModelFile

__all__ = ["ModelCopy"]

_SUBGRAPH_INPUTS: Final = 6
_SUBGRAPH_OUTPUTS: Final = 8
_SUBGRAPH_OPERATORS: Final = 10
_MODEL_CODES: Final = 6
_MODEL_SUBGRAPHS: Final = 8
_MODEL_SIGNATURES: Final = 18
"""Places in the vtables of SubGraph and Model, as schema.fbs orders their fields."""

_UINT32: Final = struct.Struct("<I")


class ModelCopy:
    """Changes to a file, and the copy that has them. Every change answers with the copy."""

    def __init__(self, file: ModelFile) -> None:
        self._file = file
        self._model: flatbuffers.table.Table = file.model._tab
        self._graphs: list[flatbuffers.table.Table] = [graph.table._tab for graph in file.graphs]
        self._words: dict[int, int] = {}
        self._vectors: list[tuple[int, Sequence[int]]] = []

    def outputs(self, graph: int, tensors: Sequence[int]) -> ModelCopy:
        """A graph returns these tensors. ValueError if it has no list of them."""
        return self._vector(self._graphs[graph], _SUBGRAPH_OUTPUTS, tensors)

    def inputs(self, graph: int, tensors: Sequence[int]) -> ModelCopy:
        """A graph takes these tensors. ValueError if it has no list of them."""
        return self._vector(self._graphs[graph], _SUBGRAPH_INPUTS, tensors)

    def operators(self, graph: int, kept: Sequence[int]) -> ModelCopy:
        """A graph holds these of its operators, in this order."""
        return self._keep(self._graphs[graph], _SUBGRAPH_OPERATORS, kept)

    def codes(self, kept: Collection[int]) -> ModelCopy:
        """Of the table of operator codes these rows are kept; the others, which no operator uses, hold the same as one
        of them: an interpreter looks for the kernels of all."""
        targets = self._targets(self._model, _MODEL_CODES)
        for row, (place, _) in enumerate(targets):
            if kept and row not in kept:
                self._words[place] = targets[min(kept)][1] - place
        return self

    def alone(self, graph: int) -> ModelCopy:
        """A graph is the first, and there are no signatures. For one that no operator runs, nor the first one."""
        if graph:
            targets = self._targets(self._model, _MODEL_SUBGRAPHS)
            for row, other in ((0, graph), (graph, 0)):
                self._words[targets[row][0]] = targets[other][1] - targets[row][0]
        return self.signatures(())

    def signatures(self, kept: Sequence[int]) -> ModelCopy:
        """Of the signatures these rows are kept, in this order."""
        return self._keep(self._model, _MODEL_SIGNATURES, kept)

    def write(self, stream: BinaryIO) -> None:
        """Writes the copy. ValueError where the file is too large for it."""
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
            raise ValueError("the graph has no list of tensors to put another in the place of")
        return self

    def _targets(self, table: flatbuffers.table.Table, field: int) -> list[tuple[int, int]]:
        """Place and target of each element of a vector of tables."""
        offset = table.Offset(field)
        if not offset:
            return []
        start = table.Vector(offset)
        places = [start + _UINT32.size * i for i in range(table.VectorLen(offset))]
        return [(place, table.Indirect(place)) for place in places]

    def _keep(self, table: flatbuffers.table.Table, field: int, kept: Sequence[int]) -> ModelCopy:
        targets = self._targets(table, field)
        if targets:
            self._words[targets[0][0] - _UINT32.size] = len(kept)
        for (place, _), index in zip(targets, kept, strict=False):
            self._words[place] = targets[index][1] - place
        return self
