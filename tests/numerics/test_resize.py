"""Resizing: TOSA's taps are the integer kernel's, and `uint8_is_rational` never says yes where float32 differs."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.numerics import resize
from tflq.numerics.resize import (
    Sampling,
    float_nearest_index,
    float_taps,
    integer_steps,
    nearest_index,
    nearest_steps,
    rational_steps,
    taps,
    uint8_is_rational,
    within_tosa,
)

FLAGS = [(False, False), (True, False), (False, True)]
SIZES = range(1, 21)


@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_integer_steps(flags: tuple[bool, bool]) -> None:
    """Against the kernel's own statements, in Python's integers."""
    for size in SIZES:
        for out in (*SIZES, 60, 600, 700):
            steps = integer_steps(size, out, *flags)
            if steps is None:
                continue
            long, short = (size - 1, out - 1) if flags[0] and out > 1 else (size, out)
            scale = (1024 * long + short // 2) // short
            lower, upper, fraction = taps(steps, size, out)
            x = np.random.default_rng(out).integers(-128, 128, size)
            for o in range(out):
                position = o * scale + (scale // 2 - 512 if flags[1] else 0)
                y0, y1 = max(int(position / 1024), 0), min(int((position + 1023) / 1024), size - 1)
                want = x[y0] * (1024 - (position - 1024 * y0)) + x[y1] * (position - 1024 * y0)
                assert x[lower[o]] * (1024 - fraction[o]) + x[upper[o]] * fraction[o] == want


def test_integer_steps_that_read_beyond_the_end() -> None:
    assert integer_steps(1, 600, False, False) is None


@pytest.mark.parametrize("flags", [*FLAGS, (True, True)], ids=str)
def test_nearest_steps(flags: tuple[bool, bool]) -> None:
    found = 0
    for size in SIZES:
        for out in SIZES:
            steps = nearest_steps(size, out, *flags)
            if steps is not None:
                found += 1
                np.testing.assert_array_equal(nearest_index(steps, size, out), float_nearest_index(size, out, *flags))
    assert found > 200


def float_kernel(x: np.ndarray, out: tuple[int, int], flags: tuple[bool, bool]) -> np.ndarray:
    """The uint8 kernel on [..., rows, columns], each operation in float32."""
    one = np.float32(1)
    y0, y1, fy = float_taps(x.shape[-2], out[0], *flags)
    x0, x1, fx = float_taps(x.shape[-1], out[1], *flags)
    real, fy = x.astype(np.float32), fy[:, None]
    upper, lower = real[..., y0, :] * (one - fy), real[..., y1, :] * fy
    total = upper[..., x0] * (one - fx) + lower[..., x0] * (one - fx) + upper[..., x1] * fx + lower[..., x1] * fx
    return (total + np.float32(0.5)).astype(np.uint8)


def rational(x: np.ndarray, out: tuple[int, int], flags: tuple[bool, bool]) -> np.ndarray:
    rows, columns = (rational_steps(n, o, *flags) for n, o in zip(x.shape[-2:], out, strict=True))
    y0, y1, fy = taps(rows, x.shape[-2], out[0])
    x0, x1, fx = taps(columns, x.shape[-1], out[1])
    wide, fy = x.astype(np.int64), fy[:, None]
    rowed = wide[..., y0, :] * (rows.n - fy) + wide[..., y1, :] * fy
    total = rowed[..., x0] * (columns.n - fx) + rowed[..., x1] * fx
    return (total + rows.n * columns.n // 2) // (rows.n * columns.n)


@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_uint8_is_rational(flags: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(5)
    proven = 0
    for _ in range(150):
        h, w, oh, ow = (int(v) for v in rng.integers(1, 18, 4))
        if uint8_is_rational((h, w), (oh, ow), *flags):
            proven += 1
            x = rng.integers(0, 256, (100, h, w))
            np.testing.assert_array_equal(float_kernel(x, (oh, ow), flags), rational(x, (oh, ow), flags))
    assert proven > 10


@pytest.mark.slow
@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_uint8_of_every_pair(flags: tuple[bool, bool]) -> None:
    """All pairs of neighbours along one dim."""
    x = np.stack(np.meshgrid(np.arange(256), np.arange(256)), -1).reshape(-1, 1, 2)
    for out in range(1, 40):
        if uint8_is_rational((1, 2), (1, out), *flags):
            np.testing.assert_array_equal(float_kernel(x, (1, out), flags), rational(x, (1, out), flags))


@pytest.mark.parametrize(
    ("steps", "size", "out", "taken"),
    [
        (Sampling(1024, 512, -256), 4, 8, True),
        (Sampling(2048, 2048, 0), 3, 3, True),
        (Sampling(2050, 2050, 0), 3, 3, False),
        (Sampling(1, 15, 0), 31, 3, True),
        (Sampling(1, 16, 0), 33, 3, False),
        (Sampling(2, 3, -3), 4, 3, False),
        (Sampling(4, 1, 3), 2, 6, False),  # the last sample is a whole element beyond the last one
        (Sampling(256, 1, 0), 2, 257, True),
        (Sampling(257, 1, 0), 2, 258, False),
    ],
)
def test_limits_of_tosa(steps: Sampling, size: int, out: int, taken: bool) -> None:
    assert within_tosa(steps, size, out) == taken


def test_the_ratio_is_limited_by_the_level() -> None:
    assert within_tosa(Sampling(257, 1, 0), 2, 258, level=False)


@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_the_float_kernel_takes_the_steps_of_the_integer_one(flags: tuple[bool, bool]) -> None:
    """Where it is said to, it gives their weighted means without an error, in float32."""
    found = 0
    for size in range(2, 12):
        for out in range(2, 100):
            steps = integer_steps(size, out, *flags)
            kernel = steps and resize.float_kernel((steps, Sampling(1, 1, 0)), (size, 2), (out, 2))
            if steps is None or kernel is None:
                continue
            found += 1
            x = np.random.default_rng(out).integers(-128, 128, size)
            y0, y1, fy = float_taps(size, out, *kernel[:2])
            i0, i1, fi = taps(steps, size, out)
            got = x[y0].astype(np.float32) * (1 - fy) + x[y1].astype(np.float32) * fy
            np.testing.assert_array_equal(got * 1024, x[i0] * (1024 - fi) + x[i1] * fi)
            assert (got * kernel.parts == np.rint(got * kernel.parts)).all()
    assert found > 20
