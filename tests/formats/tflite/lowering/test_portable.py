"""Lowerings of targets that restrict plain builtins: each gives what the evaluator gives, on what the target lists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from support.harness import argument, convert_and_compare, edge_inputs, interpret, one_op
from support.lowered import RESOLVERS, draw
from support.portable import PORTABLE, assert_portable, lowered, words

import tflq
from tflq.base.errors import OptionError, UnsupportedError
from tflq.dialects.builder import Builder
from tflq.dialects.quant import RescaleF64, Table2D, Table16Bit
from tflq.dialects.tfl import arithmetic
from tflq.dialects.tfl.arithmetic import Add, Sub
from tflq.dialects.tfl.casts import Dequantize
from tflq.dialects.tfl.indexing import Gather as TflGather
from tflq.dialects.tosa.convolution import AvgPool2D
from tflq.dialects.tosa.elementwise import Mul
from tflq.formats.tflite.reader import read
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, i8, i16, i32, ui8
from tflq.numerics.fixed_point import quantize_multipliers

MODELS: Final = Path(__file__).parents[4] / "models"
NUMBERS: Final = np.arange(-128, 128)


# Integers of 32 bits.


@pytest.mark.parametrize("rounding", [False, True])
@pytest.mark.parametrize("amount", [0, 1, 2, 11, 16, 17, 30, 31])
def test_right_shift_by_a_number(amount: int, rounding: bool) -> None:
    def emit(b: Builder, x: Value) -> Value:
        return b.arithmetic_right_shift(x, b.constant(np.asarray(amount)), round=rounding)

    assert_portable(emit, [words((4, 5, 401))], [i32])


@pytest.mark.parametrize("rounding", [False, True])
@pytest.mark.parametrize("last", [1, 401])
def test_right_shift_by_amounts(last: int, rounding: bool) -> None:
    arrays = [words((4, 5, 401)), draw(i32, (4, 5, last), 3, 0, 31)]
    assert_portable(lambda b, x, y: b.arithmetic_right_shift(x, y, round=rounding), arrays, [i32, i32])


def test_left_shift() -> None:
    amounts = draw(i32, (4, 401), 3, 0, 31)
    assert_portable(lambda b, x, y: b.logical_left_shift(x, y), [words((4, 401)), amounts], [i32, i32])


def test_clz() -> None:
    assert_portable(lambda b, x: b.clz(x), [words((401, 1))], [i32])


@pytest.mark.parametrize("shift", [23, 27, 31, 33])
@pytest.mark.parametrize("constant", [False, True])
def test_product_shifted(shift: int, constant: bool) -> None:
    """Of numbers whose shifted product is an int32."""
    x, y = words((3, 5, 401)), words((3, 5, 401), 1, bits=shift - 2)

    def emit(b: Builder, a: Value, *others: Value) -> Value:
        other = others[0] if others else b.constant(y, i32)
        return b.emit(Mul, [a, other], TensorType(a.type.shape, i32), shift=shift)

    assert_portable(emit, [x] if constant else [x, y], [i32] if constant else [i32, i32])


@pytest.mark.parametrize("low", [True, False])
def test_sum(low: bool) -> None:
    """Of numbers whose sum is below 2^24, and of any: two halves."""
    x = draw(i32, (3, 500), 0, -(1 << 14), 1 << 14) if low else words((3, 500)) // 500

    def emit(b: Builder, v: Value) -> Value:
        return b.reduce("sum", b.clamp(v, -(1 << 14), 1 << 14) if low else v, 1)

    assert_portable(emit, [x], [i32])


@pytest.mark.parametrize("known", [False, True])
def test_select(known: bool) -> None:
    """Differences wrap."""
    x, y = words((3, 401)), words((3, 401), 1)

    def emit(b: Builder, a: Value, *others: Value) -> Value:
        picked = b.greater(a, b.constant(0))
        if known:
            return b.select(picked, b.constant(x, i32), b.constant(y, i32))
        return b.select(picked, a, others[0])

    assert_portable(emit, [x] if known else [x, y], [i32] * (1 if known else 2))


def test_casts() -> None:
    """int32 within 8 bits, and any, which wraps."""
    x = words((5, 401))
    assert_portable(lambda b, v: b.cast(b.cast(b.clamp(v, -128, 127), i8), i32), [x], [i32])
    for to in (i8, ui8):
        assert_portable(lambda b, v, to=to: b.cast(b.cast(v, to), i32), [x], [i32])


# Requantizations.


def whole(b: Builder, x: Value) -> Value:
    """Numbers below 2^24."""
    return b.clamp(x, -(1 << 23), 1 << 23)


@pytest.mark.parametrize("channels", [1, 7])
@pytest.mark.parametrize("zero", [-128, -5])
@pytest.mark.parametrize("log2", [-16, -12, -7, -1])
def test_rescale_of_int32(log2: int, zero: int, channels: int) -> None:
    scales = 2.0 ** (log2 + np.random.default_rng(7).random(channels))

    def emit(b: Builder, x: Value) -> Value:
        return b.rescale(whole(b, x), quantize_multipliers(scales), i8, output_zp=zero)

    near = draw(i32, (9, 401, 7), 1, *(int(end / scales.max()) for end in (-128 - zero - 20, 128 - zero + 20)))
    assert len(np.unique(assert_portable(emit, [np.clip(near, -(1 << 23), 1 << 23)], [i32]))) > 150
    assert_portable(emit, [words((9, 401, 7))], [i32])


@pytest.mark.parametrize("storage", [i8, i32], ids=str)
@pytest.mark.parametrize("scale", [0.01, 0.2, 0.5, 0.737, 1.0, 1.9, 3.0, 17.3])
def test_rescale_of_8_bits(storage: ScalarType, scale: float) -> None:
    """A line or a table: all of them."""

    def emit(b: Builder, x: Value) -> Value:
        zero = 0 if storage is i32 else 11
        return b.rescale(x, quantize_multipliers(np.asarray([scale])), storage, input_zp=-3, output_zp=zero)

    assert_portable(emit, [NUMBERS.astype(np.int8).reshape(1, 256)], [i8])


def test_rescale_of_8_bits_by_channels() -> None:
    scales = 2.0 ** np.random.default_rng(4).uniform(-3, 3, 5)

    def emit(b: Builder, x: Value) -> Value:
        return b.rescale(x, quantize_multipliers(scales), i8, input_zp=-3, output_zp=11)

    assert_portable(emit, [np.repeat(NUMBERS.astype(np.int8)[:, None], 5, 1)], [i8])


@pytest.mark.parametrize("channels", [1, 7])
@pytest.mark.parametrize("to", [i16, i8, ui8, i32], ids=str)
@pytest.mark.parametrize("log2", [-25, -14, -8, -1, 2])
def test_rescale_of_words(log2: int, to: ScalarType, channels: int) -> None:
    """Of sums of any size, to more levels than a line has."""
    scales = 2.0 ** (log2 + np.random.default_rng(7).random(channels))
    zero = 0 if to is i32 else {i16: -3, i8: 5, ui8: 120}[to]
    most = 1 << (31 - max(log2 + 1, 0))

    def emit(b: Builder, x: Value) -> Value:
        result = b.rescale(b.clamp(x, -most + 1, most - 1), quantize_multipliers(scales), to, output_zp=zero)
        return b.cast(result, i32) if to is ui8 else result  # uint8 is there as floats

    got = assert_portable(emit, [words((9, 401, 7), bits=31)], [i32])
    assert log2 < -20 or len(np.unique(got)) > (200 if log2 < 0 else 30)


@pytest.mark.parametrize("element", [i8, i16], ids=str)
def test_rescale_of_fewer_bits_to_words(element: ScalarType) -> None:
    def emit(b: Builder, x: Value) -> Value:
        zero = 0 if element is i16 else -3
        return b.rescale(x, quantize_multipliers(np.asarray([3.7])), i32, input_zp=zero)

    numbers = np.arange(element.minimum, element.maximum + 1).astype(element.dtype)
    assert_portable(emit, [numbers.reshape(1, -1)], [element])


def test_product_of_words_rescaled() -> None:
    """Numbers of 16 bits, multiplied: more than float32 holds."""

    def emit(b: Builder, x: Value, y: Value) -> Value:
        product = b.mul(b.cast(x, i32), b.cast(y, i32))
        return b.rescale(product, quantize_multipliers(np.asarray([2.0**-22 * 1.3])), i8, output_zp=7)

    assert_portable(emit, [draw(i16, (3, 4001), 0), draw(i16, (3, 4001), 1)], [i16, i16])


@pytest.mark.parametrize("channels", [1, 7])
def test_rescale_of_a_real_scale(channels: int) -> None:
    scales = 0.0007 * (1 + np.random.default_rng(7).random(channels))

    def emit(b: Builder, x: Value) -> Value:
        return b.emit(RescaleF64, [whole(b, x)], TensorType(x.type.shape, i8), scale=scales, output_zp=4)

    assert_portable(emit, [draw(i32, (9, 401, 7), 1, -200_000, 200_000)], [i32])


@pytest.mark.parametrize(("kernel", "stride"), [((2, 2), (2, 2)), ((3, 2), (1, 2)), ((7, 5), (1, 1))])
def test_average_pool(kernel: tuple[int, int], stride: tuple[int, int]) -> None:
    size = [(n - k) // s + 1 for n, k, s in zip((11, 9), kernel, stride, strict=True)]
    zeros = {"input_zp": 0, "output_zp": 0}

    def emit(b: Builder, x: Value) -> Value:
        type = TensorType((3, *size, 4), i8)
        return b.emit(AvgPool2D, [x], type, kernel=kernel, stride=stride, pad=(0, 0, 0, 0), **zeros)

    for seed in range(3):
        assert_portable(emit, [draw(i8, (3, 11, 9, 4), seed)], [i8])


# Tables.


@pytest.mark.parametrize("bits", [8, 24, 32])
def test_table(bits: int) -> None:
    """Of numbers that float32 has, and of two parts."""
    entries = np.random.default_rng(0).integers(-(1 << (bits - 1)), 1 << (bits - 1), 256)
    dtype = np.int8 if bits == 8 else np.int32
    x = NUMBERS.astype(np.int8).reshape(1, 16, 16)
    assert_portable(lambda b, v: b.table(v, entries.astype(dtype)), [x], [i8])


def test_table_of_16_bits() -> None:
    entries = np.random.default_rng(0).integers(-(1 << 15), 1 << 15, 1 << 16).astype(np.int16)
    x = np.arange(-(1 << 15), 1 << 15).astype(np.int16).reshape(4, -1)
    assert_portable(lambda b, v: b.emit(Table16Bit, [v, b.constant(entries, i16)], i16), [x], [i16])


@pytest.mark.parametrize("second", [(4, 256), (1, 1)])
def test_table_of_two(second: tuple[int, int]) -> None:
    entries = np.random.default_rng(0).integers(-128, 128, 65536).astype(np.int8)

    def emit(b: Builder, x: Value, y: Value) -> Value:
        return b.emit(Table2D, [x, y, b.constant(entries, i8)], x.type)

    assert_portable(emit, [draw(i8, (4, 256), 1), draw(i8, second, 2)], [i8, i8])


# Whole models.


@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
@pytest.mark.parametrize("scale", [1.0, 0.0078125, 0.0235, 3.7e-5, 812.5])
@pytest.mark.parametrize("zero", [0, 17])
def test_edges(storage: ScalarType, scale: float, zero: int) -> None:
    """DEQUANTIZE, QUANTIZE: every value comes in, and goes out as itself."""
    element = UniformQuantizedType.of(storage, scale, zero)
    x, y = (argument((1, 16, 16), element, name) for name in ("x", "y"))
    model = one_op("tfl.relu", [x], [y], {})
    values = np.arange(storage.minimum, storage.maximum + 1).astype(storage.dtype).reshape(1, 16, 16)
    made = convert_and_compare(model, [[values]], target="portable")
    kinds = [op.name for op in read(bytes(made.data)).ops()]
    assert (kinds[0], kinds[-1]) == ("tfl.dequantize", "tfl.quantize")
    assert kinds.count("tfl.quantize") == 1 + (storage is ui8)


@pytest.mark.parametrize("name", ["cnn_int8"])
def test_a_network(name: str) -> None:
    model = (MODELS / f"{name}.tflite").read_bytes()
    inputs = [*edge_inputs(read(model).main.inputs), *edge_inputs(read(model).main.inputs, seed=1)]
    made = convert_and_compare(model, inputs, target="portable")
    assert all(PORTABLE.builtins.admit(op) for op in read(bytes(made.data)).ops())  # type: ignore[union-attr]
    want = interpret(model, inputs)
    for resolver in RESOLVERS[1:]:
        for w, g in zip(want, interpret(bytes(made.data), inputs, resolver), strict=True):
            np.testing.assert_array_equal(g, w, err_msg=resolver)


@pytest.mark.parametrize("name", ["cnn_int8", "cnn_uint8"])
def test_constants_do_not_meet(name: str) -> None:
    """No constant is added to a product by one in floats, but where DEQUANTIZE's results are read."""
    made = tflq.convert(MODELS / f"{name}.tflite", target="portable")
    for op in read(bytes(made.data)).ops():
        if not isinstance(op, (Add, Sub)) or op.result.type.storage.bits != 32 or not op.result.type.storage.is_float:
            continue
        products = [v.producer for v in op.operands if v is not None and isinstance(v.producer, arithmetic.Mul)]
        if any(v is not None and v.is_constant for v in op.operands):
            by_constants = [p for p in products if any(v is not None and v.is_constant for v in p.operands)]
            reads = [v.producer for p in by_constants for v in p.operands if v is not None and not v.is_constant]
            assert all(isinstance(producer, Dequantize) for producer in reads)


# What is refused, or done without.


def test_what_has_no_form_is_named() -> None:
    element = UniformQuantizedType.of(i16, 2.0**-15, 0)
    model = one_op("tfl.softmax", [argument((2, 8), element, "x")], [argument((2, 8), element, "y")], {"beta": 1.0})
    with pytest.raises(UnsupportedError, match=r"SOFTMAX.*tfl\.right_shift on \(i32, i32\) → i32 is not an operator"):
        tflq.convert(model, target="portable")


def test_plain_builtins_are_on_plain_tensors() -> None:
    """Runtimes read real numbers from a tensor with parameters; of int16 no edge is listed."""
    element = UniformQuantizedType.of(i16, 2.0**-15, 0)
    model = one_op("tfl.neg", [argument((2, 8), element, "x")], [argument((2, 8), element, "y")], {})
    with pytest.raises(UnsupportedError, match=r"tensor 'x' of tfl\.\w+ has quantization parameters"):
        tflq.convert(model, target="portable")


def test_no_choice_of_arithmetic() -> None:
    with pytest.raises(OptionError, match="'portable' restricts plain builtins, so its results are in float32 anyway"):
        tflq.convert(MODELS / "cnn_int8.tflite", target="portable", mac="float32")


def listing(folder: Path, without: str) -> Path:
    """The target's file less one builtin."""
    from tflq.base.files import resource

    lines = Path(resource("rules/portable.toml")).read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(f"{without} = ")]
    assert len(kept) == len(lines) - 1
    path = folder / f"without_{without}.toml"
    path.write_text("".join(kept))
    return path


NETWORKS: Final = ("cnn_int8", "cnn_uint8", "pad", "split")
BUILTINS: Final = sorted(PORTABLE.builtins.names) if PORTABLE.builtins is not None else []


@pytest.mark.slow
@pytest.mark.parametrize("builtin", BUILTINS)
def test_a_builtin_less_is_refused_by_name_or_done_without(builtin: str, tmp_path: Path) -> None:
    """Never other numbers."""
    target = listing(tmp_path, builtin)
    for name in NETWORKS:
        model = (MODELS / f"{name}.tflite").read_bytes()
        made = converted_or_why_not(model, target)
        if isinstance(made, str):
            assert re.search(rf"tfl\.{builtin} on .* is not an operator of the target", made)
            continue
        assert f"tfl.{builtin}" not in {op.name for op in read(made).ops()}
        inputs = edge_inputs(read(model).main.inputs)
        for want, got in zip(interpret(model, inputs), interpret(made, inputs), strict=True):
            for w, g in zip(want, got, strict=True):
                np.testing.assert_array_equal(g, w)


def converted_or_why_not(model: bytes, target: Path) -> bytes | str:
    try:
        return bytes(tflq.convert(model, target=target).data)
    except UnsupportedError as error:
        return str(error)


def test_other_targets_have_neither() -> None:
    """DEQUANTIZE and QUANTIZE are no operators of `integer`."""
    element = UniformQuantizedType.of(i8, 0.5, 3)
    model = one_op("tfl.relu", [argument((1, 8), element, "x")], [argument((1, 8), element, "y")], {})
    assert not {"tfl.dequantize", "tfl.quantize"} & {op.name for op in read(tflq.convert(model).data).ops()}


def test_tables_of_images_are_read_by_an_index_of_one_dim() -> None:
    """OpenVINO takes an index of four dims that follows a convolution in the wrong order."""
    entries = np.random.default_rng(0).permutation(NUMBERS)

    def emit(b: Builder, x: Value) -> Value:
        return b.table(x, entries.astype(np.int8))

    x = draw(i8, (2, 3, 5, 4), 0, -128, 127)
    assert_portable(emit, [x], [i8])
    _, module = lowered(emit, [argument((None, 3, 5, 4), i8, "x0")])
    (found,) = (op for op in module.main.ops if isinstance(op, TflGather))
    assert len(found.indices.type.shape or ()) == 1
    assert module.main.outputs[0].type.shape == (None, 3, 5, 4)
