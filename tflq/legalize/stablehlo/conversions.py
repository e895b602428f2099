"""Functions of one quantized value in integers, exactly as the specification computes them in floating point.

Equal scales: another zero point. Else RESCALE in float64, proven to be the same, or one off, at every threshold of the
result; else a table of the values that it can be. Whatever the function is, it is evaluated once for each of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tflq.dialects.ext.rescale import RescaleF64
from tflq.dialects.stablehlo.casts import UniformQuantize
from tflq.dialects.stablehlo.conversions import results_of
from tflq.dialects.tfl.indexing import Gather
from tflq.evaluate.stablehlo.numbers import same_scale
from tflq.evaluate.stablehlo.regions import apply
from tflq.ir.core import Region, Value
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i16, i32, ui8
from tflq.legalize.rule import NotApplicable, RuleBuilder
from tflq.numerics.rounding import round_float

__all__ = ["Converted", "converted"]

_ENTRIES = 1 << 16


class Converted(NamedTuple):
    """Stored integers in int32, and their bounds."""

    value: Value
    bounds: tuple[int, int]


def converted(
    b: RuleBuilder, x: Value, region: Region | None, source: TensorType, bounds: tuple[int, int]
) -> Converted | NotApplicable:
    """A function of stored integers of a type, which are within bounds."""
    wide = b.cast(x, i32)
    if region is None:
        return Converted(wide, bounds)
    (returned,) = results_of(region) or [None]
    assert returned is not None
    if returned is region.block.arguments[0]:
        return Converted(wide, bounds)
    target = returned.type
    step = returned.producer
    monotone = isinstance(step, UniformQuantize) and step.input is region.block.arguments[0]
    if monotone and same_scale(source, target):
        return _moved(b, wide, source, target, bounds)
    if monotone and (found := _scaled(b, wide, region, source, target, bounds)) is not None:
        return found
    if monotone:
        bounds = _narrowed(region, source, bounds)
        wide = b.clamp(wide, *bounds)
    if bounds[1] - bounds[0] >= _ENTRIES:
        raise NotApplicable(f"a conversion from {source.storage} to {target.storage} tells apart too many values")
    return _looked_up(b, wide, region, source, bounds)


def _moved(b: RuleBuilder, x: Value, source: TensorType, target: TensorType, bounds: tuple[int, int]) -> Converted:
    """The same scale, another zero point."""
    given: Any = source.element
    made: Any = target.element
    by = made.zero_point - given.zero_point
    low, high = (int(np.clip(end + by, made.storage_min, made.storage_max)) for end in bounds)
    # within the bounds first, so that nothing leaves int32
    x = b.clamp(x, max(low - by, i32.minimum), min(high - by, i32.maximum)) if (low, high) != _both(bounds, by) else x
    return Converted(b.add(x, b.constant(np.asarray(by))) if by else x, (low, high))


def _both(bounds: tuple[int, int], by: int) -> tuple[int, int]:
    return bounds[0] + by, bounds[1] + by


def _values(region: Region, source: TensorType, stored: np.ndarray) -> np.ndarray:
    (made,) = apply(region, [stored.astype(source.storage.dtype)])
    return made.astype(np.int64)


def _thresholds(region: Region, source: TensorType, bounds: tuple[int, int], results: np.ndarray) -> np.ndarray:
    """The first value within bounds whose result is at least that, of a function that does not fall."""
    low = np.full(results.shape, bounds[0], np.int64)
    high = np.full(results.shape, bounds[1], np.int64)
    while (open_ := low < high).any():
        middle = (low + high) >> 1
        reached = _values(region, source, middle) >= results
        high = np.where(open_ & reached, middle, high)
        low = np.where(open_ & ~reached, middle + 1, low)
    return low


def _narrowed(region: Region, source: TensorType, bounds: tuple[int, int]) -> tuple[int, int]:
    """Bounds beyond which the result stays the same."""
    ends = _values(region, source, np.asarray(bounds))
    first, last = _thresholds(region, source, bounds, np.asarray([ends[0] + 1, ends[1]]))
    return max(bounds[0], int(first) - 1), int(last)


def _scaled(
    b: RuleBuilder, x: Value, region: Region, source: TensorType, target: TensorType, bounds: tuple[int, int]
) -> Converted | None:
    """RESCALE in float64; where it is one off at thresholds, a comparison with these sets it right. None if it is
    further off."""
    given: Any = source.element
    made: Any = target.element
    if target.storage not in (i8, ui8, i16) or not isinstance(given, UniformQuantizedType) or not made.scale:
        return None
    reach = bounds[0] - given.zero_point, bounds[1] - given.zero_point
    if min(reach) < i32.minimum or max(*reach, bounds[1] + 1) > i32.maximum:
        return None
    scale = given.scale / made.scale
    low, high = (int(v) for v in _values(region, source, np.asarray(bounds)))
    at = _thresholds(region, source, bounds, np.arange(low + 1, high + 1))
    probes = np.unique(np.concatenate([at, at - 1, np.asarray(bounds)]).clip(*bounds))
    rounded = round_float((probes - given.zero_point) * scale, "half_away") + made.zero_point
    off = np.abs(rounded.clip(low, high) - _values(region, source, probes)).max()
    if off > 1:
        return None
    steps = b.sub(x, b.constant(np.asarray(given.zero_point))) if given.zero_point else x
    numbers = {"scale": np.asarray([scale]), "output_zp": made.zero_point, "input_range": reach}
    near = b.emit(RescaleF64, [steps], steps.type.with_element(target.storage), **numbers)
    out = b.clamp(b.cast(near, i32), low, high)
    if off:
        firsts = np.concatenate([[bounds[0]], at, [bounds[1] + 1]])
        out = _set_right(b, x, out, firsts.astype(np.int32), low)
    return Converted(out, (low, high))


def _set_right(b: RuleBuilder, x: Value, near: Value, firsts: np.ndarray, low: int) -> Value:
    """Results that are one off at most: one more where x has reached the first value of the next, one less where it has
    not reached that of its own. `firsts`: of each result from `low` up, and of the one after the last."""
    index = b.sub(near, b.constant(np.asarray(low))) if low else near
    one, none = b.constant(np.asarray(1)), b.constant(np.asarray(0))
    own, following = (
        b.emit(Gather, [b.constant(table), index], TensorType(x.type.shape, i32), axis=0, batch_dims=0)
        for table in (firsts[:-1], firsts[1:])
    )
    more = b.select(b.greater_equal(x, following), one, none)
    return b.sub(b.add(near, more), b.select(b.greater(own, x), one, none))


def _looked_up(b: RuleBuilder, x: Value, region: Region, source: TensorType, bounds: tuple[int, int]) -> Converted:
    table = _values(region, source, np.arange(bounds[0], bounds[1] + 1))
    index = b.sub(x, b.constant(np.asarray(bounds[0]))) if bounds[0] else x
    entries = b.constant(table.astype(np.int32))
    out = b.emit(Gather, [entries, index], TensorType(x.type.shape, i32), axis=0, batch_dims=0)
    return Converted(out, (int(table.min()), int(table.max())))
