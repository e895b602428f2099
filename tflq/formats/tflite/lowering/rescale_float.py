"""RESCALE and tables of 8 bits in float32, in the first form that is proven equal (`tflq.numerics.requantize`). Each
takes whole numbers in float32 and gives whole numbers, the float twin of the stored integers:

    MUL, [RELU_N1_TO_1, MUL, ADD,] ADD with RELU6 or RELU_N1_TO_1, MUL, FLOOR      `Clamped`, 0.5 to 0.8 ns

    RELU of sums that fall, MUL, ADD with RELU, FLOOR           `Falling`, where levels are few
    RELU, MUL, ADD, SUB with RELU, SUB                          `Fallen`, where the kernel multiplies in float32
    RELU of sums that fall, SUB with RELU, MUL, FLOOR           `Distance`, where constants may move
    SUB, MAXIMUM, MINIMUM; MUL, FLOOR; MUL, SUB; MUL, MUL, ADD, [MUL, ADD,] ADD, FLOOR, ADD         `Split`

In the last two, no constant is added to a product by one, so that none can be put before it. Sums may be asked for with
the other sign, or with a number added to each channel (`prepare`): a convolution does that in its weights and
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

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from tflq.dialects.quant import RescaleFloat, Table2D
from tflq.dialects.tosa import convolution as tosa
from tflq.dialects.tosa.elementwise import Clamp
from tflq.dialects.tosa.movement import Rescale, Table
from tflq.formats.tflite.lowering.form_ops import KernelOps
from tflq.formats.tflite.lowering.lowering import Tflite, Twin, centred, integers_of, twin_of
from tflq.formats.tflite.lowering.rescale import scaling_of
from tflq.ir.ops import Value, constant
from tflq.ir.types import f32, i32
from tflq.numerics.float_product import FloatProduct, fit_float_plane, fit_product_table, product_of
from tflq.numerics.requantize.clamped import ClampedToOne, ClampedToSix
from tflq.numerics.requantize.climb import Climb, climbs_of, table_climb
from tflq.numerics.requantize.distance import Distance
from tflq.numerics.requantize.falling import Falling
from tflq.numerics.requantize.float_forms import FloatForm
from tflq.numerics.requantize.rounded import Fallen, Rounded
from tflq.numerics.requantize.scaling import Bounds, Factor, Scaling
from tflq.numerics.requantize.split import Split

FLOAT32: Final[tuple[type[FloatForm], ...]] = (Falling, ClampedToSix, ClampedToOne)
"""Forms of a requantization where each operation is a kernel of its own, the best one first."""
MOVABLE: Final[tuple[type[FloatForm], ...]] = (Distance, Split)
"""Forms that hold wherever a runtime puts constants."""


def fitted(k: Tflite, climb: Climb, forms: tuple[type[FloatForm], ...] = MOVABLE) -> FloatForm | None:
    """The first form with a proof, from the cache of proofs if there is one."""
    for form in forms:
        fit = form.of_constants(k.remembered(form.constants, *climb[:5]))
        if fit is not None:
            return fit
    return None


# RESCALE.


@dataclass(frozen=True, slots=True)
class FloatRescale:
    """A RESCALE, with the clamp that is part of it, in float32; the result is a whole number, `offset` less than the
    stored one."""

    op: Rescale | RescaleFloat
    clamp: Clamp | None
    form: FloatForm
    offset: int

    def emit(self, k: Tflite, x: Value) -> Value:
        """The result for accumulators that are prepared, as integers, with a float twin; the ops count as selected."""
        twin = Twin(self.form.apply(x, KernelOps(k)), self.offset)
        result = k.fuse(self.op, integers_of(k, twin, self.op.output.type.storage))
        return self._clamped(k, result, twin)

    def of_whole(self, k: Tflite, x: Value) -> Value:
        """The result for accumulators as they are, where only the RESCALE is being selected."""
        twin = Twin(self.form.apply_to_whole(x, KernelOps(k)), self.offset)
        return self._clamped(k, integers_of(k, twin, self.op.output.type.storage), twin)

    def _clamped(self, k: Tflite, result: Value, twin: Twin) -> Value:
        if self.clamp is not None:
            result = k.fuse(self.clamp, result)
        k.twins[result] = twin
        return result


def float_rescales(
    op: Rescale | RescaleFloat, k: Tflite, accumulator: Bounds, *, convolution: bool
) -> Iterator[FloatRescale]:
    """A RESCALE of accumulators within bounds in float32, in the forms that are proven, the best one first.
    convolution: whether one prepares the accumulators."""
    s, clamp = scaling_of(op, op.factor, k, accumulator)
    low, high = accumulator.range
    if op.output.type.storage.bits != 8 or not s.result.low < s.result.high or not s.factor.rises:
        return
    if low < i32.minimum or high > i32.maximum:  # the kernel's accumulator wraps
        return
    for form in _forms(k, s, convolution=convolution):
        yield FloatRescale(op, clamp, form, form.offset(s.levels.low) + s.zero_out)


def _forms(k: Tflite, s: Scaling[Factor], *, convolution: bool) -> Iterator[FloatForm]:
    """A factor in float32 has the kernel's own operations, which need no search. A line with fewer operations comes
    before them, and other lines after them."""
    kernel: FloatForm | None
    if k.sums == "any":
        lines, shorter, kernel = MOVABLE, len(MOVABLE), Rounded.of(s)
    elif convolution:
        lines, shorter, kernel = FLOAT32, 1, Fallen.of_convolution(s)
    else:
        lines, shorter, kernel = FLOAT32, 0, Fallen.of(s)
    yield from _proven(k, s, lines if kernel is None else lines[:shorter])
    if kernel is not None:
        yield kernel
        yield from _proven(k, s, lines[shorter:])


def _proven(k: Tflite, s: Scaling[Factor], forms: tuple[type[FloatForm], ...]) -> Iterator[FloatForm]:
    """The first of some forms with a proof, if there is one."""
    fits = (fitted(k, climb, forms) for climb in (climbs_of(s) if forms else ()))
    yield from itertools.islice((fit for fit in fits if fit is not None), 1)


# Tables.


def float_table_2d(op: Table2D, k: Tflite) -> Value | None:
    """The integers of a sum or a product in float32, with their twin; None where no operand has a twin, or without a
    proof."""
    x, y = k.value(op.input1), k.value(op.input2)
    if x not in k.twins and y not in k.twins:
        return None
    if k.sums == "any" and (x.is_constant or y.is_constant):
        return None  # the next constant would meet it
    entries = op.table.array.reshape(256, 256).astype(np.int64)
    least, most = int(entries.min()), int(entries.max())
    if product_of(entries - least) is None:
        total = _sum(k, x, y, (entries - least).astype(np.min_scalar_type(most - least)))
    else:
        total = _product(k, x, y, k.searched(1, fit_product_table, entries - least, k.sums))
    return None if total is None else integers_of(k, Twin(total, least), op.result.type.storage)


def _sum(k: Tflite, x: Value, y: Value, table: np.ndarray) -> Value | None:
    twins = [twin_of(k, v) or Twin(k.cast(v, f32), 0) for v in (x, y)]
    first, second = (_numbers(v, twin) for v, twin in zip((x, y), twins, strict=True))
    fit = k.searched(1, fit_float_plane, table, first, second, k.sums)
    if fit is None:
        return None
    total = k.add(_times(k, twins[0].value, fit.m), _times(k, twins[1].value, fit.n))
    return fit.apply(total, KernelOps(k))


def _product(k: Tflite, x: Value, y: Value, fit: FloatProduct | None) -> Value | None:
    if fit is None:
        return None
    a, b = (centred(k, v, v.type.storage.minimum + place) for v, place in ((x, fit.a), (y, fit.b)))
    result = fit.g.apply_to_whole(k.mul(a, b), KernelOps(k))
    return k.add(result, fit.offset) if fit.offset else result


def _times(k: Tflite, x: Value, factor: np.float32) -> Value:
    return constant(x.array * factor) if x.is_constant else k.mul(x, factor)


def float_table(op: Table, k: Tflite) -> Value:
    """The integers of a table of the twin, with their own twin."""
    x, entries = k.value(op.input), op.table.array.astype(np.int64)
    twin = k.twins[x]
    result = _line(k, twin, _numbers(x, twin), entries)
    if result is None:
        offset = _read_less(op, k)
        index = k.cast(centred(k, x, x.type.storage.minimum), i32)
        result = Twin(k.gather(k.constant(entries - offset, f32), index), offset)
    return integers_of(k, result, op.result.type.storage)


def _line(k: Tflite, twin: Twin, numbers: np.ndarray, entries: np.ndarray) -> Twin | None:
    """A table that climbs as one line does, for the numbers of a twin; None if it does not, or without a proof."""
    climb = table_climb(entries, numbers)
    fit = None if climb is None else (ClampedToSix if k.sums == "separate" else Distance).fit(climb)
    return None if fit is None else Twin(fit.apply_to_whole(twin.value, KernelOps(k)), int(entries[0]))


def _numbers(x: Value, twin: Twin) -> np.ndarray:
    """The numbers that a twin stands for 8-bit ones with, in order, int64 [256]."""
    return x.type.storage.minimum - twin.offset + np.arange(256)


def _read_less(op: Table, k: Tflite) -> int:
    """The zero point that a convolution takes off the result, if one reads it."""
    readers = (r for r in k.readers(op.result) if isinstance(r, (tosa.Conv2D, tosa.DepthwiseConv2D)))
    return next((r.input_zp for r in readers), 0)
