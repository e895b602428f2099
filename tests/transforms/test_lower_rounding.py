"""RESCALE and qcast with each way of rounding: evaluator, builtins in the interpreter, TOSA on the reference model."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, interpret
from support.running import reference

from tflq.analysis.evaluate.registry import evaluate_function
from tflq.base.errors import UnsupportedError
from tflq.dialects.builder import Builder
from tflq.formats.mlir.lower_quant import LowerQuantOps
from tflq.formats.tflite.lowering.engine import select
from tflq.formats.tflite.writer import write
from tflq.formats.tosa.lowering.engine import lower
from tflq.formats.tosa.rules import Target
from tflq.ir.module import Function, Module
from tflq.ir.ops import Value
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, f32, i8, i16, i32, i64, ui8
from tflq.numerics.fixed_point import ROUNDINGS, Rounding
from tflq.transforms.lower_rounding import LowerRounding

FORMS = [(i8, i8), (ui8, i8), (i16, i16), (i16, i8), (i32, i8), (i32, i16), (i32, i32)]


def _run(module: Module, array: np.ndarray) -> np.ndarray:
    """The module's result on kernels."""
    LowerRounding().run(module)
    return interpret(bytes(write(select(module))), [[array]])[0][0]


def rescaling(
    source: ScalarType, target: ScalarType, mantissa: list[int], shift: list[int], rounding: Rounding
) -> tuple[Module, Value]:
    b, x = Builder(), argument((1, None, len(mantissa)), source, "x")
    x.type = TensorType((1, 600, len(mantissa)), source)
    input_zp, output_zp = 3 if source.bits == 8 else 0, -2 if target.bits == 8 else 0
    multiplier = (mantissa, 31 - np.asarray(shift))
    y = b.rescale(x, multiplier, target, input_zp=input_zp, output_zp=output_zp, rounding=rounding)
    y.name = "y"
    return Module([Function("main", [x], [y], b.ops)]), x


def drawn(x: Value) -> np.ndarray:
    storage, shape = x.type.storage, tuple(d or 0 for d in x.type.shape or ())
    rng = np.random.default_rng(0)
    array = rng.integers(storage.minimum, storage.maximum, shape, np.int64, endpoint=True)
    array[:, 300:] >>= rng.integers(0, storage.bits, array[:, 300:].shape)
    array[:, :4] = np.asarray([storage.minimum, storage.maximum, 0, 1])[None, :, None]
    return array.astype(storage.dtype)


NUMBERS = [
    ([1 << 30], [31]),  # halves: every odd value is a tie
    ([1 << 30, 3 << 28], [32, 32]),
    ([1234567891], [36]),
    ([1 << 20, 1 << 30, 1999999999], [22, 40, 52]),
]


@pytest.mark.parametrize("numbers", NUMBERS, ids=str)
@pytest.mark.parametrize(("source", "target"), FORMS, ids=str)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_rescale(
    rounding: Rounding, source: ScalarType, target: ScalarType, numbers: tuple[list[int], list[int]]
) -> None:
    module, x = rescaling(source, target, *numbers, rounding)
    array = drawn(x)
    want = evaluate_function(module.main, {x: array})[module.main.outputs[0]]
    if source is not ui8:
        other, _ = rescaling(source, target, *numbers, rounding)
        LowerRounding().run(other)
        tosa, _ = lower(other, Target())
        np.testing.assert_array_equal(reference(tosa, [array])[0], want)
    np.testing.assert_array_equal(_run(module, array), want)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_random_rescales_are_exact(rounding: Rounding) -> None:
    rng, ran = np.random.default_rng(1), 0
    for _ in range(120):
        source, target = FORMS[rng.integers(len(FORMS))]
        count = int(rng.integers(1, 4))
        mantissa = rng.integers(0, 1 << int(rng.integers(1, 32)), count)
        shift = np.clip(np.log2(np.maximum(mantissa, 1)).astype(int) + rng.integers(-3, 12, count), 2, 62)
        module, x = rescaling(source, target, mantissa.tolist(), shift.tolist(), rounding)
        array, result = drawn(x), module.main.outputs[0]
        want = evaluate_function(module.main, {x: array})[result]
        try:
            LowerRounding().run(module)
        except UnsupportedError as error:
            assert "leaves int32" in str(error)  # noqa: PT017
            continue
        np.testing.assert_array_equal(evaluate_function(module.main, {x: array})[result], want)
        ran += 1
    assert ran > 100


def test_48_bits_round_half_up_alone() -> None:
    b, x = Builder(), argument((4,), i64, "x")
    b.rescale(x, (1 << 30, -20), i16, rounding="half_even")
    with pytest.raises(UnsupportedError, match="48 bits has no half_even, only half_up"):
        LowerRounding().run(Module([Function("main", [x], [b.ops[-1].result], b.ops)]))


def quantization(scale: float, storage: ScalarType, rounding: Rounding) -> tuple[Module, Value]:
    b, x = Builder(), argument((1, 1200), f32, "x")
    zero = 7 if storage.bits == 8 else 0
    element = UniformQuantizedType.of(storage, float(np.float32(scale)), zero)
    quantized = b.qcast(x, TensorType((1, 1200), element), rounding)
    y = b.scast(quantized, TensorType((1, 1200), storage))
    y.name = "y"
    return Module([Function("main", [x], [y], b.ops)]), x


@pytest.mark.parametrize("scale", [0.25, 0.1, 1 / 3])
@pytest.mark.parametrize("storage", [i8, i16], ids=str)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_qcast(rounding: Rounding, storage: ScalarType, scale: float) -> None:
    ties = (np.arange(-200, 200) / 2 * np.float32(scale)).astype(np.float32)
    array = np.concatenate([ties, np.nextafter(ties, np.float32(-1e9)), np.nextafter(ties, np.float32(1e9))])[None]
    array[0, :6] = [1e9, -1e9, 3e38, -3e38, np.inf, -np.inf]
    module, x = quantization(scale, storage, rounding)
    want = evaluate_function(module.main, {x: array})[module.main.outputs[0]]
    assert np.unique(want).size > 100
    tosa, _ = lower(quantization(scale, storage, rounding)[0], Target())
    np.testing.assert_array_equal(reference(tosa, [array])[0], want)
    np.testing.assert_array_equal(_run(module, array), want)


def test_the_text_form_says_how() -> None:
    for module in (rescaling(i32, i8, [1 << 30], [33], "half_even")[0], quantization(0.1, i8, "toward_zero")[0]):
        text = print_module(module)
        assert 'rounding = "' in text
        again = parse_module(text)
        assert print_module(again) == text
        assert again.main.ops[0].attributes["rounding"] in ROUNDINGS


@pytest.mark.parametrize(
    ("rounding", "name"),
    [("half_away", "math.round"), ("half_even", "math.roundeven"), ("toward_zero", "math.trunc")],
)
def test_lower_quant_ops_rounds_as_qcast_says(rounding: Rounding, name: str) -> None:
    module, _ = quantization(0.1, i8, rounding)
    LowerQuantOps().run(module)
    assert name in [op.name for op in module.ops()]
