"""What C++ leaves undefined, as the interpreter's kernels do it: in vector registers, one by one, over an operand."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, interpret, one_op
from support.on_tosa import assert_near_kernel

import tflq
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op
from tflq.ir.types import ScalarType, UniformQuantizedType, i8, i16, ui8

Quantized = UniformQuantizedType
OPTIONS = {"fused_activation_function": "NONE", "pot_scale_int16": False}
TYPES = [i8, ui8, i16]


def elements(storage: ScalarType, shift: int) -> tuple[Quantized, Quantized, Quantized]:
    """Parameters of a SUB whose sum has a multiplier with this left shift."""
    zero_points = {i8: (3, -5, 7), ui8: (130, 120, 77), i16: (0, 0, 0)}[storage]
    larger = 2.0 ** max(shift - 100, 0)
    result = larger / 2.0 ** (14 if storage is i16 else 19) / 2.0**shift / 0.77
    scales = larger, larger * 0.7, result
    first, second, third = (Quantized.of(storage, s, z) for s, z in zip(scales, zero_points, strict=True))
    return first, second, third


def drawn(element: Quantized, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Half of the values close to zero, where the sign is not all that is left."""
    rng, storage = np.random.default_rng(seed), element.storage
    wide = rng.integers(storage.minimum, storage.maximum + 1, shape)
    near = np.clip(rng.integers(-3, 4, shape) + element.zero_point, storage.minimum, storage.maximum)
    return np.where(rng.random(shape) < 0.5, wide, near).astype(storage.dtype)


def sub(shift: int, storage: ScalarType, *shapes: tuple[int | None, ...], activation: str = "NONE") -> bytes:
    first, second, output = elements(storage, shift)
    shape = tuple(max(a or 0, b or 0) or None for a, b in zip(*shapes, strict=True))
    operands = [argument(shapes[0], first, "a"), argument(shapes[1], second, "b")]
    options = {**OPTIONS, "fused_activation_function": activation}
    return one_op("tfl.sub", operands, [argument(shape, output, "y")], options, 2)


def arrays(shift: int, storage: ScalarType, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [drawn(e, s, i) for i, (e, s) in enumerate(zip(elements(storage, shift), shapes, strict=False))]


SHIFTS = [1, 2, 6, 7, 12, 25, 31, 32, 33, 40, 55, 63, 64, 65, 100, 119, 200]


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("storage", TYPES, ids=str)
def test_sub_above_one(storage: ScalarType, shift: int) -> None:
    """Tensors of one shape: blocks of four, then the remaining elements. Others: one by one."""
    for shapes in (((1, 203), (1, 203)), ((4, 5), (4, 5)), ((1, 3), (1, 3)), ((7, 20), (1, 20)), ((7, 5), (7, 1))):
        model = sub(shift, storage, *shapes)
        conversion = convert_and_compare(model, [arrays(shift, storage, *shapes)], fallback="error")
        (row,) = conversion.report.rows
        assert row.exception == "undefined"
        assert re.search(rf"divides by 2\^-{shift}, which C\+\+ leaves undefined; .* up to \d+ count", row.warning)


@pytest.mark.parametrize("activation", ["RELU", "RELU6", "RELU_N1_TO_1"])
@pytest.mark.parametrize("shift", [1, 7, 55])
@pytest.mark.parametrize("storage", TYPES, ids=str)
def test_with_an_activation(storage: ScalarType, shift: int, activation: str) -> None:
    """A result of so small a scale that a bound leaves int32 is refused by the kernel."""
    shapes = (1, 103), (1, 103)
    model = sub(shift, storage, *shapes, activation=activation)
    try:
        interpret(model, [arrays(shift, storage, *shapes)])
    except RuntimeError:
        assert tflq.convert(model).report.rows[0].path != "kept"
    else:
        convert_and_compare(model, [arrays(shift, storage, *shapes)])


@pytest.mark.parametrize("shift", [1, 7, 33, 55])
@pytest.mark.parametrize("storage", TYPES, ids=str)
def test_sub_above_one_on_tosa(storage: ScalarType, shift: int) -> None:
    for shapes in (((2, 13), (2, 13)), ((7, 5), (7, 1))):
        assert_near_kernel(sub(shift, storage, *shapes), arrays(shift, storage, *shapes))


@pytest.mark.parametrize("shift", [1, 6, 7, 33, 55, 100])
@pytest.mark.parametrize("storage", TYPES, ids=str)
def test_real_semantics_saturate(storage: ScalarType, shift: int) -> None:
    shapes = (1, 203), (1, 203)
    first, second, output = elements(storage, shift)
    x, y = arrays(shift, storage, *shapes)
    real = (x - float(first.zero_point)) * first.scale - (y - float(second.zero_point)) * second.scale
    wanted = np.clip(np.rint(real / output.scale) + output.zero_point, storage.minimum, storage.maximum)
    conversion = tflq.convert(sub(shift, storage, *shapes), semantics="real")
    assert conversion.report.warnings == []
    got = interpret(conversion.data, [[x, y]])[0][0]
    assert np.abs(got - wanted).max() <= 1


@pytest.mark.parametrize("shift", [1, 33])
def test_a_batch_of_any_size_in_blocks(shift: int) -> None:
    model = sub(shift, i8, (None, 8), (None, 8))
    conversion = tflq.convert(model)
    for batch in (1, 3):
        given = [arrays(shift, i8, (batch, 8), (batch, 8))]
        np.testing.assert_array_equal(interpret(conversion.data, given)[0][0], interpret(model, given)[0][0])


@pytest.mark.parametrize("shapes", [((None, 5), (None, 5)), ((None, 8), (1, 8))])
def test_what_depends_on_the_batch_is_the_real_value(shapes: tuple[tuple[int | None, ...], ...]) -> None:
    conversion = tflq.convert(sub(33, i8, *shapes))
    (row,) = conversion.report.rows
    assert row.exception == "unsettled"
    assert "interpreters differ" in row.warning
    first, second, output = elements(i8, 33)
    given = arrays(33, i8, *(tuple(3 if d is None else d for d in s) for s in shapes))
    x, y = ((a - float(e.zero_point)) * e.scale for a, e in zip(given, (first, second), strict=True))
    wanted = np.clip(np.rint((x - y) / output.scale) + output.zero_point, -128, 127)
    np.testing.assert_array_equal(interpret(conversion.data, [given])[0][0], wanted)


def test_no_warning_where_nothing_shows() -> None:
    """The zero point is the greatest value, and RELU leaves nothing below it."""
    first, second, _ = elements(i8, 3)
    output = Quantized.of(i8, elements(i8, 3)[2].scale, 127)
    operands = [argument((1, 40), first, "a"), argument((1, 40), second, "b")]
    options = {**OPTIONS, "fused_activation_function": "RELU"}
    model = one_op("tfl.sub", operands, [argument((1, 40), output, "y")], options, 2)
    conversion = convert_and_compare(model, [arrays(3, i8, (1, 40), (1, 40))])
    assert conversion.report.warnings == []


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("size", [4, 7, 16, 64, 67])
def test_over_an_operand_it_goes_one_by_one(size: int, constant: bool) -> None:
    """The memory planner lets SUB write over what nothing else reads, if it has more than four bytes."""
    first, second, output = elements(i8, 8)
    given = [drawn(first, (1, size), 0), drawn(second, (1, size), 1)]
    a, a1 = argument((1, size), Quantized.of(i8, first.scale * 2, 3), "a"), argument((1, size), first, "a1")
    b1 = const(given[1], second, "b1") if constant else argument((1, size), second, "b1")
    y, z = argument((1, size), output, "y"), argument((1, size), output, "z")
    ops = [
        Op("tfl.quantize", [a], [a1], {}, info={"version": 2}),
        Op("tfl.sub", [a1, b1], [y], OPTIONS, info={"version": 2}),
        Op("tfl.quantize", [y], [z], {}, info={"version": 2}),
    ]
    inputs = [a] if constant else [a, b1]
    for outputs in ([z], [z, y], [z, a1]):
        model = bytes(write(Module([Function("main", inputs, outputs, ops)])))
        convert_and_compare(model, [given[: len(inputs)]])
