"""The main job as a library call: options, sources, destinations, and what a converted model keeps."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.harness import argument, edge_inputs, interpret, one_op

import tflq
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op
from tflq.ir.types import UniformQuantizedType, i8, i16

MODELS = Path(__file__).parents[2] / "models"
NETWORKS = ["cnn_int8", "cnn_uint8", "cnn_int16x8"]


def test_sources_are_paths_bytes_and_files() -> None:
    path = MODELS / "cnn_int8.tflite"
    data = path.read_bytes()
    results = {tflq.convert(source).data for source in (path, str(path), data, bytearray(data), io.BytesIO(data))}
    assert len(results) == 1


@pytest.mark.parametrize("format", ["tosa", "mlir"])
def test_files_do_not_say_where_the_source_was(format: Any) -> None:
    path = MODELS / "cnn_int8.tflite"
    assert tflq.convert(path, format=format).data == tflq.convert(path.read_bytes(), format=format).data


@pytest.mark.parametrize("mac", ["integer", "float32"])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_equal_in_every_layer(name: str, mac: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    path = MODELS / f"{name}.tflite"
    conversion = tflq.convert(path, mac=mac)  # type: ignore[arg-type]
    result = tflq.verify(path, conversion.data, layers=True)
    assert result.verdict == "equal"
    assert conversion.report.counts["float"] == 0


@pytest.mark.parametrize("name", NETWORKS)
def test_the_integer_form_has_neither_floats_nor_inner_parameters(name: str) -> None:
    module = tflq.convert(MODELS / f"{name}.tflite").module
    edges = {*module.main.inputs, *module.main.outputs}
    for op in module.ops():
        for value in op.tensors:
            assert value in edges or not value.type.quantized, op
            assert not value.type.storage.is_float, op


def test_each_result_keeps_its_name() -> None:
    path = MODELS / "cnn_int8.tflite"
    before = [v.name for op in tflq.read(path).ops() for v in op.results]
    after = [v.name for op in tflq.convert(path).module.ops() for v in op.results]
    assert [after.count(name) for name in before] == [1] * len(before)


def test_an_open_batch_stays_open() -> None:
    path = next(
        p for p in MODELS.glob("*.tflite") if any(None in (v.type.shape or ()) for v in tflq.read(p).main.inputs)
    )
    module = tflq.read(path)
    data = tflq.convert(path).data
    assert [v.type.shape for v in tflq.read(data).main.inputs] == [v.type.shape for v in module.main.inputs]
    rng = np.random.default_rng(0)
    for batch in (1, 5):
        arrays = []
        for value in module.main.inputs:
            shape = [batch if d is None else d for d in value.type.shape or ()]
            storage = value.type.storage
            random = (
                rng.normal(0, 1, shape) if storage.is_float else rng.integers(storage.minimum, storage.maximum, shape)
            )
            arrays.append(random.astype(storage.dtype))
        for want, got in zip(interpret(path.read_bytes(), [arrays])[0], interpret(data, [arrays])[0], strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("mac", ["integer", "float32"])
def test_a_stated_batch_can_be_resized(mac: str) -> None:
    path = MODELS / "cnn_int8.tflite"
    (x,) = tflq.read(path).main.inputs
    shape, storage = (3, *(d or 1 for d in (x.type.shape or ())[1:])), x.type.storage
    inputs = [[np.random.default_rng(0).integers(storage.minimum, storage.maximum, shape, storage.dtype)]]
    data = tflq.convert(path, mac=mac).data  # type: ignore[arg-type]
    want, got = interpret(path.read_bytes(), inputs)[0], interpret(data, inputs)[0]
    np.testing.assert_array_equal(got[0], want[0])


def test_conversion_is_deterministic() -> None:
    path = MODELS / "cnn_int8.tflite"
    assert tflq.convert(path).data == tflq.convert(path).data


def test_a_destination_is_replaced_only_with_force(tmp_path: Path) -> None:
    destination = tmp_path / "out.tflite"
    destination.write_bytes(b"mine")
    with pytest.raises(tflq.TflqError, match="exists already"):
        tflq.convert(MODELS / "cnn_int8.tflite", destination)
    assert destination.read_bytes() == b"mine"
    tflq.convert(MODELS / "cnn_int8.tflite", destination, force=True)
    assert destination.read_bytes() == tflq.convert(MODELS / "cnn_int8.tflite").data


def powers(*names: str) -> bytes:
    """A chain of int16 operators of two tensors that have no integer form."""
    element = UniformQuantizedType.of(i16, 0.5, 0)
    x, *made = (argument((2, 3), element, name) for name in ["x", "y", "z"][: len(names) + 1])
    ops = [Op(name, [a, x], [b], {}) for name, a, b in zip(names, [x, *made], made, strict=False)]
    return tflq.write(Module([Function("main", [x], [made[-1]], ops)]))


@pytest.mark.parametrize("written", [False, True])
def test_nothing_that_passes_knew_outlives_a_conversion(tmp_path: Path, written: bool) -> None:
    function = tflq.convert(MODELS / "cnn_int8.tflite", tmp_path / "out.tflite" if written else None).module.main
    op = function.ops[-1]
    before = op.operands[0]
    assert before is not None
    assert op in function.users()[before]
    op.operands[0] = other = argument((1,), i8)
    assert function.users()[other] == [op]
    assert other in function.values()


def test_nothing_is_written_on_an_error(tmp_path: Path) -> None:
    destination = tmp_path / "out.tflite"
    with pytest.raises(tflq.InvalidModelError):
        tflq.convert(b"no model", destination)
    with pytest.raises(tflq.UnsupportedError, match="without --fallback error"):
        tflq.convert(powers("tfl.pow"), destination, fallback="error")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("out.pb", tflq.TflqError, "names none"),
        ("missing/out.tflite", tflq.TflqError, "no folder"),
    ],
)
def test_destinations_that_cannot_be(tmp_path: Path, name: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tflq.convert(MODELS / "cnn_int8.tflite", tmp_path / name)


@pytest.mark.parametrize(("option", "value"), [("mac", "int8"), ("fallback", "none"), ("semantics", "exact")])
def test_unknown_options_name_the_known_ones(option: str, value: str) -> None:
    with pytest.raises(ValueError, match="is not known; known are"):
        tflq.convert(MODELS / "cnn_int8.tflite", **{option: value})  # type: ignore[arg-type]


def test_an_unknown_target() -> None:
    with pytest.raises(tflq.OptionError, match="target 'moon' is not known"):
        tflq.convert(MODELS / "cnn_int8.tflite", target="moon")


def test_every_refusal_is_listed_at_once() -> None:
    with pytest.raises(tflq.UnsupportedError) as caught:
        tflq.convert(powers("tfl.pow", "tfl.atan2"), fallback="error")
    assert [f"'{name}'" in str(reason) for name, reason in zip("yz", caught.value.reasons, strict=True)] == [True, True]


def test_the_same_scale_identity_keeps_both_names() -> None:
    element = UniformQuantizedType.of(i8, 0.5, 3)
    x, y = argument((2, 3), element), argument((2, 3), element, "y")
    data = one_op("tfl.quantize", [x], [y], {})
    converted = tflq.convert(data).data
    assert [v.name for v in tflq.read(converted).main.outputs] == ["y"]
    for want, got in zip(interpret(data, edge_inputs([x])), interpret(converted, edge_inputs([x])), strict=True):
        np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mac": "float32"}, "mac 'float32' is for TFLite files"),
        ({"state": "kept"}, "state 'kept' is for TFLite files"),
        ({"state": "inputs"}, "state 'inputs' is for ONNX files; a .tosa file takes 'variables'"),
        ({"reset_signature": True}, "reset_signature is for TFLite files"),
    ],
)
def test_options_that_do_nothing_for_a_tosa_file(options: dict[str, Any], message: str) -> None:
    with pytest.raises(tflq.OptionError, match=message):
        tflq.convert(MODELS / "cnn_int8.tflite", format="tosa", **options)


@pytest.mark.parametrize(
    "options", [{"target": "kernels"}, {"fallback": "error"}, {"semantics": "real"}, {"state": "variables"}], ids=str
)
def test_options_that_do_nothing_for_a_model_that_is_tosa(options: dict[str, Any]) -> None:
    tosa = tflq.convert(MODELS / "cnn_int8.tflite", format="tosa").data
    name, value = next(iter(options.items()))
    with pytest.raises(tflq.OptionError, match=f"{name} '{value}' is for models with quantized operators"):
        tflq.convert(tosa, **options)
