"""MLIR text: read and found valid by tosa-opt, what it serializes of it runs as our evaluator, and IREE loads it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.counting import calls
from support.one_op import CASES, arg, inputs_of, module
from support.running import tosa_opt, valid

from tflq.analysis.evaluate.registry import Run, evaluate_function
from tflq.formats.tosa.check import check
from tflq.formats.tosa.lowering.context import TosaBuilder
from tflq.formats.tosa.rules import Target
from tflq.formats.tosa.text import elements, mlir_text
from tflq.ir.attributes import TypedArray, TypedFloat
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Value, constant
from tflq.ir.text.parser import parse_module
from tflq.ir.text.print_types import LISTED, AttributePrinter, TypePrinter
from tflq.ir.types import SCALARS, ScalarType, TensorType, UniformQuantizedType, i1, i4, i8, i32, i64, named_scalar, ui8

f32 = SCALARS["f32"]


@pytest.mark.parametrize("name", CASES)
def test_valid_and_computes_the_same(name: str, tmp_path: Path) -> None:
    tool = pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
    made, file = CASES[name](), tmp_path / "model.tosa"
    needs = check(made, Target())
    step = f"--tosa-serialize=tosa-flatbuffer-filename={file} retain-graph-input-output-names"
    assert valid(mlir_text(made), needs.profiles, needs.extensions, tmp_path, step)
    inputs = inputs_of(made)
    outputs, status = tool.run(file.read_bytes(), inputs)
    assert status.name == "TOSA_VALID"
    found = evaluate_function(made.main, dict(zip(made.main.inputs, inputs, strict=True)), Run(made))
    for value, output in zip(made.main.outputs, outputs, strict=True):
        expected = value.array if value.is_constant else found[value]
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(output, expected, rtol=1e-5)
        else:
            np.testing.assert_array_equal(output.view(expected.dtype), expected)


def iree() -> str:
    return shutil.which("iree-compile") or pytest.skip("needs iree-compile: pip install iree-base-compiler")


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"transpose_conv2d i4", "transpose_conv2d i16"}))
def test_iree_loads_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(mlir_text(CASES[name]()))
    run = subprocess.run(
        [iree(), "--compile-to=input", str(path), "-o", "/dev/null"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[:1000]


def test_function() -> None:
    b = TosaBuilder()
    x = Value(TensorType((1, 2), ui8), 'in "put"', info={"quantized": UniformQuantizedType(ui8, f32, 0.5, 3, 0, 255)})
    inner = b.rescale(x, (1 << 30, 1), i8, input_zp=128, rounding_mode="SINGLE_ROUND")
    inner.name = "inner"
    made = module(b, [x], b.identity(inner))
    assert mlir_text(made).splitlines() == [
        "// TOSA 1.0, level 8k: valid for the integer profile",
        "module {",
        "  // argument 0: !quant.uniform<u8:f32, 0.5:3>, unsigned",
        (
            r'  func.func @main(%arg0: tensor<1x2xi8> {tosa.tensor_name = "in \22put\22"}) -> (tensor<1x2xi8> '
            '{tosa.tensor_name = "out0"}) {'
        ),
        '    %0 = "tosa.const"() <{values = dense<[1073741824]> : tensor<1xi32>}> : () -> tensor<1xi32>',
        '    %1 = "tosa.const"() <{values = dense<[30]> : tensor<1xi8>}> : () -> tensor<1xi8>',
        '    %2 = "tosa.const"() <{values = dense<[-128]> : tensor<1xi8>}> : () -> tensor<1xi8>',
        '    %3 = "tosa.const"() <{values = dense<[0]> : tensor<1xi8>}> : () -> tensor<1xi8>',
        (
            '    %4 = "tosa.rescale"(%arg0, %0, %1, %2, %3) <{rounding_mode = #tosa.rounding_mode<SINGLE_ROUND>, '
            "scale32 = true, per_channel = false, input_unsigned = true, output_unsigned = false}> : "
            "(tensor<1x2xi8>, tensor<1xi32>, tensor<1xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x2xi8> "
            'loc("inner")'
        ),
        '    %5 = "tosa.identity"(%4) : (tensor<1x2xi8>) -> tensor<1x2xi8> loc("out0")',
        "    return %5 : tensor<1x2xi8>",
        "  }",
        "}",
    ]


def test_what_a_module_needs_is_its_attribute() -> None:
    head = mlir_text(CASES["rescale double"]()).splitlines()[1]
    assert head == (
        "module attributes {tosa.target_env = #tosa.target_env<specification_version = "
        '"1.0", level = "8k", profiles = [pro_int], extensions = [doubleround]>} {'
    )


def entry(element: str) -> Function:
    b = TosaBuilder()
    x = arg((2,), SCALARS[element])
    return Function("f", [x], [b.identity(x)], b.ops)


def test_entry_points(tmp_path: Path) -> None:
    functions = [entry("i8"), entry("f32"), entry("i16")]
    signatures = [Signature("serve it", 0, None, None), Signature("2nd", 2, None, None)]
    made = Module(functions, signatures)
    text = mlir_text(made)
    assert text.count("func.func @") == 2
    assert "@serve_it(%arg0: tensor<2xi8>" in text
    assert "@_2nd(%arg0: tensor<2xi16>" in text
    assert valid(text, ["pro_int"], [], tmp_path)
    alone = mlir_text(made, function=2)
    assert alone.count("func.func @") == 1
    assert "@_2nd(" in alone


def test_dims_that_are_not_known(tmp_path: Path) -> None:
    b = TosaBuilder()
    x = Value(TensorType((None, 4), i8), "in")
    y = b.slice(b.reshape(x, (None, 2, 2)), (0, 1, 0), (None, 1, 2))
    text = mlir_text(Module([Function("main", [x], [y], b.ops)]))
    assert "tensor<?x2x2xi8>" in text
    path = tmp_path / "open.mlir"
    path.write_text(text)
    subprocess.run([tosa_opt(), str(path), "-o", "/dev/null"], check=True, capture_output=True)
    compiler = shutil.which("iree-compile")
    if compiler is not None:
        subprocess.run([compiler, "--compile-to=input", str(path), "-o", "/dev/null"], check=True, capture_output=True)


TEXT = AttributePrinter(TypePrinter(aliases=False), standard=True).text


def dense(array: np.ndarray, element: ScalarType | None) -> str:
    assert element is not None
    return TEXT(TypedArray.of(array, element, TensorType(array.shape, element)))


def value_text(array: np.ndarray) -> str:
    return TEXT(elements(constant(array)))


def test_literals() -> None:
    assert TEXT('a"b\\c\né') == r'"a\22b\5Cc\0A\C3\A9"'
    assert TEXT(TypedFloat(1.5, f32)) == "0x3FC00000 : f32"
    assert TEXT(TypedFloat(1.5, SCALARS["bf16"])) == "0x3FC0 : bf16"
    assert value_text(np.zeros((2, 3), np.int8)) == "dense<0> : tensor<2x3xi8>"
    assert value_text(np.array([[1, -2]], np.int64)) == "dense<[[1, -2]]> : tensor<1x2xi48>"
    assert value_text(np.array([True, False])) == "dense<[true, false]> : tensor<2xi1>"
    assert value_text(np.array([0.0, -0.0], np.float32)).startswith("dense<[0.00000000e+00, -0.000")
    assert value_text(np.array([np.inf, 1], np.float32)).startswith("dense<[0x7F800000, 0x3F800000]>")
    assert value_text(np.array([[np.inf, np.inf]], np.float32)) == "dense<0x7F800000> : tensor<1x2xf32>"
    many = np.arange(20)
    assert dense(many.astype(np.int16), SCALARS["i16"]).startswith('dense<"0x000001000200')
    assert value_text(many).startswith('dense<"0x000000000000010000000000')
    assert "true" in dense((many % 2).astype(bool), i1)
    assert dense(many.astype(np.int8) % 8, i4).startswith('dense<"0x0001020304050607')
    assert dense(many[:0], SCALARS["index"]) == "dense<[]> : tensor<0xindex>"
    with pytest.raises(ValueError, match="does not fit i48"):
        value_text(many << 45)


def test_clamp_of_48_bits() -> None:
    b = TosaBuilder()
    x = arg((2,), i64)
    assert "min_val = -3 : i48" in mlir_text(module(b, [x], b.clamp(x, -3, 5)))


@pytest.mark.parametrize("element", ["i4", "i8", "i16", "i64", "f32", "f16", "i1"])
def test_constants_of_every_size(element: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listed and in hexadecimal, they are the same to tosa-opt."""
    type = SCALARS[element] if element != "i64" else named_scalar("i48")
    assert type is not None
    array = np.random.default_rng(0).integers(-7, 7, 40).astype(type.dtype)
    texts = [dense(array, type)]
    monkeypatch.setattr("tflq.ir.text.print_types.LISTED", 40)
    texts.append(dense(array, type))
    assert LISTED < 40
    assert texts[1].startswith("dense<[")
    lines = [f'"tosa.const"() <{{values = {t}}}> : () -> tensor<40x{type}>' for t in texts]
    path = tmp_path / "constants.mlir"
    path.write_text("\n".join(lines))
    run = subprocess.run([tosa_opt(), str(path)], capture_output=True, text=True, check=True)
    shown = [line.split("values = ")[1] for line in run.stdout.splitlines() if "values" in line]
    assert len(shown) == 2
    assert shown[0] == shown[1]


def test_a_large_constant_is_text_in_large_pieces() -> None:
    b = TosaBuilder()
    x = arg((1, 10), i32)
    large = constant(np.random.default_rng(0).integers(-100, 100, (1 << 16, 10), np.int32))
    made = module(b, [x], b.add(x, large))
    assert len(mlir_text(made)) > 80 << 16
    assert calls(lambda: mlir_text(made)) < 5000


def test_elements_of_unsigned_constants_are_those_of_signless_types() -> None:
    b = TosaBuilder()
    module = Module([Function("f", [], [b.identity(constant(np.array([0, 255], np.uint8), ui8))], b.ops)])
    text = mlir_text(module)
    assert "dense<[0, -1]> : tensor<2xi8>" in text
    (value,) = parse_module(text).main.ops[0].operands
    assert value is not None
    assert value.array.tolist() == [0, -1]
