"""Signatures name the results that the converted functions give."""

from __future__ import annotations

from support.harness import argument

import tflq
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op
from tflq.ir.types import UniformQuantizedType, f32, i8


def test_a_signature_names_the_float_result_that_is_made() -> None:
    x, y = argument((2, 3), UniformQuantizedType.of(i8, 0.5, 3), "x"), argument((2, 3), f32, "y")
    module = Module([Function("main", [x], [y], [Op("tfl.dequantize", [x], [y])])])
    module.signatures = [Signature("serve", 0, [("x", x)], [("y", y)])]
    read = tflq.read(tflq.convert(bytes(write(module))).data)
    assert read.signatures is not None
    (signature,) = read.signatures
    assert signature.outputs == [("y", read.main.outputs[0])]
