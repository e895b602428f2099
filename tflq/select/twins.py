"""Float twins: float32 tensors with the values of 8-bit ones, less an offset, that one float kernel hands to the next.

With multiply-accumulate in float32, a result that is requantized in float32 is a whole number there already. Its reader
is as often as not a float kernel, which wants it as float32 and less its zero point. So the result has two forms: the
twin, and the integers, which are cast from it. A lowering reads the one it needs, and what nobody reads is dropped
(`dce`): between float kernels no cast is left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tflq.ir.core import Value, constant
from tflq.ir.types import ScalarType, f32, i32

if TYPE_CHECKING:
    from tflq.select.lowering import Kernels

__all__ = ["Twin", "as_int32", "centred", "integers_of", "moved", "twin_of"]


class Twin(NamedTuple):
    """A float32 tensor: an integer one less `offset`."""

    value: Value
    offset: int


def integers_of(k: Kernels, twin: Twin, storage: ScalarType) -> Value:
    """The integers of a twin, which is theirs from here on."""
    result = k.cast(as_int32(k, twin), storage)
    k.twins[result] = twin
    return result


def as_int32(k: Kernels, twin: Twin) -> Value:
    """The integers of a twin, in int32."""
    return k.cast(_plus(k, twin.value, twin.offset), i32)


def twin_of(k: Kernels, x: Value) -> Twin | None:
    """The twin of a tensor on plain 8-bit integers: its own, or a constant; None if it has none."""
    if x.is_constant and x.type.element == x.type.storage:
        return Twin(constant(x.array.astype(np.float32)), 0)
    return k.twins.get(x)


def centred(k: Kernels, x: Value, zero_point: int) -> Value:
    """x - zero_point in float32, of 8-bit x: from its twin, if it has one, else cast."""
    twin = twin_of(k, x) or Twin(k.cast(x, f32), 0)
    return _plus(k, twin.value, twin.offset - zero_point)


def moved(k: Kernels, x: Value, emit: Callable[[Value, int], Value]) -> Value:
    """`emit` of x and 0, an op that only moves elements; of x's twin and its offset, if it has one."""
    twin = k.twins.get(x)
    if twin is None:
        return emit(x, 0)
    return integers_of(k, Twin(emit(*twin), twin.offset), x.type.storage)


def _plus(k: Kernels, x: Value, number: int) -> Value:
    """x + number, whole numbers in float32."""
    if not number:
        return x
    if x.is_constant:
        return constant(x.array + np.float32(number))
    return k.add(x, k.constant(np.asarray(number), f32))
