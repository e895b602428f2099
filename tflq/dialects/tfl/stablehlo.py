"""StableHLO's operators in TFLite files. Semantics are the kernels'; source: kernels/stablehlo_*.cc."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, ClassVar, Final

import numpy as np

from tflq.dialects.declare import Operator, Trait, attribute, operand, result
from tflq.dialects.inference import (
    DeclaredShapes,
    Dims,
    Misfit,
    NotInferred,
    agree,
    divided,
    fitting,
    padded,
    permuted,
    places,
    product,
    reduced,
    reshaped,
)
from tflq.dialects.parameters import FloatKernel, LacksKernel, Misreads, NeverRuns, Unbounded
from tflq.dialects.tfl.state import CALLS, Many
from tflq.dialects.traits import Calls, Elementwise, Impure, OneElement, SameShape, Unquantized
from tflq.ir.ops import Value
from tflq.ir.types import Shape, i8, i16, i32, ui8


def _numbers(op: Operator, name: str, count: int | None = None, default: int | None = None) -> list[int]:
    """The numbers of an option, which must be `count`, each within int32; without any, `default` each."""
    option = getattr(op, name)
    numbers = [] if option is None else [int(v) for v in option]
    if large := [v for v in numbers if not i32.minimum <= v <= i32.maximum]:
        raise Misfit(f"its {name} hold {large[0]}, and dims are counted in int32")
    if not numbers and default is not None:
        numbers = [default] * (count or 0)
    if count is not None and len(numbers) != count:
        raise Misfit(f"its {name} are {len(numbers)}, where {count} are expected")
    return numbers


def _axes(op: Operator, rank: int, *names: str) -> list[int]:
    """Dims that options name, none of them twice."""
    axes = [axis for name in names for axis in _numbers(op, name)]
    if not {*axes} <= {*range(rank)} or len({*axes}) != len(axes):
        raise Misfit(f"its {' and '.join(names)} {axes} are not different dims of a rank of {rank}")
    return axes


def _pairs(op: Operator, kind: str) -> list[tuple[int, int]]:
    """Dims of both sides that belong together."""
    sides = [_numbers(op, f"{side}_{kind}_dimensions") for side in ("lhs", "rhs")]
    if len(sides[0]) != len(sides[1]):
        raise Misfit(f"its {kind} dims are {len(sides[0])} on the left, {len(sides[1])} on the right")
    return list(zip(*sides, strict=True))


def _layout(op: Operator, rank: int, outer: tuple[str, str], spatial: str) -> list[int]:
    """Where a tensor has its two outer dims and its spatial ones, which are all of them."""
    places = [*(int(getattr(op, name)) for name in outer), *_numbers(op, spatial, rank - 2)]
    if sorted(places) != list(range(rank)):
        raise Misfit(f"its {', '.join((*outer, spatial))} {places} are not the dims of a rank of {rank}")
    return places


def _steps(op: Operator, count: int, *names: str) -> list[list[int]]:
    """Options of positive numbers, one for each dim; without any, 1 each."""
    steps = [_numbers(op, name, count, 1) for name in names]
    for name, numbers in zip(names, steps, strict=True):
        if min(numbers, default=1) < 1:
            raise Misfit(f"its {name} {numbers} are not positive")
    return steps


def _spread(dims: Sequence[int | None], dilations: Sequence[int], padding: Sequence[int]) -> Dims:
    """Dims dilated, and padded before and after each; no tensor on the way has a dim that int32 does not hold."""
    low, high, between = padding[::2], padding[1::2], [step - 1 for step in dilations]
    around = padded(dims, np.maximum(low, 0).tolist(), np.maximum(high, 0).tolist(), between)
    if large := [d for d in around if d is not None and d > i32.maximum]:
        raise Misfit(f"with its padding it has a dim of {large[0]}, and dims are counted in int32")
    return padded(dims, low, high, between)


def _with_dims(site: DeclaredShapes, *values: Value) -> list[Value]:
    """The values that are not scalars."""
    return [value for value in values if site.dims(value)]


class StablehloUnary(Operator):
    """Of one tensor, element by element."""

    input: Value = operand()
    output: Value = result()
    traits: ClassVar[tuple[Trait, ...]] = (Elementwise(input, output, strict=False),)


class StablehloBinary(Operator):
    """Of two tensors, element by element."""

    lhs: Value = operand()
    rhs: Value = operand()
    output: Value = result()
    traits: ClassVar[tuple[Trait, ...]] = (Elementwise(lhs, rhs, output, strict=False),)


class StablehloAbs(StablehloUnary, name="tfl.stablehlo_abs"):
    """The absolute value."""


class StablehloAdd(StablehloBinary, name="tfl.stablehlo_add"):
    """lhs + rhs."""

    traits = (Misreads("result type"), FloatKernel(), *StablehloBinary.traits)


class StablehloAnd(StablehloBinary, name="tfl.stablehlo_and"):
    """Bits or truth values that both have."""

    traits = (Misreads("result type"), *StablehloBinary.traits)


class StablehloBroadcastInDim(Operator, name="tfl.stablehlo_broadcast_in_dim"):
    """The operand in a larger shape, its dims in given places."""

    input: Value = operand()
    output: Value = result()
    broadcast_dimensions: Any = attribute(default=None)


class StablehloCase(Operator, name="tfl.stablehlo_case"):
    """Runs one of several functions."""

    index: Value = operand()
    inputs: list[Value | None] = operand(variadic=True)
    outputs: list[Value] = result(variadic=True)
    branch_subgraph_indices: Any = attribute(default=None)
    traits = (CALLS, Calls(branch_subgraph_indices, inputs=inputs), Impure())

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        return site.branches(_numbers(self, "branch_subgraph_indices"), self.inputs)


class StablehloCbrt(StablehloUnary, name="tfl.stablehlo_cbrt"):
    """The cube root."""


class StablehloClamp(Operator, name="tfl.stablehlo_clamp"):
    """The operand between two others."""

    low: Value = operand()
    input: Value = operand()
    high: Value = operand()
    output: Value = result()

    def infer(self, site: DeclaredShapes) -> Dims:
        """The bounds may be scalars."""
        return site.common([self.input, *_with_dims(site, self.low, self.high)])


class StablehloCompare(StablehloBinary, name="tfl.stablehlo_compare"):
    """A comparison, as `comparison_direction` says."""

    comparison_direction: str = attribute(default="STABLEHLO_COMPARISON_DIRECTION_EQ")
    compare_type: str = attribute(default="STABLEHLO_COMPARISON_TYPE_NOTYPE")


class StablehloComposite(Many, name="tfl.stablehlo_composite"):
    """An operator with a name, and the function that it stands for."""

    name_: Any = attribute(default=None, key="name")
    decomposition_subgraph_index: int = attribute(default=0)
    composite_attributes: Any = attribute(default=None)
    composite_attributes_format: str = attribute(default="FLEXBUFFERS")
    version: int = attribute(default=0)
    traits = (CALLS, Calls(decomposition_subgraph_index, inputs=Many.inputs), Impure())

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        return site.branches([self.decomposition_subgraph_index], self.operands)


class StablehloConcatenate(Operator, name="tfl.stablehlo_concatenate"):
    """Operands one after the other along a dim."""

    inputs: list[Value | None] = operand(variadic=True)
    output: Value = result()
    dimension: int = attribute(default=0)

    def infer(self, site: DeclaredShapes) -> Dims:
        return site.joined(self.inputs, self.dimension)


class StablehloConvert(StablehloUnary, name="tfl.stablehlo_convert"):
    """The numbers in another type."""


_LAYOUTS: Final = (
    (("input_batch_dimension", "input_feature_dimension"), "input_spatial_dimensions"),
    (("kernel_input_feature_dimension", "kernel_output_feature_dimension"), "kernel_spatial_dimensions"),
    (("output_batch_dimension", "output_feature_dimension"), "output_spatial_dimensions"),
)
"""The options that place the dims of a convolution's operands and result."""


class StablehloConvolution(Operator, name="tfl.stablehlo_convolution"):
    """A convolution with any layout."""

    lhs: Value = operand()
    rhs: Value = operand()
    output: Value = result()
    window_strides: Any = attribute(default=None)
    padding: Any = attribute(default=None)
    lhs_dilation: Any = attribute(default=None)
    rhs_dilation: Any = attribute(default=None)
    window_reversal: Any = attribute(default=None)
    input_batch_dimension: int = attribute(default=0)
    input_feature_dimension: int = attribute(default=0)
    input_spatial_dimensions: Any = attribute(default=None)
    kernel_input_feature_dimension: int = attribute(default=0)
    kernel_output_feature_dimension: int = attribute(default=0)
    kernel_spatial_dimensions: Any = attribute(default=None)
    output_batch_dimension: int = attribute(default=0)
    output_feature_dimension: int = attribute(default=0)
    output_spatial_dimensions: Any = attribute(default=None)
    feature_group_count: int = attribute(default=0)
    batch_group_count: int = attribute(default=0)
    precision_config: Any = attribute(default=None)
    traits = (NeverRuns(),)

    def infer(self, site: DeclaredShapes) -> Dims:
        """The windows of each group, over the input dilated and padded. A count of 0 groups is one."""
        a = site.dims(self.lhs, least=2)
        rank, spatial = len(a), len(a) - 2
        b = site.dims(self.rhs, rank)
        of_input, of_kernel, of_output = (_layout(self, rank, *names) for names in _LAYOUTS)
        batch, features, *sizes = (a[i] for i in of_input)
        inputs, outputs, *window = (b[i] for i in of_kernel)
        groups, batches = self.feature_group_count or 1, self.batch_group_count or 1
        if not 1 == min(groups, batches) <= max(groups, batches) <= i32.maximum:
            raise Misfit(f"it has {groups} groups of features and {batches} of batches")
        agree(divided(features, groups), inputs, "features of a group and inputs of the kernel")
        divided(outputs, groups * batches)
        strides, base, dilations = _steps(self, spatial, "window_strides", "lhs_dilation", "rhs_dilation")
        _numbers(self, "window_reversal", spatial, 0)
        whole = _spread(sizes, base, _numbers(self, "padding", 2 * spatial, 0))
        result = (divided(batch, batches), outputs, *map(places, whole, window, strides, dilations))
        return tuple(dim for _, dim in sorted(zip(of_output, result, strict=True), key=itemgetter(0)))


class StablehloCosine(StablehloUnary, name="tfl.stablehlo_cosine"):
    """The cosine."""


class StablehloCustomCall(Many, name="tfl.stablehlo_custom_call"):
    """An operator from outside StableHLO."""

    call_target_name: Any = attribute(default=None)
    has_side_effect: bool = attribute(default=False)
    backend_config: Any = attribute(default=None)
    api_version: int = attribute(default=0)
    called_computations: Any = attribute(default=None)
    custom_attributes: Any = attribute(default=None)
    traits = (Calls(called_computations), Impure())


class StablehloDivide(StablehloBinary, name="tfl.stablehlo_divide"):
    """lhs / rhs."""

    traits = (*StablehloBinary.traits, LacksKernel(i8, ui8, i16))


class StablehloDotGeneral(Operator, name="tfl.stablehlo_dot_general"):
    """Products summed over contracted dims."""

    lhs: Value = operand()
    rhs: Value = operand()
    output: Value = result()
    lhs_batching_dimensions: Any = attribute(default=None)
    rhs_batching_dimensions: Any = attribute(default=None)
    lhs_contracting_dimensions: Any = attribute(default=None)
    rhs_contracting_dimensions: Any = attribute(default=None)
    precision_config: Any = attribute(default=None)
    traits = (NeverRuns(),)

    def infer(self, site: DeclaredShapes) -> Dims:
        """Batch dims, then what is left of each side."""
        a, b = site.dims(self.lhs), site.dims(self.rhs)
        for side, rank in (("lhs", len(a)), ("rhs", len(b))):
            _axes(self, rank, f"{side}_batching_dimensions", f"{side}_contracting_dimensions")
        batch, inner = _pairs(self, "batching"), _pairs(self, "contracting")
        for i, j in inner:
            agree(a[i], b[j], "the dims that are multiplied")
        lead = [agree(a[i], b[j], "the batch dims") for i, j in batch]
        gone_a, gone_b = {i for i, _ in (*batch, *inner)}, {j for _, j in (*batch, *inner)}
        return (*lead, *reduced(a, gone_a), *reduced(b, gone_b))


class StablehloDynamicSlice(Operator, name="tfl.stablehlo_dynamic_slice"):
    """A block of the operand at computed starts."""

    input: Value = operand()
    starts: list[Value | None] = operand(variadic=True)
    output: Value = result()
    slice_sizes: Any = attribute(default=None)

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input)
        agree(len(self.operands) - 1, len(dims), "starts and dims")
        slices = tuple(_numbers(self, "slice_sizes", len(dims)))
        fitting(dims, slices, "the slice")
        return slices


class StablehloDynamicUpdateSlice(Operator, name="tfl.stablehlo_dynamic_update_slice"):
    """The operand with a block replaced at computed starts."""

    input: Value = operand()
    update: Value = operand()
    starts: list[Value | None] = operand(variadic=True)
    output: Value = result()

    def infer(self, site: DeclaredShapes) -> Dims:
        """A start for each dim, each an operand."""
        dims = site.dims(self.input)
        fitting(dims, site.dims(self.update, len(dims)), "the update")
        agree(len(self.starts), len(dims), "starts and dims")
        return dims


class StablehloExponential(StablehloUnary, name="tfl.stablehlo_exponential"):
    """e to the power of the operand."""


class StablehloFloor(StablehloUnary, name="tfl.stablehlo_floor"):
    """Rounded down."""


class StablehloGather(Operator, name="tfl.stablehlo_gather"):
    """Blocks of the operand at computed starts."""

    input: Value = operand()
    indices: Value = operand(indices=True)
    output: Value = result()
    offset_dims: Any = attribute(default=None)
    collapsed_slice_dims: Any = attribute(default=None)
    start_index_map: Any = attribute(default=None)
    index_vector_dim: int = attribute(default=0)
    slice_sizes: Any = attribute(default=None)
    indices_are_sorted: bool = attribute(default=False)
    traits = (Misreads("result type"), FloatKernel())

    def infer(self, site: DeclaredShapes) -> Dims:
        """Dims of the slices at `offset_dims`, those of the indices elsewhere. The options name no dim twice."""
        dims, indices = site.dims(self.input), site.dims(self.indices)
        collapsed, mapped = (_axes(self, len(dims), name) for name in ("collapsed_slice_dims", "start_index_map"))
        sizes = _numbers(self, "slice_sizes", len(dims))
        fitting(dims, tuple(sizes), "the slice")
        slices = [s for i, s in enumerate(sizes) if i not in collapsed]
        at = int(self.index_vector_dim)
        if not 0 <= at <= len(indices):
            raise Misfit(f"its index_vector_dim {at} is outside of the indices' rank of {len(indices)}")
        agree((*indices, 1)[at], len(mapped), "the lengths of indices and start_index_map")
        batch = [d for i, d in enumerate(indices) if i != at]
        rank = len(slices) + len(batch)
        offsets = _axes(self, rank, "offset_dims")
        agree(len(offsets), len(slices), "its offset_dims and the dims of its slices")
        inner, outer = iter(slices), iter(batch)
        return tuple(next(inner) if i in offsets else next(outer) for i in range(rank))


class StablehloIota(Operator, name="tfl.stablehlo_iota"):
    """0, 1, 2, ... along a dim."""

    output: Value = result()
    iota_dimension: int = attribute(default=0)


class StablehloLog(StablehloUnary, name="tfl.stablehlo_log"):
    """The natural logarithm."""


class StablehloLogistic(StablehloUnary, name="tfl.stablehlo_logistic"):
    """1 / (1 + e^-operand)."""


class StablehloMaximum(StablehloBinary, name="tfl.stablehlo_maximum"):
    """The greater of two."""

    traits = (Misreads("result type"), FloatKernel(), *StablehloBinary.traits)


class StablehloMinimum(StablehloBinary, name="tfl.stablehlo_minimum"):
    """The lesser of two."""

    traits = (Misreads("result type"), FloatKernel(), *StablehloBinary.traits)


class StablehloMultiply(StablehloBinary, name="tfl.stablehlo_multiply"):
    """lhs * rhs."""

    traits = (Misreads("result type"), Unbounded(), FloatKernel(), *StablehloBinary.traits)


class StablehloNegate(StablehloUnary, name="tfl.stablehlo_negate"):
    """The negative."""


class StablehloOr(StablehloBinary, name="tfl.stablehlo_or"):
    """Bits or truth values that one has."""


class StablehloPad(Operator, name="tfl.stablehlo_pad"):
    """A value around and between the elements."""

    input: Value = operand()
    value: Value = operand()
    output: Value = result()
    edge_padding_low: Any = attribute(default=None)
    edge_padding_high: Any = attribute(default=None)
    interior_padding: Any = attribute(default=None)
    traits = (OneElement(value), Misreads("packed"), FloatKernel())

    def infer(self, site: DeclaredShapes) -> Dims:
        """Edges may be negative; between two elements `interior` are added."""
        dims = site.dims(self.input)
        names = ("edge_padding_low", "edge_padding_high", "interior_padding")
        low, high, between = (_numbers(self, name, len(dims)) for name in names)
        if min(between, default=0) < 0:
            raise Misfit(f"its interior_padding {between} is negative")
        sides = [side for pair in zip(low, high, strict=True) for side in pair]
        return tuple(None if d is None else max(d, 0) for d in _spread(dims, [n + 1 for n in between], sides))


class StablehloPower(StablehloBinary, name="tfl.stablehlo_power"):
    """lhs to the power of rhs."""


class StablehloReduce(Many, name="tfl.stablehlo_reduce"):
    """A reduction by a function."""

    dimensions: Any = attribute(default=None)
    body_subgraph_index: int = attribute(default=0)
    traits = (Calls(body_subgraph_index),)

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        gone = set(_axes(self, len(site.dims(self.inputs[0])), "dimensions"))
        return [reduced(site.dims(value), gone) for value in self.inputs[: len(self.outputs)]]


class StablehloReduceWindow(Many, name="tfl.stablehlo_reduce_window"):
    """A reduction of each window by a function."""

    window_dimensions: Any = attribute(default=None)
    window_strides: Any = attribute(default=None)
    base_dilations: Any = attribute(default=None)
    window_dilations: Any = attribute(default=None)
    padding: Any = attribute(default=None)
    body_subgraph_index: int = attribute(default=0)
    traits = (Calls(body_subgraph_index),)

    def windows(self, rank: int) -> list[list[int]]:
        """Sizes and strides of the windows along each dim, dilations of the input and of the windows; then the elements
        before and after each dim."""
        names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
        return [*_steps(self, rank, *names), _numbers(self, "padding", 2 * rank, 0)]

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        """The input dilated, padded, then reduced over windows. Each input has an element to begin with."""
        dims = site.dims(self.inputs[0])
        agree(len(self.inputs), 2 * len(self.outputs), "its operands and twice its results")
        for init in self.inputs[len(self.outputs) :]:
            agree(product(site.dims(init)), 1, "the elements that it begins with, and one,")
        window, strides, base, dilations, padding = self.windows(len(dims))
        whole = _spread(dims, base, padding)
        return [tuple(map(places, whole, window, strides, dilations))] * len(self.results)


class StablehloRemainder(StablehloBinary, name="tfl.stablehlo_remainder"):
    """The remainder of a division that truncates."""


class StablehloReshape(Operator, name="tfl.stablehlo_reshape"):
    """The elements of a tensor in another shape."""

    input: Value = operand()
    output: Value = result()

    def infer(self, site: DeclaredShapes) -> Dims:
        """The declared shape: only the file has it."""
        declared = self.output.type.shape
        if declared is None or None in declared:
            raise NotInferred("the file does not say what shape it makes")
        return reshaped(site.dims(self.input), declared)


class StablehloRngBitGenerator(Operator, name="tfl.stablehlo_rng_bit_generator"):
    """Random bits."""

    state: Value = operand()
    new_state: Value = result()
    output: Value = result()
    algorithm: str = attribute(default="DEFAULT")
    traits = (Impure(), Unquantized("it draws random numbers, as floats or bits"))

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        """The declared shape of the drawn numbers."""
        return [site.dims(self.state), self.output.type.shape]


class StablehloRsqrt(StablehloUnary, name="tfl.stablehlo_rsqrt"):
    """One over the square root."""


class StablehloScatter(Operator, name="tfl.stablehlo_scatter"):
    """Updates placed into an operand, combined by a function."""

    input: Value = operand()
    indices: Value = operand(indices=True)
    updates: Value = operand()
    output: Value = result()
    indices_are_sorted: bool = attribute(default=False)
    update_window_dims: Any = attribute(default=None)
    inserted_window_dims: Any = attribute(default=None)
    scatter_dims_to_operand_dims: Any = attribute(default=None)
    index_vector_dim: int = attribute(default=0)
    unique_indices: bool = attribute(default=False)
    update_computation_subgraph_index: int = attribute(default=0)
    traits = (Calls(update_computation_subgraph_index), SameShape(input, output, strict=False))


class StablehloSelect(Operator, name="tfl.stablehlo_select"):
    """on_true where the condition holds, else on_false."""

    condition: Value = operand()
    on_true: Value = operand()
    on_false: Value = operand()
    output: Value = result()

    def infer(self, site: DeclaredShapes) -> Dims:
        """The condition may be a scalar."""
        return site.common([self.on_true, self.on_false, *_with_dims(site, self.condition)])


class StablehloShiftLeft(StablehloBinary, name="tfl.stablehlo_shift_left"):
    """lhs shifted left by rhs bits."""

    traits = (Misreads("result type"), *StablehloBinary.traits)


class StablehloSlice(Operator, name="tfl.stablehlo_slice"):
    """A block of the operand in steps."""

    input: Value = operand()
    output: Value = result()
    start_indices: Any = attribute(default=None)
    limit_indices: Any = attribute(default=None)
    strides: Any = attribute(default=None)

    def infer(self, site: DeclaredShapes) -> Dims:
        dims, names = site.dims(self.input), ("start_indices", "limit_indices", "strides")
        parts = list(zip(*(_numbers(self, name, len(dims)) for name in names), strict=True))
        for dim, (start, limit, stride) in zip(dims, parts, strict=True):
            if not 0 <= start <= limit or stride < 1 or (dim is not None and limit > dim):
                raise Misfit(f"its slice from {start} to {limit} in steps of {stride} is not in a dim of {dim}")
        return tuple(len(range(*part)) for part in parts)


class StablehloSort(Many, name="tfl.stablehlo_sort"):
    """Operands sorted by a function."""

    dimension: int = attribute(default=0)
    is_stable: bool = attribute(default=False)
    comparator_subgraph_index: int = attribute(default=0)
    traits = (Calls(comparator_subgraph_index),)

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        return [site.dims(value) for value in self.inputs[: len(self.outputs)]]


class StablehloSubtract(StablehloBinary, name="tfl.stablehlo_subtract"):
    """lhs - rhs."""


class StablehloTanh(StablehloUnary, name="tfl.stablehlo_tanh"):
    """The hyperbolic tangent."""


class StablehloTranspose(Operator, name="tfl.stablehlo_transpose"):
    """Dims in another order."""

    input: Value = operand()
    output: Value = result()
    permutation: Any = attribute(default=None)

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input)
        return permuted(dims, _numbers(self, "permutation", len(dims)))


class StablehloWhile(Many, name="tfl.stablehlo_while"):
    """Runs a function as long as another says so."""

    cond_subgraph_index: int = attribute(default=0)
    body_subgraph_index: int = attribute(default=0)
    traits = (Calls(cond_subgraph_index, body_subgraph_index), Impure())

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        return site.loop(self.cond_subgraph_index, self.body_subgraph_index, self.inputs)
