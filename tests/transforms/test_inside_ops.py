"""Canonicalization, cse and dce of ops inside of others, but for those of a quant.region, and inlining there."""

from __future__ import annotations

from tflq.ir.facts import walk
from tflq.ir.module import Module
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify
from tflq.tools.opt import parse_pipeline

Q = "!quant.uniform<i8:f32, 0.5:-3>"


def made(text: str, passes: str) -> Module:
    module = parse_module(text)
    verify(module)
    module = parse_pipeline(passes).run(module).module
    verify(module)
    assert parse_module(print_module(module)) == module
    return module


def names(module: Module) -> list[str]:
    return [op.name for op in walk(module.main.ops)]


def wrapped(body: str, returned: str, before: str = "", op: str = "ml.wrap", attributes: str = "") -> str:
    end = "quant.return" if op == "quant.region" else "ml.return"
    return f"""func.func @f(%a: tensor<4xf32>, %q: tensor<4x{Q}>) -> tensor<4xf32> {{
  {before}
  %0 = "{op}"(%a) ({{
  ^bb0(%x: tensor<4xf32>):
    {body}
    "{end}"({returned}) : (tensor<4xf32>) -> ()
  }}) {attributes} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}"""


CASTS = f"""%s = quant.qcast %x : tensor<4xf32> to tensor<4x{Q}>
    %d = quant.dcast %s : tensor<4x{Q}> to tensor<4xf32>"""
SPECS = '{input_specs = [f32], output_specs = [f32], kernel = "k"}'


def test_casts_inside_of_an_op_undo_each_other() -> None:
    assert names(made(wrapped(CASTS, "%d"), "canonicalize,dce")) == ["ml.wrap", "ml.return"]


def test_a_cast_inside_undoes_one_outside() -> None:
    before = f"%s = quant.qcast %a : tensor<4xf32> to tensor<4x{Q}>"
    text = wrapped(f"%d = quant.dcast %s : tensor<4x{Q}> to tensor<4xf32>", "%d", before)
    assert names(made(text, "canonicalize,dce")) == ["ml.wrap", "ml.return"]


def test_constraints_inside_of_a_region_stay() -> None:
    text = wrapped(CASTS, "%d", op="quant.region", attributes=SPECS)
    assert made(text, "canonicalize,cse,dce") == parse_module(text)


def test_an_op_inside_is_merged_with_one_before_it() -> None:
    before = f"%e = quant.dcast %q : tensor<4x{Q}> to tensor<4xf32>"
    again = f"quant.dcast %q : tensor<4x{Q}> to tensor<4xf32>"
    text = wrapped(f"%d = {again}\n    %s = arith.addf %d, %e : tensor<4xf32>", "%s", before)
    assert names(made(text, "cse,dce")) == ["quant.dcast", "ml.wrap", "arith.addf", "ml.return"]


def test_ops_of_two_blocks_are_not_merged() -> None:
    inner = """%{0} = "ml.wrap"(%a) ({{
    ^bb0(%x{0}: tensor<4xf32>):
      %s{0} = arith.addf %a, %a : tensor<4xf32>
      "ml.return"(%s{0}) : (tensor<4xf32>) -> ()
    }}) : (tensor<4xf32>) -> tensor<4xf32>"""
    text = f"""func.func @f(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {{
  {inner.format(0)}
  {inner.format(1)}
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}}"""
    assert made(text, "cse,dce") == parse_module(text)


def test_an_op_on_constants_does_not_read_from_outside() -> None:
    before = "%c = arith.constant 2.0 : f32\n  %t = tensor.splat %c : tensor<4xf32>"
    body = "%c1 = arith.constant 2.0 : f32\n    %u = tensor.splat %c1 : tensor<4xf32>"
    module = made(wrapped(f"{body}\n    %s = arith.addf %t, %u : tensor<4xf32>", "%s", before), "cse")
    assert names(module).count("tensor.splat") == 2


def test_unneeded_ops_inside_go_and_what_they_need() -> None:
    before = f"%s = quant.qcast %a : tensor<4xf32> to tensor<4x{Q}>"
    text = wrapped(f"%d = quant.dcast %s : tensor<4x{Q}> to tensor<4xf32>", "%x", before)
    assert names(made(text, "dce")) == ["ml.wrap", "ml.return"]


def test_effects_inside_stay() -> None:
    text = wrapped('%d = "ml.print"(%x) : (tensor<4xf32>) -> tensor<4xf32>', "%x")
    assert names(made(text, "dce,cse")) == ["ml.wrap", "ml.print", "ml.return"]


def region(value: str, body: str, output: str = "f32", name: str = "k") -> str:
    return f""""quant.region"({value}) ({{
    ^bb0(%{name}: tensor<4xf32>):
      {body}
      "quant.return"(%{name}_z) : (tensor<4xf32>) -> ()
    }}) {{input_specs = [f32], output_specs = [{output}], kernel = "k"}} : (tensor<4xf32>) -> tensor<4xf32>"""


RELU = '%k_z = "tfl.relu"(%k) : (tensor<4xf32>) -> tensor<4xf32>'


def test_regions_inside_of_regions_and_ops_are_inlined() -> None:
    inner = region("%o", RELU, Q)
    text = wrapped(f"%r = {region('%x', f'%o_z = {inner}', name='o')}", "%r")
    expected = ["ml.wrap", "tfl.relu", "quant.qcast", "quant.dcast", "ml.return"]
    assert names(made(text, "inline-regions")) == expected
