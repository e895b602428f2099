"""`tflq.inspect`: what a model holds, and what a conversion would do with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tflq.analysis.arena import Arena, arenas
from tflq.base.errors import plain_numbers
from tflq.base.files import FilePath
from tflq.conversion.convert import convert
from tflq.conversion.report import short_type
from tflq.dialects.effects import is_variable
from tflq.dialects.forms import is_tosa
from tflq.dialects.tfl.state import Custom
from tflq.formats.backend import of_target
from tflq.formats.options import options_from_arguments
from tflq.formats.sources import Source, read_network, reusable_source, size_of
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedSubChannelType, UniformQuantizedType
from tflq.numerics.kernel_sets import DEFAULT as DEFAULT_SET

if TYPE_CHECKING:
    from tflq.conversion.report import Report
    from tflq.tools.explorer import Explored
    from tflq.tools.quantize.regions.state import QuantizationState


class Inspection:
    """Contents of a model: returned by `tflq.inspect`. Each part is computed on first use.

    Attributes:
        module: The model as it was read.
        target: What `report` and `explored` convert for.
        kernel_set: Whose kernels `report` is of.
    """

    def __init__(self, source: Source, target: FilePath | None = None, kernel_set: str = DEFAULT_SET) -> None:
        self._source = reusable_source(source)
        self.target = target
        self.kernel_set = kernel_set
        self.module: Module = read_network(self._source)

    def __repr__(self) -> str:
        return f"<Inspection of {self.module.source or 'a model'}>"

    @property
    def bytes(self) -> int:
        """Size of the file."""
        return size_of(self._source)

    @cached_property
    def summary(self) -> Summary:
        """Inputs, outputs, operators by type, signatures, and memory for activations (`functions[0].arena`)."""
        return Summary.of(self.module)

    @cached_property
    def tensors(self) -> tuple[tuple[TensorSummary, ...], ...]:
        """The tensors of each subgraph."""
        return tuple(map(tensors_of, self.module.functions))

    @cached_property
    def quantization(self) -> QuantizationState | None:
        """Whether the network is quantized, and which operators are not (`full`, `unquantized`). None for TOSA, whose
        integers have no parameters.
        """
        if is_tosa(self.module):
            return None
        from tflq.tools.quantize.regions.state import quantization_state

        return quantization_state(read_network(self._source))

    @cached_property
    def report(self) -> Report:
        """The outcome of a conversion for each operator, and why.

        Raises:
            UnsupportedError: The model cannot be converted for the target.
        """
        return convert(
            self._source, format=of_target(self.target).name, target=self.target, kernel_set=self.kernel_set
        ).report

    def against(self, other: str) -> list[tuple[int, int, str]]:
        """The operators that compute something else under another kernel set.

        Args:
            other: The name of the set.

        Returns:
            Subgraph, number and name of each, in order.

        Raises:
            UnsupportedError: The model cannot be converted.
            OptionError: There is no set of the name.
        """
        name = options_from_arguments("tflite", None, kernel_set=other).kernel_set
        return [(row.subgraph, row.operator, row.opcode) for row in self.report.rows if name in row.differs_under]

    @cached_property
    def text(self) -> str:
        """The model as text, without large constants."""
        from tflq.ir.text.printer import print_module

        return print_module(self.module, elide=True)

    @cached_property
    def explored(self) -> Explored:
        """Graphs for Model Explorer: before conversion, in the integer form, and after (`stages`; as JSON they are a
        file that it opens). If the model cannot be converted, `refused` says why.
        """
        from tflq.tools.explorer import explore

        return explore(self._source, self.target)

    def to_json(self) -> dict[str, Any]:
        """The summary and `quantization` in a versioned JSON form."""
        quantization = self.quantization
        state = None if quantization is None else {"full": quantization.full, **asdict(quantization)}
        return {**self.summary.to_json(), "quantization": state}


def inspect(source: Source, *, target: FilePath | None = None, kernel_set: str = DEFAULT_SET) -> Inspection:
    """Look into a model: what it contains, and what a conversion would do with it.

    Args:
        source: The model (TFLite or TOSA): a path, bytes or a binary file object.
        target: What `report` and `explored` convert for, as in `tflq.convert`.
        kernel_set: Whose kernels `report` is of, as in `tflq.convert`.

    Returns:
        The module. Summary, report, text and graphs are computed when first asked for.

    Raises:
        InvalidModelError: The source is not a valid model.
        FileError: The source cannot be read.
        OptionError: There is no such target, or no such kernel set.

    Example:
        ```python
        inspection = tflq.inspect("model.tflite", target="kernels")
        print(inspection.summary.functions[0].inputs)
        print([row for row in inspection.report.rows if row.outcome == "float"])
        ```
    """
    options = options_from_arguments(of_target(target).name, target, kernel_set=kernel_set)
    return Inspection(source, target, options.kernel_set)


JSON_VERSION = 2


@dataclass(frozen=True, slots=True)
class Quantization:
    """The parameters of a tensor, with all their digits: one scale per tensor, one per index of an axis, or one per
    block.

    scales, zero_points: numbers; for blocks nested lists, with one level per dim of the tensor.
    axis: the axis of the scales. block_sizes: elements per block along each of `axes`.
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
    """A tensor. `shape` has None for an unknown dim, and is None if the rank is unknown. number: in the subgraph; None
    for TOSA. role: "input", "output", "constant", "variable" or ""."""

    name: str
    shape: tuple[int | None, ...] | None
    type: str
    quantization: Quantization | None
    number: int | None = None
    role: str = ""

    @property
    def shown_name(self) -> str:
        """The name, or the number of a tensor that has none."""
        return self.name or ("" if self.number is None else f"tensor {self.number}")


@dataclass(frozen=True, slots=True)
class FunctionSummary:
    """A subgraph. operators: how often each opcode occurs with these types of operands and results. arena: the memory
    of its activations, without those of subgraphs that it runs; None for TOSA."""

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
        buffers = {v.buffer for function in module.functions for v in function.values() if v.buffer is not None}
        return cls(
            module.source,
            module.description or "",
            sum(buffer.data.size for buffer in buffers),
            tuple(_function(f, arena) for f, arena in zip(module.functions, planned, strict=True)),
            tuple(
                SignatureSummary(s.key or "", s.function, _names(s.inputs), _names(s.outputs))
                for s in module.signatures or ()
            ),
            tuple(m.name or "" for m in module.metadata or ()),
            tuple(module.warnings),
        )

    def to_json(self) -> dict[str, Any]:
        document = {"format": "tflq.inspection", "version": JSON_VERSION, **asdict(self)}
        for entry, function in zip(document["functions"], self.functions, strict=True):
            entry["arena"] = None if function.arena is None else function.arena.to_json()
        return plain_numbers(document)


def _names(pairs: Sequence[tuple[str | None, Value]] | None) -> tuple[str, ...]:
    return tuple(name or "" for name, _ in pairs or ())


def tensors_of(function: Function) -> tuple[TensorSummary, ...]:
    """All tensors of a subgraph: those of a file in their order, those of TOSA as they are defined."""
    numbers = {value: number for number, value in enumerate(function.tensors)}
    inputs, outputs = set(function.inputs), set(function.outputs)

    def role(value: Value) -> str:
        if value in inputs or value in outputs:
            return "input" if value in inputs else "output"
        return "constant" if value.is_constant else "variable" if is_variable(value) else ""

    values = function.tensors or dict.fromkeys(function.values())
    return tuple(_tensor(value, numbers, role(value)) for value in values)


def _tensor(value: Value, numbers: Mapping[Value, int], role: str) -> TensorSummary:
    of = Quantization.of(value)
    return TensorSummary(value.name, value.type.shape, short_type(value), of, numbers.get(value), role)


def _function(function: Function, arena: Arena | None) -> FunctionSummary:
    numbers = {value: number for number, value in enumerate(function.tensors)}
    return FunctionSummary(
        function.name or "",
        tuple(_tensor(value, numbers, "input") for value in function.inputs),
        tuple(_tensor(value, numbers, "output") for value in function.outputs),
        tuple((*kind, count) for kind, count in Counter(_kind(op) for op in function.ops).most_common()),
        arena,
    )


def _kind(op: Op) -> tuple[str, str]:
    opcode = op.code if isinstance(op, Custom) else op.location.opcode if op.location else op.name
    operands = ", ".join(short_type(v) for v in op.present_operands)
    return opcode, f"{operands} -> {', '.join(short_type(v) for v in op.results)}"
