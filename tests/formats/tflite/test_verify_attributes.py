"""Attributes and constant operands that do not hold: each case changes one in a good model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.model_tree import Tree, options, refused, tree

from tflq.formats.flatbuffer.codec import encode
from tflq.formats.flatbuffer.layout import enum
from tflq.formats.tflite.reader import read

ATTRIBUTES: list[tuple[str, str, Callable[[Tree], Any], str, str]] = [
    ("cnn_int8", "stride", lambda m: options(m, 0).update(stride_w=0), "operator 0 (CONV_2D)", "stride_w is 0"),
    (
        "cnn_int8",
        "dilation",
        lambda m: options(m, 1).update(dilation_h_factor=-1),
        "DEPTHWISE_CONV_2D",
        "dilation_h_factor is -1",
    ),
    ("cnn_int8", "filter", lambda m: options(m, 5).update(filter_width=0), "MAX_POOL_2D", "filter_width is 0"),
    (
        "split",
        "splits",
        lambda m: options(m, 0).update(num_splits=2),
        "SPLIT",
        "num_splits is 2, but there are 3 results",
    ),
    ("cnn_int8", "beta", lambda m: options(m, 8).update(beta=float("nan")), "SOFTMAX", "beta is nan"),
    (
        "cnn_int8",
        "no options",
        lambda m: m["subgraphs"][0]["operators"][0].update(builtin_options=None),
        "CONV_2D",
        "is 0",
    ),
]


@pytest.mark.parametrize(
    ("name", "change", "where", "reason"), [(c[0], *c[2:]) for c in ATTRIBUTES], ids=[c[1] for c in ATTRIBUTES]
)
def test_attribute_that_does_not_hold(name: str, change: Callable[[Tree], Any], where: str, reason: str) -> None:
    model = tree(name)
    change(model)
    refused(model, where, reason)


CONSTANTS: list[tuple[str, int, list[int], str]] = [
    ("split", 1, [4], "axis 4 is not an axis of rank 4"),
    ("split", 1, [-5], "axis -5 is not an axis of rank 4"),
    ("arg_min", 1, [3], "axis 3 is not an axis of rank 3"),
    ("pad", 1, [1, -1, 2, 2], "negative element -1"),
    ("cnn_int8", 2, [1, 4], "axes 4 is not an axis of rank 4"),
]


@pytest.mark.parametrize(("name", "buffer", "values", "reason"), CONSTANTS)
def test_constant_operand_that_does_not_hold(name: str, buffer: int, values: list[int], reason: str) -> None:
    model = tree(name)
    model["buffers"][buffer]["data"] = np.array(values, "<i4").view(np.uint8)
    refused(model, "operator", reason)


def one_op(
    builtin: str, operands: list[Any], shape: tuple[int, ...], attributes: tuple[str, Tree] | None = None
) -> Tree:
    """A model of one operator: operands are shapes (float32 inputs) or arrays (int32 constants)."""
    tensors: list[Tree] = []
    buffers: list[Tree] = [{"data": None}]
    inputs: list[int] = []
    for index, operand in enumerate(operands):
        if isinstance(operand, tuple):
            inputs.append(index)
            tensors.append({"name": f"t{index}", "shape": operand, "type": "FLOAT32", "buffer": 0})
        else:
            array = np.array(operand, "<i4")
            buffers.append({"data": array.reshape(-1).view(np.uint8)})
            tensors.append({"name": f"t{index}", "shape": array.shape, "type": "INT32", "buffer": len(buffers) - 1})
    tensors.append({"name": "out", "shape": shape, "type": "FLOAT32", "buffer": 0})
    count = len(operands)
    operator = {"opcode_index": 0, "inputs": tuple(range(count)), "outputs": (count,), "builtin_options": attributes}
    graph = {
        "tensors": [{"has_rank": True, **t} for t in tensors],
        "inputs": inputs,
        "outputs": (count,),
        "operators": [operator],
    }
    code = {
        "builtin_code": builtin,
        "deprecated_builtin_code": min(enum("BuiltinOperator").values[builtin], 127),
        "version": 1,
    }
    return {"version": 3, "operator_codes": [code], "subgraphs": [graph], "buffers": buffers}


BOTH_FLAGS = {"align_corners": True, "half_pixel_centers": True}
RELU = {"fused_activation_function": "RELU"}
GATHER = ("GatherOptions", {"axis": 0, "batch_dims": 0})


@pytest.mark.parametrize(
    "model",
    [
        one_op("TRANSPOSE", [(2, 3), [1, 0]], (3, 2)),
        one_op("GATHER", [(4, 3), [3, 0]], (2, 3), GATHER),
        one_op("RESHAPE", [(2, 3), [-1]], (6,)),
        one_op("CONCATENATION", [(2, 3), (2, 3)], (4, 3), ("ConcatenationOptions", {"axis": -2})),
        one_op("PACK", [(2, 3), (2, 3)], (2, 3, 2), ("PackOptions", {"values_count": 2, "axis": 2})),
        one_op(
            "CONV_2D", [(1, 4, 4, 1), (1, 1, 1, 1)], (1, 4, 4, 1), ("Conv2DOptions", {"stride_w": 1, "stride_h": 1})
        ),
        one_op("STRIDED_SLICE", [(4,), [3], [0], [-1]], (3,), ("StridedSliceOptions", {})),
    ],
)
def test_good_models_of_one_operator(model: Tree) -> None:
    for operator in model["subgraphs"][0]["operators"]:
        if operator["builtin_options"] and operator["builtin_options"][0] == "Conv2DOptions":
            operator["builtin_options"][1].update(dilation_w_factor=1, dilation_h_factor=1)
    assert not read(encode(model)).warnings


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (one_op("TRANSPOSE", [(2, 3), [1, 1]], (3, 2)), "perm [1, 1] is not a permutation"),
        (one_op("TRANSPOSE", [(2, 3), [0, 2]], (3, 2)), "perm [0, 2] is not a permutation"),
        (one_op("TRANSPOSE", [(2, 3), [0]], (3, 2)), "perm [0] is not a permutation"),
        (one_op("SEGMENT_SUM", [(4, 3), [0, -1, 0, 1]], (2, 3)), "segments has the negative element -1"),
        (
            one_op("CONCATENATION", [(2, 3), (2, 3)], (4, 3), ("ConcatenationOptions", {"axis": 2})),
            "axis 2 is not an axis",
        ),
        (
            one_op("PACK", [(2, 3), (2, 3)], (2, 3, 2), ("PackOptions", {"values_count": 3, "axis": 0})),
            "values_count is 3",
        ),
        (
            one_op("PACK", [(2, 3), (2, 3)], (2, 3, 2), ("PackOptions", {"values_count": 2, "axis": 3})),
            "axis 3 is not an axis",
        ),
        (one_op("STRIDED_SLICE", [(4,), [3], [0], [0]], (3,), ("StridedSliceOptions", {})), "strides has an element 0"),
        (
            one_op("SPACE_TO_DEPTH", [(1, 4, 4, 1)], (1, 2, 2, 4), ("SpaceToDepthOptions", {"block_size": 0})),
            "block_size is 0",
        ),
        (
            one_op("DEPTH_TO_SPACE", [(1, 2, 2, 4)], (1, 4, 4, 1), ("DepthToSpaceOptions", {"block_size": -2})),
            "block_size is -2",
        ),
        (one_op("SPACE_TO_BATCH_ND", [(1, 4, 4, 1), [2, 0], [[0, 0], [0, 0]]], (4, 2, 2, 1)), "block has an element 0"),
        (one_op("REVERSE_V2", [(2, 3), [2]], (2, 3)), "axes 2 is not an axis of rank 2"),
        (
            one_op("RESIZE_BILINEAR", [(1, 2, 2, 1), [4, 4]], (1, 4, 4, 1), ("ResizeBilinearOptions", BOTH_FLAGS)),
            "align_corners and half_pixel_centers exclude each other",
        ),
        (one_op("TILE", [(2, 3), [1, -1]], (2, 3)), "multiples has the negative element -1"),
        (
            one_op("STRIDED_SLICE", [(4,), [7], [8], [1]], (), ("StridedSliceOptions", {"shrink_axis_mask": 1})),
            "begin 7 is outside of dim 0 of 4x",
        ),
        (
            one_op("STRIDED_SLICE", [(4,), [2], [1], [-1]], (), ("StridedSliceOptions", {"shrink_axis_mask": 1})),
            "takes one element of dim 0, but its stride is negative",
        ),
        (
            one_op("CONCATENATION", [(2, 3), (2, 3)], (4, 3), ("ConcatenationOptions", RELU)),
            "fused_activation_function is RELU, but the kernel takes only NONE",
        ),
        (
            one_op("L2_NORMALIZATION", [(2, 3)], (2, 3), ("L2NormOptions", RELU)),
            "fused_activation_function is RELU, but the kernel takes only NONE",
        ),
    ],
)
def test_bad_models_of_one_operator(model: Tree, reason: str) -> None:
    refused(model, "subgraph 0, operator 0", reason)
