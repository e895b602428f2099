"""Parameters from a range that was seen."""

from __future__ import annotations

from tflq.ir.types import AnyQuantizedType, CalibratedQuantizedType, UniformQuantizedType

__all__ = ["parameters"]


def parameters(seen: CalibratedQuantizedType, stored: AnyQuantizedType, zero_point: int | None) -> UniformQuantizedType:
    """The parameters of a range, stored as a type within bounds; `zero_point`: the one that the kernel asks for.

    The range is widened to contain 0. scale = (max - min) / (qmax - qmin) in f64, rounded to the expressed type; zero
    point = round half even(qmin - min / scale), clamped. Where the zero point is given, the scale is the least that
    reaches both ends.
    """
    low, high = min(seen.minimum, 0.0), max(seen.maximum, 0.0)
    qmin, qmax = stored.storage_min, stored.storage_max
    if zero_point is None:
        scale = (high - low) / (qmax - qmin)
    else:
        reach = [end / (q - zero_point) for end, q in ((low, qmin), (high, qmax)) if end and q != zero_point]
        scale = max((abs(r) for r in reach), default=0.0)
    made = UniformQuantizedType.of(
        stored.storage, scale, zero_point or 0, expressed=seen.expressed, storage_min=qmin, storage_max=qmax
    )
    if zero_point is not None or not made.scale:
        return made
    place = min(max(round(qmin - low / made.scale), qmin), qmax)
    return UniformQuantizedType.of(
        stored.storage, scale, place, expressed=seen.expressed, storage_min=qmin, storage_max=qmax
    )
