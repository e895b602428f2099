"""What whoever takes a converted model finds: static memory, stated shapes, names, and what it says of its runtime."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, edge_inputs, interpret, one_op
from support.memory import memory

import tflq
from tflq.dialects.tfl.state import state_version
from tflq.formats.tflite.lowering.lowering import KernelBuilder
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Metadata, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import TensorType, UniformQuantizedPerAxisType, UniformQuantizedType, f32, i8, i16, i32, i64, ui8

MODELS = Path(__file__).parent.parent / "models"
NETWORKS = ["cnn_int8", "cnn_uint8", "cnn_int16x8", "two_signatures"]
OPTIONS: list[dict[str, Any]] = [{}, {"mac": "float32"}, {"target": "kernels"}]
Q8 = UniformQuantizedType.of(i8, 0.05, -3)
Q16 = UniformQuantizedType.of(i16, 0.001)


def convolution(shape: tuple[int | None, ...], stride: int, kernel: int, dilation: int = 1) -> bytes:
    """SAME CONV_2D of one channel into two."""
    rng = np.random.default_rng(7)
    x = argument(shape, Q8)
    outer = [None if d is None else -(-d // stride) for d in shape[1:3]]
    y = Value(TensorType((shape[0], *outer, 2), UniformQuantizedType.of(i8, 0.2, 1)), "conv1")
    weights = const(
        rng.integers(-127, 128, (2, kernel, kernel, 1)), UniformQuantizedPerAxisType.of(i8, 0, [0.01, 0.02]), "filter"
    )
    options = {
        "padding": "SAME",
        "stride_w": stride,
        "stride_h": stride,
        "dilation_w_factor": dilation,
        "dilation_h_factor": dilation,
        "fused_activation_function": "RELU",
    }
    bias = const(np.asarray([300, -200]), UniformQuantizedPerAxisType.of(i32, 0, [0.0005, 0.001]), "bias")
    return one_op("tfl.conv_2d", [x, weights, bias], [y], options, version=3)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_have_static_memory_in_the_shapes_that_they_state(name: str, options: dict[str, Any]) -> None:
    path = MODELS / f"{name}.tflite"
    assert not memory(path.read_bytes()).dynamic
    found = memory(tflq.convert(path, **options).data)
    assert (found.dynamic, found.restated) == ((), ())


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", [(1, 7, 9, 1), (None, 7, 9, 1), (None, None, None, 1), (1, None, 9, 1)])
@pytest.mark.parametrize(("stride", "kernel", "dilation"), [(1, 3, 1), (2, 3, 1), (3, 2, 2), (2, 1, 1), (3, 5, 1)])
def test_resized_models_are_static_and_equal(
    shape: tuple[int | None, ...], stride: int, kernel: int, dilation: int, options: dict[str, Any]
) -> None:
    """At several batches, and sizes of every rest modulo the stride; also before anything is resized."""
    data = convolution(shape, stride, kernel, dilation)
    made = tflq.convert(data, **options).data
    unsized = memory(made)
    assert (unsized.dynamic, unsized.restated) == ((), ())
    for batch, rows, columns in ((1, 7, 9), (3, 7, 9), (2, 5, 6), (1, 2, 4), (1, 1, 1)):
        size = (batch, *(s if d is None else d for d, s in zip(shape[1:3], (rows, columns), strict=True)), 1)
        assert not memory(data, size).dynamic
        assert not memory(made, size).dynamic
        inputs = edge_inputs([argument(size, Q8)])
        for want, got in zip(interpret(data, inputs), interpret(made, inputs), strict=True):
            np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize("name", ["mean", "sum", "reduce_max"])
@pytest.mark.parametrize("shape", [(1, 3, 4, 2), (None, 3, None, 2)])
@pytest.mark.parametrize("axes", [(0, 1, 2), (0,), (1, 2)])
def test_reductions_over_the_batch_can_be_resized(
    name: str, shape: tuple[int | None, ...], axes: tuple[int, ...]
) -> None:
    q = UniformQuantizedType.of(ui8, 0.05, 131)
    kept = tuple(1 if a in axes else d for a, d in enumerate(shape))
    y = Value(TensorType(kept, q if name == "reduce_max" else UniformQuantizedType.of(ui8, 0.06, 120)), "y")
    data = one_op(f"tfl.{name}", [argument(shape, q), const(np.asarray(axes), i32, "axes")], [y], {"keep_dims": True})
    made = tflq.convert(data).data
    for size in ((1, 3, 4, 2), (3, 3, 4, 2), (7, 3, 4 if shape[2] else 9, 2)):
        assert memory(made, size).dynamic == memory(data, size).dynamic == ()
        inputs = edge_inputs([argument(size, q)])
        for want, got in zip(interpret(data, inputs), interpret(made, inputs), strict=True):
            np.testing.assert_array_equal(got[0], want[0])


def test_a_window_of_an_int16_network_stays_static() -> None:
    """Depthwise, with columns that are picked and rows that are cut."""
    rng = np.random.default_rng(8)
    weights = const(rng.integers(-127, 128, (1, 3, 3, 4)), UniformQuantizedPerAxisType.of(i8, 3, [0.01] * 4), "filter")
    x, y = argument((1, 8, 8, 4), Q16), argument((1, 4, 4, 4), Q16, "y")
    options = {
        "padding": "SAME",
        "stride_w": 2,
        "stride_h": 2,
        "dilation_w_factor": 1,
        "dilation_h_factor": 1,
        "depth_multiplier": 1,
        "fused_activation_function": "NONE",
    }
    bias = const(np.arange(4), UniformQuantizedPerAxisType.of(i64, 0, [0.00001] * 4), "bias")
    made = tflq.convert(one_op("tfl.depthwise_conv_2d", [x, weights, bias], [y], options)).data
    for shapes in ((), ((3, 8, 8, 4),)):
        assert not memory(made, *shapes).dynamic


def test_state_in_variables_is_static_and_readable(recurrent: bytes) -> None:
    """The interpreter's `get_tensor` crashes on a RESOURCE tensor."""
    found = memory(tflq.convert(recurrent, state="variables").data)
    assert (found.dynamic, found.restated) == ((), ())


@pytest.fixture
def recurrent() -> bytes:
    from matrix.run import case_of

    return case_of("svdf", 0).model


def detection() -> bytes:
    """TFLite_Detection_PostProcess behind quantized operators; the file says no shape of three of its outputs."""
    flexbuffers = pytest.importorskip("flatbuffers.flexbuffers", reason="needs flatbuffers")
    boxes, classes = 12, 3
    element = UniformQuantizedType.of(ui8, 0.05, 100)
    encoded, scores = argument((1, boxes, 4), element, "boxes"), argument((1, boxes, classes + 1), element, "scores")
    read = [Value(v.type, name) for v, name in ((encoded, "encoded"), (scores, "scored"))]
    anchors = const(np.random.default_rng(3).uniform(0.1, 1, (boxes, 4)), f32, "anchors")
    outputs = [Value(TensorType(s, f32), name) for s, name in (((1, 3, 4), "a"), (None, "b"), (None, "c"), (None, "d"))]
    sizes = {"max_detections": 3, "max_classes_per_detection": 1, "num_classes": classes}
    numbers = {"nms_score_threshold": 0.1, "nms_iou_threshold": 0.5}
    numbers |= dict.fromkeys(("y_scale", "x_scale", "h_scale", "w_scale"), 10.0)
    options = bytes(flexbuffers.Dumps({**sizes, **numbers}))
    custom = {"custom_options": np.frombuffer(options, np.uint8)}
    ops = [
        Op("tfl.relu", [encoded], read[:1], {}),
        Op("tfl.reshape", [scores, const(np.asarray(scores.type.shape), i32, "shape")], read[1:], {"new_shape": None}),
        Op("tfl.custom", [*read, anchors], outputs, {"custom_code": "TFLite_Detection_PostProcess"}, info=custom),
    ]
    return bytes(write(Module([Function("main", [encoded, scores], outputs, ops)])))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_what_a_custom_operator_gives_is_as_the_original_says(options: dict[str, Any]) -> None:
    data = detection()
    made = tflq.convert(data, **options).data
    before, after = memory(data), memory(made)
    assert after.outputs == before.outputs
    assert after.dynamic == before.dynamic
    assert [v.type.shape for v in tflq.read(made).main.outputs] == [v.type.shape for v in tflq.read(data).main.outputs]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", NETWORKS)
def test_every_tensor_has_a_name_of_its_own(name: str, options: dict[str, Any]) -> None:
    source = tflq.read(MODELS / f"{name}.tflite")
    made = tflq.read(tflq.convert(MODELS / f"{name}.tflite", **options).data)
    assert [v.name for v in (*made.main.inputs, *made.main.outputs)] == [
        v.name for v in (*source.main.inputs, *source.main.outputs)
    ]
    for function in made.functions:
        edges = {*function.inputs, *function.outputs}
        names = Counter(v.name for v in function.tensors if v not in edges)
        assert "" not in names
        assert max(names.values(), default=1) == 1


def test_inner_tensors_are_named_by_operator_and_role() -> None:
    made = tflq.convert(convolution((1, 6, 6, 1), 1, 3)).module.main
    names = {v.name for v in made.values()}
    assert {"conv1", "conv1/accumulator", "conv1/weights", "x/stored"} <= names
    assert all(name.startswith(("conv1/", "x/")) for name in names - {"x", "conv1"})


def test_no_new_name_is_one_of_the_source() -> None:
    """An operator of the source is called what the accumulator of another would be; a constant in it twice."""
    x = argument((1, 4), Q8)
    first, second = (Value(TensorType((1, 4), Q8), name) for name in ("fc", "fc/accumulator"))
    weights = const(np.eye(4) * 100, UniformQuantizedType.of(i8, 0.01), "w")
    again = const(np.eye(4) * 50, UniformQuantizedType.of(i8, 0.01), "w")
    options = {
        "fused_activation_function": "NONE",
        "weights_format": "DEFAULT",
        "keep_num_dims": False,
        "asymmetric_quantize_inputs": False,
        "quantized_bias_type": "FLOAT32",
    }
    ops = [
        Op("tfl.fully_connected", [x, weights, None], [first], options, info={"version": 4}),
        Op("tfl.fully_connected", [first, again, None], [second], dict(options), info={"version": 4}),
    ]
    data = bytes(write(Module([Function("main", [x], [second], ops)])))
    names = Counter(v.name for v in tflq.convert(data).module.main.values())
    assert names["fc/accumulator"] == 1
    assert names["fc/accumulator#2"] == 1
    kept = Counter(v.name for v in tflq.convert(data, target="kernels").module.main.values())
    assert (kept["w"], kept["w#2"]) == (1, 1)


def with_runtime(data: bytes, release: str) -> bytes:
    module = tflq.read(data)
    stated = np.frombuffer(release.encode().ljust(16, b"\0"), np.uint8)
    module.metadata = [Metadata("min_runtime_version", Buffer.of(stated))]
    return bytes(tflq.write(module))


def runtime(data: bytes) -> str:
    return bytes((tflq.read(data).metadata or [])[0].buffer.data).rstrip(b"\0").decode()


def test_metadata_say_which_runtime_the_result_needs() -> None:
    data = with_runtime(convolution((1, 6, 6, 1), 1, 3), "1.14.0")
    assert runtime(tflq.convert(data).data) == "2.13.0"  # BITCAST
    assert runtime(tflq.convert(data, target="kernels").data) == "1.14.0"
    metadata = tflq.convert(convolution((1, 6, 6, 1), 1, 3)).module.metadata or ()
    assert [entry.name for entry in metadata] == ["tflq.kernel_set"]


@pytest.mark.parametrize(
    ("emit", "version"),
    [
        (lambda k, x: k.add(k.cast(x, i16), k.constant(1, i16)), {"add": 5, "cast": 3}),
        (lambda k, x: k.mul(k.cast(x, i64), k.constant(3, i64)), {"mul": 5, "cast": 3}),
        (lambda k, x: k.maximum(k.cast(x, i32), k.constant(3)), {"maximum": 1}),
        (lambda k, x: k.reshape(x, (4, 1)), {"reshape": 1}),
    ],
)
def test_kernels_state_the_version_that_their_types_need(
    emit: Callable[[KernelBuilder, Value], Value], version: dict[str, int]
) -> None:
    k = KernelBuilder()
    emit(k, argument((1, 4), i8))
    for op in k.ops:
        state_version(op)
    found = {op.name.removeprefix("tfl."): op.info.get("version", 1) for op in k.ops}
    assert found.items() >= version.items()


@pytest.mark.slow
def test_conversions_are_the_same_bytes_whatever_the_hashes() -> None:
    script = "import hashlib, sys, tflq; print(hashlib.sha256(tflq.convert(sys.argv[1]).data).hexdigest())"
    found = {
        subprocess.run(
            [sys.executable, "-c", script, str(MODELS / "cnn_int8.tflite")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
