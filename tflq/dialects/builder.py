"""Emitting ops: `emit` makes one and infers its result's type; the methods of `Builder` are short names of ops of the
integer form.

The ops keep TOSA 1.0's names and semantics. What TOSA passes as compile-time-constant operands (multiplier, shift,
zero points, perms, pad amounts ...) are attributes here. Shapes broadcast as numpy's; layouts are NHWC with OHWI
weights. `ext` holds the few numerics that TFLite has and TOSA lacks. The classes in `dialects/` say what each computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

import numpy as np

from tflq.dialects.declare import Operator
from tflq.dialects.inference import check_sizes, reshaped
from tflq.dialects.quant import Dcast, Qcast, Scast, Table16Bit, Truncate
from tflq.dialects.tosa.convolution import Conv2D, DepthwiseConv2D
from tflq.dialects.tosa.elementwise import (
    Add,
    ArithmeticRightShift,
    BitwiseAnd,
    Clamp,
    Clz,
    Equal,
    Greater,
    GreaterEqual,
    IntDiv,
    LogicalLeftShift,
    Maximum,
    Minimum,
    Mul,
    Select,
    Sub,
)
from tflq.dialects.tosa.movement import (
    Cast,
    Concat,
    Identity,
    ReduceMax,
    ReduceMin,
    ReduceSum,
    Rescale,
    Reshape,
    Slice,
    Table,
    Transpose,
)
from tflq.dialects.traits import SameElementType
from tflq.ir.ops import Location, Op, Value, constant
from tflq.ir.types import (
    SCALARS,
    ElementType,
    FunctionType,
    QuantizedType,
    ScalarType,
    Shape,
    TensorType,
    f32,
    i16,
    i32,
)
from tflq.numerics.fixed_point import Multiplier, Rounding

if TYPE_CHECKING:
    import numpy.typing as npt


Kind: TypeAlias = type[Operator] | str
"""The class of an op, or its name if no class declares it."""

Operand: TypeAlias = "Value | npt.ArrayLike"
"""Of elementwise ops: numbers are a constant of the element type that the other operands have."""

RescaleMode = Literal["SINGLE_ROUND", "DOUBLE_ROUND"]

_OPEN: Final = {element: TensorType(None, element) for element in SCALARS.values()}
"""The type of a result before the op infers it."""
_REDUCTIONS: Final[Mapping[str, type[Operator]]] = {"sum": ReduceSum, "max": ReduceMax, "min": ReduceMin}


def refined(declared: Shape, inferred: Shape) -> Shape:
    """The known dims of a tensor by two accounts; the first holds where they contradict each other."""
    if declared is None or inferred is None or len(declared) != len(inferred):
        return inferred if declared is None else declared
    return tuple(f if s is None else s for s, f in zip(declared, inferred, strict=True))


def _typed(like: TensorType, shape: Shape, element: ElementType) -> TensorType:
    return like if like.shape == shape and like.element is element else TensorType(shape, element)


class _Elements(dict[type[Operator], "ScalarType | int"]):
    """By class, the element type of its result as declared, or the number of the operand that has the same type: the
    first, where the declaration does not say."""

    def __missing__(self, kind: type[Operator]) -> ScalarType | int:
        self[kind] = element = self._declared(kind)
        return element

    def _declared(self, kind: type[Operator]) -> ScalarType | int:
        result = kind.result_slots[0]
        for types in result.types[:1]:
            if len(types.names) == 1:
                (name,) = types.names
                return SCALARS.get(name, 0)
            return next((slot.index for slot in kind.operand_slots if types.bound and types in slot.types), 0)
        same = kind.trait(SameElementType)
        return same.slots[0].index if same is not None and result in same.slots else 0


_ELEMENTS: Final = _Elements()


def constant_in_shape(x: Value, shape: Sequence[int | None]) -> Value:
    """A constant in another shape, on the same buffer. Misfit if the shape has not as many elements."""
    return Value(TensorType(reshaped(x.type.dims, shape), x.type.element), buffer=x.buffer)


def squeezed(values: np.ndarray) -> np.ndarray:
    """A scalar if all are the same."""
    flat = values if values.ndim else values.reshape(1)
    if flat.size > 1 and (flat.item(0) != flat.item(-1) or not (flat == flat[0]).all()):  # most differ at the ends
        return flat
    return flat[0]


class Emitter:
    """Appends ops to `ops`, each with the current `location`."""

    def __init__(self, ops: list[Op] | None = None) -> None:
        self.ops: list[Op] = [] if ops is None else ops
        self.location: Location | None = None
        self._constants: dict[tuple[object, ...], Value] = {}

    def op(
        self,
        kind: Kind,
        operands: Sequence[Value | None],
        types: Sequence[TensorType],
        attributes: Mapping[str, Any] | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> Op:
        """Any op, of given result types."""
        op = Op(
            kind if isinstance(kind, str) else kind.op_name,
            list(operands),
            [Value(t) for t in types],
            dict(attributes or {}),
            self.location,
            info=info or {},
        )
        self.ops.append(op)
        return op

    def emit(
        self,
        kind: Kind,
        operands: Sequence[Value | None],
        type: TensorType | ScalarType | None = None,
        **attributes: Any,
    ) -> Value:
        """Any op with one result. With an element type alone, the op infers the shape. Without a type, its
        declaration says the element type too, or it is that of the first operand. `Misfit` if the operands do not
        fit."""
        if isinstance(type, TensorType):
            check_sizes(type.shape)
            create, name = (Op, kind) if isinstance(kind, str) else (kind, kind.op_name)
            result = Value(type)
            op = create(name, list(operands), [result], attributes, self.location)
        else:
            first = operands[0]
            assert first is not None
            assert not isinstance(kind, str)
            element: ElementType | int = type or _ELEMENTS[kind]
            if isinstance(element, int):
                element = (operands[element] or first).type.element
            result = Value(_OPEN[element] if isinstance(element, ScalarType) else TensorType(None, element))
            op = kind(kind.op_name, list(operands), [result], attributes, self.location)
            shape = op.infer_shapes()
            assert not isinstance(shape, list)
            result.type = _typed(first.type, shape, element)
        self.ops.append(op)
        return result

    def constant(self, array: npt.ArrayLike, element: ScalarType = i32) -> Value:
        """A constant of a plain element type; equal small ones are one value."""
        if array.__class__ is int:
            known = self._constants.get((element, array))
            if known is None:
                known = self._constants[element, array] = self.constant(np.asarray(array, element.dtype), element)
            return known
        values = np.asarray(array, element.dtype, order="C")
        if values.nbytes > 64:
            return constant(values, element)
        key = (element, values.shape, values.tobytes())
        shared = self._constants.get(key)
        if shared is None:
            shared = self._constants[key] = constant(values, element)
        return shared

    def alike(self, *operands: Operand) -> list[Value]:
        """Operands of one element type, numbers as constants of that of the others, else of i32."""
        for operand in operands:
            if operand.__class__ is not Value:
                break
        else:
            return [*operands]  # type: ignore[list-item]
        element = next((v.type.storage for v in operands if isinstance(v, Value)), i32)
        return [v if isinstance(v, Value) else self.constant(v, element) for v in operands]


class Builder(Emitter):
    """Ops of the integer form."""

    # --- conversions ---------------------------------------------------------------------------------------------

    # Operand and result of a cast have one shape: what is known of either.

    def _cast(self, kind: type[Operator], x: Value, type: TensorType, **attributes: Any) -> Value:
        if x.type.shape == type.shape:
            return self.emit(kind, [x], type, **attributes)
        shape = refined(type.shape, x.type.shape)
        return self.emit(kind, [self.restated(x, shape)], _typed(type, shape, type.element), **attributes)

    def restated(self, x: Value, shape: Shape) -> Value:
        """The elements of x in a tensor of which another shape is known."""
        return x if x.type.shape == shape else self.emit(Identity, [x], _typed(x.type, shape, x.type.element))

    def scast(self, x: Value, type: TensorType) -> Value:
        """quant.scast: the same stored integers under another type (quantized ↔ its storage type)."""
        return self._cast(Scast, x, type)

    def dcast(self, x: Value) -> Value:
        """quant.dcast: (stored - zero_point) * scale, in the expressed type."""
        element = x.type.element
        if isinstance(element, (ScalarType, FunctionType)) or element.expressed is None:
            raise TypeError(f"'{x.name}' is not quantized")
        return self.emit(Dcast, [x], x.type.with_element(element.expressed))

    def qcast(self, x: Value, type: TensorType, rounding: Rounding = "half_away") -> Value:
        """quant.qcast: clamp(round(x / scale) + zero_point); by default half away from zero, as TFLite's kernels."""
        return self._cast(Qcast, x, type, rounding=rounding)

    def cast(self, x: Value, to: ScalarType) -> Value:
        """tosa.cast between plain types; narrowing wraps, a float is rounded half to even and saturates. No op if the
        type is that already.
        """
        return x if x.type.element == to else self.emit(Cast, [x], x.type.with_element(to))

    def truncate(self, x: Value, to: ScalarType) -> Value:
        """ext.truncate: a float's integer part, saturated."""
        return self.emit(Truncate, [x], x.type.with_element(to))

    def rescale(
        self,
        x: Value,
        multiplier: Multiplier | tuple[npt.ArrayLike, npt.ArrayLike],
        to: ScalarType = i32,
        *,
        input_zp: int = 0,
        output_zp: int = 0,
        rounding_mode: RescaleMode = "DOUBLE_ROUND",
        rounding: Rounding | None = None,
        input_range: tuple[int, int] | None = None,
    ) -> Value:
        """tosa.rescale by TFLite multiplier(s) (mantissa, left shift): saturate(apply_scale(x - input_zp) +
        output_zp) in `to`.

        Several multipliers are per index of the last axis. An i64 input takes the 16-bit form (`reduce_to_16_bits`).
        Attributes made: multiplier int32[1 or C], shift int8[1 or C] (right shift, 31 - left shift; 15 - left shift
        in the 16-bit form). `rounding` is a single one in that way, instead of the kernels'. `input_range`: bounds
        of x - input_zp, where they are known.
        """
        mantissa = np.atleast_1d(np.asarray(multiplier[0], np.int32))
        left = np.atleast_1d(np.asarray(multiplier[1], np.int64))
        scale32 = x.type.storage.bits <= 32
        if not scale32:
            from tflq.numerics.fixed_point import reduce_to_16_bits

            mantissa, rounding_mode = reduce_to_16_bits(mantissa).astype(np.int32), "SINGLE_ROUND"
        shift = ((31 if scale32 else 15) - left).astype(np.int8)
        return self.emit(
            Rescale,
            [x],
            x.type.with_element(to),
            multiplier=mantissa,
            shift=shift,
            input_zp=int(input_zp),
            output_zp=int(output_zp),
            rounding_mode=rounding_mode,
            scale32=scale32,
            per_channel=mantissa.size > 1,
            **({"rounding": rounding} if rounding else {}),
            **({"input_range": input_range} if input_range else {}),
        )

    def table(self, x: Value, table: np.ndarray) -> Value:
        """tosa.table: 256 entries for an 8-bit x, entry of the smallest value first; result of the table's dtype.

        int16 x: 513 entries of int16 at steps of 128, interpolated; result i32, table value << 7. ext.table_16bit if
        there are 65536.
        """
        entries = constant(np.ascontiguousarray(table))
        if table.size == 1 << 16:
            return self.emit(Table16Bit, [x, entries], x.type.with_element(entries.type.storage))
        interpolated = x.type.storage is i16
        return self.emit(Table, [x, entries], x.type.with_element(i32 if interpolated else entries.type.storage))

    # --- elementwise ---------------------------------------------------------------------------------------------

    def add(self, a: Operand, b: Operand) -> Value:
        """tosa.add: a + b."""
        return self.emit(Add, self.alike(a, b))

    def sub(self, a: Operand, b: Operand) -> Value:
        """tosa.sub: a - b."""
        return self.emit(Sub, self.alike(a, b))

    def mul(self, a: Operand, b: Operand, shift: int = 0) -> Value:
        """tosa.mul: (a * b + 2^(shift-1)) >> shift for i32 with a shift (product in 64 bits), else a * b."""
        return self.emit(Mul, self.alike(a, b), shift=shift)

    def maximum(self, a: Operand, b: Operand) -> Value:
        """tosa.maximum: the larger of two."""
        return self.emit(Maximum, self.alike(a, b))

    def minimum(self, a: Operand, b: Operand) -> Value:
        """tosa.minimum: the smaller of two."""
        return self.emit(Minimum, self.alike(a, b))

    def arithmetic_right_shift(self, a: Operand, b: Operand, *, round: bool = False) -> Value:
        """tosa.arithmetic_right_shift: a >> b; with `round`, rounded half up."""
        return self.emit(ArithmeticRightShift, self.alike(a, b), round=round)

    def logical_left_shift(self, a: Operand, b: Operand) -> Value:
        """tosa.logical_left_shift by 0..31 bits; bits shifted out are lost."""
        return self.emit(LogicalLeftShift, self.alike(a, b))

    def clz(self, x: Value) -> Value:
        """tosa.clz: leading zero bits of an i32."""
        return self.emit(Clz, [x])

    def bitwise_and(self, a: Operand, b: Operand) -> Value:
        """tosa.bitwise_and: the bits that both have."""
        return self.emit(BitwiseAnd, self.alike(a, b))

    def int_div(self, a: Operand, b: Operand) -> Value:
        """tosa.intdiv: a / b, truncated."""
        return self.emit(IntDiv, self.alike(a, b))

    def equal(self, a: Operand, b: Operand) -> Value:
        """tosa.equal: a == b, as booleans."""
        return self.emit(Equal, self.alike(a, b))

    def greater(self, a: Operand, b: Operand) -> Value:
        """tosa.greater: a > b, as booleans."""
        return self.emit(Greater, self.alike(a, b))

    def greater_equal(self, a: Operand, b: Operand) -> Value:
        """tosa.greater_equal: a >= b, as booleans."""
        return self.emit(GreaterEqual, self.alike(a, b))

    def select(self, condition: Value, a: Operand, b: Operand) -> Value:
        """tosa.select: a where the condition holds, else b."""
        return self.emit(Select, [condition, *self.alike(a, b)])

    def clamp(self, x: Value, low: int, high: int) -> Value:
        """tosa.clamp to [low, high]; no op if the type holds no more than that."""
        storage = x.type.storage
        if low <= storage.minimum and high >= storage.maximum:
            return x
        return self.emit(Clamp, [x], min_val=max(low, storage.minimum), max_val=min(high, storage.maximum))

    def identity(self, x: Value) -> Value:
        """tosa.identity: the same tensor under a new value."""
        return self.emit(Identity, [x])

    # --- multiply-accumulate -------------------------------------------------------------------------------------

    def conv2d(
        self,
        x: Value,
        weights: Value,
        bias: Value,
        out_shape: Shape,
        *,
        pad: Sequence[int] = (0, 0, 0, 0),
        stride: Sequence[int] = (1, 1),
        dilation: Sequence[int] = (1, 1),
        input_zp: int = 0,
        weight_zp: int = 0,
        acc: ScalarType = i32,
        depthwise: bool = False,
    ) -> Value:
        """tosa.conv2d, NHWC × OHWI (tosa.depthwise_conv2d: × [KH, KW, C, M]) + bias → `acc` (i32; i64 stands for
        TOSA's i48).

        `pad` is top, bottom, left, right, padded with input_zp; `stride` and `dilation` are y, x; `bias` is [O] of
        type `acc`.
        """
        return self.emit(
            DepthwiseConv2D if depthwise else Conv2D,
            [x, weights, bias],
            TensorType(out_shape, acc),
            pad=tuple(pad),
            stride=tuple(stride),
            dilation=tuple(dilation),
            input_zp=int(input_zp),
            weight_zp=int(weight_zp),
        )

    # --- data movement -------------------------------------------------------------------------------------------

    def reshape(self, x: Value, shape: Sequence[int | None]) -> Value:
        """tosa.reshape; at most one dim may be unknown (None)."""
        return self.emit(Reshape, [x], TensorType(tuple(shape), x.type.element))

    def transpose(self, x: Value, perms: Sequence[int]) -> Value:
        """tosa.transpose: axis i of the result is axis perms[i] of x."""
        return self.emit(Transpose, [x], perms=tuple(perms))

    def concat(self, xs: Sequence[Value], axis: int) -> Value:
        """tosa.concat along an axis."""
        return self.emit(Concat, xs, axis=axis)

    def slice(self, x: Value, start: Sequence[int], size: Sequence[int | None]) -> Value:
        """tosa.slice; a size of None is the rest of a dim that is not known."""
        return self.emit(Slice, [x], start=tuple(start), size=tuple(size))

    def reduce(self, kind: Literal["sum", "max", "min"], x: Value, axis: int) -> Value:
        """tosa.reduce_sum / _max / _min over one axis, which stays with size 1."""
        return self.emit(_REDUCTIONS[kind], [x], axis=axis)


# Quantization to and from 32 bits.

_LARGEST_FLOAT: Final = (1 << 31) - 128
"""The largest float32 that is an int32."""


class Arithmetic(Protocol):
    """An emitter of integers and floats."""

    def mul(self, a: Operand, b: Operand) -> Value: ...
    def add(self, a: Operand, b: Operand) -> Value: ...
    def sub(self, a: Operand, b: Operand) -> Value: ...
    def maximum(self, a: Operand, b: Operand) -> Value: ...
    def minimum(self, a: Operand, b: Operand) -> Value: ...
    def cast(self, x: Value, to: ScalarType) -> Value: ...


def float_difference(b: Arithmetic, x: Value, high: Value, zero: np.ndarray) -> Value:
    """An int32 less its zero point, rounded once to float32; `high` is x >> 16.

    The difference may be beyond int32, those of halves are not.
    """
    low = b.sub(x, b.mul(high, 1 << 16))
    upper, lower = b.sub(high, zero >> 16), b.sub(low, zero & 0xFFFF)
    return b.add(b.mul(b.cast(upper, f32), np.float32(1 << 16)), b.cast(lower, f32))


def saturated_sum(b: Arithmetic, y: Value, zero: np.ndarray, low: int, high: int) -> Value:
    """A whole float32 plus the zero point, within [low, high], as int32.

    Where y is beyond int32 the sum may be within it: `rest`, the part of y beyond, is added last. No sum wraps, and
    all are exact.
    """
    if not zero.any() and (low, high) == (i32.minimum, i32.maximum):
        return b.cast(y, i32)
    point = zero.astype(np.int64)
    least, most = low - point, high - point
    inside = b.minimum(b.maximum(y, np.float32(i32.minimum)), np.float32(_LARGEST_FLOAT))
    whole = b.cast(inside, i32)
    if (least > i32.minimum).any():
        whole = b.maximum(whole, np.maximum(least, i32.minimum).astype(np.int32))
    if (most < _LARGEST_FLOAT).any():
        whole = b.minimum(whole, np.minimum(most, i32.maximum).astype(np.int32))
    total = b.add(whole, zero) if zero.any() else whole
    below, above = np.minimum(least - i32.minimum, 0), np.maximum(most - _LARGEST_FLOAT, 0)
    if not below.any() and not above.any():
        return total
    rest = b.cast(b.sub(y, inside), i32)
    return b.add(total, b.minimum(b.maximum(rest, below.astype(np.int32)), above.astype(np.int32)))


# The reusable fallback: an op on quantized tensors as casts around what computes it in floats, as the specification of
# the `quant` dialect has it ("overcoming limited quantization support"). Each stage says what the casts are:
# `quant.dcast` and `quant.qcast` between ops of any dialect, those of the integer form in legalization.


Pattern: TypeAlias = Callable[[Sequence[Value | None], Sequence[TensorType]], Sequence[Value]]
"""Emits what computes an op in floats, from its operands and the types of its results; answers the results."""


class Casts(Protocol):
    """Casts of values into floats and back; values without quantization stay."""

    def real(self, value: Value) -> Value:
        """An operand, in float if it is quantized."""

    def stored(self, computed: Value, result: Value) -> Value:
        """The value in the place of a result of the op, from the float that was computed for it."""


def through_floats(op: Op, casts: Casts, pattern: Pattern) -> list[Value]:
    """The results of an op, computed by a pattern for floats."""
    operands = [None if value is None else casts.real(value) for value in op.operands]
    results = pattern(operands, [expressed(value.type) for value in op.results])
    return [casts.stored(new, old) for old, new in zip(op.results, results, strict=True)]


def expressed(type: TensorType) -> TensorType:
    """The type that a quantized type expresses; any other as it is."""
    element: QuantizedType = type.element  # type: ignore[assignment]
    return type.with_element(element.expressed) if type.quantized else type
