"""The function being lowered to TOSA: what its values have become, what the target has, what is to be reported.

TOSA computes on signed integers. A uint8 tensor of the integer form is here an int8 one that holds its values less 128
(0..255 → -128..127); only a function's arguments and results stay uint8, behind RESCALEs that TOSA marks as unsigned.
So zero points move by 128 as well (`zero_point`), a constant's data is seen less 128, and data movement needs no
thought.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tflq.analysis.ranges import Ranges
from tflq.analysis.variables import Accesses
from tflq.errors import Refused
from tflq.ir.core import Module, Op, Value, constant
from tflq.ir.types import ElementType, ScalarType, TensorType, element_storage, i4, i8, ui4, ui8
from tflq.tosa.lowering.builder import TosaBuilder
from tflq.tosa.lowering.notes import Note
from tflq.tosa.lowering.scopes import Scope
from tflq.tosa.target import Target

__all__ = ["Tosa"]

Report = Callable[[Note], None]


class Tosa(TosaBuilder):
    """A `TosaBuilder` that knows what the values of the integer form have become."""

    def __init__(self, target: Target, report: Report) -> None:
        super().__init__()
        self.target = target
        self.module = Module([])
        """The module being lowered."""
        self.callee: Callable[[int, Scope], int] = lambda index, _: index
        """The index that a function of the module will have, for an operator that calls it, with its variables."""
        self.lower_ops: Callable[[Sequence[Op]], None] = lambda _: None
        """Lowers ops of a function that is put in the place of its call."""
        self.variables: dict[str, Value] = {}
        """The initial values of the module's variables."""
        self.accesses = Accesses(self.module)
        """What the module being lowered does with variables."""
        self.handles: dict[Value, str] = {}
        """The names of the variables that values are handles of."""
        self.scope: Scope | None = None
        """What a function that control flow calls has of variables; None if it reads and writes them itself."""
        self.held: dict[str, Value] = {}
        """What variables hold at this place in the function, as far as it is known."""
        self.written: dict[str, Op] = {}
        """The last write of each variable."""
        self.ranges = Ranges()
        """Least and greatest values of integer tensors of the integer form."""
        self._report = report
        self._lowered: dict[Value, Value] = {}

    def value(self, operand: Value) -> Value:
        """What an operand has become, of `storage(operand)`."""
        found = self._lowered.get(operand)
        if found is None:
            if not operand.is_constant:
                raise Refused(f"'{operand.name}' is neither computed nor a constant")
            found = self._lowered[operand] = self._constant(operand)
        return found

    def found(self, operand: Value) -> Value | None:
        """What an operand has become, if it has been lowered."""
        return self._lowered.get(operand)

    def set(self, operand: Value, lowered: Value) -> None:
        """Records what a value has become. It takes its name, if it has none yet."""
        if operand.name and not lowered.name and lowered.producer is not None:
            lowered.name = operand.name
        self._lowered[operand] = lowered

    def storage(self, value: Value) -> ScalarType:
        """The element type of what a value becomes."""
        return signed(value.type.element)

    def type(self, value: Value) -> TensorType:
        """The type of what a value becomes."""
        return value.type.with_element(signed(value.type.element))

    def zero_point(self, operand: Value, zero_point: int = 0) -> int:
        """The zero point of what an operand has become."""
        return zero_point - self.offset(operand)

    def offset(self, operand: Value) -> int:
        """What an operand's integers are less than in the integer form: 128 for uint8."""
        return 128 if element_storage(operand.type.element) == ui8 else 0

    def note(self, text: str) -> None:
        """Adds to what the report says of the operator being lowered."""
        self._report(Note(self.location, text))

    def warn(self, text: str, exception: str, remedy: str) -> None:
        """Adds to what the report warns of: where the result is not the interpreter's. `exception`: which of those that
        `tflq.legalize.exceptions` names; `remedy`: what the user can do."""
        self._report(Note(self.location, text, exception, remedy))

    def need(self, name: str, reason: str) -> None:
        """Refused unless the target has a profile or an extension; `reason` says what needs it."""
        if not self.target.has(name):
            kind = "profile" if name.startswith("pro_") else "extension"
            raise Refused(f"{reason} needs the {kind} {name}, which the target lacks")

    def _constant(self, operand: Value) -> Value:
        """A constant's stored integers, signed; int4 and int2 unpacked where the target lacks the type."""
        storage = element_storage(operand.type.element)
        if storage == ui8:
            return constant((operand.array ^ np.uint8(128)).view(np.int8))
        if "sparsity" in operand.info:
            return constant(np.ascontiguousarray(operand.array))
        if storage == ui4 or (storage.bits < 8 and not (storage == i4 and self.target.has("int4"))):
            return constant(np.ascontiguousarray(operand.array.astype(np.int8)))
        return Value(TensorType(operand.type.shape, storage), operand.name, buffer=operand.buffer)


def signed(element: ElementType) -> ScalarType:
    """The storage type, int8 for uint8."""
    storage = element_storage(element)
    return i8 if storage == ui8 else storage
