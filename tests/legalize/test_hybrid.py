"""Operators in float on quantized constants: kept where a kernel takes them, else on the constants' real values."""

from __future__ import annotations

import numpy as np
import pytest
from matrix.weighted import int4
from support.harness import argument, const, convert_and_compare, edge_inputs, interpret, one_op, packed

import tflq
from tflq.analysis.hybrid import as_read, table_as_read
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value, constant
from tflq.ir.types import (
    ElementType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    f32,
    i2,
    i4,
    i8,
    i16,
    i32,
    ui8,
)

WINDOW = {
    "padding": "VALID",
    "stride_w": 1,
    "stride_h": 1,
    "dilation_w_factor": 1,
    "dilation_h_factor": 1,
    "fused_activation_function": "NONE",
}
DEPTHWISE = {**WINDOW, "depth_multiplier": 1}
VOLUME = {**WINDOW, "stride_d": 1, "dilation_d_factor": 1}
PER_LAYER = UniformQuantizedType.of(i8, 0.25)
FULLY_CONNECTED = {
    "fused_activation_function": "NONE",
    "weights_format": "DEFAULT",
    "keep_num_dims": False,
    "asymmetric_quantize_inputs": False,
    "quantized_bias_type": "FLOAT32",
}


def per_axis(axis: int, channels: int) -> UniformQuantizedPerAxisType:
    return UniformQuantizedPerAxisType.of(i8, axis, 0.25 / (np.arange(channels) + 1), 0)


@pytest.mark.parametrize("element", [PER_LAYER, per_axis(4, 3)], ids=["layer", "axis"])
def test_filters_without_a_hybrid_kernel_become_floats(element: ElementType) -> None:
    rng = np.random.default_rng(0)
    stored = rng.integers(-127, 128, (2, 2, 2, 2, 3)).astype(np.int8)
    x, y = argument((1, 3, 3, 3, 2), f32, "x"), argument((1, 2, 2, 2, 3), f32, "y")

    def model(weights: np.ndarray, of: ElementType) -> bytes:
        return one_op("tfl.conv_3d", [x, const(weights, of, "w"), None], [y], VOLUME, 1)

    conversion = tflq.convert(model(stored, element))
    (row,) = conversion.report.rows
    assert (row.path, row.reason) == ("float", "CONV_3D has no kernel for float activations with i8 constants")
    scale = element.scales if isinstance(element, UniformQuantizedPerAxisType) else PER_LAYER.scale
    real = (stored * np.asarray(scale, np.float32)).astype(np.float32)
    batches = [[rng.normal(0, 1, (1, 3, 3, 3, 2)).astype(np.float32)]]
    np.testing.assert_array_equal(interpret(conversion.data, batches), interpret(model(real, f32), batches))


@pytest.mark.parametrize(
    ("element", "path"), [(PER_LAYER, "float"), (per_axis(3, 4), "kept")], ids=["one scale", "a scale per channel"]
)
def test_depthwise_filters_need_a_scale_per_channel(element: ElementType, path: str) -> None:
    weights = const(np.arange(16).reshape(1, 2, 2, 4), element, "w")
    x, y = argument((1, 4, 4, 4), f32, "x"), argument((1, 3, 3, 4), f32, "y")
    bias = const(np.zeros(4, np.float32), f32, "bias")
    conversion = tflq.convert(one_op("tfl.depthwise_conv_2d", [x, weights, bias], [y], DEPTHWISE, 3))
    assert [row.path for row in conversion.report.rows] == [path]
    (got,) = interpret(conversion.data, [[np.ones((1, 4, 4, 4), np.float32)]])[0]
    wanted = np.arange(16).reshape(4, 4).sum(0) * (0.25 if path == "float" else 0.25 / (np.arange(4) + 1))
    np.testing.assert_allclose(got, np.broadcast_to(wanted, got.shape), rtol=1e-5)


def test_without_the_fallback_it_is_refused() -> None:
    weights = const(np.ones((3, 4), np.int16), UniformQuantizedType.of(i16, 0.5), "w")
    x, y = argument((2, 4), f32, "x"), argument((2, 3), f32, "y")
    model = one_op("tfl.fully_connected", [x, weights, None], [y], FULLY_CONNECTED, 1)
    with pytest.raises(
        tflq.UnsupportedError, match="no kernel for float activations with i16 constants; without --fallback"
    ):
        tflq.convert(model, fallback="error")


def blockwise(shape: tuple[int, int], block: int) -> Value:
    """int8 weights with a scale per row and block of the last dim."""
    data = (0.25 / (np.arange(shape[0] * shape[1] // block) + 1)).reshape(shape[0], -1).astype(np.float16)
    stored = (np.arange(shape[0] * shape[1]) % 200 - 100).reshape(shape)
    value = const(stored, UniformQuantizedSubChannelType.of(i8, (0, 1), (1, block), data), "w")
    details = {"scales": constant(data, name="scales"), "zero_points": -1, "block_size": block}
    value.info = {"quantization": {"details": ("BlockwiseQuantization", details)}}
    return value


def test_blockwise_weights_of_which_the_kernel_finds_no_scale_are_kept_or_become_floats() -> None:
    weights = blockwise((3, 8), 4)
    x, y = argument((2, 8), f32, "x"), argument((2, 3), f32, "y")
    model = one_op("tfl.fully_connected", [x, weights, None], [y], FULLY_CONNECTED, 1)
    words = "the kernel reads the scales of 'w', one per block, as 0"
    (row,) = convert_and_compare(model, edge_inputs([x])).report.rows
    assert (row.path, row.warning) == ("kept", words)
    assert row.remedy.endswith("convert with --semantics real")
    conversion = tflq.convert(model, semantics="real")
    (row,) = conversion.report.rows
    assert (row.path, row.reason) == ("float", words)
    inputs = np.random.default_rng(0).normal(0, 1, (2, 8)).astype(np.float32)
    assert isinstance(weights.type.element, UniformQuantizedSubChannelType)
    scales = np.repeat(weights.type.element.scales, 4, 1)
    (got,) = interpret(conversion.data, [[inputs]])[0]
    np.testing.assert_allclose(got, inputs @ (weights.array * scales).T, rtol=1e-4)


@pytest.mark.parametrize(
    ("element", "words"),
    [
        (UniformQuantizedType.of(i8, 0.25, 3), "ignores the zero points of 'w'"),
        (UniformQuantizedType.of(ui8, 0.25, 128), "reads 'w', which is uint8, as int8"),
    ],
    ids=["int8", "uint8"],
)
def test_a_hybrid_kernel_that_disregards_parameters_is_kept_with_a_warning(
    element: UniformQuantizedType, words: str
) -> None:
    stored = np.arange(32).reshape(4, 8)
    x, y = argument((2, 8), f32, "x"), argument((2, 4), f32, "y")
    model = one_op("tfl.fully_connected", [x, const(stored, element, "w"), None], [y], FULLY_CONNECTED, 9)
    (row,) = tflq.convert(model).report.rows
    assert row.path == "kept"
    assert words in row.warning
    conversion = tflq.convert(model, semantics="real")
    assert conversion.report.rows[0].path == "float"
    inputs = np.random.default_rng(0).normal(0, 1, (2, 8)).astype(np.float32)
    (got,) = interpret(conversion.data, [[inputs]])[0]
    np.testing.assert_allclose(got, inputs @ ((stored - element.zero_point) * 0.25).T, rtol=1e-4)


def test_weights_of_int4_with_a_zero_point_have_no_kernel() -> None:
    weights = int4(np.arange(16).reshape(2, 8).astype(np.int8) % 7, UniformQuantizedType.of(i4, 0.25, 2))
    x, y = argument((2, 8), f32, "x"), argument((2, 2), f32, "y")
    conversion = tflq.convert(one_op("tfl.fully_connected", [x, weights, None], [y], FULLY_CONNECTED, 9))
    assert conversion.report.rows[0].path == "float"
    assert "takes no zero point" in conversion.report.rows[0].reason


@pytest.mark.parametrize("element", [PER_LAYER, per_axis(0, 6)], ids=["layer", "axis"])
def test_rows_of_a_quantized_table_as_floats_are_looked_up_by_the_kernel(element: ElementType) -> None:
    table = const(np.arange(24).reshape(6, 4) - 12, element, "table")
    ids, y = argument((3,), i32, "ids"), argument((3, 4), f32, "y")
    model = one_op("tfl.embedding_lookup", [ids, table], [y], {}, 3)
    conversion = tflq.convert(model)
    assert conversion.report.rows[0].path == "kept"
    batches: list[list[np.ndarray]] = [[np.asarray([5, 0, 2], np.int32)]]
    np.testing.assert_array_equal(interpret(conversion.data, batches), interpret(model, batches))


@pytest.mark.parametrize("storage", [i2, i4], ids=str)
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("scales", [1, 5])
def test_rows_that_begin_within_a_byte(storage: ScalarType, columns: int, scales: int) -> None:
    """The kernel reads them from the start of the byte: kept, with a warning where a row that is looked up shows it."""
    stored = np.random.default_rng(columns).integers(storage.minimum, storage.maximum, (5, columns), endpoint=True)
    element: ElementType = UniformQuantizedType.of(storage, 0.25, 0)
    if scales > 1:
        element = UniformQuantizedPerAxisType.of(storage, 0, np.linspace(0.1, 0.3, scales, dtype=np.float32), 0)
    table, ids = packed(stored, element, "table"), argument((5,), i32, "ids")
    model = one_op("tfl.embedding_lookup", [ids, table], [argument((5, columns), f32, "y")], {}, 5)
    batches: list[list[np.ndarray]] = [[np.arange(5, dtype=np.int32)]]
    ((want,),), given = interpret(model, batches), as_read(table)
    np.testing.assert_array_equal(table_as_read(table), want)
    conversion = tflq.convert(model)
    (row,) = conversion.report.rows
    assert row.path == "kept"
    assert ("elements of other rows" in row.warning) == bool((given != want).any())
    np.testing.assert_array_equal(interpret(conversion.data, batches), [[want]])
    real = tflq.convert(model, semantics="real")
    assert not real.report.warnings
    np.testing.assert_array_equal(interpret(real.data, batches), [[given]])
    aligned = const(np.asarray([i for i in range(5) if i * columns * storage.bits % 8 == 0]), i32, "ids")
    y = argument((*aligned.array.shape, columns), f32, "y")
    assert not tflq.convert(one_op("tfl.embedding_lookup", [aligned, table], [y], {}, 5)).report.warnings


def sparse(dense: np.ndarray, element: ElementType) -> Value:
    """A matrix by rows: where its elements are that are not 0."""
    rows = [np.flatnonzero(row) for row in dense]
    columns = {
        "format": "SPARSE_CSR",
        "dense_size": 0,
        "array_segments": ("Int32Vector", {"values": np.cumsum([0, *map(len, rows)]).astype(np.int32)}),
        "array_indices": ("Int32Vector", {"values": np.concatenate(rows).astype(np.int32)}),
    }
    lines = {"format": "DENSE", "dense_size": len(dense), "array_segments": None, "array_indices": None}
    value = const(dense, element, "w")
    value.buffer = Buffer.of(np.asarray(dense[dense != 0], value.type.storage.dtype))
    value.info = {"sparsity": {"traversal_order": (0, 1), "block_map": None, "dim_metadata": [lines, columns]}}
    return Value(value.type, "w", buffer=value.buffer, info=value.info)


def quantized_matrix() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.integers(-127, 128, (5, 32)) * (rng.random((5, 32)) < 0.4)


@pytest.mark.parametrize("quantized", [True, False], ids=["int8", "hybrid"])
def test_densified_weights_are_constants(quantized: bool) -> None:
    spread = Value(TensorType((5, 32), PER_LAYER), "dense")
    x_type, y_type = (UniformQuantizedType.of(i8, s, z) for s, z in ((0.05, 3), (4.0, 0)))
    x, y = argument((2, 32), x_type if quantized else f32), argument((2, 5), y_type if quantized else f32, "y")
    ops = [
        Op("tfl.densify", [sparse(quantized_matrix(), PER_LAYER)], [spread]),
        Op("tfl.fully_connected", [x, spread, None], [y], dict(FULLY_CONNECTED), info={"version": 5}),
    ]
    model = bytes(write(Module([Function("main", [x], [y], ops)])))
    conversion = tflq.convert(model)
    assert [row.path for row in conversion.report.rows] == ["integer", "integer" if quantized else "kept"]
    batches = edge_inputs([x])
    for want, got in zip(interpret(model, batches), interpret(conversion.data, batches), strict=True):
        np.testing.assert_array_equal(got[0], want[0])


def test_sparse_weights_that_no_hybrid_kernel_reads_become_floats() -> None:
    x, y = argument((2, 32), f32, "x"), argument((2, 5), f32, "y")
    weights = sparse(quantized_matrix(), PER_LAYER)
    conversion = tflq.convert(one_op("tfl.fully_connected", [x, weights, None], [y], FULLY_CONNECTED, 8))
    assert "sparse constants" in conversion.report.rows[0].reason
    inputs = np.random.default_rng(0).normal(0, 1, (2, 32)).astype(np.float32)
    (got,) = interpret(conversion.data, [[inputs]])[0]
    np.testing.assert_allclose(got, inputs @ (quantized_matrix() * 0.25).T, rtol=1e-3, atol=1e-3)
