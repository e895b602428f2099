"""Values of a network without parameters: of each operator, and as the points at which runs tell the ranges.

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
from tflq.base.errors import OptionError, Reason, nearest
from tflq.dialects.declare import Operator
from tflq.dialects.quant import Dcast, Qcast, Scast
from tflq.dialects.regions import Region, Rescale, Return, Stats, StatsRef
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.dialects.traits import Annotates
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.facts import walk
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


# Whether a network is quantized: of each operator, the reals that have no parameters.


_BETWEEN = (Qcast, Dcast, Scast, Quantize, Dequantize, Rescale, Return)
"""Casts: one side of each is real."""


@dataclass(frozen=True, slots=True)
class Unquantized:
    """An input or output of an operator that is real, and has no parameters.

    subgraph: its index. operator: the place in it of the operator, or of the last one of several that are one kernel.
    opcode: what it is called. port: "input 0", "output 0". tensor: its name, empty if it has none.
    """

    subgraph: int
    operator: int
    opcode: str
    port: str
    tensor: str


@dataclass(frozen=True, slots=True)
class QuantizationState:
    """Quantized and unquantized operators of a network.

    operators: how many compute reals, quantized or not; several that are one kernel count once. quantized: of these,
    how many have parameters for all that is real. unquantized: what the others lack, in order.
    """

    operators: int
    quantized: int
    unquantized: tuple[Unquantized, ...]

    @property
    def full(self) -> bool:
        """Whether there are operators on reals, and all of them are quantized."""
        return 0 < self.operators == self.quantized


def quantization_state(module: Module) -> QuantizationState:
    """The state of a module in the tfl form, or of one of logical kernels. The module is not to be used any more.

    Ops become kernels first (`kernel-fusion`), so that casts and statistics around an op count as its parameters. What
    is annotated to stay as it is, is not counted; statistics alone are not parameters.
    """
    module = KernelFusion().run(module).module
    operators, quantized, missing = 0, 0, list[Unquantized]()
    for index, function in enumerate(module.functions):
        for place, op in enumerate(function.ops):
            real_ports = list(_ports(op))
            lacking = [(port, tensor) for port, tensor, known in real_ports if not known]
            operators += bool(real_ports)
            quantized += bool(real_ports) and not lacking
            where = place if op.location is None else op.location.operator
            missing += [Unquantized(index, where, _opcode(op), port, tensor) for port, tensor in lacking]
    return QuantizationState(operators, quantized, tuple(missing))


def _ports(op: Op) -> Iterator[tuple[str, str, bool]]:
    """The reals that an op takes and gives: port, tensor, and whether it has parameters."""
    if isinstance(op, Region):
        for each in ports(op):
            if is_quantizable(each.spec):
                yield str(each), each.value.name, is_quantized(each.spec)
    elif not isinstance(op, _BETWEEN) and not (isinstance(op, Operator) and op.has(Annotates)):
        for side, values in (("input", op.operands), ("output", op.results)):
            for number, value in enumerate(values):
                if value is not None and is_quantizable(value.type.element):
                    yield f"{side} {number}", value.name, is_quantized(value.type.element)


def _opcode(op: Op) -> str:
    if isinstance(op, Region):
        return op.kernel.upper()
    return op.location.opcode if op.location and op.location.opcode else op.short_name.upper()
