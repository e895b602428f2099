"""Versions of operators: what an op states that has other element types than the operator it was made of."""

from __future__ import annotations

from functools import cache
from typing import Any

from tflq.ir.core import Op
from tflq.ir.dialects import table

__all__ = ["version_info"]


def version_info(op: Op) -> dict[str, Any]:
    """The version that an op states, as `Op.info`, but none newer than interpreters have: what asked for that are the
    quantized types."""
    if "version" not in op.info:
        return {}
    return {"version": min(op.info["version"], _newest().get(op.name.removeprefix("tfl."), 1))}


@cache
def _newest() -> dict[str, int]:
    """By builtin; 1 where there is none."""
    return {name: int(version) for version, names in table("tfl")["version"].items() for name in names.split()}
