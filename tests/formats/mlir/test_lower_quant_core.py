"""lower-quant-ops: the specification's arithmetic in each of its cases, and each rounding that a cast can ask for."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflq.analysis.evaluate.registry import evaluate_function
from tflq.base.errors import OptionError, UnsupportedError
from tflq.dialects.quant import verify_casts
from tflq.ir.facts import walk
from tflq.ir.module import Function, Module, difference
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify
from tflq.tools.opt import parse_pipeline

ROUNDINGS = {
    "half_even": lambda x: round(x),
    "half_away": lambda x: floor(x + Fraction(1, 2)) if x >= 0 else -floor(-x + Fraction(1, 2)),
    "half_up": lambda x: floor(x + Fraction(1, 2)),
    "toward_zero": lambda x: floor(x) if x >= 0 else -floor(-x),
}


def run(function: Function, arguments: list[np.ndarray]) -> list[np.ndarray]:
    env = evaluate_function(function, dict(zip(function.inputs, arguments, strict=True)))
    return [env[value] for value in function.outputs]


def text(op: str, source: str, target: str, attributes: str = "") -> str:
    body = f"%1 = {op} %0 {attributes}: {source} to {target}\nreturn %1 : {target}"
    return f"func.func @f(%0: {source}) -> {target} {{\n{body}\n}}"


def lowered(source: str, options: str = "") -> Module:
    module = parse_module(source)
    assert parse_pipeline(f"lower-quant-ops{options}").run(module).modified
    verify(module)
    verify_casts(module)
    assert not {op.name for op in walk(module.main.ops)} & {"quant.qcast", "quant.dcast"}
    assert difference(module, parse_module(print_module(module))) is None
    return module


SHAPES = ["tensor<4x2x5x{}>", "tensor<?x2x?x{}>", "tensor<*x{}>"]
TYPES = [
    "!quant.uniform<i8<-8:7>:f32, 2.0:1>",
    "!quant.uniform<u8<3:250>:f32, 0.1:128>",
    "!quant.uniform<i16:f32:1, {0.02, 0.03:5}>",
    "!quant.uniform<u8:f32:2, {1.0:200, 2.0, 3.0, 4.0, 5.0:5}>",
    "!quant.uniform<i8:f32:{0:2, 1:1}, {{{2.0:1}, {3.0:2}}, {{4.0:3}, {5.0:4}}}>",
]


def parameters(element: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scales and zero points broadcast to 4x2x5, by the definition of the type."""
    scale, zero = np.empty((4, 2, 5), np.float32), np.empty((4, 2, 5), np.int64)
    for place in np.ndindex(4, 2, 5):
        if hasattr(element, "axes"):
            sizes = dict(zip(element.axes, element.block_sizes, strict=True))
            at = tuple(i // sizes[a] if a in sizes else 0 for a, i in enumerate(place))
            scale[place], zero[place] = element.scales[at], element.zero_points[at]
        elif hasattr(element, "axis"):
            at = (place[element.axis],)
            scale[place], zero[place] = element.scales[at], element.zero_points[at]
        else:
            scale[place], zero[place] = element.scale, element.zero_point
    return scale, zero


@pytest.mark.parametrize("quantized", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rounding", ["", *ROUNDINGS])
def test_every_case_computes_its_definition(shape: str, quantized: str, rounding: str) -> None:
    if "{{{" in quantized and shape == "tensor<*x{}>":
        return  # blocks need a rank
    options = f"{{rounding={rounding}}}" if rounding else ""
    plain, full = shape.format("f32"), shape.replace("{}", quantized)
    quantize = lowered(text("quant.qcast", plain, full), options)
    dequantize = lowered(text("quant.dcast", full, plain))
    element = quantize.main.outputs[0].type.element
    scale, zero = parameters(element)
    low, high = element.storage_min, element.storage_max  # type: ignore[union-attr]
    narrow = element.storage  # type: ignore[union-attr]
    rng = np.random.default_rng(0)
    reach = np.minimum(narrow.maximum - zero, zero - narrow.minimum)
    x = (rng.uniform(-1, 1, (4, 2, 5)) * (reach - 1) * scale).astype(np.float32)
    if rounding:
        x.flat[:4] *= 1e6
        wanted = np.array([ROUNDINGS[rounding](Fraction(float(q))) for q in (x / scale).flat]).reshape(x.shape) + zero
    else:
        wanted = np.trunc(x / scale + zero.astype(np.float32)).astype(np.int64)
    wanted = np.clip(wanted, low, high)
    (stored,) = run(quantize.main, [x])
    unsigned = stored.astype(np.int64) % (1 << narrow.bits)
    assert np.array_equal(stored if narrow.signed else unsigned, wanted)
    (real,) = run(dequantize.main, [stored])
    assert np.array_equal(real, (wanted.astype(np.float32) - zero.astype(np.float32)) * scale)


@given(st.floats(-1000, 1000, width=32), st.sampled_from(sorted(ROUNDINGS)), st.booleans())
def test_roundings_of_quotient_and_sum(value: float, rounding: str, of_sum: bool) -> None:
    attribute = f'{{{"sum_" if of_sum else ""}rounding = "{rounding}"}} '
    module = lowered(text("quant.qcast", "f32", "!quant.uniform<i8:f32, 2.0:3>", attribute))
    (stored,) = run(module.main, [np.asarray(value, np.float32)])
    quotient = np.float32(value) / np.float32(2)
    if of_sum:
        wanted = ROUNDINGS[rounding](Fraction(float(quotient + np.float32(3))))
    else:
        wanted = ROUNDINGS[rounding](Fraction(float(quotient))) + 3
    assert stored == max(-128, min(127, wanted))


def test_half_up_is_exact_below_a_half() -> None:
    module = lowered(text("quant.qcast", "f32", "!quant.uniform<i8:f32, 1.0>"), "{rounding=half_up}")
    for value in (0.49999997, -0.50000006, -0.5, 0.5, 8388609.0, -1e-30):
        (stored,) = run(module.main, [np.asarray(value, np.float32)])
        assert stored == min(127, floor(Fraction(float(np.float32(value))) + Fraction(1, 2)))


def test_a_cast_inside_of_an_op_is_lowered() -> None:
    kind = "!quant.uniform<i8:f32, 1.0>"
    inside = f"%1 = quant.qcast %a : f32 to {kind}\n%2 = quant.dcast %1 : {kind} to f32"
    body = f'"my.op"() ({{\n^bb0(%a: f32):\n{inside}\n"my.end"(%2) : (f32) -> ()\n}}) : () -> ()'
    module = lowered(f"func.func @f() {{\n{body}\nreturn\n}}")
    assert "arith.divf" in print_module(module)


def test_what_has_no_lowering_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="expressed type f8E5M2"):
        lowered(text("quant.qcast", "tensor<2xf8E5M2>", "tensor<2x!quant.uniform<i8:f8E5M2, 1.0>>"))
    with pytest.raises(OptionError, match="'up' is not a rounding"):
        lowered(text("quant.qcast", "f32", "!quant.uniform<i8:f32, 1.0>", '{rounding = "up"} '))


@pytest.mark.parametrize(
    ("attributes", "wanted"),
    [
        ("", [3, 3, -128, 127, 4, 3]),
        ('{rounding = "half_even"} ', [3, 3, -128, 127, 4, 3]),
        ('{rounding = "half_away"} ', [2, 2, -128, 127, 4, 3]),
        ('{rounding = "half_up"} ', [3, 3, -128, 127, 4, 3]),
        ('{rounding = "toward_zero"} ', [3, 3, -128, 127, 3, 3]),
        ('{sum_rounding = "half_even"} ', [2, 2, -128, 127, 4, 3]),
        ('{sum_rounding = "half_away"} ', [3, 3, -128, 127, 4, 3]),
    ],
)
def test_fold_rounds_as_said_and_by_default_half_to_even(attributes: str, wanted: list[int]) -> None:
    kind = "tensor<6x!quant.uniform<i8:f32, 2.0:3>>"
    constant = "arith.constant dense<[-1.0, -1.0, -400.0, 400.0, 1.2, 0.0]> : tensor<6xf32>"
    body = f"%0 = {constant}\n%1 = quant.qcast %0 {attributes}: tensor<6xf32> to {kind}\nreturn %1 : {kind}"
    module = parse_module(f"func.func @f() -> {kind} {{\n{body}\n}}")
    parse_pipeline("fold").run(module)
    assert module.main.outputs[0].array.tolist() == wanted
