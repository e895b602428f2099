"""Reductions of the `stablehlo` dialect: schedules, conversions, what depends on the order."""

import logging

import numpy as np
import pytest
from support.reductions import random_schedule, reduction

from tflq.analysis.evaluate.registry import Run, evaluate_function
from tflq.analysis.evaluate.stablehlo_reduction import BODY, INIT, left_to_right, order_dependence
from tflq.formats.sources import read_text

U8 = "!quant.uniform<u8:f32, 0.5:10>"
COARSE = "!quant.uniform<u8:f32, 2.5:5>"
WIDE = "!quant.uniform<i32:f32, 0.5>"
ALONG_1 = "dimensions = array<i64: 1>"
WINDOWS = "window_dimensions = array<i64: 1, 3>, padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>"


def evaluated(text: str, x: np.ndarray, init: int, run: Run | None = None) -> np.ndarray:
    function = read_text(text.encode(), "text").main
    given = dict(zip(function.inputs, [x, np.asarray(init, x.dtype)], strict=True))
    return evaluate_function(function, given, run)[function.outputs[0]]


def drawn(seed: int, shape: tuple[int, ...] = (4, 9)) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


@pytest.mark.parametrize("count", [0, 1, 2, 13])
def test_a_random_schedule_is_a_full_binary_tree_of_the_values_in_order(count: int) -> None:
    rng = np.random.default_rng(count)
    for _ in range(50):
        steps = random_schedule(rng)(count)
        assert [step for step in steps if step >= 0] == list(range(count))
        depth = 0
        for step in steps:
            depth += -1 if step == BODY else 1
            assert depth > 0
        assert depth == 1
        assert steps.count(BODY) == sum(step != BODY for step in steps) - 1
        assert count or INIT in steps


@pytest.mark.parametrize("op", ["reduce", "reduce_window"])
@pytest.mark.parametrize(("body", "init"), [("add", 10), ("maximum", 0), ("minimum", 255)])
def test_every_order_gives_the_same(op: str, body: str, init: int) -> None:
    attributes, made = (ALONG_1, (4,)) if op == "reduce" else (WINDOWS, (4, 9))
    text = reduction((4, 9), made, attributes, source=U8, body=body, accumulator=WIDE, target=COARSE, op=op)
    x = drawn(1)
    wanted = evaluated(text, x, init)
    rng = np.random.default_rng(2)
    for _ in range(40):
        got = evaluated(text, x, init, Run(schedule=random_schedule(rng)))
        np.testing.assert_array_equal(got, wanted)


def test_a_sum_is_rounded_once() -> None:
    text = reduction((4, 9), (4,), ALONG_1, source=U8, accumulator=WIDE, target=COARSE)
    x = drawn(3)
    real = (x.astype(int) - 10).sum(1) * 0.5
    np.testing.assert_array_equal(evaluated(text, x, 10), np.clip(np.rint(real / 2.5 + 5), 0, 255))


def test_products_are_taken_from_left_to_right_after_the_init_value() -> None:
    kind = "!quant.uniform<i8:f32, 0.25>"
    text = reduction((1, 5), (1,), ALONG_1, source=kind, body="multiply")
    x = np.array([[7, -5, 9, 11, -6]], np.int8)
    total = 4.0 * 0.25
    for value in x[0]:
        total = np.clip(np.rint(total * (float(value) * 0.25) / 0.25), -128, 127) * 0.25
    assert evaluated(text, x, 4)[0] == total / 0.25
    assert left_to_right(2) == [INIT, 0, BODY, 1, BODY]


@pytest.mark.parametrize("accumulator", ["", WIDE])
def test_without_values_the_result_is_the_init_value(accumulator: str) -> None:
    target = COARSE if accumulator else U8
    text = reduction((2, 0), (2,), ALONG_1, source=U8, accumulator=accumulator, target=target)
    wanted = 13 if accumulator else 50  # (50 - 10) * 0.5 = 20 = (13 - 5) * 2.5
    assert evaluated(text, np.zeros((2, 0), np.uint8), 50).tolist() == [wanted, wanted]


def test_a_body_of_ops_that_are_not_elementwise_runs_value_by_value() -> None:
    plain = "f32"
    ops = (
        '%k = "stablehlo.reshape"(%a) : (tensor<f32>) -> tensor<1xf32>\n'
        '%l = "stablehlo.reshape"(%k) : (tensor<1xf32>) -> tensor<f32>\n'
        '%c = "stablehlo.add"(%l, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>'
    )
    text = reduction((2, 3), (2,), ALONG_1, source=plain, ops=ops)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(evaluated(text, x, 0), x.sum(1))


CASES = {
    "wide": (reduction((4, 9), (4,), ALONG_1, source=U8, accumulator=WIDE, target=COARSE), None),
    "narrow": (reduction((4, 9), (4,), ALONG_1, source=U8), "partial sums can leave the bounds <0:255>"),
    "product": (reduction((4, 9), (4,), ALONG_1, source=U8, body="multiply"), "rounds and clamps each partial"),
    "greatest": (reduction((4, 9), (4,), ALONG_1, source=U8, body="maximum"), None),
    "floats": (reduction((4, 9), (4,), ALONG_1, source="f32"), "stablehlo.add of f32 is not associative"),
    "integers": (reduction((4, 9), (4,), ALONG_1, source="i32", body="multiply"), None),
}


@pytest.mark.parametrize("name", CASES)
def test_what_depends_on_the_order_is_known(name: str) -> None:
    text, reason = CASES[name]
    found = order_dependence(read_text(text.encode(), "text").main.ops[0], 9)  # type: ignore[arg-type]
    assert found is None if reason is None else reason in (found or "")


def test_what_depends_on_the_order_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tflq"):
        evaluated(CASES["narrow"][0], drawn(4), 10)
    assert "the result depends on the order" in caplog.text


def test_windows_are_padded_and_spread_with_the_init_value() -> None:
    attributes = (
        "window_dimensions = array<i64: 3>, base_dilations = array<i64: 2>, window_dilations = array<i64: 2>, "
        "padding = dense<[[1, -1]]> : tensor<1x2xi64>"
    )
    text = reduction((4,), (3,), attributes, source=U8, op="reduce_window", body="minimum")
    # 9 between the elements and before them: 9 1 9 2 9 7 9 (the last, 3, is cut off)
    assert evaluated(text, np.array([1, 2, 7, 3], np.uint8), 9).tolist() == [9, 1, 9]
