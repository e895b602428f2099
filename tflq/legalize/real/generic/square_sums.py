"""L2_POOL_2D, LOCAL_RESPONSE_NORMALIZATION and L2_NORMALIZATION of 8-bit tensors that no kernel takes: the real result.

    L2_POOL_2D                    sqrt(mean of x^2 over a window)
    L2_NORMALIZATION              x / sqrt(sum of x^2 over the last dim)
    LOCAL_RESPONSE_NORMALIZATION  x (bias + alpha sum of x^2 over neighbouring channels)^-beta

The sum of squares is an integer, and so is what it must reach (or stay below) for each stored value of the result: the
stored value is how many of these thresholds are met, which a binary search in a table finds. Sources, for floats:
kernels/pooling.cc and internal/reference/reference_ops.h (L2Pool, LocalResponseNormalization: of channels c - radius to
c + radius - 1), l2norm.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tflq.dialects.tfl.indexing import Gather
from tflq.dialects.tfl.movement import PadV2
from tflq.dialects.tfl.normalization import L2Normalization, LocalResponseNormalization
from tflq.dialects.tfl.pooling import L2Pool2D
from tflq.ir.core import Value
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i32, ui8
from tflq.legalize.real.generic.requantization import result_range
from tflq.legalize.reference.pooling import over_windows
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import centred, kernel_name, per_layer
from tflq.numerics.convolution import window
from tflq.numerics.square_thresholds import quotient_thresholds, response_thresholds, root_thresholds

__all__: list[str] = []

_NOTE = "no kernel computes it; the real function, rounded"
_TERMS = 1 << 15
"""As many squares of 8-bit values int32 holds the sum of."""
_LEAST_SCALE = 1e-6
"""L2_NORMALIZATION divides by 1e-6 at least: with smaller scales that is more than sums of squares are."""


def _elements(
    op: L2Pool2D | L2Normalization | LocalResponseNormalization,
) -> tuple[UniformQuantizedType, UniformQuantizedType]:
    elements = per_layer(op)
    source, output = elements
    if source.storage != output.storage or source.storage not in (i8, ui8) or not op.input.type.is_static:
        raise NotApplicable(f"{kernel_name(op)} has an integer form only for 8 bits and known shapes")
    if not all(0 < e.scale < np.inf for e in elements):
        raise NotApplicable(f"{kernel_name(op)} has no integer form for scales of 0 or infinite ones")
    return source, output


@rule(L2Pool2D, order=2)
def l2_pool(op: L2Pool2D, b: RuleBuilder) -> Answer:
    """The root of each window's mean square."""
    elements, x = _elements(op), op.input
    source, output = elements
    kernel, strides = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
    shape = [d or 0 for d in x.type.shape or ()]
    sides = [window(n, k, s, 1, op.padding) for n, k, s in zip(shape[1:3], kernel, strides, strict=True)]
    if kernel[0] * kernel[1] > _TERMS or None in sides:
        raise NotApplicable("the windows are too large for int32")
    low, high = result_range(output, op.fused_activation_function)
    wide = centred(b, x, source)
    total = b.mul(wide, wide)
    counts = np.ones((), np.int64)
    for axis, (side, size, stride) in enumerate(zip(sides, kernel, strides, strict=True), 1):
        assert side is not None
        assert side.output is not None
        total, inside = _summed(b, total, axis, (side.before, side.after), side.output, size, stride)
        counts = counts[..., None] * inside
    different, which = np.unique(counts, return_inverse=True)
    steps = output.storage.maximum - output.zero_point
    if not steps:
        result = [d or 0 for d in op.result.type.shape or ()]
        return Rewritten([b.constant(np.full(result, min(high, output.zero_point)), output.storage)], note=_NOTE)
    ratio = Fraction(source.scale) / Fraction(output.scale)
    table = np.stack([root_thresholds(ratio, int(n), steps) for n in different])
    rows = b.constant(which.reshape(1, *counts.shape, 1))
    met = _met(b, rows, table, (1 << 31) - 1, lambda threshold: b.greater_equal(total, threshold))
    return Rewritten([_stored(b, met, output, low, high)], note=_NOTE)


def _summed(
    b: RuleBuilder, x: Value, axis: int, pad: tuple[int, int], output: int, size: int, stride: int
) -> tuple[Value, np.ndarray]:
    """Sums over the windows along an axis, and how many elements are in each."""
    shape = [d or 0 for d in x.type.shape or ()]
    first = np.arange(output) * stride - pad[0]
    inside = np.minimum(first + size, shape[axis]) - np.maximum(first, 0)
    padded = _padded(b, x, axis, *pad)
    return over_windows(b, padded, axis, size, stride, 1, lambda b, y, z: b.add(y, z)), inside


def _padded(b: RuleBuilder, x: Value, axis: int, before: int, after: int) -> Value:
    shape = [d or 0 for d in x.type.shape or ()]
    if not (before or after):
        return x
    around = np.zeros((len(shape), 2), np.int32)
    around[axis] = before, after
    shape[axis] += before + after
    operands = [x, b.constant(around), b.constant(np.asarray(0))]
    return b.emit(PadV2, operands, TensorType(tuple(shape), i32))


@rule(LocalResponseNormalization, order=2)
def local_response(op: LocalResponseNormalization, b: RuleBuilder) -> Answer:
    """Each element by a power of the sum over its neighbours."""
    elements, x = _elements(op), op.input
    source, output = elements
    alpha, beta, bias = (float(np.float32(number)) for number in (op.alpha, op.beta, op.bias))
    if alpha <= 0 or beta <= 0 or bias < 0 or not x.type.rank:
        raise NotApplicable("alpha and beta are not positive: the result does not fall with the sum of squares")
    axis, depth = x.type.rank - 1, (x.type.shape or (0,))[-1] or 0
    radius = min(op.radius, depth)
    wide = centred(b, x, source)
    if radius <= 0:
        raise NotApplicable("a radius of 0 sums no squares")
    padded = _padded(b, b.mul(wide, wide), axis, radius, radius - 1)
    total = over_windows(b, padded, axis, 2 * radius, 1, 1, lambda b, y, z: b.add(y, z))
    greatest, steps = _reach(source), _reach(output)
    ratio, weight = source.scale / output.scale, alpha * source.scale**2
    table = response_thresholds(ratio, bias, weight, beta, greatest, steps)
    return Rewritten([_signed(b, wide, total, table, output)], note=_NOTE)


@rule(L2Normalization, order=2)
def l2_normalization(op: L2Normalization, b: RuleBuilder) -> Answer:
    """Each element by the root of the sum over the last dim; with parameters that no kernel takes."""
    elements, x = _elements(op), op.input
    source, output = elements
    shape = x.type.shape or ()
    if not shape or (shape[-1] or 0) > _TERMS or source.scale < _LEAST_SCALE:
        raise NotApplicable("rows are too long for int32, or the operand's scale is below 1e-6")
    if op.fused_activation_function != "NONE":
        raise NotApplicable("L2_NORMALIZATION has no fused activation")
    wide = centred(b, x, source)
    total = b.reduce("sum", b.mul(wide, wide), len(shape) - 1)
    table = quotient_thresholds(Fraction(output.scale), _reach(source), _reach(output))
    return Rewritten([_signed(b, wide, total, table, output)], note=_NOTE)


def _reach(element: UniformQuantizedType) -> int:
    """The greatest distance of a stored value from the zero point."""
    storage = element.storage
    return max(storage.maximum - element.zero_point, element.zero_point - storage.minimum)


def _signed(b: RuleBuilder, wide: Value, total: Value, table: np.ndarray, output: UniformQuantizedType) -> Value:
    """The thresholds that the sum stays below, with the sign of the element."""
    zero = b.constant(np.asarray(0))
    magnitude = b.maximum(wide, b.sub(zero, wide))
    met = _met(b, magnitude, table, -1, lambda threshold: b.greater_equal(threshold, total))
    signed = b.select(b.greater(zero, wide), b.sub(zero, met), met)
    return _stored(b, signed, output, output.storage.minimum, output.storage.maximum)


def _stored(b: RuleBuilder, steps: Value, output: UniformQuantizedType, low: int, high: int) -> Value:
    if output.zero_point:
        steps = b.add(steps, b.constant(np.asarray(output.zero_point)))
    return b.cast(b.clamp(steps, low, high), output.storage)


def _met(b: RuleBuilder, rows: Value, table: np.ndarray, never: int, test: Callable[[Value], Value]) -> Value:
    """How many of a row's thresholds, which come in order, are met: a binary search. `never` is one that is not."""
    bits = int(table.shape[1]).bit_length()
    width = 1 << bits
    every = np.full((len(table), width), never, np.int64)
    every[:, : table.shape[1]] = table
    entries = b.constant(every.reshape(-1))
    base = b.mul(rows, b.constant(np.asarray(width)))
    found = b.constant(np.zeros((1,) * len(rows.type.shape or ()), np.int32))
    for bit in reversed(range(bits)):
        candidate = b.add(found, b.constant(np.asarray(1 << bit)))
        place = b.add(base, b.sub(candidate, b.constant(np.asarray(1))))
        threshold = b.emit(Gather, [entries, place], place.type, axis=0, batch_dims=0)
        found = b.select(test(threshold), candidate, found)
    return found
