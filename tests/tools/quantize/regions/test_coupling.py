"""Points of one key get one type; what cannot is an error that names two of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.region_graphs import A, B, C, region, specs, text

from tflq.base.errors import UnsupportedError
from tflq.dialects.regions import CoupledRef, Region
from tflq.ir.facts import walk
from tflq.ir.module import Module
from tflq.ir.text.parser import parse_module
from tflq.ir.types import UniformQuantizedType
from tflq.ir.verifier import verify
from tflq.tools.opt import parse_pipeline

NEAR, WIDE = "!quant.calibrated<f32<-1.0:1.0>>", "!quant.calibrated<f32<0.0:3.0>>"
T = "tensor<4xf32>"


def point(result: str, value: str, key: str = "state") -> str:
    return f'{result} = "quant.coupled_ref"({value}) {{coupledKey = "{key}"}} : ({T}) -> {T}'


def pair(left: str, right: str, *, kernel: str = "tanh", key: str = "state") -> Module:
    """Two kernels without a common value, whose results are coupled; `left` and `right`: their specs."""
    ops = [
        region("%0", "tanh", "%a", C, left),
        region("%1", kernel, "%b", C, right),
        point("%2", "%0"),
        point("%3", "%1", key),
    ]
    return parse_module(text(ops, "%2, %3"))


def propagated(module: Module, target: Path) -> list[Region]:
    verify(module)
    result = parse_pipeline(f"quant-propagate{{target={target}}}").run(module).module
    verify(result)
    return [op for function in result.functions for op in function.ops if isinstance(op, Region)]


@pytest.mark.parametrize(("left", "right"), [(A, "f32"), ("f32", A), (A, NEAR), (A, A)])
def test_parameters_of_one_point_hold_for_all(target: Path, left: str, right: str) -> None:
    assert [specs(op)[1] for op in propagated(pair(left, right), target)] == [A, A]


def test_ranges_of_coupled_points_join(target: Path) -> None:
    first, second = propagated(pair(NEAR, WIDE), target)
    assert specs(first)[1] == specs(second)[1]
    (kind,) = first.output_specs
    assert isinstance(kind, UniformQuantizedType)
    assert kind.scale == np.float32(4 / 255)
    assert first.origins[1] == "calibration"


def test_the_origin_says_that_it_is_coupled(target: Path) -> None:
    _, second = propagated(pair(A, "f32"), target)
    assert second.origins == ["annotation", "coupled"]


def test_points_of_other_keys_are_apart(target: Path) -> None:
    _, second = propagated(pair(A, "f32", key="other"), target)
    assert specs(second)[1] == "f32"


def test_what_a_kernel_fixes_holds_for_all(target: Path) -> None:
    first, second = propagated(pair("f32", "f32", kernel="softmax"), target)
    assert specs(first)[1] == specs(second)[1] == "!quant.uniform<i8:f32, 0.00390625:-128>"


@pytest.mark.parametrize(("right", "kernel"), [(B, "tanh"), ("f32", "softmax")])
def test_a_conflict_names_both_points(target: Path, right: str, kernel: str) -> None:
    with pytest.raises(UnsupportedError, match="coupled points") as caught:
        propagated(pair(A, right, kernel=kernel), target)
    (reason,) = caught.value.reasons
    assert reason.what.startswith("the points of 'state' must have one type: ")
    assert A in reason.what
    assert reason.value == "state"


def test_points_of_a_value_with_two_keys_join_these(target: Path) -> None:
    ops = [
        region("%0", "tanh", "%a", C, A),
        region("%1", "tanh", "%b", C, "f32"),
        region("%2", "tanh", "%b", C, "f32"),
        *(point("%3", "%0", "x"), point("%4", "%1", "x"), point("%5", "%4", "y"), point("%6", "%2", "y")),
    ]
    found = propagated(parse_module(text(ops, "%3, %5, %6")), target)
    assert [specs(op)[1] for op in found] == [A, A, A]


def test_consumers_of_a_point_take_the_type_of_its_value(target: Path) -> None:
    ops = [region("%0", "tanh", "%a", C, A), point("%1", "%0"), region("%r", "relu", "%1", "f32", "f32")]
    assert specs(propagated(parse_module(text(ops)), target)[1]) == [A, A]


def test_a_quantized_value_without_a_kernel_gives_its_type(target: Path) -> None:
    stored = f"tensor<4x{A}>"
    module = parse_module(f"""
func.func @f(%a: {T}, %q: {stored}) -> ({T}, {stored}) {{
  {region("%0", "tanh", "%a", C, "f32")}
  {point("%1", "%0")}
  %2 = "quant.coupled_ref"(%q) {{coupledKey = "state"}} : ({stored}) -> {stored}
  return %1, %2 : {T}, {stored}
}}""")
    assert specs(propagated(module, target)[0])[1] == A


def test_points_may_be_in_several_functions(target: Path) -> None:
    first = text([region("%0", "tanh", "%a", C, A), point("%r", "%0")], arguments="%a")
    second = text([region("%0", "tanh", "%a", C, "f32"), point("%r", "%0")], arguments="%a").replace("@f", "@g")
    assert [specs(op)[1] for op in propagated(parse_module(f"{first}\n{second}"), target)] == [A, A]


PASSES = [
    ["canonicalize", "cse", "dce", "fold"],
    ["kernel-fusion{target=TARGET}", "quant-propagate{target=TARGET}", "inline-regions", "canonicalize", "cse", "dce"],
    ["kernel-fusion{target=TARGET}", "quant-propagate{target=TARGET}", "quant-materialize{target=TARGET}", "dce"],
]


@pytest.mark.parametrize("passes", PASSES, ids=["simplify", "inline", "materialize"])
def test_no_pass_deletes_or_merges_points(target: Path, passes: list[str]) -> None:
    module = parse_module(f"""
func.func @f(%a: {T}) -> {T} {{
  {point("%0", "%a", "x")}
  {point("%1", "%a", "x")}
  %2 = "quant.stats_ref"(%a) {{statsKey = "k"}} : ({T}) -> {T}
  %3 = "tfl.tanh"(%0) : ({T}) -> {T}
  {point("%4", "%3", "y")}
  %5 = "tfl.tanh"(%4) : ({T}) -> {T}
  return %5 : {T}
}}""")
    result = parse_pipeline(",".join(passes).replace("TARGET", str(target))).run(module).module
    ops = [op for op in walk(result.main.ops) if op.name in ("quant.coupled_ref", "quant.stats_ref")]
    assert sum(isinstance(op, CoupledRef) for op in ops) == 3
    assert len(ops) == 4
