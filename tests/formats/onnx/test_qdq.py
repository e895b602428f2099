"""The QDQ form: what stands between casts, with which parameters; what takes the exact form; what ONNX Runtime makes of
it beside TFLite's default kernels; and what is said of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from support.harness import argument, const, one_op
from support.on_onnx import need_onnx, run_file

import tflq
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import (
    ElementType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    f32,
    i4,
    i8,
    i16,
    i32,
    ui8,
)

MODELS = Path(__file__).resolve().parents[3] / "models"
NONE: Final = {"fused_activation_function": "NONE"}
CONV: Final = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
CASTS: Final = ("DequantizeLinear", "QuantizeLinear")
X, Y, Z = (UniformQuantizedType.of(i8, scale, zero) for scale, zero in ((0.05, -128), (0.04, 3), (0.07, -20)))


def qdq(model: bytes | Path, **options: Any) -> tuple[tflq.Conversion, Any]:
    """A conversion, and its file, which the checker accepts with all its checks."""
    import onnx

    conversion = tflq.convert(model, format="qdq", **options)
    loaded = onnx.load_from_string(conversion.data)
    onnx.checker.check_model(loaded, full_check=True)
    return conversion, loaded


def need_interpreter() -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")


def need_vnni() -> None:
    """Skips a test on a CPU whose 8-bit products saturate in ONNX Runtime."""
    said = Path("/proc/cpuinfo")
    if not said.exists() or "vnni" not in said.read_text():
        pytest.skip("needs a CPU with VNNI")


def drawn() -> np.random.Generator:
    """The same numbers whichever tests ran before."""
    return np.random.default_rng(7)


def arrays(loaded: Any) -> dict[str, np.ndarray]:
    import onnx

    return {t.name: onnx.numpy_helper.to_array(t) for t in loaded.graph.initializer}


def fused(data: bytes, folder: Path) -> Counter[str]:
    """The operators that ONNX Runtime makes of a file."""
    import onnx
    import onnxruntime as runtime

    options = runtime.SessionOptions()
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    options.log_severity_level = 3
    runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return Counter(node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node)


def convolution(x: Value, y: Value, outputs: int, activation: str = "NONE") -> Op:
    """A CONV_2D of 3x3 windows with scales per axis."""
    channels, rng = (x.type.shape or ())[-1] or 0, drawn()
    scales = np.float32(rng.uniform(0.002, 0.004, outputs))
    element: Any = x.type.element
    filters = UniformQuantizedPerAxisType.of(i8, 0, scales)
    added = UniformQuantizedPerAxisType.of(i32, 0, np.float32(element.scale) * scales)
    w = const(rng.integers(-127, 128, (outputs, 3, 3, channels)), filters, "w")
    b = const(rng.integers(-3000, 3000, outputs), added, "b")
    return Op("tfl.conv_2d", [x, w, b], [y], {**CONV, "fused_activation_function": activation}, info={"version": 3})


def file_of(inputs: Sequence[Value], results: Sequence[Value], ops: Sequence[Op]) -> bytes:
    return tflq.write(Module([Function("main", list(inputs), list(results), list(ops))]))


def residual() -> bytes:
    """Two convolutions, and the sum of their results: the first result is read twice."""
    x, first, second, y = (
        argument((1, 6, 5, n), e, name) for n, e, name in ((3, X, "x"), (4, Y, "first"), (4, Z, "second"), (4, X, "y"))
    )
    added = Op("tfl.add", [first, second], [y], dict(NONE), info={"version": 2})
    return file_of([x], [y], [convolution(x, first, 4), convolution(first, second, 4), added])


# What is written.


def test_operators_stand_between_casts_with_the_model_s_parameters() -> None:
    need_onnx()
    conversion, loaded = qdq(MODELS / "cnn_int8.tflite")
    constants = arrays(loaded)
    made = {output: node for node in loaded.graph.node for output in node.output}
    readers = [(node, name) for node in loaded.graph.node for name in node.input]
    computing = [node for node in loaded.graph.node if node.op_type not in CASTS]
    assert {"Conv", "Add", "MaxPool", "ReduceMean", "Gemm", "Softmax"} <= {node.op_type for node in computing}
    shapes = [name for node in computing if node.op_type in ("Reshape", "ReduceMean") for name in node.input[1:]]
    for node in computing:
        assert all(made[name].op_type == "DequantizeLinear" for name in node.input if name not in shapes), node.name
        assert all(reader.op_type == "QuantizeLinear" for reader, name in readers if name == node.output[0])
    source = tflq.read(MODELS / "cnn_int8.tflite").main
    convs = [node for node in computing if node.op_type == "Conv"]
    ops = [op for op in source.ops if op.name in ("tfl.conv_2d", "tfl.depthwise_conv_2d")]
    for node, op in zip(convs, ops, strict=True):
        x, weights, bias = (made[name].input for name in node.input)
        element, scales = op.operand(0).type.element, op.operand(1).type.element.scales  # type: ignore[union-attr]
        assert constants[x[1]] == np.float32(element.scale)  # type: ignore[union-attr]
        assert (constants[x[2]].dtype, int(constants[x[2]])) == (np.uint8, element.zero_point + 128)  # type: ignore[union-attr]
        assert constants[weights[0]].dtype == np.int8
        np.testing.assert_array_equal(constants[weights[1]], np.float32(scales))
        assert [(a.name, a.i) for a in made[node.input[1]].attribute] == [("axis", 0)]
        assert constants[bias[0]].dtype == np.int32
        np.testing.assert_array_equal(constants[bias[1]], np.float32(element.scale) * np.float32(scales))  # type: ignore[union-attr]
    assert conversion.format == "qdq"


@pytest.mark.parametrize("name", ["cnn_int8", "cnn_uint8"])
def test_names_types_and_shapes_of_inputs_and_outputs_stay(name: str) -> None:
    need_onnx()
    source, (_, loaded) = tflq.read(MODELS / f"{name}.tflite").main, qdq(MODELS / f"{name}.tflite")
    for values, sides in ((source.inputs, loaded.graph.input), (source.outputs, loaded.graph.output)):
        for value, side in zip(values, sides, strict=True):
            kind = side.type.tensor_type
            assert (side.name, kind.elem_type) == (value.name, {i8: 3, ui8: 2}[value.type.storage])
            assert len(kind.shape.dim) == value.type.rank


def test_a_clamp_that_the_range_does_not_imply_follows_between_casts() -> None:
    need_onnx()
    need_interpreter()
    wide = UniformQuantizedType.of(i8, 0.3, 5)
    x, y = argument((1, 6, 5, 3), X), argument((1, 6, 5, 4), wide, "y")
    model = file_of([x], [y], [convolution(x, y, 4, "RELU6")])
    _, loaded = qdq(model)
    assert [node.op_type for node in loaded.graph.node if node.op_type not in (*CASTS, "Transpose")] == ["Conv", "Clip"]
    assert tflq.verify(model, tflq.convert(model, format="qdq").data, max_lsb=1).passed
    implied = argument((1, 6, 5, 4), UniformQuantizedType.of(i8, 6 / 255, -128), "y")
    _, loaded = qdq(file_of([x], [implied], [convolution(x, implied, 4, "RELU6")]))
    assert "Clip" not in {node.op_type for node in loaded.graph.node}


@pytest.mark.parametrize("per_axis", [False, True])
def test_weights_of_4_bits_are_stored_as_int8(*, per_axis: bool) -> None:
    need_onnx()
    need_interpreter()
    scales = drawn().uniform(0.02, 0.04, 4).astype(np.float32)
    element = UniformQuantizedPerAxisType.of(i4, 0, scales) if per_axis else UniformQuantizedType.of(i4, 0.03, 0)
    numbers = drawn().integers(-7, 8, 24).astype(np.uint8) & 15
    packed = Buffer.of(numbers[::2] | numbers[1::2] << 4)
    operands = [argument((2, 6), X), Value(TensorType((4, 6), element), "w", buffer=packed), None]
    attributes = {"weights_format": "DEFAULT", "keep_num_dims": False, **NONE}
    model = one_op("tfl.fully_connected", operands, [argument((2, 4), Y, "y")], attributes, version=10)
    conversion, loaded = qdq(model)
    assert [a.dtype for a in arrays(loaded).values() if a.shape == (4, 6)] == [np.int8]
    assert tflq.verify(model, conversion.data, max_lsb=1).passed


def test_what_moves_is_stored_again() -> None:
    """A compiler finds no real tensor between two operators."""
    need_onnx()
    _, loaded = qdq(residual())
    readers = {name: node.op_type for node in loaded.graph.node for name in node.input}
    moved = [node.output[0] for node in loaded.graph.node if node.op_type == "Transpose"]
    assert moved
    assert {readers[name] for name in moved} == {"QuantizeLinear"}


# What takes the exact form, and what is refused.


def test_operators_without_a_pattern_take_the_exact_form_and_the_report_says_it() -> None:
    need_onnx()
    need_interpreter()
    x, squared, y = argument((4, 6), X), argument((4, 6), Y, "squared"), argument((4, 6), Z, "y")
    row = const(drawn().integers(-128, 128, (6,)), Y, "row")
    ops = [
        Op("tfl.squared_difference", [x, row], [squared], {}, info={"version": 2}),
        Op("tfl.mul", [squared, row], [y], dict(NONE), info={"version": 2}),
    ]
    model = file_of([x], [y], ops)
    conversion, loaded = qdq(model)
    first, second = conversion.report.rows
    assert (first.outcome, first.note.startswith("in the exact form: ")) == ("integer", True)
    assert (second.outcome, second.note) == ("kernel", "between DequantizeLinear and QuantizeLinear")
    assert conversion.report.to_json()["onnx"] == {
        "opset": 18,
        "exact_in": [],
        "remedy": None,
        "lost": [],
        "between_casts": 1,
        "exact_form": ["SQUARED_DIFFERENCE"],
    }
    assert "in the exact form SQUARED_DIFFERENCE; exact in no runtime" in str(conversion.report.requirements)
    assert "Mul" in {node.op_type for node in loaded.graph.node}
    assert tflq.verify(model, conversion.data, max_lsb=1).passed


def test_a_kernel_whose_arithmetic_wraps_is_warned_of() -> None:
    """QDQ computes what the parameters say."""
    need_onnx()
    for scales, words in (((1e9, 1e9, 1e-9), "up to 255 count(s) from the real value"), ((0.1, 0.1, 0.1), "")):
        x, row, y = (argument((2, 3), UniformQuantizedType.of(i8, s), n) for s, n in zip(scales, "xry", strict=True))
        model = one_op("tfl.mul", [x, row], [y], dict(NONE), 2)
        conversion, _ = qdq(model)
        (of_op,) = conversion.report.rows
        assert words in of_op.warning
        assert bool(of_op.warning) == bool(words) == ("exact form" in of_op.remedy)


def test_int16_takes_the_exact_form() -> None:
    """Opset 18 has no casts to int16, and what none of them is in stays exact."""
    need_onnx()
    need_interpreter()
    conversion, loaded = qdq(MODELS / "cnn_int16x8.tflite")
    assert not {node.op_type for node in loaded.graph.node} & set(CASTS)
    assert "exact in ONNX Runtime" in str(conversion.report.requirements)
    assert tflq.verify(MODELS / "cnn_int16x8.tflite", conversion.data).equal


def test_a_target_s_file_says_which_operators_stand_between_casts(tmp_path: Path) -> None:
    need_onnx()
    target = tmp_path / "npu.toml"
    target.write_text('[kernels]\nconv_2d = "qi8 qi8/axis0:0 B -> qi8; B = i32 qi32/axis:0"\n')
    conversion, loaded = qdq(residual(), target=target)
    assert [row.outcome for row in conversion.report.rows] == ["kernel", "kernel", "integer"]
    assert "QuantizeLinear" in {node.op_type for node in loaded.graph.node}
    tall = argument((1, 12, 10, 4), Y, "y")
    size = const(np.asarray([1, 12, 10, 4]), i32)
    weights = const(drawn().integers(-127, 128, (4, 2, 2, 3)), UniformQuantizedType.of(i8, 0.003, 0), "w")
    attributes = {"padding": "SAME", "stride_w": 2, "stride_h": 2, **NONE}
    model = one_op("tfl.transpose_conv", [size, weights, argument((1, 6, 5, 3), X)], [tall], attributes, version=3)
    target.write_text('[kernels]\ntranspose_conv = "i32 qi8:0 qi8 qi32:0? -> qi8"\n')
    conversion, loaded = qdq(model, target=target)
    assert [row.outcome for row in conversion.report.rows] == ["kernel"]
    (convolution,) = (node for node in loaded.graph.node if node.op_type == "ConvTranspose")
    assert convolution.input[1] in {node.output[0] for node in loaded.graph.node if node.op_type == "DequantizeLinear"}
    assert qdq(model)[0].report.counts["integer"] == 1
    options = {"radius": 1, "bias": 1.0, "alpha": 1.0, "beta": 0.5}
    model = one_op(
        "tfl.local_response_normalization", [argument((1, 2, 2, 4), X)], [argument((1, 2, 2, 4), Y, "y")], options
    )
    target.write_text('[kernels]\nlocal_response_normalization = "qi8 -> qi8"\n')
    with pytest.raises(
        tflq.UnsupportedError, match=r"the QDQ form has no pattern of tfl\.local_response_normalization"
    ):
        tflq.convert(model, format="qdq", target=target)


def test_options_of_tflite_files_are_refused() -> None:
    with pytest.raises(tflq.OptionError, match=r"mac 'float32' is for TFLite files; a \.onnx file"):
        tflq.convert(MODELS / "cnn_int8.tflite", format="qdq", mac="float32")


# What ONNX Runtime computes.


def test_tensors_that_are_read_twice_keep_their_operators_on_integers(tmp_path: Path) -> None:
    need_onnx()
    found = fused(tflq.convert(residual(), format="qdq").data, tmp_path)
    assert (found["QLinearConv"], found["QLinearAdd"]) == (2, 1)
    assert not {"Conv", "Add"} & found.keys()


@pytest.mark.parametrize("name", ["residual", "cnn_int8", "cnn_uint8"])
def test_as_the_default_kernels(name: str) -> None:
    """Up to SOFTMAX, which runtimes compute in floats of their own."""
    need_onnx()
    need_interpreter()
    need_vnni()
    source = residual() if name == "residual" else (MODELS / f"{name}.tflite").read_bytes()
    cut = [op.operand(0).name for op in tflq.read(source).main.ops if op.name == "tfl.softmax"]
    data = tflq.convert(source, format="qdq", cut=cut).data
    result = tflq.verify(source, data, resolver="default", seeds=8)
    assert {apart.largest for apart in result.outputs.values()} == {0.0}


ACTIVATIONS: Final[list[tuple[str, dict[str, Any], ElementType]]] = [
    ("tfl.logistic", {}, UniformQuantizedType.of(i8, 1 / 256, -128)),
    ("tfl.tanh", {}, UniformQuantizedType.of(i8, 1 / 128, 0)),
    ("tfl.hard_swish", {}, Z),
    ("tfl.leaky_relu", {"alpha": 0.3}, Z),
    ("tfl.relu", {}, Z),
    ("tfl.relu6", {}, Z),
    ("tfl.softmax", {"beta": 0.5}, UniformQuantizedType.of(i8, 1 / 256, -128)),
]


@pytest.mark.parametrize("row", ACTIVATIONS, ids=lambda row: row[0].removeprefix("tfl."))
def test_activations_are_within_a_count(row: tuple[str, dict[str, Any], ElementType]) -> None:
    need_onnx()
    need_interpreter()
    name, attributes, element = row
    model = one_op(name, [argument((8, 32), Y)], [argument((8, 32), element, "y")], attributes)
    _, loaded = qdq(model)
    assert sum(node.op_type not in CASTS for node in loaded.graph.node) == 1 + ("beta" in attributes)
    assert tflq.verify(model, tflq.convert(model, format="qdq").data, max_lsb=1).passed


@pytest.mark.parametrize("bilinear", [False, True], ids=["nearest", "bilinear"])
@pytest.mark.parametrize("flag", ["", "align_corners", "half_pixel_centers"])
def test_resized_images(flag: str, *, bilinear: bool) -> None:
    need_onnx()
    need_interpreter()
    name = "tfl.resize_bilinear" if bilinear else "tfl.resize_nearest_neighbor"
    operands = [argument((1, 4, 5, 3), Y), const(np.asarray([7, 11]), i32)]
    model = one_op(name, operands, [argument((1, 7, 11, 3), Y, "y")], {flag: True} if flag else {}, version=3)
    _, loaded = qdq(model)
    assert [node.op_type for node in loaded.graph.node].count("Resize") == 1
    assert tflq.verify(model, tflq.convert(model, format="qdq").data, max_lsb=1 if bilinear else 0).passed


@pytest.mark.parametrize("name", ["add", "sub"])
@pytest.mark.parametrize("seed", range(4))
def test_sums_of_all_pairs_are_those_of_the_default_kernels(seed: int, name: str) -> None:
    need_onnx()
    need_interpreter()
    rng = np.random.default_rng(seed)
    scales, zeros = rng.uniform(0.02, 0.06, 3).astype(np.float32).tolist(), rng.integers(-128, 128, 3).tolist()
    a, b, out = (UniformQuantizedType.of(i8, *pair) for pair in zip(scales, zeros, strict=True))
    x, y = np.indices((256, 256)).reshape(2, 1, -1) - 128
    operands = [argument(x.shape, a, "a"), argument(x.shape, b, "b")]
    model = one_op(f"tfl.{name}", operands, [argument(x.shape, out, "y")], NONE, version=2)
    given = {"a": x.astype(np.int8), "b": y.astype(np.int8)}
    result = tflq.verify(model, tflq.convert(model, format="qdq").data, resolver="default", inputs=given)
    assert {apart.differing for apart in result.outputs.values()} == {0}


def test_open_batches_run() -> None:
    need_onnx()
    x, y = argument((None, 6), X), argument((None, 4), Y, "y")
    weights = const(drawn().integers(-127, 128, (4, 6)), UniformQuantizedType.of(i8, 0.003, 0), "w")
    attributes = {"weights_format": "DEFAULT", "keep_num_dims": False, **NONE}
    conversion, _ = qdq(one_op("tfl.fully_connected", [x, weights, None], [y], attributes, version=4))
    for count in (1, 3):
        (made,) = run_file(conversion.data, {"x": np.zeros((count, 6), np.int8)})
        assert made.shape == (count, 4)


def test_a_padded_depthwise_convolution_of_text(tmp_path: Path) -> None:
    """PAD is an operator of its own before it; the dims that it has are Python's integers."""
    need_onnx()
    text = tmp_path / "depthwise.mlir"
    text.write_text(
        """func.func @f(%x: tensor<1x3x3x2xf32>) -> tensor<1x4x3x2xf32> {
          %w = stablehlo.constant dense<[[[[0.5, -1.0]]], [[[2.0, 0.25]]]]> : tensor<2x1x1x2xf32>
          %y = "stablehlo.convolution"(%x, %w) {
            batch_group_count = 1 : i64, feature_group_count = 2 : i64,
            dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
            padding = dense<[[2, 0], [0, 0]]> : tensor<2x2xi64>
          } : (tensor<1x3x3x2xf32>, tensor<2x1x1x2xf32>) -> tensor<1x4x3x2xf32>
          return %y : tensor<1x4x3x2xf32>
        }"""
    )
    conversion, file = qdq(text)
    x = np.random.default_rng(1).normal(size=(1, 3, 3, 2)).astype(np.float32)
    (got,) = run_file(conversion.data, {file.graph.input[0].name: x})
    rows = np.concatenate([np.zeros((1, 2, 3, 2), np.float32), x], axis=1)
    wanted = rows[:, :-1] * np.asarray([0.5, -1], np.float32) + rows[:, 1:] * np.asarray([2, 0.25], np.float32)
    np.testing.assert_allclose(got, wanted, 1e-6)
    assert [node.op_type for node in file.graph.node].count("Conv") == 1


def test_casts_of_the_model_are_casts_of_the_file() -> None:
    need_onnx()
    need_interpreter()
    x, inside, y = argument((3, 4), f32), argument((3, 4), Y, "inside"), argument((3, 4), f32, "y")
    ops = [
        Op("tfl.quantize", [x], [inside], {}, info={"version": 1}),
        Op("tfl.dequantize", [inside], [y], {}, info={"version": 2}),
    ]
    model = file_of([x], [y], ops)
    _, loaded = qdq(model)
    assert [node.op_type for node in loaded.graph.node] == ["QuantizeLinear", "DequantizeLinear"]
    assert tflq.verify(model, tflq.convert(model, format="qdq").data, atol=1e-6).passed


# What is said of a file.


def test_no_file_of_the_form_is_called_equal() -> None:
    need_onnx()
    need_interpreter()
    model = one_op("tfl.reshape", [argument((2, 3), Y), const(np.asarray([6]), i32)], [argument((6,), Y, "y")], {})
    result = tflq.verify(model, tflq.convert(model, format="qdq").data)
    assert {apart.differing for apart in result.outputs.values()} == {0}
    assert (result.verdict, bool(result), result.passed) == ("accepted", False, True)
    assert "QDQ" in result.inexact
    assert result.to_json()["inexact"] == result.inexact
    assert not tflq.verify(model, tflq.convert(model, format="onnx").data).inexact


def test_inner_tensors_are_compared_less_what_they_are_stored_at() -> None:
    need_onnx()
    need_interpreter()
    model = residual()
    result = tflq.verify(model, tflq.convert(model, format="qdq").data, layers=True, max_lsb=1)
    assert result.passed
    assert result.layers is not None
    assert result.layers.compared == 3


def test_int16_between_bytes() -> None:
    """A tensor of bytes that is none of the form's is stored as it is where the exact form reads it."""
    need_onnx()
    need_interpreter()
    wide = UniformQuantizedType.of(i16, 0.0004, 0)
    x, inside, y = argument((3, 4), X), argument((3, 4), Y, "inside"), argument((3, 4), wide, "y")
    ops = [
        Op("tfl.relu", [x], [inside], {}, info={"version": 2}),
        Op("tfl.quantize", [inside], [y], {}, info={"version": 3}),
    ]
    model = file_of([x], [y], ops)
    conversion, _ = qdq(model)
    assert [row.outcome for row in conversion.report.rows] == ["kernel", "integer"]
    assert tflq.verify(model, conversion.data, max_lsb=100).passed
