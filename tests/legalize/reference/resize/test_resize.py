"""Resizing: converted and original agree for any sizes, flags, storage types and batch."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, edge_inputs, interpret, one_op

import tflq
from tflq.ir.types import ScalarType, UniformQuantizedType, i8, i16, i32, ui8

TYPES = [i8, ui8, i16]
FLAGS = [(False, False), (True, False), (False, True)]
SIZES = [
    ((4, 5), (8, 10)),
    ((8, 10), (4, 5)),
    ((7, 5), (13, 3)),
    ((5, 9), (9, 17)),
    ((3, 3), (3, 3)),
    ((1, 6), (5, 6)),
    ((6, 1), (1, 4)),
    ((10, 11), (1, 1)),
    ((2, 33), (9, 129)),
    ((12, 16), (5, 7)),
]


def resize(
    name: str,
    storage: ScalarType,
    size: tuple[int | None, ...],
    out: tuple[int, int],
    flags: tuple[bool, bool],
    scale: float = 0.1,
) -> bytes:
    element = UniformQuantizedType.of(storage, 0.1, 3 if storage.bits == 8 else 0)
    target = UniformQuantizedType.of(storage, scale, element.zero_point)
    operands = [argument((size[0], size[1], size[2], 3), element), const(np.asarray(out, np.int32), i32)]
    options = {"align_corners": flags[0], "half_pixel_centers": flags[1]}
    return one_op("tfl." + name, operands, [argument((size[0], *out, 3), target, "y")], options, 3)


def inputs(storage: ScalarType, shape: tuple[int, ...]) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(4)
    near = rng.integers(0, 2, shape) * 255 + storage.minimum  # neighbours far apart
    return [*edge_inputs([argument(shape, storage)]), [near.astype(storage.dtype)]]


@pytest.mark.parametrize("flags", FLAGS, ids=["none", "align_corners", "half_pixel_centers"])
@pytest.mark.parametrize(("size", "out"), SIZES, ids=str)
@pytest.mark.parametrize("storage", TYPES, ids=str)
@pytest.mark.parametrize("name", ["resize_bilinear", "resize_nearest_neighbor"])
def test_sizes(
    name: str, storage: ScalarType, size: tuple[int, int], out: tuple[int, int], flags: tuple[bool, bool]
) -> None:
    conversion = convert_and_compare(resize(name, storage, (2, *size), out, flags), inputs(storage, (2, *size, 3)))
    row = conversion.report.rows[0]
    assert row.path == "integer"
    assert storage == ui8 or not row.note


@pytest.mark.parametrize("flags", FLAGS, ids=["none", "align_corners", "half_pixel_centers"])
@pytest.mark.parametrize("storage", TYPES, ids=str)
@pytest.mark.parametrize("name", ["resize_bilinear", "resize_nearest_neighbor"])
def test_random_sizes(name: str, storage: ScalarType, flags: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(storage.bits + flags[0])
    for _ in range(8):
        h, w, oh, ow = (int(v) for v in rng.integers(1, 24, 4))
        convert_and_compare(resize(name, storage, (1, h, w), (oh, ow), flags), inputs(storage, (1, h, w, 3)))


@pytest.mark.parametrize(("size", "out"), SIZES, ids=str)
def test_nearest_takes_both_flags(size: tuple[int, int], out: tuple[int, int]) -> None:
    """The bilinear kernel refuses them, the nearest one rounds from the middle of each element."""
    model = resize("resize_nearest_neighbor", i8, (2, *size), out, (True, True))
    convert_and_compare(model, inputs(i8, (2, *size, 3)))


@pytest.mark.parametrize("storage", TYPES, ids=str)
@pytest.mark.parametrize("name", ["resize_bilinear", "resize_nearest_neighbor"])
def test_batch_known_when_the_model_runs(name: str, storage: ScalarType) -> None:
    model = resize(name, storage, (None, 4, 5), (8, 7), (False, True))
    convert_and_compare(model, inputs(storage, (3, 4, 5, 3)))


def test_sizes_known_when_the_model_runs() -> None:
    """The nearest element is found by the kernel; the uint8 kernel's floats need the size now."""
    flags = (False, False)
    convert_and_compare(resize("resize_nearest_neighbor", i8, (1, None, None), (8, 7), flags), inputs(i8, (1, 5, 6, 3)))
    model = resize("resize_bilinear", ui8, (1, None, None), (8, 7), flags)
    with pytest.raises(tflq.UnsupportedError, match="not known"):
        tflq.convert(model, fallback="error")
    assert "can be two counts away" in tflq.convert(model).report.rows[0].warning


@pytest.mark.parametrize("flags", FLAGS, ids=["none", "align_corners", "half_pixel_centers"])
@pytest.mark.parametrize("out", [(8, 7), (1, 1), (3, 33)], ids=str)
@pytest.mark.parametrize("storage", [i8, i16], ids=str)
def test_a_bilinear_one_of_any_size(storage: ScalarType, out: tuple[int, int], flags: tuple[bool, bool]) -> None:
    model = resize("resize_bilinear", storage, (None, None, None), out, flags)
    for size in ((1, 5, 6), (2, 1, 1), (1, 16, 3), (1, 3, 40)):
        conversion = convert_and_compare(model, inputs(storage, (*size, 3)))
        assert conversion.report.rows[0].path == "integer"


@pytest.mark.parametrize("flags", FLAGS, ids=["none", "align_corners", "half_pixel_centers"])
@pytest.mark.parametrize("storage", [i8, i16], ids=str)
def test_a_bilinear_one_to_a_size_that_the_model_computes(storage: ScalarType, flags: tuple[bool, bool]) -> None:
    """The second input says the size."""
    element = UniformQuantizedType.of(storage, 0.1)
    operands = [argument((1, 5, 6, 3), element), argument((2,), i32, "size")]
    options = {"align_corners": flags[0], "half_pixel_centers": flags[1]}
    model = one_op("tfl.resize_bilinear", operands, [argument((1, None, None, 3), element, "y")], options, 3)
    made = tflq.convert(model).data
    for out in ((5, 6), (1, 12), (9, 1), (31, 17)):
        batches = [[x, np.asarray(out, np.int32)] for (x,) in inputs(storage, (1, 5, 6, 3))]
        for want, got in zip(interpret(model, batches), interpret(made, batches), strict=True):
            np.testing.assert_array_equal(got[0], want[0])


def test_doubling_uint8_is_done_in_integers() -> None:
    for flags in FLAGS[::2]:
        assert not tflq.convert(resize("resize_bilinear", ui8, (1, 8, 8), (16, 16), flags)).report.rows[0].note


@pytest.mark.parametrize(("size", "out"), [((1, 1), (33, 33)), ((9, 9), (9, 9)), ((9, 1), (5, 3))], ids=str)
@pytest.mark.parametrize("storage", TYPES, ids=str)
def test_what_copies_elements_computes_nothing(
    storage: ScalarType, size: tuple[int, int], out: tuple[int, int]
) -> None:
    model = resize("resize_bilinear", storage, (1, *size), out, (True, False))
    conversion = convert_and_compare(model, inputs(storage, (1, *size, 3)))
    assert not {op.name for op in conversion.module.main.ops} & {"tfl.mul", "tfl.add"}


def test_where_uint8_has_no_integer_form_the_report_says_so() -> None:
    conversion = tflq.convert(resize("resize_bilinear", ui8, (1, 6, 6), (5, 8), (False, True)))
    assert "float32" in conversion.report.rows[0].note


def test_parameters_of_the_result_are_ignored_with_a_warning() -> None:
    conversion = convert_and_compare(
        resize("resize_bilinear", i8, (1, 4, 4), (8, 8), (False, False), 0.3), inputs(i8, (1, 4, 4, 3))
    )
    assert "different quantization parameters" in conversion.report.rows[0].warning


@pytest.mark.parametrize("name", ["resize_bilinear", "resize_nearest_neighbor"])
@pytest.mark.parametrize("storage", TYPES, ids=str)
def test_other_kernels_agree(name: str, storage: ScalarType) -> None:
    model = resize(name, storage, (1, 7, 5), (12, 9), (False, True))
    converted, batches = tflq.convert(model).data, inputs(storage, (1, 7, 5, 3))
    want = interpret(model, batches)
    for resolver in ("BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO"):
        np.testing.assert_equal(interpret(converted, batches, resolver), want)
