"""write(read(x)) says the same as x, for models made here with every feature of the format; new modules; files."""

from __future__ import annotations

import contextlib
import io
import os
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.errors import InvalidModelError, VerificationError
from tflq.flatbuffer import writer
from tflq.flatbuffer.codec import decode
from tflq.flatbuffer.compare import structural_difference
from tflq.flatbuffer.encoder import encode
from tflq.flatbuffer.reader import NO_DATA, read
from tflq.flatbuffer.writer import write
from tflq.ir.core import Buffer, Function, Module, Op, Value, constant
from tflq.ir.types import (
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    f32,
    i4,
    i8,
    i32,
)

Fields = dict[str, Any]
SCALE: Fields = {"scale": (0.5,), "zero_point": (3,)}


def code(name: str, number: int, version: int = 1, custom: str | None = None) -> Fields:
    fields = {"builtin_code": name, "deprecated_builtin_code": min(number, 127), "version": version}
    return {**fields, "custom_code": custom}


def tensor(name: str, shape: tuple[int, ...] | None = (2, 4), type: str = "INT8", **more: Any) -> Fields:
    return {"name": name, "shape": shape, "type": type, **more}


def data(*numbers: int) -> Fields:
    return {"data": np.array(numbers, np.uint8)}


def model(
    codes: list[Fields],
    tensors: list[Fields],
    operators: list[Fields],
    inputs: tuple[int, ...] = (0,),
    outputs: tuple[int, ...] = (1,),
    buffers: tuple[Fields, ...] = (),
    subgraphs: tuple[Fields, ...] = (),
    **more: Any,
) -> bytes:
    """A model of one subgraph and further `subgraphs`; buffer 0 is the empty one."""
    main = {"name": "main", "tensors": tensors, "inputs": inputs, "outputs": outputs, "operators": operators}
    fields = {"version": 3, "operator_codes": codes, "subgraphs": [main, *subgraphs], "buffers": [{}, *buffers]}
    return encode({**fields, **more})


def operator(inputs: tuple[int, ...], outputs: tuple[int, ...], row: int = 0, **more: Any) -> Fields:
    return {"opcode_index": row, "inputs": inputs, "outputs": outputs, **more}


ABS = code("ABS", 101)
ABS_OPTIONS: tuple[str, Fields] = ("AbsOptions", {})
ONE_ABS = [operator((0,), (1,), builtin_options=ABS_OPTIONS)]
PAIR = [tensor("a", type="FLOAT32"), tensor("b", type="FLOAT32")]
BLOCKWISE = [
    *PAIR,
    tensor(
        "w",
        (2, 64),
        "INT4",
        buffer=1,
        quantization={"details": ("BlockwiseQuantization", {"scales": 3, "zero_points": -1, "block_size": 32})},
    ),
    tensor("s", (2, 2), "FLOAT16", buffer=2),
]
CSR = {
    "traversal_order": (0, 1),
    "dim_metadata": [
        {"format": "DENSE", "dense_size": 2},
        {
            "format": "SPARSE_CSR",
            "array_segments": ("Uint8Vector", {"values": np.array([0, 1, 2], np.uint8)}),
            "array_indices": ("Uint16Vector", {"values": (0, 3)}),
        },
    ],
}

FEATURES: dict[str, bytes] = {
    "plain": model([ABS], PAIR, ONE_ABS),
    "description and empty name": model([ABS], [{**PAIR[0], "name": ""}, PAIR[1]], ONE_ABS, description="made by hand"),
    "tensor without a name": model([ABS], [{**PAIR[0], "name": None}, PAIR[1]], ONE_ABS),
    "version and duplicate opcode rows": model([code("ABS", 101, 5), ABS, ABS], PAIR, [operator((0,), (1,), 2)]),
    "unused tensors and buffers": model(
        [ABS], [*PAIR, tensor("unused", buffer=1)], ONE_ABS, buffers=(data(*range(8)),)
    ),
    "shared buffer": model(
        [code("ADD", 0)],
        [*PAIR, tensor("c", (1,), "FLOAT32", buffer=1), tensor("d", (1,), "FLOAT32", buffer=1)],
        [operator((0, 2), (1,), builtin_options=("AddOptions", {"fused_activation_function": "RELU6"}))],
        buffers=(data(0, 0, 128, 63),),
    ),
    "two signatures": model(
        [ABS],
        PAIR,
        ONE_ABS,
        signature_defs=[
            {"signature_key": "first", "inputs": [{"name": "x"}], "outputs": [{"name": "y", "tensor_index": 1}]},
            {"signature_key": "second", "inputs": [{"name": "z"}], "outputs": [{"name": None, "tensor_index": 1}]},
        ],
    ),
    "metadata": model(
        [ABS],
        PAIR,
        ONE_ABS,
        buffers=(data(1, 2, 3),),
        metadata=[{"name": "min_runtime_version", "buffer": 1}, {"name": "again", "buffer": 1}],
        metadata_buffer=(1,),
    ),
    "custom operator": model(
        [code("CUSTOM", 32, 2, "MyOp")],
        PAIR,
        [operator((0, -1), (1,), custom_options=np.array([7, 8, 9], np.uint8), intermediates=())],
    ),
    "operator without options": model([ABS], PAIR, [operator((0,), (1,))]),
    "unknown batch": model([ABS], [tensor(n, (1, 4), "FLOAT32", shape_signature=(-1, 4)) for n in "ab"], ONE_ABS),
    "stored shape that is not 1": model(
        [ABS], [tensor(n, (8, 4), "FLOAT32", shape_signature=(-1, 4), has_rank=True) for n in "ab"], ONE_ABS
    ),
    "signature without unknown dims": model([ABS], [{**t, "shape_signature": (2, 4)} for t in PAIR], ONE_ABS),
    "unranked": model([ABS], [tensor(n, None, "FLOAT32") for n in "ab"], ONE_ABS),
    "scalars": model([ABS], [tensor(n, (), "FLOAT32", has_rank=True) for n in "ab"], ONE_ABS),
    "quantization with everything": model(
        [ABS],
        [tensor(n, quantization={**SCALE, "min": (-1.0,), "max": (1.0,), "quantized_dimension": 1}) for n in "ab"],
        ONE_ABS,
    ),
    "empty quantization": model(
        [ABS], [{**PAIR[0], "quantization": {}}, {**PAIR[1], "quantization": {"scale": (), "min": ()}}], ONE_ABS
    ),
    "statistics only": model([ABS], [{**t, "quantization": {"min": (0.0,), "max": (6.0,)}} for t in PAIR], ONE_ABS),
    "string tensor": model(
        [ABS],
        [*PAIR, tensor("text", (1,), "STRING", buffer=1)],
        ONE_ABS,
        buffers=(data(1, 0, 0, 0, 12, 0, 0, 0, 13, 0, 0, 0, 65),),
    ),
    "int4": model(
        [ABS],
        [*PAIR, tensor("w", (3,), "INT4", buffer=1, quantization={"scale": (0.5,), "zero_point": (0,)})],
        ONE_ABS,
        buffers=(data(0x21, 0x0F),),
    ),
    "blockwise": model([ABS], BLOCKWISE, ONE_ABS, buffers=(data(*range(64)), data(0, 60, 0, 60, 0, 60, 0, 60))),
    "sparsity": model(
        [ABS], [*PAIR, tensor("w", (2, 4), "INT8", buffer=1, sparsity=CSR)], ONE_ABS, buffers=(data(1, 2),)
    ),
    "variable tensor": model([ABS], [*PAIR, tensor("state", is_variable=True)], ONE_ABS),
    "external buffer": model(
        [ABS],
        [*PAIR, tensor("w", external_buffer=1)],
        ONE_ABS,
        external_buffer_groups=[{"name": "weights.bin"}],
        external_buffers=[{"id": 1, "group": 0, "offset": 4096, "length": 8, "packing": "none"}],
    ),
    "debug metadata": model([ABS], PAIR, [{**ONE_ABS[0], "debug_metadata_index": 4}]),
    "empty data": model([ABS], PAIR, ONE_ABS, buffers=({"data": np.zeros(0, np.uint8)}, {})),
    "control flow": model(
        [code("WHILE", 119)],
        PAIR,
        [operator((0,), (1,), builtin_options=("WhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 2}))],
        subgraphs=(
            {
                "name": "cond",
                "tensors": [PAIR[0], tensor("t", (), "BOOL", buffer=1)],
                "inputs": (0,),
                "outputs": (1,),
                "operators": [],
            },
            {"name": "body", "tensors": [PAIR[0]], "inputs": (0,), "outputs": (0,), "debug_metadata_index": 2},
        ),
        buffers=(data(0),),
    ),
    "operator 209": model(
        [code("STABLEHLO_CASE", 209)],
        [tensor("index", (), "INT32", has_rank=True), PAIR[1]],
        [operator((0,), (1,), builtin_options_2=("StablehloCaseOptions", {"branch_subgraph_indices": (1,)}))],
        subgraphs=(
            {"name": "branch", "tensors": [{**PAIR[0], "buffer": 1}], "inputs": (), "outputs": (0,), "operators": []},
        ),
        buffers=(data(*bytes(32)),),
    ),
    "composite": model(
        [code("STABLEHLO_COMPOSITE", 206), ABS],
        PAIR,
        [
            operator(
                (0,),
                (1,),
                builtin_options_2=(
                    "StableHLOCompositeOptions",
                    {
                        "name": "odml.x",
                        "decomposition_subgraph_index": 1,
                        "composite_attributes": np.array([1], np.uint8),
                    },
                ),
            )
        ],
        subgraphs=(
            {"name": "inner", "tensors": PAIR, "inputs": (0,), "outputs": (1,), "operators": [operator((0,), (1,), 1)]},
        ),
    ),
}


@pytest.mark.parametrize("feature", FEATURES)
def test_an_untouched_module_is_written_as_it_was_read(feature: str) -> None:
    source = FEATURES[feature]
    once = write(read(source))
    assert structural_difference(source, once) is None
    assert write(read(once)) == once


@settings(max_examples=300)
@given(
    st.sampled_from(sorted(FEATURES)),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_damaged_bytes_are_refused_or_come_back_as_they_were_read(
    feature: str, damage: list[tuple[float, int]]
) -> None:
    source = bytearray(FEATURES[feature])
    for place, byte in damage:
        source[int(place * len(source))] = byte
    with contextlib.suppress(InvalidModelError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert structural_difference(source, write(read(source))) is None


def test_a_flatbuffer_too_large_for_its_offsets_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "LARGEST", 512)
    with pytest.raises(VerificationError, match="a flatbuffer ends at 2 GiB"):
        write(new_module())


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
    expected = UniformQuantizedSubChannelType.of(i4, (1,), (32,), np.ones((2, 2)))
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


def new_module(element: Any = f32, shape: tuple[int | None, ...] = (None, 4), **info: Any) -> Module:
    """input → tfl.cast → tfl.add of a constant → output, none of it read from a file."""
    x, y, z = (Value(TensorType(shape, element), name) for name in "xyz")
    one = constant(np.ones(4, np.float32), name="one")
    cast = Op("tfl.cast", [x], [y], {"in_data_type": "FLOAT32", "out_data_type": "FLOAT32"}, info=info)
    add = Op("tfl.add", [y, one], [z], {"fused_activation_function": "NONE", "pot_scale_int16": True})
    return Module([Function("main", [x], [z], [cast, add])])


def test_new_operators_and_values() -> None:
    fields = decode(write(new_module(version=3)))
    rows = [(r["builtin_code"], r["deprecated_builtin_code"], r["version"]) for r in fields["operator_codes"]]
    assert sorted(rows) == [("ADD", 0, 1), ("CAST", 53, 3)]
    tensors = {t["name"]: t for t in fields["subgraphs"][0]["tensors"]}
    assert list(tensors) == ["x", "y", "one", "z"]
    assert (tensors["x"]["shape"], tensors["x"]["shape_signature"], tensors["x"]["has_rank"]) == ((1, 4), (-1, 4), True)
    assert (tensors["one"]["shape"], tensors["one"]["shape_signature"]) == ((4,), None)
    assert fields["buffers"][0]["data"] is None
    assert fields["buffers"][tensors["one"]["buffer"]]["data"].view(np.float32).tolist() == [1.0] * 4


def test_a_later_operator_has_the_placeholder_in_the_older_field() -> None:
    module = new_module()
    x, y = module.main.inputs[0], Value(TensorType((None, 4), f32), "y")
    module.functions = [Function(None, [x], [y], [Op("tfl.sign", [x], [y])])]
    row = decode(write(module))["operator_codes"][0]
    assert (row["deprecated_builtin_code"], row["builtin_code"]) == (127, "SIGN")


def test_new_quantized_values_get_their_parameters_from_the_type() -> None:
    layer = write(new_module(UniformQuantizedType.of(i8, 0.25, -7)))
    parameters = decode(layer)["subgraphs"][0]["tensors"][0]["quantization"]
    assert (parameters["scale"], parameters["zero_point"], parameters["min"]) == ((0.25,), (-7,), None)
    axis = write(new_module(UniformQuantizedPerAxisType.of(i8, 1, [1.0, 2.0, 3.0, 4.0])))
    parameters = decode(axis)["subgraphs"][0]["tensors"][0]["quantization"]
    assert (parameters["scale"], parameters["quantized_dimension"]) == ((1.0, 2.0, 3.0, 4.0), 1)
    assert parameters["zero_point"] == (0, 0, 0, 0)


def test_what_a_file_said_of_a_shape_is_dropped_when_the_shape_changes() -> None:
    module = read(FEATURES["stored shape that is not 1"])
    value = module.main.inputs[0]
    value.type = TensorType((2, 4), i32)
    fields = decode(write(module))["subgraphs"][0]["tensors"][0]
    assert (fields["shape"], fields["shape_signature"], fields["type"]) == ((2, 4), None, "INT32")


def test_constants_are_aligned_to_16_bytes_in_the_file() -> None:
    module = new_module()
    module.buffers = [Buffer(NO_DATA), *(Buffer(np.full(n, n, np.uint8)) for n in (1, 5, 16, 33))]
    written = np.frombuffer(write(module), np.uint8)
    base = written.__array_interface__["data"][0]
    for buffer in decode(written.data)["buffers"][1:]:
        assert (buffer["data"].__array_interface__["data"][0] - base) % 16 == 0


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A model with its constants behind the flatbuffer, as files over 2 GiB have them."""
    monkeypatch.setattr(writer, "LIMIT", 0)
    source = write(read(FEATURES["shared buffer"]))
    monkeypatch.undo()
    return source


def test_a_file_over_the_limit_keeps_its_constants_behind_the_flatbuffer(outside: bytes) -> None:
    fields = decode(outside)["buffers"][1]
    assert (fields["data"], fields["size"]) == (None, 4)
    assert fields["offset"] % 16 == 0
    assert outside[fields["offset"] :] == bytes((0, 0, 128, 63))
    assert read(outside).main.tensors[2].array.tolist() == [1.0]
    assert structural_difference(outside, write(read(outside))) is None


def test_constants_outside_the_file_are_refused(outside: bytes) -> None:
    with pytest.raises(InvalidModelError, match="buffers"):
        read(outside[:-1])


def test_large_custom_options() -> None:
    module = read(FEATURES["custom operator"])
    op = module.main.ops[0]
    op.info = {**op.info, "large_custom_options": (2, 3)}
    written = write(module)
    fields = decode(written)["subgraphs"][0]["operators"][0]
    assert (fields["custom_options"], fields["large_custom_options_size"]) == (None, 3)
    again = read(written)
    assert again.main.ops[0].info["custom_options"].tolist() == [7, 8, 9]
    assert structural_difference(written, write(again)) is None


def test_the_archive_of_associated_files_stays_readable() -> None:
    out = io.BytesIO(FEATURES["metadata"])
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("labels.txt", "cat\ndog\n")
    module = read(out.getvalue())
    assert structural_difference(out.getvalue(), write(module)) is None
    module.description = "longer than before " * 20
    with zipfile.ZipFile(io.BytesIO(write(module))) as archive:
        assert archive.testzip() is None
        assert archive.read("labels.txt") == b"cat\ndog\n"


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


def test_a_module_can_replace_the_file_it_is_mapped_from(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(FEATURES["shared buffer"])
    module = read(path)
    assert write(module, path) == b""
    assert structural_difference(path.read_bytes(), FEATURES["shared buffer"]) is None
    assert os.listdir(tmp_path) == ["model.tflite"]


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    module = new_module()
    module.main.ops[0].name = "tfl.no_such_operator"
    with pytest.raises(VerificationError):
        write(module, tmp_path / "out.tflite")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "attributes", "reason"),
    [
        ("tfl.no_such_operator", {}, "TFLite has no such operator"),
        ("tosa.add", {}, "TFLite has no such operator"),
        ("tfl.Cast", {}, "TFLite has no such operator"),
        ("tfl.cast", {"in_dtype": "INT8"}, "CastOptions has no in_dtype"),
        ("tfl.cast", {"in_data_type": "I8"}, "I8"),
        ("tfl.logistic", {"beta": 1.0}, "an operator without options has no beta"),
        ("tfl.gather", {"axis": 2**40}, "format requires"),
    ],
)
def test_what_has_no_form_in_tflite_is_not_written(name: str, attributes: Fields, reason: str) -> None:
    module = new_module()
    module.main.ops[0].name, module.main.ops[0].attributes = name, attributes
    with pytest.raises(VerificationError, match=f"^'y': {name} cannot be written: .*{reason}"):
        write(module)


def test_new_blockwise_parameters_are_not_dropped_silently() -> None:
    element = UniformQuantizedSubChannelType.of(i4, (1,), (2,), np.ones((1, 2)))
    with pytest.raises(VerificationError, match="tensor 'z': blockwise quantization without a tensor of scales"):
        write(new_module(element, (1, 4)))


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
