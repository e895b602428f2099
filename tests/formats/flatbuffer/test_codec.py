"""Decoding and encoding: what is absent, empty, or longer than needed."""

from __future__ import annotations

from typing import Any

import flatbuffers
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.structure import structural_difference

from tflq.formats.flatbuffer.codec import LONG_VECTOR, decode, encode

INT32 = st.integers(-(2**31), 2**31 - 1)


def row_of_slots(*numbers: int) -> bytes:
    """A table of int32 fields in slots 0, 1, ..."""
    builder = flatbuffers.Builder()
    builder.StartObject(len(numbers))
    for slot, number in enumerate(numbers):
        builder.PrependInt32Slot(slot, number, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


@pytest.mark.parametrize("shape", [None, (), (1,), (4, 3, 2)])
def test_absent_and_empty_vectors_stay_apart(shape: tuple[int, ...] | None) -> None:
    assert decode(encode({"shape": shape}, "Tensor"), "Tensor")["shape"] == shape


@pytest.mark.parametrize("name", [None, "", "a", "abc", "abcd", "größe/名"])
def test_absent_and_empty_strings_stay_apart(name: str | None) -> None:
    assert decode(encode({"name": name}, "Tensor"), "Tensor")["name"] == name


def test_every_field_is_there_with_its_default() -> None:
    fields = decode(encode({}, "Conv2DOptions"), "Conv2DOptions")
    assert fields == {
        "padding": "SAME",
        "stride_w": 0,
        "stride_h": 0,
        "fused_activation_function": "NONE",
        "dilation_w_factor": 1,
        "dilation_h_factor": 1,
        "quantized_bias_type": "FLOAT32",
    }


def test_a_string_ends_with_a_zero_byte() -> None:
    assert b"\x04\0\0\0abcd\0" in encode({"name": "abcd"}, "Tensor")


def test_bytes_are_views_and_aligned_as_the_schema_says() -> None:
    data = encode({"data": np.arange(5, dtype=np.uint8)}, "Buffer")
    content = decode(data, "Buffer")["data"]
    assert content.tobytes() == bytes(range(5))
    assert not content.flags.owndata
    place = content.__array_interface__["data"][0] - np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    assert place % 16 == 0


def test_a_long_vector_is_a_view() -> None:
    values = np.arange(LONG_VECTOR + 1, dtype=np.int64)
    read = decode(encode({"zero_point": values}, "QuantizationParameters"), "QuantizationParameters")["zero_point"]
    assert isinstance(read, np.ndarray)
    np.testing.assert_array_equal(read, values)


def test_a_longer_vtable_without_a_newer_field_is_read() -> None:
    data = bytearray(row_of_slots(7, 0))
    assert decode(bytes(data), "SpaceToDepthOptions")["block_size"] == 7


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "shape": st.lists(INT32, max_size=5).map(tuple),
            "type": st.sampled_from(["FLOAT32", "INT8", "INT4", "FLOAT8_E5M2"]),
            "buffer": st.integers(0, 2**32 - 1),
            "name": st.text(max_size=9),
            "is_variable": st.booleans(),
            "quantization": st.fixed_dictionaries(
                {},
                optional={
                    "scale": st.lists(st.floats(width=32, allow_nan=False), max_size=3).map(tuple),
                    "zero_point": st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3).map(tuple),
                    "details": st.tuples(
                        st.just("BlockwiseQuantization"), st.fixed_dictionaries({"scales": INT32, "block_size": INT32})
                    ),
                    "quantized_dimension": INT32,
                },
            ),
        },
    )
)
def test_decode_inverts_encode(tensor: dict[str, Any]) -> None:
    data = encode(tensor, "Tensor")
    assert len(data) % 16 == 0
    decoded = decode(data, "Tensor")
    assert encode(decoded, "Tensor") == data
    for key in ("shape", "name"):
        assert decoded[key] == tensor.get(key)
    given_parameters, read = tensor.get("quantization"), decoded["quantization"]
    assert (given_parameters is None) == (read is None)
    if given_parameters is not None:
        assert read["scale"] == given_parameters.get("scale")
        assert read["zero_point"] == given_parameters.get("zero_point")


def test_the_first_difference_is_a_path() -> None:
    def model(name: str) -> bytes:
        tensors = [{"name": "a", "shape": (1,)}, {"name": name, "shape": (1,)}]
        return encode({"version": 3, "subgraphs": [{"tensors": tensors}]})

    assert structural_difference(model("b"), model("b")) is None
    assert structural_difference(model("b"), model("c")) == "subgraphs[0].tensors[1].name: 'b' != 'c'"


def test_absent_and_empty_differ() -> None:
    assert structural_difference(encode({"description": ""}), encode({})) == "description: '' != None"
    assert structural_difference(encode({"buffers": []}), encode({})) == "buffers: [] != None"
