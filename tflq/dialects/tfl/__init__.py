"""The operators of TFLite: what is true of each wherever it occurs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tflq.dialects.declare import Attribute, Slot
from tflq.dialects.traits.quantization import Parameters
from tflq.ir.core import Op, Value
from tflq.ir.types import ScalarType, Shape


def op_name(builtin: str) -> str:
    """The op of a builtin operator: `CONV_2D` -> `tfl.conv_2d`."""
    return f"tfl.{builtin.lower()}"


def builtin_of(name: str) -> str:
    """The builtin operator of an op: `tfl.conv_2d` -> `CONV_2D`."""
    return name.removeprefix("tfl.").upper()


def fused_activation(op: Op) -> str:
    """The activation that an op applies to its result; "NONE" if it is of a kind that has none."""
    return str(op.attributes.get("fused_activation_function", "NONE"))


def without_activation(op: Op) -> dict[str, Any]:
    """The attributes of an op, with no activation."""
    activation = {} if fused_activation(op) == "NONE" else {"fused_activation_function": "NONE"}
    return {**op.attributes, **activation}


# Which version of an operator its types and options need. Source: tflite/tools/versioning/op_version.cc.


class Needs:
    """A version, and what needs it: the element type of a value, an attribute that is not 0, a rank of the first
    operand from `rank` on, operands of several shapes and of a rank from `broadcast_rank` on."""

    __slots__ = ("holds", "version")

    def __init__(
        self,
        version: int,
        slot: Any = None,
        element: ScalarType | None = None,
        *,
        attribute: Any = None,
        rank: int = 0,
        broadcast_rank: int = 0,
    ) -> None:
        self.version = version
        self.holds: Final[Callable[[Op], bool]] = (
            _of_rank(rank)
            if rank
            else _broadcasts(broadcast_rank)
            if broadcast_rank
            else _states(attribute)
            if attribute is not None
            else _of_element(slot, element)
        )
        """Whether an op needs the version."""


def _of_rank(rank: int) -> Callable[[Op], bool]:
    def holds(op: Op) -> bool:
        first = op.operands[0]
        return first is not None and _rank(first.type.shape) >= rank

    return holds


def _broadcasts(rank: int) -> Callable[[Op], bool]:
    def holds(op: Op) -> bool:
        shapes = {v.type.shape for v in op.reads}
        return len(shapes) > 1 and max(map(_rank, shapes)) >= rank

    return holds


def _states(attribute: Attribute) -> Callable[[Op], bool]:
    return lambda op: bool(op.attributes.get(attribute.key))


def _of_element(slot: Slot, element: ScalarType | None) -> Callable[[Op], bool]:
    def holds(op: Op) -> bool:
        values: Sequence[Value | None] = op.results if slot.is_result else op.operands
        value = values[slot.index] if slot.index < len(values) else None
        return value is not None and value.type.storage is element

    return holds


def _rank(shape: Shape) -> int:
    return len(shape or ())


# Scales and zero points that kernels give their results, by storage type. Source: the Prepare functions of
# tflite/kernels.


UNIT: Final[Parameters] = {"i8": (2.0**-8, -128), "ui8": (2.0**-8, 0), "i16": (2.0**-15, 0)}
"""Of results between 0 and 1."""
SYMMETRIC: Final[Parameters] = {"i8": (2.0**-7, 0), "ui8": (2.0**-7, 128), "i16": (2.0**-15, 0)}
"""Of results between -1 and 1."""
L2_UNIT: Final[Parameters] = {"i8": (2.0**-7, 0), "ui8": (2.0**-7, 128)}
LOG_SOFTMAX: Final[Parameters] = {"i8": (2.0**-4, 127), "ui8": (2.0**-4, 255)}
