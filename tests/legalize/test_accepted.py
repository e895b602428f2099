"""Types that the text form has and files do not: bounds of storage, other expressed types, unknown parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import interpret
from support.running import reference

import tflq
from tflq.conversion.convert import lower
from tflq.conversion.report import Report
from tflq.formats.backend import backend
from tflq.formats.options import Options
from tflq.formats.tflite.writer import write
from tflq.formats.tosa.rules import load_target as tosa_target
from tflq.ir.module import Module
from tflq.ir.text.parser import parse_module
from tflq.ir.types import ScalarType, f32
from tflq.ir.verifier import verify
from tflq.targets.load import load_target

ADD = 'fused_activation_function = "NONE", pot_scale_int16 = false, tflq.info = {version = 2}'
PER_LAYER = "!quant.uniform<i8{}:f32, 0.0625:3>"
PER_AXIS = "!quant.uniform<i8{}:f32:1, {{0.0625, 0.125:2, 0.25}}>"
WIDE = "!quant.uniform<i16{}:f32, 0.01>"


def two_ops(first: str, second: str, taken: str) -> str:
    """x + x, then its RELU, the sum returned, too."""
    x, y, z = (f"tensor<2x3x{t}>" for t in (taken, first, second))
    return f"""
func.func @main(%arg0: {x} {{tflq.name = "x"}}) -> ({y}, {z}) {{
  %0 = "tfl.add"(%arg0, %arg0) {{{ADD}, tflq.tensors = [{{name = "y"}}]}} : ({x}, {x}) -> {y}
  %1 = "tfl.relu"(%0) {{tflq.tensors = [{{name = "z"}}]}} : ({y}) -> {z}
  return %0, %1 : {y}, {z}
}}"""


def converted(text: str, **options: Any) -> tuple[Module, Report]:
    module = parse_module(text, "text")
    verify(module)
    return lower(module, Options(**options))


@pytest.mark.parametrize("pattern", [PER_LAYER, PER_AXIS, WIDE], ids=["per layer", "per axis", "i16"])
@pytest.mark.parametrize("target", ["integer", "kernels"])
@pytest.mark.parametrize("real", [False, True])
def test_results_keep_to_their_bounds(pattern: str, target: str, real: bool) -> None:
    """As the same model without bounds, clamped."""
    options = {"kernels": load_target(target), "semantics": "real" if real else "interpreter"}
    free = pattern.format("")
    bounded, report = converted(two_ops(pattern.format("<-20:50>"), pattern.format("<0:30>"), free), **options)
    plain, _ = converted(two_ops(free, free, free), **options)
    storage = plain.main.inputs[0].type.storage
    batches = [[np.random.default_rng(0).integers(-100, 100, (2, 3)).astype(storage.dtype)] for _ in range(3)]
    for (y, z), (whole, _) in zip(*(interpret(bytes(write(m)), batches) for m in (bounded, plain)), strict=True):
        np.testing.assert_array_equal(y, np.clip(whole, -20, 50))
        assert y.min() == -20
        zero = np.asarray([0, 2, 0] if pattern is PER_AXIS else 3 if pattern is PER_LAYER else 0)
        np.testing.assert_array_equal(z, np.clip(np.maximum(y, zero), 0, 30))
    assert report.warnings[:2] == [
        "output 'y' holds integers from -20 to 50, which a file cannot state; tell whoever reads it",
        "output 'z' holds integers from 0 to 30, which a file cannot state; tell whoever reads it",
    ]
    assert [v.type for v in bounded.main.outputs] == [v.type for v in plain.main.outputs]


def test_inputs_are_taken_to_keep_to_theirs() -> None:
    free, narrow = PER_LAYER.format(""), PER_LAYER.format("<-8:7>")
    _, report = converted(two_ops(free, free, narrow))
    assert report.warnings == [
        "input 'x' is taken to hold integers from -8 to 7, which a file cannot state; give it no others"
    ]


def test_whole_bounds_say_nothing() -> None:
    bounded, report = converted(two_ops(*[PER_LAYER.format("<-128:127>")] * 3))
    assert not report.warnings
    assert write(bounded) == write(converted(two_ops(*[PER_LAYER.format("")] * 3))[0])


def test_bounds_in_a_function_that_is_called() -> None:
    q, narrow = PER_LAYER.format(""), PER_LAYER.format("<-8:7>")
    branch = f"""
func.func @{{}}(%arg0: tensor<4x{q}>) -> tensor<4x{narrow}> {{{{
  %0 = "tfl.relu"(%arg0) : (tensor<4x{q}>) -> tensor<4x{narrow}>
  return %0 : tensor<4x{narrow}>
}}}}"""
    text = f"""
func.func @main(%arg0: tensor<i1> {{tflq.name = "c"}}, %arg1: tensor<4x{q}> {{tflq.name = "x"}}) -> tensor<4x{q}> {{
  %0 = "tfl.if"(%arg0, %arg1) {{then_subgraph_index = 1, else_subgraph_index = 2}} :
    (tensor<i1>, tensor<4x{q}>) -> tensor<4x{q}>
  return %0 : tensor<4x{q}>
}}"""
    module, _ = converted(text + branch.format("one") + branch.format("other"))
    (got,) = interpret(bytes(write(module)), [[np.asarray(True), np.asarray([-100, 0, 5, 100], np.int8)]])[0]
    assert got.tolist() == [3, 3, 5, 7]


def test_in_tosa() -> None:
    free = PER_LAYER.format("")
    module = parse_module(two_ops(PER_LAYER.format("<-20:50>"), free, free), "text")
    lowered, _ = lower(module, Options(backend("mlir"), target=tosa_target(None)))
    y, _ = reference(lowered, [np.asarray([[-128, -40, -5], [0, 9, 127]], np.int8)])
    plain, _ = converted(two_ops(free, free, free))
    whole, _ = interpret(bytes(write(plain)), [[np.asarray([[-128, -40, -5], [0, 9, 127]], np.int8)]])[0]
    np.testing.assert_array_equal(y, np.clip(whole, -20, 50))


@pytest.mark.parametrize(
    ("element", "why"),
    [
        ("!quant.any<i8:f32>", r"its type is !quant\.any"),
        ("!quant.uniform<i8:f64, 0.1>", "it expresses f64"),
        ("!quant.uniform<i8:f64:1, {0.1, 0.2, 0.3}>", "it expresses f64"),
        ("!quant.uniform<i8:bf16, 0.1>", "it expresses bf16"),
        ("!quant.uniform<i8:f16, 0.1>", "it expresses f16"),
    ],
)
def test_refused(element: str, why: str) -> None:
    """By conversion, and by what writes a file."""
    text = two_ops(element, element, element)
    with pytest.raises(tflq.UnsupportedError, match=rf"3 tensor\(s\) have types .*\n.*subgraph 0, tensor 'x': {why}"):
        converted(text)
    with pytest.raises(tflq.VerificationError, match=rf"tensor '[xyz]': {why}.*; state"):
        tflq.write(parse_module(text, "text"))


def test_bounds_have_no_place_in_a_file() -> None:
    narrow = PER_LAYER.format("<-8:7>")
    with pytest.raises(
        tflq.VerificationError, match=r"tensor '[yz]': a TFLite file has no place for the bounds <-8:7>"
    ):
        tflq.write(parse_module(two_ops(narrow, narrow, PER_LAYER.format("")), "text"))
    whole = PER_LAYER.format("<-128:127>")
    assert tflq.write(parse_module(two_ops(whole, whole, whole), "text"))


CONSTANT = """
func.func @main(%arg0: tensor<2x{0}> {{tflq.name = "x"}}) -> tensor<2x{0}> {{
  %cst = "tfl.pseudo_qconst"() {{qtype = tensor<2x{1}>, value = dense<[{2}]> : tensor<2xi8>}} : () -> tensor<2x{1}>
  %0 = "tfl.add"(%arg0, %cst) {{{3}}} : (tensor<2x{0}>, tensor<2x{1}>) -> tensor<2x{0}>
  return %0 : tensor<2x{0}>
}}"""


@pytest.mark.parametrize(("numbers", "fits"), [("-8, 7", True), ("-9, 7", False), ("0, 8", False)])
def test_constants_are_within_their_bounds(numbers: str, fits: bool) -> None:
    text = CONSTANT.format(PER_LAYER.format(""), PER_LAYER.format("<-8:7>"), numbers, ADD)
    if fits:
        converted(text)
        return
    outside = numbers.split(", ")[0 if numbers.startswith("-9") else 1]
    with pytest.raises(tflq.VerificationError, match=rf"has the element {outside}, outside its bounds <-8:7>"):
        verify(parse_module(text, "text"))
    with pytest.raises(tflq.UnsupportedError, match=rf"has the element {outside}, outside its bounds <-8:7>"):
        lower(parse_module(text, "text"), Options())


def test_statistics_stay_beside_floats() -> None:
    """A calibrated type is written as min and max and read again; a conversion leaves them where they are."""
    element = "!quant.calibrated<f32<-0.998:1.2321>>"
    text = two_ops(element, element, element)
    module = parse_module(text, "text")
    data = bytes(tflq.write(module))
    again = tflq.read(data)
    assert [v.type for v in again.main.values()] == [v.type for v in module.main.values()]
    assert tflq.write(again) == data
    conversion = tflq.convert(data)
    for value in tflq.read(conversion.data).main.values():
        assert value.type.element == module.main.inputs[0].type.element
    assert all(isinstance(v.type.element, ScalarType) for v in conversion.module.main.values())
    assert conversion.module.main.inputs[0].type.element == f32
