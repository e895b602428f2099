"""What writing makes of new modules, of changed ones, of ones over the limit, and what it refuses."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from support.handmade import FEATURES, Fields, new_module
from support.harness import renamed
from support.structure import structural_difference

from tflq.base.errors import InvalidModelError, VerificationError
from tflq.formats.flatbuffer.codec import decode
from tflq.formats.tflite import writer
from tflq.formats.tflite.reader import read
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function
from tflq.ir.ops import NO_DATA, Buffer, Op, Value
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


def test_a_flatbuffer_too_large_for_its_offsets_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "LARGEST", 512)
    with pytest.raises(VerificationError, match="a flatbuffer ends at 2 GiB"):
        write(new_module())


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


def test_a_module_can_replace_the_file_it_is_mapped_from(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(FEATURES["shared buffer"])
    module = read(path)
    assert write(module, path) == b""
    assert structural_difference(path.read_bytes(), FEATURES["shared buffer"]) is None
    assert os.listdir(tmp_path) == ["model.tflite"]


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    module = new_module()
    module.main.ops[0] = renamed(module.main.ops[0], "tfl.no_such_operator")
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
    module.main.ops[0] = renamed(module.main.ops[0], name)
    module.main.ops[0].attributes = dict(attributes)
    with pytest.raises(VerificationError, match=f"^'y': {name} cannot be written: .*{reason}"):
        write(module)


def test_new_blockwise_parameters_are_not_dropped_silently() -> None:
    element = UniformQuantizedSubChannelType.of(i4, (1,), (2,), np.ones((1, 2)))
    with pytest.raises(VerificationError, match="tensor 'z': blockwise quantization without a tensor of scales"):
        write(new_module(element, (1, 4)))
