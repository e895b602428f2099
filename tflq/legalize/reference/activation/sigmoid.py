"""LOGISTIC and TANH, which the kernels look up in tables.

8-bit: one table of 256 entries, filled in float32. int16: x is brought to steps of 1 / (3 * 4096), and |x|
interpolates in 256 entries of the sigmoid, 2^9 steps apart (TANH: tanh(x) = 2 * sigmoid(2x) - 1, so 2^8); the result
is mirrored where x is negative.
Sources: kernels/activations.cc (SigmoidPrepare, TanhPrepare), kernels/internal/common.h (LUTPopulate),
kernels/internal/reference/integer_ops/logistic.h, tanh.h.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.activation import Logistic, Tanh
from tflq.ir.core import Value
from tflq.ir.types import UniformQuantizedType, i8, i16, i32, ui8
from tflq.legalize.rule import Answer, NotApplicable, RuleBuilder, rule
from tflq.legalize.scaling import kernel_name, per_layer, symmetric
from tflq.numerics.elementwise import checked_log2
from tflq.numerics.tables import (
    logistic,
    sigmoid_16bit_table,
    sigmoid_input_scaling,
    sigmoid_table,
    table_8bit,
    tanh,
)

__all__: list[str] = []


@rule(Logistic, Tanh)
def logistic_tanh(op: Logistic | Tanh, b: RuleBuilder) -> Answer:
    """A table, of the storage type (8-bit), or interpolation in one (int16)."""
    source, output = per_layer(op)
    storage = source.storage
    if storage not in (i8, ui8, i16) or output.storage != storage:
        raise NotApplicable(f"{kernel_name(op)} has no form for {storage} → {output.storage}")
    _check(op, source, output)
    x = b.value(op.input)
    if storage is not i16:
        parameters = (source.scale, source.zero_point, output.scale, output.zero_point)
        return b.table(x, table_8bit(tanh if isinstance(op, Tanh) else logistic, storage.dtype, *parameters))
    hyperbolic = isinstance(op, Tanh)
    scaling = sigmoid_input_scaling(source.scale, (0, 1) if hyperbolic else (0,))
    if not 0 < scaling[0] < 1 << 16:  # the product with an int16 leaves int32
        b.note_undefined("the product with the operand's multiplier leaves int32")
        return b.table(x, sigmoid_16bit_table(*scaling, hyperbolic=hyperbolic))
    return _tanh_16bit(b, x, *scaling) if hyperbolic else _logistic_16bit(b, x, *scaling)


def _check(op: Logistic | Tanh, source: UniformQuantizedType, output: UniformQuantizedType) -> None:
    """The result's scale, where the kernels demand one, and int16's zero points."""
    if source.storage is i16:
        symmetric(op, source, output)
    name, bits = kernel_name(op), 15 if output.storage is i16 else 8
    demanded = isinstance(op, Logistic) and output.scale != 2.0**-bits
    if demanded or (source.storage is i16 and checked_log2(output.scale) != -15):
        raise NotApplicable(f"{name} on {output.storage} demands a result of scale 2^-{bits}, here {output.scale:g}")


def _constant(b: RuleBuilder, value: int) -> Value:
    return b.constant(np.asarray(value))


def _magnitude(b: RuleBuilder, x: Value, multiplier: int, shift: int, bits: int) -> tuple[Value, Value]:
    """Which x are not negative, and the sigmoid of |x|, 2^bits steps an entry: table value << bits."""
    rescaled = b.mul(b.cast(x, i32), _constant(b, multiplier))
    if shift:
        rescaled = b.arithmetic_right_shift(rescaled, _constant(b, shift), round=True)
    magnitude = b.maximum(rescaled, b.sub(_constant(b, 0), rescaled))
    whole = b.arithmetic_right_shift(magnitude, _constant(b, bits))
    index = b.cast(b.sub(b.minimum(whole, _constant(b, 255)), _constant(b, 128)), i8)
    fraction = b.sub(magnitude, b.mul(whole, _constant(b, 1 << bits)))
    base, slope = _entries(bits)
    interpolated = b.add(b.table(index, base), b.mul(fraction, b.table(index, slope)))
    return b.greater_equal(rescaled, _constant(b, 0)), interpolated


def _entries(bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Values << bits, and slopes, of the sigmoid's entries; the last: 2^16 - 2 for LOGISTIC, 2^16 - 1 for TANH."""
    table = sigmoid_table()
    table[-1] = 65534 if bits == 9 else 65535
    return table << bits, np.append(np.diff(sigmoid_table()), 0).astype(np.int32)


def _logistic_16bit(b: RuleBuilder, x: Value, multiplier: int, shift: int) -> Value:
    positive, y = _magnitude(b, x, multiplier, shift, 9)
    mirrored = b.sub(_constant(b, (1 << 25) + (1 << 9) - 1), y)
    chosen = b.select(positive, b.add(y, _constant(b, 1 << 9)), mirrored)
    return b.cast(b.arithmetic_right_shift(chosen, _constant(b, 10)), i16)


def _tanh_16bit(b: RuleBuilder, x: Value, multiplier: int, shift: int) -> Value:
    positive, y = _magnitude(b, x, multiplier, shift, 8)
    mirrored = b.sub(_constant(b, (1 << 23) + (1 << 7) - 1), y)
    chosen = b.select(positive, b.sub(y, _constant(b, (1 << 23) - (1 << 7))), mirrored)
    return b.cast(b.arithmetic_right_shift(chosen, _constant(b, 8)), i16)
