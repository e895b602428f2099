"""What each mode of the solver makes of a function, as text, and what it says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tflq.analysis.cast_cost import cast_cost
from tflq.cli import main
from tflq.ir.module import Module
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify
from tflq.tools.opt import parse_pipeline
from tflq.tools.quantize.solver.modes import Solved
from tflq.transforms.pass_manager import PassResult, Summaries

Q, R = "!quant.uniform<i8:f32, 0.5:-3>", "!quant.uniform<i8:f32, 2.0:7>"
NARROW = "!quant.uniform<i8<-127:127>:f32, 0.5>"
AXIS = "!quant.uniform<i8:f32:0, {0.5,0.25,1.0,2.0}>"


def short(text: str) -> str:
    """Types as they are written: `4xQ` for a tensor of 4."""
    for name, type in (("xQ", f"x{Q}"), ("xR", f"x{R}"), ("xN", f"x{NARROW}"), ("xA", f"x{AXIS}")):
        text = text.replace(f"{name}>", f"{type}>")
    return text


def function(body: str, results: str, arguments: str = "%q: tensor<4xQ>, %x: tensor<4xf32>") -> str:
    return short(f"func.func @f({arguments}) -> {results} {{\n{body}\n}}")


def run(passes: str, text: str) -> PassResult:
    module = parse_module(text)
    verify(module)
    result = parse_pipeline(passes).run(module)
    verify(result.module)
    return result


def noted(module: Module) -> Solved:
    solved = module.record.find(Solved)
    assert solved is not None
    return solved


def reverse(result: str, operand: str, type: str) -> str:
    return f'{result} = "tosa.reverse"({operand}) {{axis = 0 : i32}} : (tensor<{type}>) -> tensor<{type}>'


def dcast(result: str, operand: str, type: str = "4xQ", real: str = "4xf32") -> str:
    return f"{result} = quant.dcast {operand} : tensor<{type}> to tensor<{real}>"


def qcast(result: str, operand: str, type: str = "4xQ", real: str = "4xf32") -> str:
    return f"{result} = quant.qcast {operand} : tensor<{real}> to tensor<{type}>"


def scast(result: str, operand: str, source: str, target: str) -> str:
    return f"{result} = quant.scast {operand} : tensor<{source}> to tensor<{target}>"


def lines(*ops: str) -> str:
    return "\n".join(ops)


TANH = '%t = "tosa.tanh"(%r) : (tensor<4xf32>) -> tensor<4xf32>'
STORED = function(
    lines(scast("%0", "%q", "4xQ", "4xi8"), reverse("%1", "%0", "4xi8"), scast("%2", "%1", "4xi8", "4xQ"))
    + "\nreturn %2 : tensor<4xQ>",
    "tensor<4xQ>",
)
BETWEEN = function(
    lines(dcast("%0", "%q"), reverse("%1", "%0", "4xf32"), qcast("%2", "%1")) + "\nreturn %2 : tensor<4xQ>",
    "tensor<4xQ>",
)
DIRECT = function(reverse("%0", "%q", "4xQ") + "\nreturn %0 : tensor<4xQ>", "tensor<4xQ>")
OTHER = '%1 = "my.op"({0}) : ({1}) -> {1}'
UNDECLARED = function(OTHER.format("%q", "tensor<4xQ>") + "\nreturn %1 : tensor<4xQ>", "tensor<4xQ>")
ENCASED = function(
    lines(dcast("%0", "%q"), OTHER.format("%0", "tensor<4xf32>"), qcast("%2", "%1")) + "\nreturn %2 : tensor<4xQ>",
    "tensor<4xQ>",
)
RESHAPE = """%s = "tfl.pseudo_const"() {{value = dense<[2, 2]> : tensor<2xi32>}} : () -> tensor<2xi32>
%1 = "tfl.reshape"({0}, %s) : (tensor<4x{1}>, tensor<2xi32>) -> tensor<2x2x{1}>"""
OF_TFLITE = function(
    lines(dcast("%0", "%q"), RESHAPE.format("%0", "f32"), qcast("%2", "%1", "2x2xQ", "2x2xf32"))
    + "\nreturn %2 : tensor<2x2xQ>",
    "tensor<2x2xQ>",
)
TYPED_RESHAPE = function(RESHAPE.format("%q", "Q") + "\nreturn %1 : tensor<2x2xQ>", "tensor<2x2xQ>")
STORED_RESHAPE = function(
    lines(scast("%0", "%q", "4xQ", "4xi8"), RESHAPE.format("%0", "i8"), scast("%2", "%1", "2x2xi8", "2x2xQ"))
    + "\nreturn %2 : tensor<2x2xQ>",
    "tensor<2x2xQ>",
)
ROUNDING = function(
    lines(qcast("%0", "%x"), dcast("%1", "%0"), reverse("%2", "%1", "4xf32")) + "\nreturn %2 : tensor<4xf32>",
    "tensor<4xf32>",
)
ROUNDED = function(
    lines(qcast("%0", "%x"), scast("%1", "%0", "4xQ", "4xi8"), reverse("%2", "%1", "4xi8"))
    + lines("", scast("%3", "%2", "4xi8", "4xQ"), dcast("%4", "%3"))
    + "\nreturn %4 : tensor<4xf32>",
    "tensor<4xf32>",
)
UNROUNDED = function(reverse("%0", "%x", "4xf32") + "\nreturn %0 : tensor<4xf32>", "tensor<4xf32>")


@pytest.mark.parametrize(
    ("passes", "before", "after"),
    [
        ("quant-transform", DIRECT, STORED),
        ("quant-transform", BETWEEN, STORED),
        ("quant-transform", STORED, STORED),
        ("quant-transform", OF_TFLITE, STORED_RESHAPE),
        ("quant-transform", UNDECLARED, ENCASED),
        ("quant-simplify", BETWEEN, STORED),
        ("quant-simplify", DIRECT, DIRECT),
        ("quant-simplify", OF_TFLITE, TYPED_RESHAPE),
        ("quant-simplify", STORED_RESHAPE, STORED_RESHAPE),
        ("quant-simplify", ROUNDING, ROUNDED),
        ("quant-simplify{roundings=removed}", ROUNDING, UNROUNDED),
        ("quant-simplify{roundings=removed}", ROUNDED, UNROUNDED),
    ],
)
def test_becomes(passes: str, before: str, after: str) -> None:
    result = run(passes, before)
    assert print_module(result.module) == print_module(parse_module(after))
    assert result.modified is (before != after)
    assert not parse_pipeline(passes).run(result.module).modified


def surrounded(value: str, kind: str) -> str:
    attributes = f"{{pad_const = {value}, padding = array<i64: 1, 0>}}"
    return f'%1 = "tosa.pad"(%0) {attributes} : (tensor<4x{kind}>) -> tensor<5x{kind}>'


@pytest.mark.parametrize(
    ("around", "stored"), [("0.0 : f32", "-3 : i8"), ("1.5 : f32", "0 : i8"), ("0.3 : f32", None), ("1e9 : f32", None)]
)
def test_what_stands_around_elements_must_be_on_the_grid(around: str, stored: str | None) -> None:
    body = lines(dcast("%0", "%q"), surrounded(around, "f32"))
    text = function(f"{body}\nreturn %1 : tensor<5xf32>", "tensor<5xf32>")
    result = run("quant-simplify", text)
    assert noted(result.module) == Solved(4, 4)  # 4 elements before the padding, 5 after it
    more = function(f"{body}\n{qcast('%2', '%1', '5xQ', '5xf32')}\nreturn %2 : tensor<5xQ>", "tensor<5xQ>")
    result = run("quant-simplify", more)
    assert noted(result.module).after == 0  # behind the rounding any value is on the grid
    if stored is not None:
        assert f"pad_const = {stored.partition(' ')[0]}" in print_module(result.module)


def test_zeros_around_integers_are_zero_points() -> None:
    sides = '%s = "tfl.pseudo_const"() {value = dense<[[1, 0]]> : tensor<1x2xi32>} : () -> tensor<1x2xi32>'
    pad = '%1 = "tfl.pad"(%0, %s) : (tensor<4xf32>, tensor<1x2xi32>) -> tensor<5xf32>'
    body = lines(dcast("%0", "%q"), sides, pad, qcast("%2", "%1", "5xQ", "5xf32"))
    text = function(f"{body}\nreturn %2 : tensor<5xQ>", "tensor<5xQ>")
    simplified, transformed = (print_module(run(mode, text).module) for mode in ("quant-simplify", "quant-transform"))
    assert '"tfl.pad"' in simplified
    assert "quant.scast" not in simplified
    assert '"tfl.padv2"' in transformed
    assert "dense<-3> : tensor<i8>" in transformed


def test_constants_are_quantized_where_they_are() -> None:
    constant = '%c = "tosa.const"() {values = dense<[0.5, 1.0, 0.3, -1.0]> : tensor<4xf32>} : () -> tensor<4xf32>'
    join = '%1 = "tosa.concat"(%0, %c) {axis = 0 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>'
    body = lines(dcast("%0", "%q"), constant, join, qcast("%2", "%1", "8xQ", "8xf32"))
    module = run("quant-transform", function(f"{body}\nreturn %2 : tensor<8xQ>", "tensor<8xQ>")).module
    assert noted(module).after == 0
    assert "dense<[-2, -1, -2, -5]> : tensor<4xi8>" in print_module(module)  # 0.3 / 0.5 is rounded to 1


@pytest.mark.parametrize(("type", "cost"), [("4xQ", 0), ("4xN", 8)])
def test_a_qcast_that_may_clamp_stays(type: str, cost: int) -> None:
    """Stored integers may be outside narrowed bounds."""
    body = lines(dcast("%0", "%n", type), qcast("%1", "%0", type))
    result = run(
        "quant-simplify", function(f"{body}\nreturn %1 : tensor<{type}>", f"tensor<{type}>", f"%n: tensor<{type}>")
    )
    assert noted(result.module).after == cost


def test_what_has_scales_along_an_axis_is_not_moved() -> None:
    body = lines(dcast("%0", "%a", "4xA"), reverse("%1", "%0", "4xf32"), qcast("%2", "%1", "4xA"))
    text = function(f"{body}\nreturn %2 : tensor<4xA>", "tensor<4xA>", "%a: tensor<4xA>")
    assert noted(run("quant-simplify", text).module) == Solved(8, 8)


def test_casts_are_shared() -> None:
    body = lines(dcast("%0", "%q"), dcast("%1", "%q"), qcast("%2", "%x"), qcast("%3", "%x"), qcast("%4", "%x", "4xR"))
    add = '%5 = "tosa.add"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'
    returned = "return %5, %2, %3, %4 : tensor<4xf32>, tensor<4xQ>, tensor<4xQ>, tensor<4xR>"
    text = function(f"{body}\n{add}\n{returned}", "(tensor<4xf32>, tensor<4xQ>, tensor<4xQ>, tensor<4xR>)")
    assert noted(run("quant-simplify", text).module) == Solved(20, 12)


NAMED = '{tflq.tensors = [{name = "y"}]}'


def test_a_result_keeps_its_name() -> None:
    """An op takes its place; where the value has another name that users know, the casts stay."""
    body = lines(dcast("%0", "%q"), reverse("%1", "%0", "4xf32"))
    last = f"%2 = quant.qcast %1 {NAMED} : tensor<4xf32> to tensor<4xQ>\nreturn %2 : tensor<4xQ>"
    module = run("quant-simplify", function(f"{body}\n{last}", "tensor<4xQ>")).module
    assert ([v.name for v in module.main.outputs], cast_cost(module)) == (["y"], 0)
    back = f"%2 = quant.qcast %0 {NAMED} : tensor<4xf32> to tensor<4xQ>\nreturn %2 : tensor<4xQ>"
    arguments = '%q: tensor<4xQ> {tflq.name = "q"}'
    module = run("quant-simplify", function(f"{dcast('%0', '%q')}\n{back}", "tensor<4xQ>", arguments)).module
    assert ([v.name for v in module.main.outputs], cast_cost(module)) == (["y"], 8)


def test_ops_on_reals_are_put_between_casts() -> None:
    op = '%0 = "tosa.exp"(%q) : (tensor<4xQ>) -> tensor<4xR>'
    text = function(f"{op}\nreturn %0 : tensor<4xR>", "tensor<4xR>")
    result = run("quant-transform", text)
    body = lines(dcast("%0", "%q"), TANH.replace("%t", "%1").replace("%r", "%0").replace("tanh", "exp"))
    after = function(f"{body}\n{qcast('%2', '%1', '4xR')}\nreturn %2 : tensor<4xR>", "tensor<4xR>")
    assert print_module(result.module) == print_module(parse_module(after))
    assert noted(result.module) == Solved(8, 8, encased=1)


ADD = '%s = "tfl.add"(%0, %1) {fused_activation_function = "NONE"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'
SUM = function(
    lines(dcast("%0", "%q"), dcast("%1", "%p"), ADD, reverse("%2", "%s", "4xf32"), qcast("%3", "%2", "4xR"))
    + "\nreturn %3 : tensor<4xR>",
    "tensor<4xR>",
    "%q: tensor<4xQ>, %p: tensor<4xQ>",
)


def test_operators_of_tflite_take_types_that_the_target_has_a_kernel_for(tmp_path: Path) -> None:
    target = tmp_path / "npu.toml"
    target.write_text('[target]\nname = "npu"\n[kernels]\nadd = "qi8 qi8 -> qi8"\n')
    assert noted(run("quant-transform", SUM).module) == Solved(12, 12, to_integers=1)
    result = run(f"quant-transform{{target={target}}}", SUM)
    assert noted(result.module) == Solved(12, 0, to_integers=1, typed=1)
    assert short("(tensor<4xQ>, tensor<4xQ>) -> tensor<4xR>") in print_module(result.module)
    assert not parse_pipeline(f"quant-transform{{target={target}}}").run(result.module).modified


def test_ops_that_are_declared_for_quantized_types_take_them() -> None:
    pytest.importorskip("tflq.formats.mlir.dialects.fxpmath", reason="needs the dialect fxpmath")
    add = '%s = "fxpmath.real_add_ew"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'
    result = run("quant-transform", SUM.replace(ADD, add))
    assert noted(result.module) == Solved(12, 0, to_integers=1, typed=1)


def test_open_dims_count_as_1() -> None:
    text = "func.func @f(%x: tensor<?x3xf32>) -> tensor<?x3x!quant.uniform<i8:f32, 0.5>> {\n"
    text += "%0 = quant.qcast %x : tensor<?x3xf32> to tensor<?x3x!quant.uniform<i8:f32, 0.5>>\n"
    text += "return %0 : tensor<?x3x!quant.uniform<i8:f32, 0.5>>\n}"
    assert cast_cost(parse_module(text)) == 3


def test_integers_are_moved_as_reals_where_that_casts_fewer() -> None:
    tile = '%1 = "tosa.tile"(%0) {multiples = array<i64: 10>} : (tensor<4xi8>) -> tensor<40xi8>'
    body = lines(scast("%0", "%q", "4xQ", "4xi8"), tile, scast("%2", "%1", "40xi8", "40xQ"))
    text = function(f"{body}\n{dcast('%3', '%2', '40xQ', '40xf32')}\nreturn %3 : tensor<40xf32>", "tensor<40xf32>")
    assert noted(run("quant-simplify", text).module) == Solved(40, 4, to_reals=1)


def test_ops_inside_of_others_read_what_they_read() -> None:
    """A branch reads a value from outside, in its form."""
    branch = """%3 = "stablehlo.if"(%c) ({
      %a = stablehlo.add %2, %1 : tensor<4xf32>
      "stablehlo.return"(%a) : (tensor<4xf32>) -> ()
    }, {
      "stablehlo.return"(%2) : (tensor<4xf32>) -> ()
    }) : (tensor<i1>) -> tensor<4xf32>"""
    body = lines(dcast("%0", "%q"), dcast("%1", "%q"), reverse("%2", "%0", "4xf32"), branch)
    arguments = "%q: tensor<4xQ>, %c: tensor<i1>"
    result = run("quant-simplify", function(f"{body}\nreturn %3 : tensor<4xf32>", "tensor<4xf32>", arguments))
    assert noted(result.module) == Solved(8, 4)


@pytest.mark.parametrize("quiet", [False, True])
def test_opt_says_what_a_pass_did(tmp_path: Path, quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(BETWEEN)
    passes = "quant-simplify,cse,quant-transform"
    code = main.run(["opt", str(file), "-p", passes, *(["-q"] if quiet else [])])
    out, err = capsys.readouterr()
    said = "quant-simplify: casts read 0 elements, before 8; 1 op moved from reals to integers\n"
    said += "quant-transform: casts read 0 elements, before 0\n"
    assert (code, err) == (0, "" if quiet else said)
    assert Summaries.of(parse_pipeline(passes).run(parse_module(BETWEEN)).module) == tuple(said.splitlines())
    assert print_module(parse_module(out)) == out
