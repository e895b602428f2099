"""Quantization in text before it is carried out: logical kernels, statistics of values, and the fake quantizations
of the `tf` dialect. A logical kernel is a region with ops of high precision and the quantized types of its ports.

Sources: "A Proposal for Implementing Quantization Transformations in MLIR", Quantization region; "Instrumentation and
constraint ops" of MLIR's documentation of quantization.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from tflq.dialects.declare import BOOL, INT, NUMBER, Operator, Trait, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.forms import declared
from tflq.dialects.parameters import SimulatesQuantization
from tflq.dialects.traits import Annotates, Atomic, Impure, SameShape
from tflq.ir.facts import walk
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value
from tflq.ir.text.print_types import type_text
from tflq.ir.types import (
    QUANTIZED_TYPES,
    AnyQuantizedType,
    BareType,
    CalibratedQuantizedType,
    ElementType,
    NoQuantizedType,
    ScalarType,
    TensorType,
    f32,
    is_float,
)
from tflq.ir.verifier import Check, axis_problem, constraint, one_operand_and_result

SPECS = (*QUANTIZED_TYPES, AnyQuantizedType, CalibratedQuantizedType, NoQuantizedType)
"""The constraints on a port; a plain type says that there is none."""


@constraint("no operand must be left out")
def _operands_there(op: Op) -> bool:
    return None not in op.operands


@constraint("operands and results must be of plain types: the specs say how they are quantized")
def _high_precision(op: Op) -> bool:
    return all(isinstance(value.type.element, ScalarType) for value in op.tensors)


@constraint("kernel must be a string that is not empty: with the specs it is the key of the target's constraints")
def _kernel(op: Op) -> bool:
    name = op.attributes.get("kernel")
    return isinstance(name, str) and bool(name)


@constraint("input_specs and output_specs must be lists of types, one for each operand and each result")
def _specs(op: Op) -> bool:
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


@constraint("there must be one region of one block")
def _one_block(op: Op) -> bool:
    return len(op.regions) == 1 and len(op.regions[0].blocks) == 1


@constraint("the block's arguments must be the operands: as many, of the same types")
def _arguments(op: Op) -> bool:
    return _types(op.regions[0].block.arguments) == _types(op.operands)


@constraint("the block must end with quant.return, which stands nowhere else in it")
def _ends(op: Op) -> bool:
    ops = op.regions[0].block.ops
    return bool(ops) and [isinstance(inner, Return) for inner in ops] == [False] * (len(ops) - 1) + [True]


@constraint("the values of quant.return must be the results: as many, of the same types")
def _returned(op: Op) -> bool:
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
                return f"'{inner.name}' inside of it uses a value that is not an operand: {value.label}"
    return None


def _types(values: Sequence[Value | None]) -> list[TensorType | None]:
    return [None if value is None else value.type for value in values]


_ORIGINS = "tflq.origins"


class Region(Operator, name="quant.region"):
    """A logical kernel: results = what the ops inside return of the operands, which are the block's arguments.

    The specs are the constraints on its ports, one for each operand and result: a quantized type, or the plain element
    type for none. Constraints on values inside are kept; only the pass `quant-materialize` considers them.
    """

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

    @property
    def origins(self) -> list[str]:
        """Where the parameters of each port come from, inputs first, as passes note it; empty if none has."""
        noted = self.attributes.get(_ORIGINS)
        return [str(origin) for origin in noted] if isinstance(noted, (list, tuple)) else []

    @origins.setter
    def origins(self, origins: Sequence[str]) -> None:
        self.attributes[_ORIGINS] = list(origins)

    @origins.deleter
    def origins(self) -> None:
        self.attributes.pop(_ORIGINS, None)


def _ends_region(_op: Return, _: Module, parent: str) -> str | None:
    return None if parent == Region.op_name else f"it ends a block of {Region.op_name} and stands nowhere else"


class Return(Operator, name="quant.return"):
    """Ends a `quant.region`, whose results are its operands."""

    values: list[Value] = operand(variadic=True)
    traits = (Impure(),)
    module_constraints = (_ends_region,)


@constraint("the operand and the result must be of the same floating-point type")
def _same_plain_type(op: Op) -> bool:
    return op.operand(0).type == op.result.type and is_float(op.result.type.element)


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

    input: Value = operand()
    output: Value = result_()
    source: ElementType = attribute(key="from")
    target: ElementType = attribute(key="to")
    constraints = (one_operand_and_result, _same_plain_type, _from_and_to)


# Statistics of values, and points that are known by a key. The result of each op is its operand.


_BITS = range(2, 17)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_pairs(value: Any, rank: int) -> bool:
    """Whether an attribute is an array of floats of this rank, the last dim a minimum and a maximum."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim == rank and value.shape[-1:] == (2,)


def _ordered(value: Any) -> bool:
    """Whether every minimum is at most its maximum, and all are numbers."""
    pairs = np.asarray(value)
    return bool((pairs[..., 0] <= pairs[..., 1]).all())


@constraint("the operand and the result must be of the same type")
def _same_type(op: Op) -> bool:
    return op.operand(0).type == op.result.type


@constraint("the operand must be a tensor of reals: of a floating-point or a quantized type")
def _real(op: Op) -> bool:
    element = op.operand(0).type.element
    return not isinstance(element, ScalarType) or element.is_float


@constraint("min and max must be numbers")
def _has_range(op: Op) -> bool:
    return _is_number(op.attributes.get("min")) and _is_number(op.attributes.get("max"))


@constraint("min must be below max")
def _range_ordered(op: ConstFakeQuant | FakeQuantWithMinMaxArgs) -> bool:
    return op.min < op.max


@constraint("min and max must be lists of numbers, one for each index of the axis")
def _has_ranges(op: Op) -> bool:
    low, high = op.attributes.get("min"), op.attributes.get("max")
    lists = all(isinstance(side, (list, tuple, np.ndarray)) and all(map(_is_number, side)) for side in (low, high))
    return lists and len(low) == len(high) > 0  # type: ignore[arg-type]


@constraint("each min must be below its max")
def _ranges_ordered(op: Op) -> bool:
    return all(low < high for low, high in zip(op.attributes["min"], op.attributes["max"], strict=True))


@constraint("there must be one min and one max for each index of the axis, which must be an axis of the tensor")
def _ranges_of_axis(op: Op) -> bool:
    return _fits_axis(op, len(op.attributes["min"]))


@constraint("num_bits must be an integer from 2 to 16")
def _bits(op: Op) -> bool:
    bits = op.attributes.get("num_bits")
    return isinstance(bits, int) and not isinstance(bits, bool) and bits in _BITS


@constraint("narrow_range and is_signed must be true or false")
def _flags(op: Op) -> bool:
    return all(isinstance(op.attributes.get(key, False), bool) for key in ("narrow_range", "is_signed"))


@constraint("layerStats must be a minimum and a maximum: floats of shape 2")
def _has_layer_stats(op: Op) -> bool:
    return _is_pairs(op.attributes.get("layerStats"), 1)


@constraint("the minimum in layerStats must not be above the maximum")
def _layer_ordered(op: Op) -> bool:
    return _ordered(op.attributes["layerStats"])


@constraint("axisStats and axis must be given together")
def _axis_together(op: Op) -> bool:
    return ("axisStats" in op.attributes) == ("axis" in op.attributes)


@constraint("axisStats must be a minimum and a maximum for each index of the axis: floats of shape Nx2")
def _axis_pairs(op: Op) -> bool:
    return "axisStats" not in op.attributes or _is_pairs(op.attributes["axisStats"], 2)


@constraint("no minimum in axisStats must be above its maximum")
def _axis_ordered(op: Op) -> bool:
    return "axisStats" not in op.attributes or _ordered(op.attributes["axisStats"])


@constraint("axis must be an axis of the tensor, and axisStats have one pair for each index of it")
def _axis_size(op: Op) -> bool:
    return "axisStats" not in op.attributes or _fits_axis(op, len(op.attributes["axisStats"]))


@constraint("statsKey must be a string that is not empty")
def _stats_key(op: Op) -> bool:
    return _is_key(op.attributes.get("statsKey"))


@constraint("coupledKey must be a string that is not empty")
def _coupled_key(op: Op) -> bool:
    return _is_key(op.attributes.get("coupledKey"))


def _is_key(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _fits_axis(op: Op, count: int) -> bool:
    """Whether the attribute `axis` is an axis of the operand, of this size."""
    axis, shape = op.attributes.get("axis"), op.operand(0).type.shape
    if not isinstance(axis, int) or isinstance(axis, bool) or axis < 0:
        return False
    return shape is None or (axis < len(shape) and shape[axis] in (None, count))


class ConstFakeQuant(Operator, name="quant.const_fake_quant"):
    """result = inputs, quantized to `num_bits` over [min, max] and dequantized again, as TensorFlow's
    fake_quant_with_min_max_args does.

    narrow_range: without the lowest integer. is_signed: stored as signed integers.
    """

    inputs: Value = operand()
    outputs: Value = result_()
    min: float = attribute()
    max: float = attribute()
    num_bits: int = attribute()
    narrow_range: bool = attribute(default=False)
    is_signed: bool = attribute(default=False)
    traits = (SimulatesQuantization(inputs, min, max, signed=is_signed),)
    constraints = (one_operand_and_result, _same_type, _real, _has_range, _range_ordered, _bits, _flags)


class ConstFakeQuantPerAxis(Operator, name="quant.const_fake_quant_per_axis"):
    """`quant.const_fake_quant` with a range for each index of an axis."""

    inputs: Value = operand()
    outputs: Value = result_()
    min: list[float] = attribute()
    max: list[float] = attribute()
    axis: int = attribute()
    num_bits: int = attribute()
    narrow_range: bool = attribute(default=False)
    is_signed: bool = attribute(default=False)
    traits = (SimulatesQuantization(inputs, min, max, axis=axis, signed=is_signed),)
    constraints = (
        *(one_operand_and_result, _same_type, _real, _has_ranges, _ranges_ordered, _ranges_of_axis, _bits, _flags),
    )


class Stats(Operator, name="quant.stats"):
    """result = arg, whose minimum and maximum were seen to be `layerStats`, and along `axis` `axisStats`."""

    arg: Value = operand()
    result: Value = result_()
    layer_stats: np.ndarray = attribute(key="layerStats")
    axis_stats: np.ndarray | None = attribute(default=None, key="axisStats")
    axis: int | None = attribute(default=None)
    traits = (Annotates(), SameShape(arg, result))
    constraints = (
        *(one_operand_and_result, _same_type, _real, _has_layer_stats, _layer_ordered),
        *(_axis_together, _axis_pairs, _axis_ordered, _axis_size),
    )


def _unique_key(op: StatsRef, module: Module, _: str) -> str | None:
    """The key of a point is unique."""
    alike = (o for f in module.functions for o in walk(f.ops) if isinstance(o, StatsRef))
    if next(o for o in alike if o.stats_key == op.stats_key) is op:
        return None
    return f"there is another point with the key '{op.stats_key}'"


class StatsRef(Operator, name="quant.stats_ref"):
    """result = arg; statistics are to be gathered here, under a key that no other point has."""

    arg: Value = operand()
    result: Value = result_()
    stats_key: str = attribute(key="statsKey")
    traits = (Annotates(), Impure(), SameShape(arg, result))
    constraints = (one_operand_and_result, _same_type, _real, _stats_key)
    module_constraints = (_unique_key,)


class CoupledRef(Operator, name="quant.coupled_ref"):
    """result = arg; all points of one key have one quantized type."""

    arg: Value = operand()
    result: Value = result_()
    coupled_key: str = attribute(key="coupledKey")
    traits = (Annotates(), Impure(), SameShape(arg, result))
    constraints = (one_operand_and_result, _same_type, _real, _coupled_key)


# The `tf` dialect, that of TensorFlow's graphs. Constants (`tf.Const`) are values, as in every dialect.


@constraint("num_bits must be an integer from 2 to 16")
def _declared_bits(op: FakeQuantWithMinMaxArgs) -> bool:
    return 2 <= op.num_bits <= 16


@constraint("inputs and outputs must be of one shape")
def _alike(op: Op) -> bool:
    source, result = op.operand(0).type.shape, op.result.type.shape
    return source is None or result is None or source == result


@constraint("min and max must be scalars")
def _one_range(op: Op) -> bool:
    return all(op.operand(place).type.shape in (None, ()) for place in (1, 2))


@constraint("min and max must have one number for each index of the last dim of the inputs")
def _ranges_of_channels(op: Op) -> bool:
    shape = op.operand(0).type.shape
    if shape == ():
        return False
    bounds = [op.operand(place).type.shape for place in (1, 2)]
    count = None if shape is None else shape[-1]
    return all(b is None or (len(b) == 1 and (count is None or b[0] in (None, count))) for b in bounds)


class FakeQuantWithMinMaxArgs(Operator, name="tf.FakeQuantWithMinMaxArgs"):
    """outputs = inputs, quantized to `num_bits` between min and max and dequantized again. narrow_range: without the
    lowest integer.
    """

    inputs: Value = operand(f32)
    outputs: Value = result_(f32)
    min: float = attribute(NUMBER, default=-6.0)
    max: float = attribute(NUMBER, default=6.0)
    num_bits: int = attribute(INT, default=8)
    narrow_range: bool = attribute(BOOL, default=False)
    traits = (SimulatesQuantization(inputs, min, max), SameShape(inputs, outputs))
    constraints = (declared, _alike, _declared_bits, _range_ordered)


class _WithVars(Operator):
    """Of a range that is computed."""

    inputs: Value = operand(f32)
    min: Value = operand(f32)
    max: Value = operand(f32)
    outputs: Value = result_(f32)
    num_bits: int = attribute(INT, default=8)
    narrow_range: bool = attribute(BOOL, default=False)
    traits: ClassVar[tuple[Trait, ...]] = (SameShape(inputs, outputs),)
    constraints: ClassVar[tuple[Check, ...]] = (declared, _alike, _declared_bits)


class FakeQuantWithMinMaxVars(_WithVars, name="tf.FakeQuantWithMinMaxVars"):
    """`tf.FakeQuantWithMinMaxArgs` with a range that is computed."""

    traits = (SimulatesQuantization(_WithVars.inputs, _WithVars.min, _WithVars.max), *_WithVars.traits)
    constraints = (*_WithVars.constraints, _one_range)


class FakeQuantWithMinMaxVarsPerChannel(_WithVars, name="tf.FakeQuantWithMinMaxVarsPerChannel"):
    """`tf.FakeQuantWithMinMaxVars` with a range for each index of the last dim."""

    traits = (SimulatesQuantization(_WithVars.inputs, _WithVars.min, _WithVars.max, axis=-1), *_WithVars.traits)
    constraints = (*_WithVars.constraints, _ranges_of_channels)
