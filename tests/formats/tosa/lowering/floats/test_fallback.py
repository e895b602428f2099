"""Quantized operators without an integer rule, on TOSA: within one count of the real-valued result.

What is measured is mostly half a count: the real result, rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf
from typing import Any

import numpy as np
import pytest
from support.harness import argument, one_op
from support.running import reference

from tflq.conversion.convert import lower
from tflq.formats.backend import backend
from tflq.formats.options import Options
from tflq.formats.tflite.reader import read
from tflq.formats.tosa.rules import Target
from tflq.ir.types import ScalarType, UniformQuantizedType, i8, i16, ui8

Real = Callable[..., np.ndarray]
NONE = {"fused_activation_function": "NONE"}


def log_softmax(x: np.ndarray) -> np.ndarray:
    centred = x - x.max(-1, keepdims=True)
    return centred - np.log(np.exp(centred).sum(-1, keepdims=True))


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2)))


def local_response(x: np.ndarray) -> np.ndarray:
    sums = np.zeros_like(x)
    for offset in range(-2, 2):
        for c in range(x.shape[-1]):
            if 0 <= c + offset < x.shape[-1]:
                sums[..., c] += x[..., c + offset] ** 2
    return x * (1 + 0.2 * sums) ** -0.75


CASES: list[tuple[str, Mapping[str, Any], int, tuple[float, float], float, Real]] = [
    # operator, options, operands, range of the operands, greatest size of the result, what it computes
    ("log_softmax", {}, 1, (-8, 8), 20, log_softmax),
    ("l2_normalization", NONE, 1, (-4, 4), 1, lambda x: x / np.sqrt((x * x).sum(-1, keepdims=True))),
    (
        "local_response_normalization",
        {"radius": 2, "bias": 1.0, "alpha": 0.2, "beta": 0.75},
        1,
        (-4, 4),
        4,
        local_response,
    ),
    ("gelu", {"approximate": False}, 1, (-6, 6), 6, gelu),
    ("elu", {}, 1, (-6, 6), 6, lambda x: np.where(x < 0, np.expm1(x), x)),
    ("sqrt", {}, 1, (0, 9), 3, np.sqrt),
    ("rsqrt", {}, 1, (0, 9), 3, lambda x: 1 / np.sqrt(x)),
    ("round", {}, 1, (-9, 9), 9, np.round),
    ("square", {}, 1, (-3, 3), 9, np.square),
    ("sin", {}, 1, (-9, 9), 1, np.sin),
    ("div", NONE, 2, (-3, 3), 20, np.divide),
    ("pow", {}, 2, (0.1, 3), 27, np.power),
    ("atan2", {}, 2, (-3, 3), 3.2, np.arctan2),
    ("squared_difference", {}, 2, (-3, 3), 36, lambda x, y: (x - y) ** 2),
]


def element(storage: ScalarType, low: float, high: float) -> UniformQuantizedType:
    """Parameters that hold a range, with 0 among the values; int16 has no zero point."""
    if storage is i16:
        return UniformQuantizedType.of(storage, max(-low, high) / 32767)
    scale = (max(high, 0) - min(low, 0)) / 255
    return UniformQuantizedType.of(storage, scale, round(storage.minimum - min(low, 0) / scale))


@pytest.mark.parametrize("storage", [i8, ui8, i16])
@pytest.mark.parametrize(("name", "options", "count", "bounds", "size", "real"), CASES)
def test_within_one_count(
    name: str,
    options: Mapping[str, Any],
    count: int,
    bounds: tuple[float, float],
    size: float,
    real: Real,
    storage: ScalarType,
) -> None:
    rng = np.random.default_rng(0)
    shape, source = (20, 5, 6, 10), element(storage, *bounds)
    target = element(storage, -size, size)
    low, high = (np.clip(round(v / source.scale) + source.zero_point, storage.minimum, storage.maximum) for v in bounds)
    stored = [rng.integers(int(low), int(high), shape, endpoint=True).astype(storage.dtype) for _ in range(count)]
    data = one_op(
        f"tfl.{name}", [argument(shape, source, f"x{i}") for i in range(count)], [argument(shape, target, "y")], options
    )
    module, _ = lower(read(data), Options(backend("mlir"), target=Target()))
    if all(not v.type.storage.is_float for op in module.ops() for v in op.tensors):
        pytest.skip("has an integer rule")
    with np.errstate(divide="ignore", invalid="ignore"):
        want = real(*((s.astype(np.float64) - source.zero_point) * source.scale for s in stored))
    counts = np.clip(np.nan_to_num(want) / target.scale + target.zero_point, storage.minimum, storage.maximum)
    got = reference(module, stored)[0]
    assert np.abs(got - counts).max() < 0.52
