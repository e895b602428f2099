"""What `quant.region`, the statistics ops and `quant.rescale` must satisfy: each rule with a form that keeps it."""

from __future__ import annotations

import pytest

from tflq.base.errors import ParseError, VerificationError
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify
from tflq.tools.opt import parse_pipeline

Q = "!quant.uniform<i8:f32, 0.5:-3>"
BODY = """^bb0(%x: tensor<4xf32>):
      %z = "tfl.relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%z) : (tensor<4xf32>) -> ()"""


def region(specs: str = f"input_specs = [{Q}], output_specs = [f32]", body: str = BODY, kernel: str = '"relu"') -> str:
    attributes = specs + (f", kernel = {kernel}" if kernel else "")
    return f"""func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = "quant.region"(%a) ({{
    {body}
  }}) {{{attributes}}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}"""


def test_a_region_is_valid() -> None:
    verify(parse_module(region()))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (region(kernel=""), "kernel must be a string"),
        (region(kernel='""'), "kernel must be a string"),
        (region(f"input_specs = [{Q}], output_specs = []"), "one for each operand and each result"),
        (region("output_specs = [f32]"), "one for each operand and each result"),
        (region("input_specs = [f16], output_specs = [f32]"), "the spec of input 0 must be f32 or a quantized type"),
        (region("input_specs = [!quant.none<f16>], output_specs = [f32]"), "not !quant.none<f16>"),
        (region("input_specs = [3], output_specs = [f32]"), "the spec of input 0 must be a type"),
        (region("input_specs = [!quant.uniform<i8:f32:0, {0.5}>], output_specs = [f32]"), "but dim 0 of the tensor"),
        (region(body=BODY.replace('"tfl.relu"(%x)', '"tfl.relu"(%b)')), "uses a value that is not an operand"),
        (
            region(body=BODY.replace("%x: tensor<4xf32>", "%x: tensor<4xf32>, %y: f32")),
            "arguments must be the operands",
        ),
        (region(body=BODY.rpartition("\n")[0]), "must end with quant.return"),
        (
            region(body=BODY.replace("4xf32>) -> ()", "4xf32>, tensor<4xf32>) -> ()").replace("(%z)", "(%z, %z)")),
            "as many",
        ),
        (region(body=BODY + "\n^bb1:\n" + '"quant.return"() : () -> ()'), "one region of one block"),
        (
            region().replace("return %0", '"quant.return"(%a) : (tensor<4xf32>) -> ()\n  return %0'),
            "stands nowhere else",
        ),
    ],
)
def test_a_region_that_breaks_a_rule(text: str, sentence: str) -> None:
    with pytest.raises(VerificationError, match=sentence):
        verify(parse_module(text))


def one(op: str, attributes: str, type: str = "tensor<8x3xf32>") -> str:
    made = f'%0 = "quant.{op}"(%a) {{{attributes}}} : ({type}) -> {type}'
    return f"func.func @f(%a: {type}) -> {type} {{\n  {made}\n  return %0 : {type}\n}}"


LAYER = "layerStats = dense<[-1.0, 1.0]> : tensor<2xf32>"
AXIS = "axisStats = dense<[[-1.0, 1.0], [-2.0, 2.0], [0.0, 1.0]]> : tensor<3x2xf32>"
RANGE = "min = -1.0 : f32, max = 1.0 : f32"


@pytest.mark.parametrize(
    "text",
    [
        one("stats", LAYER),
        one("stats", f"{LAYER}, {AXIS}, axis = 1"),
        one("stats_ref", 'statsKey = "a"'),
        one("coupled_ref", 'coupledKey = "a"'),
        one("const_fake_quant", f"{RANGE}, num_bits = 16, narrow_range = true, is_signed = true"),
        one(
            "const_fake_quant_per_axis",
            "min = [-1.0, 0.0, 0.0], max = [1.0, 1.0, 2.0], axis = 1, num_bits = 8",
        ),
        one("rescale", f"from = {Q}, to = !quant.uniform<i16:f32, 2.0>"),
    ],
)
def test_statistics_that_are_valid(text: str) -> None:
    verify(parse_module(text))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (one("stats", ""), "layerStats must be a minimum and a maximum"),
        (one("stats", LAYER.replace("-1.0", "2.0")), "must not be above"),
        (one("stats", f"{LAYER}, {AXIS}"), "must be given together"),
        (one("stats", f"{LAYER}, {AXIS}, axis = 0"), "one pair for each index"),
        (one("stats", f"{LAYER}, {AXIS}, axis = 2"), "an axis of the tensor"),
        (one("stats", LAYER, "tensor<3xi32>"), "a tensor of reals"),
        (one("stats_ref", 'statsKey = ""'), "statsKey must be a string"),
        (one("coupled_ref", ""), "coupledKey must be a string"),
        (one("const_fake_quant", "min = -1.0 : f32, num_bits = 8"), "min and max must be numbers"),
        (one("const_fake_quant", f"{RANGE}, num_bits = 17"), "from 2 to 16"),
        (one("const_fake_quant", f"{RANGE}, num_bits = 8, is_signed = 1"), "true or false"),
        (one("const_fake_quant", "min = 1.0 : f32, max = 1.0 : f32, num_bits = 8"), "min must be below max"),
        (
            one("const_fake_quant_per_axis", "min = [0.0], max = [1.0], axis = 1, num_bits = 8"),
            "each index of the axis",
        ),
        (one("rescale", f"from = {Q}, to = f32"), "'to' must be a !quant.uniform type"),
    ],
)
def test_statistics_that_break_a_rule(text: str, sentence: str) -> None:
    with pytest.raises(VerificationError, match=sentence):
        verify(parse_module(text))


def test_a_key_is_of_one_point_and_is_kept() -> None:
    module = parse_module(one("stats_ref", 'statsKey = "a"').replace("return %0", "return %a"))
    assert not parse_pipeline("dce,cse").run(module).modified
    twice = '%1 = "quant.stats_ref"(%a) {statsKey = "a"} : (tensor<8x3xf32>) -> tensor<8x3xf32>\n  return'
    with pytest.raises(VerificationError, match="another point with the key 'a'"):
        verify(parse_module(one("stats_ref", 'statsKey = "a"').replace("return", twice)))


CONSTANT = '%c = "tfl.pseudo_const"() {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>'
ADDS = '%z = "tfl.add"(%x, %c) {fused_activation_function = "NONE"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'


def test_a_constant_inside_is_no_operand() -> None:
    text = region(body=BODY.replace(BODY.splitlines()[1].strip(), f"{CONSTANT}\n{ADDS}"))
    verify(parse_module(text))


def test_a_constant_from_outside_must_be_an_operand() -> None:
    text = region(body=BODY.replace(BODY.splitlines()[1].strip(), ADDS)).replace("%0 =", f"{CONSTANT}\n  %0 =")
    with pytest.raises(ParseError, match="must be its operands, constants from outside, too"):
        parse_module(text)


def test_regions_that_share_a_constant_each_define_it() -> None:
    text = region(body=BODY.replace(BODY.splitlines()[1].strip(), f"{CONSTANT}\n{ADDS}"))
    module = parse_module(text.replace("return %0", f"{CONSTANT}\n%1 = ml.use %c : tensor<4xf32>\nreturn %0"))
    use, inner = module.main.ops[1], module.main.ops[0].regions[0].block.ops[0]
    use.operands = [inner.operands[1]]
    again = parse_module(print_module(module))
    assert again.main.ops[1].operand(0) is not again.main.ops[0].regions[0].block.ops[0].operand(1)
    assert print_module(again) == print_module(module)


def test_returned_values_need_no_types() -> None:
    short = """func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = quant.region (%a) {
    %z = "tfl.relu"(%a) : (tensor<4xf32>) -> tensor<4xf32>
    quant.return %z
  } {input_specs = [!quant.uniform<i8:f32, 0.5:-3>], output_specs = [f32], kernel = "relu"} :
    (tensor<4xf32>) -> (tensor<4xf32>)
  return %0 : tensor<4xf32>
}"""
    assert parse_module(short) == parse_module(region())
