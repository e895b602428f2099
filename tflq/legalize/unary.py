"""Functions of one operand that kernels look up in a table of floats, and ABS, NEG, ZEROS_LIKE. Activations in fixed
point are in `activation.py`.

EXP, LOG, ELU and GELU fill a table in float32: 256 entries for 8 bits, 513 interpolated ones for int16. int8 RSQRT is
a Newton iteration in fixed point, SQRT truncates in float32; both kernels stop at a negative value, for which a table
may hold anything. ABS rescales |x - z1|; NEG negates the stored integer. ZEROS_LIKE is a constant. For other functions
and types: `arithmetic_real.py`. Sources: kernels/exp.cc, elementwise.cc, neg.cc, zeros_like.cc, activations.cc,
kernels/internal/common.h (LUTPopulate, LUTLookup).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tflq.base import sized
from tflq.dialects.tfl.activation import Elu, Gelu
from tflq.dialects.tfl.arithmetic import Abs, Exp, Log, Neg, Rsqrt, Sqrt, ZerosLike
from tflq.dialects.tosa.elementwise import Clamp
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, UniformQuantizedType, i8, i16, i32, ui8
from tflq.legalize.probing import centred, kernel_name, per_layer, scaled, symmetric, zero_point_of
from tflq.legalize.rule import FOLLOWS_PARAMETERS, Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.numerics import unary
from tflq.numerics.unary import FloatFunction, table_16bit

_ZEROS = "the kernel stores the integer 0 for zeros, though the zero point is not 0"
_MOST_SCALE = float(np.finfo(np.float32).max) / (1 << 16)
_BEYOND = "the ends of the kernel's table are beyond float32"

_Table: TypeAlias = Exp | Log | Elu | Gelu | Rsqrt
_Unary: TypeAlias = _Table | Sqrt | Abs | Neg


def _forms(op: _Unary, *storages: ScalarType) -> tuple[UniformQuantizedType, UniformQuantizedType]:
    """The types of operand and result, if both are stored as the same one of `storages`."""
    source, output = per_layer(op)
    if source.storage not in storages or output.storage != source.storage:
        raise NotApplicable(f"{kernel_name(op)} has no kernel for {source.storage} → {output.storage}")
    return source, output


def _looked_up(
    op: _Table, b: RuleBuilder, function: FloatFunction, source: UniformQuantizedType, output: UniformQuantizedType
) -> Value:
    """The kernels' table of a float32 function."""
    x, parameters = b.value(op.input), (source.scale, source.zero_point, output.scale, output.zero_point)
    if source.storage is not i16:
        return b.table(x, b.kernel_set.table(function, source, output))
    table = table_16bit(function, *parameters, precision=np.float32)
    slopes = np.diff(table.astype(np.int32))
    if np.abs(slopes).max() < 1 << 15:
        rounded = b.arithmetic_right_shift(b.table(x, table), 7, round=True)
        return b.cast(rounded, i16)
    low = np.arange(128) * slopes.astype(np.int16).astype(np.int32)[:, None]  # the kernel keeps 16 bits of a slope
    return b.table(x, (table[:-1, None] + ((low + 64) >> 7)).astype(np.int16).reshape(-1))


@rule(Elu, Gelu, Exp, Log, Rsqrt)
def lookup(op: _Table, b: RuleBuilder) -> Answer:
    """Functions that a kernel looks up."""
    storages = (i8,) if isinstance(op, Elu) else (i8, ui8, i16) if isinstance(op, Gelu) else (i8, i16)
    source, output = _forms(op, *storages)
    if source.storage is i16 and not isinstance(op, Gelu):
        symmetric(op, source, output)
    if source.storage is i16 and source.scale > _MOST_SCALE:
        raise NotApplicable(_BEYOND, f"{_BEYOND}; {FOLLOWS_PARAMETERS}")
    if isinstance(op, Rsqrt) and source.storage is i8:
        table = unary.rsqrt_table(source.scale, source.zero_point, output.scale, output.zero_point)
        return b.table(b.value(op.input), table)
    return _looked_up(op, b, _function(op, output), source, output)


def _function(op: _Table, output: UniformQuantizedType) -> FloatFunction:
    """The float32 function; LOG and RSQRT with what their kernels give where the real one has no finite value."""
    storage = output.storage
    if isinstance(op, (Log, Rsqrt)):
        end = storage.minimum - output.zero_point if isinstance(op, Log) else storage.maximum
        with np.errstate(all="ignore"):
            real = float(np.float32(end) * np.float32(output.scale))
        return unary.log(real) if isinstance(op, Log) else unary.rsqrt(real)
    match op:
        case Gelu():
            return unary.gelu(op.approximate)
        case Exp():
            return unary.exp
        case Elu():
            return unary.elu


@rule(Sqrt)
def sqrt(op: Sqrt, b: RuleBuilder) -> Answer:
    """The root, truncated; a table."""
    source, output = _forms(op, i8, i16)
    parameters = (source.scale, source.zero_point, output.scale, output.zero_point)
    return b.table(b.value(op.input), unary.sqrt_table(source.storage.dtype, *parameters))


@rule(Abs)
def absolute(op: Abs, b: RuleBuilder) -> Answer:
    """|x - z1|, by input / output if the scales differ, + z."""
    source, output = _forms(op, i8, i16)
    if source.storage is i16:
        symmetric(op, source, output)
    multiplier = b.kernel_set.absolute(source, output)
    x = centred(b, op.input, source)
    magnitude = b.maximum(x, b.sub(0, x))
    return scaled(b, magnitude, multiplier, output.storage, 1 << source.storage.bits, output_zp=output.zero_point)


@rule(Neg)
def negate(op: Neg, b: RuleBuilder) -> Answer:
    """The stored integer's negative, wrapping."""
    source, output = _forms(op, i8, i16, i32)
    result = b.cast(b.sub(0, b.cast(b.value(op.input), i32)), output.storage)
    exact = source.scale == output.scale and source.zero_point == output.zero_point == 0
    return Rewritten([result], warning="" if exact else "the kernel ignores scales and zero points")


@rule(ZerosLike)
def zeros_like(op: ZerosLike, b: RuleBuilder) -> Answer:
    """result = the zero point, the stored value of 0; with 32 bits, for which there is a kernel, stored zeros."""
    x, result = op.input, op.result
    storage, zero = result.type.storage, zero_point_of(result)
    if x.type.storage != storage or zero is None:
        raise NotApplicable(f"'{result.name}' has several zero points, or is not of the type of '{x.name}'")
    raw = storage.bits > 16 and not b.real
    fill = 0 if raw else zero
    warning = _ZEROS if raw and zero else ""
    if x.type.is_static:
        return Rewritten([b.constant(sized.full(x.type.sizes, fill), storage)], warning=warning)
    return Rewritten([b.emit(Clamp, [b.value(x)], min_val=fill, max_val=fill)], warning=warning)
