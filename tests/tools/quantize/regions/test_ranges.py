"""What is known of values: casts of a file, fake quantization, marked points and statistics, around ports."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from support.region_graphs import shown, specs

from tflq.dialects.regions import CoupledRef, Region, StatsRef
from tflq.dialects.tfl.casts import Dequantize, FakeQuant, Quantize
from tflq.formats.tflite.writer import write
from tflq.ir.module import Module
from tflq.ir.text.parser import parse_module
from tflq.ir.types import (
    AnyQuantizedType,
    CalibratedQuantizedType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    f32,
    i8,
)
from tflq.ir.verifier import verify
from tflq.targets.load import load_kernels
from tflq.tools.opt import named_passes, parse_pipeline
from tflq.tools.quantize.regions.lookup import Fallbacks, report
from tflq.tools.quantize.regions.ranges import Range, faked_type, other_sign, parameters

TARGET = """
[target]
name = "example"
[kernels]
conv_2d = [
    "qi8 qi8/axis0:0 qi32/axis0:0? -> qi8; multiplier_accumulator_scale",
    "qi8 qi8:0 qi32:0? -> qi8; multiplier_accumulator_scale",
]
tanh = "qi8 -> qi8"
add = "qi8 qi8 -> qi8"
"""
X, Y = "!quant.uniform<i8:f32, 0.5>", "!quant.uniform<i8:f32, 0.25:-128>"
OF_X = {"quant": X, "file": X, "unsigned": "!quant.uniform<u8:f32, 0.5:128>"}
CONV = """
func.func @f(%a: tensor<1x4x4x2xf32>) -> tensor<1x4x4x3xf32> {{
  %w = "tfl.pseudo_const"() {{value = dense<[[[[0.5, -1.0]]], [[[2.0, 0.25]]], [[[-4.0, 3.0]]]]> : tensor<3x1x1x2xf32>}}
      : () -> tensor<3x1x1x2xf32>
  %c = "tfl.pseudo_const"() {{value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>}} : () -> tensor<3xf32>
  {x}
  {w}
  %1 = "tfl.conv_2d"(%x, %v, %c) {{padding = "SAME", stride_h = 1 : i32, stride_w = 1 : i32,
      dilation_h_factor = 1 : i32, dilation_w_factor = 1 : i32, fused_activation_function = "NONE"}}
      : (tensor<1x4x4x2xf32>, tensor<3x1x1x2xf32>, tensor<3xf32>) -> tensor<1x4x4x3xf32>
  {y}
  return %y : tensor<1x4x4x3xf32>
}}
"""
SHAPES = {"a": "4", "x": "1x4x4x2", "v": "3x1x1x2", "y": "1x4x4x3"}
WEIGHTS = {
    "pair": "!quant.uniform<i8<-127:127>:f32:0, {0.007874016, 0.015748031, 0.031496063}>",
    "min": "[-1.0 : f64, -2.0 : f64, -4.0 : f64]",
    "max": "[1.0 : f64, 2.0 : f64, 4.0 : f64]",
}


def run(passes: str, text: str) -> Module:
    module = parse_module(text)
    verify(module)
    return parse_pipeline(passes, named_passes()).run(module).module


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "example.toml"
    path.write_text(TARGET)
    return path


def pair(given: str, result: str, kind: str, dialect: str) -> str:
    """A value, quantized and dequantized again."""
    real, stored = (f"tensor<{SHAPES[result]}x{element}>" for element in ("f32", kind))
    if dialect == "quant":
        return (
            f"%{result}q = quant.qcast %{given} : {real} to {stored}\n"
            f"  %{result} = quant.dcast %{result}q : {stored} to {real}"
        )
    return (
        f'%{result}q = "tfl.quantize"(%{given}) : ({real}) -> {stored}\n'
        f'  %{result} = "tfl.dequantize"(%{result}q) : ({stored}) -> {real}'
    )


def faked(given: str, result: str, attributes: str, name: str = "tfl.fake_quant") -> str:
    real = f"tensor<{SHAPES[result]}xf32>"
    return f'%{result} = "{name}"(%{given}) {{{attributes}}} : ({real}) -> {real}'


def per_axis(given: str, result: str) -> str:
    attributes = (
        f"min = {WEIGHTS['min']}, max = {WEIGHTS['max']}, axis = 0 : i64, num_bits = 8 : i64, narrow_range = true"
    )
    return faked(given, result, attributes, "quant.const_fake_quant_per_axis")


FORMS = {
    "casts": [pair("a", "x", X, "quant"), pair("w", "v", WEIGHTS["pair"], "quant"), pair("1", "y", Y, "quant")],
    "casts of a file": [pair("a", "x", X, "tfl"), pair("w", "v", WEIGHTS["pair"], "tfl"), pair("1", "y", Y, "tfl")],
    "unsigned casts of a file": [
        pair("a", "x", "!quant.uniform<u8:f32, 0.5:128>", "tfl"),
        pair("w", "v", WEIGHTS["pair"].replace("i8<-127:127>:f32:0, ", "u8<1:255>:f32:0, ").replace("}", ":128}")
             .replace(", 0", ":128, 0").replace("f32:0:128, {", "f32:0, {"), "tfl"),
        pair("1", "y", "!quant.uniform<u8:f32, 0.25>", "tfl"),
    ],
    "fake quantization of a file": [
        faked("a", "x", "min = -64.0 : f32, max = 63.5 : f32, num_bits = 8 : i32, narrow_range = false"),
        per_axis("w", "v"),
        faked("1", "y", "min = 0.0 : f32, max = 63.75 : f32, num_bits = 8 : i32, narrow_range = false"),
    ],
    "fake quantization": [
        faked("a", "x", "min = -64.0 : f32, max = 63.5 : f32, num_bits = 8 : i64", "quant.const_fake_quant"),
        per_axis("w", "v"),
        faked("1", "y", "min = 0.0 : f32, max = 63.75 : f32, num_bits = 8 : i64", "quant.const_fake_quant"),
    ],
}  # fmt: skip


def conv(form: str) -> str:
    x, w, y = FORMS[form]
    return CONV.format(x=x, w=w, y=y)


@pytest.mark.parametrize("form", FORMS)
def test_parameters_are_seen_in_each_form(form: str, target: Path) -> None:
    passes = f"kernel-fusion{{target={target}}},quant-propagate{{target={target}}}"
    found = run(passes, conv(form))
    (region,) = (op for op in found.main.ops if isinstance(op, Region))
    assert specs(region)[:2] == [X, WEIGHTS["pair"]]
    assert specs(region)[3] == Y
    made = run(f"{passes},quant-materialize{{target={target} casts=tfl}},canonicalize,dce", conv(form))
    assert [op.name for op in made.main.ops] == ["tfl.quantize", "tfl.conv_2d", "tfl.dequantize"]
    assert made.main.ops[1].operand(1).array.reshape(3, 2).tolist() == [[64, -127], [127, 16], [-127, 95]]
    assert made.main.ops[1].operand(2).array.tolist() == [254, 254, 191]


def test_the_file_is_the_same_for_each_form(target: Path) -> None:
    passes = f"kernel-fusion{{target={target}}},quant-propagate{{target={target}}},"
    passes += f"quant-materialize{{target={target} casts=tfl}},canonicalize,dce"
    files = {bytes(write(run(passes, conv(form)))) for form in FORMS}
    assert len(files) == 1


@pytest.mark.parametrize("form", FORMS)
def test_fusion_leaves_no_statement_behind(form: str, target: Path) -> None:
    found = run(f"kernel-fusion{{target={target}}}", conv(form))
    assert [op.name for op in found.main.ops] == ["quant.region"]


CHAIN = """
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {{
  %x = {mark}(%a) {{{key} = "1"}} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = "tfl.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = {mark}(%0) {{{key} = "{second}"}} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "quant.stats"(%1) {{layerStats = dense<[-1.0, 1.0]> : tensor<2xf32>}} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "tfl.tanh"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = {mark}(%3) {{{key} = "{third}"}} : (tensor<4xf32>) -> tensor<4xf32>
  %5 = "tfl.fake_quant"(%4) {{min = -1.0 : f32, max = 1.0 : f32, num_bits = 8 : i32}}
      : (tensor<4xf32>) -> tensor<4xf32>
  return %5 : tensor<4xf32>
}}
"""
MARKED = {
    "stats_ref": CHAIN.format(mark='"quant.stats_ref"', key="statsKey", second=2, third=3),
    "coupled_ref": CHAIN.format(mark='"quant.coupled_ref"', key="coupledKey", second=1, third=1),
}


@pytest.mark.parametrize("kind", MARKED)
def test_marked_points_are_seen_through_and_stay(kind: str, target: Path) -> None:
    annotated = MARKED[kind]
    if kind == "stats_ref":  # nothing else says what the argument is
        annotated = annotated.replace("(%a: ", "(%b: ").replace("{\n", "{\n  " + pair("b", "a", X, "quant") + "\n", 1)
    passes = f"kernel-fusion{{target={target}}},quant-propagate{{target={target}}}"
    found = run(passes, annotated)
    regions = [op for op in found.main.ops if isinstance(op, Region)]
    assert all("uniform" in spec for op in regions for spec in specs(op))
    assert specs(regions[0])[1] == specs(regions[1])[0]
    made = run(f"{passes},quant-materialize{{target={target} casts=tfl}},canonicalize,dce", annotated)
    points = [op for op in made.main.ops if isinstance(op, (StatsRef, CoupledRef))]
    assert len(points) == 3
    assert all(op.operand(0).type.quantized for op in points)
    assert sum(isinstance(op, (Quantize, Dequantize)) for op in made.main.ops) == 2
    assert not any(isinstance(op, FakeQuant) for op in made.main.ops)


CHAINED = """
func.func @f(%a: tensor<1x4x4x2xf32>) -> tensor<1x4x4x3xf32> {
  %w = "tfl.pseudo_const"() {value = dense<0.5> : tensor<3x1x1x2xf32>} : () -> tensor<3x1x1x2xf32>
  %c = "tfl.pseudo_const"() {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %none = "tfl.no_value"() {value} : () -> none
  XW
  %0 = "tfl.conv_2d"(%x, %v, %none) {padding = "SAME", stride_h = 1 : i32, stride_w = 1 : i32,
      dilation_h_factor = 1 : i32, dilation_w_factor = 1 : i32, fused_activation_function = "NONE"}
      : (tensor<1x4x4x2xf32>, tensor<3x1x1x2xf32>, none) -> tensor<1x4x4x3xf32>
  %s = "quant.stats"(%0) {layerStats = dense<[-1.0, 1.0]> : tensor<2xf32>}
      : (tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>
  %1 = "tfl.add"(%s, %c) {fused_activation_function = "NONE"}
      : (tensor<1x4x4x3xf32>, tensor<3xf32>) -> tensor<1x4x4x3xf32>
  Y
  return %y : tensor<1x4x4x3xf32>
}
"""


def test_statistics_inside_of_a_kernel_do_not_keep_its_ops_apart(target: Path) -> None:
    x, w, y = FORMS["casts"]
    text = CHAINED.replace("XW", f"{x}\n  {w}").replace("Y\n", f"{y}\n")
    passes = f"kernel-fusion{{target={target}}},quant-propagate{{target={target}}}"
    made = run(f"{passes},quant-materialize{{target={target} casts=tfl}},canonicalize,dce", text)
    assert [op.name for op in made.main.ops] == ["tfl.quantize", "tfl.conv_2d", "tfl.dequantize"]


@pytest.mark.parametrize(
    ("bits", "narrow", "signed", "kind"),
    [
        (8, "false", "false", "!quant.uniform<u8:f32, 0.007843138:128>"),
        (8, "false", "true", "!quant.uniform<i8:f32, 0.007843138>"),
        (8, "true", "true", "!quant.uniform<i8<-127:127>:f32, 0.007874016>"),
        (4, "false", "true", "!quant.uniform<i8<-8:7>:f32, 0.13333334>"),
        (16, "false", "true", "!quant.uniform<i16:f32, 3.0518044e-05>"),
        (9, "true", "false", "!quant.uniform<u16<1:511>:f32, 0.003921569:256>"),
    ],
)
def test_the_type_of_fake_quantization(bits: int, narrow: str, signed: str, kind: str) -> None:
    attributes = f"min = -1.0 : f32, max = 1.0 : f32, num_bits = {bits} : i64"
    attributes += f", narrow_range = {narrow}, is_signed = {signed}"
    op = faked("a", "x", attributes, "quant.const_fake_quant")
    kind_of = f"tensor<{SHAPES['x']}xf32>"
    (found,) = parse_module(
        f"func.func @f(%a: {kind_of}) -> {kind_of} {{\n  {op}\n  return %x : {kind_of}\n}}"
    ).main.ops
    made = faked_type(found)
    assert made is not None
    assert shown(made) == kind
    assert other_sign(other_sign(made)) == made


def test_a_range_has_a_least_width(target: Path) -> None:
    assert CalibratedQuantizedType.of(f32, 0.0, 0.0) == CalibratedQuantizedType.of(f32, -5e-7, 5e-7)
    assert CalibratedQuantizedType.of(f32, 3.0, 3.0) == CalibratedQuantizedType.of(f32, 0.0, 3.0)
    for low, high in ((0.0, 0.0), (0.0, 1e-45), (0.0, 1e-6), (-1e-30, 1e-30)):
        text = MARKED["stats_ref"].replace("[-1.0, 1.0]", f"[{low!r}, {high!r}]")
        found = run(f"kernel-fusion{{target={target}}},quant-propagate{{target={target}}}", text)
        kind = next(op for op in found.main.ops if isinstance(op, Region)).output_specs[0]
        assert kind.scale == np.float32(1e-6 / 255) or high == 1e-6  # type: ignore[union-attr]
        assert kind.scale > 3.9e-9  # type: ignore[union-attr]


# Ranges along an axis, and of constants.


def stats(given: str, result: str, low: float, high: float, axis: str = "") -> str:
    real = f"tensor<{SHAPES[result]}xf32>"
    layer = f"layerStats = dense<[{low}, {high}]> : tensor<2xf32>"
    return f'%{result} = "quant.stats"(%{given}) {{{layer}{axis}}} : ({real}) -> {real}'


ALONG = ", axisStats = dense<[[-0.25, 0.5], [-2.0, 0.0], [0.0, 8.0]]> : tensor<3x2xf32>, axis = 0 : i64"
OF_WEIGHTS = {
    "statistics of the axis": (stats("w", "v", -2.0, 8.0, ALONG), [0.5, 2.0, 8.0], "calibration"),
    "statistics of the whole": (stats("w", "v", -2.0, 8.0), [8.0] * 3, "calibration"),
    "statistics of another axis": (
        stats("w", "v", -2.0, 8.0, ALONG.replace("[[-0.25, 0.5], [-2.0, 0.0], [0.0, 8.0]]", "[[-2.0, 8.0], [0.0, 1.0]]")
              .replace("3x2", "2x2").replace("axis = 0", "axis = 3")),
        [8.0] * 3, "calibration",
    ),
    "none": ("", [1.0, 2.0, 4.0], "constant"),
    "a point": ('%v = "quant.stats_ref"(%w) {statsKey = "w"} : (tensor<3x1x1x2xf32>) -> tensor<3x1x1x2xf32>',
                [1.0, 2.0, 4.0], "constant"),
}  # fmt: skip


@pytest.mark.parametrize("stated", OF_WEIGHTS)
@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
def test_weights_get_parameters_along_the_axis_that_the_kernel_asks_for(stated: str, scheme: str) -> None:
    w, reach, origin = OF_WEIGHTS[stated]
    ends = {"x": stats("a", "x", -1.0, 1.0), "y": stats("1", "y", -8.0, 8.0)}
    text = CONV.format(w=w, **ends) if w else CONV.format(w=w, **ends).replace("%v", "%w")
    passes = f"kernel-fusion{{target={scheme}}},quant-propagate{{target={scheme}}}"
    (region,) = (op for op in run(passes, text).main.ops if isinstance(op, Region))
    kind = region.input_specs[1]
    assert isinstance(kind, UniformQuantizedPerAxisType)
    assert (kind.axis, kind.storage_min, kind.storage_max) == (0, -127, 127)
    np.testing.assert_array_equal(kind.scales, (np.array(reach) / 127).astype(np.float32))
    assert region.origins[1] == origin
    made = run(f"{passes},quant-materialize{{target={scheme} casts=tfl}},canonicalize,dce", text)
    kernels = [op.name for op in made.main.ops if op.name != "quant.stats_ref"]
    assert kernels == ["tfl.quantize", "tfl.conv_2d", "tfl.dequantize"]
    if stated != "a point":
        assert not [op for op in made.main.ops if op.name == "quant.stats"]
        assert made.main.ops[1].operand(1).is_constant


def test_parameters_of_channels_are_those_of_each_alone() -> None:
    generator = np.random.default_rng(3)
    low, high = -generator.uniform(0, 3, 40), generator.uniform(0, 3, 40)
    low[:4], high[:4] = [0.0, 0.0, -1e-34, -2.0], [0.0, 1e-45, 1e-34, 0.0]
    stored = AnyQuantizedType.of(i8, f32, -127, 127)
    for exact in (False, True):
        for zero_point in (None, 0):
            many = parameters(Range(f32, low, high, 2, exact), stored, zero_point)
            assert isinstance(many, UniformQuantizedPerAxisType)
            for place in range(len(low)):
                ends = np.asarray(low[place]), np.asarray(high[place])
                one = parameters(Range(f32, *ends), stored, zero_point)  # others of these weights are not small
                assert isinstance(one, UniformQuantizedType)
                assert (one.scale, one.zero_point) == (many.scales[place], many.zero_points[place])
                assert one.scale >= 2.0**-126


@pytest.mark.parametrize(
    ("reach", "wide"),
    [
        ([1e-34, 0.0, 1e-45, 5e-7], [1e-34, 5e-7, 2.0**-126 * 127, 5e-7]),
        ([1e-34, 0.0, 1e-45, 6e-7], [5e-7, 5e-7, 5e-7, 6e-7]),
    ],
    ids=["all are small", "one is not"],
)
def test_small_weights_keep_their_range_unless_a_channel_has_larger_ones(reach: list[float], wide: list[float]) -> None:
    stored, ends = AnyQuantizedType.of(i8, f32, -127, 127), np.array(reach)
    kind = parameters(Range(f32, -ends, ends, 0, exact=True), stored, 0)
    assert isinstance(kind, UniformQuantizedPerAxisType)
    np.testing.assert_array_equal(kind.scales, (np.array(wide) / 127).astype(np.float32))


def test_a_constant_does_not_decide_for_others(target: Path) -> None:
    text = """
    func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
      %c = "tfl.pseudo_const"() {value = dense<[0.0, 1.0, 0.5, 0.25]> : tensor<4xf32>} : () -> tensor<4xf32>
      %0 = "tfl.maximum"(%a, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %1 = "tfl.add"(%0, %c) {fused_activation_function = "NONE"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    """
    passes = "kernel-fusion{target=int8},quant-propagate{target=int8}"
    found = run(passes, text)
    maximum, add = (op for op in found.main.ops if isinstance(op, Region))
    assert specs(maximum) == ["f32"] * 3
    assert add.origins == ["none", "constant", "none"]
    assert all(row.origin in ("none", "constant") for row in report(found))
    made = run(f"{passes},quant-materialize{{target=int8 casts=tfl}},canonicalize,dce", text)
    assert not any(isinstance(op, (Quantize, Dequantize)) for op in made.main.ops)


# What a region lacks.


def test_a_fallback_is_in_the_report_and_warned_of(target: Path, caplog: pytest.LogCaptureFixture) -> None:
    asymmetric = "!quant.uniform<i8:f32:0, {0.1:1, 0.2:2, 0.3}>"
    parts = {"x": pair("a", "x", X, "quant"), "w": pair("w", "v", asymmetric, "quant"), "y": pair("1", "y", Y, "quant")}
    text = CONV.format(**parts)
    passes = f"kernel-fusion{{target={target}}},quant-propagate{{target={target}}}"
    module = run(passes, text)
    rows = report(module, load_kernels(target))
    assert [(row.port, row.lacks) for row in rows if row.lacks] == [
        ("input 1", f"it is {asymmetric}, and the kernel takes qi8/axis0:0"),
    ]
    with caplog.at_level(logging.WARNING, "tflq"):
        made = parse_pipeline(f"quant-materialize{{target={target}}}").run(module).module
    assert "kernel 'conv_2d' stays in floats: input 1: it is" in caplog.text
    noted = made.record.find(Fallbacks)
    assert noted is not None
    assert [row.port for row in noted.rows] == [row.port for row in rows if row.lacks]


def test_what_has_no_parameters_is_in_the_report(target: Path) -> None:
    text = CONV.format(x=stats("a", "x", -1.0, 1.0), w="", y="").replace("%v", "%w").replace("%y", "%1")
    module = run(f"kernel-fusion{{target={target}}},quant-propagate{{target={target}}}", text)
    rows = report(module, load_kernels(target))
    assert [(row.port, row.lacks) for row in rows if row.lacks] == [
        ("output 0", "it has no parameters, and the kernel takes qi8")
    ]


def test_a_kernel_that_is_not_listed_is_in_the_report(target: Path) -> None:
    text = MARKED["stats_ref"].replace("tfl.tanh", "tfl.logistic")
    module = run(f"kernel-fusion,quant-propagate{{target={target}}}", text)
    assert {row.lacks for row in report(module, load_kernels(target))} == {
        "no kernel 'logistic' is listed in the target"
    }


STORED = """
func.func @f(%a: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.5>>) -> tensor<1x4x4x3x!quant.uniform<i8:f32, 0.25:-128>> {
  %w = "tfl.pseudo_qconst"() {qtype = tensor<3x1x1x2x!quant.uniform<i8:f32:0, {0.5, 0.25, 0.125}>>,
      value = dense<[[[[1, -2]]], [[[3, 4]]], [[[-5, 6]]]]> : tensor<3x1x1x2xi8>}
      : () -> tensor<3x1x1x2x!quant.uniform<i8:f32:0, {0.5, 0.25, 0.125}>>
  %c = "tfl.pseudo_const"() {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %x = "tfl.dequantize"(%a) : (tensor<1x4x4x2x!quant.uniform<i8:f32, 0.5>>) -> tensor<1x4x4x2xf32>
  %v = "tfl.dequantize"(%w) : (tensor<3x1x1x2x!quant.uniform<i8:f32:0, {0.5, 0.25, 0.125}>>) -> tensor<3x1x1x2xf32>
  %0 = "tfl.conv_2d"(%x, %v, %c) {padding = "SAME", stride_h = 1 : i32, stride_w = 1 : i32,
      dilation_h_factor = 1 : i32, dilation_w_factor = 1 : i32, fused_activation_function = "NONE"}
      : (tensor<1x4x4x2xf32>, tensor<3x1x1x2xf32>, tensor<3xf32>) -> tensor<1x4x4x3xf32>
  %y = "tfl.quantize"(%0) : (tensor<1x4x4x3xf32>) -> tensor<1x4x4x3x!quant.uniform<i8:f32, 0.25:-128>>
  return %y : tensor<1x4x4x3x!quant.uniform<i8:f32, 0.25:-128>>
}
"""


@pytest.mark.parametrize("scheme", ["example", "int8"])
def test_stored_tensors_around_floats_make_one_kernel(scheme: str, target: Path) -> None:
    name = scheme if scheme == "int8" else str(target)
    passes = f"kernel-fusion{{target={name}}},quant-propagate{{target={name}}}"
    made = run(f"{passes},quant-materialize{{target={name} casts=tfl}},canonicalize,dce", STORED)
    (conv,) = made.main.ops
    assert conv.name == "tfl.conv_2d"
    assert conv.operand(1).array.reshape(-1).tolist() == [1, -2, 3, 4, -5, 6]
    assert conv.operand(2).array.tolist() == [4, 16, 48]
