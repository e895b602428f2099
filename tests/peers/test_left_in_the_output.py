"""Operators that another converter leaves in its output, exit code 0: here none is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, edge_inputs, one_op
from support.peer import STORAGES, assert_exact, assert_real, image, q
from support.recurrent import assert_same_states, lstm_model, svdf_model

from tflq.base.errors import UnsupportedError
from tflq.conversion.convert import convert
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, UniformQuantizedPerAxisType, UniformQuantizedType, i1, i8, i16, i32, ui8


def unary(name: str, x: UniformQuantizedType, y: UniformQuantizedType, version: int = 2, **options: Any) -> bytes:
    return one_op(f"tfl.{name}", [argument((4, 60), x)], [argument((4, 60), y, "y")], options, version)


@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
def test_log_softmax(storage: ScalarType) -> None:
    assert_exact(unary("log_softmax", q(storage, 0.1, 3), q(storage, 1 / 16, 127)))


@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
def test_l2_normalization(storage: ScalarType) -> None:
    options: dict[str, Any] = {"fused_activation_function": "NONE"}
    assert_exact(unary("l2_normalization", q(storage, 0.1, 3), q(storage, 1 / 128), **options))


@pytest.mark.parametrize("storage", STORAGES, ids=str)
@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_quantized_comparison(name: str, storage: ScalarType) -> None:
    x, y = argument((4, 60), q(storage, 0.1, 3)), argument((4, 60), q(storage, 0.07, -9), "y")
    assert_exact(
        one_op(f"tfl.{name}", [x, y], [argument((4, 60), i1, "z")], {}, 3 if name in ("equal", "not_equal") else 2)
    )


@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_topk_v2(storage: ScalarType) -> None:
    x = argument((4, 60), q(storage, 0.1, 3))
    results = [argument((4, 5), x.type.element, "values"), argument((4, 5), i32, "indices")]
    assert_exact(one_op("tfl.topk_v2", [x, const(np.asarray(5), i32, "k")], results, {}, 2))


@pytest.mark.parametrize(("exclusive", "reverse"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
def test_cumsum(storage: ScalarType, exclusive: bool, reverse: bool) -> None:
    x, y = argument((3, 9), q(storage, 0.1, 3)), argument((3, 9), q(storage, 0.3, -9), "y")
    axis = const(np.asarray(1), i32, "axis")
    model = one_op("tfl.cumsum", [x, axis], [y], {"exclusive": exclusive, "reverse": reverse})
    batches = edge_inputs([x])
    element = q(storage, 0.1, 3)
    reals = [(b[0].astype(np.float64) - element.zero_point) * element.scale for b in batches]
    if reverse:
        reals = [r[:, ::-1] for r in reals]
    sums = [np.cumsum(r, 1) - (r if exclusive else 0) for r in reals]
    conversion = assert_real(model, y, batches, [s[:, ::-1] if reverse else s for s in sums])
    assert not conversion.report.counts["kept"]


@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_gather_axis_minus_1(storage: ScalarType) -> None:
    x = argument((2, 5, 9), q(storage, 0.1, 3))
    index = const(np.asarray([8, 0, 3, 3]), i32, "index")
    result = argument((2, 5, 4), x.type.element, "y")
    assert_exact(one_op("tfl.gather", [x, index], [result], {"axis": -1, "batch_dims": 0}, 3))


@pytest.mark.parametrize("beta", [0.5, 2.0, 10.0])
@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_softmax_beta_other_than_1(storage: ScalarType, beta: float) -> None:
    out = {"i8": q(i8, 1 / 256, -128), "ui8": q(ui8, 1 / 256, -128), "i16": q(i16, 1 / 32768)}[storage.name]
    assert_exact(unary("softmax", q(storage, 0.1 if storage.bits == 8 else 0.001, 3), out, beta=beta, version=3))


@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_strided_slice_with_negative_stride(storage: ScalarType) -> None:
    x = argument((5, 9), q(storage, 0.1, 3))
    begin, end, strides = (const(np.asarray(v), i32, n) for n, v in (("b", (4, 8)), ("e", (0, 0)), ("s", (-1, -3))))
    options = {"begin_mask": 0, "end_mask": 2, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
    result = argument((4, 3), x.type.element, "y")
    assert_exact(one_op("tfl.strided_slice", [x, begin, end, strides], [result], {**options, "offset": False}, 4))


def test_gelu_i16() -> None:
    for approximate in (False, True):
        assert_exact(unary("gelu", q(i16, 0.0004), q(i16, 0.0003), approximate=approximate))


def test_rsqrt_i16() -> None:
    x = np.abs(np.random.default_rng(0).integers(1, 1 << 15, (4, 60))).astype(np.int16)
    model = one_op("tfl.rsqrt", [argument(x.shape, q(i16, 0.01))], [argument(x.shape, q(i16, 0.001), "y")], {}, 3)
    assert_exact(model, [[x]])


@pytest.mark.parametrize("storage", [i8, i16], ids=str)
def test_reduce_prod(storage: ScalarType) -> None:
    x = argument((3, 4, 5), q(storage, 0.02 if storage is i8 else 0.0001, 3))
    result = argument((3, 5), q(storage, 0.01 if storage is i8 else 0.0002, -4), "y")
    assert_exact(
        one_op("tfl.reduce_prod", [x, const(np.asarray([1]), i32, "axis")], [result], {"keep_dims": False}, 2),
        tosa=storage is i8,
    )


def test_reduce_prod_i16_is_refused_for_tosa_with_the_reason() -> None:
    x, result = argument((3, 4), q(i16, 0.0001)), argument((3,), q(i16, 0.0002), "y")
    model = one_op("tfl.reduce_prod", [x, const(np.asarray([1]), i32, "axis")], [result], {"keep_dims": False}, 2)
    with pytest.raises(UnsupportedError, match=r"REDUCE_PROD.*more than 32 bits"):
        convert(model, format="tosa")


def test_svdf() -> None:
    rng = np.random.default_rng(5)
    assert_same_states(svdf_model(rng), rng)


@pytest.mark.parametrize("name", ["lstm", "unidirectional_sequence_lstm"])
def test_lstm(name: str) -> None:
    rng = np.random.default_rng(5)
    assert_same_states(lstm_model(rng, name), rng)


@pytest.mark.parametrize("storage", STORAGES, ids=str)
@pytest.mark.parametrize("name", ["add", "mul"])
def test_per_axis_operand(name: str, storage: ScalarType) -> None:
    scales, zero = np.asarray([0.05, 0.03, 0.021]), 128 if storage is ui8 else 0
    x = Value(image(UniformQuantizedPerAxisType.of(storage, 3, scales, zero)).type, "x")
    y, z = image(q(storage, 0.04, 3), name="y"), image(q(storage, 0.09, -5), name="z")
    options: dict[str, Any] = {"fused_activation_function": "NONE"}
    model = one_op(f"tfl.{name}", [x, y], [z], options, 2)
    batches = edge_inputs([x, y])
    other = q(storage, 0.04, 3)
    pairs = [((a - float(zero)) * scales, (b - float(other.zero_point)) * other.scale) for a, b in batches]
    assert_real(model, z, batches, [a + b if name == "add" else a * b for a, b in pairs])
