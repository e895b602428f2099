"""Weights and biases of a product, fitted to the inputs that a quantized network gives it.

A product has rows of weights w and a bias b. On the float network's inputs x it gives y = w·x + b. The quantized
network gives z for x. The weights that come nearest to y on z, with means of the samples taken away (x̄, z̄):

    H = Σ (z - z̄)(z - z̄)ᵀ        G = Σ (z - z̄)(x - x̄)ᵀ
    t = w + (H + λ I)⁻¹ (G - H) w        λ = 0.01 · mean of the diagonal of H
    s = the fraction of max|t| / q, of 0.4 to 1, with the least Σ (H_ii + λ) (t_i - s · round(t_i / s))²
    q = columns of t in the order of falling H_ii, each made up for by those behind it (`ranges.compensated_weights`)
    b' = ȳ - s q · z̄

A depthwise convolution has a product for each channel of its input: all arrays have groups as their first dim, 1 for
other products. A row of weights may be stored in blocks, each of a scale of its own.

Sources: least squares; "GPTQ" (arXiv 2210.17323), with the order of its `act_order`; the mean error of
a channel as in "Data-Free Quantization Through Weight Equalization and Bias Correction" (arXiv 1906.04721), 4.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from tflq.numerics.ranges import bounds, compensated_weights, damped, stored_weights

_FRACTIONS: Final = np.linspace(1, 0.4, 25)
_NARROWEST: Final = 0.25
"""A scale is not below this share of the one before: a bias is stored in steps of it."""
_LEAST: Final = 1e-12


class Rows(NamedTuple):
    """Inputs of a product, the float network's and the quantized network's: float64, [groups, rows, columns]."""

    real: np.ndarray
    stored: np.ndarray

    def at(self, places: np.ndarray) -> Rows:
        """A selection of rows."""
        return Rows(self.real[:, places], self.stored[:, places])


class Product(NamedTuple):
    """The float weights of a product, [groups, outputs, columns], and its bias, [groups, outputs]."""

    weights: np.ndarray
    bias: np.ndarray

    def of(self, rows: np.ndarray) -> np.ndarray:
        """The results for [groups, rows, columns]: [groups, rows, outputs]."""
        return rows @ np.swapaxes(self.weights, -1, -2) + self.bias[:, None]


class Stored(NamedTuple):
    """Stored weights [groups, outputs, columns], the scales of their blocks, [groups, outputs, blocks], and the real
    bias, [groups, outputs]."""

    weights: np.ndarray
    scales: np.ndarray
    bias: np.ndarray

    def product(self) -> Product:
        return Product(self.weights * _of_columns(self.scales, self.weights), self.bias)

    def where(self, better: np.ndarray, other: Stored) -> Stored:
        """These of the outputs for which they are better, [groups, outputs], and another's of the rest."""
        weights, scales = (
            np.where(better[..., None], *sides)
            for sides in ((self.weights, other.weights), (self.scales, other.scales))
        )
        return Stored(weights, scales, np.where(better, self.bias, other.bias))


def _of_columns(scales: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The scale of each weight."""
    return np.repeat(scales, weights.shape[-1] // scales.shape[-1], axis=-1)


def with_mean_bias(floats: Product, stored: Stored, rows: Rows) -> Stored:
    """The weights with the bias that makes the mean of each output that of the float network."""
    apart = floats.of(rows.real.mean(axis=1, keepdims=True)) - stored.product().of(
        rows.stored.mean(axis=1, keepdims=True)
    )
    return stored._replace(bias=stored.bias + apart[:, 0])


def _single(scales: np.ndarray) -> np.ndarray:
    return scales.astype(np.float32)


def rounded_again(floats: Product, stored: Stored, rows: Rows, bits: int, *, centered: bool) -> Stored:
    """The float weights, rounded on their scales as by GPTQ with the inputs that the quantized network gives. Arguments
    as of `reconstructed`."""
    seen = rows.stored - (rows.stored.mean(axis=1, keepdims=True) if centered else 0.0)
    moments = np.swapaxes(seen, -1, -2) @ seen
    result = stored._replace(weights=_rounded(floats.weights, stored.scales, moments, bits))
    return with_mean_bias(floats, result, rows) if centered else result


def reconstructed(
    floats: Product,
    stored: Stored,
    rows: Rows,
    bits: int,
    *,
    centered: bool,
    as_stored: Callable[[np.ndarray], np.ndarray] = _single,
) -> Stored:
    """Weights, scales and biases by least squares on the rows. stored: those before. bits: 2, 4 or 8. centered: whether
    there is a bias, which takes the mean error up; else it stays what it is. as_stored: scales as files have them."""
    means = [side.mean(axis=1, keepdims=True) if centered else 0.0 for side in rows]
    real, seen = (side - mean for side, mean in zip(rows, means, strict=True))
    moments = np.swapaxes(seen, -1, -2) @ seen
    crossed = np.swapaxes(seen, -1, -2) @ real
    wanted = (crossed - moments) @ np.swapaxes(floats.weights, -1, -2)
    hessian = damped(moments)
    targets = floats.weights + np.swapaxes(np.linalg.solve(hessian, wanted), -1, -2)
    scales = _scales(targets, np.diagonal(hessian, axis1=-2, axis2=-1), bits, stored.scales.shape[-1])
    scales = as_stored(np.maximum(scales, stored.scales * _NARROWEST)).astype(np.float64)
    result = Stored(_rounded(targets, scales, moments, bits), scales, stored.bias)
    return with_mean_bias(floats, result, rows) if centered else result


def errors(floats: Product, stored: Stored, rows: Rows, ends: tuple[float | None, float | None]) -> np.ndarray:
    """The mean squared error of each output after an activation that clamps to `ends`: [groups, outputs]."""
    low, high = (-np.inf if ends[0] is None else ends[0]), (np.inf if ends[1] is None else ends[1])
    apart = np.clip(floats.of(rows.real), low, high) - np.clip(stored.product().of(rows.stored), low, high)
    return np.asarray((apart**2).mean(axis=1))


def _scales(targets: np.ndarray, powers: np.ndarray, bits: int, blocks: int) -> np.ndarray:
    """The scale of each block of each output with the least error of its product. powers: of each column, [groups,
    columns]."""
    targets = targets.reshape(*targets.shape[:-1], blocks, -1)
    powers = powers.reshape(len(powers), 1, blocks, -1)
    largest = np.maximum(np.abs(targets).max(axis=-1), _LEAST) / bounds(bits)[1]
    best, least = largest, np.full(largest.shape, np.inf)
    for fraction in _FRACTIONS:
        scales = largest * fraction
        off = stored_weights(targets, scales[..., None], bits) * scales[..., None] - targets
        error = (powers * off**2).sum(axis=-1)
        best, least = np.where(error < least, scales, best), np.minimum(error, least)
    return best


def _rounded(targets: np.ndarray, scales: np.ndarray, moments: np.ndarray, bits: int) -> np.ndarray:
    """Stored weights, whose columns are rounded in the order of falling powers."""
    order = np.argsort(-np.diagonal(moments, axis1=-2, axis2=-1), axis=-1, kind="stable")
    columns = np.take_along_axis(targets, order[:, None], axis=-1)
    sorted_moments = np.take_along_axis(np.take_along_axis(moments, order[:, :, None], 1), order[:, None], 2)
    steps = np.take_along_axis(_of_columns(scales, targets), order[:, None], axis=-1)
    stored = compensated_weights(columns, steps, sorted_moments, bits)
    return np.take_along_axis(stored, np.argsort(order, axis=-1)[:, None], axis=-1)
