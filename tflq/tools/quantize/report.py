"""The outcome for each operator of a network that was quantized."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from tflq.dialects.regions import Region
from tflq.ir.module import Module
from tflq.ir.ops import Op
from tflq.ir.text.print_types import type_text
from tflq.ir.types import BareType, NoQuantizedType, is_quantized
from tflq.targets.load import load_kernels
from tflq.tools.quantize.regions.lookup import computes_with_reals, is_real, lacks, origins_of, ports
from tflq.tools.quantize.regions.ranges import is_statement

if TYPE_CHECKING:
    from tflq.tools.quantize.search.outcome import Search
    from tflq.tools.verify.metrics import Score

JSON_VERSION: Final = 1
STAYS_FLOAT: Final = "it was to stay float"
"""Why an operator is not quantized that the caller has named."""


_NOTES: Final = {"sum": "the interpreter's reference kernel reads int8 as uint8; its default kernel computes it"}
"""Remarks on kernels."""


@dataclass(frozen=True, slots=True)
class QuantizedRow:
    """An operator, or several that one kernel computes.

    Attributes:
        operator: The kernel's name, or the operator's.
        tensor: The name of its result.
        quantized: Whether it computes on quantized numbers.
        types: The types of its inputs and results, as text; empty if it is not quantized.
        origins: Where the parameters of each input and result come from; "none" if there are none.
        why: Why it stays float; empty if it does not.
        note: What to know of the kernel that computes it.
    """

    operator: str
    tensor: str
    quantized: bool
    types: str = ""
    origins: tuple[str, ...] = ()
    why: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """A method that was tried on samples held back.

    Attributes:
        name: The method.
        decibels: The signal-to-noise ratio of the outputs there.
        chosen: Whether the network has it.
    """

    name: str
    decibels: float
    chosen: bool


@dataclass(frozen=True)
class Quantization:
    """A network that was quantized.

    Attributes:
        module: The network, in TFLite's operators.
        rows: What became of each operator.
        scheme: As it was asked for.
        bytes_in: The size of the source.
        bytes_out: The size of the result.
        decibels: The signal-to-noise ratio of the outputs, 10 log10(Σf² / Σ(f-q)²), on samples; None if it was not
            measured.
        search: The search for operators of more bits, or in float; None without bounds.
        agreement: The share of the samples whose largest output is at the same place, of outputs [rows, classes]; None
            if it was not measured.
        warnings: What to know before the network is used, a sentence each.
        trials: Methods that were tried on the last quarter of the samples, in order.
        recipe: A recipe that repeats it with the same options and samples, but for bounds, as TOML.
        scores: Metrics of the outputs on the samples, of both networks.
    """

    module: Module
    rows: tuple[QuantizedRow, ...]
    scheme: str
    bytes_in: int
    bytes_out: int
    decibels: float | None = None
    search: Search | None = None
    agreement: float | None = None
    warnings: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()
    recipe: str = ""
    scores: tuple[Score, ...] = ()

    @property
    def kept(self) -> tuple[QuantizedRow, ...]:
        """The operators that stay float."""
        return tuple(row for row in self.rows if not row.quantized)

    def summary(self) -> str:
        """Number of quantized operators, and why others are not, in a line each."""
        quantized = len(self.rows) - len(self.kept)
        reasons = Counter((row.operator, row.why) for row in self.kept)
        notes = Counter((row.operator, row.note) for row in self.rows if row.note)
        lines = [f"{quantized} of {len(self.rows)} operators are quantized"]
        lines += [
            f"{count} {operator} {'stays' if count == 1 else 'stay'} float: {why}"
            for (operator, why), count in reasons.items()
        ]
        return "\n".join(lines + [f"{count} {operator}: {note}" for (operator, note), count in notes.items()])

    def to_json(self) -> dict[str, Any]:
        """Output of `tflq quantize --json`: docs/json.md."""
        return {
            "format": "tflq.quantization",
            "version": JSON_VERSION,
            "scheme": self.scheme,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "decibels": self.decibels,
            "agreement": self.agreement,
            "warnings": list(self.warnings),
            "trials": [asdict(trial) for trial in self.trials],
            "rows": [asdict(row) for row in self.rows],
            "scores": [each.to_json() for each in self.scores],
            "recipe": self.recipe,
            "search": asdict(self.search) if self.search else None,
        }


def rows_of(module: Module, target: str, known: Mapping[str, QuantizedRow]) -> list[QuantizedRow]:
    """The rows of a module whose regions have their parameters. known: those of operators that were decided on before,
    by the name of the result."""
    kernels = load_kernels(target)
    rows: list[QuantizedRow] = []
    for op in module.ops():
        inner = inner_names(op) if isinstance(op, Region) else []
        decided = next((known[name] for name in (*inner, *(v.name for v in op.results)) if name in known), None)
        if decided is not None:
            rows.append(decided)
        elif _stores_weights(op):
            continue
        elif isinstance(op, Region):
            rows.append(_of_region(op, kernels))
        elif not is_statement(op) and op.name.startswith("tfl.") and op.results and computes_with_reals(op):
            rows.append(QuantizedRow(op.short_name, op.result.name, False, why=_why_no_kernel(op, kernels)))
    return rows


def inner_names(region: Region) -> list[str]:
    """The names of what the operators of a region make, without its results."""
    return [value.name for op in region.regions[0].block.ops for value in op.results if value.name]


def _stores_weights(op: Op) -> bool:
    """Whether an operator makes floats of a constant with fewer bits."""
    kernel = op.kernel if isinstance(op, Region) else op.short_name
    return kernel == "dequantize" and all(value is not None and value.is_constant for value in op.operands)


def _why_no_kernel(op: Op, kernels: Any) -> str:
    if op.short_name not in kernels:
        return f"the target lists no kernel '{op.short_name}'"
    return "it is not a kernel: it has a state, or calls functions"


def _of_region(region: Region, kernels: Any) -> QuantizedRow:
    tensor = region.result.name if region.results else ""
    all_ports = ports(region)
    origins = tuple(origins_of(region))
    specs = [port.spec for port in all_ports]
    if misfits := lacks(kernels, region):
        excluded = all(isinstance(spec, NoQuantizedType) for spec in specs if is_real(spec))
        why = (
            STAYS_FLOAT
            if excluded
            else "; ".join(dict.fromkeys(f"{port or 'it'}: {text}" for port, text in misfits.items()))
        )
        return QuantizedRow(region.kernel, tensor, False, origins=origins, why=why)
    if not any(map(is_quantized, specs)):
        why = "nothing is known of its inputs and results"
        return QuantizedRow(region.kernel, tensor, False, origins=origins, why=why)
    sides = (region.input_specs, region.output_specs)
    types = " -> ".join(", ".join(type_text(BareType.of(spec)) for spec in side) for side in sides)
    return QuantizedRow(region.kernel, tensor, True, types, origins, note=_NOTES.get(region.kernel, ""))
