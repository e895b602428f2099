"""Simulated quantization: what training has rounded with fake quantizations becomes casts to quantized types and back.

    convert-simulated-quantization   fake quantization → quant.qcast, quant.dcast
    legalize-tf                      fake quantization → itself, tfl.quantize, tfl.dequantize
    prepare-tfl                      fake quantization → tfl.quantize, tfl.dequantize

The parameters are those of TensorFlow Lite's converter (`regions.ranges.simulated_type`). Source: "Quantization",
Integration with simulated quantization at training time, TFLite Native Quantization (MLIR's documentation).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from tflq.contract import Pass, PassResult
from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.parameters import SimulatesQuantization
from tflq.dialects.quant import Dcast, Qcast
from tflq.dialects.tfl.arithmetic import Dequantize, Quantize
from tflq.errors import Reason, UnsupportedError
from tflq.ir.core import Module, Op, Value, walk
from tflq.ir.types import QuantizedType
from tflq.passes.regions.ranges import is_quantizing, other_sign, simulated_type, source_of

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

        return PassResult(module, _rewrite(module, rewritten))


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

        return PassResult(module, _rewrite(module, rewritten))


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

        return PassResult(module, _rewrite(module, rewritten))


def _types(module: Module) -> _Types:
    """All fake quantizations of a module, with what they simulate. UnsupportedError names those that have no type."""
    found: _Types = {}
    reasons = []
    for op in (op for function in module.functions for op in walk(function.ops)):
        if trait_of(op, SimulatesQuantization) is None:
            continue
        try:
            found[op] = simulated_type(op)
        except ValueError as error:
            what = f"{op.name}: {error}"
            reasons.append(Reason.at(op.location, what, value=op.name, remedy="state its range in constants"))
    if reasons:
        raise UnsupportedError("fake quantizations have no quantized types", reasons)
    return found


def _refuse_others(module: Module) -> None:
    """UnsupportedError names the ops of TensorFlow that are not fake quantizations."""
    ops = (op for function in module.functions for op in walk(function.ops))
    others = [op for op in ops if op.name.startswith("tf.") and trait_of(op, SimulatesQuantization) is None]
    if not others:
        return
    what = "of TensorFlow's ops only fake quantization is known"
    remedy = "make it an operator of TFLite first, as TensorFlow Lite's converter does"
    reasons = [Reason.at(op.location, f"{op.name}: {what}", value=op.name, remedy=remedy) for op in others]
    raise UnsupportedError(what, reasons)


def _users(module: Module) -> _Users:
    """The ops that use each value, also inside of others. A result of the module has no users."""
    users: _Users = {}
    for op in (op for function in module.functions for op in walk(function.ops)):
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


def _rewrite(module: Module, rewritten: Callable[[Op], list[Op] | None]) -> bool:
    """Puts other ops in the place of ops, also inside of others. Returns whether there were any."""
    modified = False

    def of_block(ops: list[Op]) -> list[Op]:
        nonlocal modified
        made: list[Op] = []
        for op in ops:
            others = rewritten(op)
            modified |= others is not None
            made += [op] if others is None else others
        return made

    for function in module.functions:
        for block in [block for op in walk(function.ops) for region in op.regions for block in region.blocks]:
            block.ops = of_block(block.ops)
        function.ops = of_block(function.ops)
    return modified
