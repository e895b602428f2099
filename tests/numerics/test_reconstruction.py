"""Weights and biases fitted to inputs: their means, their errors, and groups, each as if it were alone."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.numerics.ranges import clips, stored_weights
from tflq.numerics.reconstruction import Product, Rows, Stored, errors, reconstructed, with_mean_bias

FREE = (None, None)


def drawn(groups: int, outputs: int, columns: int) -> tuple[Product, Rows]:
    """A product, and inputs that depend on each other, which the quantized network shifts and rounds."""
    rng = np.random.default_rng(groups)
    floats = Product(rng.normal(size=(groups, outputs, columns)), rng.normal(size=(groups, outputs)))
    mixed = rng.normal(size=(groups, 400, 3)) @ rng.normal(size=(groups, 3, columns))
    real = mixed + 0.2 * rng.normal(size=(groups, 400, columns)) + 1
    return floats, Rows(real, np.rint(real * 4) / 4 + 0.05)


def nearest(floats: Product, bits: int) -> Stored:
    scales = clips(floats.weights, (2,), bits, "minmax") / (7 if bits == 4 else 127)
    return Stored(stored_weights(floats.weights, scales, bits), scales, floats.bias)


def test_a_bias_takes_up_the_mean_error() -> None:
    floats, rows = drawn(2, 3, 5)
    corrected = with_mean_bias(floats, nearest(floats, 4), rows)
    apart = floats.of(rows.real) - corrected.product().of(rows.stored)
    np.testing.assert_allclose(apart.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_array_equal(corrected.weights, nearest(floats, 4).weights)


@pytest.mark.parametrize(("groups", "outputs", "columns"), [(1, 12, 24), (8, 2, 9)])
@pytest.mark.parametrize("bits", [4, 8])
def test_reconstructed_weights_are_nearer(groups: int, outputs: int, columns: int, bits: int) -> None:
    floats, rows = drawn(groups, outputs, columns)
    before = nearest(floats, bits)
    after = reconstructed(floats, before, rows, bits, centered=True)
    assert np.abs(after.weights).max() <= (8 if bits == 4 else 127)
    plain, mean, fitted = (
        errors(floats, each, rows, FREE).sum() for each in (before, with_mean_bias(floats, before, rows), after)
    )
    assert fitted < mean < plain
    assert fitted < (0.7 if bits == 8 else 0.5) * plain


def test_groups_are_fitted_as_if_alone() -> None:
    floats, rows = drawn(4, 2, 9)
    before = nearest(floats, 4)
    together = reconstructed(floats, before, rows, 4, centered=True)
    for group in range(4):
        part = slice(group, group + 1)
        alone = reconstructed(
            Product(*(side[part] for side in floats)),
            Stored(*(side[part] for side in before)),
            Rows(*(side[part] for side in rows)),
            4,
            centered=True,
        )
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_allclose(one, other[part], rtol=1e-9)


def test_without_a_bias_it_stays() -> None:
    floats, rows = drawn(1, 3, 6)
    before = nearest(floats._replace(bias=np.zeros((1, 3))), 4)
    np.testing.assert_array_equal(reconstructed(floats, before, rows, 4, centered=False).bias, before.bias)


def test_inputs_of_zeros_leave_the_nearest_weights() -> None:
    floats, _ = drawn(1, 3, 6)
    after = reconstructed(floats, nearest(floats, 8), Rows(np.zeros((1, 9, 6)), np.zeros((1, 9, 6))), 8, centered=True)
    np.testing.assert_allclose(after.weights * after.scales, floats.weights, atol=after.scales.max() * 1.01)


def test_errors_are_those_behind_the_activation() -> None:
    floats, rows = drawn(1, 3, 6)
    low = Product(floats.weights, floats.bias - 1e3)
    stored = nearest(low, 4)
    assert errors(low, stored, rows, (0.0, None)).max() == 0
    assert errors(low, stored, rows, FREE).min() > 0
    better = np.array([[True, False, True]])
    mixed = stored.where(better, stored._replace(bias=stored.bias + 1))
    np.testing.assert_array_equal(mixed.bias - stored.bias, [[0, 1, 0]])
