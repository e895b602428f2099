"""MLIR text of TOSA that a conversion wrote is read back: the same operators as from the flatbuffer."""

from __future__ import annotations

from pathlib import Path

import pytest

import tflq
from tflq.base.errors import InvalidModelError, UnsupportedError
from tflq.ir.module import Module


def operators(module: Module) -> list[tuple[str, list[str], dict[str, str]]]:
    """Names, types and attributes of a module's operators."""
    return [
        (op.name, [str(v.type) for v in op.tensors], {key: str(value) for key, value in sorted(op.attributes.items())})
        for op in module.main.ops
    ]


@pytest.mark.parametrize("model", ["cnn_int8", "cnn_uint8", "cnn_int16x8", "log_softmax"])
def test_text_is_read_as_the_file(models: Path, tmp_path: Path, model: str) -> None:
    source = models / f"{model}.tflite"
    tflq.convert(source, tmp_path / "x.tosa")
    tflq.convert(source, tmp_path / "x.mlir")
    text, file = tflq.read(tmp_path / "x.mlir"), tflq.read(tmp_path / "x.tosa")
    assert operators(text) == operators(file)
    assert [v.name for v in text.main.inputs] == [v.name for v in file.main.inputs]
    tflq.convert(tmp_path / "x.mlir", tmp_path / "x.tflite")


ADD = """func.func @main(%x: tensor<2xi8>, %y: tensor<1xi8>) -> tensor<2xi32> {
  %m = "tosa.const"() <{values = dense<1073741824> : tensor<1xi32>}> : () -> tensor<1xi32>
  %s = "tosa.const"() <{values = dense<30> : tensor<1xi8>}> : () -> tensor<1xi8>
  %z = "tosa.const"() <{values = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
  %0 = "tosa.rescale"(%x, %m, %s, %y, %z) <{rounding_mode = #tosa.rounding_mode<SINGLE_ROUND>, scale32 = true,
      per_channel = false, input_unsigned = false, output_unsigned = false}>
      : (tensor<2xi8>, tensor<1xi32>, tensor<1xi8>, tensor<1xi8>, tensor<1xi32>) -> tensor<2xi32> loc("y")
  return %0 : tensor<2xi32>
}"""


def test_an_operand_that_must_be_a_constant(tmp_path: Path) -> None:
    (tmp_path / "add.mlir").write_text(ADD)
    with pytest.raises(InvalidModelError, match=r"add\.mlir: .*'y': the operand 'input_zp' is not a const"):
        tflq.read(tmp_path / "add.mlir")
    constant = '"tosa.const"() <{values = dense<3> : tensor<1xi8>}> : () -> tensor<1xi8>'
    module = tflq.read(
        ADD.replace("%y: tensor<1xi8>", "%unused: tensor<1xi8>").replace("%m =", f"%y = {constant}\n%m =").encode()
    )
    (op,) = module.main.ops
    assert op.attributes["input_zp"] == 3
    assert op.result.name == "y"


def test_what_the_form_has_not_is_refused() -> None:
    text = ADD.replace('"tosa.rescale"', '"tosa.scale_me"')
    with pytest.raises(UnsupportedError, match="scale_me is not an operator"):
        tflq.read(text.encode())
