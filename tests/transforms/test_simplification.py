"""Canonicalize, CSE, DCE and folding, on text."""

from __future__ import annotations

from inspect import Parameter, signature

import numpy as np
import pytest

from tflq.base.errors import OptionError, TflqError
from tflq.dialects.effects import is_pure
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.types import TensorType, f32
from tflq.ir.verifier import verify
from tflq.tools.opt import named_passes, parse_pipeline
from tflq.transforms.pass_manager import Pass, PassResult, Pipeline

HEADER = "!q = !quant.uniform<i8:f32, 2.0>\n!r = !quant.uniform<i8:f32, 3.0>\n"


def run(passes: str, text: str) -> tuple[Module, bool]:
    module = parse_module(HEADER + text)
    verify(module)
    result = parse_pipeline(passes).run(module)
    verify(result.module)
    return result.module, result.modified


def assert_becomes(passes: str, before: str, after: str) -> None:
    """`after` is what the passes make of `before`; run again they change nothing."""
    module, modified = run(passes, before)
    assert print_module(module) == print_module(parse_module(HEADER + after))
    assert modified is (before != after)
    assert not parse_pipeline(passes).run(module).modified


def function(body: str, result: str = "f32") -> str:
    return f"func.func @f(%x: f32, %q: !q, %i: i8) -> {result} {{\n{body}\n}}"


QCAST_OF_DCAST = function("%0 = quant.dcast %q : !q to f32\n%1 = quant.qcast %0 : f32 to !q\nreturn %1 : !q", "!q")
DCAST_OF_QCAST = function("%0 = quant.qcast %x : f32 to !q\n%1 = quant.dcast %0 : !q to f32\nreturn %1 : f32")
REQUANTIZE = function("%0 = quant.dcast %q : !q to f32\n%1 = quant.qcast %0 : f32 to !r\nreturn %1 : !r", "!r")
SCASTS = function("%0 = quant.scast %i : i8 to !q\n%1 = quant.scast %0 : !q to i8\nreturn %1 : i8", "i8")
OTHER_SCASTS = function("%0 = quant.scast %q : !q to i8\n%1 = quant.scast %0 : i8 to !r\nreturn %1 : !r", "!r")


@pytest.mark.parametrize(
    ("passes", "before", "after"),
    [
        ("canonicalize,dce", QCAST_OF_DCAST, function("return %q : !q", "!q")),
        ("canonicalize{semantics=interpreter},dce", DCAST_OF_QCAST, DCAST_OF_QCAST),
        ("canonicalize,dce", DCAST_OF_QCAST, function("return %x : f32")),
        ("canonicalize{semantics=real},dce", REQUANTIZE, REQUANTIZE),
        ("canonicalize,dce", SCASTS, function("return %i : i8", "i8")),
        ("canonicalize,dce", OTHER_SCASTS, OTHER_SCASTS),
        ("canonicalize", function('%0 = "tosa.cast"(%x) : (f32) -> f32\nreturn %0 : f32'), function("return %x : f32")),
    ],
)
def test_casts_fold(passes: str, before: str, after: str) -> None:
    assert_becomes(passes, before, after)


def test_a_chain_of_casts_folds_in_one_run() -> None:
    body = "".join(
        f"%{2 * n + 2} = quant.scast %{2 * n + 1} : i8 to !q\n%{2 * n + 3} = quant.scast %{2 * n + 2} : !q to i8\n"
        for n in range(9)
    )
    before = function(f"%1 = quant.scast %q : !q to i8\n{body}return %19 : i8", "i8")
    assert_becomes("canonicalize,dce", before, function("%1 = quant.scast %q : !q to i8\nreturn %1 : i8", "i8"))


NAMED = """func.func @f(%q: !q {tflq.name = "in"}) -> (!q, !q) {
  %d = quant.dcast %q : !q to f32
  %1 = quant.qcast %d : f32 to !q
  %2 = quant.qcast %d {tflq.tensors = [{name = "out"}]} : f32 to !q
  return %2, %1 : !q, !q
}"""


def test_an_output_keeps_its_name() -> None:
    module, _ = run("canonicalize,cse,dce", NAMED)
    assert [value.name for value in module.main.outputs] == ["out", "in"]


def test_the_name_of_a_folded_cast_moves_to_what_it_equals() -> None:
    text = """func.func @f(%x: tensor<2x!q>) -> tensor<2x!q> {
  %0 = "tfl.relu"(%x) : (tensor<2x!q>) -> tensor<2x!q>
  %1 = quant.dcast %0 : tensor<2x!q> to tensor<2xf32>
  %2 = quant.qcast %1 {tflq.tensors = [{name = "out"}]} : tensor<2xf32> to tensor<2x!q>
  return %2 : tensor<2x!q>
}"""
    module, _ = run("canonicalize,dce", text)
    assert [op.name for op in module.main.ops] == ["tfl.relu"]
    assert module.main.outputs[0].name == "out"
    assert module.main.outputs == module.main.ops[0].results


DIVISION = """func.func @division(%a: tensor<3x!q>, %b: tensor<3x!q>) -> (tensor<3x!q>, tensor<3x!q>) {
  %0 = "quant.dcast"(%a) : (tensor<3x!q>) -> tensor<3xf32>
  %1 = "quant.dcast"(%b) : (tensor<3x!q>) -> tensor<3xf32>
  %2 = arith.divf %0, %1 : tensor<3xf32>
  %3 = "quant.qcast"(%2) : (tensor<3xf32>) -> tensor<3x!q>
  %4 = "quant.dcast"(%a) : (tensor<3x!q>) -> tensor<3xf32>
  %5 = "quant.dcast"(%b) : (tensor<3x!q>) -> tensor<3xf32>
  %6 = arith.remf %4, %5 : tensor<3xf32>
  %7 = "quant.qcast"(%6) : (tensor<3xf32>) -> tensor<3x!q>
  return %3, %7 : tensor<3x!q>, tensor<3x!q>
}"""


def test_common_casts_are_shared() -> None:
    after = "\n".join(line for line in DIVISION.splitlines() if "%4 =" not in line and "%5 =" not in line)
    assert_becomes("cse,dce", DIVISION, after.replace("%4, %5", "%0, %1"))


def two(first: str, second: str, *, passes: str = "cse", op: str = "tfl.abs") -> list[str]:
    """The names of the results after merging two identical ops of the given names."""
    text = f"""func.func @f(%x: f32) -> (f32, f32) {{
  %0 = "{op}"(%x) {{tflq.tensors = [{{name = "{first}"}}]}} : (f32) -> f32
  %1 = "{op}"(%x) {{tflq.tensors = [{{name = "{second}"}}]}} : (f32) -> f32
  %2 = "tfl.neg"(%0) : (f32) -> f32
  %3 = "tfl.exp"(%1) : (f32) -> f32
  return %2, %3 : f32, f32
}}"""
    module, _ = run(passes, text)
    return [value.name for item in module.main.ops[:-2] for value in item.results]


def test_names_survive_merging() -> None:
    assert two("", "") == [""]
    assert two("a", "") == ["a"]
    assert two("", "b") == ["b"]
    assert two("a", "a") == ["a"]
    assert two("a", "b") == ["a", "b"]
    assert two("a", "b", passes="cse{keep-names=false}") in (["a"], ["b"])


@pytest.mark.parametrize(
    "op", ["tfl.random_uniform", "tfl.custom", "tfl.read_variable", "tfl.call_once", "unknown.add"]
)
def test_ops_with_effects_are_neither_merged_nor_removed(op: str) -> None:
    assert two("", "", passes="cse,dce", op=op) == ["", ""]
    text = f'func.func @f(%x: f32) -> f32 {{\n  %0 = "{op}"(%x) : (f32) -> f32\n  return %x : f32\n}}'
    assert_becomes("cse,dce", text, text)


def test_ops_on_a_variable_are_impure() -> None:
    state = Value(TensorType((1,), f32), "state", info={"is_variable": True})
    assert not is_pure(Op("tfl.svdf", [state], [Value(TensorType((1,), f32))]))


@pytest.mark.parametrize(
    "attribute", ["a = 1.0", "a = true", "a = [1]", "a = dense<1> : tensor<1xi8>", "a = 0x80000000 : f32"]
)
def test_ops_of_different_attributes_are_not_merged(attribute: str) -> None:
    text = f"""func.func @f(%x: f32) -> (f32, f32) {{
  %0 = "tfl.abs"(%x) {{a = 1}} : (f32) -> f32
  %1 = "tfl.abs"(%x) {{{attribute}}} : (f32) -> f32
  return %0, %1 : f32, f32
}}"""
    assert_becomes("cse,dce", text, text)


def test_equal_constants_are_merged() -> None:
    text = """func.func @f(%x: tensor<2xi8>) -> tensor<2xi8> {
  %c = arith.constant dense<[1, 2]> : tensor<2xi8>
  %d = "tfl.pseudo_const"() {value = dense<[1, 2]> : tensor<2xi8>, tflq.tensors = [{name = "d"}]} : () -> tensor<2xi8>
  %e = "tfl.pseudo_const"() {value = dense<[1, 2]> : tensor<2xi8>, tflq.tensors = [{name = "e"}]} : () -> tensor<2xi8>
  %0 = "tosa.add"(%x, %c) : (tensor<2xi8>, tensor<2xi8>) -> tensor<2xi8>
  %1 = "tosa.add"(%0, %d) : (tensor<2xi8>, tensor<2xi8>) -> tensor<2xi8>
  %2 = "tosa.add"(%1, %e) : (tensor<2xi8>, tensor<2xi8>) -> tensor<2xi8>
  return %2 : tensor<2xi8>
}"""
    module, _ = run("cse", text)
    assert [op.operand(1).name for op in module.main.ops] == ["d", "d", "e"]
    module, _ = run("cse{keep-names=false}", text)
    assert len({op.operand(1) for op in module.main.ops}) == 1


def test_dead_ops_go_with_what_only_they_used() -> None:
    before = function('%0 = "tfl.abs"(%x) : (f32) -> f32\n%1 = "tfl.neg"(%0) : (f32) -> f32\nreturn %x : f32')
    assert_becomes("dce", before, function("return %x : f32"))


def test_what_a_signature_names_is_alive_and_stays_named() -> None:
    x, y, z = (Value(TensorType((), f32), name) for name in ("x", "", ""))
    ops = [Op("tfl.abs", [x], [y]), Op("tfl.abs", [x], [z])]
    module = Module([Function("main", [x], [z], ops)], [Signature("s", 0, [("x", x)], [("y", y), ("z", z)])])
    assert not parse_pipeline("dce").run(module).modified
    assert parse_pipeline("cse").run(module).modified
    signature = (module.signatures or [])[0]
    assert signature.outputs == [("y", y), ("z", y)]
    assert module.main.outputs == [y]


def test_removed_results_leave_the_tensor_table() -> None:
    module = parse_module(
        """func.func @f(%x: f32 {tflq.index = 1}) -> f32 {
  %0 = "tfl.abs"(%x) {tflq.tensors = [{index = 0}]} : (f32) -> f32
  return %x : f32
}"""
    )
    parse_pipeline("dce").run(module)
    assert module.main.tensors == module.main.inputs


def test_ops_on_constants_are_folded() -> None:
    module, _ = run(
        "fold",
        """func.func @f(%x: tensor<2xi8>) -> (tensor<2xi8>, tensor<2xi8>) {
  %a = arith.constant dense<[1, 2]> : tensor<2xi8>
  %b = arith.constant dense<3> : tensor<2xi8>
  %0 = "tosa.add"(%a, %b) {tflq.tensors = [{name = "sum"}]} : (tensor<2xi8>, tensor<2xi8>) -> tensor<2xi8>
  %1 = "tosa.maximum"(%0, %a) : (tensor<2xi8>, tensor<2xi8>) -> tensor<2xi8>
  %2 = "tosa.add"(%x, %1) : (tensor<2xi8>, tensor<2xi8>) -> tensor<2xi8>
  return %0, %2 : tensor<2xi8>, tensor<2xi8>
}""",
    )
    assert [op.name for op in module.main.ops] == ["tosa.add"]
    assert module.main.ops[0].operand(1).array.tolist() == [4, 5]
    assert module.main.outputs[0].name == "sum"


@pytest.mark.parametrize(
    ("expressed", "product"),
    [("f16", np.float16(0.1) * np.float16(3)), ("f32", np.float32(0.1) * np.float32(3)), ("f64", 0.1 * 3)],
)
def test_casts_are_folded_in_the_precision_expressed(expressed: str, product: float) -> None:
    """Within the bounds of the storage."""
    q = f"tensor<2x!quant.uniform<i8<-8:3>:{expressed}:0, {{0.1, 0.5}}>>"
    module, _ = run(
        "fold",
        f"""func.func @f() -> tensor<2x{expressed}> {{
  %a = arith.constant dense<[0.3, 1.7]> : tensor<2x{expressed}>
  %0 = quant.qcast %a : tensor<2x{expressed}> to {q}
  %1 = quant.dcast %0 : {q} to tensor<2x{expressed}>
  return %1 : tensor<2x{expressed}>
}}""",
    )
    assert module.main.outputs[0].array.tolist() == [product, 1.5]


@pytest.mark.parametrize("op", ["tfl.custom", "tosa.no_such_op", "tfl.square"])
def test_what_cannot_be_evaluated_stays(op: str) -> None:
    """As do operators of TFLite that compute numbers: those are their kernels'."""
    text = f"""func.func @f() -> f32 {{
  %a = arith.constant 1.0 : f32
  %0 = "{op}"(%a) : (f32) -> f32
  return %0 : f32
}}"""
    assert_becomes("fold", text, text)


def test_folding_does_not_make_a_large_constant_of_small_ones() -> None:
    text = """func.func @f() -> tensor<1000x100xi8> {
  %a = arith.constant dense<[[1]]> : tensor<1x1xi8>
  %b = "tfl.pseudo_const"() {value = dense<2> : tensor<1000x1xi8>} : () -> tensor<1000x1xi8>
  %c = "tfl.pseudo_const"() {value = dense<2> : tensor<1x100xi8>} : () -> tensor<1x100xi8>
  %0 = "tosa.add"(%b, %c) : (tensor<1000x1xi8>, tensor<1x100xi8>) -> tensor<1000x100xi8>
  return %0 : tensor<1000x100xi8>
}"""
    assert not run("fold", text)[1]
    assert run("fold{limit=100000}", text)[1]


class Breaks(Pass):
    """A pass that leaves a value without a definition."""

    name = "breaks"

    def run(self, module: Module) -> PassResult:
        module.main.ops = []
        return PassResult(module, modified=True)


def test_a_failure_names_the_pass() -> None:
    text = 'func.func @f(%x: f32) -> f32 {\n  %0 = "tfl.abs"(%x) : (f32) -> f32\n  return %0 : f32\n}'
    with pytest.raises(OptionError, match="the pass 'breaks' makes invalid IR: function 0 'f': output 0"):
        Pipeline([Breaks()]).run(parse_module(text))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the pipeline is empty; the passes are bind-shapes, by-rows, canonicalize, check-c, check-laws"),
        ("cse,nothing", "there is no pass 'nothing'"),
        ("cse;dce", "expected a pass at 'cse;dce'"),
        ("cse{", "expected a pass at 'cse{'"),
        ("cse{deep=true}", "'cse' has no option 'deep=true'; its options: keep-names="),
        ("cse{keep-names}", "has no option 'keep-names'"),
        ("cse{keep-names=1}", "option 'keep-names' is true or false, not '1'"),
        ("fold{limit=few}", "option 'limit' is a number, not 'few'"),
    ],
)
def test_a_wrong_pipeline(text: str, reason: str) -> None:
    with pytest.raises(TflqError, match=reason):
        parse_pipeline(text)


def test_every_pass_has_a_name_for_text() -> None:
    names = [name for name, kind in named_passes().items() if not _needs_options(kind)]
    assert {"canonicalize", "cse", "legalize", "quant-propagate"} <= set(names)
    assert all(parse_pipeline(name).passes[0].name == name for name in names)


def _needs_options(kind: type[Pass]) -> bool:
    return any(each.default is Parameter.empty for each in signature(kind).parameters.values())


def test_long_functions() -> None:
    x = Value(TensorType((2,), f32), "x")
    ops: list[Op] = []
    for _ in range(3000):
        ops.append(Op("tfl.abs", [ops[-1].result if ops else x], [Value(TensorType((2,), f32))]))
    module = Module([Function("main", [x], [x], ops)])
    parse_pipeline("canonicalize,cse,dce").run(module)
    assert module.main.ops == []
    assert np.all([v is x for v in module.main.outputs])
