"""What becomes of one operator: a decision, or a refusal."""

from __future__ import annotations

from tflq.ir.core import Op
from tflq.records import Decision

__all__ = ["MARK", "Decision", "Refusal", "kept"]

MARK = "kept"
"""In the info of an op: it stays as it is."""


def kept(op: Op, reason: str, warning: str) -> Decision:
    """An operator that stays as it is. What there is to warn of is what its kernel disregards."""
    return Decision(op, "kept", reason, warning, "disregarded" if warning else "")


class Refusal(Exception):  # noqa: N818 caught where the refusals of a module are collected
    """An operator cannot be converted: why, and what the user can do."""

    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.remedy = remedy
