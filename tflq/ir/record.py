"""What passes and verifications note on a module, and scales and zero points of tensors as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeVar

import numpy as np

from tflq.errors import InvalidModelError, UnsupportedError
from tflq.ir.types import (
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    f64,
)
from tflq.light import dataclass, field

if TYPE_CHECKING:
    import numpy.typing as npt

    from tflq.ir.core import Op


Item = TypeVar("Item")


class Record:
    """At most one object of each class. It does not belong to the model: not printed, not compared, not written."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: dict[type, object] = {}

    def note(self, item: object) -> None:
        """Notes an object, and forgets the one of its class."""
        self._items[type(item)] = item

    def find(self, kind: type[Item]) -> Item | None:
        """The object of a class."""
        found = self._items.get(kind)
        assert found is None or isinstance(found, kind)
        return found

    def join(self, other: Record) -> None:
        """Notes what another record has beyond this one."""
        self._items = other._items | self._items


# What a verification of a file says: the first defect ends it, a harmless one is noted.


COPIED = "the kernel copies values as they are"
"""Part of a warning about parameters that differ; a conversion reports what it makes of each such operator."""

_MOST = 200
"""Warnings kept of one model."""


@dataclass(slots=True)
class Notes:
    """What a verification found harmless, in order; `warnings` holds one sentence each, without repetition."""

    warnings: list[str] = field(default_factory=list)
    left_out: int = 0

    def fail(self, where: str, reason: str, *, hint: str = "") -> NoReturn:
        raise InvalidModelError(where, reason, hint=hint)

    def fail_op(self, op: Op, reason: str, *, hint: str = "") -> NoReturn:
        raise InvalidModelError(op.location or op.name, reason, hint=hint)

    def warn(self, where: str, reason: str, *, remedy: str) -> None:
        """Notes a harmless defect; `remedy`: what the user can do about it."""
        sentence = f"{where}: {reason}; {remedy}"
        if len(self.warnings) >= _MOST:
            self.left_out += 1
        elif sentence not in self.warnings:
            self.warnings.append(sentence)

    def warn_op(self, op: Op, reason: str, *, remedy: str) -> None:
        self.warn(place(op), reason, remedy=remedy)

    def finish(self) -> list[str]:
        """The warnings, with a last line for those left out."""
        return [*self.warnings, f"{self.left_out} more warnings"] if self.left_out else self.warnings


def place(op: Op) -> str:
    """Where an op is, for a message."""
    return str(op.location) if op.location is not None else op.name


# Scales and zero points of quantized tensors as arrays that broadcast to them.


def parameters(type: TensorType) -> tuple[np.ndarray, np.ndarray]:
    """Scale (float32, or float64 where that is expressed) and zero point (int32, or int64 where it is beyond that) of a
    quantized tensor, shaped to broadcast to it."""
    element, rank = type.element, type.rank
    precision = np.float64 if getattr(element, "expressed", None) == f64 else np.float32
    if isinstance(element, UniformQuantizedType):
        return np.asarray(element.scale, precision), _zeros(element.zero_point)
    if isinstance(element, UniformQuantizedPerAxisType) and rank is not None:
        view = [-1 if i == element.axis else 1 for i in range(element.axis, rank)]
        scales, zeros = element.scales.astype(precision, copy=False), _zeros(element.zero_points)
        return scales.reshape(view), zeros.reshape(view)
    if isinstance(element, UniformQuantizedSubChannelType):
        scales, zeros = element.scales.astype(precision, copy=False), _zeros(element.zero_points)
        for axis, size in zip(element.axes, element.block_sizes, strict=True):
            scales, zeros = np.repeat(scales, size, axis), np.repeat(zeros, size, axis)
        return scales, zeros
    raise UnsupportedError(f"a tensor of type {type} has no known scales")


def _zeros(points: npt.ArrayLike) -> np.ndarray:
    wide = np.asarray(points, np.int64)
    narrow = wide.astype(np.int32)
    return narrow if (narrow == wide).all() else wide
