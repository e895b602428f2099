"""Inputs and outputs as stored integers, instead of reals with a cast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from tflq.base.errors import OptionError, Reason
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.dialects.traits import ReadsShapes
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.rewriting import remove_unneeded, replace_values
from tflq.ir.types import ElementType, QuantizedType, ScalarType, i8, i16, is_float, is_quantized, ui8
from tflq.tools.quantize.regions.ranges import other_sign

Edges = Literal["float", "int8", "uint8", "int16"]
STORAGES: Final = {"int8": i8, "uint8": ui8, "int16": i16}
EDGES: Final = ("float", *STORAGES)


def store_edges(module: Module, functions: Sequence[Function], edges: Edges) -> None:
    """Gives the float inputs and outputs of functions the parameters of the casts behind and before them, and drops
    these. Of the other sign than the network's numbers, they have a cast between the two signs. An input that float
    operators read, too, is dequantized for them.

    OptionError names an input of which nothing is quantized, an output that a float operator makes, or one whose
    numbers have another width.
    """
    for function in functions if edges != "float" else ():
        for value in list(function.inputs):
            if is_float(value.type.element):
                _store_input(module, function, value, STORAGES[edges])
        for place, value in enumerate(list(function.outputs)):
            if is_float(value.type.element):
                _store_output(module, function, place, STORAGES[edges])
    remove_unneeded(module, lambda op: isinstance(op, (Quantize, Dequantize)))


def _store_input(module: Module, function: Function, value: Value, storage: ScalarType) -> None:
    users = function.users().get(value, [])
    kinds = {op.result.type.element for op in users if isinstance(op, Quantize)}
    if not users:
        return
    if value in function.outputs:
        raise _stays("input", value, "it is an output, too")
    if len(kinds) != 1:
        raise _stays("input", value, "it has several parameters" if kinds else "only float operators read it")
    kind = _on(kinds.pop(), storage, "input", value)
    if not all(_reads_no_floats(op) for op in users):
        _dequantize(function, value)
    value.type = value.type.with_element(kind)
    replacements = {op.result: value for op in users if op.result.type.element == kind}
    replace_values(module, function, replacements)


def _reads_no_floats(op: Op) -> bool:
    return isinstance(op, Quantize) or op.matches(ReadsShapes)


def _dequantize(function: Function, value: Value) -> None:
    """Puts a DEQUANTIZE behind an input for the operators that read floats."""
    real = Value(value.type)
    for op in function.ops:
        if not _reads_no_floats(op):
            op.operands = [real if operand is value else operand for operand in op.operands]
    function.ops.insert(0, Op(Dequantize.op_name, [value], [real]))


def _store_output(module: Module, function: Function, place: int, storage: ScalarType) -> None:
    value = function.outputs[place]
    if not isinstance(cast := value.producer, Dequantize):
        raise _stays("output", value, "a float operator makes it")
    stored = cast.input
    kind = _on(stored.type.element, storage, "output", value)
    result = stored
    if kind != stored.type.element or stored in function.inputs or stored in function.outputs or stored.is_constant:
        result = Value(stored.type.with_element(kind))
        at = function.ops.index(cast)
        function.ops.insert(at + 1, Op(Quantize.op_name, [stored], [result], {}, cast.location))
    result.name, value.name = value.name, ""
    function.outputs[place] = result
    module.signatures = module.signatures and [s.with_outputs({value: result}) for s in module.signatures]


def _on(kind: ElementType, storage: ScalarType, what: str, value: Value) -> QuantizedType:
    """The parameters on a storage of the same width."""
    assert is_quantized(kind)
    if kind.storage == storage:
        return kind
    other = other_sign(kind)
    if other.storage != storage:
        raise _stays(what, value, f"its numbers are of {kind.storage.bits} bits")
    return other


def _stays(what: str, value: Value, why: str) -> OptionError:
    text = f"{what} '{value.name}' cannot be stored as integers: {why}"
    return OptionError(Reason(text, tensor=value.name, remedy="leave it as it is: --io float"))
