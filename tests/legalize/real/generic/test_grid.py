"""Arithmetic by grids of parameters: any axes, open batches, and what has no form."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, interpret, one_op, real_of

import tflq
from tflq.ir.types import ScalarType, UniformQuantizedPerAxisType, UniformQuantizedType, i8, i16, parameters, ui8

FUNCTIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


def per_axis(storage: ScalarType, axis: int, count: int, scale: float) -> UniformQuantizedPerAxisType:
    zero = 128 if storage is ui8 else 0
    return UniformQuantizedPerAxisType.of(storage, axis, scale * np.linspace(0.5, 2, count), zero)


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_three_axes_and_an_open_batch(name: str, storage: ScalarType) -> None:
    unit = 2.0 ** (8 - storage.bits)
    x = argument((None, 4, 5), per_axis(storage, 1, 4, 0.05 * unit), "x")
    y = argument((4, 5), per_axis(storage, 1, 5, 0.03 * unit), "y")
    most = {"mul": 12.0, "div": 40.0}.get(name, 6.0)
    z = argument((None, 4, 5), per_axis(storage, 1, 4, most / 128 * unit), "z")
    options = {"fused_activation_function": "RELU6"}
    model = one_op(f"tfl.{name}", [x, y], [z], options, 2)
    rng = np.random.default_rng(0)
    low, high = storage.minimum, storage.maximum
    a, b = (rng.integers(low, high, s, storage.dtype, endpoint=True) for s in ((3, 4, 5), (4, 5)))
    for semantics in ("interpreter", "real"):
        conversion = tflq.convert(model, fallback="error", semantics=semantics)
        (got,) = interpret(conversion.data, [[a, b]])[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            wanted = np.clip(np.nan_to_num(FUNCTIONS[name](real_of(x, a), real_of(y, b)), nan=0.0), 0, 6)
        scale, zero = parameters(z.type)
        stored = np.clip(np.floor(wanted / scale + 0.5) + zero, low, high)
        assert np.abs(got - stored).max() <= 1


def test_open_dims_that_no_reshape_brings_together() -> None:
    x = argument((None, None, 4, 5), per_axis(i8, 2, 4, 0.05), "x")
    y = argument((None, None, 4, 5), per_axis(i8, 3, 5, 0.05), "y")
    z = argument((None, None, 4, 5), UniformQuantizedType.of(i8, 0.09), "z")
    model = one_op("tfl.mul", [x, y], [z], {"fused_activation_function": "NONE"}, 2)
    with pytest.raises(tflq.UnsupportedError, match="along several axes, and more than one dim is not known"):
        tflq.convert(model, fallback="error")
    assert tflq.convert(model).report.rows[0].path == "float"


def test_a_sum_of_scales_far_apart_is_left_to_floats() -> None:
    x = argument((2, 4), per_axis(i16, 1, 4, 1e3), "x")
    y, z = (
        argument((2, 4), UniformQuantizedType.of(i16, 1.0), "y"),
        argument((2, 4), UniformQuantizedType.of(i16, 1e-3)),
    )
    model = one_op("tfl.add", [x, y], [z], {"fused_activation_function": "NONE", "pot_scale_int16": False}, 2)
    with pytest.raises(tflq.UnsupportedError, match="scales are too far above the result's"):
        tflq.convert(model, fallback="error")
