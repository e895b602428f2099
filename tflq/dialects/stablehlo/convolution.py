"""Convolution in its general form and products of matrices; and what they share with other reductions: an accumulator
with a type of its own, and the functions `input_conversion`, `body` and `output_conversion`.

    result = output_conversion(body(... body(input_conversion(x0), input_conversion(x1)) ...))

Which region is which follows from their order. A conversion that is left out is the identity. The source is option 1
of the proposal "StableHLO quantization for reduction ops", whose constraints are here, one rule each; the two other
options are refused by these, and say what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tflq.dialects.constraints import agree, baseline, integers, is_per_axis, is_per_tensor
from tflq.dialects.declare import Operator, Trait, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.forms import declared
from tflq.ir.ops import Block, Op, Region, Value, op_class
from tflq.ir.types import ElementType, TensorType, is_quantized
from tflq.ir.verifier import Check, constraint


class Functions(NamedTuple):
    """Functions of a reduction; a conversion that is None is the identity."""

    input_conversion: Region | None
    body: Region
    output_conversion: Region | None


class Accumulating(Operator):
    """A reduction of `inputs`, from `inits`, by `functions`."""

    @property
    def inputs(self) -> list[Value]:
        """The values that are accumulated."""
        raise NotImplementedError

    @property
    def inits(self) -> list[Value]:
        """The initial values."""
        raise NotImplementedError

    @property
    def accumulation_regions(self) -> Sequence[Region]:
        """The regions that say how to accumulate."""
        return self.regions

    @property
    def functions(self) -> Functions | None:
        """Its functions by order; None if its regions are not such."""
        return _functions(self.accumulation_regions, len(self.inputs))


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
    """The values that a region of one block returns; None if it does not end so."""
    if len(region.blocks) != 1 or not region.block.ops:
        return None
    last = region.block.ops[-1]
    return last.operands if isinstance(last, _return()) else None


def _return() -> type[Op]:
    kind: type[Op] = op_class("stablehlo.return")
    return kind


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
    ops: list[Op] = []
    for index, value in enumerate(returned):
        op = None if value is None else value.producer
        pair = [block.arguments[index], block.arguments[len(returned) + index]]
        if op is None or op not in block.ops or op in ops or len(op.operands) != 2:
            return None
        if op.operands not in (pair, pair[::-1]):
            return None
        ops.append(op)
    return ops


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


@constraint(
    "the op must have a region for the body, which takes two values for each input, and may have input_conversion "
    "before it and output_conversion after it, which take one value for each input"
)
def has_functions(op: Accumulating) -> bool:
    return op.functions is not None


@constraint("each of its regions must be a block that ends in stablehlo.return")
def of_one_block(op: Accumulating) -> bool:
    return all(results_of(region) is not None for region in op.regions)


@constraint("the init values must be 0-dimensional tensors")
def inits_are_scalars(op: Accumulating) -> bool:
    return all(value.type.shape == () for value in op.inits)


@constraint(
    "element_type(inputs...) = element_type(init_values...): the init value does not say the type of the "
    "accumulator, since values are combined in any order; write input_conversion, which makes that type of inputs "
    "and init values, and output_conversion"
)
def inits_as_inputs(op: Accumulating) -> bool:
    return _elements(op.inputs) == _elements(op.inits)


@constraint(
    "conversion functions are for quantized types only: convert plain inputs with stablehlo.convert before the "
    "op, and its results after it"
)
def plain_without_conversions(op: Accumulating) -> bool:
    functions = op.functions
    if functions is None or (functions.input_conversion is None and functions.output_conversion is None):
        return True
    return all(is_quantized(element) for element in _elements(op.inputs))


@constraint(
    "baseline_element_type(inputs...) = baseline_element_type(results...): input and result differ in scale and "
    "zero point at most"
)
def baselines(op: Accumulating) -> bool:
    return [baseline(v.type) for v in op.inputs] == [baseline(v.type) for v in op.results]


@constraint("input_conversion has type (tensor<E0>, ...) -> (tensor<E'0>, ...) where Ei = element_type(inputs[i])")
def input_conversion_type(op: Accumulating) -> bool:
    functions = op.functions
    if functions is None or functions.input_conversion is None:
        return True
    region = functions.input_conversion
    arguments_fit = _scalars(region.block.arguments, _elements(op.inputs))
    returned = results_of(region) or []
    return arguments_fit and len(returned) == len(op.inputs) and _scalars(returned, _elements(returned))


@constraint(
    "body has type (tensor<E0>, ..., tensor<E0>, ...) -> (tensor<E0>, ...) where Ei = element_type(inputs[i]), "
    "or, with an input_conversion, element_type(output_types(input_conversion)[i])"
)
def body_type(op: Accumulating) -> bool:
    functions = op.functions
    if functions is None:
        return True
    wanted = _converted(op)
    arguments_fit = _scalars(functions.body.block.arguments, [*wanted, *wanted])
    return arguments_fit and _scalars(results_of(functions.body), wanted)


@constraint(
    "output_conversion has type (tensor<E0>, ...) -> (tensor<E'0>, ...) where E'i = element_type(results[i]); "
    "without it, the results have the type that the body returns"
)
def output_conversion_type(op: Accumulating) -> bool:
    functions = op.functions
    if functions is None:
        return True
    wanted = _elements(op.results)
    if functions.output_conversion is None:
        return _converted(op) == wanted
    region = functions.output_conversion
    arguments = region.block.arguments
    return (
        len(arguments) == len(wanted)
        and _scalars(arguments, _elements(arguments))
        and _scalars(results_of(region), wanted)
    )


@constraint("element_type(output_types(input_conversion)...) = element_type(input_types(output_conversion)...)")
def conversions_meet(op: Accumulating) -> bool:
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


def rescale_region(sources: Sequence[ElementType], targets: Sequence[ElementType]) -> Region:
    """A function that returns its arguments quantized to other types, by one `uniform_quantize` each."""
    arguments, results = ([Value(TensorType((), element)) for element in side] for side in (sources, targets))
    ops = [Op("stablehlo.uniform_quantize", [a], [r]) for a, r in zip(arguments, results, strict=True)]
    return Region([Block(arguments, [*ops, Op("stablehlo.return", [*results], [])])])


# Convolution in its general form and products of matrices, also of floating-point activations and quantized weights.
#
# On quantized tensors, all three are quantized, or, as weight-only quantization has it, only the right-hand side: a
# hybrid op dequantizes it and computes in floating point. Source: the proposal "Hybrid quantized ops for weight-only
# quantization".


# What holds for both.


class Hybrid(Trait):
    """It takes a floating-point lhs and a quantized rhs, which it dequantizes."""


def is_hybrid(op: Op) -> bool:
    """Whether rhs is quantized, and lhs is not."""
    return op.operand(1).type.quantized and not op.operand(0).type.quantized


def all_quantized_or_hybrid(label: str) -> Check:
    def rule(op: Any) -> bool:
        lhs, rhs, result = op.lhs.type, op.rhs.type, op.result.type
        quantized = any(v.type.quantized for v in op.tensors)
        return not quantized or (lhs.quantized == result.quantized and rhs.quantized)

    return constraint(f"({label}) lhs and result must be both quantized or both not, and rhs must be quantized")(rule)


@constraint("lhs must not be quantized per axis")
def lhs_per_tensor(op: Any) -> bool:
    return not is_per_axis(op.lhs.type)


def one_storage_type(label: str) -> Check:
    def rule(op: Any) -> bool:
        return not op.lhs.type.quantized or op.lhs.type.storage == op.rhs.type.storage

    return constraint(f"({label}) lhs and rhs must have the same storage type")(rule)


def one_expressed_type(label: str) -> Check:
    def rule(op: Any) -> bool:
        return not op.lhs.type.quantized or len({v.type.element.expressed for v in op.tensors}) == 1

    return constraint(f"({label}) lhs, rhs and result must have the same expressed type")(rule)


def real_as_expressed(label: str) -> Check:
    def rule(op: Any) -> bool:
        element = op.rhs.type.element
        if not is_quantized(element) or op.lhs.type.quantized:
            return True
        return bool(op.lhs.type.element == element.expressed == op.result.type.element)

    return constraint(f"({label}) the element types of lhs and result must be the expressed type of rhs")(rule)


def along(type: Any, dimension: int) -> bool:
    """Whether a type that has scales along an axis has them along this one."""
    return not is_per_axis(type) or type.element.axis == dimension


class Window(NamedTuple):
    """Movement of a window over the spatial dimensions: one item for each."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    base_dilations: tuple[int, ...]
    dilations: tuple[int, ...]

    def counts(self, shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """The number of windows along each dimension of a shape."""
        rows = zip(shape, *self, strict=True)
        return tuple(None if row[0] is None else _count(*row) for row in rows)


def _count(n: int, size: int, stride: int, padding: tuple[int, int], base: int, dilation: int) -> int:
    padded = sum(padding) + ((n - 1) * base + 1 if n else 0)
    reach = (size - 1) * dilation + 1 if size else 0
    return 0 if padded <= 0 or reach > padded else (padded - reach) // stride + 1


def window(op: Op, rank: int, sizes: tuple[int, ...] | None, base: str, dilations: str) -> Window | None:
    """The window that attributes say, with the defaults of those left out; None if one does not fit the rank."""
    ones = (1,) * rank
    lists = [sizes, *(integers(op, key, ones) for key in ("window_strides", base, dilations))]
    listed = op.attributes.get("padding")
    padding = np.zeros((rank, 2), np.int64) if listed is None else np.asarray(listed)
    if any(item is None or len(item) != rank for item in lists) or padding.shape != (rank, 2):
        return None
    known, strides, base_dilations, window_dilations = (item or () for item in lists)
    pads = tuple((int(low), int(high)) for low, high in padding)
    return Window(known, strides, pads, base_dilations, window_dilations)


class ConvNumbers(NamedTuple):
    """Numbers of the dimensions: of the input (batch, feature, spatial ones), the kernel (input feature, output
    feature, spatial ones) and the output."""

    input: tuple[int, int, tuple[int, ...]]
    kernel: tuple[int, int, tuple[int, ...]]
    output: tuple[int, int, tuple[int, ...]]


_SIDES = re.compile(r"<\s*\[([^\]]*)\]\s*x\s*\[([^\]]*)\]\s*->\s*\[([^\]]*)\]\s*>")
_FIELD = re.compile(r"(\w+)\s*=\s*(?:\[([^\]]*)\]|(-?\d+))")


def _side(text: str, first: str, second: str) -> tuple[int, int, tuple[int, ...]] | None:
    """`b, 0, 1, f`: where each of them is."""
    words = text.replace(",", " ").split()
    spatial = [str(i) for i in range(len(words) - 2)]
    if sorted(words) != sorted([first, second, *spatial]):
        return None
    return words.index(first), words.index(second), tuple(words.index(name) for name in spatial)


def _raw(text: str) -> ConvNumbers | None:
    fields = {name: many or one for name, many, one in _FIELD.findall(text)}
    sides = []
    for prefix, first, second in (
        ("input", "input_batch", "input_feature"),
        ("kernel", "kernel_input_feature", "kernel_output_feature"),
        ("output", "output_batch", "output_feature"),
    ):
        try:
            spatial = tuple(
                int(word) for word in fields.get(f"{prefix}_spatial_dimensions", "").replace(",", " ").split()
            )
            sides.append((int(fields[f"{first}_dimension"]), int(fields[f"{second}_dimension"]), spatial))
        except (KeyError, ValueError):
            return None
    return ConvNumbers(*sides)


@constraint(
    "'dimension_numbers' must name every dimension of lhs, rhs and result once, with as many spatial ones of each"
)
def _numbered(op: Convolution) -> bool:
    numbers = op.numbers
    if numbers is None or len({len(side[2]) for side in numbers}) != 1:
        return False
    for value, (first, second, spatial) in zip(op.tensors, numbers, strict=True):
        named = (first, second, *spatial)
        if sorted(named) != list(range(len(named))) or value.type.rank not in (None, len(named)):
            return False
    return True


@constraint(
    "'window_strides', 'padding', 'lhs_dilation', 'rhs_dilation' and 'window_reversal' must have an item for each "
    "spatial dimension, strides and dilations from 1 up"
)
def _windowed(op: Convolution) -> bool:
    if op.rhs.type.shape is None:
        return True
    spread = op.window
    if spread is None or min((*spread.strides, *spread.base_dilations, *spread.dilations), default=1) < 1:
        return False
    reversal = integers(op, "window_reversal", (0,) * len(spread.sizes))
    return reversal is not None and len(reversal) == len(spread.sizes)


@constraint("the groups must divide the features, and one of 'feature_group_count' and 'batch_group_count' must be 1")
def _grouped(op: Convolution) -> bool:
    groups, batches = op.feature_group_count, op.batch_group_count
    if min(groups, batches) != 1 or op.numbers is None:
        return False
    left, right = op.lhs.type.shape, op.rhs.type.shape
    if left is None or right is None:
        return True
    batch, feature, _ = op.numbers.input
    inputs, outputs, _ = op.numbers.kernel
    channels, out_channels = left[feature], right[outputs]
    if out_channels is not None and out_channels % (groups * batches):
        return False
    if (left[batch] or 0) % batches or (channels or 0) % groups:
        return False
    return channels is None or right[inputs] is None or channels == (right[inputs] or 0) * groups


@constraint("the result must have the shape that the windows give")
def _sized(op: Convolution) -> bool:
    left, right, result = op.lhs.type.shape, op.rhs.type.shape, op.result.type.shape
    if left is None or right is None or result is None or op.numbers is None or op.window is None:
        return True
    batch, _, spatial = op.numbers.input
    pairs = zip(spatial, op.numbers.kernel[2], strict=True)
    counts = op.window.counts(tuple(None if right[b] is None else left[a] for a, b in pairs))
    at_batch, at_feature, at_spatial = op.numbers.output
    rows = left[batch]
    wanted: list[int | None] = [None] * len(result)
    wanted[at_batch] = None if rows is None else rows // op.batch_group_count
    wanted[at_feature] = right[op.numbers.kernel[1]]
    for place, count in zip(at_spatial, counts, strict=True):
        wanted[place] = count
    return agree(tuple(wanted), result)


@constraint("(C27) lhs and rhs must have the same element type, if none is quantized")
def _one_element_type(op: Convolution) -> bool:
    return any(v.type.quantized for v in op.tensors) or op.lhs.type.element == op.rhs.type.element


@constraint("(C29) the quantization dimension of rhs must be kernel_output_feature_dimension")
def _kernel_axis(op: Convolution) -> bool:
    return op.numbers is None or along(op.rhs.type, op.numbers.kernel[1])


@constraint("(C30) the quantization dimension of the result must be output_feature_dimension")
def _result_axis(op: Convolution) -> bool:
    return op.numbers is None or along(op.result.type, op.numbers.output[1])


@constraint("(C33) if rhs is quantized per tensor, so must be the result")
def _one_scale(op: Convolution) -> bool:
    return not op.lhs.type.quantized or not is_per_tensor(op.rhs.type) or is_per_tensor(op.result.type)


class Convolution(Operator, name="stablehlo.convolution"):
    """Dot products of windows of lhs with slices of rhs. Of a floating-point lhs and a quantized rhs, the rhs is
    dequantized. Of quantized ones, the numbers that they stand for are multiplied, and the sums are quantized."""

    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    feature_group_count: int = attribute(default=1)
    batch_group_count: int = attribute(default=1)
    constraints = (
        declared,
        _one_element_type,
        all_quantized_or_hybrid("C28"),
        _kernel_axis,
        _result_axis,
        one_storage_type("C31"),
        one_expressed_type("C32"),
        _one_scale,
        real_as_expressed("C34"),
        lhs_per_tensor,
        _numbered,
        _windowed,
        _grouped,
        _sized,
    )
    traits = (Hybrid(),)

    @property
    def numbers(self) -> ConvNumbers | None:
        """Its dimension numbers; None if the attribute says none."""
        text = str(getattr(self.attributes.get("dimension_numbers"), "text", ""))
        match = _SIDES.search(text)
        if match is None:
            return _raw(text)
        sides = [_side(match[1], "b", "f"), _side(match[2], "i", "o"), _side(match[3], "b", "f")]
        return None if None in sides else ConvNumbers(*sides)  # type: ignore[arg-type]

    @property
    def window(self) -> Window | None:
        """The window of its kernel, of known size; None if an attribute does not fit it."""
        numbers, shape = self.numbers, self.rhs.type.shape
        if numbers is None or shape is None:
            return None
        sizes = tuple(shape[i] or 0 for i in numbers.kernel[2])
        return window(self, len(sizes), sizes, "lhs_dilation", "rhs_dilation")


# dot_general: products of matrices.


_MATMUL_FIELD = re.compile(r"(\w+)\s*=\s*\[([^\]]*)\]")


class DotNumbers(NamedTuple):
    """Numbers of the dimensions of lhs and rhs that are batches, and of those that are summed over."""

    lhs_batching: tuple[int, ...]
    rhs_batching: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]

    def free(self, rank: int, *, right: bool) -> list[int]:
        """The other dimensions of a side."""
        used = (*self[right], *self[2 + right])
        return [i for i in range(rank) if i not in used]


@constraint(
    "'dot_dimension_numbers' must name dimensions of lhs and rhs, each once, as many of the one as of the other"
)
def _matmul_numbered(op: DotGeneral) -> bool:
    numbers = op.numbers
    if len(numbers.lhs_batching) != len(numbers.rhs_batching):
        return False
    if len(numbers.lhs_contracting) != len(numbers.rhs_contracting):
        return False
    for right, side in enumerate((op.lhs, op.rhs)):
        named, rank = (*numbers[right], *numbers[2 + right]), side.type.rank
        if len(set(named)) != len(named) or any(d < 0 or (rank is not None and d >= rank) for d in named):
            return False
    return True


@constraint(
    "dimensions of lhs and rhs that belong together must have the same size, and the result has the batching "
    "dimensions, the others of lhs and the others of rhs"
)
def _matmul_sized(op: DotGeneral) -> bool:
    left, right, numbers = op.lhs.type.shape, op.rhs.type.shape, op.numbers
    if left is None or right is None:
        return True
    pairs = (
        *zip(numbers.lhs_batching, numbers.rhs_batching, strict=True),
        *zip(numbers.lhs_contracting, numbers.rhs_contracting, strict=True),
    )
    if not agree(tuple(left[a] for a, _ in pairs), tuple(right[b] for _, b in pairs)):
        return False
    batches = [
        right[b] if left[a] is None else left[a]
        for a, b in zip(numbers.lhs_batching, numbers.rhs_batching, strict=True)
    ]
    rows = [left[i] for i in numbers.free(len(left), right=False)]
    return agree((*batches, *rows, *(right[i] for i in numbers.free(len(right), right=True))), op.result.type.shape)


@constraint("(C15) the zero points of rhs must be 0")
def _no_zero_points(op: DotGeneral) -> bool:
    element = op.rhs.type.element
    zero_points = getattr(element, "zero_points", getattr(element, "zero_point", 0))
    return not np.any(zero_points)


@constraint("scales of rhs must not be along a dimension that is summed over")
def _not_contracted(op: DotGeneral) -> bool:
    return not is_per_axis(op.rhs.type) or op.rhs.type.element.axis not in op.numbers.rhs_contracting  # type: ignore[union-attr]


class DotGeneral(Operator, name="stablehlo.dot_general"):
    """Sums of products over the contracting dimensions. Of a floating-point lhs and a quantized rhs, the rhs is
    dequantized. Of quantized ones, the numbers that they stand for are multiplied, and the sums are quantized."""

    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (
        declared,
        all_quantized_or_hybrid("C14"),
        _no_zero_points,
        one_storage_type("C16"),
        one_expressed_type("C17"),
        real_as_expressed("C18"),
        lhs_per_tensor,
        _matmul_numbered,
        _matmul_sized,
        _not_contracted,
    )
    traits = (Hybrid(),)

    @property
    def numbers(self) -> DotNumbers:
        """Its dimension numbers; none of any kind where the attribute says none."""
        opaque = self.attributes.get("dot_dimension_numbers")
        lists = dict(_MATMUL_FIELD.findall(str(getattr(opaque, "text", ""))))
        keys = [f"{side}_{kind}_dimensions" for kind in ("batching", "contracting") for side in ("lhs", "rhs")]
        return DotNumbers(*(tuple(map(int, lists.get(key, "").replace(",", " ").split())) for key in keys))
