"""What becomes of one operator: a decision, or a refusal."""

from __future__ import annotations

from dataclasses import dataclass, field

from tflq.ir.core import Op

__all__ = ["Decision", "Refusal", "kept"]


@dataclass(slots=True)
class Decision:
    """What became of one operator of the source model: a row of the report."""

    op: Op
    path: str  # "kept", "integer" or "float"
    reason: str = ""
    warning: str = ""
    exception: str = ""  # which of `tflq.legalize.exceptions` the warning is of
    made: list[Op] = field(default_factory=list)


def kept(op: Op, reason: str, warning: str) -> Decision:
    """An operator that stays as it is. What there is to warn of is what its kernel disregards."""
    return Decision(op, "kept", reason, warning, "disregarded" if warning else "")


class Refusal(Exception):  # noqa: N818 caught where the refusals of a module are collected
    """An operator cannot be converted: why, and what the user can do."""

    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.remedy = remedy
