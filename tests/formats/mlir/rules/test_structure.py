"""Functions, loops, tensors and casts of the core dialects as files: the interpreter gives what the evaluator gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.core_ops import of_text
from support.harness import interpret

import tflq
from tflq.base.errors import UnsupportedError
from tflq.formats.tflite import reader
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.tools.opt import parse_pipeline


def compare(text: str, *arrays: np.ndarray) -> list[np.ndarray]:
    (found,) = interpret(tflq.convert(text.encode()).data, [[np.asarray(a) for a in arrays]])
    wanted = of_text(text, *arrays)
    for made, expected in zip(found, wanted, strict=True):
        assert made.dtype == expected.dtype
        assert np.array_equal(made, expected)
    return found


MODEL = Path(__file__).parents[4] / "models" / "cnn_int8.tflite"
X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
BYTES = np.random.default_rng(1).integers(-128, 128, (4, 6)).astype(np.int8)

LOOPS = {
    "transposed": """
      %e = tensor.empty() : tensor<6x4xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xf32>) outs(%e : tensor<6x4xf32>) {
        ^bb0(%a: f32, %o: f32):
          %n = arith.negf %a : f32
          linalg.yield %n : f32
      } -> tensor<6x4xf32>
      return %r : tensor<6x4xf32>""",
    "written transposed, of a number": """
      %e = tensor.empty() : tensor<6x4xf32>
      %k = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>,
        affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]}
        ins(%k, %x : tensor<6xf32>, tensor<4x6xf32>) outs(%e : tensor<6x4xf32>) {
        ^bb0(%a: f32, %b: f32, %o: f32):
          %n = arith.addf %a, %b : f32
          linalg.yield %n : f32
      } -> tensor<6x4xf32>
      return %r : tensor<6x4xf32>""",
    "by blocks, with places": """
      %e = tensor.empty() : tensor<4x6xf32>
      %s = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
        affine_map<(i, j) -> (i floordiv 2, j floordiv 3)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]}
        ins(%x, %s : tensor<4x6xf32>, tensor<2x2xf32>) outs(%e : tensor<4x6xf32>) {
        ^bb0(%a: f32, %b: f32, %o: f32):
          %i = linalg.index 1 : index
          %n = arith.index_cast %i : index to i32
          %f = arith.sitofp %n : i32 to f32
          %p = arith.mulf %a, %b : f32
          %t = arith.addf %p, %f : f32
          linalg.yield %t : f32
      } -> tensor<4x6xf32>
      return %r : tensor<4x6xf32>""",
    "with what the result begins as": """
      %e = arith.constant dense<2.5> : tensor<4x6xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
        ^bb0(%a: f32, %o: f32):
          %n = arith.mulf %a, %o : f32
          linalg.yield %n : f32
      } -> tensor<4x6xf32>
      return %r : tensor<4x6xf32>""",
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops(name: str) -> None:
    result = LOOPS[name].rsplit(": ", 1)[1]
    compare(f"func.func @f(%x: tensor<4x6xf32>) -> {result} {{{LOOPS[name]}\n}}", X)


def test_scalars_and_indices_at_the_edges() -> None:
    text = """func.func @f(%x: f32, %i: index) -> (f32, index, i8) {
      %two = arith.constant 2.0 : f32
      %y = arith.mulf %x, %two : f32
      %one = arith.constant 1 : index
      %j = arith.addi %i, %one : index
      %n = arith.fptosi %y : f32 to i8
      return %y, %j, %n : f32, index, i8
    }"""
    found = compare(text, np.asarray(3.5, np.float32), np.asarray(41, np.int64))
    assert [a.tolist() for a in found] == [7.0, 42, 7]


@pytest.mark.parametrize("kind", ["f32", "i8", "i32"])
def test_a_number_returned_as_a_whole_tensor(kind: str) -> None:
    type = f"tensor<4x3x{kind}>"
    text = f"func.func @f(%a: {kind}) -> {type} {{\n  %0 = tensor.splat %a : {type}\n  return %0 : {type}\n}}"
    compare(text, np.asarray(3, {"f32": np.float32, "i8": np.int8, "i32": np.int32}[kind]))


def test_tensors_and_their_parts() -> None:
    text = """func.func @f(%x: tensor<4x6xi8>, %i: index)
        -> (tensor<24xi8>, tensor<4x2x3xi8>, tensor<2x3xi8>, tensor<8x6xi8>, i8, tensor<2xi8>, tensor<4xi8>) {
      %c = tensor.collapse_shape %x [[0, 1]] : tensor<4x6xi8> into tensor<24xi8>
      %e = tensor.expand_shape %x [[0], [1, 2]] output_shape [4, 2, 3] : tensor<4x6xi8> into tensor<4x2x3xi8>
      %s = tensor.extract_slice %x[1, 0] [2, 3] [2, 2] : tensor<4x6xi8> to tensor<2x3xi8>
      %d = tensor.concat dim(0) %x, %x : (tensor<4x6xi8>, tensor<4x6xi8>) -> tensor<8x6xi8>
      %one = arith.constant 1 : index
      %v = tensor.extract %x[%one, %i] : tensor<4x6xi8>
      %t = arith.constant 7 : i8
      %p = tensor.from_elements %v, %t : tensor<2xi8>
      %row = tensor.extract_slice %x[0, 1] [4, 1] [1, 1] : tensor<4x6xi8> to tensor<4xi8>
      return %c, %e, %s, %d, %v, %p, %row
        : tensor<24xi8>, tensor<4x2x3xi8>, tensor<2x3xi8>, tensor<8x6xi8>, i8, tensor<2xi8>, tensor<4xi8>
    }"""
    compare(text, BYTES, np.asarray(4, np.int64))


def test_calls_become_what_they_call() -> None:
    text = """func.func @main(%x: tensor<4x6xi8>) -> (tensor<4x6xi8>, tensor<4x6xi8>) {
      %a = func.call @twice(%x) : (tensor<4x6xi8>) -> tensor<4x6xi8>
      %g = func.constant @shared : (tensor<4x6xi8>) -> tensor<4x6xi8>
      %b = func.call_indirect %g(%a) : (tensor<4x6xi8>) -> tensor<4x6xi8>
      return %a, %b : tensor<4x6xi8>, tensor<4x6xi8>
    }
    func.func private @twice(%x: tensor<4x6xi8>) -> tensor<4x6xi8> {
      %y = func.call @shared(%x) : (tensor<4x6xi8>) -> tensor<4x6xi8>
      %z = func.call @shared(%y) : (tensor<4x6xi8>) -> tensor<4x6xi8>
      return %z : tensor<4x6xi8>
    }
    func.func @shared(%x: tensor<4x6xi8>) -> tensor<4x6xi8> {
      %k = arith.constant dense<3> : tensor<4x6xi8>
      %y = arith.muli %x, %k : tensor<4x6xi8>
      return %y : tensor<4x6xi8>
    }
    func.func private @unused(tensor<4x6xi8>) -> tensor<4x6xi8>"""
    compare(text, BYTES)
    functions = reader.read(tflq.convert(text.encode()).data).functions
    assert [f.name for f in functions] == ["main", "shared"]


REFUSED = {
    "@g is declared without a body; define it": (
        "func.func private @g(i8) -> i8\nfunc.func @f(%x: i8) -> i8 {\n"
        "%y = func.call @g(%x) : (i8) -> i8\nreturn %y : i8\n}"
    ),
    "@f calls itself": "func.func @f(%x: i8) -> i8 {\n%y = func.call @f(%x) : (i8) -> i8\nreturn %y : i8\n}",
    "is unranked, and a file's inputs": (
        "func.func @f(%x: tensor<*xf32>) -> tensor<*xf32> {\n%y = math.absf %x : tensor<*xf32>\n"
        "return %y : tensor<*xf32>\n}"
    ),
    "it is undefined: a divisor is 0": (
        "func.func @f() -> i8 {\n%a = arith.constant 1 : i8\n%b = arith.constant 0 : i8\n"
        "%y = arith.divsi %a, %b : i8\nreturn %y : i8\n}"
    ),
    "run the pass that lowers ml first": (
        "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {\n%z = arith.negf %x : tensor<2xf32>\n"
        '%y = "ml.add"(%z, %z) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\nreturn %y : tensor<2xf32>\n}'
    ),
    "no builtin reduces in the order of its points": (
        "func.func @f(%x: tensor<5xf32>, %o: tensor<f32>) -> tensor<f32> {\n%r = linalg.generic {indexing_maps = "
        '[affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%x : tensor<5xf32>) '
        "outs(%o : tensor<f32>) {\n^bb0(%a: f32, %b: f32):\n%s = arith.addf %a, %b : f32\nlinalg.yield %s : f32\n} "
        "-> tensor<f32>\nreturn %r : tensor<f32>\n}"
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_no_file_can_hold_is_refused(reason: str) -> None:
    with pytest.raises((UnsupportedError, tflq.InvalidModelError), match=reason):
        tflq.convert(REFUSED[reason].encode())


@pytest.mark.parametrize("rows", [1, 5])
def test_casts_written_out_on_an_unknown_dim(rows: int) -> None:
    kind = "tensor<?x3x!quant.uniform<u8:f32, 0.1:128>>"
    body = f"%0 = quant.qcast %x : tensor<?x3xf32> to {kind}\nreturn %0 : {kind}"
    text = f"func.func @f(%x: tensor<?x3xf32>) -> {kind} {{\n{body}\n}}"
    module = parse_module(text)
    parse_pipeline("lower-quant-ops{rounding=half_even},strip-func-quant-types,canonicalize,dce").run(module)
    x = np.random.default_rng(rows).normal(size=(rows, 3)).astype(np.float32) * 10
    ((found,),) = interpret(tflq.convert(print_module(module).encode()).data, [[x]])
    assert np.array_equal(found.view(np.uint8), np.clip(np.rint(x / np.float32(0.1)) + 128, 0, 255))


def test_casts_between_unsigned_storage_and_integers() -> None:
    """quant.scast gives and takes signless integers: the same bits."""
    kind = "tensor<4x6x!quant.uniform<u8:f32, 0.1:128>>"
    text = f"""func.func @f(%x: {kind}) -> ({kind}, tensor<4x6xi8>) {{
      %0 = quant.scast %x : {kind} to tensor<4x6xi8>
      %1 = arith.addi %0, %0 : tensor<4x6xi8>
      %2 = quant.scast %1 : tensor<4x6xi8> to {kind}
      return %2, %1 : {kind}, tensor<4x6xi8>
    }}"""
    x = BYTES.view(np.uint8)
    data = tflq.convert(text.encode()).data
    ((quantized, plain),) = interpret(data, [[x]])
    assert np.array_equal(quantized, x + x)
    assert np.array_equal(plain, (x + x).view(np.int8))
    assert all(v.type.quantized for v in reader.read(data).main.inputs)


def test_mixed_with_quantized_operators_of_tflite() -> None:
    kind = "tensor<4x6x!quant.uniform<i8:f32, 0.5:3>>"
    text = f"""func.func @f(%x: {kind}) -> {kind} {{
      %0 = "tfl.add"(%x, %x) {{fused_activation_function = "NONE"}} : ({kind}, {kind}) -> {kind}
      %1 = quant.dcast %0 : {kind} to tensor<4x6xf32>
      %2 = math.absf %1 : tensor<4x6xf32>
      %3 = quant.qcast %2 : tensor<4x6xf32> to {kind}
      return %3 : {kind}
    }}"""
    ((found,),) = interpret(tflq.convert(text.encode()).data, [[BYTES]])
    doubled = np.clip(2 * (BYTES.astype(int) - 3) + 3, -128, 127)
    assert np.array_equal(found, np.clip(np.abs(doubled - 3) + 3, -128, 127))


def test_integers_go_to_tosa_too() -> None:
    from support.running import reference

    from tflq.formats.sources import read

    text = """func.func @f(%x: tensor<4x6xi8>) -> tensor<4x6xi8> {
      %k = arith.constant dense<3> : tensor<4x6xi8>
      %y = arith.muli %x, %k : tensor<4x6xi8>
      %z = arith.maxsi %y, %x : tensor<4x6xi8>
      return %z : tensor<4x6xi8>
    }"""
    data = tflq.convert(text.encode(), format="tosa").data
    (found,) = reference(read(data), [BYTES])
    assert np.array_equal(found, of_text(text, BYTES)[0])


def test_a_conversion_of_a_file_imports_nothing_of_this() -> None:
    """Text alone has these dialects, and files must not wait for them."""
    script = (
        "import sys, tflq\n"
        f"tflq.convert({str(MODEL)!r})\n"
        "names = ('dialects.core', 'dialects.constraints', 'legalize.core', 'evaluate.core')\n"
        "print([m for m in sys.modules if m.startswith(tuple('tflq.' + n for n in names))])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_functions_that_operators_run_by_number_stay() -> None:
    text = """func.func private @none(tensor<i32>) -> tensor<i32>
    func.func @main(%x: tensor<i32>) -> tensor<i32> {
      %r = "tfl.while"(%x) {cond_subgraph_index = 2, body_subgraph_index = 3} : (tensor<i32>) -> tensor<i32>
      %n = func.call @twice(%r) : (tensor<i32>) -> tensor<i32>
      return %n : tensor<i32>
    }
    func.func private @below(%x: tensor<i32>) -> tensor<i1> {
      %k = arith.constant dense<100> : tensor<i32>
      %c = arith.cmpi slt, %x, %k : tensor<i32>
      return %c : tensor<i1>
    }
    func.func private @twice(%x: tensor<i32>) -> tensor<i32> {
      %y = arith.addi %x, %x : tensor<i32>
      return %y : tensor<i32>
    }"""
    ((found,),) = interpret(tflq.convert(text.encode()).data, [[np.asarray(7, np.int32)]])
    assert found == 7 * 16 * 2


def test_bounds_of_operands_leave_guards_out() -> None:
    """Of what int8 expresses, no sum or product is infinite: nothing looks for that."""
    body = """%f = arith.sitofp %x : tensor<4x6xi8> to tensor<4x6xf32>
      %k = arith.constant dense<0.25> : tensor<4x6xf32>
      %p = arith.mulf %f, %k : tensor<4x6xf32>
      %s = arith.addf %p, %f : tensor<4x6xf32>
      %q = arith.divf %s, %k : tensor<4x6xf32>
      %m = arith.maximumf %q, %k : tensor<4x6xf32>"""
    text = f"func.func @f(%x: tensor<4x6xi8>) -> tensor<4x6xf32> {{\n{body}\n  return %m : tensor<4x6xf32>\n}}"
    compare(text, BYTES)
    made = reader.read(tflq.convert(text.encode()).data)
    assert [op.name for op in made.main.ops] == ["tfl.cast", "tfl.mul", "tfl.add", "tfl.div", "tfl.maximum"]


def test_the_report_has_a_row_for_each_op_of_the_text() -> None:
    text = """func.func @f(%x: tensor<4x6xf32>) -> tensor<4x6xi8> {
      %r = math.roundeven %x : tensor<4x6xf32>
      %n = arith.fptosi %r : tensor<4x6xf32> to tensor<4x6xi8>
      return %n : tensor<4x6xi8>
    }"""
    rows = tflq.convert(text.encode()).report.rows
    assert [row.opcode for row in rows] == ["MATH.ROUNDEVEN", "ARITH.FPTOSI"]
    assert all(row.emitted > 1 for row in rows)
