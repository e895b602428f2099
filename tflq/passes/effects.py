"""Which ops do nothing but compute their results: only those may be removed or merged.

An op is pure if its dialect is known, it is not one of the few below, and it touches no variable tensor.
"""

from __future__ import annotations

from functools import cache

from tflq.ir.core import Op, Value

__all__ = ["IMPURE", "PURE_DIALECTS", "is_pure"]

PURE_DIALECTS = frozenset({"arith", "ext", "math", "quant", "shape", "tensor", "tfl", "tosa"})
"""Dialects whose ops are pure unless listed in `IMPURE`; nothing is known of the others."""

IMPURE = frozenset(
    {
        *("tfl.call", "tfl.call_once", "tfl.custom", "tfl.delegate", "tfl.if", "tfl.while"),
        *("tfl.assign_variable", "tfl.read_variable", "tfl.var_handle"),
        *("tfl.hashtable", "tfl.hashtable_find", "tfl.hashtable_import", "tfl.hashtable_size"),
        *("tfl.multinomial", "tfl.random_standard_normal", "tfl.random_uniform"),
        *("tfl.stablehlo_case", "tfl.stablehlo_composite", "tfl.stablehlo_custom_call"),
        *("tfl.stablehlo_rng_bit_generator", "tfl.stablehlo_while"),
        *("tosa.cond_if", "tosa.custom", "tosa.variable", "tosa.variable_read", "tosa.variable_write"),
        "tosa.while_loop",
    }
)
"""Ops with an effect beside their results, or whose results differ from call to call."""


def is_pure(op: Op) -> bool:
    """Whether the op can be removed if its results are unused, and merged with an identical one."""
    if not _is_pure_kind(op.name):
        return False
    for value in op.operands:  # noqa: SIM110  asked of every op by every pass: half the time of all()
        if value is not None and value.info and is_variable(value):
            return False
    return True


@cache
def _is_pure_kind(name: str) -> bool:
    return name not in IMPURE and name.partition(".")[0] in PURE_DIALECTS


def is_variable(value: Value) -> bool:
    """Whether the value is a variable tensor: state that outlives a run."""
    return bool(value.info) and bool(value.info.get("is_variable"))
