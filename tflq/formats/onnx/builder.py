"""Emitting operators of ONNX: short names, with constant operands made of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from tflq.dialects.builder import Emitter, constant_in_shape
from tflq.dialects.declare import Operator
from tflq.dialects.inference import reshaped
from tflq.formats.onnx import dialect as onnx
from tflq.formats.onnx.dialect import DequantizeLinear, QuantizeLinear
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, Shape, TensorType, f32, i8, i16, i32, i64, ui8, ui16, ui32, ui64

if TYPE_CHECKING:
    import numpy.typing as npt


_SMALL: Final = 64
"""Elements of a constant that is stored as it is, whatever smaller type holds it."""
_LONG: Final = 1 << 12
"""Elements of a row of which the steps are kept, if they are smaller."""
_PADDED_AS: Final = {i16: i32, ui16: i32, ui32: i64, ui64: i64}
_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1


def _two(kind: type[Operator]) -> Callable[[OnnxBuilder, Value, Value], Value]:
    """The short name of an operator of two operands."""

    def emit(b: OnnxBuilder, x: Value, y: Value) -> Value:
        return b.emit(kind, [x, y])

    return emit


def _one(kind: type[Operator]) -> Callable[[OnnxBuilder, Value], Value]:
    """The short name of an operator of one operand."""

    def emit(b: OnnxBuilder, x: Value) -> Value:
        return b.emit(kind, [x])

    return emit


class OnnxBuilder(Emitter):
    """An `Emitter` of ONNX's operators. Operands broadcast as numpy's."""

    add, sub, mul, div = map(_two, (onnx.Add, onnx.Sub, onnx.Mul, onnx.Div))
    maximum, minimum = map(_two, (onnx.Max, onnx.Min))
    equal, greater, less = map(_two, (onnx.Equal, onnx.Greater, onnx.Less))
    greater_or_equal = _two(onnx.GreaterOrEqual)
    both, either = map(_two, (onnx.And, onnx.Or))
    matmul = _two(onnx.MatMul)
    floor, abs, negative, relu = map(_one, (onnx.Floor, onnx.Abs, onnx.Neg, onnx.Relu))
    round_half_even, invert = map(_one, (onnx.Round, onnx.Not))
    identity = _one(onnx.Identity)

    # --- constants -----------------------------------------------------------------------------------------------

    def like(self, number: npt.ArrayLike, x: Value) -> Value:
        """A constant of x's element type."""
        return self.constant(number, x.type.storage)

    def vector(self, values: npt.ArrayLike) -> Value:
        """A vector of i64: axes, a shape."""
        return self.constant(np.asarray(values, np.int64).reshape(-1), i64)

    def stored(self, numbers: np.ndarray, element: ScalarType) -> Value:
        """A constant of whole numbers, kept in the smallest type that holds them and cast: runtimes do that when they
        load a file. Of a long row that climbs in small steps the steps are kept."""
        if numbers.size < _SMALL or element.bits <= 8:
            return self.constant(numbers, element)
        smaller = _holding(numbers)
        if numbers.ndim == 1 and numbers.size >= _LONG and smaller not in (i8, ui8):
            steps = np.diff(numbers.astype(np.int64), prepend=0)
            steps[0] = 0
            if _holding(steps) == i8:
                sums = self.cumulate(self.cast(self.constant(steps, i8), element), 0)
                return self.add(sums, self.like(numbers[0], sums))
        if smaller is None or smaller.bits >= element.bits:
            return self.constant(numbers, element)
        return self.cast(self.constant(numbers, smaller), element)

    # --- elementwise ---------------------------------------------------------------------------------------------

    def cast(self, x: Value, to: ScalarType) -> Value:
        """CAST; no operator if x is of the type."""
        return x if x.type.element == to else self.emit(onnx.Cast, [x], x.type.with_element(to))

    def clip(self, x: Value, low: float, high: float) -> Value:
        """CLIP to two numbers."""
        return self.emit(onnx.Clip, [x, self.like(low, x), self.like(high, x)])

    def where(self, condition: Value, x: Value, y: Value) -> Value:
        """WHERE; of int32 the sum of y and, where the condition holds, x - y: OpenVINO chooses from float32."""
        if x.type.storage == i32:
            return self.add(y, self.mul(self.cast(condition, i32), self.sub(x, y)))
        return self.emit(onnx.Where, [condition, x, y], x.type.storage)

    def mod(self, x: Value, y: Value, *, fmod: bool = False) -> Value:
        return self.emit(onnx.Mod, [x, y], fmod=int(fmod))

    def bit_shift(self, x: Value, places: Value, direction: str) -> Value:
        """BITSHIFT of unsigned integers."""
        return self.emit(onnx.BitShift, [x, places], direction=direction)

    def below_zero(self, x: Value) -> Value:
        return self.less(x, self.like(0, x))

    def floor_shift(self, x: Value, places: npt.ArrayLike) -> Value:
        """An i64 divided by 2^places, rounded down: BITSHIFT of x + 2^63, which is not negative."""
        shift = np.asarray(places, np.uint64)
        bias = np.uint64(1) << np.uint64(63)
        moved = self.cast(self.add(x, self.constant(np.uint64(bias).astype(np.int64), i64)), ui64)
        shifted = self.cast(self.bit_shift(moved, self.constant(shift, ui64), "RIGHT"), i64)
        return self.sub(shifted, self.constant((bias >> shift).astype(np.int64), i64))

    def powered(self, x: Value, places: int) -> Value:
        """A float divided by 2^places."""
        return self.mul(x, self.like(2.0**-places, x))

    # --- data movement -------------------------------------------------------------------------------------------

    def transpose(self, x: Value, perm: Sequence[int]) -> Value:
        """TRANSPOSE; no operator if the dims stay where they are."""
        if tuple(perm) == tuple(range(len(perm))):
            return x
        cast = x.producer
        if isinstance(cast, DequantizeLinear) and cast.x.is_constant:  # moved before, so that a cast is of a constant
            stored = self.constant(np.ascontiguousarray(cast.x.array.transpose(perm)), cast.x.type.storage)
            axis = {"axis": list(perm).index(cast.axis)} if "axis" in cast.attributes else {}
            return self.emit(DequantizeLinear, [stored, *cast.operands[1:]], f32, **axis)
        return self._stored(self.emit(onnx.Transpose, [x], perm=tuple(int(p) for p in perm)), x)

    def _stored(self, y: Value, x: Value) -> Value:
        """y, moved from x; after a dequantized x it is stored again, so that the move stands between casts."""
        cast = x.producer
        if not isinstance(cast, DequantizeLinear) or "axis" in cast.attributes or cast.x.is_constant:
            return y
        parameters = cast.operands[1:]
        stored = self.emit(QuantizeLinear, [y, *parameters], cast.x.type.storage)
        return self.emit(DequantizeLinear, [stored, *parameters], f32)

    def reshape(self, x: Value, shape: Sequence[int | None]) -> Value:
        """RESHAPE to a shape with at most one open dim, or one whose open dims are at their places already. Misfit if
        it has not as many elements."""
        wanted = tuple(shape)
        if x.type.shape == wanted and None not in wanted:
            return x
        if x.is_constant and None not in wanted and x.type.storage.bits >= 8:
            return constant_in_shape(x, wanted)
        if x.type.shape is not None and None not in wanted:
            reshaped(x.type.shape, wanted)
        y = self.emit(
            onnx.Reshape,
            [x, self.vector(_codes(x.type.shape, wanted))],
            TensorType(wanted, x.type.element),
            **({"allowzero": 1} if 0 in wanted else {}),
        )
        return self._stored(y, x)

    def slice(
        self,
        x: Value,
        axes: Sequence[int],
        starts: Sequence[int],
        ends: Sequence[int | None],
        steps: Sequence[int] | None = None,
    ) -> Value:
        """SLICE; an end of None is that of the dim."""
        strides = [1] * len(axes) if steps is None else list(steps)
        last = [(_GREATEST if s > 0 else _LEAST) if e is None else e for e, s in zip(ends, strides, strict=True)]
        return self.emit(onnx.Slice, [x, *map(self.vector, (starts, last, axes, strides))])

    def part(self, x: Value, axis: int, start: int, end: int | None) -> Value:
        """The elements from a start to an end of one axis."""
        return self.slice(x, [axis], [start], [end])

    def concat(self, xs: Sequence[Value], axis: int) -> Value:
        return xs[0] if len(xs) == 1 else self.emit(onnx.Concat, list(xs), axis=axis)

    def gather(self, x: Value, indices: Value, axis: int = 0) -> Value:
        return self.emit(onnx.Gather, [x, indices], axis=axis)

    def pad(
        self, x: Value, before: Sequence[int], after: Sequence[int], value: float = 0, mode: str = "constant"
    ) -> Value:
        """PAD; no operator if there is nothing to add."""
        if not any(before) and not any(after):
            return x
        return self.pad_by(x, self.vector([*before, *after]), value, mode)

    def pad_by(
        self, x: Value, pads: Value, value: float | Value = 0, mode: str = "constant", shape: Shape = None
    ) -> Value:
        """PAD by a vector of i64: what comes before each dim, then what comes after each. `value`: a number, or a
        scalar of x's type; `shape`: of the result, where the vector is computed. Types that PAD lacks are padded in
        wider ones."""
        storage = x.type.storage
        if storage in _PADDED_AS:
            wide = _PADDED_AS[storage]
            fill = self.cast(value, wide) if isinstance(value, Value) else value
            return self.cast(self.pad_by(self.cast(x, wide), pads, fill, mode, shape), storage)
        fills = [value if isinstance(value, Value) else self.like(value, x)] if mode == "constant" else []
        kind = None if shape is None else TensorType(shape, storage)
        return self.emit(onnx.Pad, [x, pads, *fills], kind, mode=mode)

    def tile(self, x: Value, repeats: Sequence[int]) -> Value:
        return x if all(r == 1 for r in repeats) else self.emit(onnx.Tile, [x, self.vector(repeats)])

    def expand(self, x: Value, shape: Sequence[int]) -> Value:
        return self.emit(onnx.Expand, [x, self.vector(shape)])

    def cumulate(self, x: Value, axis: int, *, exclusive: bool = False, reverse: bool = False) -> Value:
        """CUMSUM along an axis."""
        operands = [x, self.constant(axis, i64)]
        return self.emit(onnx.CumSum, operands, exclusive=int(exclusive), reverse=int(reverse))

    def reduce(self, kind: type[Operator], x: Value, axes: Sequence[int], *, keep: bool = True) -> Value:
        """REDUCESUM, REDUCEMAX, REDUCEMIN or REDUCEPROD."""
        return self.emit(kind, [x, self.vector(axes)], keepdims=int(keep))

    def conv(
        self,
        x: Value,
        weights: Value,
        bias: Value | None,
        *,
        strides: Sequence[int],
        pads: Sequence[int],
        dilations: Sequence[int],
        group: int = 1,
    ) -> Value:
        """CONV, NCHW × OIHW. pads: top, left, bottom, right."""
        operands = [x, weights] if bias is None else [x, weights, bias]
        return self.emit(
            onnx.Conv,
            operands,
            f32,
            strides=tuple(strides),
            pads=tuple(pads),
            dilations=tuple(dilations),
            group=group,
        )


def _holding(numbers: np.ndarray) -> ScalarType | None:
    """The smallest type that holds whole numbers, of up to 32 bits."""
    low, high = int(numbers.min()), int(numbers.max())
    return next((t for t in (i8, ui8, i16, i32) if t.minimum <= low and high <= t.maximum), None)


def _codes(source: Shape, wanted: Sequence[int | None]) -> list[int]:
    """A shape as RESHAPE takes it: a single open dim is -1, others are copied by 0."""
    open_dims = [i for i, d in enumerate(wanted) if d is None]
    if len(open_dims) <= 1:
        return [-1 if d is None else d for d in wanted]
    if source is None or any(i >= len(source) or source[i] is not None for i in open_dims):
        from tflq.base.errors import Refused

        raise Refused("more than one dim of a shape is not known")
    return [0 if d is None else d for d in wanted]
