"""quant-propagate: which parameters the ports of kernels get, and where a rescale stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.region_graphs import KERNELS, A, B, C, region, rescales, specs, text

from tflq.base.errors import OptionError, UnsupportedError
from tflq.dialects.regions import Region
from tflq.ir.module import Module
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify
from tflq.tools.opt import parse_pipeline
from tflq.tools.quantize.regions.lookup import is_fully_quantized, report


def module(*ops: str, results: str = "%r", arguments: str = "%a, %b") -> Module:
    return parse_module(text(ops, results, arguments))


def propagated(given: Module, target: Path) -> Module:
    verify(given)
    return parse_pipeline(f"quant-propagate{{target={target}}}").run(given).module


def regions(found: Module) -> list[Region]:
    return [op for op in found.main.ops if isinstance(op, Region)]


def test_one_scale_goes_forward_and_back(target: Path) -> None:
    chain = module(region("%0", "relu", "%a", "f32", "f32"), region("%r", "relu6", "%0", "f32", B))
    first, second = regions(propagated(chain, target))
    assert specs(first) == specs(second) == [B, B]
    assert first.origins == ["same_scale", "neighbour"]
    assert second.origins == ["same_scale", "annotation"]


def test_a_conflict_puts_a_rescale_on_the_edge_and_an_annotation_removes_it(target: Path) -> None:
    chain = module(region("%0", "relu", "%a", A, "f32"), region("%r", "relu6", "%0", "f32", B))
    found = propagated(chain, target)
    assert rescales(found) == [(A, B)]
    assert [specs(op) for op in regions(found)] == [[A, A], [B, B]]
    annotated = module(region("%0", "relu", "%a", A, "f32"), region("%r", "relu6", "%0", "f32", A))
    assert not rescales(propagated(annotated, target))


def test_the_only_output_is_followed_before_several_inputs(target: Path) -> None:
    found = propagated(module(region("%r", "maximum", "%a, %b", f"{A}, {B}", C)), target)
    assert specs(regions(found)[0]) == [C, C, C]
    assert [source for source, _ in rescales(found)] == [A, B]


def test_a_fixed_scale_holds_and_what_was_annotated_is_rescaled_to(target: Path) -> None:
    chain = module(region("%0", "logistic", "%a", A, B), region("%r", "tanh", "%0", "f32", A))
    found = propagated(chain, target)
    fixed = "!quant.uniform<i8:f32, 0.00390625:-128>"
    assert [specs(op) for op in regions(found)] == [[A, fixed], [B, A]]
    assert rescales(found) == [(fixed, B)]


def test_a_fixed_scale_comes_before_calibration_and_that_before_a_neighbour(target: Path) -> None:
    seen = "!quant.calibrated<f32<0.0:4.0>>"
    chain = module(
        region("%0", "tanh", "%a", A, B),
        region("%1", "tanh", "%0", seen, "f32"),
        region("%r", "logistic", "%1", "f32", seen),
    )
    found = propagated(chain, target)
    second, third = regions(found)[1:]
    assert specs(second)[0] == "!quant.uniform<i8:f32, 0.015686275:-128>"
    assert second.origins == ["calibration", "none"]
    assert third.origins == ["none", "fixed_scale"]
    assert len(rescales(found)) == 1


@pytest.mark.parametrize(
    ("seen", "kernel", "made"),
    [
        ("-1.0:3.0", "tanh", "!quant.uniform<i8:f32, 0.015686275:-64>"),
        ("1.0:3.0", "tanh", "!quant.uniform<i8:f32, 0.011764706:-128>"),
        ("-3.0:-1.0", "tanh", "!quant.uniform<i8:f32, 0.011764706:127>"),
    ],
)
def test_a_range_is_widened_to_0(seen: str, kernel: str, made: str, target: Path) -> None:
    found = propagated(module(region("%r", kernel, "%a", f"!quant.calibrated<f32<{seen}>>", "f32")), target)
    assert specs(regions(found)[0]) == [made, "f32"]


def test_a_symmetric_port_has_zero_point_0(target: Path) -> None:
    wide, seen = "!quant.any<i16:f32>", "!quant.calibrated<f32<-1.0:3.2767>>"
    found = propagated(module(region("%r", "maximum", "%a, %b", f"{wide}, {seen}", "f32")), target)
    assert set(specs(regions(found)[0])) == {"!quant.uniform<i16:f32, 1.0e-04>"}


def test_a_bias_has_the_product_of_the_scales(target: Path) -> None:
    op = region("%r", "fully_connected", "%a, %b, %c", f"{A}, {C}, f32", B)
    found = propagated(module(op, arguments="%a, %b, %c"), target)
    assert specs(regions(found)[0])[2] == "!quant.uniform<i32:f32, 0.125>"


@pytest.mark.parametrize(
    ("bias", "made"),
    [
        (1.0, ["!quant.uniform<i8:f32, 1.8626451e-09>", "!quant.uniform<i32:f32, 9.313226e-10>"]),
        (-0.1, ["!quant.uniform<i8:f32, 1.8626452e-10>", "!quant.uniform<i32:f32, 9.313226e-11>"]),
        (0.01, ["!quant.uniform<i8:f32, 1.0e-10>", "!quant.uniform<i32:f32, 5.0e-11>"]),
    ],
)
@pytest.mark.parametrize(("factors", "weights"), [("qi8 qi8:0", 1), ("qi8:0 qi8", 0)], ids=["behind", "before"])
def test_a_constant_bias_fits_its_storage(
    bias: float, made: list[str], factors: str, weights: int, target: Path
) -> None:
    target.write_text(KERNELS.replace("qi8 qi8:0 qi32", f"{factors} qi32"))
    constants = (
        '%w = "tfl.pseudo_const"() {value = dense<1.0e-8> : tensor<4xf32>} : () -> tensor<4xf32>',
        f'%c = "tfl.pseudo_const"() {{value = dense<{bias}> : tensor<4xf32>}} : () -> tensor<4xf32>',
    )
    seen = "!quant.calibrated<f32<-1.27e-08:1.27e-08>>"
    names, kinds = ("%a, %w, %c", f"{A}, {seen}, f32") if weights else ("%w, %a, %c", f"{seen}, {A}, f32")
    (found,) = regions(propagated(module(*constants, region("%r", "fully_connected", names, kinds, B)), target))
    assert [specs(found)[weights], specs(found)[2]] == made


def test_a_width_is_the_least(target: Path) -> None:
    found = propagated(module(region("%r", "maximum", "%a, %b", "!quant.any<i16:f32>, f32", "f32")), target)
    assert specs(regions(found)[0]) == ["!quant.any<i16:f32>", "f32", "f32"]
    symmetric = "!quant.uniform<i16:f32, 0.5>"
    found = propagated(module(region("%r", "maximum", "%a, %b", f"!quant.any<i8:f32>, {symmetric}", "f32")), target)
    assert specs(regions(found)[0]) == [symmetric] * 3


def test_a_wildcard_is_of_8_bits_unless_more_are_asked_for(target: Path) -> None:
    seen = "!quant.calibrated<f32<0.0:255.0>>"
    found = propagated(module(region("%r", "mul", "%a, %b", f"{seen}, f32", "f32")), target)
    assert specs(regions(found)[0]) == ["!quant.uniform<i8:f32, 1.0:-128>", "f32", "f32"]


def test_what_is_to_stay_stays(target: Path) -> None:
    given = module(region("%r", "maximum", "%a, %b", f"{A}, !quant.none<f32>", "f32"))
    before = print_module(given)
    assert print_module(propagated(given, target)) == before.replace(
        'kernel = "maximum"', 'kernel = "maximum", tflq.origins = ["annotation", "none", "none"]'
    )


def test_consumers_of_one_value_share_its_parameters(target: Path) -> None:
    ops = [
        region("%0", "tanh", "%a", A, "f32"),
        region("%1", "relu", "%0", "f32", "f32"),
        region("%r", "relu6", "%0", "f32", B),
    ]
    found = propagated(module(*ops, results="%1, %r"), target)
    assert [specs(op) for op in regions(found)] == [[A, B], [B, B], [B, B]]
    assert not rescales(found)


def test_it_changes_nothing_the_second_time(target: Path) -> None:
    chain = module(region("%0", "relu", "%a", A, "f32"), region("%r", "relu6", "%0", "f32", B))
    found = propagated(chain, target)
    printed = print_module(found)
    again = parse_pipeline(f"quant-propagate{{target={target}}}").run(parse_module(printed))
    assert not again.modified
    assert print_module(again.module) == printed


CALLS = """
func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> {{
  {inner}
  return %r : tensor<4xf32>
}}
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = quant.qcast %a : tensor<4xf32> to tensor<4x{kind}>
  %1 = quant.dcast %0 : tensor<4x{kind}> to tensor<4xf32>
  %2 = func.call @g(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = func.call @g(%2) : (tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}}
"""


def test_functions_are_inlined(target: Path) -> None:
    inner = region("%r", "relu", "%x", "f32", "f32")
    found = propagated(parse_module(CALLS.format(inner=inner, kind=A)), target)
    assert [f.name for f in found.functions] == ["f"]
    assert [specs(op) for op in regions(found)] == [[A, A], [A, A]]


def test_recursion_is_refused(target: Path) -> None:
    inner = region("%0", "relu", "%x", "f32", "f32") + "\n%r = func.call @g(%0) : (tensor<4xf32>) -> tensor<4xf32>"
    with pytest.raises(UnsupportedError, match="@g calls itself"):
        propagated(parse_module(CALLS.format(inner=inner, kind=A)), target)


def test_a_target_is_needed() -> None:
    with pytest.raises(OptionError, match="needs a target"):
        parse_pipeline("quant-propagate").run(module(region("%r", "relu", "%a", A, "f32")))


def test_what_a_model_lacks(target: Path) -> None:
    found = module(region("%0", "relu", "%a", A, "f32"), region("%r", "tanh", "%0", "f32", "f32"))
    assert any(row.origin not in ("none", "constant") for row in report(found))
    assert not is_fully_quantized(found)
    propagated(found, target)
    assert [(row.kernel, row.port, row.origin) for row in report(found)] == [
        ("relu", "input 0", "annotation"),
        ("relu", "output 0", "same_scale"),
        ("tanh", "input 0", "neighbour"),
        ("tanh", "output 0", "none"),
    ]
    assert not is_fully_quantized(found)
