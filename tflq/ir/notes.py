"""How a verification of a file speaks: the first defect ends it, a harmless one is noted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from tflq.errors import InvalidModelError
from tflq.light import dataclass, field

if TYPE_CHECKING:
    from tflq.ir.core import Op

__all__ = ["COPIED", "Notes", "place"]

COPIED = "the kernel copies values as they are"
"""What a warning of parameters that differ says; a conversion says of each such operator what it makes of it."""

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
