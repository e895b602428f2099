"""Tables: lines and planes in float32 where they are proven, else GATHER.

    tosa.table that climbs like a line            SUB, CLIP, MUL, ADD, FLOOR                  (`Clipped`)
    ext.table_2d that is a plane, rounded: ADD    MUL, MUL, ADD, ADD, CLIP, MUL, FLOOR        (`float_product`)
    ext.table_2d that climbs with a product: MUL  MUL of both less their zero points, a line
    any other                                     CAST to int32, GATHER

In GATHER negative indices count from the end of a table, so that a table of int8 needs no sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.dialects.quant import RescaleF32, RescaleF64, Table2D, Table16Bit
from tflq.dialects.tosa.movement import Rescale, Table
from tflq.formats.onnx.context import EXACT, Layout, Onnx, OnnxTensor, TensorForm, lowering
from tflq.formats.onnx.form_ops import OnnxOps
from tflq.ir.ops import Op, Value
from tflq.ir.types import f32, i16, i32
from tflq.numerics.float_product import FloatProduct, fit_float_plane, fit_product_table, product_of
from tflq.numerics.requantize.climb import table_climb
from tflq.numerics.requantize.falling import Clipped

_FEW = 4
"""Ops of two sources that are as cheap as a table of 65,536 entries."""


def table_pays(ops: Sequence[Op], sources: int) -> bool:
    """Whether a table is worth it: in the place of two ops or more, and of two sources where they requantize."""
    if ops[-1].result.type.storage.bits != 8:
        return False
    rescales = any(isinstance(op, (Rescale, RescaleF64, RescaleF32)) for op in ops)
    return len(ops) > 1 if sources == 1 else rescales and len(ops) > _FEW


@lowering(Table)
def table(op: Table, t: Onnx) -> OnnxTensor:
    """Of 8 bits; of int16 between two entries of 513."""
    entries = op.table.array
    if op.input.type.storage == i16:
        return _interpolated(op, t, entries)
    return _line(op, t) or looked_up(t, entries, -op.input.type.storage.minimum, op.input, op.result)


@lowering(Table16Bit)
def table_16bit(op: Table16Bit, t: Onnx) -> OnnxTensor:
    return looked_up(t, op.table.array, 1 << 15, op.input, op.result)


def looked_up(t: Onnx, entries: np.ndarray, start: int, index: Value, result: Value) -> OnnxTensor:
    """The entries at start + index, in the layout of the index."""
    layout = t.layout([index], result)
    return _gathered(t, entries, start, t.operand(index, i32, layout), result, first=layout.first)


def _gathered(t: Onnx, entries: np.ndarray, start: int, index: Value, result: Value, *, first: bool) -> OnnxTensor:
    """The table begins with the entry of index 0, and what is before it follows at its end."""
    low, high = int(entries.min()), int(entries.max())
    element = f32 if max(-low, high) <= EXACT else i32

    def rolled() -> Value:
        if not start or entries.size <= 256:
            return t.stored(np.roll(entries, -start), element)
        whole = t.stored(entries, element)
        return t.concat([t.part(whole, 0, start, None), t.part(whole, 0, 0, start)], 0)

    tensor = t.bind(t.gather(t.once((entries.tobytes(), element), rolled), index), result, first=first)
    tensor.low, tensor.high = low, high
    return tensor


def _interpolated(op: Table, t: Onnx, entries: np.ndarray) -> OnnxTensor:
    """(base << 7) + (next - base) * (x & 127), all below 2^24."""
    x = t.whole(op.input)
    row = t.floor(t.powered(x, 7))
    fraction = t.sub(x, t.mul(row, t.constant(128.0, f32)))
    index = t.cast(row, i32)
    wide = entries.astype(np.int64)
    rows = np.roll(wide[:-1] * 128, -256), np.roll(np.diff(wide), -256)

    def entry(name: str, row: np.ndarray) -> Value:
        return t.gather(t.once((entries.tobytes(), name), lambda: t.stored(row, f32)), index)

    base, step = entry("base", rows[0]), entry("step", rows[1])
    return t.bind(t.add(base, t.mul(step, fraction)), op.result)


def _line(op: Table, t: Onnx) -> OnnxTensor | None:
    """A table of a float that climbs as one line does; None if it does not, or without a proof."""
    floats = _floats(t, op.input)
    if floats is None:
        return None
    entries, numbers = op.table.array.astype(np.int64), _numbers(op.input, floats)
    climb = table_climb(entries, numbers)
    fit = None if climb is None else Clipped.fit(climb)
    if fit is None:
        return None
    y = fit.apply_to_whole(t.tensor(op.input).get(t, floats), OnnxOps(t))
    least, most = int(entries[0]), int(entries[-1])
    return _result(t, y, op, least, most, first=floats.first)


# Tables of two.


@lowering(Table2D)
def table_2d(op: Table2D, t: Onnx) -> OnnxTensor:
    entries = op.table.array.reshape(256, 256).astype(np.int64)
    least, most = int(entries.min()), int(entries.max())
    layout = t.layout([op.input1, op.input2], op.result)
    if t.searched(1, product_of, entries - least) is not None:
        fit = t.searched(1, fit_product_table, entries - least, "either")
        y = None if fit is None else _product(op, t, fit, layout)
    else:
        y = _sum(op, t, (entries - least).astype(np.min_scalar_type(most - least)), layout)
    if y is not None:
        return _result(t, y, op, least, most, first=layout.first)
    low = 256 * op.input1.type.storage.minimum + op.input2.type.storage.minimum
    row, column = (t.operand(v, i32, layout) for v in (op.input1, op.input2))
    index = t.add(t.mul(row, t.constant(256, i32)), column)
    return _gathered(t, op.table.array, -low, index, op.result, first=layout.first)


def _sum(op: Table2D, t: Onnx, table: np.ndarray, layout: Layout) -> Value | None:
    """floor(gain * clip(x * m + y * n + c, 0, 6)), of what the operands are held as."""
    forms = [_floats(t, v) or TensorForm(f32) for v in (op.input1, op.input2)]
    first_numbers, second_numbers = (_numbers(v, f) for v, f in zip((op.input1, op.input2), forms, strict=True))
    fit = t.searched(1, fit_float_plane, table, first_numbers, second_numbers, "either")
    if fit is None:
        return None
    pairs = zip((op.input1, op.input2), forms, (fit.m, fit.n), strict=True)
    x, y = (t.mul(t.operand(v, f32, layout, form.offset), t.constant(factor, f32)) for v, form, factor in pairs)
    return fit.apply(t.add(x, y), OnnxOps(t))


def _product(op: Table2D, t: Onnx, fit: FloatProduct, layout: Layout) -> Value:
    pairs = (op.input1, fit.a), (op.input2, fit.b)
    x, y = (t.operand(v, f32, layout, v.type.storage.minimum + place) for v, place in pairs)
    levels = fit.g.apply_to_whole(t.mul(x, y), OnnxOps(t))
    return t.add(levels, t.constant(fit.offset, f32)) if fit.offset else levels


def _floats(t: Onnx, x: Value) -> TensorForm | None:
    """A form in float32 in which a tensor exists."""
    forms = [form for form in t.tensor(x).forms if form.element == f32]
    return max(forms, key=lambda form: form.first, default=None)


def _numbers(x: Value, form: TensorForm) -> np.ndarray:
    """The numbers of a form for all 8-bit numbers, in order, int64 [256]."""
    return x.type.storage.minimum - form.offset + np.arange(256)


def _result(t: Onnx, y: Value, op: Table | Table2D, least: int, most: int, *, first: bool) -> OnnxTensor:
    """y is the numbers less the least one."""
    tensor = t.bind(y, op.result, offset=least, first=first)
    tensor.low, tensor.high = least, most
    return tensor
