"""Constants of quantized types as StableHLO spells them: the stored integers, signless."""

from __future__ import annotations

from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module

U8 = "tensor<3x!quant.uniform<u8:f32, 0.5:10>>"
GENERIC = f'%0 = "stablehlo.constant"() {{value = dense<[10, -1, 127]> : tensor<3xi8>}} : () -> {U8}'


def function(line: str) -> str:
    use = f'%1 = "stablehlo.add"(%0, %0) : ({U8}, {U8}) -> {U8}'
    return f"func.func @f() -> {U8} {{\n  {line}\n  {use}\n  return %1 : {U8}\n}}\n"


def test_unsigned_storage_is_written_signless() -> None:
    module = parse_module(function(GENERIC))
    assert module.main.ops[0].operand(0).array.tolist() == [10, 255, 127]
    assert GENERIC.replace("%0", "%cst0") in print_module(module)
    assert parse_module(print_module(module)) == module


def test_other_spellings() -> None:
    module = parse_module(function(GENERIC))
    pretty = f"%0 = stablehlo.constant() <{{value = dense<[10, -1, 127]> : tensor<3xi8>}}> : () -> {U8}"
    assert parse_module(function(pretty)) == module
    unsigned = GENERIC.replace("[10, -1, 127]> : tensor<3xi8>", "[10, 255, 127]> : tensor<3xui8>")
    assert parse_module(function(unsigned)) == module
