"""Quantization parameters that do not hold, and odd ones that are read with a warning or without a word."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.model_tree import Tree, refused, tree

from tflq.formats.flatbuffer.codec import decode, encode
from tflq.formats.tflite.reader import read
from tflq.formats.tflite.writer import write


def quantization(model: Tree, index: int) -> Tree:
    found: Tree = model["subgraphs"][0]["tensors"][index]["quantization"]
    return found


def replaced(values: Any, place: int, value: Any) -> tuple[Any, ...]:
    out = list(values)
    out[place] = value
    return tuple(out)


@pytest.mark.parametrize("scale", [-1.0, -1e-45, math.nan, -math.inf])
def test_scale_that_is_no_number_from_0_up(scale: float) -> None:
    model = tree("cnn_int8")
    quantization(model, 12)["scale"] = (scale,)
    refused(model, "subgraph 0, tensor 12", "not a number from 0 up")
    model = tree("cnn_int8")
    quantization(model, 9)["scale"] = replaced(quantization(model, 9)["scale"], 3, scale)
    refused(model, "subgraph 0, tensor 9", "index 3 is not a number from 0 up")


@pytest.mark.parametrize("scale", [0.0, -0.0, 1e-45, 3.6e-43, 1e-35, 1e35, 3.4e38, math.inf])
def test_unusual_scale(scale: float) -> None:
    """Pruned channels, constants that are all zero, dead ranges: kernels run on them; they are read and written."""
    model = tree("cnn_int8")
    quantization(model, 12)["scale"] = (scale,)
    quantization(model, 9)["scale"] = replaced(quantization(model, 9)["scale"], 3, scale)
    quantization(model, 8)["scale"] = replaced(quantization(model, 8)["scale"], 3, scale)
    module = read(encode(model))
    assert not [line for line in module.warnings if "input × filter" not in line]
    again = decode(bytes(write(module)))["subgraphs"][0]["tensors"]
    for index in (12, 9):
        stated = np.asarray(again[index]["quantization"]["scale"], np.float32)
        np.testing.assert_array_equal(stated, np.asarray(quantization(model, index)["scale"], np.float32))


PARAMETERS: list[tuple[str, int, Callable[[Tree], Any], str, str]] = [
    ("zero point above", 12, lambda q: q.update(zero_point=(128,)), "tensor 12", "128 is outside i8"),
    ("zero point below", 12, lambda q: q.update(zero_point=(-129,)), "tensor 12", "-129 is outside i8"),
    ("zero points", 9, lambda q: q.update(zero_point=(0, 0)), "tensor 9", "2 zero points for 16 scales"),
    ("axis", 9, lambda q: q.update(quantized_dimension=4), "tensor 9", "4 is not a dim of a tensor of rank 4"),
    ("negative axis", 9, lambda q: q.update(quantized_dimension=-1), "tensor 9", "axis -1 is negative"),
    (
        "number of scales",
        9,
        lambda q: q.update(quantized_dimension=1),
        "tensor 9",
        "16 scales for dim 1, which is 3 long",
    ),
    (
        "activation without",
        12,
        lambda q: q.update(scale=None),
        "operator 0 (CONV_2D)",
        "has no quantization parameters",
    ),
    ("filter without", 11, lambda q: q.update(scale=None), "operator 0 (CONV_2D)", "has no quantization parameters"),
    (
        *("filter axis", 7, lambda q: q.update(quantized_dimension=3)),
        *("operator 2 (CONV_2D)", "quantized along dim 3, where dim 0 is expected"),
    ),
    (
        *("filter zero point", 11, lambda q: q.update(zero_point=replaced(q["zero_point"], 1, 5))),
        *("operator 0 (CONV_2D)", "zero points other than 0"),
    ),
    (
        *("bias zero point", 10, lambda q: q.update(zero_point=replaced(q["zero_point"], 1, 5))),
        *("operator 0 (CONV_2D)", "bias 'tfl.pseudo_qconst8' has a zero point"),
    ),
]


@pytest.mark.parametrize(
    ("index", "change", "where", "reason"), [c[1:] for c in PARAMETERS], ids=[c[0] for c in PARAMETERS]
)
def test_parameters_that_do_not_hold(index: int, change: Callable[[Tree], Any], where: str, reason: str) -> None:
    model = tree("cnn_int8")
    change(quantization(model, index))
    refused(model, where, reason)


def test_bias_scale_that_kernels_refuse() -> None:
    model = tree("cnn_uint8")
    quantization(model, 2)["scale"] = (0.005,)
    refused(model, "operator 0 (CONV_2D)", "far from input × filter")


def test_one_zero_point_for_all_scales_is_legal() -> None:
    model = tree("cnn_int8")
    quantization(model, 9)["zero_point"] = (0,)
    assert not read(encode(model)).warnings


def test_no_zero_point_is_zero() -> None:
    model = tree("add_per_axis")
    quantization(model, 1)["zero_point"] = None
    assert not read(encode(model)).warnings


def test_effective_multiplier_above_one_is_legal() -> None:
    model = tree("cnn_uint8")
    quantization(model, 20)["scale"] = (1e-5,)
    assert not read(encode(model)).warnings


@pytest.mark.parametrize("scale", [1e20, 1e-30, 0.0])
def test_effective_multiplier_of_any_size_is_legal(scale: float) -> None:
    model = tree("mul_per_axis")
    for index in (0, 1):
        quantization(model, index).update(scale=(scale,), zero_point=(0,), quantized_dimension=0)
    assert not read(encode(model)).warnings


@pytest.mark.parametrize("scale", [1e-30, 0.0])
def test_bias_scale_that_kernels_refuse_beside_a_small_result(scale: float) -> None:
    """The bias' is one float32 step from input × filter."""
    model = tree("cnn_uint8")
    quantization(model, 20)["scale"] = (scale,)
    refused(model, "operator 8 (FULLY_CONNECTED)", "far from input × filter")


WARNINGS: list[tuple[str, str, int, Callable[[Tree], Any], str]] = [
    ("cnn_int8", "rank 1", 10, lambda q: q.update(quantized_dimension=3), "read as 0, the only dim"),
    ("cnn_int8", "bias scale", 10, lambda q: q.update(scale=np.asarray(q["scale"], np.float32) * 1.1), "used instead"),
    ("cnn_int8", "fixed result", 20, lambda q: q.update(scale=(0.01,)), "where kernels expect 0.00390625 and -128"),
    ("pad", "same scale", 2, lambda q: q.update(scale=(0.06,)), "differ in scale or zero point"),
    ("cnn_int16x8", "int16 zero point", 0, lambda q: q.update(zero_point=(1,)), "int16 with zero point 1"),
    ("arg_min", "scale of an int64", 2, lambda q: q.update(scale=(-1.0,), zero_point=(0,)), "ignored"),
]


@pytest.mark.parametrize(
    ("name", "index", "change", "warning"), [(c[0], *c[2:]) for c in WARNINGS], ids=[c[1] for c in WARNINGS]
)
def test_harmless_defect(name: str, index: int, change: Callable[[Tree], Any], warning: str) -> None:
    model = tree(name)
    tensor = model["subgraphs"][0]["tensors"][index]
    tensor["quantization"] = tensor["quantization"] or {}
    change(tensor["quantization"])
    warnings = read(encode(model)).warnings
    assert warnings
    assert any(warning in line for line in warnings), warnings


def test_quantize_and_dequantize_need_parameters() -> None:
    model = tree("pad")
    graph = model["subgraphs"][0]
    code = model["operator_codes"][0]
    operator = graph["operators"][0]
    operator.update(inputs=(0,), builtin_options=None)
    code.update(builtin_code="DEQUANTIZE", deprecated_builtin_code=6)
    graph["tensors"][2].update(type="FLOAT32", quantization=None, shape=(2, 2))
    assert not read(encode(model)).warnings
    graph["tensors"][0]["quantization"] = None
    refused(model, "operator 0 (DEQUANTIZE)", "input 'x' needs quantization parameters")
    code.update(builtin_code="QUANTIZE", deprecated_builtin_code=114)
    graph["tensors"][2].update(type="INT8")
    refused(model, "operator 0 (QUANTIZE)", "output 'y' needs quantization parameters")


def test_custom_quantization_is_kept_and_said() -> None:
    model = tree("pad")
    details = ("CustomQuantization", {"custom": np.arange(4, dtype=np.uint8)})
    model["subgraphs"][0]["tensors"][0]["quantization"] = {"details": details, "quantized_dimension": 0}
    assert any("CustomQuantization" in line for line in read(encode(model)).warnings)


@pytest.mark.parametrize(("scales", "zero_points"), [(9, -1), (-1, -1), (0, 9), (0, -2)])
def test_blockwise_parameters_out_of_range(scales: int, zero_points: int) -> None:
    model = tree("pad")
    details = ("BlockwiseQuantization", {"scales": scales, "zero_points": zero_points, "block_size": 2})
    model["subgraphs"][0]["tensors"][0]["quantization"] = {"details": details, "quantized_dimension": 0}
    refused(model, "subgraphs[0].tensors[0].quantization.details", "tensor")


def test_warnings_are_capped() -> None:
    model = tree("pad")
    graph = model["subgraphs"][0]
    details = ("CustomQuantization", {"custom": np.zeros(1, np.uint8)})
    spare = {**graph["tensors"][0], "quantization": {"details": details, "quantized_dimension": 0}}
    graph["tensors"] += [{**spare, "name": f"spare{i}"} for i in range(500)]
    warnings = read(encode(model)).warnings
    assert len(warnings) == 201
    assert warnings[-1] == "300 more warnings"
