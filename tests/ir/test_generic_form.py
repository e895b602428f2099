"""Modules and functions in MLIR's generic form stand for the same as in the custom form."""

from __future__ import annotations

import pytest

from tflq.base.errors import ParseError
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify

CUSTOM = """
module @m {
  func.func private @g(tensor<3xi8> {a.b = 1 : i32}, f32) -> (tensor<3xi8> {c})
  func.func @f(%arg0: tensor<3xi8> {a.b = 2 : i32}, %arg1: f32) -> tensor<3xi8> attributes {d = "e"} {
    %0 = func.call @g(%arg0, %arg1) : (tensor<3xi8>, f32) -> tensor<3xi8>
    %1 = arith.addf %arg1, %arg1 : f32
    %2 = arith.addi %0, %0 : tensor<3xi8>
    return %2 : tensor<3xi8>
  }
  func.func @empty() {
    return
  }
}
"""
GENERIC = """
#map = affine_map<(d0) -> (d0)>
"builtin.module"() <{sym_name = "m"}> ({
  "func.func"() <{arg_attrs = [{a.b = 1 : i32}, {}], function_type = (tensor<3xi8>, f32) -> tensor<3xi8>,
    res_attrs = [{c}], sym_name = "g", sym_visibility = "private"}> ({
  }) : () -> ()
  "func.func"() <{arg_attrs = [{a.b = 2 : i32}, {}], function_type = (tensor<3xi8>, f32) -> tensor<3xi8>,
    sym_name = "f"}> ({
  ^bb0(%x: tensor<3xi8>, %y: f32):
    %0 = "func.call"(%x, %y) <{callee = @g}> : (tensor<3xi8>, f32) -> tensor<3xi8>
    %1 = "arith.addf"(%y, %y) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    %2 = "arith.addi"(%0, %0) <{overflowFlags = #arith.overflow<none>}> : (tensor<3xi8>, tensor<3xi8>) -> tensor<3xi8>
    "func.return"(%2) : (tensor<3xi8>) -> ()
  }) {d = "e"} : () -> () loc(unknown)
  "func.func"() <{function_type = () -> (), sym_name = "empty"}> ({
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""


def test_the_generic_form_is_the_custom_form() -> None:
    custom, generic = parse_module(CUSTOM), parse_module(GENERIC)
    verify(generic)
    assert generic == custom
    assert print_module(generic) == print_module(custom)


def test_flags_that_say_something_stay() -> None:
    op = parse_module(GENERIC.replace("fastmath<none>", "fastmath<fast>")).functions[1].ops[1]
    assert op.attributes["fastmath"].text == "#arith.fastmath<fast>"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("function_type = () -> (), ", "", "needs its 'function_type'"),
        ("function_type = () -> ()", "function_type = (f32) -> ()", "the arguments are not of the types"),
        ("function_type = () -> ()", "function_type = () -> f32", "what the function returns is not"),
        ("[{a.b = 2 : i32}, {}]", "[{a.b = 2 : i32}]", "'arg_attrs' must be 2 dictionaries"),
        ("}) : () -> ()\n}) : () -> ()", "}) : () -> ()\n}) : () -> (f32)", "neither operands nor results"),
    ],
)
def test_a_generic_form_that_is_wrong(old: str, new: str, message: str) -> None:
    assert old in GENERIC
    with pytest.raises(ParseError, match=message):
        parse_module(GENERIC.replace(old, new))


LINALG = """
func.func @f(%a: tensor<4xf32>, %e: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
GENERIC_LINALG = """
func.func @f(%a: tensor<4xf32>, %e: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "linalg.generic"(%a, %e) <{indexing_maps = [#map, #map], iterator_types = [#linalg.iterator_type<parallel>],
      operandSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%x: f32, %o: f32):
    "linalg.yield"(%x) : (f32) -> ()
  }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def test_linalg_has_its_iterators_as_words() -> None:
    map = "#map = affine_map<(d0) -> (d0)>"
    assert parse_module(map + GENERIC_LINALG) == parse_module(map + LINALG)
