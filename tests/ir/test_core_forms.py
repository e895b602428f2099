"""Custom forms of arith, math and tensor: what MLIR prints is read, and is what the generic form says."""

from __future__ import annotations

import pytest
from support.mlir_oracle import needs_mlir, run

from tflq.base.errors import ParseError
from tflq.ir.module import difference
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify

X = "tensor<2x3x4xf32>"
PADDED = f"""%r = tensor.pad %x low[0, 1, %n] high[0, 0, 0] {{
^bb0(%i: index, %j: index, %k: index):
  tensor.yield %v : f32
}} : {X} to tensor<2x4x?xf32>"""
FORMS: dict[str, tuple[str, str]] = {
    "a question": ("%r = math.isnan %x : f32", "x: f32"),
    "a question with flags": ("%r = math.isfinite %x fastmath<nnan> : f32", "x: f32"),
    "an integer power": ("%r = math.fpowi %x, %n : f32, i32", "x: f32, n: i32"),
    "a sum with its overflow": ("%s, %o = arith.addui_extended %n, %n : i8, i1", "n: i8"),
    "a wide product": ("%s, %o = arith.mulsi_extended %n, %n : i8", "n: i8"),
    "a sum that does not wrap": ("%r = arith.addi %n, %n overflow<nsw, nuw> : i8", "n: i8"),
    "rank": (f"%r = tensor.rank %x : {X}", f"x: {X}"),
    "insert": (f"%r = tensor.insert %v into %x[%i, %i, %i] : {X}", f"v: f32, x: {X}, i: index"),
    "concat": (f"%r = tensor.concat dim(1) %x, %x : ({X}, {X}) -> tensor<2x6x4xf32>", f"x: {X}"),
    "collapse": (f"%r = tensor.collapse_shape %x [[0, 1], [2]] : {X} into tensor<6x4xf32>", f"x: {X}"),
    "expand": (
        f"%r = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [2, 3, 2, 2] : {X} into tensor<2x3x2x2xf32>",
        f"x: {X}",
    ),
    "expand an unknown dim": (
        "%r = tensor.expand_shape %x [[0, 1]] output_shape [%n, 2] : tensor<?xf32> into tensor<?x2xf32>",
        "x: tensor<?xf32>, n: index",
    ),
    "slice": (
        f"%r = tensor.extract_slice %x[0, %i, 1] [1, 2, %n] [1, 1, 1] : {X} to tensor<2x?xf32>",
        f"x: {X}, i: index, n: index",
    ),
    "insert a slice": (
        f"%r = tensor.insert_slice %y into %x[0, 0, 1] [2, 3, 2] [1, 1, 2] : tensor<2x3x2xf32> into {X}",
        f"x: {X}, y: tensor<2x3x2xf32>",
    ),
    "generate": (
        "%r = tensor.generate %n {\n^bb0(%i: index):\ntensor.yield %i : index\n} : tensor<?xindex>",
        "n: index",
    ),
    "pad": (
        PADDED,
        f"x: {X}, v: f32, n: index",
    ),
}


def text(name: str) -> str:
    line, arguments = FORMS[name]
    given = ", ".join(f"%{a}" for a in arguments.split(", "))
    return f"func.func @f({given}) {{\n{line}\nreturn\n}}"


@pytest.mark.parametrize("name", sorted(FORMS))
def test_the_custom_form_is_read_and_the_generic_form_gives_it_back(name: str) -> None:
    module = parse_module(text(name))
    verify(module)
    assert len(module.main.ops) == 1
    assert difference(module, parse_module(print_module(module))) is None


@needs_mlir
def test_mlir_reads_what_is_printed_and_prints_what_is_read() -> None:
    modules = [parse_module(text(name)) for name in FORMS]
    for module, theirs in zip(modules, run([print_module(m) for m in modules]), strict=True):
        again = parse_module(theirs)
        verify(again)
        names = [(op.name, [v.type for v in op.tensors]) for op in module.main.ops]
        assert [(op.name, [v.type for v in op.tensors]) for op in again.main.ops] == names


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("%r = tensor.insert %v %x[] : tensor<f32>", "expected 'into'"),
        ("%r = tensor.collapse_shape %x [[0]] : tensor<f32> tensor<f32>", "expected 'into'"),
    ],
)
def test_a_word_that_is_missing(line: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse_module(f"func.func @f(%x: tensor<f32>, %v: f32) {{\n{line}\nreturn\n}}")
