"""Emitting TFLite builtins on plain tensors: short names, with options and constant operands filled in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tflq.builder import Emitter
from tflq.dialects.declare import Operator
from tflq.dialects.tfl.arithmetic import Add, Div, Maximum, Minimum, Mul, Pow, Sub
from tflq.dialects.tfl.bits import Bitcast, BitwiseXor, RightShift
from tflq.dialects.tfl.casts import Cast
from tflq.dialects.tfl.comparison import Equal, Greater, GreaterEqual
from tflq.dialects.tfl.indexing import Gather
from tflq.dialects.tfl.matmul import BatchMatMul
from tflq.dialects.tfl.movement import Concatenation, PadV2, Reshape, StridedSlice, Transpose
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, Shape, TensorType, f32, i1, i32

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["KernelBuilder", "squeezed", "widened"]


def _short(
    kind: type[Operator], element: ScalarType | None = None, **options: Any
) -> Callable[[Emitter, Value, Value], Value]:
    """The short name of an elementwise kernel of two operands; its result is of a's element type, or of `element`."""

    def emit(k: Emitter, a: Value, b: Value) -> Value:
        return k.emit(kind, [a, b], element, **options)

    return emit


class KernelBuilder(Emitter):
    """An `Emitter` of `tfl` ops. Shapes broadcast; `reshape` and friends take -1 for an unknown dim."""

    # Arithmetic. Types that each kernel gets right: rules/integer.toml.

    def add(self, a: Value, b: Value, activation: str = "NONE") -> Value:
        return self.emit(Add, [a, b], fused_activation_function=activation, pot_scale_int16=False)

    def sub(self, a: Value, b: Value, activation: str = "NONE") -> Value:
        return self.emit(Sub, [a, b], fused_activation_function=activation, pot_scale_int16=False)

    mul = _short(Mul, fused_activation_function="NONE")
    div = _short(Div, fused_activation_function="NONE")  # of integers, truncated
    maximum = _short(Maximum)
    minimum = _short(Minimum)
    pow = _short(Pow)
    right_shift = _short(RightShift)  # arithmetic; the amount is of a's type
    bitwise_xor = _short(BitwiseXor)
    equal = _short(Equal, i1)
    greater = _short(Greater, i1)
    greater_equal = _short(GreaterEqual, i1)

    def row(self, values: npt.ArrayLike, element: ScalarType = i32) -> Value:
        """A constant for each channel; a scalar if it is the same for all."""
        return self.constant(squeezed(np.asarray(values)), element)

    # Conversions.

    def cast(self, x: Value, to: ScalarType) -> Value:
        """CAST; narrowing wraps, float to integer truncates. No operator if the type is that already. int4 is cast from
        and to float32 only."""
        if x.type.element != to and min(x.type.storage.bits, to.bits) < 8 and f32 not in (x.type.element, to):
            x = self.cast(x, f32)
        return x if x.type.element == to else self.emit(Cast, [x], x.type.with_element(to))

    def copy(self, x: Value, type: TensorType | None = None) -> Value:
        """The same elements in another tensor (`type`: with or without quantization parameters): CAST to the
        same type, which int4 does not have."""
        if x.type.storage.bits < 8:
            return self.emit(Cast, [self.cast(x, f32)], type or x.type.stripped())
        return self.emit(Cast, [x], type or x.type.stripped())

    def bitcast(self, x: Value, to: ScalarType, shape: Shape | None = None) -> Value:
        """BITCAST; between widths the last dim appears or goes (`shape` if it is not x's)."""
        return self.emit(Bitcast, [x], TensorType(x.type.shape if shape is None else shape, to))

    # Data movement.

    def gather(self, x: Value, indices: Value, axis: int = 0) -> Value:
        shape = None
        if x.type.shape is not None and indices.type.shape is not None:
            shape = (*x.type.shape[:axis], *indices.type.shape, *x.type.shape[axis + 1 :])
        return self.emit(Gather, [x, indices], TensorType(shape, x.type.element), axis=axis, batch_dims=0)

    def reshape(self, x: Value, shape: Sequence[int | None]) -> Value:
        """RESHAPE to a shape with at most one unknown dim, which the kernel finds anew at every size; the result's type
        states it where x's shape is known."""
        dims = np.asarray([-1 if d is None else d for d in shape], np.int32)
        if (dims < 0).sum() > 1:
            raise ValueError(f"RESHAPE to {tuple(shape)}: more than one unknown dim")
        type = TensorType(_filled(shape, x.type.shape), x.type.element)
        return self.emit(Reshape, [x, self.constant(dims)], type, new_shape=dims)

    def refold(self, x: Value, shape: tuple[int | None, ...]) -> Value:
        """RESHAPE that leaves the first dim to be inferred, so that the model runs with any batch."""
        folded = self.reshape(x, (None, *shape[1:]))
        folded.type = TensorType(shape, x.type.element)
        return folded

    def transpose(self, x: Value, perms: Sequence[int]) -> Value:
        shape = None if x.type.shape is None else tuple(x.type.shape[p] for p in perms)
        type = TensorType(shape, x.type.element)
        return self.emit(Transpose, [x, self.constant(np.asarray(perms, np.int32))], type)

    def concatenation(self, xs: Sequence[Value], axis: int, shape: Shape) -> Value:
        type = TensorType(shape, xs[0].type.element)
        return self.emit(Concatenation, list(xs), type, axis=axis, fused_activation_function="NONE")

    def padv2(self, x: Value, paddings: np.ndarray, value: int | float, shape: Shape) -> Value:
        """PADV2 with a scalar of x's type."""
        fill = self.constant(np.asarray(value), x.type.storage)
        return self.emit(PadV2, [x, self.constant(paddings, i32), fill], TensorType(shape, x.type.element))

    def strided_slice(
        self,
        x: Value,
        begin: Sequence[int],
        end: Sequence[int],
        strides: Sequence[int],
        shape: Shape,
        *,
        begin_mask: int = 0,
        end_mask: int = 0,
        shrink_axis_mask: int = 0,
    ) -> Value:
        """STRIDED_SLICE with constant bounds."""
        bounds = [self.constant(np.asarray(v, np.int32)) for v in (begin, end, strides)]
        return self.emit(
            StridedSlice,
            [x, *bounds],
            TensorType(shape, x.type.element),
            begin_mask=begin_mask,
            end_mask=end_mask,
            ellipsis_mask=0,
            new_axis_mask=0,
            shrink_axis_mask=shrink_axis_mask,
            offset=False,
        )

    def reduce(self, kind: type[Operator], x: Value, axes: Sequence[int], keep_dims: bool, shape: Shape) -> Value:
        """SUM, REDUCE_MAX, REDUCE_MIN ..."""
        operands = [x, self.constant(np.asarray(axes, np.int32))]
        return self.emit(kind, operands, TensorType(shape, x.type.element), keep_dims=keep_dims)

    def batch_matmul(self, a: Value, b: Value, shape: Shape, *, adj_y: bool = False, to: ScalarType = i32) -> Value:
        """BATCH_MATMUL: int8 × int8 → int32, exact, or float32."""
        type = TensorType(shape, to)
        return self.emit(BatchMatMul, [a, b], type, adj_x=False, adj_y=adj_y, asymmetric_quantize_inputs=False)


def squeezed(values: np.ndarray) -> np.ndarray:
    """A scalar if all are the same."""
    flat = np.atleast_1d(values)
    return flat[0] if (flat == flat[0]).all() else flat


def widened(k: KernelBuilder, x: Value) -> Value:
    """x in 32 bits at least."""
    return k.cast(x, i32) if x.type.storage.bits < 32 else x


def _filled(shape: Sequence[int | None], source: Shape) -> Shape:
    """The shape with its unknown dim computed, if the size of what is reshaped is known."""
    if source is None or None in source or None not in shape:
        return tuple(shape)
    rest, size = prod(d for d in shape if d is not None), prod(d for d in source if d is not None)
    return tuple(size // rest if d is None and rest else d for d in shape)
