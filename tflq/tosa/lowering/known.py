"""Sizes, axes and indices that are known before the model runs.

TOSA 1.0 has no run-time shapes: what an operator of TFLite takes as a tensor of sizes must be a constant here. It is
one if the file says so, or if it follows from constants and from shapes (`analysis.known`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tflq.analysis.known import LIMIT, Known, constant_elements, elements_of
from tflq.dialects.tfl.shape import Rank, Shape
from tflq.errors import Refused
from tflq.ir.core import Value

__all__ = ["constant_of", "dims_of", "known_array", "known_axis", "known_elements", "product"]


def known_elements(value: Value) -> Known | None:
    """What is known of a tensor's elements, whatever the model is run on."""
    return _elements(value, {})


def _elements(value: Value, seen: dict[Value, Known | None]) -> Known | None:
    if value not in seen:
        seen[value] = _computed(value, seen) if value.producer else constant_elements(value)
    return seen[value]


def _computed(value: Value, seen: dict[Value, Known | None]) -> Known | None:
    """What is known of a result of an op."""
    op, shape = value.producer, value.type.shape
    if op is None or not op.name.startswith("tfl.") or not value.type.storage.is_integer:
        return None
    if shape is None or (product(shape) or 0) > LIMIT:
        return None
    computes = not isinstance(op, (Shape, Rank))
    known = [_elements(v, seen) if computes and v is not None else None for v in op.operands]
    found = elements_of(op, [None if v is None else v.type.shape for v in op.operands], known)
    return None if found is None else found[op.results.index(value)]


def known_array(value: Value) -> np.ndarray | None:
    """The elements of a tensor, if all are known."""
    if value.is_constant:
        return value.array
    known = known_elements(value)
    return known.array if known is not None and known.complete else None


def constant_of(value: Value, what: str) -> np.ndarray:
    """The elements of an operand that must be known; `what` is its role: "axes"."""
    array = known_array(value)
    if array is None:
        name = f" '{value.name}'" if value.name else ""
        raise Refused(f"its {what}{name} is computed when the model runs, and TOSA 1.0 has no run-time shapes")
    return array


def known_axis(axis: Value, rank: int) -> int:
    """An operand that is one axis of a tensor of a rank."""
    return int(constant_of(axis, "axis").reshape(-1)[0]) % rank


def dims_of(value: Value) -> tuple[int | None, ...]:
    """A tensor's dims. Refused if not even their number is known."""
    shape = value.type.shape
    if shape is None:
        name = f" of '{value.name}'" if value.name else ""
        raise Refused(f"the rank{name} is not known, and TOSA 1.0 has no run-time shapes")
    return shape


def product(dims: Sequence[int | None]) -> int | None:
    """The number of elements; None if a dim is not known."""
    return None if None in dims else math.prod(d or 0 for d in dims)
