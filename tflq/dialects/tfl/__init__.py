"""The operators of TFLite: what is true of each wherever it occurs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from tflq.dialects.declare import Attribute, Operator, Slot, Types
from tflq.dialects.parameters import Parameters
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, i32, i64

COUNT: Final = Types(i32, i64)
"""Element types of counts and places, of which an attribute says one."""


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

_ByElement: TypeAlias = tuple[bool, int, Mapping[ScalarType, int]]
"""Whether a value is a result, its place, and the versions that its element types need."""


class Needs:
    """A version and its cause: the element type of a value, an attribute that is not 0, or a rank of the first
    operand from `rank` on. Or operands of several shapes and of a rank from `broadcast_rank` on."""

    __slots__ = ("element", "holds", "slot", "version")

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
        self.slot: Final[Slot | None] = slot
        self.element = element
        self.holds: Final[Callable[[Op], bool]] = (
            _of_rank(rank) if rank else _broadcasts(broadcast_rank) if broadcast_rank else _states(attribute)
        )
        """Whether an op needs the version, where that is not for an element type."""


def needed_version(op: Operator) -> int:
    """The newest version that something about an operator needs; 1 if nothing does."""
    by_slot, others = _NEEDED[op.__class__]
    version = 1
    for is_result, index, of_elements in by_slot:
        values: Sequence[Value | None] = op.results if is_result else op.operands
        value = values[index] if index < len(values) else None
        needed = 1 if value is None else of_elements.get(value.type.storage, 1)
        if needed > version:  # `max` takes as long as all the rest
            version = needed
    for need in others:
        if need.version > version and need.holds(op):
            version = need.version
    return version


class _Needed(dict[type[Operator], "tuple[Sequence[_ByElement], Sequence[Needs]]"]):
    """By class, what it says of versions: of the element types of each value, and the rest."""

    def __missing__(self, kind: type[Operator]) -> tuple[Sequence[_ByElement], Sequence[Needs]]:
        by_slot: dict[tuple[bool, int], dict[ScalarType, int]] = {}
        others: list[Needs] = []
        for need in kind.versions:
            if need.slot is None:
                others.append(need)
            else:
                assert need.element is not None
                by_slot.setdefault((need.slot.is_result, need.slot.index), {})[need.element] = need.version
        self[kind] = requirements = [(*place, of_elements) for place, of_elements in by_slot.items()], others
        return requirements


_NEEDED: Final = _Needed()


def _of_rank(rank: int) -> Callable[[Op], bool]:
    def holds(op: Op) -> bool:
        first = op.operands[0]
        return first is not None and len(first.type.dims) >= rank

    return holds


def _broadcasts(rank: int) -> Callable[[Op], bool]:
    def holds(op: Op) -> bool:
        shapes = [v.type.shape for v in op.present_operands]
        for shape in shapes:
            if len(shape or ()) >= rank:
                return len(set(shapes)) > 1
        return False

    return holds


def _states(attribute: Attribute) -> Callable[[Op], bool]:
    return lambda op: bool(op.attributes.get(attribute.key))


# Scales and zero points that kernels give their results, by storage type. Source: the Prepare functions of
# tflite/kernels.


UNIT: Final[Parameters] = {"i8": (2.0**-8, -128), "ui8": (2.0**-8, 0), "i16": (2.0**-15, 0)}
"""Of results between 0 and 1."""
SYMMETRIC: Final[Parameters] = {"i8": (2.0**-7, 0), "ui8": (2.0**-7, 128), "i16": (2.0**-15, 0)}
"""Of results between -1 and 1."""
L2_UNIT: Final[Parameters] = {"i8": (2.0**-7, 0), "ui8": (2.0**-7, 128)}
LOG_SOFTMAX: Final[Parameters] = {"i8": (2.0**-4, 127), "ui8": (2.0**-4, 255)}
