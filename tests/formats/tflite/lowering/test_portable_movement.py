"""What moves or mixes elements on targets that restrict plain builtins: each gives what the evaluator gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, one_op
from support.lowered import draw
from support.portable import assert_portable

import tflq
from tflq.base.errors import UnsupportedError
from tflq.dialects.builder import Builder
from tflq.dialects.tfl.movement import Concatenation, Pack, PadV2, Split, Unpack
from tflq.dialects.tfl.pooling import ResizeNearestNeighbor
from tflq.dialects.tosa.movement import Gather
from tflq.formats.tflite.reader import read
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, f32, i8, i32, ui8
from tflq.numerics.fixed_point import quantize_multipliers

NUMBERS: Final = np.arange(-128, 128)


@pytest.mark.parametrize("count", [10, 11, 101])
def test_many_joined(count: int) -> None:
    """In groups, as all runtimes take them."""
    arrays = [draw(i8, (2, 3), seed) for seed in range(count)]
    assert_portable(lambda b, *xs: b.concat(list(xs), 1), arrays, [i8] * count)


def stepped(b: Builder, x: Value) -> Value:
    """A result that is there as floats, too."""
    return b.rescale(x, quantize_multipliers(np.asarray([0.2])), i8, output_zp=-7)


def gathered(b: Builder, x: Value) -> Value:
    return b.emit(Gather, [x, b.constant([[2, 0, 2, 1]] * 3)], TensorType((3, 4, 6), i8))


def padded(b: Builder, x: Value) -> Value:
    return b.emit(PadV2, [x, b.constant([[0, 0], [1, 2], [3, 0]]), b.constant(np.asarray(-9), i8)])


def unpacked(b: Builder, x: Value) -> Value:
    parts = b.op(Unpack, [x], [TensorType((3, 6), i8)] * 5, {"num": 5, "axis": -2}).results
    return b.maximum(parts[0], parts[4])


def halved(b: Builder, x: Value) -> Value:
    halves = b.op(Split, [b.constant(np.asarray(-1)), x], [TensorType((3, 5, 3), i8)] * 2, {"num_splits": 2}).results
    return b.minimum(*halves)


@pytest.mark.parametrize(
    "move",
    [
        lambda b, x: b.emit(Pack, [x, x, b.clamp(x, -20, 5)], axis=-2, values_count=3),
        lambda b, x: b.emit(Concatenation, [x, x], axis=-1, fused_activation_function="NONE"),
        unpacked,
        halved,
        lambda b, x: b.reshape(x, (9, 10)),
        lambda b, x: b.transpose(x, (0, 2, 1)),
        lambda b, x: b.slice(x, (1, 2, 0), (2, 3, 5)),
        lambda b, x: b.concat([x, x], 1),
        gathered,
        lambda b, x: b.reduce("max", x, 1),
        lambda b, x: b.clamp(x, -20, 5),
        lambda b, x: b.maximum(x, b.constant([[[-11]]], i8)),
        lambda b, x: b.minimum(b.reduce("max", x, 1), x),
        padded,
    ],
    ids=[
        "pack",
        "join",
        "unpack",
        "split",
        "reshape",
        "transpose",
        "slice",
        "concat",
        "gather",
        "max",
        "clamp",
        "maximum",
        "minimum",
        "pad",
    ],
)
def test_moved(move: Callable[[Builder, Value], Value]) -> None:
    """On floats: between two lines there are no integers. And on integers, which no line has made."""
    x = draw(i8, (3, 5, 6))
    assert_portable(lambda b, v: stepped(b, move(b, stepped(b, v))), [x], [i8])
    assert_portable(lambda b, v: stepped(b, move(b, v)), [x], [i8])


@pytest.mark.parametrize("out", [(10, 12), (9, 13), (3, 4)])
@pytest.mark.parametrize(
    "flags", [(False, False), (True, False), (False, True)], ids=["plain", "corners", "half pixel"]
)
def test_resized(out: tuple[int, int], flags: tuple[bool, bool]) -> None:
    """The builtin, without options, or GATHER."""
    element = UniformQuantizedType.of(i8, 0.05, 3)
    x, y = argument((1, 5, 6, 3), element, "x"), argument((1, *out, 3), element, "y")
    options = {"align_corners": flags[0], "half_pixel_centers": flags[1]}
    model = one_op("tfl.resize_nearest_neighbor", [x, constant(np.asarray(out, np.int32))], [y], options)
    made = convert_and_compare(model, [[draw(i8, (1, 5, 6, 3))]], target="portable")
    resized = [op for op in read(bytes(made.data)).ops() if isinstance(op, ResizeNearestNeighbor)]
    assert not any(op.align_corners or op.half_pixel_centers for op in resized)


@pytest.mark.parametrize(("storage", "out"), [(i8, (10, 12)), (ui8, (10, 12)), (i8, (9, 13)), (i8, (3, 4))], ids=str)
@pytest.mark.parametrize("half", [False, True])
def test_interpolated(storage: ScalarType, out: tuple[int, int], half: bool) -> None:
    """Sums of up to 2^27, or less where the steps are small."""
    element = UniformQuantizedType.of(storage, 0.05, 3)
    x, y = argument((2, 5, 6, 3), element, "x"), argument((2, *out, 3), element, "y")
    options = {"align_corners": False, "half_pixel_centers": half}
    model = one_op("tfl.resize_bilinear", [x, constant(np.asarray(out, np.int32))], [y], options)
    convert_and_compare(model, [[draw(storage, (2, 5, 6, 3), seed)] for seed in range(3)], target="portable")


@pytest.mark.parametrize("stride", [(1, 1), (2, 1), (2, 3), (1, 2)])
def test_transposed_convolution(stride: tuple[int, int]) -> None:
    """Without TRANSPOSE of int32."""
    out = (2, 4 * stride[0], 3 * stride[1], 4)
    x, y = (argument(s, UniformQuantizedType.of(i8, 0.05, 3), n) for s, n in (((2, 4, 3, 5), "x"), (out, "y")))
    numbers = np.random.default_rng(0).integers(-127, 128, (4, 3, 2, 5)).astype(np.int8)
    weights = const(numbers, UniformQuantizedType.of(i8, 0.002, 0))
    options = {"padding": "SAME", "stride_h": stride[0], "stride_w": stride[1], "fused_activation_function": "NONE"}
    model = one_op("tfl.transpose_conv", [constant(np.asarray(out, np.int32)), weights, x], [y], options)
    convert_and_compare(model, [[draw(i8, (2, 4, 3, 5), seed)] for seed in range(3)], target="portable")


@pytest.mark.parametrize("join", ["tfl.concatenation", "tfl.pack"])
def test_uint8_joined(join: str) -> None:
    """It is never CAST to uint8, which not all runtimes have."""
    element = UniformQuantizedType.of(ui8, 0.05, 3)
    inputs = [argument((2, 3), element, name) for name in ("x", "y")]
    shape, options = (
        ((2, 6), {"axis": 1}) if join == "tfl.concatenation" else ((2, 2, 3), {"axis": 1, "values_count": 2})
    )
    model = one_op(join, inputs, [argument(shape, element, "z")], options)
    convert_and_compare(model, [[draw(ui8, (2, 3), seed) for seed in (1, 2)]], target="portable")


# Operators that not all runtimes have, or have right.


def ints(*numbers: Any) -> Value:
    return constant(np.asarray(numbers, np.int32))


MOVES: Final[dict[str, tuple[str, tuple[int, ...], list[Value], list[tuple[int, ...]], dict[str, Any], int]]] = {
    "blocks": ("space_to_batch_nd", (2, 4, 6, 3), [ints(2, 3), ints([1, 1], [0, 0])], [(12, 3, 2, 3)], {}, 2),
    "rows of blocks": ("space_to_batch_nd", (2, 4, 3), [ints(2), ints([1, 3])], [(4, 4, 3)], {}, 2),
    "batches": ("batch_to_space_nd", (12, 3, 2, 3), [ints(2, 3), ints([1, 1], [0, 2])], [(2, 4, 4, 3)], {}, 2),
    "rows of batches": ("batch_to_space_nd", (4, 4, 3), [ints(2), ints([0, 0])], [(2, 8, 3)], {}, 2),
    "parts": ("split_v", (2, 9, 3), [ints(2, -1, 3), constant(np.asarray(-2, np.int32))],
              [(2, 2, 3), (2, 4, 3), (2, 3, 3)], {"num_splits": 3}, 2),
    "tiles": ("tile", (2, 3, 4), [ints(2, 1, 23)], [(4, 3, 92)], {}, 2),
    "tiles by int64": ("tile", (2, 3), [constant(np.asarray([1, 2]))], [(2, 6)], {}, 2),
    "one tile": ("tile", (2, 3), [ints(1, 1)], [(2, 3)], {}, 2),
    "reflection": ("mirror_pad", (1, 4, 5, 3), [ints([0, 0], [1, 2], [3, 0], [0, 0])], [(1, 7, 8, 3)],
                   {"mode": "REFLECT"}, 2),
    "symmetry": ("mirror_pad", (1, 4, 5), [ints([0, 1], [4, 0], [1, 0])], [(2, 8, 6)], {"mode": "SYMMETRIC"}, 2),
    "backwards": ("reverse_v2", (2, 4, 5), [ints(-1, 1)], [(2, 4, 5)], {}, 3),
    "broadcast": ("broadcast_to", (4, 1, 3), [ints(2, 4, 5, 3)], [(2, 4, 5, 3)], {}, 3),
    "one more dim": ("expand_dims", (2, 3), [constant(np.asarray(-1, np.int32))], [(2, 3, 1)], {}, 1),
}  # fmt: skip
"""By what is moved: operator, shape, other operands, shapes of results, attributes, version on int8."""


@pytest.mark.parametrize(
    "element", [UniformQuantizedType.of(i8, 0.5, -3), UniformQuantizedType.of(ui8, 0.5, 3), f32], ids=str
)
@pytest.mark.parametrize("what", MOVES)
def test_operators_that_move(what: str, element: Any) -> None:
    name, shape, others, shapes, attributes, version = MOVES[what]
    x, results = argument(shape, element), [argument(s, element, f"y{i}") for i, s in enumerate(shapes)]
    version = version if x.type.storage is i8 else 2 if name in ("broadcast_to", "reverse_v2") else 1
    model = one_op(f"tfl.{name}", [x, *others], results, attributes, version)
    conversion = convert_and_compare(model, [[draw(x.type.storage, shape)]], target="portable")
    left = {op.name for op in read(bytes(conversion.data)).ops()}
    assert x.type.storage is f32 or f"tfl.{name}" not in left
    if x.type.storage is i8 and "batch" in name:
        convert_and_compare(model, [[draw(x.type.storage, shape)]], target="tflm")


def test_blocks_of_an_open_batch() -> None:
    element = UniformQuantizedType.of(i8, 0.5, -3)
    x, y = argument((None, 4, 6, 3), element), argument((None, 3, 2, 3), element, "y")
    model = one_op("tfl.space_to_batch_nd", [x, ints(2, 3), ints([1, 1], [0, 0])], [y], {}, 2)
    for batch in (1, 2):
        convert_and_compare(model, [[draw(i8, (batch, 4, 6, 3))]], target="portable")


def test_a_shape_that_is_computed_but_for_the_batch() -> None:
    """SHAPE, which not all runtimes have, is left out."""
    element = UniformQuantizedType.of(i8, 0.5, -3)
    x, y = argument((None, 4, 6), element), argument((None, 24), element, "y")
    shape, batch, packed = argument((3,), i32, "shape"), argument((), i32, "batch"), argument((2,), i32, "packed")
    masks = {f"{name}_mask": 0 for name in ("begin", "end", "ellipsis", "new_axis")}
    ops = [
        Op("tfl.shape", [x], [shape], {"out_type": "INT32"}),
        Op("tfl.strided_slice", [shape, ints(0), ints(1), ints(1)], [batch],
           {**masks, "shrink_axis_mask": 1, "offset": False}),
        Op("tfl.pack", [batch, constant(np.asarray(24, np.int32))], [packed], {"values_count": 2, "axis": 0}),
        Op("tfl.reshape", [x, packed], [y], {"new_shape": None}),
    ]  # fmt: skip
    model = bytes(write(Module([Function("main", [x], [y], ops)])))
    for count in (1, 3):
        convert_and_compare(model, [[draw(i8, (count, 4, 6))]], target="portable")


@pytest.mark.parametrize("what", MOVES)
def test_sizes_that_the_model_computes(what: str) -> None:
    """The target has no builtin for them: refused by the operator, not written."""
    name, shape, others, shapes, attributes, version = MOVES[what]
    element = UniformQuantizedType.of(i8, 0.5, -3)
    computed = [argument(v.type.dims, v.type.element, f"n{i}") for i, v in enumerate(others)]
    results = [argument((None,) * len(s), element, f"y{i}") for i, s in enumerate(shapes)]
    model = one_op(f"tfl.{name}", [argument(shape, element), *computed], results, attributes, version)
    with pytest.raises(UnsupportedError, match=f"{name.upper()}.*tfl.{name} on .* is not an operator of the target"):
        tflq.convert(model, target="portable")
