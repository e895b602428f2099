"""Options of a text are those that a file can hold."""

from __future__ import annotations

import numpy as np
import pytest

import tflq

VECTOR = "tensor<3x!quant.uniform<i8:f32, 0.5>>"


def read(op: str, attributes: str, result: str = VECTOR) -> tflq.Module:
    line = f'%0 = "{op}"(%a) {{{attributes}}} : ({VECTOR}) -> {result}'
    return tflq.read(f"func.func @main(%a: {VECTOR}) -> {result} {{\n{line}\nreturn %0 : {result}\n}}\n".encode())


@pytest.mark.parametrize(("stated", "stored"), [("0.1", float(np.float32(0.1))), ("1", 1.0)])
def test_a_float_of_a_text_is_that_of_the_file(stated: str, stored: float) -> None:
    module = read("tfl.leaky_relu", f"alpha = {stated}")
    attributes = [op.attributes for m in (module, tflq.read(tflq.write(module))) for op in m.ops()]
    assert attributes == [{"alpha": stored}] * 2
    assert all(type(each["alpha"]) is float for each in attributes)


def test_floats_of_a_text_are_those_of_the_file() -> None:
    module = read("tfl.bucketize", "boundaries = [0.1, 1]", "tensor<3xi32>")
    attributes = [op.attributes for m in (module, tflq.read(tflq.write(module))) for op in m.ops()]
    assert attributes == [{"boundaries": (float(np.float32(0.1)), 1.0)}] * 2


def test_an_option_that_no_file_holds_is_not_written() -> None:
    module = read("tfl.leaky_relu", "alpha = 0.5")
    for value in (None, 1e60, "x"):
        next(iter(module.ops())).attributes["alpha"] = value
        with pytest.raises(tflq.VerificationError, match="cannot be written"):
            tflq.write(module)
