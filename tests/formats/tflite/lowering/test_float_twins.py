"""8-bit results as floats: between two convolutions in float32 no cast is left, and every bit is the evaluator's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.harness import argument, interpret
from support.lowered import RESOLVERS, draw

from tflq.analysis.evaluate.registry import evaluate_function
from tflq.dialects.builder import Builder
from tflq.dialects.quant import Table2D
from tflq.dialects.tosa.convolution import MaxPool2D
from tflq.dialects.tosa.movement import ArgMax, Pad, Resize, Slice
from tflq.formats.tflite.lowering.engine import CheckLegality, Select
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, TensorType, f32, i8, i32, ui8
from tflq.numerics.fixed_point import quantize_multipliers
from tflq.numerics.resize import integer_steps, rational_steps
from tflq.transforms.canonicalize import CommonSubexpressionElimination, DeadCodeElimination
from tflq.transforms.pass_manager import Pipeline

SHAPE = (2, 6, 5, 4)
NUMBERS = np.arange(-128, 128)

Between = Callable[[Builder, Value], Value]


def convolved(
    b: Builder, x: Value, zero_point: int, *, relu: bool = False, padded: bool = False, seed: int = 0, bias: int = 900
) -> Value:
    """A convolution of 4 channels to 4, requantized per channel to x's type."""
    rng, storage = np.random.default_rng(seed), x.type.storage
    size = 3 if padded else 1
    weights = b.constant(rng.integers(-127, 128, (4, size, size, 4)), i8)
    offset = b.constant(rng.integers(-bias, bias + 1, 4))
    pad = (1, 1, 1, 1) if padded else (0, 0, 0, 0)
    sums = b.conv2d(x, weights, offset, (*(x.type.shape or ())[:3], 4), pad=pad, input_zp=zero_point)
    scales = rng.uniform(0.5, 1.5, 4) * (0.004 if padded else 0.011)
    least = storage.minimum if relu else storage.minimum + 100
    y = b.rescale(sums, quantize_multipliers(scales), storage, output_zp=least)
    return b.clamp(y, least, storage.maximum) if relu else y


def zero_points(storage: ScalarType) -> tuple[int, int]:
    """Of the first convolution's input, and of its result if it is not clamped."""
    return storage.minimum + 130, storage.minimum + 100


def selected(between: Between, storage: ScalarType, *, padded: bool, relu: bool) -> tuple[Module, Module]:
    """Two convolutions and what is between them, in the integer form and on kernels."""
    modules = []
    for _ in range(2):
        b, x = Builder(), argument(SHAPE, storage)
        zero, inner = zero_points(storage)
        first = convolved(b, x, zero, relu=relu, padded=True)
        result = convolved(b, between(b, first), storage.minimum if relu else inner, padded=padded, seed=1)
        result.name = "result"
        modules.append(Module([Function("main", [x], [result], b.ops)]))
    source, module = modules
    passes = [Select("float32"), CommonSubexpressionElimination(), DeadCodeElimination(), CheckLegality(mac="float32")]
    return source, Pipeline(passes, "integer").run(module).module


def casts(module: Module) -> int:
    return sum(op.name == "tfl.cast" for op in module.ops())


def assert_equal(source: Module, module: Module, storage: ScalarType) -> None:
    array = draw(storage, SHAPE)
    want = evaluate_function(source.main, {source.main.inputs[0]: array})[source.main.outputs[0]]
    assert len(np.unique(want)) > 20  # neither saturated nor dead
    model = bytes(write(module))
    for resolver in RESOLVERS:
        (got,) = interpret(model, [[array]], resolver)[0]
        np.testing.assert_array_equal(got.reshape(want.shape), want, err_msg=resolver)


def nothing(_: Builder, x: Value) -> Value:
    return x


def pooled(b: Builder, x: Value, pad: tuple[int, int, int, int] = (1, 1, 1, 1)) -> Value:
    return b.emit(MaxPool2D, [x], x.type, kernel=(3, 3), stride=(1, 1), pad=pad)


def reshaped(b: Builder, x: Value) -> Value:
    return b.reshape(b.transpose(b.reshape(x, (2, 30, 4)), (0, 2, 1)), SHAPE)


def surrounded(b: Builder, x: Value) -> Value:
    wide = b.emit(Pad, [x], TensorType((2, 8, 7, 4), x.type.storage), padding=(0, 0, 1, 1, 1, 1, 0, 0), pad_const=7)
    return b.emit(Slice, [wide], x.type, start=(0, 0, 2, 0), size=SHAPE)


def joined(b: Builder, x: Value) -> Value:
    """Halves of two results with zero points of their own."""
    half = TensorType((*SHAPE[:3], 2), x.type.storage)
    other = pooled(b, convolved(b, x, 3, seed=4, relu=True))
    halves = [b.emit(Slice, [v], half, start=(0, 0, 0, 0), size=half.shape) for v in (x, other)]
    return b.concat(halves, 3)


def resized(b: Builder, x: Value) -> Value:
    """Every other row and column, and back."""
    small = TensorType((2, 3, 5, 4), x.type.storage)
    rows = b.emit(Resize, [x], small, scale=(1, 2, 1, 1), offset=(0, 0), border=(-1, 0), mode="NEAREST_NEIGHBOR")
    return b.emit(Resize, [rows], x.type, scale=(2, 1, 1, 1), offset=(0, 0), border=(1, 0), mode="NEAREST_NEIGHBOR")


def summed(b: Builder, x: Value) -> Value:
    """A residual sum, as a table."""
    other = convolved(b, x, 3, seed=5)
    entries = np.clip(np.rint(NUMBERS[:, None] * 0.7071 + NUMBERS * 0.6123 + 9.3), -128, 127)
    entries = entries - NUMBERS[0] + x.type.storage.minimum
    return b.emit(Table2D, [x, other, b.constant(entries.reshape(-1), x.type.storage)], x.type)


def multiplied(b: Builder, x: Value) -> Value:
    """A product with one number per image and channel, as squeeze and excitation has it."""
    one = b.emit(
        Slice, [convolved(b, x, 3, seed=6)], TensorType((2, 1, 1, 4), x.type.storage), start=(0,) * 4, size=(2, 1, 1, 4)
    )
    entries = np.clip(np.rint(np.multiply.outer(NUMBERS + 28, NUMBERS + 101) * 0.01234 - 20), -128, 127)
    entries = entries - NUMBERS[0] + x.type.storage.minimum
    return b.emit(Table2D, [x, one, b.constant(entries.reshape(-1), x.type.storage)], x.type)


def scaled(b: Builder, x: Value) -> Value:
    """A requantization, as a table."""
    entries = np.clip(np.floor(NUMBERS * 0.83 + 4.2), -100, 90) - NUMBERS[0] + x.type.storage.minimum
    return b.table(x, entries.astype(x.type.storage.dtype))


@pytest.mark.parametrize(
    "between", [nothing, pooled, reshaped, surrounded, joined, resized, summed, multiplied, scaled]
)
@pytest.mark.parametrize(("padded", "relu"), [(False, False), (True, True), (True, False)])
@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
def test_no_cast_between(between: Between, padded: bool, relu: bool, storage: ScalarType) -> None:
    source, module = selected(between, storage, padded=padded, relu=relu)
    assert casts(module) == 3  # into floats, and out of them by way of int32
    assert_equal(source, module, storage)


def interpolated(b: Builder, x: Value, flags: tuple[bool, bool], out: tuple[int, int]) -> Value:
    """Weighted means, halves rounded away from zero, or up for uint8; steps as the kernels of each have them."""
    storage, sizes, steps_of = x.type.storage, SHAPE[1:3], rational_steps if x.type.storage is ui8 else integer_steps
    rows, columns = (steps_of(size, count, *flags) for size, count in zip(sizes, out, strict=True))
    assert rows is not None
    assert columns is not None
    scale, offset = (rows.n, rows.d, columns.n, columns.d), (rows.offset, columns.offset)
    border = tuple(s.border(size, count) for s, size, count in zip((rows, columns), sizes, out, strict=True))
    type = TensorType((SHAPE[0], *out, SHAPE[-1]), i32)
    sums = b.emit(Resize, [x], type, scale=scale, offset=offset, border=border, mode="BILINEAR")
    if storage is i8:
        sums = b.add(sums, b.arithmetic_right_shift(sums, b.constant(31)))
    total = rows.n * columns.n
    half = b.add(sums, b.constant(total // 2))
    return b.cast(b.arithmetic_right_shift(half, b.constant(total.bit_length() - 1)), storage)


@pytest.mark.parametrize(
    ("flags", "out"),
    [
        *(((False, False), (12, 10)), ((False, True), (12, 10)), ((False, True), (24, 20)), ((False, False), (3, 5))),
        *(((True, False), (11, 17)), ((True, False), (41, 33)), ((True, False), (161, 5)), ((False, True), (96, 80))),
    ],
    ids=str,
)
@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
def test_positions_that_are_exact_are_resized_as_floats(
    storage: ScalarType, flags: tuple[bool, bool], out: tuple[int, int]
) -> None:
    source, module = selected(lambda b, x: interpolated(b, x, flags, out), storage, padded=True, relu=False)
    assert [op.name for op in module.ops()].count("tfl.resize_bilinear") == 1
    assert casts(module) == 3
    assert_equal(source, module, storage)


@pytest.mark.parametrize(("flags", "out"), [((True, False), (12, 9)), ((False, True), (1024, 80))], ids=str)
def test_other_positions_are_resized_as_integers(flags: tuple[bool, bool], out: tuple[int, int]) -> None:
    """Positions of eleven parts; and so many parts that sums of halves are not exact."""
    source, module = selected(lambda b, x: interpolated(b, x, flags, out), i8, padded=True, relu=False)
    assert "tfl.resize_bilinear" not in [op.name for op in module.ops()]
    assert_equal(source, module, i8)


def test_the_greatest_of_results_is_that_of_floats() -> None:
    b, x = Builder(), argument(SHAPE, i8)
    index = b.emit(ArgMax, [convolved(b, x, 3)], TensorType(SHAPE[:3], i32), axis=3)
    index.name = "index"
    source = Module([Function("main", [x], [index], b.ops)])
    array = draw(i8, SHAPE)
    want = evaluate_function(source.main, {x: array})[index]
    passes = [Select("float32"), DeadCodeElimination(), CheckLegality(mac="float32")]
    module = Pipeline(passes, "integer").run(source).module
    assert casts(module) == 1
    for resolver in RESOLVERS:
        np.testing.assert_array_equal(interpret(bytes(write(module)), [[array]], resolver)[0][0], want)


@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
def test_any_other_table_is_one_of_floats(storage: ScalarType) -> None:
    entries = (NUMBERS * 37 % 256 + storage.minimum).astype(storage.dtype)
    source, module = selected(lambda b, x: b.table(x, entries), storage, padded=True, relu=False)
    kinds = [op.name for op in module.ops()]
    assert kinds.count("tfl.gather") == 1
    assert casts(module) == 4  # and the table's index
    assert_equal(source, module, storage)


def test_integers_are_there_for_whom_reads_integers() -> None:
    """A result that is read as floats and returned, too."""
    b, x = Builder(), argument(SHAPE, i8)
    first = convolved(b, x, 2, padded=True)
    second = convolved(b, first, zero_points(i8)[1], seed=1)
    first.name, second.name = "first", "second"
    function = Function("main", [x], [first, second], b.ops)
    array = draw(i8, SHAPE)
    known = evaluate_function(function, {x: array})
    want = [known[first], known[second]]
    module = Pipeline([Select("float32"), DeadCodeElimination()], "integer").run(Module([function])).module
    assert [v.name for v in module.main.outputs] == ["first", "second"]
    for resolver in RESOLVERS:
        for got, expected in zip(interpret(bytes(write(module)), [[array]], resolver)[0], want, strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("bias", [900, 1 << 25])
def test_a_bias_beyond_float32_goes_with_the_middle(bias: int) -> None:
    b, x = Builder(), argument(SHAPE, i8)
    sums = b.conv2d(x, b.constant(np.ones((1, 1, 1, 4)), i8), b.constant([bias]), (*SHAPE[:3], 1), input_zp=3)
    y = b.rescale(sums, quantize_multipliers([100.5 / bias]), i8)
    y.name = "result"
    source = Module([Function("main", [x], [y], b.ops)])
    array = draw(i8, SHAPE)
    want = evaluate_function(source.main, {x: array})[y]
    module = Pipeline([Select("float32"), DeadCodeElimination()], "integer").run(source).module
    assert any(op.name == "tfl.floor" for op in module.ops())
    for resolver in RESOLVERS:
        np.testing.assert_array_equal(interpret(bytes(write(module)), [[array]], resolver)[0][0], want)


@pytest.mark.parametrize(("inputs", "convolutions"), [(900, 1), (1500, 2), (2300, 3)])
def test_long_sums_are_split(inputs: int, convolutions: int) -> None:
    """Two parts are added in float32, more in int32; what is beyond 2^24 is saturated."""
    rng, b, x = np.random.default_rng(0), Builder(), argument((1, 3, 2, inputs), i8)
    weights = b.constant(rng.choice([-127, 127], (3, 1, 1, inputs)), i8)
    sums = b.conv2d(x, weights, b.constant([900, 1 << 20, -70000]), (1, 3, 2, 3), input_zp=-128)
    y = b.rescale(sums, quantize_multipliers([3e-3, 1e-4, 9e-4]), i8)
    y.name = "result"
    source = Module([Function("main", [x], [y], b.ops)])
    arrays = [rng.integers(-128, 128, (1, 3, 2, inputs), np.int8), np.full((1, 3, 2, inputs), 127, np.int8)]
    arrays.append(np.where(weights.array[0] > 0, 127, -128).astype(np.int8) * np.ones((1, 3, 2, 1), np.int8))
    wanted = [evaluate_function(source.main, {x: array})[y] for array in arrays]
    module = Pipeline([Select("float32"), DeadCodeElimination()], "integer").run(source).module
    kinds = [op.name for op in module.ops()]
    assert kinds.count("tfl.conv_2d") == convolutions
    assert "tfl.floor" in kinds
    assert casts(module) == (3 if convolutions < 3 else 3 + 4)
    for resolver in RESOLVERS:
        for array, want in zip(arrays, wanted, strict=True):
            np.testing.assert_array_equal(interpret(bytes(write(module)), [[array]], resolver)[0][0], want)


def test_dense_levels_are_requantized_in_floats() -> None:
    """Sums less by the middle of the levels, whose signs matter."""
    rng, b, x = np.random.default_rng(0), Builder(), argument((1, 3, 2, 300), i8)
    weights = b.constant(rng.integers(-127, 128, (60, 1, 1, 300)), i8)
    bias = b.constant(rng.integers(-9000, 9000, 60))
    sums = b.conv2d(x, weights, bias, (1, 3, 2, 60), input_zp=-128)
    y = b.rescale(sums, quantize_multipliers(rng.uniform(3e-4, 3.6e-4, 60)), i8, output_zp=-60)
    y.name = "result"
    source = Module([Function("main", [x], [y], b.ops)])
    array = rng.integers(-128, 128, (1, 3, 2, 300), np.int8)
    want = evaluate_function(source.main, {x: array})[y]
    module = Pipeline([Select("float32"), DeadCodeElimination()], "integer").run(source).module
    assert "tfl.floor" in [op.name for op in module.ops()]
    for resolver in RESOLVERS:
        np.testing.assert_array_equal(interpret(bytes(write(module)), [[array]], resolver)[0][0], want)


@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
def test_sums_of_results_are_sums_of_floats(storage: ScalarType) -> None:
    """As a mean has them: no integers of the size of what is summed."""
    b, x = Builder(), argument(SHAPE, storage)
    wide = b.cast(convolved(b, x, zero_points(storage)[0], padded=True), i32)
    for axis in (1, 2):
        wide = b.reduce("sum", wide, axis)
    y = b.rescale(wide, quantize_multipliers([0.07]), storage, output_zp=storage.minimum + 9)
    y.name = "result"
    source = Module([Function("main", [x], [y], b.ops)])
    array = draw(storage, SHAPE)
    want = evaluate_function(source.main, {x: array})[y]
    module = (
        Pipeline([Select("float32"), DeadCodeElimination(), CheckLegality(mac="float32")], "integer").run(source).module
    )
    (total,) = (op for op in module.ops() if op.name == "tfl.sum")
    assert total.results[0].type.storage == f32
    for resolver in RESOLVERS:
        np.testing.assert_array_equal(interpret(bytes(write(module)), [[array]], resolver)[0][0], want)
