"""One quantized network, by rules and by ranges that were seen."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from tflq.analysis.statistics import Statistics
from tflq.base.errors import OptionError, Reason
from tflq.base.files import FilePath
from tflq.dialects.regions import Stats
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.formats.mlir.annotations import drop_annotations
from tflq.formats.sources import read, write
from tflq.ir.module import Module
from tflq.ir.ops import Value
from tflq.ir.rewriting import forget_constants, forget_tables
from tflq.ir.types import f32
from tflq.targets.load import load_kernels
from tflq.tools.quantize.limits import beyond_limits, noted, refused_rows, widen
from tflq.tools.quantize.narrow_weights import mark_weights
from tflq.tools.quantize.preparing import spread_constants, state_ranges
from tflq.tools.quantize.quant_types import PrepareTfl
from tflq.tools.quantize.recipe import (
    Choices,
    Rule,
    Settings,
    keep_islands,
    leave_float,
    mark,
    mixed_target,
)
from tflq.tools.quantize.regions.fusion import KernelFusion
from tflq.tools.quantize.regions.materialize import of_tflite
from tflq.tools.quantize.regions.quantize import TflQuantizePipeline, quantize_kernels
from tflq.tools.quantize.regions.ranges import is_statement
from tflq.tools.quantize.report import STAYS_FLOAT, QuantizedRow, rows_of
from tflq.tools.quantize.stored_edges import Edges, store_edges
from tflq.tools.quantize.weights import Moments, Placed, quantize_weights
from tflq.transforms.canonicalize import Fold
from tflq.transforms.pass_manager import Pipeline

_INTEGERS: Final = ("dynamic", "weight-only")
"""Schemes in which constants that a file stores as integers have others made of them."""
_NAMED: Final = 3
"""Operators that an error names."""


class Network(NamedTuple):
    """A quantized network, what became of each operator, its file, and what to warn of."""

    module: Module
    rows: tuple[QuantizedRow, ...]
    data: bytes
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Work:
    """Common parameters of all networks quantized from a source. has_statistics: whether the call gives statistics."""

    source: FilePath
    default: Settings
    target: FilePath | None
    io: Edges
    has_statistics: bool

    def build(
        self, rules: Sequence[Rule], statistics: Callable[[bool], Sequence[Statistics]], moments: Placed
    ) -> Network:
        """The network by some rules. statistics: is called where ranges of activations are needed, and told
        whether these need histograms. moments: of what weights are multiplied with, by the function and the tensor."""
        module, chosen = self._read(rules)
        if not chosen.static:
            return self._of_weights(module, chosen, _placed(module, moments))
        seen, widened = statistics(chosen.needs_bins), dict[str, float]()
        while True:
            placed = _placed(module, moments)
            warnings = state_ranges(module, seen, chosen, widened) if seen else []
            spread_constants(module, integers=False)
            rows = _static(module, self.target, chosen, self.io, placed, widened)
            if rows is not None:
                return _written(module, rows, warnings)
            module, chosen = self._read(rules)

    def _read(self, rules: Sequence[Rule]) -> tuple[Module, Choices]:
        module = read(self.source)
        _check_floats(module, self.source)
        return module, Choices(module, rules, self.default)

    def _of_weights(self, module: Module, chosen: Choices, moments: Mapping[Value, Moments]) -> Network:
        """The network with other weights alone. OptionError if it has none."""
        if self.has_statistics or self.target is not None or self.io != "float":
            what = f"scheme '{self.default.scheme}' is of weights alone"
            remedy = "leave out statistics, target and io, or take int8"
            raise OptionError(Reason(what, value=self.default.scheme, remedy=remedy))
        spread_constants(module, integers=self.default.scheme in _INTEGERS)
        rows = quantize_weights(module, chosen, moments)
        if not _has_outcome(rows):
            why = "; ".join(dict.fromkeys(f"{row.operator}: {row.why}" for row in rows[:_NAMED]))
            raise OptionError(Reason(f"no operator has weights to quantize: {why}", remedy="take another scheme"))
        return _written(module, rows)


def _placed(module: Module, moments: Placed) -> dict[Value, Moments]:
    """The moments of the weights of a module."""
    return {module.functions[at].tensors[tensor]: each for (at, tensor), each in moments.items()}


def _written(module: Module, rows: Sequence[QuantizedRow], warnings: Sequence[str] = ()) -> Network:
    """A quantized module as a file."""
    forget_constants(module)
    forget_tables(module)
    return Network(module, tuple(rows), write(module), tuple(warnings))


def _static(
    module: Module,
    target: FilePath | None,
    chosen: Choices,
    io: Edges,
    moments: Mapping[Value, Moments],
    widened: dict[str, float],
) -> list[QuantizedRow] | None:
    """Quantizes activations and weights by a target's kernels. widened: by how much the ranges of tensors are wider
    than seen, by name. None if it has to be done again, since `widened` has further ones. OptionError if nothing is
    known of any activation."""
    entries = [module.functions[s.function] for s in module.signatures or []] or [module.main]
    kernels = mixed_target(target, chosen)
    known = {row.tensor: row for row in quantize_weights(module, chosen, moments) if row.tensor}
    rows: list[QuantizedRow] = []
    has_ranges = any(isinstance(op, Stats) for op in module.ops())
    KernelFusion(kernels, reals=True).run(module)
    floats = mark(module, chosen, load_kernels(kernels))
    mark_weights(module, chosen, load_kernels(kernels))
    if has_ranges:  # of a network that was trained the training says it
        known |= {row.tensor: row for row in keep_islands(module, load_kernels(kernels), floats)}
    Pipeline(TflQuantizePipeline(kernels).propagation()).run(module)
    beyond = beyond_limits(module, load_kernels(kernels))
    if widen(beyond, widened):
        return None
    known |= {row.tensor: row for row in refused_rows(beyond)}
    leave_float([*floats, *beyond])
    of_tflite(module)
    Pipeline([Fold(), PrepareTfl()]).run(module)
    quantize_kernels(module, kernels, propagated=lambda regions: rows.extend(rows_of(regions, kernels, known)))
    if not _has_outcome(rows):
        raise _nothing(rows, has_ranges=has_ranges)
    drop_annotations(module)
    store_edges(module, list(dict.fromkeys(entries)), io)
    return noted(rows, widened)


def _check_floats(module: Module, source: FilePath) -> None:
    """OptionError if operators compute on quantized numbers, and none on floats."""
    computing = [op for op in module.ops() if not isinstance(op, (Quantize, Dequantize)) and not is_statement(op)]
    if any(v.type.quantized for op in computing for v in op.results) and not any(
        v.type.element == f32 for op in computing for v in op.tensors
    ):
        what = f"the network is quantized already: none of its {len(computing)} operators computes on floats"
        raise OptionError(Reason(what, os.fspath(source), remedy="give the float network that it was made of"))


def _has_outcome(rows: Sequence[QuantizedRow]) -> bool:
    """Whether an operator is quantized, or stays float because the caller asked for it."""
    return any(row.quantized or row.why == STAYS_FLOAT for row in rows)


def _nothing(rows: Sequence[QuantizedRow], *, has_ranges: bool) -> OptionError:
    """The error where no operator is quantized. has_ranges: whether ranges were stated."""
    if has_ranges and rows:
        text = f"the target has no kernel for any operator of the network: {rows[0].operator}: {rows[0].why}"
        return OptionError(Reason(text, value=rows[0].operator, remedy="list kernels for quantized numbers in it"))
    what = "nothing in the network says how its activations are to be quantized"
    return OptionError(Reason(what, remedy="give --statistics (a file of tflq calibrate) or --calibration (samples)"))
