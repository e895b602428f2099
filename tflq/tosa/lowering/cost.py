"""What is worth a table in TOSA."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.ir.core import Op

__all__ = ["table_pays"]


def table_pays(ops: Sequence[Op], sources: int) -> bool:
    """TABLE is one operator on one 8-bit tensor, of the same type: worth it in the place of two or more."""
    return sources == 1 and len(ops) > 1 and ops[-1].result.type.storage.bits == 8
