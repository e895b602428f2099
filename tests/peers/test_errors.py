"""Operators that another converter stops at: here they convert, to the reference kernels' integers."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, edge_inputs, interpret, one_op
from support.peer import STORAGES, assert_exact, assert_real, image, q
from support.running import reference

import tflq
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op
from tflq.ir.types import ScalarType, UniformQuantizedType, i1, i8, i16, i32, ui8


def test_split_u8() -> None:
    element = q(ui8, 0.1, 3)
    parts = [argument((2, 3), element, n) for n in "abc"]
    operands = [const(np.asarray(1), i32, "axis"), argument((2, 9), element)]
    assert_exact(one_op("tfl.split", operands, parts, {"num_splits": 3}, 2))


def test_unpack_u8() -> None:
    element = q(ui8, 0.1, 3)
    parts = [argument((2, 5), element, n) for n in "abc"]
    assert_exact(one_op("tfl.unpack", [argument((2, 3, 5), element)], parts, {"num": 3, "axis": 1}, 2))


@pytest.mark.parametrize("storage", STORAGES, ids=str)
@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_minimum_and_maximum_with_other_scales(name: str, storage: ScalarType) -> None:
    x, y, z = (argument((4, 60), q(storage, s, p), n) for n, s, p in (("x", 0.1, 3), ("y", 0.07, -9), ("z", 0.2, 1)))
    assert_exact(one_op(f"tfl.{name}", [x, y], [z], {}, 3))


@pytest.mark.parametrize("storage", [ui8, i16], ids=str)
def test_concatenation_with_other_scales(storage: ScalarType) -> None:
    operands = [argument((4, n), q(storage, s, z), f"x{n}") for n, s, z in ((20, 0.1, 3), (31, 0.07, -9))]
    result = argument((4, 51), q(storage, 0.12, 1), "y")
    assert_exact(one_op("tfl.concatenation", operands, [result], {"axis": 1, "fused_activation_function": "NONE"}, 2))


def test_concatenation_with_other_scales_i8() -> None:
    operands = [argument((4, n), q(i8, s, z), f"x{n}") for n, s, z in ((20, 0.1, 3), (31, 0.07, -9))]
    result = argument((4, 51), q(i8, 0.12, 1), "y")
    model = one_op("tfl.concatenation", operands, [result], {"axis": 1, "fused_activation_function": "NONE"}, 2)
    batches = edge_inputs(operands)
    reals = [np.concatenate([(a - 3.0) * np.float32(0.1), (b + 9.0) * np.float32(0.07)], 1) for a, b in batches]
    assert_real(model, result, batches, reals)


@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
def test_padv2(storage: ScalarType) -> None:
    element = q(storage, 0.1, 3)
    operands = [
        argument((3, 4), element),
        const(np.asarray([[1, 2], [0, 3]]), i32, "paddings"),
        const(np.asarray(element.zero_point + 40), element, "value"),
    ]
    assert_exact(one_op("tfl.padv2", operands, [argument((6, 7), element, "y")], {}, 2))


def unary(name: str, storage: ScalarType, low: int, kernels: str = "BUILTIN_REF") -> None:
    x, y = q(storage, 0.1 if storage.bits == 8 else 0.001, low), q(storage, 0.07 if storage.bits == 8 else 0.002, low)
    start = x.zero_point if low == -128 or (storage is i16 and name == "sqrt") else storage.minimum
    values = np.random.default_rng(0).integers(start, storage.maximum, (4, 99), endpoint=True).astype(storage.dtype)
    model = one_op(f"tfl.{name}", [argument((4, 99), x)], [argument((4, 99), y, "y")], {}, 2 if name == "abs" else 1)
    assert_exact(model, [[values]], kernels=kernels)


@pytest.mark.parametrize("storage", [i8, i16], ids=str)
def test_abs(storage: ScalarType) -> None:
    unary("abs", storage, -5)


@pytest.mark.parametrize("storage", [i8, i16], ids=str)
def test_sqrt(storage: ScalarType) -> None:
    unary("sqrt", storage, -128)


def test_elu() -> None:
    unary("elu", i8, -5, "BUILTIN_WITHOUT_DEFAULT_DELEGATES")  # there is no reference kernel


@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
def test_div(storage: ScalarType) -> None:
    x, y, z = (argument((4, 60), q(storage, s, p), n) for n, s, p in (("x", 0.1, 3), ("y", 0.07, 3), ("z", 0.2, 1)))
    model = one_op("tfl.div", [x, y], [z], {"fused_activation_function": "RELU6"}, 2)
    (left, right), *_ = edge_inputs([x, y])
    right[right == q(storage, 0.07, 3).zero_point] += 1
    assert_exact(model, [[left, right]])


@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_mean_to_rank_0(storage: ScalarType) -> None:
    axes = const(np.asarray([0, 1, 2, 3]), i32, "axes")
    result = argument((), q(storage, 0.06, -3), "y")
    assert_exact(one_op("tfl.mean", [image(q(storage, 0.05, 3)), axes], [result], {"keep_dims": False}, 2))


@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_select_v2_with_other_scales(storage: ScalarType) -> None:
    condition = const(np.random.default_rng(0).random((4, 60)) < 0.5, i1, "c")
    x, y, z = (argument((4, 60), q(storage, s, p), n) for n, s, p in (("x", 0.1, 3), ("y", 0.07, -9), ("z", 0.2, 1)))
    assert_exact(one_op("tfl.select_v2", [condition, x, y], [z], {}))


def test_softmax_i8_to_i16() -> None:
    x, y = argument((4, 60), q(i8, 0.1, 3)), argument((4, 60), UniformQuantizedType.of(i16, 1 / 65536, -32768), "y")
    assert_exact(one_op("tfl.softmax", [x], [y], {"beta": 1.0}, 3))


def two_signatures() -> bytes:
    functions = []
    for name, scale in (("first", 0.06), ("second", 0.09)):
        x, y = image(q(i8, 0.05, 3), (2, 8), "x"), argument((2, 8), q(i8, scale, -3), "y")
        functions.append(
            Function(name, [x], [y], [Op("tfl.leaky_relu", [x], [y], {"alpha": 0.25}, info={"version": 2})])
        )
    signatures = [Signature(f.name, i, [("a", f.inputs[0])], [("b", f.outputs[0])]) for i, f in enumerate(functions)]
    return bytes(write(Module(functions, signatures)))


def test_several_signatures() -> None:
    model = two_signatures()
    kept = tflq.read(tflq.convert(model).data)
    assert [s.key for s in kept.signatures or ()] == ["first", "second"]
    files = tflq.convert(model, format="tosa").files
    assert sorted(files) == ["first", "second"]
    x = np.arange(-8, 8, dtype=np.int8).reshape(2, 8)
    for key in files:
        (want,) = interpret(tflq.convert(model, signature=key).data, [[x]])[0]
        conversion = tflq.convert(model, format="tosa", signature=key)
        np.testing.assert_array_equal(reference(conversion.module, [x])[0], want)


def test_open_batch_dim() -> None:
    x, y = argument((None, 8), q(i8, 0.05, 3)), argument((None, 8), q(i8, 0.06, -3), "y")
    model = one_op("tfl.leaky_relu", [x], [y], {"alpha": 0.25}, 2)
    for batch in (1, 5):
        assert_exact(model, [[np.arange(batch * 8).astype(np.int8).reshape(batch, 8)]])
    text = tflq.convert(model, format="mlir").data.decode()
    assert "tensor<?x8xi8>" in text
