"""How far apart two float results of a TOSA file may be when both are right.

TOSA does not say float results to the last bit: a sum may be taken in any order, functions may be some units in the
last place (ulps) off. The original's kernels round, too. What is allowed is what the roundings on the longest way to an
output come to on both sides, in ulps of the output's largest value. Those of a sum of n terms grow with the root of n,
as roundings that know nothing of each other do. docs/numerics.md, "Floats on TOSA".
"""

from __future__ import annotations

from math import ceil, prod, sqrt
from typing import Final

from tflq.ir.core import Function, Op, Value

__all__ = ["MOST", "allowed_ulps"]

MOST: Final = 4096
"""Ulps that are allowed at most, whatever a file computes: 2^-11 of the largest value, float16's own rounding."""

_ROUNDED: Final = frozenset(("add", "sub", "mul", "cast"))
_FUNCTIONS: Final = frozenset(("cos", "erf", "exp", "log", "pow", "reciprocal", "rsqrt", "sigmoid", "sin", "tanh"))
_OF_FUNCTION: Final = 4
_WEIGHTED: Final = frozenset(("conv2d", "conv3d", "transpose_conv2d"))
_CORNERS: Final = 4
_DEVIATIONS: Final = 4
"""Of a sum of n terms, whose roundings deviate by the root of n: no element in a thousand is further off."""


def allowed_ulps(function: Function) -> int:
    """Ulps by which the float results of a TOSA function may differ; 0 if it computes none."""
    found: dict[Value, int] = {}
    for op in function.ops:
        if any(v.type.storage.is_float for v in op.results):
            before = max((found.get(v, 0) for v in op.operands if v is not None), default=0)
            found.update(dict.fromkeys(op.results, before + _own(op)))
    return min(2 * max(found.values(), default=0), MOST)


def _own(op: Op) -> int:
    """The ulps that an operator adds: roundings of one value of its result."""
    name = op.name.removeprefix("tosa.")
    if name in ("cond_if", "while_loop", "custom"):
        return MOST
    terms = _terms(op, name)
    if terms is not None:
        return ceil(_DEVIATIONS * sqrt(terms))
    return _OF_FUNCTION if name in _FUNCTIONS else int(name in _ROUNDED)


def _terms(op: Op, name: str) -> int | None:
    """How many terms an operator adds up; None for one that is no sum."""
    shapes = [[d or 1 for d in v.type.shape or ()] if v is not None else [] for v in op.operands]
    if name in _WEIGHTED:
        return prod(shapes[1][1:]) + 1
    if name == "depthwise_conv2d":
        return prod(shapes[1][:2]) + 1
    if name == "matmul":
        return shapes[0][-1]
    if name == "avg_pool2d":
        return prod(op.attributes["kernel"]) + 1
    if name in ("reduce_sum", "reduce_product"):
        return shapes[0][op.attributes["axis"]]
    if name in ("fft2d", "rfft2d"):
        return prod(shapes[0])
    if name == "resize":
        return _CORNERS
    return None
