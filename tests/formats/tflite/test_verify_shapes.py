"""Shapes and data that do not hold, and odd ones that do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.model_tree import Tree, refused, tensor, tree

from tflq.base.errors import InvalidModelError
from tflq.formats.flatbuffer.codec import encode
from tflq.formats.tflite.reader import read

SHAPES: list[tuple[str, Callable[[Tree], Any], str]] = [
    ("negative dim", lambda t: t.update(shape=(-1, 2)), "negative dim"),
    ("elements", lambda t: t.update(shape=(65536, 65536)), "more elements"),
    ("elements past a zero", lambda t: t.update(shape=(0, 65536, 65536)), "more elements"),
    ("64-bit overflow", lambda t: t.update(shape=(1 << 30,) * 8), "more elements"),
    ("rank", lambda t: t.update(shape=(1,) * 40), "40 dims"),
    ("signature rank", lambda t: t.update(shape_signature=(-1, 2, 2)), "shape_signature has 3 dims"),
    ("signature dim", lambda t: t.update(shape_signature=(-5, 2)), "the dim -5"),
]


@pytest.mark.parametrize(("change", "reason"), [case[1:] for case in SHAPES], ids=[c[0] for c in SHAPES])
def test_shape_that_does_not_hold(change: Callable[[Tree], Any], reason: str) -> None:
    model = tree("pad")
    change(tensor(model, 0))
    refused(model, "subgraph 0, tensor 0 'x'", reason)


@pytest.mark.parametrize("field", ["shape", "shape_signature"])
def test_more_dims_than_a_short_vector_holds(field: str) -> None:
    """Long vectors are decoded as arrays."""
    model = tree("pad")
    tensor(model, 0).update({"shape": (), "has_rank": False, field: (1,) * 2000})
    refused(model, "subgraph 0, tensor 0 'x'", "dims")


def test_buffer_length() -> None:
    model = tree("pad")
    model["buffers"][1]["data"] = np.zeros(15, np.uint8)
    refused(model, "tensor 1 'paddings'", "take 16 bytes, but its buffer has 15")


def test_constant_of_unknown_shape() -> None:
    model = tree("pad")
    tensor(model, 1)["shape_signature"] = (-1, 2)
    refused(model, "tensor 1 'paddings'", "unknown")


def test_variable_with_data() -> None:
    model = tree("pad")
    tensor(model, 1)["is_variable"] = True
    refused(model, "tensor 1 'paddings'", "variable")


@pytest.mark.parametrize(("kind", "bits"), [("INT4", 4), ("UINT4", 4), ("INT2", 2)])
def test_packed_elements_with_an_odd_count(kind: str, bits: int) -> None:
    count = 7
    model = spare(kind, (count,), np.zeros(-(-count * bits // 8), np.uint8))
    assert len(read(encode(model)).main.tensors) == 4
    refused(spare(kind, (count,), np.zeros(7, np.uint8), used=True), "tensor 3 'spare'", "take")


def spare(kind: str, shape: tuple[int, ...], data: np.ndarray, *, used: bool = False, **more: Any) -> Tree:
    """`pad` with one more constant, which is an output of the model as well if it is `used`."""
    model = tree("pad")
    model["buffers"].append({"data": data, "offset": 0, "size": 0})
    graph = model["subgraphs"][0]
    fields = {
        "name": "spare",
        "shape": shape,
        "type": kind,
        "buffer": len(model["buffers"]) - 1,
        "has_rank": True,
        **more,
    }
    graph["tensors"].append(
        {**dict.fromkeys(graph["tensors"][0]), "is_variable": False, "external_buffer": 0, **fields}
    )
    if used:
        graph["outputs"] = (*graph["outputs"], 3)
    return model


def test_an_unused_tensor_of_odd_data_is_a_warning() -> None:
    module = read(encode(spare("INT8", (3,), np.zeros(7, np.uint8))))
    reason = "3 elements of type i8, shape [3], take 3 bytes, but its buffer has 7"
    assert module.warnings == [f"subgraph 0, tensor 3 'spare': {reason}, but no operator uses it; remove the tensor"]


def test_zero_size_tensor() -> None:
    assert read(encode(spare("INT8", (0, 3), np.zeros(0, np.uint8), used=True))).main.outputs[1].is_constant


def strings(*offsets: int, text: bytes = b"abc") -> np.ndarray:
    return np.frombuffer(np.array(offsets, "<i4").tobytes() + text, np.uint8)


def test_strings() -> None:
    assert not read(encode(spare("STRING", (2,), strings(2, 16, 17, 19), used=True))).warnings


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (np.zeros(3, np.uint8), "too short"),
        (strings(1 << 30, 16, 17, 19), "too short"),
        (strings(2, 16, 15, 19), "out of order"),
        (strings(2, 16, 17, 20), "out of order"),
        (strings(1, 12, 15), "hold 1 strings"),
    ],
)
def test_strings_that_do_not_hold(data: np.ndarray, reason: str) -> None:
    refused(spare("STRING", (2,), data, used=True), "tensor 3 'spare'", reason)


def sparse(**change: Any) -> Tree:
    """A 2 × 3 matrix in CSR form with three elements, of which `change` replaces fields of the compressed level."""
    indices = {"array_segments": ("Uint8Vector", {"values": np.array([0, 1, 3], np.uint8)})}
    indices |= {"array_indices": ("Uint8Vector", {"values": np.array([2, 0, 1], np.uint8)})}
    rows = {"format": "DENSE", "dense_size": 2}
    columns = {"format": "SPARSE_CSR", "dense_size": 0, **indices, **change}
    sparsity = {"traversal_order": (0, 1), "block_map": None, "dim_metadata": [rows, columns]}
    return spare("INT8", (2, 3), np.zeros(3, np.uint8), used=True, sparsity=sparsity)


def test_sparse_tensor() -> None:
    assert not read(encode(sparse())).warnings


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"array_segments": None}, "without segments"),
        ({"array_segments": ("Uint8Vector", {"values": np.array([0, 3, 1], np.uint8)})}, "do not count"),
        ({"array_segments": ("Uint8Vector", {"values": np.array([0, 1], np.uint8)})}, "do not count"),
        ({"array_segments": ("Uint8Vector", {"values": np.array([], np.uint8)})}, "do not count"),
        ({"array_indices": ("Uint8Vector", {"values": np.array([2, 0, 3], np.uint8)})}, "outside a dim of 3"),
    ],
)
def test_sparse_tensor_that_does_not_hold(change: Tree, reason: str) -> None:
    refused(sparse(**change), "tensor 3 'spare'", reason)


def test_data_outside_the_file() -> None:
    model = tree("pad")
    model["buffers"][1] = {"data": None, "offset": 1 << 20, "size": 16}
    refused(model, "buffers[1]", "outside the file")


def test_data_outside_the_flatbuffer_that_overlap() -> None:
    model = tree("pad")
    size = len(encode(model))
    model["buffers"].append({"data": None, "offset": size, "size": 16})
    model["buffers"].append({"data": None, "offset": size + 8, "size": 16})
    with pytest.raises(InvalidModelError, match="overlap"):
        read(encode(model) + bytes(256))


def test_external_buffer_that_is_not_listed() -> None:
    model = tree("pad")
    tensor(model, 0)["external_buffer"] = 4
    refused(model, "tensor 0 'x'", "no external buffer 4")
