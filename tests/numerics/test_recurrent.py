"""Numbers of the recurrent kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.numerics.convolution import clip_bound, hidden_scale, peephole_scale, power_of_two
from tflq.numerics.elementwise import float_ratio


def test_scales_are_of_float32() -> None:
    assert float_ratio(0.1, 0.7, 0.3) == float(np.float32(0.1) * np.float32(0.3) / np.float32(0.7))
    assert hidden_scale(0.0078) == float(np.float32(2.0**-30 / float(np.float32(0.0078))))
    assert peephole_scale(-11, 0.0002) == float(np.float32(2.0 * float(np.float32(0.0002))))


@pytest.mark.parametrize("exponent", range(-15, 1))
def test_powers_of_two(exponent: int) -> None:
    assert power_of_two(2.0**exponent) == exponent
    with pytest.raises(ValueError, match="power of two"):
        power_of_two(2.0**exponent * 1.01)


def test_clips_are_truncated_and_saturated() -> None:
    assert clip_bound(0.0, 0.1, 127) == 0
    assert clip_bound(1.0, 0.15, 127) == 6
    assert clip_bound(10.0, 2.0**-12, 32767) == 32767
