"""stablehlo.reduce and reduce_window of text in TFLite and TOSA, against the evaluator."""

import numpy as np
import pytest
from support.harness import interpret
from support.reductions import reduction
from support.running import reference

from tflq import convert
from tflq.analysis.evaluate.registry import evaluate_function
from tflq.base.errors import UnsupportedError
from tflq.formats.sources import read_any_form

WIDE = "!quant.uniform<i32:f32, 0.5>"
U8 = "!quant.uniform<u8:f32, 0.5:10>"
U8_COARSE = "!quant.uniform<u8:f32, 2.5:5>"
CASES = {
    "sum": reduction((3, 7), (3,), "dimensions = array<i64: 1>", source=U8, accumulator=WIDE, target=U8_COARSE),
    "ties": reduction(
        (3, 7), (3,), "dimensions = array<i64: 1>", source=U8, accumulator=WIDE, target="!quant.uniform<u8:f32, 1.0:7>"
    ),
    "another_scale": reduction(
        (2, 3, 4),
        (3,),
        "dimensions = array<i64: 0, 2>",
        source="!quant.uniform<i8:f32, 0.37:-3>",
        accumulator="!quant.uniform<i32:f32, 0.01:9>",
        target="!quant.uniform<i8:f32, 1.7:4>",
    ),
    "many": reduction(
        (2, 4000),
        (2,),
        "dimensions = array<i64: 1>",
        source=U8,
        accumulator=WIDE,
        target="!quant.uniform<u8:f32, 600.0>",
    ),
    "greatest": reduction((3, 7), (7,), "dimensions = array<i64: 0>", source=U8, body="maximum"),
    "least_i16": reduction(
        (3, 7), (7,), "dimensions = array<i64: 0>", source="!quant.uniform<i16:f32, 0.25>", body="minimum"
    ),
    "empty": reduction((3, 0), (3,), "dimensions = array<i64: 1>", source=U8, accumulator=WIDE, target=U8_COARSE),
    "windows": reduction(
        (5, 6),
        (3, 5),
        "window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 2, 1>, "
        "padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>",
        op="reduce_window",
        source=U8,
        accumulator=WIDE,
        target="!quant.uniform<u8:f32, 1.5:3>",
    ),
    "dilated_windows": reduction(
        (6,),
        (5,),
        "window_dimensions = array<i64: 3>, window_dilations = array<i64: 3>, base_dilations = array<i64: 2>, "
        "padding = dense<[[-1, 1]]> : tensor<1x2xi64>",
        op="reduce_window",
        source=U8,
        body="maximum",
    ),
}


def _inputs(text: str, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    values = read_any_form(text.encode()).main.inputs
    made = []
    for value in values:
        limits = np.iinfo(value.type.storage.dtype)
        made.append(rng.integers(limits.min, limits.max + 1, [d or 0 for d in value.type.shape or ()], limits.dtype))
    return made


def _evaluated(text: str, inputs: list[np.ndarray]) -> np.ndarray:
    function = read_any_form(text.encode()).main
    env = evaluate_function(function, dict(zip(function.inputs, inputs, strict=True)))
    return env[function.outputs[0]]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_tflite_equals_the_evaluator(name: str) -> None:
    text = CASES[name]
    data = convert(text.encode()).data
    for seed in range(3):
        inputs = _inputs(text, seed)
        np.testing.assert_array_equal(interpret(data, [inputs])[0][0], _evaluated(text, inputs))


@pytest.mark.parametrize("name", [name for name in CASES if name != "empty"])
def test_tosa_equals_the_evaluator(name: str) -> None:
    text = CASES[name]
    module = convert(text.encode(), format="tosa").module
    inputs = _inputs(text, 3)
    np.testing.assert_array_equal(reference(module, inputs)[0], _evaluated(text, inputs))


REFUSED = {
    "order": (reduction((3, 7), (3,), "dimensions = array<i64: 1>", source=U8), "partial sums can leave the bounds"),
    "body": (
        reduction((3, 7), (3,), "dimensions = array<i64: 1>", source=U8, body="multiply"),
        "only a body of one stablehlo.add, maximum or minimum",
    ),
    "open": (
        reduction((3, 7), (3,), "dimensions = array<i64: 1>", source=U8, accumulator=WIDE, target=U8).replace(
            "3x7x", "3x?x"
        ),
        "the sizes of the dimensions that are reduced are not known",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_why(name: str) -> None:
    text, reason = REFUSED[name]
    with pytest.raises(UnsupportedError, match=reason):
        convert(text.encode())
