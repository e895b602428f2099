"""The quantization of a model whose casts say how: TensorFlow Lite's own algorithm, on logical kernels.

Source: "Quantization", TFLite Native Quantization (MLIR's documentation), a general algorithm of six steps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from tflq.dialects.quant import Dcast, Qcast
from tflq.dialects.regions import Region, Rescale
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.rewriting import (
    forget_constants,
    read_constants,
    remove_ops,
    remove_unneeded,
    replace_values,
    rewrite_ops,
)
from tflq.ir.types import TensorType, is_quantized
from tflq.targets.load import Kernels, load_kernels
from tflq.tools.quantize.quant_types import LegalizeTf, PrepareTfl
from tflq.tools.quantize.regions.edges import COUPLED
from tflq.tools.quantize.regions.fusion import KernelFusion
from tflq.tools.quantize.regions.lookup import Port, lacks, lookup, origins_of, ports, quantized_constant, regions_of
from tflq.tools.quantize.regions.materialize import QuantMaterialize, of_tflite
from tflq.tools.quantize.regions.propagate import QuantPropagate
from tflq.tools.quantize.regions.ranges import (
    POINTS,
    is_dequantizing,
    is_quantizing,
    is_statement,
    same_steps,
    source_of,
    storages,
    stored_by,
    stored_of,
)
from tflq.tools.quantize.regions.tensor_constraints import named_in
from tflq.transforms.canonicalize import Fold
from tflq.transforms.pass_manager import Pass, PassResult, Pipeline

_SCHEME: Final = "int8"
_USER_ORIGINS: Final = frozenset({"annotation", "calibration", COUPLED})
"""Where parameters come from that the model or the user states."""
_BINDING: Final = frozenset({"same_scale", "fixed_scale"})
"""Constraints by which a kernel's result cannot have any parameters."""


@dataclass(frozen=True)
class TflQuantize(Pass):
    """Replaces dequantize → operator → quantize by the quantized operator, and quantized float constants by integers.

    Logical kernels are fused, their parameters propagated from the casts around them, and the kernels materialized:
    biases have the scale of input times weights, ops of one scale that of their neighbours. What no kernel takes stays
    in float between casts, and what is quantized already as it is. target: a scheme, or a target's file, whose kernels
    are used. annotations: as of `quant-propagate`.
    """

    name: ClassVar[str] = "quantize"
    target: str = _SCHEME
    annotations: str = ""

    def run(self, module: Module) -> PassResult:
        return PassResult(module, quantize_kernels(module, self.target, self.annotations))


def quantize_kernels(
    module: Module, target: str, annotations: str = "", propagated: Callable[[Module], None] | None = None
) -> bool:
    """Quantizes kernels as `TflQuantize` says. propagated: is called when all that is known of the ports of regions is
    known, before they become operators. Returns whether anything changed."""
    before, kernels = read_constants(module), load_kernels(target)
    fusion, propagation = KernelFusion(target, reals=True), QuantPropagate(target, annotations)
    modified = Pipeline([fusion, propagation]).run(module).modified
    if propagated is not None:
        propagated(module)
    annotated = named_in(Path(annotations)) if annotations else None
    for function in module.functions:
        modified |= _leave_in_floats(function, kernels)
        modified |= _join_rescales(module, function, kernels, annotated)
    modified |= QuantMaterialize(target).run(module).modified
    for function in module.functions:
        modified |= _sign(function, kernels)
        modified |= _quantize_constants(function)
        modified |= _cancel(module, function)
    modified |= of_tflite(module)
    modified |= remove_unneeded(module, lambda op: is_statement(op) and not isinstance(op, POINTS))
    forget_constants(module, before)
    return modified


def _leave_in_floats(function: Function, kernels: Kernels) -> bool:
    """Takes away parameters that only follow from others, or from a kernel's constraint, where no kernel computes an
    operator, or nothing is stated around it: training has not simulated them. Returns whether there were any."""
    supported = _supported(function, kernels)
    modified = False
    for region in [region for region in regions_of(function.ops) if region not in supported]:
        modified |= leave_real(region, _USER_ORIGINS)
    rewrite_ops(function, _casts)
    return modified


def leave_real(region: Region, user_origins: Collection[str] = ()) -> bool:
    """Takes away the parameters of a region's ports, but those of `user_origins`, and the rescales before it. Returns
    whether there were any."""
    modified, origins = False, origins_of(region)
    for place, port in enumerate(ports(region)):
        if not is_quantized(port.spec) or origins[place] in user_origins:
            continue
        port.set(port.value.type.element)
        origins[place] = "none"
        modified = True
        if not port.is_output:
            port.connect(_before_rescale(port.value))
    region.origins = origins
    return modified


def _casts(op: Op) -> list[Op] | None:
    """The casts in the place of a rescale behind an operator on floats, which has no other parameters; None for other
    ops."""
    region = op.input.producer if isinstance(op, Rescale) else None
    if not isinstance(op, Rescale) or not isinstance(region, Region):
        return None
    if is_quantized(region.output_specs[region.results.index(op.input)]):
        return None
    stored = Value(op.input.type.with_element(op.target))
    there = Op(Qcast.op_name, [op.input], [stored], {}, op.location)
    return [there, Op(Dcast.op_name, [stored], [op.output], {}, op.location)]


def _supported(function: Function, kernels: Kernels) -> set[Region]:
    """The regions that are kernels and have a port of which parameters are stated. Regions that are joined with such
    ports by values, by way of other kernels, count, too."""
    regions = list(regions_of(function.ops))
    free = {region for region in regions if not lacks(kernels, region)}
    at: dict[Value, list[Port]] = {}
    waiting: list[Value] = []
    for region in regions:
        for port, origin in zip(ports(region), origins_of(region), strict=True):
            value = _before_rescale(port.value)
            if not value.is_constant:
                at.setdefault(value, []).append(port)
                waiting += [value] if origin in _USER_ORIGINS and is_quantized(port.spec) else []
    supported: set[Region] = set()
    while waiting:
        for region in {port.region for port in at.pop(waiting.pop(), ())} & free - supported:
            supported.add(region)
            waiting += [_before_rescale(port.value) for port in ports(region)]
    return supported


def _before_rescale(value: Value) -> Value:
    return value.producer.input if isinstance(value.producer, Rescale) else value


def _join_rescales(
    module: Module, function: Function, kernels: Kernels, annotated: Callable[[str], bool] | None
) -> bool:
    """Gives results of kernels the parameters that their only use takes, as TensorFlow Lite's converter does it:
    CONV_2D before a concatenation.

    They replace the parameters that training simulated between. Annotations of the user stay. Returns whether there
    were any.
    """
    users, replacements = function.users(), dict[Value, Value]()
    for op in function.ops:
        region = source_of(op).producer if isinstance(op, Rescale) else None
        if not isinstance(op, Rescale) or not isinstance(region, Region) or op.input in function.outputs:
            continue
        if annotated is not None and annotated(op.input.name):
            continue
        specs = list(region.output_specs)
        specs[region.results.index(op.input)] = op.target
        match = lookup(kernels, region, region.input_specs, specs)
        free = match is not None and not any(name in _BINDING for name, _ in match.signature.constraints)
        if free and users[op.input] == [op]:
            Port(region, True, region.results.index(op.input)).set(op.target)
            replacements[op.output] = op.input
    replace_values(module, function, replacements)
    remove_ops(function, {value.producer for value in replacements if value.producer is not None})
    return bool(replacements)


def _quantize_constants(function: Function) -> bool:
    """Quantizes float constants that are only cast. Returns whether there were any."""
    stored: dict[Value, Value] = {}
    for op in function.ops:
        if is_quantizing(op) and source_of(op).is_constant:
            quantized = quantized_constant(source_of(op), op.result.type.element)
            if quantized is not None:
                stored[op.result] = quantized
    function.replace(stored)
    remove_ops(function, {value.producer for value in stored if value.producer is not None})
    return bool(stored)


def _sign(function: Function, kernels: Kernels) -> bool:
    """Gives what is quantized between operators on floats storage that the target has, of the other sign. Returns
    whether there was any."""
    listed, modified = storages(kernels), False
    users = function.users()
    for value in [value for value in function.values() if value.type.quantized and value not in function.outputs]:
        kind, using = stored_by(listed, value.type.element), users.get(value, ())
        cast = value.producer is not None and is_quantizing(value.producer)
        if cast and kind != value.type.element and using and all(map(is_dequantizing, using)):
            value.type = value.type.with_element(kind)
            modified = True
    return modified


def _cancel(module: Module, function: Function) -> bool:
    """Takes out casts that round what is rounded so already. Returns whether there were any.

    quantize(dequantize(q)) → q                            if the types are equal
    dequantize(quantize(dequantize(q))) → dequantize(q)    if they have the same steps
    two casts of a value to a type → one
    """
    replacements: dict[Value, Value] = {}
    outputs = set(function.outputs)
    done: set[Op] = set()
    first: dict[tuple[Value, TensorType], Value] = {}
    for op in function.ops:
        source = _rounded(op)
        if source is None and (is_quantizing(op) or is_dequantizing(op)):
            read = replacements.get(source_of(op), source_of(op))
            known = first.setdefault((read, op.result.type), op.result)
            source = None if known is op.result else known
        if source is None:
            continue
        source = replacements.get(source, source)
        if op.result in outputs:
            if source.producer is None or source in outputs:
                continue
            source.name = op.result.name or source.name
            outputs.add(source)
        replacements[op.result] = source
        done.add(op)
    replace_values(module, function, replacements)
    remove_ops(function, done)
    return bool(done)


def _rounded(op: Op) -> Value | None:
    """The value that the result of a cast equals, since it was rounded to the same steps before; None if it was not."""
    if is_quantizing(op):
        stored = stored_of(source_of(op))
        return stored if stored is not None and stored.type == op.result.type else None
    if is_dequantizing(op) and (cast := source_of(op).producer) is not None and is_quantizing(cast):
        kind, real, before = cast.result.type.element, source_of(cast), stored_of(source_of(cast))
        if before is not None and real.type == op.result.type and is_quantized(kind):
            return real if same_steps(before.type.element, kind) else None
    return None


@dataclass(frozen=True)
class TflQuantizePipeline(Pass):
    """Quantizes a model by what its training simulated, as TensorFlow Lite does it, in six steps.

    1. Ranges of inputs and outputs are the user's: `annotations`, a file of constraints by names of tensors.
    2. `legalize-tf`: fake quantizations get casts behind them.
    3. `kernel-fusion`, `quant-propagate`: all parameters that follow from those.
    4. `fold`: constants, rounded as in training.
    5. `prepare-tfl`: fake quantizations that are left become casts.
    6. `quantize`: casts around operators become quantized operators.

    target: a scheme, or a target's file, whose kernels are used. Errors as of these passes.
    """

    name: ClassVar[str] = "tfl-quantize-pipeline"
    target: str = _SCHEME
    annotations: str = ""

    def propagation(self) -> list[Pass]:
        """The passes of steps 1 to 3."""
        return [LegalizeTf(), KernelFusion(self.target, reals=True), QuantPropagate(self.target, self.annotations)]

    def quantization(self) -> list[Pass]:
        """The passes of steps 4 to 6."""
        return [Fold(), PrepareTfl(), TflQuantize(self.target, self.annotations)]

    def run(self, module: Module) -> PassResult:
        before = read_constants(module)
        modified = Pipeline(self.propagation()).run(module).modified
        modified |= of_tflite(module)  # folding leaves these casts, and what they say of constants
        modified |= Pipeline(self.quantization()).run(module).modified
        forget_constants(module, before)
        return PassResult(module, modified)
