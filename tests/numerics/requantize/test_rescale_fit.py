"""RESCALEs that are a scale by a double: at every threshold, and on every value of a range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tflq.numerics.requantize import rescale_fit
from tflq.numerics.requantize.rescale_fit import RescaleFit, fit_rescale, saturation_bounds
from tflq.numerics.requantize.scaling import Float64
from tflq.numerics.requantize.staircase import float_thresholds


def rounded(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    product = x * scale
    whole = np.trunc(product)
    return whole + np.where(np.abs(product - whole) >= 0.5, np.sign(product), 0)


def differences(fit: RescaleFit, x: np.ndarray, scale: np.ndarray, lows: int, highs: int) -> int:
    """How many of x int64 [n, C] the RESCALE has another result of; it stays within what TOSA takes."""
    scaled = x * fit.factor
    assert (np.abs(scaled) <= np.left_shift(np.int64(1), fit.shift - 1)).all()
    got = (scaled * fit.multiplier + (np.int64(1) << (fit.shift - 1))) >> fit.shift
    return int((np.clip(got, lows, highs) != np.clip(rounded(x, scale), lows, highs)).sum())


@pytest.mark.parametrize("scale", [2.0**-8, 3 * 2.0**-9, 0.0123, 0.75, 1.0, 2.5, 1 / 3, 17.3])
@pytest.mark.parametrize("bounds", [(-128, 127), (0, 255), (-251, 4)])
def test_every_value(scale: float, bounds: tuple[int, int]) -> None:
    for reach in (100, 40000):
        d = np.asarray([scale])
        fit = fit_rescale(Float64(d), *bounds, -reach, reach)
        if fit is None:
            low, high = saturation_bounds(Float64(d), *bounds)
            reach = max(-low, high)
            fit = fit_rescale(Float64(d), *bounds, -reach, reach)
        assert fit is not None
        assert not differences(fit, np.arange(-reach, reach + 1)[:, None], d, *bounds)


@pytest.mark.parametrize("exponent", [-4, -10, -14, -17])
@pytest.mark.parametrize("sides", [(1, 1), (0, 1), (1, 0)])
def test_random_scales(exponent: int, sides: tuple[int, int]) -> None:
    rng = np.random.default_rng(exponent + 40)
    scale = 2.0**exponent * rng.uniform(0.5, 1, 300)
    reach = int(400 / scale.min())
    lows, highs, least, most = -133, 122, -reach * sides[0], reach * sides[1]
    fit = fit_rescale(Float64(scale), lows, highs, least, most)
    assert fit is not None
    thresholds = float_thresholds(np.arange(lows + 1, highs + 1), scale)
    x = np.concatenate([thresholds, thresholds - 1, thresholds + 1, rng.integers(least, most, (400, 300))])
    assert not differences(fit, np.clip(x, least, most), scale, lows, highs)


def test_none_beyond_its_precision() -> None:
    scale = 2.0**-24 * np.random.default_rng(0).uniform(0.5, 1, 50)
    assert fit_rescale(Float64(scale), -128, 127, -(1 << 31), (1 << 31) - 1) is None


def test_beyond_the_bounds_nothing_changes() -> None:
    scale = np.asarray([0.013, 0.002])
    low, high = saturation_bounds(Float64(scale), -100, 27)
    x = np.asarray([[low, high], [low - 9, high + 9], [low - 100000, high + 100000]])
    assert (np.clip(rounded(x[:, :1], scale), -100, 27) == -100).all()
    assert (np.clip(rounded(x[:, 1:], scale), -100, 27) == 27).all()


def test_a_thousand_channels_are_fitted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call takes all channels that have no multiplier yet: most have one with the first factor."""
    sizes = []

    def counted(*arguments: Any) -> Any:
        sizes.append(arguments[2].size)
        return multipliers(*arguments)

    multipliers = rescale_fit._multipliers
    monkeypatch.setattr(rescale_fit, "_multipliers", counted)
    scale = 2.0**-12 * np.random.default_rng(0).uniform(0.5, 1, 1000)
    assert fit_rescale(Float64(scale), -128, 127, -(1 << 23), 1 << 23) is not None
    assert sizes[0] == 1000
    assert len(sizes) <= 64, "one for each odd factor"
    assert sum(sizes) < 3000
