"""quant-instrument: where a run of the model must tell the ranges of values, so that a target's kernels can be used.

Kernels are fused and parameters propagated on a copy of each function. Where a port of a kernel has no parameters then,
a `quant.stats_ref` is put behind the value in the model itself, whose computation stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from tflq.analysis.statistics import keys_of
from tflq.contract import Pass, PassResult
from tflq.dialects.quant.regions import StatsRef
from tflq.ir.core import Function, Module, Op, Value, walk
from tflq.ir.rewriting import copied, put_behind
from tflq.ir.types import is_quantized
from tflq.passes.regions.fusion import KernelFusion
from tflq.passes.regions.lookup import is_quantizable, lookup, ports, regions_of
from tflq.passes.regions.propagate import ACCUMULATES, propagate
from tflq.passes.regions.tensor_constraints import constrain_by_file
from tflq.targets.load import Kernels, load_kernels

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
        ops = (op for function in module.functions for op in walk(function.ops))
        taken = {op.stats_key for op in ops if isinstance(op, StatsRef)}
        for function, values in lacking.items():
            put_behind(module, function, {v: _point(v, key) for v, key in keys_of(function, values, taken).items()})
        return PassResult(module, bool(lacking))


def _lacking(module: Module, target: str, annotations: str) -> dict[Function, list[Value]]:
    """The values of each function that lack parameters for a kernel of a target, in the order in which they are made,
    and that no point observes yet."""
    kernels = load_kernels(target)
    copy, origins = _copied(module)
    KernelFusion(target).run(copy)
    if annotations:
        constrain_by_file(copy, Path(annotations))
    found: dict[Function, list[Value]] = {}
    propagate(copy.functions, kernels)
    for function, twin in zip(module.functions, copy.functions, strict=True):
        lacking = {origins.get(value) for value in _open(twin, kernels)}
        observed = {v for op in function.ops if isinstance(op, StatsRef) for v in op.tensors}
        values = [value for value in function.values() if value in lacking and value not in observed]
        if values:
            found[function] = values
    return found


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
