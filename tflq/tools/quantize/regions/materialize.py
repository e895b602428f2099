"""Regions become ops again: those of `quant.region` as they are (inline-regions), or TFLite's quantized operators, the
kernels of a target (quant-materialize).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np

from tflq.base.errors import Reason, UnsupportedError
from tflq.base.logs import WARNING, log
from tflq.dialects.builder import Emitter
from tflq.dialects.declare import Operator
from tflq.dialects.parameters import SameScale
from tflq.dialects.quant import Dcast, Qcast
from tflq.dialects.regions import Region, Rescale, Stats
from tflq.dialects.tfl.activation import Relu, Relu6, ReluN1To1
from tflq.dialects.tfl.arithmetic import Add
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.dialects.traits import ReadsShapes
from tflq.ir.facts import walk
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.rewriting import replace_values
from tflq.ir.types import (
    AnyQuantizedType,
    CalibratedQuantizedType,
    ElementType,
    UniformQuantizedType,
    is_narrowed,
    is_quantized,
)
from tflq.targets.load import Kernels, load_kernels
from tflq.tools.quantize.regions.lookup import (
    CONSTANT,
    Fallbacks,
    is_quantizable,
    is_real,
    lacks,
    origins_of,
    ports,
    quantized_constant,
    real_constant,
    report,
)
from tflq.tools.quantize.regions.ranges import (
    POINTS,
    Range,
    is_quantizing,
    is_statement,
    parameters,
    range_of,
    same_value,
    source_of,
    stored_of,
)
from tflq.transforms.pass_manager import Pass, PassResult


@dataclass(frozen=True)
class InlineRegions(Pass):
    """Replaces regions by their ops, with casts where a port is quantized.

    A port with parameters has a `quant.qcast` to its type and a `quant.dcast` back. Nothing is left of statistics and
    widths, which are not parameters yet; with `annotations=true` a calibrated port has a `quant.stats`. A
    `quant.rescale` becomes casts to its result's parameters and back.
    """

    name: ClassVar[str] = "inline-regions"
    annotations: bool = False

    def run(self, module: Module) -> PassResult:
        modified = False
        for function in module.functions:
            replacements: dict[Value, Value] = {}
            ops = self._ops(function.ops, replacements)
            if ops is not function.ops or replacements:
                function.ops = ops
                replace_values(module, function, replacements)
                modified = True
        return PassResult(module, modified)

    def _ops(self, ops: list[Op], replacements: dict[Value, Value]) -> list[Op]:
        """The ops with regions inlined, also those inside of others and of regions; the same list if no op of it is a
        region."""
        b = Emitter()
        changed = False
        for op in ops:
            for block in (block for region in op.regions for block in region.blocks):
                block.ops = self._ops(block.ops, replacements)
            if isinstance(op, Region):
                replacements |= inlined(op, b, annotations=self.annotations)
            elif isinstance(op, Rescale):
                b.location = op.location
                replacements[op.output] = named_as(op.output, through(b, op.input, op.target))
            else:
                b.ops.append(op)
                continue
            changed = True
        return b.ops if changed else ops


def inlined(region: Region, b: Emitter, *, annotations: bool = False) -> dict[Value, Value]:
    """Emits a region's ops. Returns what its results become."""
    b.location = region.location
    pairs = zip(region.inputs, region.input_specs, strict=True)
    ops, returned = body(region, [through(b, value, spec, annotations=annotations) for value, spec in pairs])
    b.ops.extend(ops)
    return {
        result: named_as(result, through(b, value, spec, annotations=annotations))
        for result, value, spec in zip(region.results, returned, region.output_specs, strict=True)
    }


def named_as(result: Value, value: Value) -> Value:
    """A value that takes the place of a result, under its name, with what a file says of it."""
    if value.producer is not None and not value.name:
        value.name = result.name
        if value.type == result.type:
            value.info = result.info
    return value


def body(region: Region, arguments: list[Value]) -> tuple[list[Op], list[Value]]:
    """A region's ops except its end, on `arguments` instead of its own, and what it returns, without a name: the
    region's results have those. The ops are the region's own: it is not to be used any more."""
    block = region.regions[0].block
    known = dict(zip(block.arguments, arguments, strict=True))
    for op in walk(block.ops):
        op.operands = [value and known.get(value, value) for value in op.operands]
    *ops, end = block.ops
    for value in (value for op in ops for value in op.results if value in end.operands):
        value.name = ""
    return ops, end.present_operands


def through(b: Emitter, value: Value, spec: ElementType, *, annotations: bool = False) -> Value:
    """A value, rounded to what a quantized type expresses; as it is for any other."""
    if is_quantized(spec):
        stored = b.emit(Qcast, [value], value.type.with_element(spec))
        return b.emit(Dcast, [stored], value.type)
    if annotations and isinstance(spec, CalibratedQuantizedType):
        stats = np.array([spec.minimum, spec.maximum], spec.expressed.dtype if spec.expressed.numpy else np.float32)
        return b.emit(Stats, [value], value.type, layerStats=stats)
    return value


@dataclass(frozen=True)
class QuantMaterialize(Pass):
    """Replaces regions by quantized operators. `target`: a target's file; without one, all are taken to have a kernel.

    A region whose ports all have parameters becomes its ops on quantized tensors, between casts; constants are
    quantized. Biases and activations become part of the op before. Tensors between several ops take the parameters of
    casts inside, else those of a port, by an op of one scale. A region without parameters becomes its ops again; one
    that lacks some, or for which the target lists no kernel, its ops between casts: a warning, and `Fallbacks` in the
    module's record, say why. A `quant.rescale` becomes a
    `tfl.quantize`. `casts=tfl` makes all casts operators of TFLite, as files need them. UnsupportedError names a tensor
    inside of a region if nothing says how it is quantized.
    """

    name: ClassVar[str] = "quant-materialize"
    target: str = ""
    casts: Literal["quant", "tfl"] = "quant"

    def run(self, module: Module) -> PassResult:
        kernels = load_kernels(self.target) if self.target else None
        if kernels is not None:
            _report(module, kernels)
        modified = False
        for function in module.functions:
            modified |= _function(module, function, kernels)
        if self.casts == "tfl":
            modified |= of_tflite(module)
        return PassResult(module, modified)


def _report(module: Module, kernels: Kernels) -> None:
    """Notes, and warns, which regions become no quantized kernels."""
    rows = [row for row in report(module, kernels) if row.lacks]
    module.record.note(Fallbacks(rows))
    for row in rows:
        log(WARNING, "kernel '%s' stays in floats: %s: %s", row.kernel, row.port, row.lacks)


def of_tflite(module: Module) -> bool:
    """Makes casts between reals and quantized values operators of TFLite, and drops the bounds of constants.

    Constants are within their bounds, for which a file has no place. Returns whether there are any.
    """
    modified = False
    for function in module.functions:
        for value in function.values():
            element = value.type.element
            if same_value(value).is_constant and is_quantized(element) and is_narrowed(element):
                low, high = element.storage.minimum, element.storage.maximum
                value.type = value.type.with_element(element.replace(storage_min=low, storage_max=high))
                modified = True
        for place, op in enumerate(function.ops):
            if isinstance(op, (Qcast, Dcast)):
                kind = Quantize if isinstance(op, Qcast) else Dequantize
                function.ops[place] = Op(kind.op_name, op.operands, op.results, {}, op.location)
                modified = True
    return modified


def _function(module: Module, function: Function, kernels: Kernels | None) -> bool:
    replacements: dict[Value, Value] = {}
    users = function.users()
    b = _Quantizer()
    modified = False
    for op in function.ops:
        op.operands = [value and replacements.get(value, value) for value in op.operands]
        if isinstance(op, Rescale):
            b.location = op.location
            stored = b.emit(Quantize, [b.stored(op.input, op.source)], op.input.type.with_element(op.target))
            replacements[op.output] = named_as(op.output, b.emit(Dcast, [stored], op.input.type))
        elif isinstance(op, POINTS) and (kind := _type_at(op, users)) is not None:
            b.location = op.location
            stored = b.stored(source_of(op), kind)
            marked = b.op(op.name, [stored], [stored.type], op.attributes)
            replacements[op.result] = named_as(op.result, b.emit(Dcast, [marked.result], op.result.type))
        elif (again := _quantized_before(op)) is not None:
            replacements[op.result] = named_as(op.result, again)
        elif not isinstance(op, Region):
            b.ops.append(op)
            continue
        elif _is_kernel(op, kernels):
            replacements |= _Kernel(op, b, kernels or {}).results()
        else:
            _keep_constants(op)
            replacements |= inlined(op, b)
        modified = True
    if modified:
        function.ops = b.ops
        replace_values(module, function, replacements)
        _read_stored_shapes(function)
        _name_stored(function)
    return modified


def _read_stored_shapes(function: Function) -> None:
    """Gives what reads a shape alone the quantized tensor, which then needs no floats for it."""
    for op in function.ops_with(ReadsShapes):
        op.operands = [value and (stored_of(value) or value) for value in op.operands]


def _name_stored(function: Function) -> None:
    """Gives the name of a real that nothing reads to the quantized value that stands for it."""
    read = {value for op in walk(function.ops) for value in op.operands} | set(function.outputs)
    for op in function.ops:
        if isinstance(op, Dcast) and op.result not in read and op.input.producer is not None and not op.input.name:
            op.input.name, op.result.name = op.result.name, ""


def _quantized_before(op: Op) -> Value | None:
    """The value that a kernel results in and that an op quantizes again with the same parameters; None otherwise."""
    back = source_of(op).producer if is_quantizing(op) else None
    if not isinstance(back, Dcast) or back.input.type != op.result.type or back.input.producer is None:
        return None
    return back.input


def _keep_constants(region: Region) -> None:
    """Leaves constants of a kernel in floats as they are, if they have parameters only for their own elements."""
    for port, origin in zip(ports(region), origins_of(region), strict=False):
        if origin == CONSTANT:
            port.set(port.value.type.element)


def _type_at(point: Op, users: Mapping[Value, Sequence[Op]]) -> ElementType | None:
    """The parameters that a value has at a point: its own, else those that all its users want; None if it stays real.
    The point is then put on the quantized value."""
    if (stored := stored_of(source_of(point))) is not None:
        return stored.type.element
    kinds = set[ElementType | None]()
    for op in users.get(point.result, ()):
        specs = op.input_specs if isinstance(op, Region) else [op.source] if isinstance(op, Rescale) else [None]
        kinds |= {spec for spec, operand in zip(specs, op.operands, strict=False) if operand is point.result}
    (kind,) = kinds if len(kinds) == 1 else (None,)
    return kind if kind is not None and is_quantized(kind) else None


def _is_kernel(region: Region, kernels: Kernels | None) -> bool:
    """Whether the target has a kernel for a region with these parameters."""
    specs = [port.spec for port in ports(region)]
    if not any(map(is_quantized, specs)):
        return False
    if kernels is None:
        return all(is_quantized(spec) or not is_quantizable(spec) for spec in specs)
    return not lacks(kernels, region)


class _Quantizer(Emitter):
    """Emits casts of values, one for each type."""

    def __init__(self) -> None:
        super().__init__()
        self._cast: dict[tuple[Value, ElementType], Value] = {}

    def stored(self, value: Value, kind: ElementType) -> Value:
        """A value, quantized: the one that it was dequantized from, if that has the type."""
        if not is_quantized(kind):
            return value
        real: Value | None = value
        if (stored := stored_of(value)) is not None:
            if stored.type.element == kind:
                return stored
            real = real_constant(stored)
        if (value, kind) not in self._cast:
            constant = real and quantized_constant(real, kind)
            self._cast[value, kind] = constant or self.emit(Qcast, [value], value.type.with_element(kind))
        return self._cast[value, kind]


class _Kernel:
    """One region as ops on quantized tensors."""

    def __init__(self, region: Region, b: _Quantizer, kernels: Kernels) -> None:
        self.region = region
        self.b = b
        b.location = region.location
        self.same_scale = frozenset(
            name
            for name, signatures in kernels.items()
            if signatures and all(any(n == "same_scale" for n, _ in s.constraints) for s in signatures)
        )

    def results(self) -> dict[Value, Value]:
        """The values that replace the region's results."""
        region = self.region
        arguments = [Value(value.type) for value in region.inputs]
        known: dict[Value, ElementType] = dict(zip(arguments, region.input_specs, strict=True))
        now = {inner: self.b.stored(value, known[inner]) for inner, value in zip(arguments, region.inputs, strict=True)}
        ops, returned, ranges = without_statistics(*body(region, arguments))
        for value, spec in zip(returned, region.output_specs, strict=True):
            known.setdefault(value, spec)
        ops = joined(ops, frozenset(returned))
        types = inner_types(region, ops, known, ranges, self.same_scale)
        for op in ops:
            if is_statement(op) and not isinstance(op, POINTS):
                now[op.result] = now[source_of(op)]
            else:
                self._emit(op, now, types)
        return {result: self._real(now[value], result) for result, value in zip(region.results, returned, strict=True)}

    def _emit(self, op: Op, now: dict[Value, Value], types: Mapping[Value, ElementType]) -> None:
        for value in op.operands:
            if value is not None and value not in now:
                now[value] = self.b.stored(value, types.get(value, value.type.element))
        operands = [value and now[value] for value in op.operands]
        results = [
            value.type.with_element(types[value]) if is_quantized(types.get(value, value.type.element)) else value.type
            for value in op.results
        ]
        emitted = self.b.op(op.name, operands, results, op.attributes, op.info)
        for value, result in zip(op.results, emitted.results, strict=True):
            result.name = value.name
        now |= zip(op.results, emitted.results, strict=True)

    def _real(self, value: Value, result: Value) -> Value:
        """A value dequantized, under the name of the region's result."""
        return named_as(result, self.b.emit(Dcast, [value], result.type) if value.type.quantized else value)


# The ops inside of a region of several: which become one op, and the types of the tensors between them.


_ACTIVATIONS: Final = {Relu: "RELU", Relu6: "RELU6", ReluN1To1: "RELU_N1_TO_1"}


def without_statistics(
    ops: Sequence[Op], returned: Sequence[Value]
) -> tuple[list[Op], list[Value], dict[Value, CalibratedQuantizedType]]:
    """A region's ops and what it returns without statistics, and the ranges that these give values."""
    known: dict[Value, Value] = {}
    ranges: dict[Value, CalibratedQuantizedType] = {}
    other_ops = []
    for op in ops:
        op.operands = [value and known.get(value, value) for value in op.operands]
        if isinstance(op, Stats):
            known[op.result] = op.arg
            if (seen := range_of(op)) is not None:
                ranges.setdefault(op.arg, seen)
        else:
            other_ops.append(op)
    return other_ops, [known.get(value, value) for value in returned], ranges


def joined(ops: Sequence[Op], results: frozenset[Value]) -> list[Op]:
    """The ops with biases and activations put into the op before, if that has none. The values in `results` stay."""
    users: dict[Value | None, dict[Op, None]] = {}
    for op in ops:
        for value in op.operands:
            users.setdefault(value, {})[op] = None
    merged: list[Op] = []
    for op in ops:
        last = merged[-1] if merged else None
        joins = last is not None and last.result not in results and list(users.get(last.result, ())) == [op]
        if last is None or not joins or not _join(last, op):
            merged.append(op)
    return merged


def _join(last: Op, op: Op) -> bool:
    """Puts an op into the one before, if possible."""
    fused = last.attributes.get("fused_activation_function")
    bias = last.slot("bias") if isinstance(last, Operator) else None
    if type(op) in _ACTIVATIONS and fused == "NONE":
        last.attributes = {**last.attributes, "fused_activation_function": _ACTIVATIONS[type(op)]}  # type: ignore[index]
    elif isinstance(op, Add) and fused == "NONE" and bias is not None and bias.value(last) is None:
        other = op.rhs if op.lhs is last.result else op.lhs
        if other.type.rank != 1 or other.type.shape != last.result.type.dims[-1:]:
            return False
        last.operands = [*last.operands[: bias.index], other]
        last.attributes = {**last.attributes, "fused_activation_function": op.fused_activation_function}
    else:
        return False
    last.results = op.results
    for value in last.results:
        value.producer = last
    return True


def inner_types(
    region: Region,
    ops: Sequence[Op],
    known: Mapping[Value, ElementType],
    ranges: Mapping[Value, CalibratedQuantizedType],
    same_scale: frozenset[str],
) -> dict[Value, ElementType]:
    """The quantized types of all values of reals: those of ports (`known`), else those of casts inside of the region.

    Else those on the other side of an op of one scale, else those for the range that was seen, on the storage of the
    first port. `same_scale`: further ops of one scale, by name.

    UnsupportedError names the first value whose type nothing tells.
    """
    types = dict(known)
    for op in ops:
        if isinstance(op, Qcast):
            types.setdefault(op.input, op.result.type.element)
    while more := _spread(ops, types, same_scale) or _calibrated(ops, types, ranges):
        types |= more
    for op in ops:
        for value in op.results:
            if value not in types and is_real(value.type.element):
                what = f"kernel '{region.kernel}': nothing says how the result of {op.name} inside of it is quantized"
                remedy = "put a quant.qcast and a quant.dcast behind it"
                raise UnsupportedError(what, [Reason.at(region.location, what, remedy=remedy)])
    return types


def _spread(
    ops: Sequence[Op], types: Mapping[Value, ElementType], same_scale: frozenset[str]
) -> dict[Value, ElementType]:
    """Types that follow from known ones, by ops of one scale and by casts."""
    for op in ops:
        alike = is_statement(op) or op.short_name in same_scale
        if not alike and not (isinstance(op, Operator) and op.has(SameScale)):
            continue
        values = [value for value in op.tensors if is_real(value.type.element)]
        kind = next((types[v] for v in values if v in types and is_quantized(types[v])), None)
        if kind is not None and (rest := {v: kind for v in values if v not in types}):
            return rest
    return {}


def _calibrated(
    ops: Sequence[Op], types: Mapping[Value, ElementType], ranges: Mapping[Value, CalibratedQuantizedType]
) -> dict[Value, ElementType]:
    """The type of the first value that has none, but a range."""
    port = next((kind for kind in types.values() if isinstance(kind, UniformQuantizedType)), None)
    value = next((v for op in ops for v in op.results if v in ranges and v not in types), None)
    if port is None or value is None:
        return {}
    stored = AnyQuantizedType(port.storage, port.expressed, port.storage_min, port.storage_max)
    return {value: parameters(Range.of(ranges[value]), stored, None)}
