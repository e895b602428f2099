"""Simulated quantization: what training has rounded with fake quantizations becomes casts to quantized types and back.

    convert-simulated-quantization   fake quantization → quant.qcast, quant.dcast
    legalize-tf                      fake quantization → itself, tfl.quantize, tfl.dequantize
    prepare-tfl                      fake quantization → tfl.quantize, tfl.dequantize

The parameters are those of TensorFlow Lite's converter: scale = (max - min) / (greatest - least) in f64, rounded to the
expressed type, and the zero point that is nearest to 0 (`numerics.fake_quant.nudged`). Source: "Quantization",
Integration with simulated quantization at training time, TFLite Native Quantization (MLIR's documentation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Final, TypeAlias

import numpy as np

from tflq.contract import Pass, PassResult
from tflq.dialects.declare import Attribute, Operator, trait_of
from tflq.dialects.effects import inner_blocks
from tflq.dialects.quant.casts import Dcast, Qcast
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.dialects.traits.quantization import SimulatesQuantization
from tflq.errors import Reason, UnsupportedError
from tflq.ir.core import Module, Op, Value, constant, walk
from tflq.ir.types import (
    ElementType,
    ScalarType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i4,
    i8,
    i16,
    ui4,
    ui8,
    ui16,
)
from tflq.numerics.fake_quant import nudged

_Uniform: TypeAlias = UniformQuantizedType | UniformQuantizedPerAxisType

_SIGNED: Final = {ui4: i4, ui8: i8, ui16: i16}
_LEAST_WIDTH: Final = 1e-6
"""A narrower range is widened to half of that on both sides of 0, as TensorFlow Lite's converter does it."""


def simulated_type(op: Op, *, signed: bool | None = None) -> _Uniform | None:
    """The quantized type whose rounding a fake quantization simulates; None if an op is none, or its range is not
    known. signed: of the storage; by default as the op says."""
    simulates = trait_of(op, SimulatesQuantization)
    if simulates is None:
        return None
    assert isinstance(op, Operator)
    try:
        return _type(op, simulates, signed=signed)
    except ValueError:
        return None


def _type(op: Operator, simulates: SimulatesQuantization, *, signed: bool | None) -> _Uniform:
    """ValueError says why there is none."""
    value = simulates.data.value(op)
    bounds = simulates.bounds(op)
    if bounds is None:
        raise ValueError("its range is computed by the model")
    if value is None or not isinstance(value.type.element, ScalarType):
        raise ValueError("its input is quantized already")
    bits: int = op.attributes.get("num_bits", op.attribute_slots["num_bits"].default)
    narrow = bool(op.attributes.get("narrow_range", False))
    low, high = (np.asarray(side, np.float64) for side in bounds)
    dead = high - low < _LEAST_WIDTH
    low = np.where(dead, np.minimum(low, -_LEAST_WIDTH / 2), low)
    high = np.where(dead, np.maximum(high, _LEAST_WIDTH / 2), high)
    steps = nudged(low, high, bits, narrow_range=narrow)
    if signed is None:
        signed = simulates.signed is not None and bool(getattr(op, simulates.signed.name))
    kinds = (i4, i8, i16) if signed else (ui4, ui8, ui16)
    storage = next(kind for kind in kinds if bits <= kind.bits)
    offset = 1 << (bits - 1) if signed else 0
    expressed = value.type.element
    ends = {"storage_min": steps.least - offset, "storage_max": steps.greatest - offset}
    if simulates.axis is None:
        zero = int(steps.zero.reshape(())) - offset
        return UniformQuantizedType.of(storage, float(steps.scale.reshape(())), zero, expressed=expressed, **ends)
    axis = _axis(op, simulates.axis, value)
    return UniformQuantizedPerAxisType.of(
        storage, axis, steps.scale.reshape(-1), steps.zero.reshape(-1) - offset, expressed=expressed, **ends
    )


def _axis(op: Operator, axis: int | Attribute, value: Value) -> int:
    if isinstance(axis, Attribute):
        return int(getattr(op, axis.name))
    if axis < 0 and value.type.rank is None:
        raise ValueError("the rank of its input is not known")
    return axis + (value.type.rank or 0) if axis < 0 else axis


def _types(module: Module, *, signed: bool) -> dict[Op, _Uniform]:
    """All fake quantizations of a module, with what they simulate. UnsupportedError names those that have no type."""
    found: dict[Op, _Uniform] = {}
    reasons = []
    for op in (op for function in module.functions for op in walk(function.ops)):
        simulates = trait_of(op, SimulatesQuantization)
        if simulates is None:
            continue
        assert isinstance(op, Operator)
        try:
            found[op] = _type(op, simulates, signed=signed or None)
        except ValueError as error:
            remedy = "fold what computes it, or state it" if "computed" in str(error) else ""
            reasons.append(Reason.at(op.location, f"{op.name} of '{op.operand(0).label}': {error}", remedy=remedy))
    if reasons:
        raise UnsupportedError("; ".join(str(reason) for reason in reasons), reasons)
    return found


def _rewrite(module: Module, rewritten: Callable[[Op], list[Op] | None]) -> bool:
    """Puts other ops in the place of ops, also inside of others. Returns whether there were any."""
    modified = False

    def all_of(ops: list[Op]) -> list[Op]:
        nonlocal modified
        made: list[Op] = []
        for op in ops:
            others = rewritten(op)
            modified |= others is not None
            made += [op] if others is None else others
        return made

    for function in module.functions:
        for block in inner_blocks(function.ops):
            block.ops = all_of(block.ops)
        function.ops = all_of(function.ops)
    return modified


def _pair(source: Value, result: Value, kind: ElementType, op: Op, *, tfl: bool) -> list[Op]:
    """A cast of a value to a quantized type, and one back."""
    to, back = (Quantize, Dequantize) if tfl else (Qcast, Dcast)
    stored = Value(source.type.with_element(kind))
    return [Op(to.op_name, [source], [stored], {}, op.location), Op(back.op_name, [stored], [result], {}, op.location)]


@dataclass(frozen=True)
class ConvertSimulatedQuantization(Pass):
    """Replaces each fake quantization, of TensorFlow, TFLite or the dialect quant, by a `quant.qcast` and a
    `quant.dcast`.

    The parameters follow from range, `num_bits` and `narrow_range`; storage is as wide as a tensor's can be (4, 8 or 16
    bits), bounded to the steps. `signed=true`: signed integers, also where the op does not say so. UnsupportedError
    names the ops whose range the model computes.
    """

    name: ClassVar[str] = "convert-simulated-quantization"
    signed: bool = False

    def run(self, module: Module) -> PassResult:
        types = _types(module, signed=self.signed)

        def rewritten(op: Op) -> list[Op] | None:
            return _pair(op.operand(0), op.result, types[op], op, tfl=False) if op in types else None

        return PassResult(module, _rewrite(module, rewritten))


@dataclass(frozen=True)
class LegalizeTf(Pass):
    """Puts a `tfl.quantize` and a `tfl.dequantize` behind each fake quantization, which stays.

    Constants then keep their parameters when what rounds them is folded. `signed=true`: what they store is signed, and
    so are the pairs that a model has. UnsupportedError names the fake quantizations whose range the model computes, and
    every other op of TensorFlow.
    """

    name: ClassVar[str] = "legalize-tf"
    signed: bool = False

    def run(self, module: Module) -> PassResult:
        ops = [op for function in module.functions for op in walk(function.ops)]
        others = [op for op in ops if op.name.startswith("tf.") and trait_of(op, SimulatesQuantization) is None]
        if others:
            remedy = "make TFLite's operators of it first, as TensorFlow Lite's converter does"
            what = "no op of TensorFlow but fake quantization is known"
            reasons = [Reason.at(op.location, f"{op.name}: {what}", remedy=remedy) for op in others]
            raise UnsupportedError(f"{', '.join(dict.fromkeys(op.name for op in others))}: {what}", reasons)
        types = _types(module, signed=self.signed)
        users = _users(ops)
        modified = self.signed and _sign(module)

        def rewritten(op: Op) -> list[Op] | None:
            if op not in types or _is_quantized(op.result, types[op], users):
                return None
            result, inner = op.result, Value(op.result.type)
            op.results = [inner]
            inner.producer = op
            return [op, *_pair(inner, result, types[op], op, tfl=True)]

        return PassResult(module, _rewrite(module, rewritten) or modified)


@dataclass(frozen=True)
class PrepareTfl(Pass):
    """Replaces each fake quantization by a `tfl.quantize` and a `tfl.dequantize`, or by the pair behind it.

    `signed=true`: what they store is signed, and so are the pairs that a model has. UnsupportedError as of
    `convert-simulated-quantization`.
    """

    name: ClassVar[str] = "prepare-tfl"
    signed: bool = False

    def run(self, module: Module) -> PassResult:
        modified = self.signed and _sign(module)
        types = _types(module, signed=self.signed)
        users = _users(op for function in module.functions for op in walk(function.ops))
        returned = {value for function in module.functions for value in function.outputs}

        def rewritten(op: Op) -> list[Op] | None:
            if op not in types:
                return None
            if op.result not in returned and _is_quantized(op.result, types[op], users):
                for user in users[op.result]:
                    user.operands = [op.operand(0)]
                return []
            return _pair(op.operand(0), op.result, types[op], op, tfl=True)

        return PassResult(module, _rewrite(module, rewritten) or modified)


def _users(ops: Iterable[Op]) -> dict[Value, list[Op]]:
    users: dict[Value, list[Op]] = {}
    for op in ops:
        for value in op.operands:
            if value is not None:
                users.setdefault(value, []).append(op)
    return users


def _is_quantized(value: Value, kind: _Uniform, users: dict[Value, list[Op]]) -> bool:
    """Whether all that uses a value is casts to a type, but for the sign of what it stores."""
    using = users.get(value, ())
    return bool(using) and all(
        isinstance(op, (Quantize, Qcast)) and _signed(op.result.type.element) == _signed(kind) for op in using
    )


# Signed storage: the same parameters, with zero points and integers less by half of their number.


def _signed(kind: ElementType) -> ElementType:
    """A quantized type with signed storage, if it is unsigned."""
    if not isinstance(kind, (UniformQuantizedType, UniformQuantizedPerAxisType)) or kind.storage not in _SIGNED:
        return kind
    storage = _SIGNED[kind.storage]
    offset = 1 << (storage.bits - 1)
    ends = {"storage_min": kind.storage_min - offset, "storage_max": kind.storage_max - offset}
    if isinstance(kind, UniformQuantizedType):
        return replace(kind, storage=storage, zero_point=kind.zero_point - offset, **ends)
    zeros = kind.zero_points - offset
    return UniformQuantizedPerAxisType.of(storage, kind.axis, kind.scales, zeros, expressed=kind.expressed, **ends)


def _sign(module: Module) -> bool:
    """Makes the storage signed of what is quantized only to be dequantized. Returns whether there was any."""
    modified = False
    ops = [op for function in module.functions for op in walk(function.ops)]
    kept = {value for function in module.functions for value in (*function.inputs, *function.outputs)}
    for value, using in _users(ops).items():
        kind = _signed(value.type.element)
        source = value.producer
        if kind == value.type.element or value in kept or not all(isinstance(o, (Dequantize, Dcast)) for o in using):
            continue
        if isinstance(source, (Quantize, Qcast)) and not source.input.type.quantized:
            value.type = value.type.with_element(kind)
        elif value.is_constant:
            twin = _signed_constant(value, kind)
            for op in using:
                op.operands = [twin]
        else:
            continue
        modified = True
    return modified


def _signed_constant(value: Value, kind: ElementType) -> Value:
    assert isinstance(kind, (UniformQuantizedType, UniformQuantizedPerAxisType))
    stored = value.array.astype(np.int64) - (1 << (kind.storage.bits - 1))
    twin = constant(stored.astype(kind.storage.dtype), kind.storage, value.name)
    twin.type = value.type.with_element(kind)
    return twin
