"""Lowerings for targets that restrict plain builtins (`Target.builtins`): float32 and int32 alone, however a runtime
rounds sums and puts constants together (`docs/numerics.md`). No constant is added to a product by one, but at the edge,
where there is room. An op that is not here, or has no such form, is lowered as for other targets.

8-bit tensors are float twins. How real numbers become those, and back, is in `portable_edges.py`; what moves elements
moves those of twins, where there are any (`portable_movement.py`). Integers of 32 bits are taken apart in float32, in
which quotients by powers of two are exact, and FLOOR is a shift:

    x >> n        floor(a 2^(16 - n)) + floor(c 2^-n), of halves x = a 2^16 + c
    a b >> n      limbs of 11 bits, whose products and carries are below 2^24
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tflq.analysis.evaluate.registry import evaluate_op
from tflq.base import sized
from tflq.dialects.quant import Dcast, Qcast, RescaleF32, RescaleF64, RescaleFloat, Scast, Table2D, Table16Bit
from tflq.dialects.tfl import arithmetic
from tflq.dialects.tfl import movement as tfl
from tflq.dialects.tfl import pooling as tfl_reduction
from tflq.dialects.tfl.arithmetic import Floor
from tflq.dialects.tfl.casts import Dequantize
from tflq.dialects.tfl.convolution import DepthwiseConv2D
from tflq.dialects.tfl.indexing import Gather
from tflq.dialects.tosa.convolution import AvgPool2D
from tflq.dialects.tosa.elementwise import (
    ArithmeticRightShift,
    Clamp,
    Clz,
    LogicalLeftShift,
    Maximum,
    Minimum,
    Mul,
    Select,
)
from tflq.dialects.tosa.movement import Cast, ReduceMax, ReduceSum, Rescale, Resize, Table
from tflq.formats.tflite.lowering import portable_edges as edges
from tflq.formats.tflite.lowering import portable_movement as movement
from tflq.formats.tflite.lowering.arithmetic import elementwise
from tflq.formats.tflite.lowering.form_ops import KernelOps
from tflq.formats.tflite.lowering.lowering import (
    BYTES,
    KernelBuilder,
    Tflite,
    Twin,
    as_int32,
    centred,
    integers_of,
    twin_of,
)
from tflq.formats.tflite.lowering.rescale import input_range
from tflq.formats.tflite.lowering.rescale_float import fitted, float_rescales
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, f16, f32, i8, i16, i32, ui8
from tflq.numerics.float_basics import EXACT
from tflq.numerics.requantize.climb import Climb
from tflq.numerics.requantize.scaling import Bounds

Results = Value | list[Value] | None
Portable = Callable[[Any, Tflite], Results]


def portable(op: Op, k: Tflite) -> Results:
    """The op's results on a target that restricts plain builtins.

    None if the op has no form here, or is a kernel that the target keeps on quantized tensors.
    """
    if op.name.startswith("tfl.") and any(v.type.quantized for v in op.tensors):
        return None
    lower = FORMS.get(type(op)) or movement.form(op, k)
    if lower is None and isinstance(op, (tfl.Moved, Gather)) and not isinstance(op, tfl.Padding):
        return movement.moved_elements(op, k)
    return None if lower is None else lower(op, k)


def _half(op: Dequantize, k: Tflite) -> Value | None:
    """A constant of float16, in float32."""
    x = k.value(op.input)
    return k.constant(x.array, f32) if x.is_constant and x.type.storage is f16 else None


def _extreme(op: Maximum | Minimum | arithmetic.Extreme, k: Tflite) -> Value | None:
    operands = [k.value(v) for v in op.present_operands]
    storage = operands[0].type.storage
    if storage not in BYTES:
        return None
    emit = k.maximum if isinstance(op, (Maximum, arithmetic.Maximum)) else k.minimum
    return integers_of(k, Twin(elementwise(k, emit, *(centred(k, v, 0) for v in operands)), 0), storage)


def _clamp(op: Clamp, k: Tflite) -> Value | None:
    x = k.value(op.input)
    if x.type.storage not in BYTES:
        return None
    twin = twin_of(k, x) or Twin(k.cast(x, f32), 0)
    least, most = (k.constant(float(v - twin.offset), f32) for v in (op.min_val, op.max_val))
    return integers_of(k, Twin(k.minimum(k.maximum(twin.value, least), most), twin.offset), x.type.storage)


# Requantizations.


def _rescale(op: Rescale | RescaleFloat, k: Tflite) -> Value | None:
    x = _whole(k, op)
    if x is not None:
        fit = next(float_rescales(op, k, Bounds.of(*input_range(op, k)), convolution=False), None)
        if fit is not None:
            return fit.of_whole(k, x)
    if k.value(op.input).type.storage in BYTES:
        return _rescaled_entries(op, k)
    return _multiplied(op, k) if isinstance(op, Rescale) else None


def _multiplied(op: Rescale, k: Tflite) -> Value | None:
    """RESCALE in int32: the product by limbs, and shifts. Results of 16 bits have too many levels for a line, and sums
    may have more than 24 bits."""
    multiplier, shift = op.multiplier.astype(np.int64), op.shift.astype(np.int64)
    least, most = input_range(op, k)
    left = np.maximum(_WORD - shift, 0)
    fits = (max(-least, most, 1) << int(left.max())) < 1 << _WORD
    rounds = op.rounding_mode == "DOUBLE_ROUND" or (shift <= _WORD).all()
    if not (op.scale32 and fits and rounds and (multiplier >= 0).all()):
        return None
    x, to = _word(k, k.value(op.input), op.input_zp), op.output.type.storage
    if x is None:
        return None
    if left.any():
        x = k.mul(x, k.row(1 << left))
    x = _high_product(k, x, k.row(multiplier), _WORD)
    if (shift > _WORD).any():
        x = _halved(k, x, np.maximum(shift - _WORD, 0))
    if to is not i32:
        ends = (k.constant(v - op.output_zp) for v in (to.minimum, to.maximum))
        x = k.minimum(k.maximum(x, next(ends)), next(ends))
    if to in BYTES:
        return integers_of(k, Twin(k.cast(x, f32), op.output_zp), to)
    return k.cast(k.add(x, op.output_zp) if op.output_zp else x, to)


def _word(k: Tflite, x: Value, zero: int) -> Value | None:
    """An integer of up to 32 bits less its zero point, in int32."""
    storage = x.type.storage
    if storage in BYTES:
        return k.cast(centred(k, x, zero), i32)
    if storage not in (i16, i32):
        return None
    return k.sub(k.cast(x, i32), zero) if zero else k.cast(x, i32)


def _rescaled_entries(op: Rescale | RescaleFloat, k: Tflite) -> Value:
    """A table of the result of each 8-bit number, by channel, where no line is proven."""
    x = k.value(op.input)
    channels = op.multiplier.size if isinstance(op, Rescale) else np.size(op.scale)
    numbers = np.arange(x.type.storage.minimum, x.type.storage.maximum + 1).astype(x.type.storage.dtype)
    results = evaluate_op(op, [np.repeat(numbers[:, None], channels, 1)])
    assert results is not None
    index, entries = _index(k, x), results[0].astype(np.int64)
    if channels > 1:
        index = k.add(index, np.arange(channels) * numbers.size)
    return _entries(k, entries.T.reshape(-1), index, op.output.type.storage)


def _whole(k: Tflite, op: Rescale | RescaleFloat) -> Value | None:
    """The operand less its zero point in float32; None if that is not exact."""
    x, zero = k.value(op.input), op.input_zp if isinstance(op, Rescale) else 0
    if x.type.storage in BYTES:
        return centred(k, x, zero)
    least, most = input_range(op, k)
    if x.type.storage is not i32 or max(-least, most) >= EXACT:
        return None
    return k.cast(k.sub(x, zero) if zero else x, f32)


def _average(op: AvgPool2D, k: Tflite) -> Value | None:
    """Sums of windows by a depthwise convolution with ones, over their size, rounded half away from zero."""
    x = k.value(op.input)
    if x.type.storage not in BYTES or any(op.pad) or op.input_zp or op.output_zp:
        return None
    twin = twin_of(k, x) or Twin(k.cast(x, f32), 0)
    count, depth, storage = op.kernel[0] * op.kernel[1], (x.type.shape or (0,))[-1] or 0, x.type.storage
    ones, offset = k.constant(sized.ones((1, *op.kernel, depth)), f32), sized.full(depth, twin.offset * count)
    options = {"padding": "VALID", "stride_h": op.stride[0], "stride_w": op.stride[1], "depth_multiplier": 1}
    bias = k.constant(offset, f32)
    total = k.emit(DepthwiseConv2D, [twin.value, ones, bias], TensorType(op.output.type.shape, f32), **options)
    levels = np.arange(storage.minimum + 1, storage.maximum + 1)
    thresholds = np.where(levels > 0, levels * count - count // 2, (levels - 1) * count + count // 2 + 1)
    bounds = Bounds.of(storage.minimum * count, storage.maximum * count)
    form = fitted(k, Climb(thresholds[:, None], np.asarray([1 / count]), *bounds, storage.minimum))
    if form is None:
        return None
    return integers_of(k, Twin(form.apply_to_whole(total, KernelOps(k)), form.offset(storage.minimum)), storage)


# Tables.


def _table(op: Table, k: Tflite) -> Value | None:
    x, entries = k.value(op.input), op.table.array
    if x.type.storage not in BYTES:
        return None
    if x in k.twins and entries.dtype.itemsize == 1:
        return None  # by `rescale_float`
    return _entries(k, entries.astype(np.int64), _index(k, x), op.result.type.storage)


def _table_2d(op: Table2D, k: Tflite) -> Value | None:
    from tflq.formats.tflite.lowering.rescale_float import float_table_2d

    result = float_table_2d(op, k)
    if result is not None:
        return result
    x, y = (_index(k, k.value(v)) for v in (op.input1, op.input2))
    entries = op.table.array.reshape(-1).astype(np.int64)
    return _entries(k, entries, k.add(k.mul(x, 256), y), op.result.type.storage)


def _index(k: Tflite, x: Value) -> Value:
    """An 8-bit x less its least value, in int32."""
    return k.cast(centred(k, x, x.type.storage.minimum), i32)


def _table_of_16_bits(op: Table16Bit, k: Tflite) -> Value | None:
    """The bytes of the entries are tables of int8: as floats they would take twice the memory."""
    if op.result.type.storage is not i16 or not op.table.is_constant:
        return None
    index = k.add(k.cast(k.value(op.input), i32), -i16.minimum)
    entries = op.table.array.astype(np.int64)
    parts = entries >> 8, (entries & 255) + i8.minimum
    high, low = (k.cast(k.gather(k.constant(v, i8), index), i32) for v in parts)
    return k.cast(k.add(k.add(k.mul(high, 256), low), -i8.minimum), i16)


def _entries(k: Tflite, entries: np.ndarray, index: Value, storage: Any) -> Value:
    """Integers of a table by index: two tables of floats, where they have more than 24 bits."""
    if storage in BYTES:
        return integers_of(k, Twin(k.gather(k.constant(entries, f32), index), 0), storage)
    if np.abs(entries).max() < EXACT:
        return k.cast(k.cast(k.gather(k.constant(entries, f32), index), i32), storage)
    high, low = (k.cast(k.gather(k.constant(v, f32), index), i32) for v in (entries >> 16, entries & 0xFFFF))
    return k.cast(k.add(k.mul(high, 1 << 16), low), storage)


# Integers of 32 bits.


def _mul(op: Mul, k: Tflite) -> Value | None:
    a, b = k.value(op.input1), k.value(op.input2)
    if not 2 * _LIMB < op.shift <= 3 * _LIMB or any(v.type.storage is not i32 for v in (a, b)):
        return None
    return _high_product(k, a, b, op.shift)


def _right_shift(op: ArithmeticRightShift, k: Tflite) -> Value | None:
    """x >> n, with `round` half up: t - (t >> 1) with t = x >> (n - 1)."""
    x, amount = k.value(op.input1), k.value(op.input2)
    if x.type.storage is not i32:
        return None
    if not op.round:
        return _by_amount(k, x, amount)
    some = k.minimum(amount, 1)
    twice = _by_amount(k, x, k.sub(amount, some))
    return k.sub(twice, elementwise(k, k.mul, _by_number(k, twice, 1), some))


def _left_shift(op: LogicalLeftShift, k: Tflite) -> Value | None:
    x, amount = k.value(op.input1), k.value(op.input2)
    if op.result.type.storage is not i32 or amount.is_constant:
        return None
    powers = np.exp2(np.arange(32)) * np.where(np.arange(32) < 31, 1, -1)
    return elementwise(k, k.mul, x, k.cast(k.gather(k.constant(powers, f32), k.cast(amount, i32)), i32))


def _select(op: Select, k: Tflite) -> Value | None:
    """y + c (x - y) of int32, which wraps."""
    condition, x, y = (k.value(v) for v in (op.condition, op.on_true, op.on_false))
    if x.type.storage is not i32:
        return None
    apart = k.constant(x.array - y.array) if x.is_constant and y.is_constant else elementwise(k, k.sub, x, y)
    return elementwise(k, k.add, elementwise(k, k.mul, k.cast(condition, i32), apart), y)


def _clz(op: Clz, k: Tflite) -> Value | None:
    """Of x with a last dim of 1: how many powers are greater, and none where x is negative."""
    x = k.value(op.input)
    if x.type.dims[-1:] != (1,):
        return None
    above = k.cast(k.greater(1 << np.arange(31), x), f32)
    count = k.cast(k.reduce(tfl_reduction.Sum, above, [len(x.type.dims) - 1]), i32)
    positive = k.cast(k.greater_equal(x, 0), i32)
    return k.mul(k.add(count, 1), positive)


_MOST: Final = 1 << 13
"""The number of limbs whose sum is below 2^24."""


def _sum(op: ReduceSum, k: Tflite) -> Value | None:
    """The sum of int32, limb by limb where it may reach 2^24."""
    x, axis = k.value(op.input), op.axis
    count = op.input.type.dims[axis]
    if x.type.storage is not i32 or not count or count > _MOST:
        return None
    least, most = k.ranges.of(op.input)
    parts = [k.cast(x, f32)] if max(-least, most) * count < EXACT else _limbs(k, x)
    sums = [k.cast(k.reduce(tfl_reduction.Sum, part, [axis]), i32) for part in parts]
    total = sums[0]
    for i, part in enumerate(sums[1:], 1):
        total = k.add(total, k.mul(part, 1 << i * _LIMB))
    return total


def _greatest(op: ReduceMax, k: Tflite) -> Value | None:
    """FLOOR, of whole numbers, stands between it and QUANTIZE: OpenVINO makes one kernel of both, which is wrong."""
    x = k.value(op.input)
    twin = twin_of(k, x)
    if twin is None or x.is_constant:
        return None
    greatest = k.reduce(tfl_reduction.ReduceMax, twin.value, [op.axis])
    return integers_of(k, Twin(k.emit(Floor, [greatest]), twin.offset), x.type.storage)


def _cast(op: Cast, k: Tflite) -> Value | None:
    """From uint8 by the twin; to 8 bits as a twin. Products are in between even where it is int8: OpenVINO makes one
    kernel of MINIMUM on int32, CAST and QUANTIZE, and that one is wrong."""
    x, to = k.value(op.input), op.result.type.storage
    if x.type.storage is ui8 and to is i32:
        twin = twin_of(k, x)
        return None if twin is None else as_int32(k, twin)
    if x.type.storage is i32 and to in BYTES:
        least, most = k.ranges.of(op.input)
        if not (to.minimum <= least and most <= to.maximum):  # it wraps
            x = k.sub(x, to.minimum) if to.minimum else x
            x = k.sub(x, k.mul(_by_number(k, x, 8), 1 << 8))
            return integers_of(k, Twin(k.cast(x, f32), to.minimum), to)
        return integers_of(k, Twin(k.cast(x, f32), 0), to)
    return None


# Their parts in float32.


_WORD: Final = 31
"""Bits of an int32 without its sign."""
_LIMB: Final = 11
"""Bits of a limb."""
_HALF: Final = 16


def _quotient(k: KernelBuilder, x: Value, n: int) -> Value:
    """floor(x 2^-n) of float32."""
    return k.emit(Floor, [k.mul(x, 2.0**-n)])


def _high_and_low(k: KernelBuilder, x: Value, n: int) -> tuple[Value, Value]:
    """x = high 2^n + low of int32, in float32, n up to 22. The quotient may be one too many where float32 rounds x: low
    is from -64 to 2^n."""
    high = _quotient(k, k.cast(x, f32), n)
    return high, k.cast(k.sub(x, k.mul(k.cast(high, i32), 1 << n)), f32)


def _rest(k: KernelBuilder, x: Value, high: Value, n: int) -> Value:
    """x - high 2^n, in float32."""
    return k.sub(x, k.mul(high, float(1 << n)))


def _shifted(k: KernelBuilder, x: Value, down: Value, up: Value) -> Value:
    """x >> n for int32 x, n from 0 to 31: `down` 2^-n and `up` 2^(16 - n), float32. With x = a 2^16 + c, c not below 0,
    it is floor(a 2^(16 - n)) + floor(c 2^-n): the first is whole wherever the second is not 0."""
    high, low = _high_and_low(k, x, _HALF)
    less = _quotient(k, low, _HALF)
    high, low = k.add(high, less), _rest(k, low, less, _HALF)
    first, second = (k.emit(Floor, [elementwise(k, k.mul, *pair)]) for pair in ((high, up), (low, down)))
    return k.add(k.cast(first, i32), k.cast(second, i32))


def _by_amount(k: KernelBuilder, x: Value, amount: Value) -> Value:
    """x >> amount of int32, amounts 0 ... 31 that broadcast to x."""
    n = np.arange(32)
    down, up = (k.gather(k.constant(np.exp2(exponents), f32), amount) for exponents in (-n, _HALF - n))
    return _shifted(k, x, down, up)


def _by_number(k: KernelBuilder, x: Value, n: int) -> Value:
    """x >> n of int32, n from 0 to 31."""
    return _shifted(k, x, k.constant(2.0**-n, f32), k.constant(2.0 ** (_HALF - n), f32))


def _shifted_by(k: KernelBuilder, x: Value, n: np.ndarray) -> Value:
    """x >> n of int32, for a constant n [1 or C]."""
    return _shifted(k, x, k.row(np.exp2(-n), f32), k.row(np.exp2(_HALF - n), f32))


def _limbs(k: KernelBuilder, x: Value) -> tuple[Value, Value, Value]:
    """int32 as three limbs in float32, the least first; the last has the sign, and the second may be -1."""
    if x.is_constant:
        wide = x.array.astype(np.int64)
        low, middle, high = wide & 2047, (wide >> _LIMB) & 2047, wide >> 2 * _LIMB
        return k.constant(low, f32), k.constant(middle, f32), k.constant(high, f32)
    top, rest = _high_and_low(k, x, 2 * _LIMB)
    centre = _quotient(k, rest, _LIMB)
    return _rest(k, rest, centre, _LIMB), centre, top


def _halved(k: KernelBuilder, x: Value, n: np.ndarray) -> Value:
    """x 2^-n, halves away from zero, for a constant n [1 or C], 0 to 31."""
    some = np.minimum(n, 1)
    below = k.cast(k.greater(0, x), i32)
    twice = _shifted_by(k, k.sub(x, k.mul(below, k.row(some))), n - some)
    return k.sub(twice, k.mul(_by_number(k, twice, 1), k.row(some)))


def _high_product(k: KernelBuilder, a: Value, b: Value, shift: int) -> Value:
    """(a b + 2^(s - 1)) >> s, for s from 23 to 33: products of limbs have 22 bits, so sums of three and what is carried
    are below 2^24."""
    (a0, a1, a2), (b0, b1, b2) = (_limbs(k, v) for v in (a, b))

    def times(x: Value, y: Value) -> Value:
        return elementwise(k, k.mul, x, y)

    rest = shift - 2 * _LIMB
    total = k.add(k.add(times(a0, b1), times(a1, b0)), _quotient(k, times(a0, b0), _LIMB))
    half = k.constant(float(1 << (rest - 1)), f32)
    total = k.add(k.add(times(a1, b1), _quotient(k, total, _LIMB)), half)
    total = k.cast(_quotient(k, k.add(k.add(times(a0, b2), times(a2, b0)), total), rest), i32)
    fourth = k.cast(k.add(times(a1, b2), times(a2, b1)), i32)
    above = k.add(fourth, k.mul(k.cast(times(a2, b2), i32), 1 << _LIMB))
    return k.add(total, k.mul(above, 1 << (_LIMB - rest)))


FORMS: Final[dict[type[Op], Portable]] = {
    ArithmeticRightShift: _right_shift,
    AvgPool2D: _average,
    Cast: _cast,
    Clamp: _clamp,
    Clz: _clz,
    tfl.Concatenation: movement.concatenation,
    LogicalLeftShift: _left_shift,
    Maximum: _extreme,
    Minimum: _extreme,
    Mul: _mul,
    tfl.Pack: movement.pack,
    tfl.PadV2: movement.pad,
    tfl.Reshape: movement.reshape,
    tfl.Split: movement.split,
    tfl.Unpack: movement.unpack,
    ReduceMax: _greatest,
    ReduceSum: _sum,
    Rescale: _rescale,
    RescaleF64: _rescale,
    RescaleF32: _rescale,
    Resize: movement.resize,
    Dcast: edges.dequantize,
    Dequantize: _half,
    Qcast: edges.quantize,
    Scast: edges.scast,
    Select: _select,
    Table: _table,
    Table16Bit: _table_of_16_bits,
    Table2D: _table_2d,
    arithmetic.Maximum: _extreme,
    arithmetic.Minimum: _extreme,
}
"""By op: its form on float32 and int32; None where it has none."""
