"""tfl-to-tosa-pipeline: operators of TFLite to TOSA, quantized types at the function's boundary or nowhere."""

from __future__ import annotations

import pytest

from tflq.base.errors import InvalidModelError, UnsupportedError
from tflq.dialects.quant import verify_casts
from tflq.ir.module import Module
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify
from tflq.tools.opt import named_passes, parse_pipeline

T = "tensor<2x3x!q>"


def lowered(body: str, options: str = "", quantized: str = "i8:f32, 0.5") -> Module:
    head = f"!q = !quant.uniform<{quantized}>\nfunc.func @f(%x: {T}, %y: {T}) -> {T} {{\n"
    module = parse_module(f"{head}{body}\nreturn %0 : {T}\n}}")
    module = parse_pipeline(f"tfl-to-tosa-pipeline{options}", named_passes()).run(module).module
    verify(module)
    verify_casts(module)
    return module


def names(module: Module) -> list[str]:
    return [op.name for op in module.main.ops]


ADD = f'%0 = "tfl.add"(%x, %y) {{fused_activation_function = "NONE"}} : ({T}, {T}) -> {T}'
ABS = f'%0 = "tfl.abs"(%x) : ({T}) -> {T}'
LOG_SOFTMAX = f'%0 = "tfl.log_softmax"(%x) : ({T}) -> {T}'


def test_rescales_read_and_write_quantized_types() -> None:
    module = lowered(ADD)
    assert names(module) == ["tosa.rescale", "tosa.rescale", "tosa.add", "tosa.rescale"]
    assert all(value.type.quantized for value in (*module.main.inputs, *module.main.outputs))


def test_other_operators_have_casts_before_and_after() -> None:
    module = lowered(ABS)
    assert names(module)[0] == names(module)[-1] == "quant.scast"
    assert all(value.type.quantized for value in (module.main.inputs[0], module.main.outputs[0]))


@pytest.mark.parametrize("quantized", ["i8:f32, 0.5", "u8:f32, 0.5:3", "i8:f32:1, {0.5, 0.25, 0.125}"])
def test_a_backend_gets_storage_types(quantized: str) -> None:
    module = lowered(ADD, "{target-compilation-backend=true}", quantized)
    assert "quant" not in print_module(module)
    assert all(name.startswith("tosa.") for name in names(module))


def test_the_fallback_is_an_option() -> None:
    assert "tosa.exp" in names(lowered(LOG_SOFTMAX))
    with pytest.raises(UnsupportedError, match="LOG_SOFTMAX"):
        lowered(LOG_SOFTMAX, "{fallback=false}")


def test_other_ops_are_none_of_the_form() -> None:
    with pytest.raises(InvalidModelError, match="the tfl form has ops of tfl, stablehlo"):
        lowered(f'%0 = "my.op"(%x) : ({T}) -> {T}')
