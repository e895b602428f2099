"""Ops with regions: what is inside of them is text and IR, verified, copied by no pass that does not know it."""

from __future__ import annotations

import pytest

from tflq.base.errors import ParseError, VerificationError
from tflq.ir.module import Module, difference
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify
from tflq.tools.opt import parse_pipeline

GENERIC = """
#map = affine_map<(d0) -> (d0)>
func.func @f(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
  %0 = tensor.empty() : tensor<3xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<3xf32>) outs(%0 : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %two = arith.constant 2.0 : f32
    %2 = arith.mulf %in, %two : f32
    linalg.yield %2 : f32
  } -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
"""
NESTED = """
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %c = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = "my.outer"(%x) ({
    %1 = "my.inner"(%c) ({
      "my.end"() : () -> ()
    }, {
    ^first(%a: tensor<f32>):
      %2 = "stablehlo.add"(%a, %c) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "my.end"(%2) : (tensor<f32>) -> ()
    ^second:
      "my.end"(%x) : (tensor<f32>) -> ()
    }) {k = 1 : i32} : (tensor<f32>) -> tensor<f32>
    "my.end"(%1) : (tensor<f32>) -> ()
  }) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
"""


def back(text: str) -> Module:
    """The module of a text, which is that of what it is printed as."""
    module = parse_module(text)
    verify(module)
    printed = print_module(module)
    again = parse_module(printed)
    assert difference(module, again) is None
    assert print_module(again) == printed
    return module


@pytest.mark.parametrize("text", [GENERIC, NESTED])
def test_regions_are_read_back(text: str) -> None:
    back(text)


def test_a_constant_is_printed_where_its_uses_are() -> None:
    lines = print_module(back(GENERIC)).splitlines()
    at = next(i for i, line in enumerate(lines) if "arith.constant 2.0 : f32" in line)
    assert "^bb0" in lines[at - 1]
    outside = print_module(back(NESTED)).splitlines()
    at = next(i for i, line in enumerate(outside) if "constant" in line)
    assert "my.inner" in outside[at + 1]  # two regions use it, so it stands before the op that holds both


def test_a_region_of_the_seed_says_its_arguments_by_name() -> None:
    body = '%1 = "tfl.abs"({0}) : (tensor<2xf32>) -> tensor<2xf32>\nquant.return %1 : tensor<2xf32>'
    tail = '{input_specs = [f32], output_specs = [f32], kernel = "abs"} : (tensor<2xf32>) -> tensor<2xf32>'
    head = "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
    named = f"{head}%0 = quant.region (%x) {{\n{body.replace('{0}', '%x')}\n}} {tail}\nreturn %0 : tensor<2xf32>\n}}"
    block = f"({{\n^bb0(%a: tensor<2xf32>):\n{body.replace('{0}', '%a')}\n}})"
    generic = f'{head}%0 = "quant.region"(%x) {block} {tail}\nreturn %0 : tensor<2xf32>\n}}'
    assert print_module(back(named)) == print_module(back(generic))


WRONG = [
    (GENERIC.replace("linalg.yield %2", "linalg.yield %y2"), "%y2 is not defined"),
    (GENERIC.replace("%in: f32", "%x: f32"), "%x is defined a second time"),
    (GENERIC.replace("return %1 :", "return %2 :"), "%2 is not defined"),
    (GENERIC.replace("-> (d0)>", "-> (d0)"), "a bracket is open"),
    (GENERIC.replace("} -> tensor<3xf32>", "}"), "1 results, but 0 types"),
]


@pytest.mark.parametrize(("text", "reason"), WRONG)
def test_a_wrong_region_is_shown(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse_module(text)


def test_what_is_inside_is_verified() -> None:
    inner = "%2 = quant.dcast %in : f32 to f32"
    module = parse_module(GENERIC.replace("%2 = arith.mulf %in, %two : f32", inner))
    with pytest.raises(VerificationError, match=r"'linalg.generic': 'quant.dcast' inside of it: the operand must be"):
        verify(module)
    block = parse_module(NESTED.replace("^first(%a: tensor<f32>):", "^first(%a: tensor<f32>):", 1))
    verify(block)
    inside = block.main.ops[0].regions[0].block.ops[0].regions[1].blocks[0].ops[0]
    block.main.outputs = [inside.result]
    with pytest.raises(VerificationError, match="output 0"):
        verify(block)


def test_what_is_used_inside_is_not_dead_and_bodies_are_not_merged() -> None:
    twice = GENERIC.replace("  return %1", "  %3 = arith.addf %1, %1 : tensor<3xf32>\n  return %3").replace(
        "%0 = tensor.empty()", "%s = arith.negf %y : tensor<3xf32>\n  %0 = tensor.empty()"
    )
    used = twice.replace("%2 = arith.mulf %in, %two : f32", '%2 = "my.pick"(%in, %s) : (f32, tensor<3xf32>) -> f32')
    module = parse_module(used)
    parse_pipeline("dce").run(module)
    assert module.main.ops[0].name == "arith.negf"
    unused = parse_module(twice)
    parse_pipeline("dce").run(unused)
    assert "arith.negf" not in [op.name for op in unused.main.ops]
    two = GENERIC.replace(
        "  return",
        GENERIC[GENERIC.index("  %1 =") : GENERIC.index("  return")]
        .replace("%1", "%4")
        .replace("%2", "%5")
        .replace("2.0", "3.0")
        .replace("%two", "%three")
        + "  %6 = arith.addf %1, %4 : tensor<3xf32>\n  return",
    ).replace("return %1", "return %6")
    module = parse_module(two)
    parse_pipeline("cse").run(module)
    assert [op.name for op in module.main.ops].count("linalg.generic") == 2
