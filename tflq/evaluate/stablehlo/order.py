"""Whether a reduction gives the same in every order: whether its body and its init values form a monoid."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tflq.dialects.stablehlo.arithmetic import Add, And, Maximum, Minimum, Multiply, Or, Xor
from tflq.dialects.stablehlo.casts import UniformQuantize
from tflq.dialects.stablehlo.conversions import Accumulating, combiners
from tflq.evaluate.registry import evaluate_op
from tflq.evaluate.stablehlo.numbers import in_units
from tflq.ir.core import Op, Region, Value
from tflq.ir.types import TensorType
from tflq.logs import WARNING, log

__all__ = ["leaves_bounds", "note_order", "order_dependence", "sums_of", "units_of"]

_LATTICE: Final = (Maximum, Minimum, And, Or)


def note_order(op: Accumulating, count: int) -> None:
    """Warns if what an op makes of so many values depends on the order."""
    reason = order_dependence(op, count)
    if reason is not None:
        log(WARNING, "%s: the result depends on the order: %s", op.location or op.name, reason)


def order_dependence(op: Accumulating, count: int | None) -> str | None:
    """Why a reduction of so many values (None: unknown) depends on the order in which they are combined, or on how
    often an init value is; None if it does not."""
    functions = op.functions
    assert functions is not None
    if count is not None and count < 2:
        return None
    found = combiners(functions.body)
    if found is None:
        return "its body does more than combine two values by one op"
    for index, body in enumerate(found):
        reason = _of_body(op, index, body, count)
        if reason is not None:
            return reason
    return None


def _of_body(op: Accumulating, index: int, body: Op, count: int | None) -> str | None:
    if isinstance(body, _LATTICE):
        return None
    kind = body.result.type
    if not kind.quantized:
        if kind.storage.is_float or not isinstance(body, (Add, Multiply, Xor)):
            return f"{body.name} of {kind.storage} is not associative"
        return None
    if not isinstance(body, Add):
        return f"{body.name} rounds and clamps each partial result"
    first = _init_units(op, index)
    if first is not None and first != 0:
        return f"the init value is {first} steps from zero, and may be added more than once"
    return leaves_bounds(op, index, kind, count)


def leaves_bounds(op: Accumulating, index: int, kind: TensorType, count: int | None) -> str | None:
    """Why partial sums of so many values, and of the init value, may be clamped; None if none is."""
    element: Any = kind.element
    if units_of(op, index) is None:
        return "what input_conversion makes is not known to stay within the bounds of the accumulator"
    zero = int(in_units(kind, np.asarray(0)).item())
    low, high = (None, None) if count is None else sums_of(op, index, count)
    if low is None or high is None or low < element.storage_min + zero or high > element.storage_max + zero:
        return f"partial sums can leave the bounds <{element.storage_min}:{element.storage_max}> of the accumulator"
    return None


def sums_of(op: Accumulating, index: int, count: int) -> tuple[int, int]:
    """The least and greatest of any partial sum of so many values and the init value once, in steps of its
    scale."""
    least, greatest = units_of(op, index) or (0, 0)
    first = _init_units(op, index)
    start = (least, greatest) if first is None else (min(first, 0), max(first, 0))
    return least * count + start[0], greatest * count + start[1]


def units_of(op: Accumulating, index: int) -> tuple[int, int] | None:
    """The least and greatest of what an input can be to the body, in steps of the accumulator's scale; None if that is
    not known."""
    functions = op.functions
    assert functions is not None
    element: Any = op.inputs[index].type.element
    ends = np.array([element.storage_min, element.storage_max], np.int64)
    made = _converted(functions.input_conversion, index, ends, op.inputs[index].type)
    if made is None:
        return None
    values, kind = made
    low, high = sorted(in_units(kind, values).tolist())
    return min(low, 0), max(high, 0)


def _converted(
    region: Region | None, index: int, values: np.ndarray, kind: TensorType
) -> tuple[np.ndarray, TensorType] | None:
    """Values through a conversion that is a rescale or the identity."""
    if region is None:
        return values, kind
    returned = region.block.ops[-1].operands[index]
    argument = region.block.arguments[index]
    if returned is argument:
        return values, kind
    step = None if returned is None else returned.producer
    if not isinstance(step, UniformQuantize) or step.input is not argument:
        return None
    made = evaluate_op(step, [values])
    return None if made is None else (made[0], step.result.type)


def _init_units(op: Accumulating, index: int) -> int | None:
    """What an init value is in steps of the accumulator's scale; None if it is not known."""
    functions = op.functions
    assert functions is not None
    init: Value = op.inits[index]
    if not init.is_constant:
        return None
    made = _converted(functions.input_conversion, index, init.array, init.type)
    return None if made is None else int(in_units(made[1], made[0]).item())
