"""What a model holds, in short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tflq.analysis.arena import Arena, arenas
from tflq.formats import is_tosa
from tflq.ir.core import Buffer, Function, Module, Op, Value
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedSubChannelType, UniformQuantizedType
from tflq.plain_numbers import plain_numbers
from tflq.report import short_type

__all__ = ["JSON_VERSION", "FunctionSummary", "Quantization", "SignatureSummary", "Summary", "TensorSummary"]

JSON_VERSION = 2


@dataclass(frozen=True, slots=True)
class Quantization:
    """A tensor's parameters, with all their digits: one scale per tensor, one per index of an axis, or one per block.

    scales, zero_points: numbers, or of blocks lists in lists, with one dim per dim of the tensor.
    axis: the one that scales go along. block_sizes: elements per block along each of `axes`.
    """

    scales: Any
    zero_points: Any
    axis: int | None = None
    axes: tuple[int, ...] | None = None
    block_sizes: tuple[int, ...] | None = None

    @classmethod
    def of(cls, value: Value) -> Quantization | None:
        element = value.type.element
        if isinstance(element, UniformQuantizedType):
            return cls([element.scale], [element.zero_point])
        if isinstance(element, UniformQuantizedPerAxisType):
            return cls(element.scales.tolist(), element.zero_points.tolist(), element.axis)
        if isinstance(element, UniformQuantizedSubChannelType):
            parameters = element.scales.tolist(), element.zero_points.tolist()
            return cls(*parameters, axes=element.axes, block_sizes=element.block_sizes)
        return None

    def __str__(self) -> str:
        if self.block_sizes is not None:
            return f"scales in blocks of {'x'.join(map(str, self.block_sizes))}"
        if self.axis is not None:
            return f"{len(self.scales)} scales along axis {self.axis}"
        return f"scale {self.scales[0]:.6g}, zero point {self.zero_points[0]}"


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """An input or output. `shape` is None if the rank is unknown, with None for an unknown dim."""

    name: str
    shape: tuple[int | None, ...] | None
    type: str
    quantization: Quantization | None

    @classmethod
    def of(cls, value: Value) -> TensorSummary:
        return cls(value.name, value.type.shape, short_type(value), Quantization.of(value))


@dataclass(frozen=True, slots=True)
class FunctionSummary:
    """A subgraph. `operators` counts each opcode with its operand and result types. `arena`: the memory of its
    activations, without those of subgraphs that it runs; None for TOSA."""

    name: str
    inputs: tuple[TensorSummary, ...]
    outputs: tuple[TensorSummary, ...]
    operators: tuple[tuple[str, str, int], ...]
    arena: Arena | None = None


@dataclass(frozen=True, slots=True)
class SignatureSummary:
    """A named entry point."""

    key: str
    subgraph: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """A model."""

    source: str
    description: str
    constants: int  # bytes
    functions: tuple[FunctionSummary, ...]
    signatures: tuple[SignatureSummary, ...]
    metadata: tuple[str, ...]
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, module: Module) -> Summary:
        planned = [None] * len(module.functions) if is_tosa(module) else arenas(module)
        return cls(
            module.source,
            module.description or "",
            sum(buffer.data.size for buffer in _constant_buffers(module)),
            tuple(_function(f, arena) for f, arena in zip(module.functions, planned, strict=True)),
            tuple(
                SignatureSummary(s.key or "", s.function, _names(s.inputs), _names(s.outputs))
                for s in module.signatures or ()
            ),
            tuple(m.name or "" for m in module.metadata or ()),
            tuple(module.warnings),
        )

    def to_json(self) -> dict[str, Any]:
        document = {"format": "tflq.summary", "version": JSON_VERSION, **asdict(self)}
        for stated, function in zip(document["functions"], self.functions, strict=True):
            stated["arena"] = None if function.arena is None else function.arena.to_json()
        return plain_numbers(document)


def _constant_buffers(module: Module) -> set[Buffer]:
    return {v.buffer for function in module.functions for v in function.values() if v.buffer is not None}


def _names(pairs: Sequence[tuple[str | None, Value]] | None) -> tuple[str, ...]:
    return tuple(name or "" for name, _ in pairs or ())


def _function(function: Function, arena: Arena | None) -> FunctionSummary:
    return FunctionSummary(
        function.name or "",
        tuple(TensorSummary.of(value) for value in function.inputs),
        tuple(TensorSummary.of(value) for value in function.outputs),
        tuple((*kind, count) for kind, count in Counter(_kind(op) for op in function.ops).most_common()),
        arena,
    )


def _kind(op: Op) -> tuple[str, str]:
    opcode = op.location.opcode if op.location else op.name
    operands = ", ".join(short_type(v) for v in op.operands if v is not None)
    return opcode, f"{operands} -> {', '.join(short_type(v) for v in op.results)}"
