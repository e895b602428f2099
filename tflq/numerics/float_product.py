"""A function of the product of two 8-bit numbers in float32, proven on all 65,536 pairs: MUL.

    f(x, y) = g((x - a) (y - b))        g a requantization in float32 (`tflq.numerics.float_requantize`)

The product of two differences is below 2^17, so exact. A table is such a function if its row at a and its column at b
have one entry, that of 0, and all entries climb with the product. Where several rows or columns have one entry, as they
do around a for small scales, and on one side of it where a clamp cuts negative products off, the ends and the middle
are tried.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tflq.light import dataclass
from tflq.numerics.float_requantize import RELU6, FloatRequantization, fit_float_requantization, line_slope

__all__ = ["FloatProduct", "Product", "fit_float_product", "product_of"]

_COARSE: Final = 7  # every such place shows soon whether a table climbs


@dataclass(frozen=True, slots=True)
class Product:
    """A table that climbs with (x - a) (y - b), of places x and y: thresholds T(1) ... T(L) of the product, int64 [L],
    the greatest products below them, its bounds, and about how many levels it climbs per unit."""

    a: int
    b: int
    thresholds: np.ndarray
    below: np.ndarray
    low: int
    high: int
    slope: float


@dataclass(frozen=True, slots=True)
class FloatProduct:
    """f(x, y) = g((x - a) (y - b)) for places x and y of a table."""

    a: int
    b: int
    g: FloatRequantization

    def __call__(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f of places that broadcast, in float32."""
        product = (x - self.a).astype(np.float32) * (y - self.b).astype(np.float32)
        return self.g(product[..., None])[..., 0]


def product_of(table: np.ndarray) -> Product | None:
    """How a table, whole numbers [256, 256] of which the least is 0, is a function of a product; None if it is not."""
    if not table.any():
        return None
    rows, columns = (_some(np.nonzero(np.ptp(table, axis) == 0)[0]) for axis in (1, 0))
    for a in rows:
        for b in columns:
            if _in_order(table[::_COARSE, ::_COARSE], a, b, _COARSE) is not None:
                found = _climbing(table, a, b)
                if found is not None:
                    return found
    return None


def _some(places: np.ndarray) -> list[int]:
    """The middle and the ends of places, and what is next to the ends."""
    return list(dict.fromkeys(int(v) for v in (*places[places.size // 2 :][:1], *places[-3:][::-1], *places[:3])))


def _in_order(table: np.ndarray, a: int, b: int, stride: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Entries and products of places, `stride` apart, in order; None if the entries do not climb with the products."""
    places = np.arange(table.shape[0]) * stride
    products = np.multiply.outer(places - a, places - b).ravel()
    order = np.argsort(products, kind="stable")
    level, product = table.ravel()[order], products[order]
    step = np.diff(level)
    return None if (step < 0).any() or (step[np.diff(product) == 0] != 0).any() else (level, product)


def _climbing(table: np.ndarray, a: int, b: int) -> Product | None:
    ordered = _in_order(table, a, b, 1)
    if ordered is None:
        return None
    level, product = ordered
    first = np.searchsorted(level, np.arange(1, int(level[-1]) + 1))
    thresholds, below = product[first], product[first - 1]
    slope = line_slope(thresholds, below)
    if slope is None:
        return None
    return Product(a, b, thresholds, below, int(product[0]), int(product[-1]), slope)


def fit_float_product(table: np.ndarray, product: Product) -> FloatProduct | None:
    """f with f(x, y) = table for `product_of` it; None without a proof."""
    slope, low, high = (np.asarray([v]) for v in (product.slope, product.low, product.high))
    thresholds, below = product.thresholds[:, None], product.below[:, None]
    g = fit_float_requantization(thresholds, slope, low, high, RELU6, below=below)
    if g is None:
        return None
    fit, places = FloatProduct(product.a, product.b, g), np.arange(256)
    assert (fit(places[:, None], places) == table).all()
    return fit
