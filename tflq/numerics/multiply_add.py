"""x m + c in float32 as kernels compute it: rounded after the product and after the sum, or once, as fused; or with the
constant put before the product.

Two kernels, MUL and ADD, round twice. A runtime that makes one kernel of them may round once instead (a fused
multiply-add), and which of both it does is not said. Another one computes (x + c / m) m. So a number is proven for each
of them (`SumRounding`), or no product by a constant meets a sum with one.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

SumRounding: TypeAlias = Literal["separate", "either", "any"]
"""What a formula is proven for: MUL and ADD rounded one after the other; that as well as both rounded once; or these,
and the constant before the product."""


def multiply_add(x: np.ndarray, m: np.ndarray | np.floating, c: np.ndarray, *, fused: bool = False) -> np.ndarray:
    """x m + c of float32 numbers that broadcast: float32, rounded twice or, `fused`, once."""
    if not fused:
        total = x * m
        return np.asarray(total + c)
    product = x.astype(np.float64) * m  # exact
    return sum_once(product, c.astype(np.float64))


def in_any_order(x: np.ndarray, m: np.floating, c: np.floating) -> tuple[np.ndarray, ...]:
    """x m + c of float32 numbers in each way in which a runtime may compute it, m not 0."""
    constant = np.full(1, c)
    return multiply_add(x, m, constant), multiply_add(x, m, constant, fused=True), (x + c / m) * m


def sum_once(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a + b of float64 numbers, rounded once to float32.

    The float64 sum is rounded to odd: where it is not exact, of both float64 numbers beside the sum it is that with an
    odd significand. Rounding that to float32 is rounding the sum itself. Source: Boldo, Melquiond, Emulation of FMA and
    correctly rounded sums, 2008.
    """
    total = a + b
    back = total - a
    lost = (a - (total - back)) + (b - back)  # what rounding took off, exactly
    wrong = (lost != 0) & (total.view(np.int64) & 1 == 0)
    beside = np.nextafter(total, np.where(lost > 0, np.inf, -np.inf))
    return np.where(wrong, beside, total).astype(np.float32)
