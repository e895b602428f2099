"""DIV, FLOOR_DIV, FLOOR_MOD against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, convert_and_compare, one_op
from support.reference import every_value

from tflq.ir.types import ScalarType, UniformQuantizedType, i8, i16, ui8

Quantized = UniformQuantizedType


@pytest.mark.parametrize("activation", ["NONE", "RELU", "RELU6"])
@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
def test_every_pair(storage: ScalarType, activation: str) -> None:
    """The kernel stops at a divisor of zero only."""
    rng = np.random.default_rng(storage.maximum)
    x, y = (g.reshape(1, -1) for g in np.meshgrid(every_value(storage.dtype)[0], every_value(storage.dtype)[0]))
    for _ in range(4):
        elements = [
            Quantized.of(storage, 10 ** rng.uniform(-3, 0), int(rng.integers(storage.minimum, storage.maximum + 1)))
            for _ in range(3)
        ]
        operands = [argument(x.shape, elements[0], "x"), argument(x.shape, elements[1], "y")]
        result = argument(x.shape, elements[2], "z")
        model = one_op("tfl.div", operands, [result], {"fused_activation_function": activation}, 2)
        divisor = np.where(y == elements[1].zero_point, y ^ 1, y)
        convert_and_compare(model, [[x, divisor]])


@pytest.mark.parametrize("exponent", [-31, -25, 23, 29])
def test_multipliers_far_from_one(exponent: int) -> None:
    """Shifts below 0, above 31 and above 63."""
    x, y = (g.reshape(1, -1) for g in np.meshgrid(every_value("int8")[0], every_value("int8")[0]))
    operands = [
        argument(x.shape, Quantized.of(i8, 2.0**exponent * 1.3), "x"),
        argument(x.shape, Quantized.of(i8, 1), "y"),
    ]
    result = argument(x.shape, Quantized.of(i8, 1), "z")
    model = one_op("tfl.div", operands, [result], {"fused_activation_function": "NONE"}, 2)
    convert_and_compare(model, [[x, np.where(y == 0, 1, y).astype(np.int8)]], fallback="error")


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["NONE", "RELU", "RELU6"])
def test_int16(activation: str) -> None:
    """Dividends and divisors of every magnitude; those far apart come to the shifts that are taken modulo 32."""
    rng = np.random.default_rng(len(activation))
    for exponent in (-4, -2, 0, 2, 3.5):
        for shapes in (((4, 3000), (4, 3000)), ((4, 1, 300), (5, 1))):
            x, y = (
                (rng.choice([-1, 1], s) * 2.0 ** rng.uniform(0, 15, s)).astype(np.int16) * (rng.random(s) < 0.99)
                for s in shapes
            )
            y = np.where(y == 0, 1, y).astype(np.int16)
            first, second = 10 ** rng.uniform(-4, 0), 10 ** rng.uniform(-4, 0)
            scales = first, second, first / second / 10**exponent
            operands = [
                argument(a.shape, Quantized.of(i16, s), n) for a, s, n in zip((x, y), scales, "xy", strict=False)
            ]
            result = argument(np.broadcast_shapes(*shapes), Quantized.of(i16, scales[2]), "z")
            model = one_op("tfl.div", operands, [result], {"fused_activation_function": activation}, 2)
            conversion = convert_and_compare(model, [[x.astype(np.int16), y]])
            assert [row.path for row in conversion.report.rows] == ["integer"]


@pytest.mark.parametrize("storage", [i8, i16], ids=str)
@pytest.mark.parametrize("name", ["tfl.floor_div", "tfl.floor_mod"])
def test_stored_integers_are_divided(name: str, storage: ScalarType) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(storage.minimum, storage.maximum + 1, (4, 50)).astype(storage.dtype)
    y = np.where(rng.random((4, 50)) < 0.5, rng.integers(-9, 0, (4, 50)), rng.integers(1, 100, (4, 50)))
    element = Quantized.of(storage, 0.1)
    operands = [argument(x.shape, element, "x"), argument(x.shape, element, "y")]
    model = one_op(name, operands, [argument(x.shape, element, "z")], {}, 2)
    convert_and_compare(model, [[x, y.astype(storage.dtype)]])
