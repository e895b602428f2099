"""Data movement on TOSA's operators: what the random cases do not draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import argument, const
from support.lowered_tosa import assert_gives, lowered_op, run

from tflq.base.errors import UnsupportedError
from tflq.formats.tosa.lowering.engine import lower
from tflq.formats.tosa.rules import Target
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedPerAxisType, f32, i1, i2, i4, i8, i16, i32, i64, ui8

_STORAGES = [i1, i8, ui8, i16, i32, f32]
_NO_INT16 = Target(extensions=frozenset())


def _draw(storage: ScalarType, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if storage.is_float:
        return rng.normal(0, 4, shape).astype(np.float32)
    if storage == i1:
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(storage.minimum, storage.maximum, shape, storage.dtype, endpoint=True)


def _check(name: str, x: Value, more: list[Value], out: tuple[int, ...], want: Any, **attributes: Any) -> Function:
    """The op on a random operand gives what `want` says of it."""
    result = argument(out, x.type.element)
    _, lowered = lowered_op(name, [x, *more], [result], attributes)
    array = _draw(x.type.storage, tuple(d or 2 for d in x.type.shape or ()))
    assert_gives(lowered, [array], [np.asarray(want(array))])
    return lowered


@pytest.mark.parametrize("storage", _STORAGES)
class TestEveryType:
    def test_gather_by_constants(self, storage: ScalarType) -> None:
        where = np.asarray([[2, 0], [1, 2]])
        _check(
            "tfl.gather", argument((2, 3, 4), storage), [const(where, i32)], (2, 2, 2, 4),
            lambda x: x.take(where, 1), axis=1, batch_dims=0,
        )  # fmt: skip

    def test_gather_in_batches_by_what_is_computed(self, storage: ScalarType) -> None:
        x, where = argument((2, 3, 4, 2), storage), argument((2, 5), i32)
        result = argument((2, 3, 5, 2), storage)
        _, lowered = lowered_op("tfl.gather", [x, where], [result], {"axis": 2, "batch_dims": 1})
        array, picks = _draw(storage, (2, 3, 4, 2)), np.random.default_rng(1).integers(0, 4, (2, 5)).astype(np.int32)
        want = np.stack([row.take(pick, 1) for row, pick in zip(array, picks, strict=True)])
        assert_gives(lowered, [array, picks], [want])

    def test_gather_of_consecutive_indices_is_a_slice(self, storage: ScalarType) -> None:
        lowered = _check(
            "tfl.gather", argument((4, 3), storage), [const(np.asarray([1, 2]), i64)], (2, 3),
            lambda x: x[1:3], axis=0, batch_dims=0,
        )  # fmt: skip
        assert not any(op.name == "tosa.gather" for op in lowered.ops)

    def test_gather_nd_by_what_is_computed(self, storage: ScalarType) -> None:
        x, where = argument((3, 4, 2), storage), argument((5, 2), i32)
        _, lowered = lowered_op("tfl.gather_nd", [x, where], [argument((5, 2), storage)])
        array, rng = _draw(storage, (3, 4, 2)), np.random.default_rng(2)
        picks = np.stack([rng.integers(0, 3, 5), rng.integers(0, 4, 5)], 1).astype(np.int32)
        assert_gives(lowered, [array, picks], [array[picks[:, 0], picks[:, 1]]])

    def test_embedding_lookup(self, storage: ScalarType) -> None:
        ids, table = argument((3,), i32), _draw(storage, (5, 2))
        _, lowered = lowered_op("tfl.embedding_lookup", [ids, const(table, storage)], [argument((3, 2), storage)])
        picks = np.asarray([4, 0, 4], np.int32)
        assert_gives(lowered, [picks], [table[picks]])

    @pytest.mark.parametrize("start", [(0, 0), (1, 2), (-5, 9)])
    @pytest.mark.parametrize("known", [True, False])
    def test_update_slice_clamps_its_start(self, storage: ScalarType, start: tuple[int, int], known: bool) -> None:
        x, update = argument((3, 4), storage), argument((2, 2), storage)
        at = const(np.asarray(start), i32) if known else argument((2,), i32)
        _, lowered = lowered_op("tfl.dynamic_update_slice", [x, update, at], [argument((3, 4), storage)])
        a, b = _draw(storage, (3, 4)), _draw(storage, (2, 2), 1)
        want, (i, j) = a.copy(), np.clip(start, 0, [1, 2])
        want[i : i + 2, j : j + 2] = b
        assert_gives(lowered, [a, b] if known else [a, b, np.asarray(start, np.int32)], [want])

    def test_strided_slice_with_masks(self, storage: ScalarType) -> None:
        masks = {"begin_mask": 1, "end_mask": 8, "ellipsis_mask": 2, "new_axis_mask": 4, "shrink_axis_mask": 0}
        operands = [const(np.asarray(v), i32) for v in ([0, 0, 0, 1], [7, 0, 0, 0], [3, 1, 1, 2])]
        _check(
            "tfl.strided_slice", argument((8, 3, 2, 6), storage), operands, (3, 3, 2, 1, 3),
            lambda x: x[:7:3, ..., None, 1::2], **masks, offset=False,
        )  # fmt: skip

    def test_negative_strides(self, storage: ScalarType) -> None:
        masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
        operands = [const(np.asarray(v), i32) for v in ([-2, 5], [-9, 0], [-2, -3])]
        _check(
            "tfl.strided_slice", argument((6, 7), storage), operands, (3, 2),
            lambda x: x[-2:-9:-2, 5:0:-3], **masks, offset=False,
        )  # fmt: skip

    @pytest.mark.parametrize("at", [(0, 3), (2, -1), (-3, -4)])
    def test_strided_slice_of_elements_at_computed_indices(self, storage: ScalarType, at: tuple[int, int]) -> None:
        masks: dict[str, Any] = {"begin_mask": 2, "end_mask": 2, "shrink_axis_mask": 5, "offset": False}
        masks |= {"ellipsis_mask": 0, "new_axis_mask": 0}
        x, begin, end = argument((3, 2, 4, 5), storage), argument((3,), i32, "begin"), argument((3,), i32, "end")
        operands = [x, begin, end, const(np.ones(3), i32)]
        _, lowered = lowered_op("tfl.strided_slice", operands, [argument((2, 5), storage)], masks)
        array, first = _draw(storage, (3, 2, 4, 5)), np.asarray([at[0], 0, at[1]], np.int32)
        assert_gives(lowered, [array, first, first + 1], [array[at[0], :, at[1]]])

    def test_fill_and_zeros_like(self, storage: ScalarType) -> None:
        x = argument((2, 3), storage)
        _, lowered = lowered_op("tfl.zeros_like", [x], [argument((2, 3), storage)])
        array = _draw(storage, (2, 3))
        assert_gives(lowered, [array], [np.zeros_like(array)])
        value = argument((), storage)
        shape = const(np.asarray([2, 3]), i32)
        _, lowered = lowered_op("tfl.fill", [shape, value], [argument((2, 3), storage)])
        assert_gives(lowered, [array[0, 0]], [np.full((2, 3), array[0, 0])])

    def test_pad_value_that_is_computed(self, storage: ScalarType) -> None:
        x, fill = argument((2, 3), storage), argument((), storage)
        pairs = np.asarray([[1, 0], [2, 1]])
        _, lowered = lowered_op("tfl.padv2", [x, const(pairs, i32), fill], [argument((3, 6), storage)])
        array, value = _draw(storage, (2, 3)), _draw(storage, (), 3)
        assert_gives(lowered, [array, value], [np.pad(array, pairs, constant_values=value)])

    def test_one_hot(self, storage: ScalarType) -> None:
        where = argument((2, 3), ui8)
        on, off = _draw(storage, (), 4), _draw(storage, (), 5)
        operands = [where, const(np.asarray(4), i32), const(on, storage), const(off, storage)]
        _, lowered = lowered_op("tfl.one_hot", operands, [argument((2, 4, 3), storage)], {"axis": 1})
        array = np.asarray([[0, 3, 4], [200, 1, 1]], np.uint8)
        hit = array[:, None] == np.arange(4)[None, :, None]
        assert_gives(lowered, [array], [np.where(hit, on, off)])


def test_embedding_lookup_dequantizes_its_table() -> None:
    element = UniformQuantizedPerAxisType.of(i8, 0, np.asarray([0.5, 0.25, 3.0]), np.asarray([0, 0, 0]))
    ids, table = argument((2,), i32), _draw(i8, (3, 4))
    _, lowered = lowered_op("tfl.embedding_lookup", [ids, const(table, element)], [argument((2, 4), f32)])
    picks = np.asarray([2, 0], np.int32)
    scales = np.asarray([[0.5], [0.25], [3.0]], np.float32)
    assert_gives(lowered, [picks], [(table * scales)[picks]])


@pytest.mark.parametrize("storage", [i8, i16, i32, f32])
def test_scatter_adds_up_what_meets(storage: ScalarType) -> None:
    indices = np.asarray([[1], [3], [1], [1]])
    updates = argument((4, 2), storage)
    operands = [const(indices, i32), updates, const(np.asarray([5, 2]), i32)]
    _, lowered = lowered_op("tfl.scatter_nd", operands, [argument((5, 2), storage)])
    array = _draw(storage, (4, 2))
    want = np.zeros((5, 2), storage.dtype)
    for at, row in zip(indices[:, 0], array, strict=True):
        want[at] += row
    assert_gives(lowered, [array], [want])


@pytest.mark.parametrize("storage", [i8, ui8, i16, i32, f32])
def test_top_k_takes_equal_elements_in_order(storage: ScalarType) -> None:
    x = argument((3, 9), storage)
    results = [argument((3, 9), storage), argument((3, 9), i32)]
    _, lowered = lowered_op("tfl.topk_v2", [x, const(np.asarray(9), i32)], results)
    low = -np.inf if storage.is_float else storage.minimum
    array = np.random.default_rng(0).choice(np.asarray([low, 1, 2], storage.dtype), (3, 9))
    order = np.argsort(-array.astype(np.float64), axis=1, kind="stable")
    assert_gives(lowered, [array], [np.take_along_axis(array, order, 1), order.astype(np.int32)])


@pytest.mark.parametrize("storage", [i8, i16])
@pytest.mark.parametrize("target", [Target(), _NO_INT16])
def test_many_tensors_are_joined_in_groups(storage: ScalarType, target: Target) -> None:
    parts = [argument((2, 1 + i % 2), storage) for i in range(150)]
    attributes = {"axis": -1, "fused_activation_function": "NONE"}
    _, lowered = lowered_op("tfl.concatenation", list(parts), [argument((2, 225), storage)], attributes, target)
    arrays = [_draw(storage, (2, 1 + i % 2), i) for i in range(150)]
    assert_gives(lowered, arrays, [np.concatenate(arrays, 1)])
    for op in lowered.ops:
        assert len(op.operands) <= 64
        assert op.name != "tosa.concat" or target.has("int16") or op.result.type.storage != i16


_OPEN: list[tuple[str, tuple[int | None, ...], list[Any], tuple[int | None, ...], dict[str, Any], Any]] = [
    ("tfl.reshape", (None, 4, 3), [[-1, 12]], (None, 12), {}, lambda x: x.reshape(-1, 12)),
    ("tfl.transpose", (None, 4, 3), [[2, 0, 1]], (3, None, 4), {}, lambda x: x.transpose(2, 0, 1)),
    ("tfl.expand_dims", (None, 4), [1], (None, 1, 4), {}, lambda x: x[:, None]),
    ("tfl.reverse_v2", (None, 4), [[1]], (None, 4), {}, lambda x: x[:, ::-1]),
    ("tfl.tile", (None, 4), [[1, 2]], (None, 8), {}, lambda x: np.tile(x, (1, 2))),
    ("tfl.slice", (None, 4), [[0, 1], [-1, 2]], (None, 2), {}, lambda x: x[:, 1:3]),
    ("tfl.pad", (None, 4), [[[0, 0], [1, 2]]], (None, 7), {}, lambda x: np.pad(x, ((0, 0), (1, 2)))),
    ("tfl.gather", (None, 4), [[3, 0]], (None, 2), {"axis": 1, "batch_dims": 0}, lambda x: x[:, [3, 0]]),
    ("tfl.mirror_pad", (None, 4), [[[0, 0], [1, 2]]], (None, 7), {"mode": "SYMMETRIC"},
     lambda x: np.pad(x, ((0, 0), (1, 2)), "symmetric")),
    ("tfl.space_to_depth", (None, 2, 4, 1), [], (None, 1, 2, 4), {"block_size": 2},
     lambda x: x.reshape(-1, 1, 2, 2, 2, 1).transpose(0, 1, 3, 2, 4, 5).reshape(-1, 1, 2, 4)),
    ("tfl.zeros_like", (None, 4), [], (None, 4), {}, np.zeros_like),
]  # fmt: skip


@pytest.mark.parametrize("case", _OPEN, ids=[c[0] for c in _OPEN])
def test_an_open_batch_stays_open(case: Any) -> None:
    name, shape, constants, out, attributes, want = case
    lowered = _check(
        name, argument(shape, ui8), [const(np.asarray(c), i32) for c in constants], out, want, **attributes
    )
    assert lowered.outputs[0].type.shape == out


def test_a_shape_computed_from_the_batch_is_not_needed() -> None:
    x = argument((None, 3, 2), i8)
    shape = Op("tfl.shape", [x], [Value(TensorType((3,), i32), "dims")], {"out_type": "INT32"})
    bounds = [const(np.asarray([v]), i32) for v in (0, 1, 1)]
    masks = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 1}
    batch = Op("tfl.strided_slice", [shape.result, *bounds], [Value(TensorType((), i32), "batch")], masks)
    pack = Op(
        "tfl.pack", [batch.result, const(np.asarray(6), i32)], [Value(TensorType((2,), i32), "sizes")],
        {"values_count": 2, "axis": 0},
    )  # fmt: skip
    flat = Op("tfl.reshape", [x, pack.result], [Value(TensorType((None, 6), i8), "flat")])
    module, _ = lower(Module([Function("main", [x], [flat.result], [shape, batch, pack, flat])]), Target())
    assert [op.name for op in module.main.ops] == ["tosa.reshape"]
    assert module.main.outputs[0].type.shape == (None, 6)


def test_sizes_computed_at_run_time_are_refused_by_name() -> None:
    x, sizes = argument((4, 4), i8), argument((2,), i32, "sizes")
    begin = const(np.asarray([0, 0]), i32)
    with pytest.raises(UnsupportedError, match="its size 'sizes' is computed when the model runs"):
        lowered_op("tfl.slice", [x, begin, sizes], [argument((None, None), i8)])


def test_shape_of_a_known_tensor_is_a_constant() -> None:
    x = argument((4, 5), i8)
    source, lowered = lowered_op("tfl.shape", [x], [argument((2,), i32)], {"out_type": "INT32"})
    array = _draw(i8, (4, 5))
    np.testing.assert_array_equal(run(lowered, [array])[0], run(source, [array])[0])


def test_int64_that_was_widened_is_moved_as_int32() -> None:
    x = argument((2, 2), i32)
    wide = Op("tosa.cast", [x], [Value(TensorType((2, 2), i64), "wide")])
    more = const(np.asarray([[1, -1]]), i64)
    joined = Op("tfl.concatenation", [wide.result, more], [Value(TensorType((3, 2), i64), "joined")], {"axis": 0})
    back = Op("tosa.cast", [joined.result], [Value(TensorType((3, 2), i32), "back")])
    module, _ = lower(Module([Function("main", [x], [back.result], [wide, joined, back])]), Target())
    array = _draw(i32, (2, 2))
    assert_gives(module.main, [array], [np.concatenate([array, np.asarray([[1, -1]], np.int32)])])


def test_sums_of_int64_are_refused_by_name() -> None:
    x = argument((2, 2), i64, "wide")
    indices, shape = const(np.asarray([[0], [0]]), i32, "i"), const(np.asarray([2, 2]), i32, "s")
    with pytest.raises(UnsupportedError, match="int64, which TOSA lacks"):
        lowered_op("tfl.scatter_nd", [indices, x, shape], [argument((2, 2), i64)])


@pytest.mark.parametrize("element", [i2, i4], ids=str)
def test_a_packed_constant_without_dims_keeps_that(element: ScalarType) -> None:
    y = argument((), element, "y")
    packed = Value(y.type, "c", buffer=Buffer.of(np.asarray(1, np.int8), element))
    lowered, _ = lower(Module([Function("main", [], [y], [Op("tosa.identity", [packed], [y])])]), Target())
    assert [v.type.shape for v in lowered.main.values()] == [(), ()]
