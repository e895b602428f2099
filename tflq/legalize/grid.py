"""Scales and zero points as grids that broadcast to a tensor of some rank, and arithmetic by grids.

A grid has size 1 along a dim whose indices share parameters. Operators that no kernel computes with scales per axis (or
on mixed storage types) are written with them: whatever axis an operand or the result is quantized along, a grid of
ratios broadcasts with the tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from tflq.base import sized
from tflq.dialects.quant import RescaleF64
from tflq.ir.ops import Value
from tflq.ir.types import (
    ScalarType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i8,
    i16,
    i32,
    i64,
    parameters,
    ui8,
)
from tflq.legalize.probing import gather_along
from tflq.legalize.rule import NotApplicable, RuleBuilder
from tflq.numerics.activation import BOUNDS, real_range
from tflq.numerics.fixed_point import quantize_multipliers
from tflq.numerics.unary import FloatFunction, real_table

# A sum times a real number per channel: in the result's counts, rounded half away from zero and saturated.
#
#     int8, uint8, int16      round_half_away(double(acc) * scale) + zp                         ext.rescale_f64
#     int32                   acc + zp at a scale of 1, else RESCALE rounded half away from zero    tosa.rescale
#
# A sum of which more than 32 bits matter loses its last ones first, which leaves it within one count. A scale so
# small that all results are 0, or so large that all others are saturated, is replaced by a nearer one that has the
# same results.


_ALIKE = 1e-7
_MOST = 1 << 47
_FAR_APART = 2.0**20
"""The ratio of scales up to which one product serves all channels, without a check."""


def limited_scales(scales: np.ndarray, to: ScalarType, reach: int) -> np.ndarray:
    """Scales with the same results for sums within [-reach, reach], saturated to `to`."""
    return np.clip(scales, 0.25 / max(reach, 1), 2.0 ** (to.bits + 1))


def real_requantized(
    b: RuleBuilder,
    acc: Value,
    scales: np.ndarray,
    to: UniformQuantizedType,
    activation: str,
    bounds: tuple[int, int],
) -> Value:
    """`acc`, i32 or i64 within `bounds`, in the result's type. NotApplicable where no form computes it."""
    if np.isnan(scales).any():
        raise NotApplicable("the ratio of the scales is not a number")
    clamp = result_range(to, activation)
    reach = max(-bounds[0], bounds[1])
    limit = ((1 << to.storage.bits) + 1) / limited_scales(scales, to.storage, reach)
    if (np.minimum(reach, limit) >= 2.0**31).any() or (to.storage == i32 and acc.type.storage == i64):
        if reach >= _MOST:
            raise NotApplicable("the sum can leave 48 bits")
        acc, scales, bounds = _coarse(b, acc, scales, bounds)
        reach = max(-bounds[0], bounds[1])
    if to.storage == i32:
        wide = _in_int32(b, acc, scales, to, reach, bounds)
        return b.clamp(wide, *clamp)
    if to.storage not in _STORAGES:
        raise NotApplicable(f"no form scales a sum to {to.storage}")
    scales = limited_scales(scales, to.storage, reach)
    if scales.max() > _FAR_APART * scales.min() and not _has_product(scales, to, bounds):
        raise NotApplicable("the channels' scales are too far apart for one product in 64 bits")
    result = b.emit(RescaleF64, [acc], to.storage, scale=scales, output_zp=to.zero_point, input_range=bounds)
    return b.clamp(result, *clamp)


def _coarse(
    b: RuleBuilder, acc: Value, scales: np.ndarray, bounds: tuple[int, int]
) -> tuple[Value, np.ndarray, tuple[int, int]]:
    """A 48-bit sum without the last bits that i32 does not hold, its scale and bounds."""
    spare = max(max(-bounds[0], bounds[1]).bit_length() - 30, 0)
    narrow = b.rescale(acc, (1 << 30, 1 - spare), i32, input_range=bounds)
    return narrow, scales * 2.0**spare, ((bounds[0] >> spare) - 1, (bounds[1] >> spare) + 1)


def result_range(to: UniformQuantizedType, activation: str) -> tuple[int, int]:
    """The range that the activation clamps stored values to, within the storage type's."""
    return real_range(activation, to.storage.minimum, to.storage.maximum, to.scale, to.zero_point)


def _has_product(scales: np.ndarray, to: UniformQuantizedType, bounds: tuple[int, int]) -> bool:
    from tflq.numerics.requantize.products import LongProduct

    return LongProduct.fit(scales, *to.ends, *bounds) is not None


def _in_int32(
    b: RuleBuilder, acc: Value, scales: np.ndarray, to: UniformQuantizedType, reach: int, bounds: tuple[int, int]
) -> Value:
    if acc.type.storage != i32 or reach * float(scales.max()) + abs(to.zero_point) >= 2.0**31 - 1:
        raise NotApplicable("the sum or the result can leave 32 bits")
    if (np.abs(scales - 1) <= _ALIKE).all():
        return b.add(acc, to.zero_point) if to.zero_point else b.identity(acc)
    numbers = quantize_multipliers(scales)
    return b.rescale(acc, numbers, i32, output_zp=to.zero_point, rounding="half_away", input_range=bounds)


def reach_of(storage: ScalarType, zero_point: int) -> int:
    """The greatest distance of a stored value from the zero point."""
    return max(storage.maximum - zero_point, zero_point - storage.minimum)


_STORAGES = (i8, ui8, i16)
_LEFT = 29
_FAR = 1 << 20
"""Beyond every result of 16 bits, whatever its zero point."""


class Grid(NamedTuple):
    """The stored form of a tensor: scales float64, zero points int64, both of `rank` dims."""

    storage: ScalarType
    scales: np.ndarray
    zeros: np.ndarray

    @property
    def low(self) -> int:
        """The least stored value less its zero point."""
        return self.storage.minimum - int(self.zeros.max())

    @property
    def high(self) -> int:
        return self.storage.maximum - int(self.zeros.min())

    @property
    def reach(self) -> int:
        """The greatest magnitude of a stored value less its zero point."""
        return max(-self.low, self.high)

    @property
    def zero(self) -> int | None:
        """The zero point, if all elements have the same one."""
        first = int(self.zeros.flat[0])
        return first if (self.zeros == first).all() else None

    def same(self, other: Grid) -> bool:
        """Whether every element has the same parameters in both."""
        if self.storage != other.storage:
            return False
        return bool((self.scales == other.scales).all() and (self.zeros == other.zeros).all())

    def entry_of_zeros(self, b: RuleBuilder, rank: int) -> Value:
        """The zero points as a constant that broadcasts to a tensor of `rank`."""
        return entry_of(b, self.zeros if self.zero is None else np.asarray(self.zero), rank)


def grid_of(value: Value, rank: int | None = None, storages: tuple[ScalarType, ...] = _STORAGES) -> Grid:
    """A tensor's parameters as a grid of `rank` dims, its own by default. NotApplicable if it is not stored as one of
    `storages`."""
    element, declared_rank = value.type.element, value.type.rank
    if not isinstance(element, (UniformQuantizedType, UniformQuantizedPerAxisType)):
        raise NotApplicable(f"tensor '{value.name}' ({value.type.storage}) has no parameters per layer or per axis")
    if element.storage not in storages:
        raise NotApplicable(f"tensor '{value.name}' is stored as {element.storage}")
    if declared_rank is None or (rank is not None and rank < declared_rank):
        raise NotApplicable(f"the rank of '{value.name}' is not known")
    scales, zeros = parameters(value.type)
    ones = (1,) * ((declared_rank if rank is None else rank) - scales.ndim)
    return Grid(
        element.storage,
        scales.astype(np.float64).reshape(ones + scales.shape),
        zeros.astype(np.int64).reshape(ones + zeros.shape),
    )


def grids_of(*values: Value) -> list[Grid]:
    """The grids of operands and, last, of the result, all of the result's rank."""
    grids: list[Grid] = []
    for value in values:
        grid = grid_of(value, values[-1].type.rank)
        if not np.isfinite(grid.scales).all():
            raise NotApplicable(f"'{value.name}' has an infinite scale")
        grids.append(grid)
    return grids


def _fitted(grid: np.ndarray, rank: int) -> np.ndarray:
    """A grid without leading dims of size 1 that a tensor of `rank` does not have."""
    spare = 0
    while grid.ndim - spare > rank and grid.shape[spare] == 1:
        spare += 1
    return grid.reshape(grid.shape[spare:])


def entry_of(b: RuleBuilder, grid: np.ndarray, rank: int, element: ScalarType = i32) -> Value:
    """A grid as a constant that broadcasts to a tensor of `rank`; a scalar, if it holds one number."""
    return b.constant(grid.reshape(()) if grid.size == 1 else _fitted(grid, rank), element)


def centred_by(b: RuleBuilder, operand: Value, grid: Grid) -> Value:
    """x less its zero points as i32."""
    wide = b.cast(b.value(operand), i32)
    return wide if grid.zero == 0 else b.sub(wide, grid.entry_of_zeros(b, wide.type.rank or 0))


def activation_grids(activation: str, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest stored values of each element of a result with a fused activation."""
    if activation != "NONE" and activation not in BOUNDS:
        raise NotApplicable(f"the fused activation {activation} is not a clamp")
    scales, zeros = np.broadcast_arrays(grid.scales, grid.zeros)
    low, high = grid.storage.minimum, grid.storage.maximum
    pairs = zip(scales.reshape(-1).tolist(), zeros.reshape(-1).tolist(), strict=True)
    ranges = np.asarray([real_range(activation, low, high, s, z) for s, z in pairs], np.int64)
    least, most = np.clip(ranges, low, high).T.reshape(2, *scales.shape)
    return least, most


def bounded(b: RuleBuilder, x: Value, least: np.ndarray, most: np.ndarray, to: ScalarType) -> Value:
    """x (i32) within the bounds of each element, in a storage type that holds these."""
    if (least == least.flat[0]).all() and (most == most.flat[0]).all():
        return b.cast(b.clamp(x, int(least.flat[0]), int(most.flat[0])), to)
    rank = x.type.rank or 0
    return b.cast(b.minimum(b.maximum(x, entry_of(b, least, rank)), entry_of(b, most, rank)), to)


def over(b: RuleBuilder, x: Value, grid: np.ndarray, apply: Callable[[Value, np.ndarray], Value]) -> Value:
    """`apply` on x, with the grid's axes brought together in its last dim and the grid as a vector along it. The
    result has x's shape. x has the grid's full size along these axes."""
    rank = x.type.rank or 0
    fitted = _fitted(grid, rank)
    axes = [a for a, d in enumerate(fitted.shape) if d > 1]
    if not axes or axes == [rank - 1]:
        return apply(x, grid.reshape(-1))
    perm = [a for a in range(rank) if a not in axes] + axes
    turned = b.transpose(x, perm)
    shape = turned.type.dims
    if len(axes) > 1 and shape.count(None) > 1:
        raise NotApplicable("scales along several axes, and more than one dim is not known")
    flat = turned if len(axes) == 1 else b.reshape(turned, [*shape[: rank - len(axes)], grid.size])
    applied = apply(flat, fitted.transpose(perm).reshape(-1))
    whole = applied if len(axes) == 1 else b.reshape(applied, list(shape))
    return b.transpose(whole, np.argsort(perm).tolist())


def finished(
    b: RuleBuilder, x: Value, ratio: np.ndarray, target: Grid, bounds: tuple[int, int], activation: str = "NONE"
) -> Value:
    """x (i32, within `bounds`) times the ratios, rounded once, plus the zero points, in the result's type, within the
    fused activation's range."""
    least, most = activation_grids(activation, target)
    zero = target.zero

    def rescaled(flat: Value, scales: np.ndarray) -> Value:
        if zero is not None or target.storage.bits == 8:
            to = UniformQuantizedType.of(target.storage if zero is not None else i16, 1.0, zero or 0)
            with suppress(NotApplicable):
                return real_requantized(b, flat, scales, to, "NONE", bounds)
        mantissa, left = quantize_multipliers(scales)
        if left.max() > _LEFT:
            raise NotApplicable("a ratio of scales is too large for a left shift in int32")
        if zero is None:
            return b.clamp(b.rescale(flat, (mantissa, left)), -_FAR, _FAR)
        return b.rescale(flat, (mantissa, left), target.storage, output_zp=zero)

    result = over(b, _spread(b, x, ratio), ratio, rescaled)
    if zero is None:
        result = b.add(b.cast(result, i32), entry_of(b, target.zeros, result.type.rank or 0))
    elif activation == "NONE":
        return result
    elif (least == least.flat[0]).all() and (most == most.flat[0]).all():
        return b.clamp(result, int(least.flat[0]), int(most.flat[0]))
    return bounded(b, b.cast(result, i32), least, most, target.storage)


def _spread(b: RuleBuilder, x: Value, grid: np.ndarray) -> Value:
    """x, repeated along the dims in which only the grid has indices."""
    fitted = _fitted(grid, x.type.rank or 0)
    shape = (1,) * (fitted.ndim - (x.type.rank or 0)) + x.type.dims
    if grid.size == 1 or all(d == 1 or have != 1 for d, have in zip(fitted.shape, shape, strict=True)):
        return x
    return b.add(x, sized.zeros(fitted.shape))


# Functions of one tensor of 8 or 16 bits as tables of the real function, one for each index of a quantized axis.
#
# One set of parameters: TABLE, or GATHER of 65536 entries. Several: GATHER at stored - least + span * index, from the
# tables one after another. Linear functions of int16 are scaled instead where the tables would be large.


_ENTRIES = 1 << 20
"""The most entries of all tables of an op together."""


def looked_up_by(b: RuleBuilder, operand: Value, source: Grid, target: Grid, function: FloatFunction) -> Value:
    """The real function of a tensor, rounded half away from zero."""
    grids = (source.scales, source.zeros, target.scales, target.zeros)
    check_size(source, *grids)
    in_scales, in_zeros, out_scales, out_zeros = (g[..., None] for g in grids)
    dtypes = source.storage.dtype, target.storage.dtype
    table = real_table(function, dtypes[0], in_scales, in_zeros, out_scales, out_zeros, dtypes[1])
    return entries_by(b, b.value(operand), table, target.storage)


def check_size(source: Grid, *grids: np.ndarray) -> None:
    """NotApplicable if a table for each set of parameters would be too large."""
    count = math.prod(np.broadcast_shapes(*(g.shape for g in grids)))
    entries = count << source.storage.bits
    if entries > _ENTRIES:
        raise NotApplicable(f"the tables of {count} sets of parameters would have {entries} entries")


def entries_by(b: RuleBuilder, plain: Value, table: np.ndarray, storage: ScalarType) -> Value:
    """The entry for each stored value of a table [..., 256 or 65536], whose first dims broadcast to the tensor."""
    cells, span = table.shape[:-1], table.shape[-1]
    count, entries = math.prod(cells), table.reshape(-1)
    if count == 1 and plain.type.storage in (i8, ui8, i16):
        return b.table(plain, entries)
    starts = sized.arange(count).reshape(cells) * span - plain.type.storage.minimum
    index = b.add(b.cast(plain, i32), entry_of(b, starts, plain.type.rank or 0))
    return gather_along(b, b.constant(entries, storage), index)


def requantized_by(b: RuleBuilder, operand: Value, source: Grid, target: Grid) -> Value:
    """The nearest stored values under `target` of a tensor, or plain integers, stored as `source` says."""
    if source.same(target):
        return b.value(operand)
    if source.storage.bits == 8:
        with suppress(NotApplicable):
            return looked_up_by(b, operand, source, target, lambda x: x)
    x = centred_by(b, operand, source)
    return finished(b, x, source.scales / target.scales, target, (source.low, source.high))
