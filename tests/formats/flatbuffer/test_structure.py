"""The structure check against broken bytes: each case says where and why; and its cost on a large graph."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.counting import calls

from tflq.base.errors import InvalidModelError
from tflq.formats.flatbuffer.codec import decode, encode
from tflq.formats.flatbuffer.layout import table
from tflq.formats.flatbuffer.structure import check

MODELS = Path(__file__).resolve().parents[3] / "models"
SMALL = (MODELS / "pad.tflite").read_bytes()


def u16(data: bytes, place: int) -> int:
    return int(struct.unpack_from("<H", data, place)[0])


def u32(data: bytes, place: int) -> int:
    return int(struct.unpack_from("<I", data, place)[0])


def put(data: bytes, place: int, value: int, code: str = "I") -> bytes:
    out = bytearray(data)
    struct.pack_into(f"<{code}", out, place, value)
    return bytes(out)


def root(data: bytes) -> int:
    return u32(data, 0)


def vtable(data: bytes, at: int) -> int:
    return at - int(struct.unpack_from("<i", data, at)[0])


def slot(data: bytes, at: int, layout: str, field: str) -> int:
    """Where a table at `at` keeps a field."""
    return at + u16(data, vtable(data, at) + 4 + 2 * table(layout).by_name[field].slot)


def target(data: bytes, place: int) -> int:
    return place + u32(data, place)


def element(data: bytes, vector: int, index: int) -> int:
    return target(data, vector + 4 + 4 * index)


def graph(data: bytes) -> int:
    """Where the first subgraph's table is."""
    return element(data, target(data, slot(data, root(data), "Model", "subgraphs")), 0)


def tensor(data: bytes, index: int) -> int:
    return element(data, target(data, slot(data, graph(data), "SubGraph", "tensors")), index)


def operator(data: bytes) -> int:
    return element(data, target(data, slot(data, graph(data), "SubGraph", "operators")), 0)


def refused(data: bytes, where: str, reason: str) -> None:
    with pytest.raises(InvalidModelError) as caught:
        check(memoryview(data))
    assert where in caught.value.where
    assert reason in caught.value.reason.what


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.tflite")), ids=lambda path: path.name)
def test_whole_models_pass(path: Path) -> None:
    check(memoryview(path.read_bytes()))


@pytest.mark.parametrize("size", [0, 1, 4, 7, 8, 11])
def test_too_short(size: int) -> None:
    refused(SMALL[:size], "", "too few" if size else "the file is empty")


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.tflite")), ids=lambda path: path.name)
def test_every_truncation_is_refused_or_harmless(path: Path) -> None:
    data = path.read_bytes()
    kept = 0
    for size in range(0, len(data), max(len(data) // 200, 1)):
        try:
            check(memoryview(data[:size]))
            kept += 1
        except InvalidModelError:
            pass
    assert kept <= 1  # the encoder's padding at the end may go


def test_identifier() -> None:
    refused(SMALL[:4] + b"TFL2" + SMALL[8:], "", "bytes 4 to 7 are")


@pytest.mark.parametrize("offset", [0, 4, 6, 9, 1 << 31, 0xFFFFFFFF])
def test_root_offset(offset: int) -> None:
    refused(put(SMALL, 0, offset), "Model", "root offset")


@pytest.mark.parametrize(("soffset", "reason"), [(-(1 << 31), "outside"), ((1 << 31) - 1, "outside"), (3, "outside")])
def test_vtable_outside(soffset: int, reason: str) -> None:
    refused(put(SMALL, root(SMALL), soffset, "i"), "Model", reason)


@pytest.mark.parametrize("size", [0, 2, 5, 0xFFFE])
def test_vtable_size(size: int) -> None:
    refused(put(SMALL, vtable(SMALL, tensor(SMALL, 0)), size, "H"), "Model.subgraphs[0].tensors[0]", "impossible size")


def test_table_ends_outside() -> None:
    refused(put(SMALL, vtable(SMALL, root(SMALL)) + 2, 0xFFFF, "H"), "Model", "table ends outside")


def test_field_outside_its_table() -> None:
    place = vtable(SMALL, tensor(SMALL, 1)) + 4
    refused(put(SMALL, place, 0x7000, "H"), "Model.subgraphs[0].tensors", "outside its table")


def test_reference_outside() -> None:
    place = slot(SMALL, tensor(SMALL, 1), "Tensor", "name")
    refused(put(SMALL, place, 0x7FFFFFF0), "Model.subgraphs[0].tensors[1].name", "outside the file")


def test_reference_to_itself() -> None:
    refused(put(SMALL, slot(SMALL, tensor(SMALL, 1), "Tensor", "name"), 0), "tensors[1].name", "itself")


def test_reference_misaligned() -> None:
    place = slot(SMALL, tensor(SMALL, 1), "Tensor", "name")
    refused(put(SMALL, place, u32(SMALL, place) + 2), "tensors[1].name", "misaligned")


def test_vector_beyond_the_end() -> None:
    quantization = target(SMALL, slot(SMALL, tensor(SMALL, 0), "Tensor", "quantization"))
    scale = target(SMALL, slot(SMALL, quantization, "QuantizationParameters", "scale"))
    refused(put(SMALL, scale, 0x3FFFFFFF), "Model.subgraphs[0].tensors[0].quantization.scale", "beyond the end")


def test_string_without_end() -> None:
    name = target(SMALL, slot(SMALL, tensor(SMALL, 0), "Tensor", "name"))
    refused(put(SMALL, name + 4 + u32(SMALL, name), 7, "B"), "tensors[0].name", "NUL")


def test_string_of_other_bytes() -> None:
    name = target(SMALL, slot(SMALL, tensor(SMALL, 0), "Tensor", "name"))
    refused(put(SMALL, name + 4, 0xFF, "B"), "tensors[0].name", "UTF-8")


def test_unknown_tensor_type() -> None:
    changed = put(SMALL, slot(SMALL, tensor(SMALL, 0), "Tensor", "type"), 99, "B")
    refused(changed, "Model.subgraphs[0].tensors[0].type", "unknown TensorType 99")


def test_unknown_options_type() -> None:
    changed = put(SMALL, slot(SMALL, operator(SMALL), "Operator", "builtin_options_type"), 250, "B")
    refused(changed, "operators[0].builtin_options", "unknown type 250 of union BuiltinOptions")


def test_union_type_without_value() -> None:
    changed = put(SMALL, slot(SMALL, operator(SMALL), "Operator", "builtin_options_type"), 0, "B")
    refused(changed, "operators[0].builtin_options", "no type")


def test_two_references_to_one_tensor() -> None:
    vector = target(SMALL, slot(SMALL, graph(SMALL), "SubGraph", "tensors"))
    refused(put(SMALL, vector + 8, u32(SMALL, vector + 4) - 4), "byte", "two references lead to one table")


def test_one_table_of_two_types() -> None:
    """Empty options that are a tensor's quantization as well: either reading alone would pass."""
    tree: dict[str, Any] = decode(SMALL)
    tree["subgraphs"][0]["operators"][0]["builtin_options"] = ("PadOptions", {})
    tree["subgraphs"][0]["tensors"][0]["quantization"] = {}
    data = encode(tree)
    place = slot(data, operator(data), "Operator", "builtin_options")
    quantization = target(data, slot(data, tensor(data, 0), "Tensor", "quantization"))
    refused(put(data, place, quantization - place), "byte", "as PadOptions and as QuantizationParameters")


def test_newer_field_is_named() -> None:
    """A vtable with one more slot than the schema known here has, set."""
    at = root(SMALL)
    data = SMALL + bytes(-len(SMALL) % 4)
    old = vtable(data, at)
    slots = len(table("Model").fields)
    entries = [u16(data, old + 4 + 2 * i) if 4 + 2 * i < u16(data, old) else 0 for i in range(slots)]
    new = struct.pack(f"<{slots + 3}H", 6 + 2 * slots, u16(data, old + 2), *entries, 4)
    refused(put(data, at, at - len(data), "i") + new, "Model", f"slot {slots}, newer")


def test_overlapping_vectors_do_not_multiply_work() -> None:
    """Many subgraphs whose tensor vectors are one and the same: refused before they are looked at."""
    tree: dict[str, Any] = decode(SMALL)
    first = tree["subgraphs"][0]
    tensors = [dict(first["tensors"][0], name=None, shape=None, quantization=None) for _ in range(4000)]
    tree["subgraphs"] = [
        *(dict(first, operators=[], tensors=[tensors[0]]) for _ in range(300)),
        dict(first, tensors=tensors),
    ]
    data = encode(tree)
    subgraphs = target(data, slot(data, root(data), "Model", "subgraphs"))
    vector = target(data, slot(data, element(data, subgraphs, 300), "SubGraph", "tensors"))
    for index in range(300):
        place = slot(data, element(data, subgraphs, index), "SubGraph", "tensors")
        data = put(data, place, vector - place)
    assert calls(lambda: refused(data, "Model", "more tables than")) < 5000


@pytest.mark.parametrize(("layout", "field"), [("Buffer", "data"), ("Tensor", "shape")])
def test_bytes_that_many_vectors_share(layout: str, field: str) -> None:
    """Constants are views: any number may share bytes. Other vectors are copied, which has a bound."""
    tree: dict[str, Any] = decode(SMALL)
    first = tree["subgraphs"][0]
    if layout == "Buffer":
        tree["buffers"] += [{"data": np.zeros(1, np.uint8)} for _ in range(300)]
        tree["buffers"][-1] = {"data": np.zeros(40_000, np.uint8)}
    else:
        first["tensors"] += [dict(first["tensors"][0], shape=np.ones(1, np.int32)) for _ in range(300)]
        first["tensors"][-1] = dict(first["tensors"][0], shape=np.ones(10_000, np.int32))
    data = encode(tree)
    place = slot(data, graph(data), "SubGraph", "tensors")
    vector = target(data, slot(data, root(data), "Model", "buffers") if layout == "Buffer" else place)
    last = u32(data, vector) - 1
    shared = target(data, slot(data, element(data, vector, last), layout, field))
    for index in range(last - 299, last):
        place = slot(data, element(data, vector, index), layout, field)
        data = put(data, place, shared - place)
    if layout == "Buffer":
        check(memoryview(data))
    else:
        refused(data, "", "vectors overlap")


def test_cost_on_a_large_graph() -> None:
    """2,000 operators and 2,500 tensors: whole arrays are checked, not table by table."""
    tree: dict[str, Any] = decode((MODELS / "cnn_int8.tflite").read_bytes())
    first = tree["subgraphs"][0]
    first["tensors"] = [dict(first["tensors"][i % len(first["tensors"])]) for i in range(2500)]
    first["operators"] = [dict(first["operators"][i % len(first["operators"])]) for i in range(2000)]
    data = memoryview(encode(tree))
    assert calls(lambda: check(data)) < 4500


def many_tensors(count: int, *, shared: bool) -> bytes:
    """A model of empty tensors, all with one vtable or each with its own: 8 or 12 bytes of file per tensor."""
    graph_fields: dict[str, Any] = {"tensors": [], "inputs": (), "outputs": (), "operators": []}
    data = encode({"version": 3, "operator_codes": [], "subgraphs": [graph_fields], "buffers": []})
    data += bytes(-len(data) % 4)
    place, vector = slot(data, graph(data), "SubGraph", "tensors"), len(data)
    data = put(data, place, vector - place)
    first, stride = vector + 4 + 4 * count + 4 * shared, 4 if shared else 8
    tables = first + np.arange(count) * stride
    references = (tables - (vector + 4 + 4 * np.arange(count))).astype("<u4").tobytes()
    empty = struct.pack("<HH", 4, 4)
    if shared:
        body = empty + (tables - (first - 4)).astype("<i4").tobytes()
    else:
        body = b"".join(struct.pack("<i", -4) + empty for _ in range(count))
    return data + struct.pack("<I", count) + references + body


def test_number_of_tables_is_bounded() -> None:
    check(memoryview(many_tensors(10_000, shared=True)))
    refused(many_tensors(400_000, shared=True), "Model.subgraphs[0]", "more tables than")


def test_number_of_vtables_is_bounded() -> None:
    check(memoryview(many_tensors(10_000, shared=False)))
    refused(many_tensors(30_000, shared=False), "Model.subgraphs[0].tensors[0]", "vtables")
