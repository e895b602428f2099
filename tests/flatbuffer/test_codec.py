"""Decoding and encoding: what is absent, empty, unknown or newer than the schema."""

from __future__ import annotations

import struct
from typing import Any

import flatbuffers
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.structure import structural_difference

from tflq.errors import InvalidModelError
from tflq.flatbuffer.codec import LONG_VECTOR, decode, encode
from tflq.flatbuffer.layout import table

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


def test_a_field_newer_than_the_schema_is_refused_by_table_and_slot() -> None:
    with pytest.raises(
        InvalidModelError, match="SoftmaxOptions has a field in slot 2, newer than the schema known here"
    ):
        decode(row_of_slots(0, 0, 7), "SoftmaxOptions")


def test_a_longer_vtable_without_a_newer_field_is_read() -> None:
    data = bytearray(row_of_slots(7, 0))
    assert decode(bytes(data), "SpaceToDepthOptions")["block_size"] == 7


def test_an_unknown_enum_member_is_refused_with_its_path() -> None:
    model = {"subgraphs": [{"tensors": [{"type": "INT8"}, {"type": "INT16"}]}]}
    data = encode(model)
    assert decode(data)["subgraphs"][0]["tensors"][1]["type"] == "INT16"
    mutated = _with_second_type(model, 99)
    with pytest.raises(InvalidModelError) as caught:
        decode(mutated)
    assert caught.value.where == "subgraphs[0].tensors[1].type"
    assert caught.value.reason.what == "unknown TensorType 99"


def _with_second_type(model: dict[str, Any], code: int) -> bytes:
    """The model's bytes with the type of the second tensor replaced."""
    data = bytearray(encode(model))
    root = struct.unpack_from("<I", data, 0)[0]

    def field(at: int, name: str, key: str) -> int:
        vtable = at - struct.unpack_from("<i", data, at)[0]
        slot = table(name).by_name[key].slot
        return int(at + struct.unpack_from("<H", data, vtable + 4 + 2 * slot)[0])

    def follow(at: int) -> int:
        return int(at + struct.unpack_from("<I", data, at)[0])

    subgraph = follow(follow(field(root, "Model", "subgraphs")) + 4)
    tensor = follow(follow(field(subgraph, "SubGraph", "tensors")) + 8)
    data[field(tensor, "Tensor", "type")] = code
    return bytes(data)


def test_an_unknown_union_member_is_refused() -> None:
    builder = flatbuffers.Builder()
    builder.StartObject(0)
    options = builder.EndObject()
    builder.StartObject(5)
    builder.PrependUint8Slot(3, 250, 0)
    builder.PrependUOffsetTRelativeSlot(4, options, 0)
    builder.Finish(builder.EndObject())
    with pytest.raises(InvalidModelError, match="builtin_options: unknown member 250 of union BuiltinOptions"):
        decode(bytes(builder.Output()), "Operator")


def test_a_union_type_without_a_value_is_refused() -> None:
    builder = flatbuffers.Builder()
    builder.StartObject(5)
    builder.PrependUint8Slot(3, 1, 0)
    builder.Finish(builder.EndObject())
    with pytest.raises(InvalidModelError, match="a type without the other"):
        decode(bytes(builder.Output()), "Operator")


def test_names_that_are_not_utf8_are_refused() -> None:
    data = encode({"name": "abcd"}, "Tensor").replace(b"abcd", b"ab\xff\xfe")
    with pytest.raises(InvalidModelError, match="name: not valid UTF-8"):
        decode(data, "Tensor")


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
