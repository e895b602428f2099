"""Ranges hold every value that the evaluator can give."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.harness import argument
from support.lowered import draw

from tflq.analysis.evaluate.registry import evaluate_function
from tflq.analysis.known import Ranges, value_range
from tflq.dialects.builder import Builder
from tflq.ir.module import Function
from tflq.ir.ops import Value
from tflq.ir.types import f32, i8, i16, i32
from tflq.numerics.fixed_point import Multiplier


def _grow(b: Builder, pool: list[Value], choice: int, number: int) -> Value:
    """One more op on values of the pool."""
    x, y = pool[choice % len(pool)], pool[number % len(pool)]
    n = b.constant(np.asarray(number))
    match choice % 8:
        case 0:
            return b.add(x, y)
        case 1:
            return b.sub(x, y)
        case 2:
            return b.mul(x, n)
        case 3:
            return b.maximum(x, n)
        case 4:
            return b.arithmetic_right_shift(x, b.constant(np.asarray(abs(number) % 9)), round=number % 2 == 0)
        case 5:
            return b.clamp(x, -abs(number), abs(number) + 1)
        case 6:
            return b.rescale(x, Multiplier((1 << 30) + abs(number), -(abs(number) % 12)), i16, output_zp=number % 7)
        case _:
            return b.select(b.greater(x, y), x, n)


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(-300, 300)), min_size=1, max_size=12))
@settings(max_examples=80, deadline=None)
def test_ranges_hold(steps: list[tuple[int, int]]) -> None:
    b, xs = Builder(), [argument((300,), i8) for _ in range(2)]
    pool = [b.cast(x, i32) for x in xs]
    for choice, number in steps:
        pool.append(b.cast(_grow(b, pool, choice, number), i32))
    function = Function("main", xs, [pool[-1]], b.ops)
    values = evaluate_function(function, {x: draw(i8, (300,), i) for i, x in enumerate(xs)})
    for value in pool:
        low, high = value_range(value)
        assert low <= values[value].min()
        assert values[value].max() <= high


def test_floats_have_no_range() -> None:
    b, x = Builder(), argument((3,), f32)
    endless = b.maximum(x, b.constant(np.asarray(-np.inf), f32))
    assert value_range(b.cast(endless, i8)) == (i8.minimum, i8.maximum)


def test_a_range_that_leaves_the_type_is_the_type() -> None:
    b, x = Builder(), argument((3,), i32)
    assert value_range(b.add(x, x)) == (i32.minimum, i32.maximum)
    small = b.cast(argument((3,), i8), i32)
    assert value_range(b.mul(small, small)) == (-128 * 127, 128 * 128)


def _followed(value: Value) -> tuple[int, int]:
    return Ranges(sums=True).of(value)


def test_leading_zeros_and_sums() -> None:
    b, x = Builder(), argument((2, 300), i8)
    squares = b.mul(b.cast(x, i32), b.cast(x, i32))
    assert _followed(b.clz(squares)) == (0, 32)  # the range of a product does not know that both are the same
    small = b.add(b.cast(x, i32), b.constant(129))
    total = b.reduce("sum", small, 1)
    assert _followed(total) == (300, 300 * 256)
    assert _followed(b.clz(total)) == (32 - (300 * 256).bit_length(), 32 - (300).bit_length())
    assert _followed(b.reduce("sum", b.cast(argument((2, None), i8), i32), 1)) == (i32.minimum, i32.maximum)


def test_what_is_less_than_its_own_greatest() -> None:
    b, x, y = Builder(), argument((2, 300), i8), argument((2, 300), i8)
    most = b.cast(b.reduce("max", x, 1), i32)
    assert _followed(b.sub(b.cast(x, i32), most)) == (-255, 0)
    assert _followed(b.sub(b.cast(y, i32), most)) == (-255, 255)
    assert _followed(b.sub(b.cast(b.cast(argument((2, 3), i32), i8), i32), most)) == (-255, 255)
