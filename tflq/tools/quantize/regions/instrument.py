"""Points at which runs tell the ranges of values without parameters.

Points are where ranges are needed so that a target's kernels can be used (quant-instrument). The observations of runs
become statistics in the model (quant-apply-stats).

Kernels are fused and parameters propagated on a copy of each function. Where a port of a kernel has no parameters then,
a `quant.stats_ref` is put behind the value in the model itself, whose computation stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from tflq.analysis.statistics import PointStatistics, Statistics, keys_of, read_statistics
from tflq.base.arguments import nearest
from tflq.base.errors import OptionError, Reason
from tflq.dialects.regions import Stats, StatsRef
from tflq.ir.facts import walk
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.rewriting import copied, insert_after, rewrite_all_ops
from tflq.ir.types import ScalarType, is_quantized
from tflq.targets.load import Kernels, load_kernels
from tflq.tools.quantize.regions.fusion import KernelFusion
from tflq.tools.quantize.regions.lookup import is_quantizable, lookup, ports, regions_of
from tflq.tools.quantize.regions.propagate import ACCUMULATES, propagate
from tflq.tools.quantize.regions.tensor_constraints import constrain_by_file
from tflq.transforms.pass_manager import Pass, PassResult

_DEFAULT: Final = "kernels"
_BIAS: Final = 2


@dataclass(frozen=True)
class QuantInstrument(Pass):
    """Puts a `quant.stats_ref` behind each value that lacks parameters for a kernel.

    `target`: a target's file, whose kernels count; by default those of TFLite. `annotations`: a file of constraints by
    names of tensors, as quant-propagate takes it: what it says need not be measured. The key of a point is the name of
    its tensor, or the place of what makes it; a number is added where others have it. Constants need no point, nor do
    biases, whose parameters follow from those of the other operands.
    """

    name: ClassVar[str] = "quant-instrument"
    target: str = ""
    annotations: str = ""

    def run(self, module: Module) -> PassResult:
        target = self.target or _DEFAULT
        lacking = _lacking(module, target, self.annotations)
        used_keys = {op.stats_key for op in walk(module.ops()) if isinstance(op, StatsRef)}
        for function, values in lacking.items():
            insert_after(
                module, function, {v: _point(v, key) for v, key in keys_of(function, values, used_keys).items()}
            )
        return PassResult(module, bool(lacking))


def _lacking(module: Module, target: str, annotations: str) -> dict[Function, list[Value]]:
    """The values of each function that lack parameters for a kernel of a target, in the order of their ops. Values that
    a point observes are left out."""
    kernels = load_kernels(target)
    copy, origins = _copied(module)
    KernelFusion(target).run(copy)
    if annotations:
        constrain_by_file(copy, Path(annotations))
    values_of_function: dict[Function, list[Value]] = {}
    propagate(copy.functions, kernels)
    for function, twin in zip(module.functions, copy.functions, strict=True):
        lacking = {origins.get(value) for value in _open(twin, kernels)}
        observed = {v for op in function.ops if isinstance(op, StatsRef) for v in op.tensors}
        values = [value for value in function.values() if value in lacking and value not in observed]
        if values:
            values_of_function[function] = values
    return values_of_function


def _copied(module: Module) -> tuple[Module, dict[Value, Value]]:
    """A copy of a module's functions, and the value of the module that each value of it stands for."""
    functions: list[Function] = []
    origins: dict[Value, Value] = {}
    for function in module.functions:
        known = {v: Value(v.type, buffer=v.buffer, info=v.info) for v in function.values() if v.producer is None}
        ops = copied(function.ops, known)
        for value, twin in known.items():
            twin.name = value.name
            origins[twin] = value
        inputs, outputs = ([known[value] for value in side] for side in (function.inputs, function.outputs))
        functions.append(Function(function.name, inputs, outputs, ops, info=function.info))
    return Module(functions), origins


def _open(function: Function, kernels: Kernels) -> Iterator[Value]:
    """The values at ports that a kernel wants quantized, and that have no parameters."""
    for region in regions_of(function.ops):
        match = lookup(kernels, region, region.input_specs, region.output_specs)
        if match is None:
            continue
        accumulates = any(name == ACCUMULATES for name, _ in match.signature.constraints)
        for port, kind in zip(ports(region), (*match.inputs, *match.outputs), strict=True):
            follows = port.value.is_constant or (accumulates and not port.is_output and port.index == _BIAS)
            if kind.kinds and is_quantizable(port.spec) and not is_quantized(port.spec) and not follows:
                yield port.value


def _point(value: Value, key: str) -> Op:
    """A point that observes a value."""
    at = None if value.producer is None else value.producer.location
    return Op(StatsRef.op_name, [value], [Value(value.type)], {"statsKey": key}, at)


_SHOWN: Final = 3
_AGAIN: Final = "gather them on the model as it is"


@dataclass(frozen=True)
class QuantApplyStats(Pass):
    """Replaces points by the statistics that were gathered there. `statistics`: a file of them.

    Each `quant.stats_ref` becomes a `quant.stats`, per axis too if the file says so. A point of which no element was
    seen stays. OptionError for a point that the file does not have, and for statistics of another tensor.
    """

    name: ClassVar[str] = "quant-apply-stats"
    statistics: str = ""

    def run(self, module: Module) -> PassResult:
        if not self.statistics:
            raise OptionError("pass 'quant-apply-stats' needs statistics: quant-apply-stats{statistics=FILE.json}")
        return PassResult(module, apply_statistics(module, read_statistics(self.statistics), self.statistics))


def apply_statistics(module: Module, statistics: Statistics, source: str = "") -> bool:
    """Replaces the points of a module by statistics, as `QuantApplyStats` says. source: the file, for errors. Returns
    whether any changed."""
    points = [op for op in walk(module.ops()) if isinstance(op, StatsRef)]
    missing = [op.stats_key for op in points if op.stats_key not in statistics.points]
    if missing:
        shown = ", ".join(f"'{key}'" for key in missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
        what = f"there are no statistics of {len(missing)} point{'s' * (len(missing) > 1)}: {shown}"
        remedy = nearest(missing[0], statistics.points) or _AGAIN
        raise OptionError(Reason(what, source, value=missing[0], remedy=remedy))
    seen = {op: statistics.points[op.stats_key] for op in points}
    replacements: dict[Op, list[Op]] = {op: [_stats(op, point, source)] for op, point in seen.items() if point.count}
    return rewrite_all_ops(module, replacements.get)


def _stats(op: StatsRef, seen: PointStatistics, source: str) -> Op:
    """A point as statistics of its value."""
    value = op.arg
    element = value.type.element
    dtype = element.dtype if isinstance(element, ScalarType) and element.numpy else np.dtype(np.float32)
    attributes: dict[str, Any] = {"layerStats": np.array([seen.minimum, seen.maximum], dtype)}
    if seen.axis is not None:
        shape = value.type.shape
        if shape is not None and (seen.axis >= len(shape) or shape[seen.axis] not in (None, len(seen.axis_minima))):
            what = (
                f"the statistics of '{op.stats_key}' are of {len(seen.axis_minima)} indices of axis {seen.axis}, and "
                f"the tensor is {value.type}"
            )
            raise OptionError(Reason(what, source, value=op.stats_key, remedy=_AGAIN))
        attributes["axisStats"] = np.stack([seen.axis_minima, seen.axis_maxima], axis=1).astype(dtype)
        attributes["axis"] = seen.axis
    return Op(Stats.op_name, [value], op.results, attributes, op.location)
