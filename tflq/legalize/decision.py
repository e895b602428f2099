"""What becomes of one operator."""

from __future__ import annotations

from tflq.ir.core import Op
from tflq.legalize.exceptions import remedies
from tflq.records import Decision

__all__ = ["MARK", "Decision", "kept"]

MARK = "kept"
"""In the info of an op: it stays as it is."""


def kept(op: Op, reason: str, warning: str) -> Decision:
    """An operator that stays as it is. What there is to warn of is what its kernel ignores."""
    exception = "disregarded" if warning else ""
    return Decision(op, "kept", reason, warning, exception, remedies([exception]))
