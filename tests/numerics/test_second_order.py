"""Weights rounded by second moments of what they are multiplied with."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.numerics.ranges import DAMPING, bounds, clips, compensated_weights, error_of_products, stored_weights


def case(columns: int, factors: int, bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, their scales, and inputs that are made of some factors."""
    rng = np.random.default_rng(columns + bits)
    weights = rng.normal(size=(7, columns)).astype(np.float32)
    scales = (clips(weights, (1,), bits, "minmax") / bounds(bits)[1]).astype(np.float32)
    return weights, scales, rng.normal(size=(400, factors)) @ rng.normal(size=(factors, columns))


def by_one_column_at_a_time(weights: np.ndarray, scales: np.ndarray, moments: np.ndarray, bits: int) -> np.ndarray:
    """The algorithm as published before it is blocked: after each column the inverse without it."""
    left, stored = weights.astype(np.float64), np.empty(weights.shape, np.int8)
    inverse = np.linalg.inv(moments + DAMPING * np.trace(moments) / len(moments) * np.eye(len(moments)))
    for column in range(weights.shape[1]):
        stored[:, column] = stored_weights(left[:, column], scales[:, 0], bits)
        error = (left[:, column] - scales[:, 0].astype(np.float64) * stored[:, column]) / inverse[column, column]
        left -= error[:, None] * inverse[column]
        inverse = inverse - np.outer(inverse[:, column], inverse[column]) / inverse[column, column]
    return stored


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("columns", [1, 5, 40, 130])
def test_columns_make_up_for_those_before_them(columns: int, bits: int) -> None:
    weights, scales, inputs = case(columns, 8, bits)
    moments = inputs.T @ inputs
    made = compensated_weights(weights, scales, moments, bits)
    wanted = by_one_column_at_a_time(weights, scales, moments, bits)
    assert (made != wanted).mean() < 0.01  # where a number lies next to a tie
    low, high = bounds(bits)
    assert made.min() >= low
    assert made.max() <= high


@pytest.mark.parametrize("bits", [4, 8])
def test_products_are_nearer(bits: int) -> None:
    weights, scales, inputs = case(40, 8, bits)
    moments = inputs.T @ inputs
    nearest = stored_weights(weights, scales, bits)
    plain, made = (
        error_of_products(weights - scales * stored, moments)
        for stored in (nearest, compensated_weights(weights, scales, moments, bits))
    )
    assert made < plain / 2
    assert plain == pytest.approx(float((((weights - scales * nearest) @ inputs.T) ** 2).sum()), rel=1e-6)


@pytest.mark.parametrize("moments", [np.eye(40), np.zeros((40, 40))])
def test_of_inputs_that_say_nothing_of_each_other_weights_are_rounded_to_nearest(moments: np.ndarray) -> None:
    weights, scales, _ = case(40, 8, 4)
    np.testing.assert_array_equal(compensated_weights(weights, scales, moments, 4), stored_weights(weights, scales, 4))
