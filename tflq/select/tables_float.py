"""Tables of 8 bits are in float32 kernels where an operand is there already, as a float twin:

    ext.table_2d that is a plane, rounded (`tflq.numerics.float_product`): ADD, SUB
        MUL, MUL, ADD, ADD with RELU6, MUL, FLOOR        1 ns per element, where the table takes 4
    tosa.table that climbs like a line (`tflq.numerics.float_requantize`): QUANTIZE, RELU and its kin
        MUL, ADD with RELU6, MUL, FLOOR                  .5 ns, where the table takes 3.5
    any other tosa.table
        CAST, GATHER of floats

Apart from `tables.py`, since the searches that they need are imported for `--mac float32` only.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.quant import Table2D
from tflq.dialects.tfl.arithmetic import Floor
from tflq.dialects.tosa.convolution import Conv2D, DepthwiseConv2D
from tflq.dialects.tosa.movement import Table
from tflq.ir.core import Value, constant
from tflq.ir.types import f32, i32
from tflq.numerics.float_falling import ClippedRequantization, fit_distance
from tflq.numerics.float_product import FloatProduct, fit_float_plane, fit_float_product, product_of
from tflq.numerics.float_requantize import RELU6, fit_float_requantization, table_line
from tflq.select.lines_float import on_whole
from tflq.select.lowering import Kernels, Twin, centred, integers_of, twin_of


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
    product = product_of(entries - least)
    if product is None:
        made = _sum(k, x, y, entries - least)
    else:
        made = _product(k, x, y, fit_float_product(entries - least, product, k.sums))
    return None if made is None else integers_of(k, Twin(made, least), op.result.type.storage)


def _sum(k: Kernels, x: Value, y: Value, table: np.ndarray) -> Value | None:
    twins = [twin_of(k, v) or Twin(k.cast(v, f32), 0) for v in (x, y)]
    first, second = (_numbers(v, twin) for v, twin in zip((x, y), twins, strict=True))
    fit = fit_float_plane(table, first, second, k.sums)
    if fit is None:
        return None
    total = k.add(_times(k, twins[0].value, fit.m), _times(k, twins[1].value, fit.n))
    total = k.add(total, k.constant(fit.c, f32), RELU6.activation)
    total = k.mul(total, k.constant(fit.gain, f32))
    return k.emit(Floor, [total])


def _product(k: Kernels, x: Value, y: Value, fit: FloatProduct | None) -> Value | None:
    if fit is None:
        return None
    assert not isinstance(fit.g, ClippedRequantization)  # made for another rounding
    a, b = (centred(k, v, v.type.storage.minimum + place) for v, place in ((x, fit.a), (y, fit.b)))
    made = on_whole(k, k.mul(a, b), fit.g)
    return k.add(made, k.constant(fit.offset, f32)) if fit.offset else made


def _times(k: Kernels, x: Value, factor: np.float32) -> Value:
    return constant(x.array * factor) if x.is_constant else k.mul(x, k.constant(factor, f32))


def float_table(op: Table, k: Kernels) -> Value:
    """The integers of a table of the twin, with their own twin."""
    x, entries = k.value(op.input), op.table.array.astype(np.int64)
    twin = k.twins[x]
    made = _line(k, twin, _numbers(x, twin), entries)
    if made is None:
        offset = _read_less(op, k)
        index = k.cast(centred(k, x, x.type.storage.minimum), i32)
        made = Twin(k.gather(k.constant(entries - offset, f32), index), offset)
    return integers_of(k, made, op.result.type.storage)


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
    readers = (r for r in k.readers(op.result) if isinstance(r, (Conv2D, DepthwiseConv2D)))
    return next((r.input_zp for r in readers), 0)
