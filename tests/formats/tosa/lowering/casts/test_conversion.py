"""Conversions between floats and integers, as the evaluators and the interpreter make them."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, interpret, one_op
from support.running import reference
from support.tosa_integers import check

from tflq.base.errors import UnsupportedError
from tflq.formats.tflite.reader import read
from tflq.formats.tosa.lowering.engine import lower
from tflq.formats.tosa.rules import Target
from tflq.ir.types import ScalarType, f16, f32, i1, i8, i16, i32, i64, ui8

FLOATS = np.asarray(
    [0, 0.25, 0.5, -0.5, 1.5, 2.5, -2.5, 0.99999994, 127.5, 255.5, 256.7, -128.7, -3.99, 32767.9, 1e9, -1e9, 3e9, -3e9],
    np.float32,
)
INTEGERS = [i8, ui8, i16, i32]


@pytest.mark.parametrize("to", INTEGERS)
def test_truncation(to: ScalarType) -> None:
    check([(FLOATS.shape, f32)], lambda b, x: b.truncate(x, to), [FLOATS])


@pytest.mark.parametrize("to", INTEGERS)
def test_rounding(to: ScalarType) -> None:
    check([(FLOATS.shape, f32)], lambda b, x: b.cast(x, to), [FLOATS])


@pytest.mark.parametrize("source", INTEGERS)
def test_integers_to_float(source: ScalarType) -> None:
    ends = np.asarray([source.minimum, source.maximum, 0, 1, 100, (1 << 24) + 1 & source.maximum], source.dtype)
    check([(ends.shape, source)], lambda b, x: b.cast(x, f32), [ends])


def test_truth_values() -> None:
    truth = np.asarray([True, False, True])
    check([(truth.shape, i1)], lambda b, x: b.cast(x, f32), [truth])
    check([(FLOATS.shape, f32)], lambda b, x: b.cast(x, i1), [FLOATS])


@pytest.mark.parametrize("to", [i8, i16, i32])
def test_the_kernel_truncates(to: ScalarType) -> None:
    inside = FLOATS[np.abs(FLOATS) < to.maximum]
    model = one_op("tfl.cast", [argument(inside.shape, f32)], [argument(inside.shape, to, "y")], {})
    lowered, _ = lower(read(model), Target())
    np.testing.assert_array_equal(reference(lowered, [inside])[0], interpret(model, [[inside]])[0][0])


def test_half_precision_constants_are_widened() -> None:
    x = argument((2,), f32)
    half = const(np.asarray([0.5, 3], np.float16), f16)
    model = one_op("tfl.dequantize", [half], [argument((2,), f32, "y")], {})
    lowered, _ = lower(read(model), Target())
    assert [op.name for op in lowered.ops()] == ["tosa.identity"]
    np.testing.assert_array_equal(lowered.main.ops[0].operand(0).array, [0.5, 3])
    model = one_op("tfl.dequantize", [argument((2,), f16)], [x], {}, version=3)
    assert [op.name for op in lower(read(model), Target())[0].ops()] == ["tosa.cast"]


def test_floats_to_int64_are_refused() -> None:
    model = one_op("tfl.cast", [argument((2,), f32)], [argument((2,), i64, "y")], {})
    with pytest.raises(UnsupportedError, match="TOSA has no cast between f32 and i64"):
        lower(read(model), Target())
