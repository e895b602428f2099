"""Reductions whose accumulator has a type of its own: the functions `input_conversion`, `body` and `output_conversion`.

    result = output_conversion(body(... body(input_conversion(x0), input_conversion(x1)) ...))

Which region is which follows from their order. A conversion that is left out is the identity. The source is option 1
of the proposal "StableHLO quantization for reduction ops", whose constraints are here, one rule each; the two other
options are refused by these, and say what to write instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflq.dialects.declare import Operator
from tflq.dialects.stablehlo.rules import baseline
from tflq.ir.core import Block, Op, Region, Value, op_class
from tflq.ir.types import ElementType, TensorType, is_quantized
from tflq.ir.verifier import constraint
from tflq.light import NamedTuple


class Functions(NamedTuple):
    """What a reduction computes with; a conversion that is None is the identity."""

    input_conversion: Region | None
    body: Region
    output_conversion: Region | None


class Accumulating(Operator):
    """A reduction of `inputs`, from `inits`, by `functions`."""

    @property
    def inputs(self) -> list[Value]:
        """What is accumulated."""
        raise NotImplementedError

    @property
    def inits(self) -> list[Value]:
        """What it starts with."""
        raise NotImplementedError

    @property
    def own_regions(self) -> Sequence[Region]:
        """The regions that say how to accumulate."""
        return self.regions

    @property
    def functions(self) -> Functions | None:
        """Its functions by order; None if its regions are not such."""
        return _functions(self.own_regions, len(self.inputs))


def _functions(regions: Sequence[Region], count: int) -> Functions | None:
    if len(regions) == 1:
        return Functions(None, regions[0], None)
    if len(regions) == 3:
        return Functions(*regions)
    if len(regions) != 2 or any(len(region.blocks) != 1 for region in regions):
        return None
    bodies = [len(region.block.arguments) == 2 * count for region in regions]
    if bodies == [True, False]:
        return Functions(None, regions[0], regions[1])
    return Functions(regions[0], regions[1], None) if bodies == [False, True] else None


def results_of(region: Region) -> list[Value | None] | None:
    """What a region of one block returns; None if it does not end so."""
    if len(region.blocks) != 1 or not region.block.ops:
        return None
    last = region.block.ops[-1]
    return last.operands if isinstance(last, _return()) else None


def _return() -> type[Op]:
    found: type[Op] = op_class("stablehlo.return")
    return found


def single_op(region: Region) -> Op | None:
    """The op of a region that does nothing but it, on its arguments in order; None for any other."""
    returned = results_of(region)
    block = region.blocks[0]
    if returned is None or len(block.ops) != 2:
        return None
    op = block.ops[0]
    alone = op.operands == block.arguments and op.results == returned and not op.regions
    return op if alone else None


def combiners(body: Region) -> list[Op] | None:
    """The op that combines each pair of values, of a body that does nothing but combine them pair by pair; None for any
    other."""
    returned = results_of(body)
    block = body.blocks[0]
    if returned is None or len(block.ops) != len(returned) + 1 or len(block.arguments) != 2 * len(returned):
        return None
    found: list[Op] = []
    for index, value in enumerate(returned):
        op = None if value is None else value.producer
        pair = [block.arguments[index], block.arguments[len(returned) + index]]
        if op is None or op not in block.ops or op in found or len(op.operands) != 2:
            return None
        if op.operands not in (pair, pair[::-1]):
            return None
        found.append(op)
    return found


def _scalars(values: Any, elements: Sequence[ElementType]) -> bool:
    """Whether values are scalar tensors of these elements."""
    return [None if v is None else v.type for v in values] == [TensorType((), e) for e in elements]


def _elements(values: Sequence[Value | None]) -> list[Any]:
    return [None if v is None else v.type.element for v in values]


def _converted(op: Accumulating) -> list[Any]:
    """The types of what the body accumulates."""
    functions = op.functions
    assert functions is not None
    if functions.input_conversion is None:
        return _elements(op.inputs)
    return _elements(results_of(functions.input_conversion) or [])


@constraint
def has_functions(op: Accumulating) -> bool:
    """the op must have a region for the body, which takes two values for each input, and may have input_conversion
    before it and output_conversion after it, which take one value for each input"""
    return op.functions is not None


@constraint
def of_one_block(op: Accumulating) -> bool:
    """each of its regions must be a block that ends in stablehlo.return"""
    return all(results_of(region) is not None for region in op.regions)


@constraint
def inits_are_scalars(op: Accumulating) -> bool:
    """the init values must be 0-dimensional tensors"""
    return all(value.type.shape == () for value in op.inits)


@constraint
def inits_as_inputs(op: Accumulating) -> bool:
    """element_type(inputs...) = element_type(init_values...): the init value does not say the type of the accumulator,
    since values are combined in any order; write input_conversion, which makes that type of inputs and init values, and
    output_conversion"""
    return _elements(op.inputs) == _elements(op.inits)


@constraint
def plain_without_conversions(op: Accumulating) -> bool:
    """conversion functions are for quantized types only: convert plain inputs with stablehlo.convert before the op, and
    its results after it"""
    functions = op.functions
    if functions is None or (functions.input_conversion is None and functions.output_conversion is None):
        return True
    return all(is_quantized(element) for element in _elements(op.inputs))


@constraint
def baselines(op: Accumulating) -> bool:
    """baseline_element_type(inputs...) = baseline_element_type(results...): input and result differ in scale and zero
    point at most"""
    return [baseline(v.type) for v in op.inputs] == [baseline(v.type) for v in op.results]


@constraint
def input_conversion_type(op: Accumulating) -> bool:
    """input_conversion has type (tensor<E0>, ...) -> (tensor<E'0>, ...) where Ei = element_type(inputs[i])"""
    functions = op.functions
    if functions is None or functions.input_conversion is None:
        return True
    region = functions.input_conversion
    given = _scalars(region.block.arguments, _elements(op.inputs))
    returned = results_of(region) or []
    return given and len(returned) == len(op.inputs) and _scalars(returned, _elements(returned))


@constraint
def body_type(op: Accumulating) -> bool:
    """body has type (tensor<E0>, ..., tensor<E0>, ...) -> (tensor<E0>, ...) where Ei = element_type(inputs[i]), or,
    with an input_conversion, element_type(output_types(input_conversion)[i])"""
    functions = op.functions
    if functions is None:
        return True
    wanted = _converted(op)
    given = _scalars(functions.body.block.arguments, [*wanted, *wanted])
    return given and _scalars(results_of(functions.body), wanted)


@constraint
def output_conversion_type(op: Accumulating) -> bool:
    """output_conversion has type (tensor<E0>, ...) -> (tensor<E'0>, ...) where E'i = element_type(results[i]); without
    it, the results have the type that the body returns"""
    functions = op.functions
    if functions is None:
        return True
    wanted = _elements(op.results)
    if functions.output_conversion is None:
        return _converted(op) == wanted
    region = functions.output_conversion
    given = region.block.arguments
    return len(given) == len(wanted) and _scalars(given, _elements(given)) and _scalars(results_of(region), wanted)


@constraint
def conversions_meet(op: Accumulating) -> bool:
    """element_type(output_types(input_conversion)...) = element_type(input_types(output_conversion)...)"""
    functions = op.functions
    if functions is None or functions.output_conversion is None:
        return True
    return _converted(op) == _elements(functions.output_conversion.block.arguments)


ACCUMULATION = (
    has_functions,
    of_one_block,
    inits_are_scalars,
    inits_as_inputs,
    plain_without_conversions,
    baselines,
    input_conversion_type,
    body_type,
    conversions_meet,
    output_conversion_type,
)
"""The constraints of every op that accumulates, in order."""


def identity_region(elements: Sequence[ElementType]) -> Region:
    """A function that returns its arguments."""
    arguments = [Value(TensorType((), element)) for element in elements]
    return Region([Block(arguments, [Op("stablehlo.return", [*arguments], [])])])


def rescale_region(given: Sequence[ElementType], made: Sequence[ElementType]) -> Region:
    """A function that returns its arguments quantized to other types, by one `uniform_quantize` each."""
    arguments, results = ([Value(TensorType((), element)) for element in side] for side in (given, made))
    ops = [Op("stablehlo.uniform_quantize", [a], [r]) for a, r in zip(arguments, results, strict=True)]
    return Region([Block(arguments, [*ops, Op("stablehlo.return", [*results], [])])])
