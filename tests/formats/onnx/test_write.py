"""Files: names, types and dims of inputs and outputs, metadata, constants; what is refused, all at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, one_op
from support.on_onnx import file_of, need_onnx, run_file

import tflq
from tflq.formats.onnx.engine import OPSET, lower
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import (
    ScalarType,
    TensorType,
    UniformQuantizedType,
    bf16,
    f16,
    f32,
    i1,
    i4,
    i8,
    i32,
    string,
    ui16,
    ui32,
    ui64,
)

MODELS = Path(__file__).resolve().parents[3] / "models"
Q = UniformQuantizedType.of(i8, 0.1, 3)


def loaded(data: bytes) -> Any:
    import onnx

    return onnx.load_from_string(data)


def metadata(model: Any) -> dict[str, Any]:
    return {prop.key: json.loads(prop.value) for prop in model.metadata_props}


def test_names_types_shapes_and_scales_stay() -> None:
    need_onnx()
    import onnx

    source = tflq.read(MODELS / "cnn_int8.tflite").main
    model = loaded(tflq.convert(MODELS / "cnn_int8.tflite", format="onnx").data)
    onnx.checker.check_model(model, full_check=True)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", OPSET)]
    for values, sides in ((source.inputs, model.graph.input), (source.outputs, model.graph.output)):
        assert [v.name for v in values] == [side.name for side in sides]
        for value, side in zip(values, sides, strict=True):
            kind = side.type.tensor_type
            assert kind.elem_type == onnx.TensorProto.INT8
            dims = [d.dim_param or d.dim_value for d in kind.shape.dim]
            assert dims == ["batch" if d is None else d for d in value.type.shape or ()]
            said = metadata(model)["tflq.quantization"][value.name]
            element: Any = value.type.element
            assert said == {"scale": [element.scale], "zero_point": [element.zero_point]}


def test_weights_are_stored_as_bytes_and_cast() -> None:
    need_onnx()
    import onnx

    model = loaded(tflq.convert(MODELS / "cnn_int8.tflite", format="onnx").data)
    large = [t for t in model.graph.initializer if len(t.dims) == 4 and np.prod(t.dims) >= 64]
    assert large
    assert {t.data_type for t in large} == {onnx.TensorProto.INT8}


def test_each_signature_has_a_file() -> None:
    need_onnx()
    files = tflq.convert(MODELS / "two_signatures.tflite", format="onnx").files
    assert len(files) == 2
    assert all(loaded(data).graph.node for data in files.values())


def test_an_open_batch_is_a_named_dim() -> None:
    need_onnx()
    x, y = (Value(TensorType((None, 4), i32), name) for name in ("x", "y"))
    model = loaded(file_of(Module([Function("main", [x], [y], [Op("tosa.abs", [x], [y])])])))
    for side in (*model.graph.input, *model.graph.output):
        assert [d.dim_param or d.dim_value for d in side.type.tensor_type.shape.dim] == ["batch", 4]


def test_names_that_are_there_twice_are_told_apart() -> None:
    need_onnx()
    x, twice, y = (Value(TensorType((4,), i32), name) for name in ("same", "same", "y"))
    ops = [Op("tosa.add", [x, twice], [y])]
    names = [v.name for v in loaded(file_of(Module([Function("main", [x, twice], [y], ops)]))).graph.input]
    assert names[0] == "same"
    assert len(set(names)) == 2


def test_all_that_has_no_form_is_refused_at_once() -> None:
    need_onnx()
    x, y, z = (Value(TensorType((2, 3), f32), name) for name in ("x", "y", "z"))
    ops = [Op("tfl.atan2", [x, x], [y]), Op("tfl.local_response_normalization", [y], [z])]
    with pytest.raises(tflq.UnsupportedError) as refused:
        file_of(Module([Function("main", [x], [z], ops)]))
    assert "tfl.atan2" in str(refused.value)
    assert "tfl.local_response_normalization" in str(refused.value)


def test_a_custom_operator_is_refused_by_its_name() -> None:
    need_onnx()
    x, y = (Value(TensorType((2,), f32), name) for name in ("x", "y"))
    ops = [Op("tfl.custom", [x], [y], {"custom_code": "Mine"})]
    with pytest.raises(tflq.UnsupportedError, match="custom operator 'Mine'"):
        file_of(Module([Function("main", [x], [y], ops)]))


def test_an_entry_without_outputs_is_refused() -> None:
    """ONNX Runtime does not load one."""
    need_onnx()
    with pytest.raises(tflq.UnsupportedError, match="without outputs"):
        file_of(Module([Function("main", [argument((2,), f32)], [], [])]))


@pytest.mark.parametrize("element", [string, bf16, f16, i4], ids=str)
def test_tensors_of_types_that_onnx_has_not_are_refused(element: ScalarType) -> None:
    """As an input, a constant and a result."""
    said = f"is {element}, which has no form in ONNX"
    x, y = argument((2, 3), element), argument((3, 2), element, "y")
    with pytest.raises(tflq.UnsupportedError, match=f"input 'x' {said}"):
        lower(Module([Function("main", [x], [y], [Op("tfl.reshape", [x, const(np.asarray([3, 2]), i32)], [y])])]))
    if element == i4:
        return  # held in wider integers
    a, made = argument((2, 3), f32, "a"), argument((2, 3), element, "made")
    with pytest.raises(tflq.UnsupportedError, match=f"'made' {said}"):
        lower(Module([Function("main", [a], [made], [Op("tfl.cast", [a], [made])])]))
    stored = Value(x.type, "stored", buffer=Buffer(np.zeros(12, np.uint8)))
    z = argument((2, 3), i1, "z")
    if not element.numpy:
        with pytest.raises(tflq.UnsupportedError, match=f"'stored' {said}"):
            lower(Module([Function("main", [], [z], [Op("tfl.equal", [stored, stored], [z])])]))


def test_what_no_operator_of_onnx_takes_is_refused_with_its_place() -> None:
    """Operands whose types differ, and an axis of floats."""
    a, b, y = argument((2, 3), f32, "a"), argument((3, 4), i32, "b"), argument((2, 4), f32, "y")
    with pytest.raises(tflq.UnsupportedError, match="'b' is plain i32 among real numbers"):
        lower(Module([Function("main", [a, b], [y], [Op("tfl.batch_matmul", [a, b], [y])])]))
    total = argument((2,), f32, "total")
    with pytest.raises(tflq.UnsupportedError, match="'c' is f32, not signed integers"):
        lower(Module([Function("main", [a], [total], [Op("tfl.sum", [a, const(np.asarray([1]), f32)], [total])])]))


@pytest.mark.parametrize(("height", "said"), [(0, "have no elements"), (1 << 30, "at most 1048576 of either")])
def test_images_of_no_or_of_too_many_rows_are_refused(height: int, said: str) -> None:
    x, y = argument((1, 3, 5, 2), f32), argument((1, height, 4, 2), f32, "y")
    op = Op("tfl.resize_bilinear", [x, const(np.asarray([height, 4]), i32)], [y])
    with pytest.raises(tflq.UnsupportedError, match=f"images of {height} rows and 4 columns.*{said}"):
        lower(Module([Function("main", [x], [y], [op])]))


@pytest.mark.parametrize("element", [ui16, ui32, ui64], ids=str)
def test_unsigned_tensors_are_padded(element: ScalarType) -> None:
    need_onnx()
    x, y = argument((2,), element), argument((4,), element, "y")
    module = Module([Function("main", [x], [y], [Op("tfl.pad", [x, const(np.asarray([[1, 1]]), i32)], [y])])])
    array = np.asarray([5, np.iinfo(element.dtype).max], element.dtype)
    (made,) = run_file(file_of(module), {"x": array})
    np.testing.assert_array_equal(made, np.pad(array, 1))


def test_a_change_of_one_count_is_found() -> None:
    need_onnx()
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    source = MODELS / "cnn_int8.tflite"
    data = tflq.convert(source, format="onnx").data
    result = tflq.verify(source, data, layers=True)
    assert result.equal
    assert "onnxruntime" in result.interpreter
    assert result.layers is not None
    assert result.layers.compared > 5
    model = loaded(data)
    biases = {n.input[2] for n in model.graph.node if n.op_type == "Conv" and len(n.input) == 3}
    bias = next(t for t in model.graph.initializer if t.name in biases)
    moved = np.frombuffer(bias.raw_data, np.float32).copy()
    moved[0] -= 4096
    bias.raw_data = moved.tobytes()
    changed = tflq.verify(source, model.SerializeToString(), layers=True)
    assert not changed.equal
    assert changed.layers is not None
    assert changed.layers.diverging


def test_a_runtime_is_for_onnx_files() -> None:
    source = MODELS / "cnn_int8.tflite"
    with pytest.raises(tflq.OptionError, match=r"runs \.onnx files"):
        tflq.verify(source, source, runtime="openvino")


def test_the_quantization_of_constants_stays_out(tmp_path: Path) -> None:
    need_onnx()
    operands = [argument((2, 3), Q), const(np.asarray([3, 2]), i32)]
    model = one_op("tfl.reshape", operands, [argument((3, 2), Q, "y")], {"new_shape": (3, 2)})
    assert set(metadata(loaded(tflq.convert(model, format="onnx").data))["tflq.quantization"]) == {"x", "y"}


def test_the_report_names_what_openvino_computes_otherwise() -> None:
    """One network needs wide sums in one of its operators, the other in none."""
    need_onnx()
    report = tflq.convert(MODELS / "cnn_int16x8.tflite", format="onnx").report
    how = "int64 in 32 bits, float64 in float32"
    assert str(report.requirements).endswith(f"exact in ONNX Runtime; not in OpenVINO: FULLY_CONNECTED ({how})")
    assert report.to_json()["onnx"]["lost"] == [f"FULLY_CONNECTED ({how})"]
    notes = {row.opcode: row.note for row in report.rows if row.note}
    assert notes == {"FULLY_CONNECTED": f"for ONNX Runtime alone: OpenVINO computes {how}"}
    report = tflq.convert(MODELS / "cnn_int8.tflite", format="onnx").report
    assert not report.to_json()["onnx"]["lost"]
