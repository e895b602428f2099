"""quant-materialize: regions become the kernels of a target, TFLite's quantized operators.

A region all of whose ports have parameters becomes its ops on quantized tensors, between casts; constants are
quantized. Biases and activations are part of the op before. Tensors inside of a region of several ops take the
parameters that casts inside say, else those of a port, by an op of one scale. A region without parameters is its ops
again; one that lacks some, or for which the target lists no kernel, is its ops between casts. A `quant.rescale` becomes
a `tfl.quantize`.

`casts=tfl` makes all casts TFLite's operators, of which files are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from tflq.builder import Emitter
from tflq.contract import Pass, PassResult
from tflq.dialects.quant.casts import Dcast, Qcast
from tflq.dialects.quant.regions import Region, Rescale
from tflq.dialects.quant.statistics import Stats
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.rewriting import replace_values
from tflq.ir.types import ElementType, is_quantized
from tflq.passes.regions.constants import quantized_constant, real_constant
from tflq.passes.regions.inline import body, inlined
from tflq.passes.regions.inner import inner_types, joined
from tflq.passes.regions.lookup import lookup
from tflq.passes.regions.ports import is_quantizable, ports
from tflq.targets.load import Kernels, load_kernels

__all__ = ["QuantMaterialize", "of_tflite"]


@dataclass(frozen=True)
class QuantMaterialize(Pass):
    """Replaces regions by quantized operators. `target`: a target's file; without one, all are taken to have a kernel.
    UnsupportedError names a tensor inside of a region of which nothing says how it is quantized."""

    name: ClassVar[str] = "quant-materialize"
    target: str = ""
    casts: Literal["quant", "tfl"] = "quant"

    def run(self, module: Module) -> PassResult:
        kernels = load_kernels(self.target) if self.target else None
        modified = False
        for function in module.functions:
            modified |= _function(module, function, kernels)
        if self.casts == "tfl":
            modified |= of_tflite(module)
        return PassResult(module, modified)


def of_tflite(module: Module) -> bool:
    """Makes casts between reals and quantized values TFLite's operators; whether there are any."""
    modified = False
    for function in module.functions:
        for place, op in enumerate(function.ops):
            if isinstance(op, (Qcast, Dcast)):
                kind = Quantize if isinstance(op, Qcast) else Dequantize
                function.ops[place] = Op(kind.op_name, op.operands, op.results, {}, op.location)
                modified = True
    return modified


def _function(module: Module, function: Function, kernels: Kernels | None) -> bool:
    replacements: dict[Value, Value] = {}
    b = Emitter()
    modified = False
    for op in function.ops:
        op.operands = [value and replacements.get(value, value) for value in op.operands]
        if isinstance(op, Rescale):
            b.location = op.location
            stored = b.emit(Quantize, [_stored(b, op.input, op.source)], op.input.type.with_element(op.target))
            replacements[op.output] = b.emit(Dcast, [stored], op.input.type)
        elif not isinstance(op, Region):
            b.ops.append(op)
            continue
        elif _is_kernel(op, kernels):
            replacements |= _Kernel(op, b, kernels or {}).made()
        else:
            replacements |= inlined(op, b)
        modified = True
    if modified:
        function.ops = b.ops
        replace_values(module, function, replacements)
    return modified


def _is_kernel(region: Region, kernels: Kernels | None) -> bool:
    """Whether the target has a kernel for a region with these parameters."""
    specs = [port.spec for port in ports(region)]
    if not any(map(is_quantized, specs)):
        return False
    if kernels is None:
        return all(is_quantized(spec) or not is_quantizable(spec) for spec in specs)
    match = lookup(kernels, region, region.input_specs, region.output_specs)
    if match is None:
        return False
    kinds = (*match.inputs, *match.outputs)
    return all(is_quantized(s) or not is_quantizable(s) or not k.kinds for s, k in zip(specs, kinds, strict=True))


def _stored(b: Emitter, value: Value, kind: ElementType) -> Value:
    """A value, quantized: what it was before it was dequantized, if that is of the type."""
    if not is_quantized(kind):
        return value
    if isinstance(value.producer, Dcast) and value.producer.input.type.element == kind:
        return value.producer.input
    real = real_constant(value.producer.input) if isinstance(value.producer, Dcast) else value
    return (real and quantized_constant(real, kind)) or b.emit(Qcast, [value], value.type.with_element(kind))


class _Kernel:
    """One region as ops on quantized tensors."""

    def __init__(self, region: Region, b: Emitter, kernels: Kernels) -> None:
        self.region = region
        self.b = b
        b.location = region.location
        self.same_scale = frozenset(
            name
            for name, signatures in kernels.items()
            if signatures and all(any(n == "same_scale" for n, _ in s.constraints) for s in signatures)
        )

    def made(self) -> dict[Value, Value]:
        """What the region's results become."""
        region = self.region
        specs: Mapping[Value, ElementType] = dict(
            zip(region.regions[0].block.arguments, region.input_specs, strict=True)
        )
        given = [Value(value.type) for value in region.inputs]
        known: dict[Value, ElementType] = dict(zip(given, specs.values(), strict=True))
        now = {
            inner: _stored(self.b, value, spec)
            for inner, value, spec in zip(given, region.inputs, region.input_specs, strict=True)
        }
        ops, returned = body(region, given)
        for value, spec in zip(returned, region.output_specs, strict=True):
            known.setdefault(value, spec)
        ops = joined(ops, frozenset(returned))
        types = inner_types(region, ops, known, self.same_scale)
        for op in ops:
            if isinstance(op, (Qcast, Dcast, Stats)):
                now[op.result] = now[op.operand(0)]
            else:
                self._emit(op, now, types)
        return {result: self._real(now[value], result) for result, value in zip(region.results, returned, strict=True)}

    def _emit(self, op: Op, now: dict[Value, Value], types: Mapping[Value, ElementType]) -> None:
        for value in op.operands:
            if value is not None and value not in now:
                now[value] = _stored(self.b, value, types.get(value, value.type.element))
        operands = [value and now[value] for value in op.operands]
        results = [
            value.type.with_element(types[value]) if is_quantized(types.get(value, value.type.element)) else value.type
            for value in op.results
        ]
        made = self.b.op(op.name, operands, results, op.attributes, op.info)
        now |= zip(op.results, made.results, strict=True)

    def _real(self, value: Value, result: Value) -> Value:
        """A value dequantized, under the name of the region's result."""
        if not value.type.quantized:
            return value
        real = self.b.emit(Dcast, [value], result.type)
        real.name = result.name
        return real
