"""ADD, SUB, MUL: the integer form against the reference kernels, for many scales, zero points and activations."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, edge_inputs, one_op
from support.reference import assert_equals_kernel, every_value, integer_form, refusal

import tflq
from tflq.ir.types import ScalarType, UniformQuantizedPerAxisType, UniformQuantizedType, i8, i16, i32, ui8

ACTIVATIONS = ["NONE", "RELU", "RELU6", "RELU_N1_TO_1"]
Quantized = UniformQuantizedType


def drawn(rng: np.random.Generator, storage: ScalarType, scale: float, span: float = 1.5) -> Quantized:
    """Parameters around a scale; any zero point, none on int16."""
    zero = 0 if storage is i16 else int(rng.integers(storage.minimum, storage.maximum + 1))
    return Quantized.of(storage, scale * 10 ** rng.uniform(-span, span), zero)


def pairs(rng: np.random.Generator, storage: ScalarType, count: int = 2048) -> list[np.ndarray]:
    """Two arrays: the four corners, then random values."""
    low, high = storage.minimum, storage.maximum
    corners = np.array([[low, high, low, high], [low, high, high, low]])
    drawn = np.concatenate([corners, rng.integers(low, high + 1, (2, count))], 1).astype(storage.dtype)
    return [drawn[:1], drawn[1:]]


def binary(
    name: str, first: Quantized, second: Quantized, output: Quantized, count: int, **attributes: object
) -> bytes:
    attributes.setdefault("fused_activation_function", "NONE")
    if name != "tfl.mul":
        attributes.setdefault("pot_scale_int16", False)
    operands = [argument((1, count), first, "a"), argument((1, count), second, "b")]
    return one_op(name, operands, [argument((1, count), output, "y")], attributes, 2)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize("name", ["tfl.add", "tfl.sub", "tfl.mul"])
def test_random_parameters(name: str, storage: ScalarType, activation: str) -> None:
    rng = np.random.default_rng(len(name) + storage.bits + len(activation))
    for _ in range(4):
        scale = 10 ** rng.uniform(-4, 0)
        first, second = drawn(rng, storage, scale), drawn(rng, storage, scale)
        if name == "tfl.mul":
            output = drawn(rng, storage, first.scale * second.scale * 2.0 ** (storage.bits - 3))
        else:
            output = drawn(rng, storage, scale)
        arrays = pairs(rng, storage)
        count = arrays[0].size
        assert_equals_kernel(binary(name, first, second, output, count, fused_activation_function=activation), [arrays])


@pytest.mark.parametrize("name", ["tfl.add", "tfl.sub"])
def test_every_pair_of_int8(name: str) -> None:
    first, second, output = Quantized.of(i8, 0.031, 17), Quantized.of(i8, 0.0047, -90), Quantized.of(i8, 0.034, -3)
    grid = np.meshgrid(every_value("int8")[0], every_value("int8")[0])
    assert_equals_kernel(binary(name, first, second, output, 65536), [[g.reshape(1, -1) for g in grid]])


@pytest.mark.parametrize("storage", [i8, i16], ids=str)
@pytest.mark.parametrize("name", ["tfl.add", "tfl.sub"])
def test_ties(name: str, storage: ScalarType) -> None:
    """Every other result is in the middle of two values, below zero as often as above."""
    operand, output = Quantized.of(storage, 0.3), Quantized.of(storage, 0.6)
    arrays = pairs(np.random.default_rng(4), storage)
    assert_equals_kernel(binary(name, operand, operand, output, arrays[0].size), [arrays])


def test_squared_difference() -> None:
    rng = np.random.default_rng(5)
    arrays = pairs(rng, i8)
    for _ in range(8):
        first, second = drawn(rng, i8, 0.05), drawn(rng, i8, 0.05)
        output = drawn(rng, i8, max(first.scale, second.scale) ** 2 * 100, 1.2)
        operands = [argument(arrays[0].shape, first, "a"), argument(arrays[0].shape, second, "b")]
        model = one_op("tfl.squared_difference", operands, [argument(arrays[0].shape, output, "y")], {}, 2)
        assert_equals_kernel(model, [arrays])


@pytest.mark.parametrize("name", ["tfl.add", "tfl.sub"])
@pytest.mark.parametrize("exponents", [(-12, -12), (-12, -15), (-15, -12), (-8, -19), (-4, -19), (-20, -4), (-4, -35)])
def test_power_of_two_scales_of_int16(name: str, exponents: tuple[int, int]) -> None:
    first, second = (Quantized.of(i16, 2.0**e) for e in exponents)
    arrays = pairs(np.random.default_rng(1), i16)
    model = binary(name, first, second, Quantized.of(i16, 2.0 ** max(exponents)), arrays[0].size, pot_scale_int16=True)
    assert not any(op.name == "tosa.rescale" for op in integer_form(model).main.ops)
    assert_equals_kernel(model, [arrays])


@pytest.mark.parametrize("output", [Quantized.of(i8, 0.01, -7), Quantized.of(ui8, 0.05, 128)], ids=str)
def test_int16_product_to_8_bits_ignores_scales(output: Quantized) -> None:
    arrays = pairs(np.random.default_rng(2), i16)
    operand = Quantized.of(i16, 0.3)
    assert_equals_kernel(
        binary("tfl.mul", operand, operand, output, arrays[0].size, fused_activation_function="RELU6"), [arrays]
    )


def test_product_that_wraps() -> None:
    """A left shift that overflows int32 wraps in the kernel."""
    operand, output = Quantized.of(i16, 1.0), Quantized.of(i16, 0.01)
    arrays = pairs(np.random.default_rng(3), i16)
    assert_equals_kernel(binary("tfl.mul", operand, operand, output, arrays[0].size), [arrays])


@pytest.mark.parametrize("name", ["tfl.add", "tfl.sub", "tfl.mul"])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 1), (2, 1, 5), (2, 3, 5)])
@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
def test_broadcast_constant(name: str, shape: tuple[int, ...], storage: ScalarType) -> None:
    rng = np.random.default_rng(len(shape))
    first, second, output = (drawn(rng, storage, 0.1, 0.3) for _ in range(3))
    x, c = rng.integers(0, 100, (2, 3, 5)).astype(storage.dtype), rng.integers(0, 100, shape).astype(storage.dtype)
    attributes = {"fused_activation_function": "NONE"} | ({} if name == "tfl.mul" else {"pot_scale_int16": False})
    for flip in (False, True):
        operands = [argument(x.shape, first, "x"), const(c, second, "c")]
        model = one_op(name, operands[::-1] if flip else operands, [argument(x.shape, output, "y")], attributes, 2)
        assert_equals_kernel(model, [[x]])


def test_multipliers_of_add() -> None:
    """The operand of the larger scale shifted by 20 and halved, the other one quartered; the sum by 1 / 2^20."""
    first, second, output = Quantized.of(i8, 0.5, 3), Quantized.of(i8, 0.25, -1), Quantized.of(i8, 1.0, 2)
    ops = integer_form(binary("tfl.add", first, second, output, 4, fused_activation_function="RELU")).main.ops
    factors = [int(op.operand(1).array) for op in ops if op.name == "tosa.mul"]
    scalings = [
        tuple(int(np.squeeze(op.attributes[name])) for name in ("multiplier", "shift", "input_zp", "output_zp"))
        for op in ops
        if op.name == "tosa.rescale"
    ]
    assert factors == [1 << 19, 1 << 20]
    assert scalings == [(1 << 30, 32, 0, 0), (1 << 30, 50, 0, 2)]
    assert [op.attributes for op in ops if op.name == "tosa.clamp"] == [{"min_val": 2, "max_val": 127}]


def test_int32_ignores_parameters() -> None:
    element = Quantized.of(i32, 0.5, 7)
    arrays = pairs(np.random.default_rng(4), i32)
    assert_equals_kernel(
        binary("tfl.add", element, element, element, arrays[0].size, fused_activation_function="RELU6"), [arrays]
    )


@pytest.mark.parametrize(
    ("name", "elements", "reason"),
    [
        (
            "tfl.add",
            [Quantized.of(i8, 1.0), Quantized.of(i8, 1.0), Quantized.of(i8, 1e-7)],
            "multiplier of the sum is 19.*, not above 0 and below 1",
        ),
        (
            "tfl.add",
            [Quantized.of(i16, 1.0), Quantized.of(i16, 1.0, 5), Quantized.of(i16, 1.0)],
            "int16 has no zero point, here 5",
        ),
        ("tfl.add", [Quantized.of(i8, 1.0), Quantized.of(ui8, 1.0), Quantized.of(i8, 1.0)], "no form for i8, ui8 → i8"),
        (
            "tfl.mul",
            [Quantized.of(i8, 1.0), Quantized.of(i8, 1.0), Quantized.of(i16, 1.0)],
            "no form for i8 and i8 → i16",
        ),
    ],
)
def test_refused(name: str, elements: list[Quantized], reason: str) -> None:
    assert re.search(reason, refusal(name, elements))


@pytest.mark.parametrize("name", ["tfl.maximum", "tfl.minimum"])
def test_stored_integers_per_axis_are_compared(name: str) -> None:
    """As the kernel does, with a warning; `semantics="real"` requantizes them."""
    element = UniformQuantizedPerAxisType.of(i8, 1, [1.0, 2.0])
    operands = [argument((9, 2), element, "a"), argument((9, 2), Quantized.of(i8, 1.0), "b")]
    model = one_op(name, operands, [argument((9, 2), Quantized.of(i8, 1.0), "y")], {}, 2)
    conversion = convert_and_compare(model, edge_inputs(operands), fallback="error")
    assert conversion.report.warnings


def test_power_of_two_scales_too_far_apart() -> None:
    """What shifts by 32 bits and more come to is left to the compiler: the parameters hold, with a warning."""
    first, second = Quantized.of(i16, 2.0**-40), Quantized.of(i16, 2.0**-4)
    model = binary("tfl.add", first, second, second, 8, pot_scale_int16=True)
    conversion = tflq.convert(model)
    assert ["shifts an operand right by 36 bits" in w for w in conversion.report.warnings] == [True]
