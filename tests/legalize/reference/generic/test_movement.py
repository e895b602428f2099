"""Data movement: the converted operator gives the interpreter's integers, whatever the storage type."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, edge_inputs, one_op
from support.reference import quantized

from tflq.ir.types import ScalarType, f32, i8, i16, i32, i64, ui8

TYPES = [i8, ui8, i16]


def ints(*values: object) -> np.ndarray:
    return np.asarray(values, np.int32)


@pytest.mark.parametrize("storage", TYPES, ids=str)
@pytest.mark.parametrize(
    ("name", "extra", "attributes", "shapes"),
    [
        ("reshape", [ints(3, 8)], {"new_shape": ints(3, 8)}, [(3, 8)]),
        ("squeeze", [], {"squeeze_dims": ints(0)}, [(2, 3, 4)]),
        ("expand_dims", [ints(1)], {}, [(1, 1, 2, 3, 4)]),
        ("transpose", [ints(0, 3, 1, 2)], {}, [(1, 4, 2, 3)]),
        ("slice", [ints(0, 1, 0, 1), ints(1, 1, 3, 2)], {}, [(1, 1, 3, 2)]),
        ("pad", [np.asarray([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32)], {}, [(1, 5, 4, 4)]),
        ("mirror_pad", [np.asarray([[0, 0], [1, 1], [2, 0], [0, 0]], np.int32)], {"mode": "REFLECT"}, [(1, 4, 5, 4)]),
        ("tile", [ints(2, 1, 1, 3)], {}, [(2, 2, 3, 12)]),
        ("gather", [ints(2, 0, 1)], {"axis": 2, "batch_dims": 0}, [(1, 2, 3, 4)]),
        ("unpack", [], {"num": 2, "axis": 1}, [(1, 3, 4), (1, 3, 4)]),
        ("split_v", [ints(1, 3), np.asarray(3, np.int32)], {"num_splits": 2}, [(1, 2, 3, 1), (1, 2, 3, 3)]),
        ("space_to_batch_nd", [ints(2, 3), np.asarray([[1, 1], [0, 0]], np.int32)], {}, [(6, 2, 1, 4)]),
    ],
    ids=lambda p: p if isinstance(p, str) else "",
)
def test_moves_what_the_kernel_moves(
    storage: ScalarType,
    name: str,
    extra: list[np.ndarray],
    attributes: dict[str, object],
    shapes: list[tuple[int, ...]],
) -> None:
    element = quantized(storage, 0.5)
    x = argument((1, 2, 3, 4), element)
    constants = [const(e, i32, f"c{i}") for i, e in enumerate(extra)]
    results = [argument(s, element, f"y{i}") for i, s in enumerate(shapes)]
    model = one_op(
        "tfl." + name, [x, *constants], results, attributes, 2 if name in ("unpack", "pad", "tile", "gather") else 1
    )
    conversion = convert_and_compare(model, edge_inputs([x]))
    assert [row.path for row in conversion.report.rows] == ["integer"]


@pytest.mark.parametrize(
    ("name", "element", "indices", "shape"),
    [
        ("pad", i8, [[1, 0], [0, 2]], (3, 5)),
        ("pad", i16, [[1, 0], [0, 2]], (3, 5)),
        ("transpose", i64, [1, 0], (3, 2)),
        ("split", i64, 1, (2, 3)),
        ("topk_v2", i16, 2, (2, 2)),
    ],
)
def test_operands_of_indices_of_other_types(
    name: str, element: ScalarType, indices: object, shape: tuple[int, ...]
) -> None:
    """The kernels take them, or read them as int32, which on this machine is the same."""
    q = quantized(i8, 0.5)
    x, where = argument((2, 3), q), const(np.asarray(indices), element, "where")
    results = [argument(shape, q, "y"), *([argument(shape, i16, "places")] if name == "topk_v2" else [])]
    options = {"num_splits": 1} if name == "split" else {}
    model = one_op(f"tfl.{name}", [where, x] if name == "split" else [x, where], results, options, 3 if options else 2)
    conversion = convert_and_compare(model, edge_inputs([x]))
    assert [row.path for row in conversion.report.rows] == ["integer"]


def test_split_into_other_parameters_copies_raw_with_a_warning() -> None:
    x = argument((2, 4), quantized(i8, 0.5))
    results = [argument((2, 2), quantized(i8, 0.25, -7), f"y{i}") for i in range(2)]
    model = one_op("tfl.split", [const(np.asarray(1), i32), x], results, {"num_splits": 2}, 2)
    conversion = convert_and_compare(model, edge_inputs([x]))
    assert "copies the stored integers" in conversion.report.rows[0].warning


@pytest.mark.parametrize("storage", TYPES, ids=str)
def test_padv2_with_the_same_parameters(storage: ScalarType) -> None:
    element = quantized(storage, 0.5)
    x, y = argument((1, 2, 3), element), argument((1, 4, 3), element, "y")
    around = const(np.asarray([[0, 0], [1, 1], [0, 0]], np.int32), i32, "p")
    model = one_op("tfl.padv2", [x, around, const(np.asarray(7), element, "v")], [y], {}, 2)
    convert_and_compare(model, edge_inputs([x]))


def test_padv2_requantizes_a_constant_of_other_parameters() -> None:
    import tflq

    x, y = argument((2,), quantized(i8, 0.5, 3)), argument((3,), quantized(i8, 0.5, 3), "y")
    around = const(np.asarray([[1, 0]], np.int32), i32, "p")
    value = const(np.asarray(10), quantized(i8, 0.25, 2), "v")  # 2.0: stored 7 with scale 0.5 and zero point 3
    conversion = tflq.convert(one_op("tfl.padv2", [x, around, value], [y], {}, 2))
    fills = [
        v.array
        for op in conversion.module.main.ops
        for v in op.operands
        if v and v.is_constant and v.type.storage == i8
    ]
    assert [f.tolist() for f in fills] == [7]


@pytest.mark.parametrize("storage", TYPES, ids=str)
def test_concatenation_of_the_same_parameters(storage: ScalarType) -> None:
    element = quantized(storage, 0.5)
    x, z, y = argument((1, 2), element), argument((1, 3), element, "z"), argument((1, 5), element, "y")
    model = one_op("tfl.concatenation", [x, z], [y], {"axis": 1, "fused_activation_function": "NONE"}, 2)
    convert_and_compare(model, edge_inputs([x, z]))


@pytest.mark.parametrize("scale", [0.11, 0.5, 1.7])
def test_concatenation_uint8_requantizes(scale: float) -> None:
    x, z = argument((1, 256), quantized(ui8, scale, 100)), argument((1, 2), quantized(ui8, 0.3, 7), "z")
    y = argument((1, 258), quantized(ui8, 0.3, 7), "y")
    model = one_op("tfl.concatenation", [x, z], [y], {"axis": 1, "fused_activation_function": "NONE"}, 2)
    every = np.arange(256, dtype=np.uint8).reshape(1, 256)
    convert_and_compare(model, [[every, np.asarray([[0, 255]], np.uint8)]])


def test_cast_of_a_quantized_tensor_is_raw() -> None:
    x, y = argument((2, 3), quantized(i8, 0.5)), argument((2, 3), f32, "y")
    conversion = convert_and_compare(one_op("tfl.cast", [x], [y], {}), edge_inputs([x]))
    assert "ignores scales" in conversion.report.rows[0].warning
