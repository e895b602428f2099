"""FULLY_CONNECTED with a scale per block of weights, on quantized activations: within one count of the real result.

    result[m, o] = clamp(round(sum_b s[b, o] sum_k (x[m, b, k] - x_zp) (w[b, k, o] - w_zp[b, o]) + bias[o]) + zp)
    s = s_in * s_w / s_out

The sums of a block are exact. Scaled, they have as many bits behind the point as the total leaves in 32, are added
up and rounded half away from zero. No kernel computes it: kernels/fully_connected.cc takes such weights only beside
floats.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.dialects.tfl.matmul import FullyConnected
from tflq.dialects.tosa.matmul import MatMul
from tflq.errors import UnsupportedError
from tflq.ir.core import Value
from tflq.ir.parameters import parameters
from tflq.ir.types import TensorType, UniformQuantizedSubChannelType, UniformQuantizedType, i8, i16, i32, ui8
from tflq.legalize.real.generic.requantization import result_range
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import rounding_shift
from tflq.numerics.fixed_point import quantize_multipliers

__all__: list[str] = []

_NOTE = "no kernel computes it; the real sum of its blocks, rounded"
_SPARE = 1
"""Bits behind the point beside those that the count of blocks takes."""


@rule(FullyConnected, order=2)
def blocks(op: FullyConnected, b: RuleBuilder) -> Answer:
    """tosa.matmul of blocks, tosa.rescale per block and channel, tosa.reduce_sum, a rounding shift."""
    x, weights, result = op.input, op.weights, op.result
    source, target, element = x.type.element, result.type.element, weights.type.element
    if not isinstance(source, UniformQuantizedType) or not isinstance(target, UniformQuantizedType):
        raise NotApplicable("the input or the result is not quantized per layer")
    if not isinstance(element, UniformQuantizedSubChannelType) or not weights.is_constant or x.type.shape is None:
        raise NotApplicable("the weights are no constant with a scale per block")
    if source.storage not in (i8, ui8, i16) or target.storage not in (i8, ui8, i16):
        raise NotApplicable(f"no integer form from {source.storage} to {target.storage}")
    if source.storage == i16 and source.zero_point:
        raise NotApplicable("int16 with a zero point other than 0")
    outputs, depth = weights.array.shape
    size = dict(zip(element.axes, element.block_sizes, strict=True)).get(1, depth)
    if depth % size:
        raise NotApplicable(f"blocks of {size} do not divide {depth} weights")
    try:
        scales, zeros = (np.broadcast_to(v, (outputs, depth)) for v in parameters(weights.type))
    except (UnsupportedError, ValueError) as error:
        raise NotApplicable(str(error)) from error
    centred = weights.array.astype(np.int32) - zeros
    if (centred != centred.astype(np.int8)).any():
        raise NotApplicable("the weights less their zero points leave 8 bits")
    count = depth // size
    far = max(source.storage.maximum - source.zero_point, source.zero_point - source.storage.minimum)
    reach = np.abs(centred).reshape(outputs, count, size).sum(2) * far
    ratio = scales[:, ::size].astype(np.float64) * source.scale / float(np.float32(target.scale))
    bias = _bias(b, op.bias, outputs, target.scale)
    total = float(((reach * ratio).sum(1) + np.abs(bias)).max())
    bits = 29 - math.frexp(total)[1]
    if bits < count.bit_length() + _SPARE or reach.max() >= 1 << 31:
        raise NotApplicable("the scales of the blocks are too far above the result's for 32 bits")
    bits = min(bits, 24)
    rows = None if None in x.type.shape else math.prod(d or 0 for d in x.type.shape) // depth
    shape = (*x.type.shape[:-1], outputs) if op.keep_num_dims else (rows, outputs)
    if shape.count(None) > 1:
        raise NotApplicable("more than one dim of the result is not known")
    apart = b.transpose(b.reshape(b.value(x), (rows, count, size)), (1, 0, 2))
    filters = b.constant(np.ascontiguousarray(centred.reshape(outputs, count, size).transpose(1, 2, 0)), i8)
    sums = b.emit(MatMul, [apart, filters], TensorType((count, rows, outputs), i32), a_zp=source.zero_point, b_zp=0)
    flat = b.reshape(b.transpose(sums, (1, 0, 2)), (rows, count * outputs))
    scaled = _scaled(b, flat, ratio.T.reshape(-1) * 2.0**bits, int(reach.max()))
    added = b.reshape(b.reduce("sum", b.reshape(scaled, (rows, count, outputs)), 1), (rows, outputs))
    counts = np.rint(bias * 2.0**bits).astype(np.int32)
    added = b.add(added, b.constant(counts)) if counts.any() else added
    rounded = rounding_shift(b, added, bits)
    if target.zero_point:
        rounded = b.add(rounded, b.constant(np.asarray(target.zero_point)))
    clamped = b.clamp(rounded, *result_range(target, op.fused_activation_function))
    return Rewritten([b.reshape(b.cast(clamped, target.storage), shape)], note=_NOTE)


def _bias(b: RuleBuilder, bias: Value | None, outputs: int, unit: float) -> np.ndarray:
    """The bias in counts of the result."""
    if bias is None:
        return np.zeros(outputs)
    if not bias.is_constant or not (bias.type.quantized or bias.type.storage.is_float):
        raise NotApplicable(f"bias '{bias.name}' is not constant, or integers without a scale")
    scale, zero = parameters(bias.type) if bias.type.quantized else (np.asarray(1.0), np.asarray(0))
    real = (b.value(bias).array.astype(np.float64).reshape(-1) - zero) * scale.astype(np.float64)
    if real.size not in (1, outputs) or not np.isfinite(real).all():
        raise NotApplicable(f"bias '{bias.name}' does not have one finite number per channel")
    return np.broadcast_to(real / unit, (outputs,))


def _scaled(b: RuleBuilder, sums: Value, ratio: np.ndarray, reach: int) -> Value:
    """Sums times a ratio per channel; one so small that nothing is left of them is 0."""
    least = 0.25 / max(reach, 1)
    mantissa, left = quantize_multipliers(np.where(ratio < least, 1.0, ratio))
    return b.rescale(sums, (np.where(ratio < least, 0, mantissa), left), i32, input_range=(-reach, reach))
