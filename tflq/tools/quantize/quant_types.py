"""Quantized types: in their simplest form, taken out of function headers, and made of simulated quantization.

What training has rounded with fake quantizations becomes casts to quantized types and back:

    convert-simulated-quantization   fake quantization → quant.qcast, quant.dcast
    legalize-tf                      fake quantization → itself, tfl.quantize, tfl.dequantize
    prepare-tfl                      fake quantization → tfl.quantize, tfl.dequantize

The parameters are those of TensorFlow Lite's converter (`regions.ranges.simulated_type`). Source: "Quantization",
Integration with simulated quantization at training time, TFLite Native Quantization (MLIR's documentation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from tflq.base.errors import Reason, UnsupportedError
from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.parameters import SimulatesQuantization
from tflq.dialects.quant import Dcast, Qcast, Scast
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.formats.mlir.dialects.linalg import Call, CallIndirect
from tflq.ir.facts import walk
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.rewriting import rewrite_all_ops
from tflq.ir.types import (
    BareType,
    ElementType,
    FunctionType,
    QuantizedType,
    Shape,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
)
from tflq.tools.quantize.regions.ranges import is_quantizing, other_sign, simulated_type, source_of
from tflq.transforms.pass_manager import Pass, PassResult


class NormalizeQuantTypes(Pass):
    """Replaces quantized types by equivalent simpler ones.

    Sub-channel quantization whose blocks vary along one dim, one index each, is per-axis; sub-channel or per-axis
    quantization with one scale and zero point for all elements is per-layer. The values expressed stay the same, so all
    types of a module can be replaced at once.
    """

    name: ClassVar[str] = "normalize-quant-types"
    makes: ClassVar[Literal["any"]] = "any"

    def run(self, module: Module) -> PassResult:
        known: dict[TensorType, TensorType] = {}
        modified = False
        for function in module.functions:
            for value in dict.fromkeys((*function.values(), *function.tensors)):
                modified |= _normalize(value, known)
        return PassResult(module, modified)


def _normalize(value: Value, known: dict[TensorType, TensorType]) -> bool:
    old = value.type
    if not old.quantized:
        return False
    new = known.setdefault(old, old.with_element(normalized(old.element, old.shape)))
    value.type = new
    return new != old


def normalized(element: ElementType, shape: Shape) -> ElementType:
    """The simplest quantized type that gives a tensor of `shape` the same values."""
    if isinstance(element, UniformQuantizedSubChannelType):
        return _from_sub_channel(element, shape)
    if isinstance(element, UniformQuantizedPerAxisType):
        return _per_layer(element) or element
    return element


def _from_sub_channel(element: UniformQuantizedSubChannelType, shape: Shape) -> ElementType:
    layer = _per_layer(element)
    if layer is not None or shape is None or len(shape) != element.scales.ndim:
        return layer or element
    varying = [axis for axis, count in enumerate(element.scales.shape) if count > 1]
    if len(varying) != 1 or shape[varying[0]] != element.scales.size:
        return element
    return UniformQuantizedPerAxisType.of(
        element.storage,
        varying[0],
        element.scales.reshape(-1),
        element.zero_points.reshape(-1),
        expressed=element.expressed,
        storage_min=element.storage_min,
        storage_max=element.storage_max,
    )


def _per_layer(element: UniformQuantizedSubChannelType | UniformQuantizedPerAxisType) -> UniformQuantizedType | None:
    """Per-layer quantization by the first scale and zero point, if all are the same."""
    scales, zero_points = element.scales.reshape(-1), element.zero_points.reshape(-1)
    if not (np.all(scales == scales[0]) and np.all(zero_points == zero_points[0])):
        return None
    return UniformQuantizedType.of(
        element.storage,
        float(scales[0]),
        int(zero_points[0]),
        expressed=element.expressed,
        storage_min=element.storage_min,
        storage_max=element.storage_max,
    )


class StripFuncQuantTypes(Pass):
    """Replaces quantized types in function headers and calls by their storage types.

    As the `quant` dialect specifies, there is a `quant.scast` after each such argument and before each such result; at
    a `func.call` or `func.call_indirect` the operands are cast to the storage types before it, and its results back
    after it. Storage types are signless: `i8` for `u8`, too.
    """

    name: ClassVar[str] = "strip-func-quant-types"
    makes: ClassVar[Literal["any"]] = "any"

    def run(self, module: Module) -> PassResult:
        modified = _strip_references(module)
        for function in module.functions:
            if function.info.get("declaration"):
                modified |= _strip_declaration(function)
            else:
                calls = _strip_calls(function.ops)
                results = _strip_results(module, function)
                modified |= _strip_arguments(function) or calls or results
        return PassResult(module, modified)


def _strip_declaration(function: Function) -> bool:
    stripped = [value for value in (*function.inputs, *function.outputs) if value.type.quantized]
    for value in stripped:
        value.type = value.type.stored()
    return bool(stripped)


def _strip_arguments(function: Function) -> bool:
    """The argument stays the value it is, name and all, with its type stripped; its users get the cast's result."""
    casts: list[Op] = []
    replacements: dict[Value, Value] = {}
    for argument in function.inputs:
        if argument.type.quantized:
            inner = Value(argument.type)
            argument.type = argument.type.stored()
            casts.append(Op(Scast.op_name, [argument], [inner]))
            replacements[argument] = inner
    outputs = function.outputs
    function.replace(replacements)
    function.outputs = outputs
    function.ops = [*casts, *function.ops]
    return bool(casts)


def _strip_results(module: Module, function: Function) -> bool:
    """The new results take over names and places in the tensor table: a function's interface is known by them."""
    replacements: dict[Value, Value] = {}
    renamed: dict[Value, Value] = {}
    for value in function.outputs:
        if value.type.quantized and value not in replacements:
            outer = Value(value.type.stored())
            if value not in function.inputs and not value.is_constant:
                outer.name, value.name = value.name, ""
                renamed[value] = outer
            function.ops.append(Op(Scast.op_name, [value], [outer]))
            replacements[value] = outer
    function.outputs = [replacements.get(value, value) for value in function.outputs]
    function.tensors = [renamed.get(value, value) for value in function.tensors]
    for signature in module.signatures or []:
        if signature.outputs is not None and module.functions[signature.function] is function:
            signature.outputs = [(name, replacements.get(value, value)) for name, value in signature.outputs]
    return bool(replacements)


def _strip_references(module: Module) -> bool:
    """The types of values that are functions."""
    modified = False
    for function in module.functions:
        for value in (*function.values(), *function.inputs, *function.outputs):
            element = value.type.element
            if isinstance(element, FunctionType):
                kind = BareType.of(_stripped(element))
                modified |= kind != value.type
                value.type = kind
    return modified


def _stripped(kind: FunctionType) -> FunctionType:
    return FunctionType(*(tuple(_stored(type) for type in side) for side in (kind.inputs, kind.results)))


def _stored(type: TensorType) -> TensorType:
    element = type.element
    if isinstance(element, FunctionType):
        return BareType.of(_stripped(element))
    return type.stored() if type.quantized else type


def _strip_calls(ops: list[Op]) -> bool:
    """The calls among ops and inside of them; the list is changed in place."""
    stripped: list[Op] = []
    inside = False
    for op in ops:
        for region in op.regions:
            for block in region.blocks:
                inside |= _strip_calls(block.ops)
        if isinstance(op, (Call, CallIndirect)):
            op.operands = [_cast_operand(stripped, value) for value in op.operands]
            stripped += [op, *_cast_results(op)]
        else:
            stripped.append(op)
    modified = len(stripped) != len(ops)
    ops[:] = stripped
    return modified or inside


def _cast_operand(ops: list[Op], value: Value | None) -> Value | None:
    if value is None or not value.type.quantized:
        return value
    stored = Value(value.type.stored())
    ops.append(Op(Scast.op_name, [value], [stored]))
    return stored


def _cast_results(call: Op) -> list[Op]:
    """The casts back; each results in the value that the call resulted in, so users need no change."""
    casts: list[Op] = []
    for position, value in enumerate(call.results):
        if value.type.quantized:
            stored = Value(value.type.stored(), producer=call)
            call.results[position] = stored
            casts.append(Op(Scast.op_name, [stored], [value], location=call.location))
    return casts


_Types: TypeAlias = dict[Op, QuantizedType]
_Users: TypeAlias = dict[Value, list[Op]]


@dataclass(frozen=True)
class ConvertSimulatedQuantization(Pass):
    """Replaces each fake quantization, of TensorFlow, TFLite or the dialect quant, by a `quant.qcast` and a
    `quant.dcast`.

    The parameters follow from range, `num_bits` and `narrow_range`. Storage has 8 or 16 bits, bounded to the steps that
    training had. It is unsigned for TensorFlow's ops, signed for TFLite's, and as a `quant` op says. UnsupportedError
    names the ops whose range the model computes.
    """

    name: ClassVar[str] = "convert-simulated-quantization"

    def run(self, module: Module) -> PassResult:
        types = _types(module)

        def rewritten(op: Op) -> list[Op] | None:
            return _through(Qcast, Dcast, op, source_of(op), types[op]) if op in types else None

        return PassResult(module, rewrite_all_ops(module, rewritten))


class LegalizeTf(Pass):
    """Puts a `tfl.quantize` and a `tfl.dequantize` behind each fake quantization, which stays.

    Where a constant is rounded, folding leaves the parameters. UnsupportedError names the fake quantizations whose
    range the model computes, and every other op of TensorFlow.
    """

    name: ClassVar[str] = "legalize-tf"

    def run(self, module: Module) -> PassResult:
        _refuse_others(module)
        types, users = _types(module), _users(module)

        def rewritten(op: Op) -> list[Op] | None:
            if op not in types or _casts(op, types, users):
                return None
            inner = Value(op.result.type)
            behind = _through(Quantize, Dequantize, op, inner, types[op])
            op.results = [inner]
            inner.producer = op
            return [op, *behind]

        return PassResult(module, rewrite_all_ops(module, rewritten))


class PrepareTfl(Pass):
    """Replaces each fake quantization by a `tfl.quantize` and a `tfl.dequantize`, or by those that stand behind it.

    UnsupportedError as of `convert-simulated-quantization`.
    """

    name: ClassVar[str] = "prepare-tfl"

    def run(self, module: Module) -> PassResult:
        types, users = _types(module), _users(module)

        def rewritten(op: Op) -> list[Op] | None:
            if op not in types:
                return None
            if casts := _casts(op, types, users):
                for cast in casts:
                    cast.operands = [source_of(op)]
                return []
            return _through(Quantize, Dequantize, op, source_of(op), types[op])

        return PassResult(module, rewrite_all_ops(module, rewritten))


def _types(module: Module) -> _Types:
    """All fake quantizations of a module, with what they simulate. UnsupportedError names those that have no type."""
    types: _Types = {}
    reasons = []
    for op in walk(module.ops()):
        if trait_of(op, SimulatesQuantization) is None:
            continue
        try:
            types[op] = simulated_type(op)
        except ValueError as error:
            what = f"{op.name}: {error}"
            reasons.append(Reason.at(op.location, what, value=op.name, remedy="state its range in constants"))
    if reasons:
        raise UnsupportedError("fake quantizations have no quantized types", reasons)
    return types


def _refuse_others(module: Module) -> None:
    """UnsupportedError names the ops of TensorFlow that are not fake quantizations."""
    others = [
        op for op in walk(module.ops()) if op.name.startswith("tf.") and trait_of(op, SimulatesQuantization) is None
    ]
    if not others:
        return
    what = "of TensorFlow's ops only fake quantization is known"
    remedy = "make it an operator of TFLite first, as TensorFlow Lite's converter does"
    reasons = [Reason.at(op.location, f"{op.name}: {what}", value=op.name, remedy=remedy) for op in others]
    raise UnsupportedError(what, reasons)


def _users(module: Module) -> _Users:
    """The ops that use each value, also inside of others. A result of the module has no users."""
    users: _Users = {}
    for op in walk(module.ops()):
        for value in op.operands:
            if value is not None:
                users.setdefault(value, []).append(op)
    for value in (value for function in module.functions for value in function.outputs):
        users.pop(value, None)
    return users


def _casts(op: Op, types: _Types, users: _Users) -> Sequence[Op]:
    """The casts behind a fake quantization, if nothing else uses it and they round to the same steps."""
    behind = users.get(op.result, [])
    same = types[op], other_sign(types[op])
    return behind if all(is_quantizing(cast) and cast.result.type.element in same for cast in behind) else []


def _through(to: type[Operator], back: type[Operator], op: Op, source: Value, kind: QuantizedType) -> list[Op]:
    """Casts of a value to a quantized type and back, to an op's result."""
    stored = Value(source.type.with_element(kind))
    forth = Op(to.op_name, [source], [stored], {}, op.location)
    return [forth, Op(back.op_name, [stored], [op.result], {}, op.location)]
