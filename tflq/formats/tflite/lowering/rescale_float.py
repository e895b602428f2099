"""RESCALE and tables of 8 bits in float32, where lines of float32 numbers are proven equal
(`tflq.numerics.float_requantize`, `float_falling`). Each line takes whole numbers in
float32 and gives whole numbers, the float twin of the stored integers:

    MUL, [RELU_N1_TO_1, MUL, ADD,] ADD with RELU6 or RELU_N1_TO_1, MUL, FLOOR        0.5 to 0.8 ns per element

    RELU of sums that fall, MUL, ADD with RELU, FLOOR           `float_falling`, where levels are few
    RELU of sums that fall, SUB with RELU, MUL, FLOOR           `float_falling`, where constants may move
    SUB, MAXIMUM, MINIMUM; MUL, FLOOR; MUL, SUB; MUL, MUL, ADD, [MUL, ADD,] ADD, FLOOR, ADD         `float_falling`

In the last two, no constant is added to a product by one, so that none can be put before it. Sums may be asked for with
the other sign, or with a number added to each channel (`falls`, `added`): a convolution does that in its weights and
bias. Every operation is a kernel of its own and rounds once, with any kernels and any delegate that computes in
float32.

Tables are in float32 kernels where an operand is there already, as a float twin:

    ext.table_2d that is a plane, rounded (`tflq.numerics.float_product`): ADD, SUB
        MUL, MUL, ADD, ADD with RELU6, MUL, FLOOR        1 ns per element, where the table takes 4
    tosa.table that climbs like a line: QUANTIZE, RELU and its kin
        MUL, ADD with RELU6, MUL, FLOOR                  .5 ns, where the table takes 3.5
    any other tosa.table
        CAST, GATHER of floats

Apart from `rescale.py` and `tables.py`, since the searches for lines are imported for `--mac float32` only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from tflq.dialects.quant import RescaleF64, Table2D
from tflq.dialects.tfl.activation import Relu, ReluN1To1
from tflq.dialects.tfl.arithmetic import Floor
from tflq.dialects.tfl.convolution import DepthwiseConv2D
from tflq.dialects.tosa import convolution as tosa
from tflq.dialects.tosa.elementwise import Clamp
from tflq.dialects.tosa.movement import Rescale, Table
from tflq.formats.tflite.lowering.im2col import Geometry
from tflq.formats.tflite.lowering.lowering import KernelBuilder, Kernels, Twin, centred, integers_of, twin_of
from tflq.formats.tflite.lowering.matmul import conv_options
from tflq.formats.tflite.lowering.rescale import result_range
from tflq.ir.core import Value, constant
from tflq.ir.types import f32, i32
from tflq.numerics.float_falling import (
    ClippedRequantization,
    DistanceRequantization,
    FallingRequantization,
    SplitRequantization,
    distance_arrays,
    falling_arrays,
    fit_distance,
    of_split_arrays,
    split_arrays,
)
from tflq.numerics.float_product import FloatProduct, fit_float_plane, fit_product_table, product_of
from tflq.numerics.float_requantize import (
    N1_TO_1,
    RELU6,
    FloatRequantization,
    fit_float_requantization,
    of_arrays,
    requantization_arrays,
    table_line,
)
from tflq.numerics.staircase import float_thresholds, rescale_thresholds

_IMAGE: Final = 4
"""Dims of an image: batch, rows, columns, channels."""
_SHORT: Final = 128
"""Channels up to which a constant for each costs a kernel more than a number for all."""
_POINT: Final = Geometry((1, 1), (0, 0, 0, 0), (1, 1), (1, 1))

Line: TypeAlias = FloatRequantization | FallingRequantization | DistanceRequantization | SplitRequantization


def falls(fit: Line) -> bool:
    """Whether a line wants numbers with the other sign, and 0 where they are negative then."""
    return isinstance(fit, (FallingRequantization, DistanceRequantization))


def added(fit: Line) -> np.ndarray:
    """The number to add to those that a line takes, of the sign that it wants, float32 [1 or C]."""
    if isinstance(fit, (FallingRequantization, DistanceRequantization)):
        return fit.h
    if isinstance(fit, SplitRequantization):
        return -fit.h
    return np.zeros(1, np.float32) if fit.a is None else -fit.a


def on_whole(k: KernelBuilder, x: Value, fit: Line) -> Value:
    """`fit` of whole numbers in float32."""
    if falls(fit):
        return stepped(k, k.sub(k.row(added(fit), f32), x, "RELU"), fit)
    number = added(fit)
    return stepped(k, k.add(x, k.row(number, f32)) if number.any() else x, fit)


def stepped(k: KernelBuilder, x: Value, fit: Line) -> Value:
    """`fit` of whole numbers in float32 that have what it adds (`added`), and the sign that it wants (`falls`)."""
    if isinstance(fit, SplitRequantization):
        return _split(k, x, fit)
    if isinstance(fit, DistanceRequantization):
        total = k.mul(k.sub(k.row(fit.q, f32), x, "RELU"), k.row(fit.m, f32))
    elif isinstance(fit, FallingRequantization):
        total = k.add(k.mul(x, k.row(-fit.m, f32)), k.row(fit.c, f32), "RELU")
    else:
        total = _clamped(k, x, fit)
    return k.emit(Floor, [total])


def _clamped(k: KernelBuilder, x: Value, fit: FloatRequantization) -> Value:
    total, rest = k.mul(x, k.row(fit.m, f32)), k.row(fit.c, f32)
    if fit.e is not None:
        rest = _of_sign(k, _sign(k, x, fit.a), fit.e, fit.c)
    total = k.add(total, rest, fit.clamp.activation)
    return k.mul(total, k.row(fit.gain, f32))


def _of_sign(k: KernelBuilder, sign: Value, e: np.ndarray, c: np.ndarray) -> Value:
    """c + e, c or c - e. The product by a sign is exact, so a kernel may round once or twice: where an image has few
    channels, DEPTHWISE_CONV_2D is MUL and ADD in one."""
    channels = (sign.type.shape or (None,))[-1] or 0
    if sign.type.rank != _IMAGE or not 1 < e.size == c.size == channels <= _SHORT:
        return k.add(k.mul(sign, k.row(e, f32)), k.row(c, f32))
    constants = k.constant(e.reshape(1, 1, 1, -1), f32), k.constant(c, f32)
    options = conv_options(_POINT, "VALID") | {"depth_multiplier": 1}
    return k.emit(DepthwiseConv2D, [sign, *constants], sign.type, **options)


def _split(k: KernelBuilder, x: Value, fit: SplitRequantization) -> Value:
    u = k.minimum(k.maximum(x, k.row(fit.low, f32)), k.row(fit.high, f32))
    n = k.emit(Floor, [k.mul(u, k.row(fit.p, f32))])
    r = k.sub(u, k.mul(n, k.row(fit.step, f32)))
    rest = k.add(k.mul(r, k.row(fit.m, f32)), k.mul(n, k.row(fit.d, f32)))
    if fit.e is not None:
        positive = k.minimum(k.emit(Relu, [n]), k.row(1, f32))
        rest = k.add(rest, k.mul(positive, k.row(fit.e, f32)))
    return k.add(n, k.emit(Floor, [k.add(rest, k.row(fit.c, f32))]))


def _sign(k: KernelBuilder, x: Value, a: np.ndarray | None) -> Value:
    """The sign of x + a, whole numbers."""
    if a is not None and a.any():
        return k.add(x, k.row(a, f32), N1_TO_1.activation)
    return k.emit(ReluN1To1, [x])


# RESCALE.


@dataclass(frozen=True, slots=True)
class FloatRescale:
    """A RESCALE, with the clamp that is part of it, in float32; the result is a whole number, `offset` less than the
    stored one."""

    op: Rescale | RescaleF64
    clamp: Clamp | None
    fit: Line
    offset: int

    @property
    def falls(self) -> bool:
        """Whether accumulators are to have the other sign, and to be 0 where they are negative then."""
        return falls(self.fit)

    @property
    def added(self) -> np.ndarray:
        """The number to add to accumulators of the sign asked for, float32 [1 or C]."""
        return added(self.fit)

    @property
    def live(self) -> np.ndarray:
        """Whether a channel's result depends on its accumulators, bool [1 or C]."""
        return self.fit.live if isinstance(self.fit, DistanceRequantization) else self.fit.m > 0

    def emit(self, k: Kernels, x: Value) -> Value:
        """The result for accumulators as asked for, as integers, with a float twin; the ops count as selected."""
        twin = Twin(stepped(k, x, self.fit), self.offset)
        result = k.fuse(self.op, integers_of(k, twin, self.op.output.type.storage))
        return self._clamped(k, result, twin)

    def of_whole(self, k: Kernels, x: Value) -> Value:
        """The result for accumulators as they are, where only the RESCALE is being selected."""
        twin = Twin(on_whole(k, x, self.fit), self.offset)
        return self._clamped(k, integers_of(k, twin, self.op.output.type.storage), twin)

    def _clamped(self, k: Kernels, result: Value, twin: Twin) -> Value:
        if self.clamp is not None:
            result = k.fuse(self.clamp, result)
        k.twins[result] = twin
        return result


def float_rescale(op: Rescale | RescaleF64, k: Kernels, low: np.ndarray, high: np.ndarray) -> FloatRescale | None:
    """A RESCALE of accumulators that are in [low, high], int64 [1 or C], in float32; None without a proof."""
    least, most, clamp = result_range(op, k)
    if op.output.type.storage.bits != 8 or not least < most:
        return None
    if low.min() < i32.minimum or high.max() > i32.maximum:  # the kernel's accumulator wraps
        return None
    steps = _Steps.of(op, least, most)
    if steps is None:
        return None
    attempts = [(N1_TO_1, True)] if most - least == 255 else []
    if least == op.output_zp or not attempts:
        attempts.insert(0, (RELU6, False))
    low, high, _ = np.broadcast_arrays(low, high, steps.slope)
    ranges = [(low.min(keepdims=True), high.max(keepdims=True))] if steps.slope.size == 1 < low.size else []
    for bounds in (*ranges, (low, high)):
        thresholds, slope = (np.broadcast_to(v, (*v.shape[:-1], bounds[0].size)) for v in steps)
        if k.sums == "any":
            line = movable_line(k, thresholds, slope, *bounds, least - op.output_zp)
            if line is not None:
                return FloatRescale(op, clamp, line[0], line[1] + op.output_zp)
            continue
        falling = k.remembered(falling_arrays, thresholds, slope, *bounds)
        if falling:
            return FloatRescale(op, clamp, FallingRequantization(*falling), least)
        for kind, origins in attempts:
            arrays = k.remembered(requantization_arrays, thresholds, slope, *bounds, kind.activation, origins)
            if arrays:
                return FloatRescale(op, clamp, of_arrays(arrays, kind.activation), least + kind.middle)
    return None


def movable_line(
    k: Kernels, thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray, bottom: int
) -> tuple[DistanceRequantization | SplitRequantization, int] | None:
    """A line that holds wherever constants are put, and the offset by which its results are less than levels.

    The levels from `bottom` + 1 on have thresholds. None without a proof.
    """
    distance = k.remembered(distance_arrays, thresholds, slope, low, high)
    if distance:
        return DistanceRequantization(*distance), bottom
    parts = k.remembered(split_arrays, thresholds, slope, low, high, bottom)
    return (of_split_arrays(parts), 0) if parts else None


class _Steps(NamedTuple):
    """The thresholds of a rescaling, int64 [L, C], and levels per unit, float64 [C]; C is 1 for all channels alike."""

    thresholds: np.ndarray
    slope: np.ndarray

    @classmethod
    def of(cls, op: Rescale | RescaleF64, least: int, most: int) -> _Steps | None:
        levels = np.arange(least - op.output_zp + 1, most - op.output_zp + 1)
        if isinstance(op, RescaleF64):
            scale = np.atleast_1d(np.asarray(op.scale, np.float64))
            return cls(float_thresholds(levels, scale), scale)
        multiplier, shift = op.multiplier.astype(np.int64), op.shift.astype(np.int64)
        if (multiplier < 0).any():
            return None
        twice = op.rounding_mode == "DOUBLE_ROUND" and op.scale32
        return cls(rescale_thresholds(levels, multiplier, shift, double_round=twice), np.ldexp(multiplier, -shift))


# Tables.


def float_table_2d(op: Table2D, k: Kernels) -> Value | None:
    """The integers of a sum or a product in float32, with their twin; None where no operand has a twin, or without a
    proof."""
    x, y = k.value(op.input1), k.value(op.input2)
    if x not in k.twins and y not in k.twins:
        return None
    if k.sums == "any" and (x.is_constant or y.is_constant):
        return None  # the next constant would meet it
    entries = op.table.array.reshape(256, 256).astype(np.int64)
    least = int(entries.min())
    if product_of(entries - least) is None:
        total = _sum(k, x, y, entries - least)
    else:
        total = _product(k, x, y, k.searched(1, fit_product_table, entries - least, k.sums))
    return None if total is None else integers_of(k, Twin(total, least), op.result.type.storage)


def _sum(k: Kernels, x: Value, y: Value, table: np.ndarray) -> Value | None:
    twins = [twin_of(k, v) or Twin(k.cast(v, f32), 0) for v in (x, y)]
    first, second = (_numbers(v, twin) for v, twin in zip((x, y), twins, strict=True))
    fit = k.searched(1, fit_float_plane, table, first, second, k.sums)
    if fit is None:
        return None
    total = k.add(_times(k, twins[0].value, fit.m), _times(k, twins[1].value, fit.n))
    total = k.add(total, fit.c, RELU6.activation)
    total = k.mul(total, fit.gain)
    return k.emit(Floor, [total])


def _product(k: Kernels, x: Value, y: Value, fit: FloatProduct | None) -> Value | None:
    if fit is None:
        return None
    assert not isinstance(fit.g, ClippedRequantization)  # made for another rounding
    a, b = (centred(k, v, v.type.storage.minimum + place) for v, place in ((x, fit.a), (y, fit.b)))
    result = on_whole(k, k.mul(a, b), fit.g)
    return k.add(result, fit.offset) if fit.offset else result


def _times(k: Kernels, x: Value, factor: np.float32) -> Value:
    return constant(x.array * factor) if x.is_constant else k.mul(x, factor)


def float_table(op: Table, k: Kernels) -> Value:
    """The integers of a table of the twin, with their own twin."""
    x, entries = k.value(op.input), op.table.array.astype(np.int64)
    twin = k.twins[x]
    result = _line(k, twin, _numbers(x, twin), entries)
    if result is None:
        offset = _read_less(op, k)
        index = k.cast(centred(k, x, x.type.storage.minimum), i32)
        result = Twin(k.gather(k.constant(entries - offset, f32), index), offset)
    return integers_of(k, result, op.result.type.storage)


def _line(k: Kernels, twin: Twin, numbers: np.ndarray, entries: np.ndarray) -> Twin | None:
    """A table that climbs as one line does, for the numbers of a twin; None if it does not, or without a proof."""
    line = table_line(entries, numbers)
    if line is None:
        return None
    thresholds, slope = line
    ends = thresholds[:, None], np.asarray([slope]), numbers[:1], numbers[-1:]
    fit = fit_float_requantization(*ends, RELU6) if k.sums == "separate" else fit_distance(*ends)
    return None if fit is None else Twin(on_whole(k, twin.value, fit), int(entries[0]))


def _numbers(x: Value, twin: Twin) -> np.ndarray:
    """The numbers that a twin stands for 8-bit ones with, in order, int64 [256]."""
    return x.type.storage.minimum - twin.offset + np.arange(256)


def _read_less(op: Table, k: Kernels) -> int:
    """The zero point that a convolution takes off the result, if one reads it."""
    readers = (r for r in k.readers(op.result) if isinstance(r, (tosa.Conv2D, tosa.DepthwiseConv2D)))
    return next((r.input_zp for r in readers), 0)
