"""What the constraints of several ops share: element types and shapes that must agree.

A constraint is a predicate whose docstring is the sentence that the user reads when it does not hold
(`tflq.ir.verifier`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tflq.ir.core import Op, Value
from tflq.ir.types import ElementType, Shape, TensorType, UniformQuantizedPerAxisType, UniformQuantizedType
from tflq.ir.verifier import constraint


@constraint
def elementwise(op: Op) -> bool:
    """operands and result must have the same shape"""
    return types_agree(op.tensors)


@constraint
def one_kind(op: Op) -> bool:
    """operands and result must have the same element type, or quantized ones of the same storage and expressed type"""
    kinds = {_kind(value.type.element) for value in op.tensors}
    return len(kinds) == 1


def _kind(element: ElementType) -> Any:
    if isinstance(element, (UniformQuantizedType, UniformQuantizedPerAxisType)):
        return element.storage, element.expressed
    return element


def baseline(type: TensorType) -> Any:
    """What of a quantized type does not depend on its parameters: `baseline_element_type` of the specification."""
    element = type.element
    if isinstance(element, (UniformQuantizedType, UniformQuantizedPerAxisType)):
        return element.storage, element.expressed, element.storage_min, element.storage_max
    return element


def is_per_axis(type: TensorType) -> bool:
    """Whether it has scales along an axis."""
    return isinstance(type.element, UniformQuantizedPerAxisType)


def is_per_tensor(type: TensorType) -> bool:
    """Whether it has one scale."""
    return isinstance(type.element, UniformQuantizedType)


def agree(one: Shape, other: Shape) -> bool:
    """Whether two shapes can be the same: unknown dims agree with everything."""
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def types_agree(values: Any) -> bool:
    """Whether the shapes of values can be the same."""
    shapes: Sequence[Shape] = [value.type.shape for value in values if isinstance(value, Value)]
    return all(agree(one, other) for index, one in enumerate(shapes) for other in shapes[index + 1 :])


def integers(op: Op, key: str, default: Sequence[int] | None = None) -> tuple[int, ...] | None:
    """A list of integers that an attribute holds, whichever of its spellings it has; None if it holds none."""
    given = op.attributes.get(key)
    if given is None:
        return None if default is None else tuple(default)
    array = np.asarray(given)
    if array.ndim > 1 or (array.size and array.dtype.kind not in "iub"):
        return None
    return tuple(int(item) for item in array.reshape(-1))
