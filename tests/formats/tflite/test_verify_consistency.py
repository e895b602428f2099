"""Tensors of an operator that do not fit each other: each case changes one type or shape in a good model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.model_tree import Tree, options, tensor, tree

from tflq.base.errors import InvalidModelError
from tflq.formats.flatbuffer.codec import encode
from tflq.formats.tflite.reader import read

CASES: list[tuple[str, str, Callable[[Tree], Any], str, str]] = [
    ("type", "pad", lambda m: tensor(m, 2).update(type="UINT8"), "PAD", "'x' is i8 and 'y' is ui8"),
    ("paddings", "pad", lambda m: tensor(m, 1).update(shape=(1, 4)), "PAD", "[1, 4], where [2, 2] is expected"),
    (
        *("lhs", "add_per_axis", lambda m: tensor(m, 1).update(shape=(1, 4, 6, 4))),
        *("ADD", "[1, 5, 6, 4] and [1, 4, 6, 4] do not broadcast"),
    ),
    ("rank", "add_per_axis", lambda m: tensor(m, 2).update(shape=(5, 6, 4)), "ADD", "broadcast to rank 4"),
    ("result", "add_per_axis", lambda m: tensor(m, 2).update(shape=(1, 5, 6, 1)), "ADD", "to the result, [1, 5, 6, 1]"),
    ("unary", "log_softmax", lambda m: tensor(m, 1).update(shape=(1, 1)), "LOG_SOFTMAX", "they must be of one shape"),
    ("stride", "cnn_int8", lambda m: options(m, 0).update(stride_h=3), "operator 0 (CONV_2D)", "its height is 12"),
    (
        "padding",
        "cnn_int8",
        lambda m: options(m, 1).update(padding="VALID"),
        "DEPTHWISE_CONV_2D",
        "an interpreter computes 10",
    ),
    ("pool", "cnn_int8", lambda m: options(m, 5).update(filter_width=3), "MAX_POOL_2D", "its width is 3"),
    (
        "dilation",
        "cnn_int8",
        lambda m: options(m, 0).update(dilation_w_factor=1 << 30),
        "CONV_2D",
        "more than a kernel",
    ),
    (
        "bias",
        "cnn_uint8",
        lambda m: m["subgraphs"][0]["operators"][0].update(inputs=(0, 1, 12)),
        "CONV_2D",
        "32 elements for 16",
    ),
    (
        *("channels", "cnn_uint8", lambda m: m["subgraphs"][0]["operators"][4].update(inputs=(0, 11, 12))),
        *("operator 4 (CONV_2D)", "does not fit the 3 channels of 'image'"),
    ),
]


@pytest.mark.parametrize(("name", "change", "where", "reason"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_tensors_that_do_not_fit(name: str, change: Callable[[Tree], Any], where: str, reason: str) -> None:
    model = tree(name)
    change(model)
    with pytest.raises(InvalidModelError) as caught:
        read(encode(model))
    assert where in caught.value.where, str(caught.value)
    assert reason in caught.value.reason.what, str(caught.value)


def test_unknown_dims_fit_everything() -> None:
    model = tree("add_per_axis")
    tensor(model, 0)["shape_signature"] = (-1, 5, 6, 4)
    assert not read(encode(model)).warnings
    tensor(model, 2).update(shape=(), shape_signature=None, has_rank=False)
    assert not read(encode(model)).warnings


def test_a_scalar_broadcasts() -> None:
    model = tree("add_per_axis")
    tensor(model, 1)["shape"] = ()
    assert not read(encode(model)).warnings


def test_dequantize_takes_integers_and_gives_floats() -> None:
    model = tree("log_softmax")
    model["operator_codes"][0].update(builtin_code="DEQUANTIZE", deprecated_builtin_code=6)
    model["subgraphs"][0]["operators"][0]["builtin_options"] = None
    with pytest.raises(InvalidModelError, match=r"output .* is i8, not one of f32"):
        read(encode(model))
    tensor(model, 0).update(type="FLOAT32", quantization=None)
    with pytest.raises(InvalidModelError, match=r"input .* is f32, not one of i2"):
        read(encode(model))
