"""dot_general and convolution, of TFLite files and of text, as TFLite's builtins; and the ops of `stablehlo` that text
has, as builtins.

Any layout becomes the one that kernels take: dims in their order, those of one role together. Tensors keep their
element types: no interpreter computes these operators on quantized tensors, and the rules of the builtins lower them
with the parameters honoured. Shapes must be known. What has several scales on its activations is computed in float.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.base.errors import Reason, Refused, UnsupportedError, operators
from tflq.dialects.builder import Emitter
from tflq.dialects.constraints import integers
from tflq.dialects.stablehlo.convolution import ConvNumbers, Convolution, DotGeneral, DotNumbers, Window
from tflq.dialects.stablehlo.elementwise import UniformDequantize
from tflq.dialects.tfl.casts import Dequantize
from tflq.dialects.tfl.convolution import BatchMatMul, Conv2D, Conv3D, DepthwiseConv2D
from tflq.dialects.tfl.movement import Dilate, Pad, Reshape, ReverseV2, Slice, Transpose
from tflq.dialects.tfl.stablehlo import StablehloConvolution, StablehloDotGeneral
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value, constant
from tflq.ir.types import ElementType, TensorType, UniformQuantizedPerAxisType, UniformQuantizedType, f32
from tflq.legalize.probing import kernel_name
from tflq.legalize.rule import MARK, Answer, NotApplicable, RuleBuilder, rule
from tflq.legalize.stablehlo import as_builtin, builtin, by_rules, option

_MOST_BATCHES: Final = 3
"""Batch dims of BATCH_MATMUL."""
Dims: TypeAlias = tuple[int, ...]


class Convolved:
    """Movement of a convolution's windows: dimension numbers, window, which dims run backwards, and groups."""

    def __init__(
        self,
        numbers: ConvNumbers,
        window: Window,
        reversal: Sequence[int] = (),
        feature_groups: int = 1,
        batch_groups: int = 1,
    ) -> None:
        self.numbers = numbers
        self.window = window
        self.reversed = [axis for axis, flag in enumerate(reversal) if flag]
        self.feature_groups = feature_groups
        self.batch_groups = batch_groups


class Contractions:
    """Builtins that sum products, emitted by `b`."""

    def __init__(self, b: Emitter) -> None:
        self.b = b

    def weights(self, w: Value) -> Value:
        """The right side, in the kernel's order, as the kernel takes it."""
        return w

    # --- layouts

    def ordered(self, x: Value, perms: Sequence[int]) -> Value:
        """The dims in another order; a constant is transposed now."""
        if list(perms) == list(range(len(perms))):
            return x
        kind = TensorType(tuple(x.type.dims[p] for p in perms), _moved(x.type.element, perms))
        if x.is_constant and x.type.storage.bits >= 8:
            return Value(kind, x.name, buffer=Buffer.of(np.ascontiguousarray(x.array.transpose(perms))))
        return self.b.emit(Transpose, [x, constant(np.asarray(perms, np.int32))], kind)

    def reshaped(self, x: Value, shape: Sequence[int], element: ElementType | None = None) -> Value:
        """The elements of x in another shape; `element`: with their parameters along another dim."""
        kind = TensorType(tuple(shape), element or x.type.element)
        if kind == x.type:
            return x
        if x.is_constant and x.type.storage.bits >= 8:
            return Value(kind, x.name, buffer=Buffer.of(np.ascontiguousarray(x.array).reshape(shape)))
        sizes = np.asarray(shape, np.int32)
        return self.b.emit(Reshape, [x, constant(sizes)], kind, new_shape=sizes)

    def _resized(self, x: Value, shape: Sequence[int]) -> TensorType:
        return TensorType(tuple(shape), x.type.element)

    def _dilated(self, x: Value, factors: Sequence[int]) -> Value:
        if set(factors) == {1}:
            return x
        shape = [max(0, (n - 1) * f + 1) if n else 0 for n, f in zip(_dims(x), factors, strict=True)]
        return self.b.emit(Dilate, [x, constant(np.asarray(factors, np.int32)), _zero(x.type)], self._resized(x, shape))

    def _padded(self, x: Value, sides: Sequence[tuple[int, int]]) -> Value:
        """Zeros around it; where a side is negative, as many elements are cut off."""
        around = np.maximum(np.asarray(sides, np.int32), 0)
        if around.any():
            shape = (np.asarray(_dims(x)) + around.sum(1)).tolist()
            x = self.b.emit(Pad, [x, constant(around)], self._resized(x, shape))
        cut = np.maximum(-np.asarray(sides, np.int32), 0)
        if not cut.any():
            return x
        sizes = np.asarray(_dims(x), np.int32) - cut.sum(1, dtype=np.int32)
        if sizes.min() < 0:
            raise Refused("its padding cuts off more than there is")
        return self.b.emit(Slice, [x, constant(cut[:, 0].copy()), constant(sizes)], self._resized(x, sizes.tolist()))

    def _flipped(self, w: Value, axes: Sequence[int]) -> Value:
        if not axes:
            return w
        if w.is_constant and w.type.storage.bits >= 8:
            return Value(w.type, w.name, buffer=Buffer.of(np.ascontiguousarray(np.flip(w.array, axes))))
        return self.b.emit(ReverseV2, [w, constant(np.asarray(axes, np.int32))], w.type)

    # --- products

    def dot(self, numbers: DotNumbers, lhs: Value, rhs: Value, result: TensorType) -> Value:
        """BATCH_MATMUL of [batches, rows, sum] and [batches, sum, columns]."""
        left, right = _dims(lhs), _dims(rhs)
        rows, columns = numbers.free(len(left), right=False), numbers.free(len(right), right=True)
        batches = tuple(left[d] for d in numbers.lhs_batching)
        if len(batches) > _MOST_BATCHES:
            batches = (prod(batches),)
        x, adj_x = self._side(lhs, batches, numbers.lhs_batching, rows, numbers.lhs_contracting)
        w, adj_y = self._side(rhs, batches, numbers.rhs_batching, numbers.rhs_contracting, columns)
        many, wide = prod(left[d] for d in rows), prod(right[d] for d in columns)
        element = _merged(result.element, (*batches, many, wide), len(numbers.lhs_batching), len(rows), result.shape)
        product = self.b.emit(
            BatchMatMul,
            [x, self.weights(w)],
            TensorType((*batches, many, wide), element),
            adj_x=adj_x,
            adj_y=adj_y,
            asymmetric_quantize_inputs=False,
        )
        return self.reshaped(product, result.sizes, result.element)

    def _side(
        self, x: Value, batches: Dims, batching: Sequence[int], first: Sequence[int], second: Sequence[int]
    ) -> tuple[Value, bool]:
        """[batches, first, second]; or [batches, second, first] and True, if that is its layout already."""
        adjoint = [*batching, *second, *first] == list(range(len(_dims(x)))) and bool(first) and bool(second)
        one, other = (second, first) if adjoint else (first, second)
        sizes = _dims(x)
        x = self.ordered(x, [*batching, *one, *other])
        shape = (*batches, prod(sizes[d] for d in one), prod(sizes[d] for d in other))
        return self.reshaped(x, shape, _merged(x.type.element, shape, len(batching), len(one), x.type.shape)), adjoint

    # --- convolutions

    def convolution(self, how: Convolved, lhs: Value, rhs: Value, result: TensorType) -> Value:
        """CONV_2D, CONV_3D or DEPTHWISE_CONV_2D of an input that is dilated and padded before."""
        numbers, rank = how.numbers, len(how.window.sizes)
        if rank not in (1, 2, 3):
            raise Refused(f"no kernel convolves {rank} spatial dimensions")
        x = self.ordered(lhs, [numbers.input[0], *numbers.input[2], numbers.input[1]])
        x = self._dilated(x, (1, *how.window.base_dilations, 1))
        x = self._padded(x, ((0, 0), *how.window.padding, (0, 0)))
        x, groups = self._groups(x, how)
        shape = result.shape or ()
        places = (numbers.output[0], *numbers.output[2], numbers.output[1])
        ordered = TensorType(tuple(shape[i] for i in places), _moved(result.element, places))
        out = self._three(how, x, rhs, ordered) if rank == 3 else self._two(how, x, rhs, ordered, groups)
        return self.ordered(out, [places.index(i) for i in range(len(places))])

    def _groups(self, x: Value, how: Convolved) -> tuple[Value, int]:
        """The input and its number of groups of features; groups of batches become groups of features."""
        count = how.batch_groups
        if count == 1:
            return x, how.feature_groups
        batch, *spatial, depth = _dims(x)
        x = self.reshaped(x, (count, batch // count, *spatial, depth))
        x = self.ordered(x, (*range(1, len(spatial) + 2), 0, len(spatial) + 2))
        return self.reshaped(x, (batch // count, *spatial, count * depth)), count

    def _two(self, how: Convolved, x: Value, rhs: Value, result: TensorType, groups: int) -> Value:
        """One or two spatial dims."""
        inputs, outputs, spatial = how.numbers.kernel
        depthwise = groups > 1 and _dims(rhs)[inputs] == 1
        w = self._flipped(rhs, [spatial[axis] for axis in how.reversed])
        w = self.ordered(w, [inputs, *spatial, outputs] if depthwise else [outputs, *spatial, inputs])
        strides, dilations, shape = how.window.strides, how.window.dilations, result.shape or ()
        if len(spatial) == 1:  # a height of 1
            x, w = (self.reshaped(v, (_dims(v)[0], 1, *_dims(v)[1:]), _beyond(v.type.element, 1)) for v in (x, w))
            strides, dilations = (1, *strides), (1, *dilations)
            result = TensorType((shape[0], 1, *shape[1:]), _beyond(result.element, 1))
        attributes: dict[str, Any] = {
            "padding": "VALID",
            "stride_h": strides[0],
            "stride_w": strides[1],
            "dilation_h_factor": dilations[0],
            "dilation_w_factor": dilations[1],
            "fused_activation_function": "NONE",
        }
        if depthwise:
            attributes["depth_multiplier"] = _dims(w)[-1] // groups
        else:
            attributes["quantized_bias_type"] = "FLOAT32"
        kind = DepthwiseConv2D if depthwise else Conv2D
        out = self.b.emit(kind, [x, self.weights(w), _bias(result)], result, **attributes)
        if len(spatial) == 2:
            return out
        return self.reshaped(out, [d or 0 for d in shape], _beyond(result.element, -1))

    def _three(self, how: Convolved, x: Value, rhs: Value, result: TensorType) -> Value:
        if how.feature_groups != 1 or how.batch_groups != 1:
            raise Refused("CONV_3D has no groups")
        inputs, outputs, spatial = how.numbers.kernel
        w = self._flipped(rhs, [spatial[axis] for axis in how.reversed])
        w = self.ordered(w, [*spatial, inputs, outputs])
        attributes: dict[str, Any] = {"padding": "VALID", "fused_activation_function": "NONE"}
        for axis, stride, dilation in zip("dhw", how.window.strides, how.window.dilations, strict=True):
            attributes |= {f"stride_{axis}": stride, f"dilation_{axis}_factor": dilation}
        return self.b.emit(Conv3D, [x, self.weights(w), _bias(result)], result, **attributes)


def _dims(x: Value) -> Dims:
    if not x.type.is_static:
        raise Refused(f"the shape of '{x.name}' is not known")
    return x.type.sizes


def _zero(kind: TensorType) -> Value:
    """The stored form of 0, as a scalar."""
    element = kind.element
    if isinstance(element, UniformQuantizedType):
        stored = np.asarray(element.zero_point, element.storage.dtype)
        return Value(TensorType((), element), buffer=Buffer.of(stored))
    if kind.quantized:
        raise Refused("no one number stands for 0 where there are several parameters")
    return constant(np.zeros((), kind.storage.dtype))


def _bias(result: TensorType) -> Value | None:
    """Zeros for floats; quantized tensors need none."""
    return None if result.quantized else constant(np.zeros((result.shape or ())[-1] or 0, np.float32))


def _along(element: UniformQuantizedPerAxisType, axis: int, repeated: np.ndarray | None = None) -> ElementType:
    """The parameters along another axis; `repeated`: only those with these indices, in this order."""
    index = slice(None) if repeated is None else repeated
    return UniformQuantizedPerAxisType.of(
        element.storage,
        axis,
        np.asarray(element.scales)[index],
        np.asarray(element.zero_points)[index],
        expressed=element.expressed,
        storage_min=element.storage_min,
        storage_max=element.storage_max,
    )


def _moved(element: ElementType, perms: Sequence[int]) -> ElementType:
    if not isinstance(element, UniformQuantizedPerAxisType):
        return element
    return _along(element, list(perms).index(element.axis))


def _beyond(element: ElementType, by: int) -> ElementType:
    """The parameters where a dim at place 1 is inserted (by 1), or removed (by -1)."""
    if not isinstance(element, UniformQuantizedPerAxisType):
        return element
    return _along(element, element.axis + by * (element.axis >= 1))


def _merged(element: ElementType, shape: Dims, batching: int, first: int, dims: Any) -> ElementType:
    """The parameters of a tensor of `dims` after a merge into the three dims of `shape`: the first `batching`, the
    next `first` and the rest of them."""
    if not isinstance(element, UniformQuantizedPerAxisType):
        return element
    begin, end, place = (
        (batching, batching + first, len(shape) - 2)
        if batching <= element.axis < batching + first
        else (batching + first, len(dims), len(shape) - 1)
    )
    if element.axis < batching:
        raise Refused("BATCH_MATMUL has no scales along a batch dimension")
    inside = [d or 0 for d in dims[begin:end]]
    index = np.arange(inside[element.axis - begin]).reshape([-1 if d == element.axis else 1 for d in range(begin, end)])
    return _along(element, place, np.broadcast_to(index, inside).reshape(-1))


Contraction: TypeAlias = StablehloDotGeneral | StablehloConvolution
"""The operators of files."""


@rule(StablehloConvolution, StablehloDotGeneral)
def contraction(op: Contraction, b: RuleBuilder) -> Answer:
    """Applies the rules of the builtins that compute it."""
    if as_builtin(op) is not None:
        return builtin(op, b)
    emitter = Emitter()
    emitter.location = op.location
    try:
        output = spread(op, Contractions(emitter), op.lhs, op.rhs, op.output.type)
    except Refused as why:
        raise Refused(f"{kernel_name(op)} on quantized tensors has no form on builtins: {why}") from None
    several = next((v for v in (op.lhs, op.output) if isinstance(v.type.element, UniformQuantizedPerAxisType)), None)
    if several is not None:
        raise NotApplicable(f"'{several.name}' has several scales, and only weights may")
    for emitted in emitter.ops:
        b.bind(emitted.result, by_rules(emitted, b).result)
    return b.value(output)


def spread(
    op: Contraction | DotGeneral | Convolution, to: Contractions, lhs: Value, rhs: Value, result: TensorType
) -> Value:
    """Emits builtins that compute an op on these operands. Refused if there are none."""
    try:
        if isinstance(op, (StablehloDotGeneral, DotGeneral)):
            numbers = op.numbers if isinstance(op, DotGeneral) else _dot_numbers(op)
            element = op.rhs.type.element
            if isinstance(element, UniformQuantizedPerAxisType) and element.axis in numbers.rhs_contracting:
                raise Refused(f"the scales of '{op.rhs.name}' are along a dimension that is summed over")
            return to.dot(numbers, lhs, rhs, result)
        how = _convolved_of_text(op) if isinstance(op, Convolution) else _convolved(op)
        return to.convolution(how, lhs, rhs, result)
    except (ValueError, IndexError) as error:
        raise Refused(f"its dimension numbers and shapes do not fit together ({error})") from error


def _dot_numbers(op: StablehloDotGeneral) -> DotNumbers:
    lists = (
        op.lhs_batching_dimensions,
        op.rhs_batching_dimensions,
        op.lhs_contracting_dimensions,
        op.rhs_contracting_dimensions,
    )
    return DotNumbers(*(tuple(option(dims)) for dims in lists))


def _convolved(op: StablehloConvolution) -> Convolved:
    spatial = [
        tuple(option(dims))
        for dims in (op.input_spatial_dimensions, op.kernel_spatial_dimensions, op.output_spatial_dimensions)
    ]
    numbers = ConvNumbers(
        (op.input_batch_dimension, op.input_feature_dimension, spatial[0]),
        (op.kernel_input_feature_dimension, op.kernel_output_feature_dimension, spatial[1]),
        (op.output_batch_dimension, op.output_feature_dimension, spatial[2]),
    )
    rank, shape = len(spatial[1]), op.rhs.type.dims
    padding = np.asarray(option(op.padding) or [0] * (2 * rank)).reshape(rank, 2)
    window = Window(
        tuple(shape[d] or 0 for d in spatial[1]),
        tuple(option(op.window_strides)) or (1,) * rank,
        tuple((int(low), int(high)) for low, high in padding),
        tuple(option(op.lhs_dilation)) or (1,) * rank,
        tuple(option(op.rhs_dilation)) or (1,) * rank,
    )
    return Convolved(
        numbers, window, option(op.window_reversal), op.feature_group_count or 1, op.batch_group_count or 1
    )


def _convolved_of_text(op: Convolution) -> Convolved:
    if op.numbers is None or op.window is None:
        raise Refused("its dimension numbers or its window are not known")
    reversal = integers(op, "window_reversal", (0,) * len(op.window.sizes)) or ()
    return Convolved(op.numbers, op.window, reversal, op.feature_group_count, op.batch_group_count)


# Ops of text on floats, and hybrid ones.


def stands_apart(op: Op) -> bool:
    """Whether an op is of text, or one of a file that no interpreter runs on floats with quantized weights."""
    return op.name.startswith("stablehlo.") or isinstance(op, Contraction)


def to_builtins(module: Module, *, keep_weights: bool) -> None:
    """Replaces ops of `stablehlo` on floats, and hybrid ones also of files, by builtins; the module is changed in
    place. Ops on quantized tensors have rules.

    A hybrid op, of floating-point activations and quantized weights, becomes DEQUANTIZE of the weights and the float
    operator: weight-only quantization, whose weights stay quantized in the file. TFLite's own hybrid kernels are not
    used: they quantize the activations as they run. keep_weights: DEQUANTIZE of a constant is not folded.
    UnsupportedError lists every op that no builtin computes.
    """
    refused: list[Reason] = []
    for index, function in enumerate(module.functions):
        if any(map(stands_apart, function.ops)):
            _function(function, index, keep_weights, refused)
    if refused:
        remedy = "write it in TFLite's operators, or dequantize its operands before it"
        raise UnsupportedError(f"cannot convert {operators(len(refused))}:", refused, remedy=remedy)


def _function(function: Function, index: int, keep_weights: bool, refused: list[Reason]) -> None:
    ops: list[Op] = []
    replaced: dict[Value, Value] = {}
    for op in function.ops:
        b = Emitter(ops)
        b.location = op.location
        op.operands = [v if v is None else replaced.get(v, v) for v in op.operands]
        try:
            result = _of(op, b, _Floats(b, keep_weights))
        except Refused as why:
            refused.append(why.within(f"function {index}, {op.name}", subgraph=index))
            continue
        if result is None:
            ops.append(op)
            continue
        result.name = op.result.name
        replaced[op.result] = result
    function.ops = ops
    function.outputs = [replaced.get(v, v) for v in function.outputs]


def _of(op: Op, b: Emitter, products: _Floats) -> Value | None:
    """The result that builtins compute; None for an op that stays as it is."""
    if isinstance(op, Contraction):
        floats = op.lhs.type.element == op.output.type.element == f32
        return spread(op, products, op.lhs, op.rhs, op.output.type) if floats and op.rhs.type.quantized else None
    if not op.name.startswith("stablehlo."):
        return None
    if isinstance(op, UniformDequantize) and op.input.is_constant:
        return products.weights(op.input)
    if isinstance(op, (DotGeneral, Convolution)):
        if op.result.type.quantized:
            raise Refused("products of quantized tensors, rounded once at the end, have no integer form: TFLite's do")
        if op.result.type.element != f32 or not all(v.type.is_static for v in op.tensors):
            what = f"of {op.result.type.storage}" if op.result.type.element != f32 else "of unknown shapes"
            raise Refused(f"TFLite has no float kernel {what} for it")
        return spread(op, products, op.lhs, op.rhs, op.result.type)
    if any(v.type.quantized for v in op.tensors):
        return None
    same = as_builtin(op)
    if same is None:
        remedy = "write it in TFLite's operators, or take the model from a .tflite file"
        raise Refused("no builtin stands for it", remedy)
    return b.op(same.name, same.operands, [op.result.type], same.attributes).result


class _Floats(Contractions):
    """Builtins on floats, with weights dequantized."""

    def __init__(self, b: Emitter, keep_weights: bool) -> None:
        super().__init__(b)
        self._keep_weights = keep_weights

    def weights(self, w: Value) -> Value:
        """The weights in float."""
        if not w.type.quantized:
            return w
        if getattr(w.type.element, "expressed", None) != f32:
            raise Refused("TFLite dequantizes to f32 only, and has no float16 kernel for it")
        dequantized = self.b.op(Dequantize, [w], [w.type.with_element(f32)], {})
        if self._keep_weights and w.is_constant:
            dequantized.info = {MARK: True}
        return dequantized.result
