"""Logical kernels: ops of high precision in a region, and the quantized types of its ports beside it.

Source: "A Proposal for Implementing Quantization Transformations in MLIR", Quantization region.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflq.dialects.declare import Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.traits.effects import Atomic, Impure
from tflq.ir.core import Op, Value, walk
from tflq.ir.op_checks import constraint
from tflq.ir.print_types import type_text
from tflq.ir.quant_constraints import axis_problem, one_operand_and_result
from tflq.ir.types import (
    QUANTIZED_TYPES,
    AnyQuantizedType,
    BareType,
    CalibratedQuantizedType,
    ElementType,
    NoQuantizedType,
    ScalarType,
    TensorType,
)

__all__ = ["SPECS", "Region", "Rescale", "Return"]

SPECS = (*QUANTIZED_TYPES, AnyQuantizedType, CalibratedQuantizedType, NoQuantizedType)
"""The constraints on a port, but for the plain type, which is none."""


@constraint
def _operands_there(op: Op) -> bool:
    """no operand must be left out"""
    return None not in op.operands


@constraint
def _high_precision(op: Op) -> bool:
    """operands and results must be of plain types: the specs say how they are quantized"""
    return all(isinstance(value.type.element, ScalarType) for value in op.tensors)


@constraint
def _kernel(op: Op) -> bool:
    """kernel must be a string that is not empty: with the specs it is the key of the target's constraints"""
    name = op.attributes.get("kernel")
    return isinstance(name, str) and bool(name)


@constraint
def _specs(op: Op) -> bool:
    """input_specs and output_specs must be lists of types, one for each operand and each result"""
    sides = ((op.attributes.get("input_specs"), op.operands), (op.attributes.get("output_specs"), op.results))
    return all(isinstance(specs, (list, tuple)) and len(specs) == len(values) for specs, values in sides)


def _ports(op: Op) -> list[tuple[str, Any, Value]]:
    sides = (("input", "input_specs", op.operands), ("output", "output_specs", op.results))
    return [
        (f"{side} {position}", spec, value)
        for side, key, values in sides
        for position, (spec, value) in enumerate(zip(op.attributes[key], values, strict=True))
        if value is not None
    ]


def _specs_express(op: Op) -> str | None:
    """a spec must be a quantized type that expresses the port's element type, or that plain type"""
    for port, spec, value in _ports(op):
        element = value.type.element
        if spec == element and isinstance(spec, ScalarType):
            continue
        if not isinstance(spec, (*SPECS, ScalarType)):
            return f"the spec of {port} must be a type"
        if isinstance(spec, ScalarType) or spec.expressed != element:
            shown, wanted = type_text(BareType.of(spec)), type_text(BareType.of(element))
            return f"the spec of {port} must be {wanted} or a quantized type that expresses it, not {shown}"
        if (reason := axis_problem(TensorType(value.type.shape, spec))) is not None:
            return f"the spec of {port}: {reason}"
    return None


@constraint
def _one_block(op: Op) -> bool:
    """there must be one region of one block"""
    return len(op.regions) == 1 and len(op.regions[0].blocks) == 1


@constraint
def _arguments(op: Op) -> bool:
    """the block's arguments must be the operands: as many, of the same types"""
    return _types(op.regions[0].block.arguments) == _types(op.operands)


@constraint
def _ends(op: Op) -> bool:
    """the block must end with quant.return, which stands nowhere else in it"""
    ops = op.regions[0].block.ops
    return bool(ops) and [isinstance(inner, Return) for inner in ops] == [False] * (len(ops) - 1) + [True]


@constraint
def _returned(op: Op) -> bool:
    """the values of quant.return must be the results: as many, of the same types"""
    return _types(op.regions[0].block.ops[-1].operands) == _types(op.results)


def _imported(op: Op) -> str | None:
    """the values that the enclosed ops use must be operands"""
    block = op.regions[0].block
    known = set(block.arguments)
    for inner in walk(block.ops):
        known.update(inner.results)
        known.update(value for region in inner.regions for b in region.blocks for value in b.arguments)
    for inner in walk(block.ops):
        for value in inner.operands:
            if value is not None and value not in known and value.buffer is None:
                return f"'{inner.name}' inside of it uses a value that is no operand: {value.label}"
    return None


def _types(values: Sequence[Value | None]) -> list[TensorType | None]:
    return [None if value is None else value.type for value in values]


class Region(Operator, name="quant.region"):
    """A logical kernel: results = what the ops inside return of the operands, which are the block's arguments.

    The specs are the constraints on its ports, one for each operand and result: a quantized type, or the plain element
    type for none. Constraints on values inside are kept, and no pass considers them but `quant-materialize`.
    """

    __slots__ = ()
    inputs: list[Value] = operand(variadic=True)
    outputs: list[Value] = result_(variadic=True)
    input_specs: list[ElementType] = attribute()
    output_specs: list[ElementType] = attribute()
    kernel: str = attribute()
    traits = (Atomic(),)
    constraints = (
        *(_operands_there, _high_precision, _kernel, _specs, _specs_express),
        *(_one_block, _arguments, _ends, _returned, _imported),
    )


class Return(Operator, name="quant.return"):
    """Ends a `quant.region`, whose results are its operands."""

    __slots__ = ()
    values: list[Value] = operand(variadic=True)
    traits = (Impure(),)


@constraint
def _same_plain_type(op: Op) -> bool:
    """the operand and the result must be of the same floating-point type"""
    element = op.operand(0).type.element
    return op.operand(0).type == op.result.type and isinstance(element, ScalarType) and element.is_float


def _from_and_to(op: Op) -> str | None:
    """from and to must be quantized types that express the operand's type"""
    type = op.operand(0).type
    for key in ("from", "to"):
        spec = op.attributes.get(key)
        if not isinstance(spec, QUANTIZED_TYPES) or spec.expressed != type.element:
            return f"'{key}' must be a !quant.uniform type that expresses the operand's type"
        if (reason := axis_problem(TensorType(type.shape, spec))) is not None:
            return f"'{key}': {reason}"
    return None


class Rescale(Operator, name="quant.rescale"):
    """result = input, which one kernel has with the parameters `from` and another takes with those of `to`."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result_()
    source: ElementType = attribute(key="from")
    target: ElementType = attribute(key="to")
    constraints = (one_operand_and_result, _same_plain_type, _from_and_to)
