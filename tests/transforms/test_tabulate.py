"""Which elementwise functions become tables, and that they stay the same function."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from support.harness import argument

from tflq.analysis.evaluate.registry import evaluate_function
from tflq.dialects.builder import Builder
from tflq.formats.tflite.lowering.cost import table_pays
from tflq.ir.module import Function, Module
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, f32, i8, i16, i32, ui8
from tflq.numerics.fixed_point import Multiplier
from tflq.transforms.canonicalize import DeadCodeElimination
from tflq.transforms.tabulate import Tabulate

SHAPE = (2, 3, 5)
TWICE = Multiplier(1 << 30, 21)
THIRD = Multiplier(1431655765, -1)


def _tabulated(b: Builder, inputs: list[Value], outputs: list[Value]) -> list[str]:
    """Names of the ops that remain; the function's results stay the same on random inputs."""
    for i, output in enumerate(outputs):
        output.name = output.name or f"y{i}"
    module = Module([Function("main", inputs, outputs, b.ops)])
    rng = np.random.default_rng(0)
    arrays = {
        v: rng.integers(
            v.type.storage.minimum, v.type.storage.maximum, [d or 2 for d in v.type.shape or ()], endpoint=True
        ).astype(v.type.storage.dtype)
        for v in inputs
    }
    want = [copy.copy(evaluate_function(module.main, arrays)[v]) for v in outputs]
    Tabulate(table_pays).run(module)
    DeadCodeElimination().run(module)
    got = evaluate_function(module.main, arrays)
    for output, array in zip(outputs, want, strict=True):
        np.testing.assert_array_equal(got[output], array)
    return [op.name for op in module.ops()]


def _side(b: Builder, x: Value, zero_point: int) -> Value:
    """One side of ADD on 8 bits."""
    return b.rescale(b.rescale(x, TWICE, input_zp=zero_point), THIRD)


@pytest.mark.parametrize("element", [i8, ui8])
def test_two_tensors(element: ScalarType) -> None:
    b, x, y = Builder(), argument((None, *SHAPE), element), argument((None, *SHAPE), element)
    total = b.rescale(b.add(_side(b, x, 3), _side(b, y, 5)), Multiplier(1 << 30, -18), element, output_zp=7)
    assert _tabulated(b, [x, y], [b.clamp(total, 10, 100)]) == ["ext.table_2d"]


def test_broadcast() -> None:
    b, x, y = Builder(), argument((None, 4, 5), i8), argument((5,), i8)
    total = b.rescale(b.add(_side(b, x, 3), _side(b, y, 5)), Multiplier(1 << 30, -18), i8)
    assert _tabulated(b, [x, y], [total]) == ["ext.table_2d"]


def test_the_same_tensor_twice_is_one() -> None:
    b, x = Builder(), argument(SHAPE, i8)
    total = b.rescale(b.add(_side(b, x, 3), _side(b, x, 5)), Multiplier(1 << 30, -18), i8)
    assert _tabulated(b, [x], [total]) == ["tosa.table"]


def test_cheap_arithmetic_stays() -> None:
    b, x = Builder(), argument(SHAPE, i8)
    assert _tabulated(b, [x], [b.clamp(x, -5, 5)]) == ["tosa.clamp"]


def test_a_constant_of_many_channels_is_a_tensor() -> None:
    """PRELU: alphas per channel, as int8 and as the int32 that folding makes of them."""
    for element in (i8, i32):
        b, x = Builder(), argument((None, 4, 5), i8)
        alphas = b.constant(np.asarray([3, -7, 0, 100, 3]), element)
        wide, zero = b.cast(x, i32), b.constant(np.asarray(0))
        product = b.rescale(b.mul(wide, b.cast(alphas, i32)), Multiplier(1 << 30, -6))
        chosen = b.select(b.greater_equal(wide, zero), b.rescale(wide, THIRD), product)
        result = b.cast(b.clamp(chosen, -128, 127), i8)
        names = _tabulated(b, [x], [result])
        assert [n for n in names if n != "tosa.cast"] == ["ext.table_2d"]


def test_a_named_tensor_is_kept_and_a_source_itself() -> None:
    b, x = Builder(), argument(SHAPE, i8)
    first = b.rescale(x, THIRD, i8, output_zp=1)
    first.name = "first"
    second = b.rescale(first, THIRD, ui8, output_zp=2)
    assert _tabulated(b, [x], [first, second]) == ["tosa.table", "tosa.table"]


def test_three_tensors_keep_their_join() -> None:
    b = Builder()
    x, y, z = (argument(SHAPE, i8) for _ in range(3))
    total = b.add(b.add(_side(b, x, 1), _side(b, y, 2)), _side(b, z, 3))
    names = _tabulated(b, [x, y, z], [b.rescale(total, Multiplier(1 << 30, -18), i8)])
    assert names == ["tosa.table", "tosa.table", "tosa.add", "tosa.table", "tosa.add", "tosa.rescale"]


def test_sixteen_bits_and_channels_stay() -> None:
    b, x, y = Builder(), argument(SHAPE, i16), argument(SHAPE, i8)
    wide = b.rescale(x, THIRD, i16)
    channels = b.rescale(y, (np.full(5, 1431655765), np.arange(5) - 5), i8)
    assert _tabulated(b, [x, y], [wide, channels]) == ["tosa.rescale", "tosa.rescale"]


def test_equal_tables_are_one_constant() -> None:
    b, x, y = Builder(), argument(SHAPE, i8), argument(SHAPE, i8)
    outputs = [b.rescale(v, THIRD, i8, input_zp=3) for v in (x, y)]
    module = Module([Function("main", [x, y], outputs, b.ops)])
    Tabulate(table_pays).run(module)
    first, second = (op.operand(1) for op in module.ops())
    assert first is second


def test_entries_are_integers() -> None:
    """A dequantization that is written out has float results, which TOSA's TABLE cannot have."""
    x = argument((2, 3), i8)
    b = Builder()
    y = b.mul(b.cast(x, f32), b.constant(np.asarray(0.5), f32))
    module = Module([Function("main", [x], [y], b.ops)])
    Tabulate(worth=lambda *_: True).run(module)
    assert [op.name for op in module.main.ops] == ["tosa.cast", "tosa.mul"]


def test_a_named_function_of_the_other_operand_is_no_source() -> None:
    """x * LOGISTIC(x): one table of x, whatever is named on the way; what others read of it stays."""
    for read in (False, True):
        b, x = Builder(), argument(SHAPE, i8)
        shifted = b.rescale(_side(b, x, 3), THIRD, i8)
        shifted.name = "shifted"
        gate = b.clamp(b.rescale(_side(b, shifted, 5), THIRD, i8), -3, 90)
        gate.name = "gate"
        product = b.rescale(b.mul(b.cast(gate, i32), b.cast(x, i32)), Multiplier(1 << 30, -8), i8)
        left = _tabulated(b, [x], [product, gate] if read else [product])
        assert left == (["tosa.table"] * 3 if read else ["tosa.table"])


def test_a_named_function_of_a_third_tensor_is_a_source() -> None:
    b, x, z = Builder(), argument(SHAPE, i8), argument(SHAPE, i8)
    gate = b.rescale(_side(b, z, 5), THIRD, i8)
    gate.name = "gate"
    total = b.rescale(b.add(_side(b, x, 3), _side(b, gate, 5)), Multiplier(1 << 30, -18), i8)
    assert _tabulated(b, [x, z], [total]) == ["tosa.table", "ext.table_2d"]
