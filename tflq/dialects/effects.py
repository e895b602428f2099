"""Which ops do nothing but compute their results: only those may be removed or merged.

An op is pure if its dialect is known, it does not declare that it is not, and it touches no variable tensor.
"""

from __future__ import annotations

from functools import cache

from tflq.dialects.declare import Operator
from tflq.dialects.traits.effects import Impure
from tflq.ir.core import Op, Value

__all__ = ["PURE_DIALECTS", "is_pure"]

PURE_DIALECTS = frozenset({"arith", "ext", "math", "quant", "shape", "tensor", "tfl", "tosa"})
"""Dialects whose ops are pure unless they are declared `Impure`; nothing is known of the others."""


def is_pure(op: Op) -> bool:
    """Whether the op can be removed if its results are unused, and merged with an identical one."""
    if (isinstance(op, Operator) and op.has(Impure)) or not _is_pure_dialect(op.name):
        return False
    for value in op.operands:  # noqa: SIM110  asked of every op by every pass: half the time of all()
        if value is not None and value.info and is_variable(value):
            return False
    return True


@cache
def _is_pure_dialect(name: str) -> bool:
    return name.partition(".")[0] in PURE_DIALECTS


def is_variable(value: Value) -> bool:
    """Whether the value is a variable tensor: state that outlives a run."""
    return bool(value.info) and bool(value.info.get("is_variable"))
