"""What reading makes of a file: types, constants, attributes, where it came from, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.handmade import FEATURES, PAIR, operator
from support.structure import structural_difference

from tflq.base.errors import InvalidModelError
from tflq.formats.flatbuffer.codec import decode, encode
from tflq.formats.tflite.reader import read
from tflq.formats.tflite.writer import write
from tflq.ir.types import TensorType, UniformQuantizedSubChannelType, UniformQuantizedType, f32, i4, i8


def test_shape_with_an_unknown_dim() -> None:
    value = read(FEATURES["unknown batch"]).main.inputs[0]
    assert value.type == TensorType((None, 4), f32)
    assert value.info == {"has_rank": False}


def test_a_shape_of_no_known_rank_and_a_scalar() -> None:
    assert read(FEATURES["unranked"]).main.inputs[0].type.shape is None
    assert read(FEATURES["scalars"]).main.inputs[0].type.shape == ()


def test_quantization_becomes_the_element_type() -> None:
    value = read(FEATURES["quantization with everything"]).main.inputs[0]
    assert value.type.element == UniformQuantizedType.of(i8, 0.5, 3)
    assert {k: v for k, v in value.info.items() if k != "has_rank"} == {
        "min": (-1.0,),
        "max": (1.0,),
        "quantized_dimension": 1,
    }


def test_int4_is_read_packed() -> None:
    value = read(FEATURES["int4"]).main.tensors[2]
    assert value.type.element == UniformQuantizedType.of(i4, 0.5, 0)
    assert value.array.tolist() == [1, 2, -1]


def test_blockwise_quantization_becomes_a_sub_channel_type() -> None:
    main = read(FEATURES["blockwise"]).main
    expected = UniformQuantizedSubChannelType.of(i4, (0, 1), (1, 32), np.ones((2, 2)))
    assert main.tensors[2].type.element == expected
    assert main.tensors[2].info["quantization"]["details"][1]["scales"] is main.tensors[3]


def test_tensors_that_blockwise_quantization_names_follow_it_into_a_rebuilt_table() -> None:
    module = read(FEATURES["blockwise"])
    weights = module.main.tensors[2]
    module.main.tensors = [weights]
    tables = decode(write(module))["subgraphs"][0]["tensors"]
    details = next(t for t in tables if t["name"] == "w")["quantization"]["details"][1]
    assert tables[details["scales"]]["name"] == "s"
    assert details["zero_points"] == -1


def test_an_operator_keeps_what_is_beside_its_options() -> None:
    op = read(FEATURES["custom operator"]).main.ops[0]
    assert op.name == "tfl.custom"
    assert op.attributes == {"custom_code": "MyOp"}
    assert op.info["custom_options"].tolist() == [7, 8, 9]
    assert (op.info["version"], op.info["intermediates"], op.operands[1]) == (2, (), None)
    assert read(FEATURES["version and duplicate opcode rows"]).main.ops[0].info == {"opcode": 2, "options": None}


def test_attributes_hold_every_field_and_names_of_enums() -> None:
    op = read(FEATURES["shared buffer"]).main.ops[0]
    assert op.attributes == {"fused_activation_function": "RELU6", "pot_scale_int16": True}
    assert op.location is not None
    assert (op.location.operator, op.location.opcode, op.location.tensor) == (0, "ADD", "b")


def test_tensors_of_one_buffer_share_it() -> None:
    tensors = read(FEATURES["shared buffer"]).main.tensors
    assert tensors[2].buffer is tensors[3].buffer
    assert tensors[2].array.tolist() == [1.0]


def test_sources(tmp_path: Path) -> None:
    source = FEATURES["plain"]
    path = tmp_path / "plain.tflite"
    path.write_bytes(source)
    with path.open("rb") as file:
        modules = [
            read(path),
            read(str(path)),
            read(source),
            read(bytearray(source)),
            read(memoryview(source)),
            read(file),
        ]
    assert {structural_difference(source, write(module)) for module in modules} == {None}
    assert modules[0].source == str(path)
    assert str(modules[0].main.ops[0].location) == f"{path}: subgraph 0, operator 0 (ABS), tensor 'b'"


def test_constants_of_a_file_are_views_that_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "shared.tflite"
    path.write_bytes(FEATURES["shared buffer"])
    array = read(path).main.tensors[2].array
    assert not array.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 2


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"subgraphs": [{"tensors": [{**PAIR[0], "buffer": 9}]}]}, "subgraphs[0].tensors[0].buffer"),
        ({"subgraphs": [{"tensors": PAIR, "inputs": (2,)}]}, "subgraphs[0].inputs[0]"),
        (
            {"subgraphs": [{"tensors": PAIR, "operators": [operator((-2,), (1,))]}]},
            "subgraphs[0].operators[0].inputs[0]",
        ),
        (
            {"subgraphs": [{"tensors": PAIR, "operators": [operator((0,), (-1,))]}]},
            "subgraphs[0].operators[0].outputs[0]",
        ),
        (
            {"subgraphs": [{"tensors": PAIR, "operators": [operator((0,), (1,), 7)]}]},
            "subgraphs[0].operators[0].opcode_index",
        ),
        ({"metadata": [{"name": "m", "buffer": 5}]}, "metadata[0].buffer"),
        ({"signature_defs": [{"subgraph_index": 3}]}, "signature_defs[0].subgraph_index"),
        ({"operator_codes": [{"deprecated_builtin_code": 0, "builtin_code": "CUSTOM"}]}, None),
    ],
)
def test_an_index_out_of_range_is_named(change: Mapping[str, Any], where: str | None) -> None:
    fields = decode(FEATURES["plain"])
    with pytest.raises(InvalidModelError) as caught:
        read(encode({**fields, **change}))
    if where:
        assert caught.value.where.endswith(where)
