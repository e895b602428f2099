"""Model constraints, wherever a model states them: in casts, in statistics and in element types.

A constraint on a value is a spec: a `quant.dcast` of a `quant.qcast` states parameters, `quant.stats` a range, an
element type what it is. Parameters come before a range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tflq.dialects.quant.casts import Dcast, Qcast
from tflq.dialects.quant.statistics import Stats
from tflq.ir.core import Op, Value
from tflq.ir.types import (
    AnyQuantizedType,
    CalibratedQuantizedType,
    ElementType,
    NoQuantizedType,
    ScalarType,
    is_quantized,
)

__all__ = ["made_plain", "stated_after", "stated_before"]

_CONSTRAINTS = (AnyQuantizedType, CalibratedQuantizedType, NoQuantizedType)


def made_plain(values: Iterable[Value]) -> dict[Value, ElementType]:
    """Gives values whose element type only constrains them (any, calibrated, none) the type that it expresses; what
    they were."""
    found: dict[Value, ElementType] = {}
    for value in values:
        element = value.type.element
        if isinstance(element, _CONSTRAINTS) and element.expressed is not None:
            found[value] = element
            value.type = value.type.with_element(element.expressed)
    return found


def stated_before(value: Value) -> tuple[Value, ElementType | None]:
    """The value that casts and statistics before a use say something of, and the strongest that they say; None for
    nothing."""
    spec: ElementType | None = None
    while True:
        op = value.producer
        if isinstance(op, Stats) and not is_quantized(op.arg.type.element):
            spec = spec or range_of(op)
            value = op.arg
        elif (
            isinstance(op, Dcast)
            and isinstance(op.input.producer, Qcast)
            and not is_quantized(spec or value.type.element)
        ):
            cast = op.input.producer
            if cast.input.type != value.type:
                return value, spec
            spec, value = op.input.type.element, cast.input
        else:
            return value, spec


def stated_after(
    value: Value, users: Mapping[Value, Sequence[Op]], returned: frozenset[Value]
) -> tuple[ElementType | None, list[Value]]:
    """What casts and statistics after a value say of it, if every use of it does: the strongest; and the values that
    stand for it behind them."""
    spec: ElementType | None = None
    same: list[Value] = []
    while value not in returned:
        found = users.get(value, ())
        if not found:
            break
        if all(isinstance(op, Stats) for op in found) and len(found) == 1:
            spec = spec or range_of(found[0])  # type: ignore[arg-type]
            value = found[0].result
            same.append(value)
            continue
        kinds = {op.result.type.element for op in found if isinstance(op, Qcast)}
        if not all(isinstance(op, Qcast) for op in found) or len(kinds) != 1:
            break
        for cast in found:
            same += [
                op.result for op in users.get(cast.result, ()) if isinstance(op, Dcast) and op.result.type == value.type
            ]
        return kinds.pop(), same
    return spec, same


def range_of(stats: Stats) -> ElementType | None:
    """The range that statistics of a whole tensor state; None if it is a single number."""
    element = stats.arg.type.element
    low, high = np.asarray(stats.layer_stats, np.float64).tolist()
    if not isinstance(element, ScalarType) or not low < high:
        return None
    return CalibratedQuantizedType.of(element, low, high)
