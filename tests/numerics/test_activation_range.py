"""Bounds of fused activations where their conversion to int32, or the zero point, leaves int32."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tflq.numerics.elementwise import relu_range
from tflq.numerics.fixed_point import as_int32, wrapped


@given(st.floats(2.0**-149, 2.0**100, width=32), st.integers(-128, 127))
@example(6 * 2.0**-31, 0)
@example(6 * 2.0**-31, 127)
@example(2.0**-30, -128)
def test_the_bound_is_converted_and_moved_as_on_x86(scale: float, zero_point: int) -> None:
    with np.errstate(over="ignore"):
        steps = float(np.float32(6.0) / np.float32(scale))
    counts = np.floor(steps + 0.5) if steps < 2.0**52 else steps
    least, most = max(-128, zero_point), min(127, int(wrapped(as_int32(counts) + zero_point)))
    expected = (least, most) if least <= most else (-128 + (most + 128) % 256,) * 2
    assert relu_range("RELU6", -128, 127, scale, zero_point) == expected
