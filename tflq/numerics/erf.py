"""The error function in float32 by polynomials, for targets that have an exponential and no erf.

    |x| < 1      erf(x) = x + x P(x^2)
    |x| >= 1     erf(x) = sign(x) (1 - exp(Q(|x|)))        Q fits log(erfc), up to LIMIT, where erf is 1 in float32

Coefficients are least-squares fits on Chebyshev nodes, made when first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import erf, erfc, log

import numpy as np

__all__ = ["LIMIT", "inner", "outer"]

LIMIT = 4.0
"""1 - erf of it is below half a unit in the last place."""


@cache
def inner() -> np.ndarray:
    """Coefficients of P, lowest power first: float32."""
    return _fit(lambda v: erf(v**0.5) / v**0.5 - 1, 0.0, 1.0, 6)


@cache
def outer() -> np.ndarray:
    """Coefficients of Q, lowest power first: float32."""
    return _fit(lambda v: log(erfc(v)), 1.0, LIMIT, 8)


def _fit(function: Callable[[float], float], low: float, high: float, degree: int) -> np.ndarray:
    nodes = np.cos((np.arange(400) + 0.5) * np.pi / 400) * (high - low) / 2 + (high + low) / 2
    values = np.asarray([function(float(v)) for v in nodes])
    fitted = np.polynomial.Chebyshev.fit(nodes, values, degree, domain=[low, high])
    return fitted.convert(kind=np.polynomial.Polynomial).coef.astype(np.float32)
