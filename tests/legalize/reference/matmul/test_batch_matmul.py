"""BATCH_MATMUL: the evaluator's numbers and both forms of multiply-accumulate against the reference kernel."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, edge_inputs, interpret, one_op
from support.lowered import RESOLVERS, assert_lowered, draw
from support.reference import assert_equals_kernel, refusal

import tflq
from tflq.dialects.builder import Builder
from tflq.formats.options import Mac
from tflq.ir.ops import Op, Value
from tflq.ir.types import (
    ElementType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i8,
    i16,
    i32,
    i64,
    ui8,
)
from tflq.legalize.rule import NotApplicable, RuleBuilder, rules_of

MACS: list[Mac] = ["integer", "float32"]
Dims = tuple[int | None, ...]


def quantized(storage: ScalarType, scale: float, zero_point: int = 0) -> UniformQuantizedType:
    return UniformQuantizedType.of(storage, scale, zero_point if storage == i8 else 0)


def random(shape: tuple[int, ...], element: UniformQuantizedType, seed: int = 0) -> Value:
    return const(draw(element.storage, shape, seed), element)


def matmul(x: Value, y: Value, shape: Dims, element: ElementType, adj_x: bool = False, adj_y: bool = False) -> bytes:
    options = {"adj_x": adj_x, "adj_y": adj_y, "asymmetric_quantize_inputs": False}
    return one_op("tfl.batch_matmul", [x, y], [argument(shape, element, "result")], options, version=4)


def check(model: bytes, batches: list[list[np.ndarray]]) -> None:
    """Without fallback, bit for bit, with every resolver."""
    assert_equals_kernel(model, batches)
    want = interpret(model, batches)
    for mac in MACS:
        conversion = tflq.convert(model, mac=mac)
        assert [row.path for row in conversion.report.rows] == ["integer"]
        for resolver in RESOLVERS:
            for w, g in zip(want, interpret(conversion.data, batches, resolver), strict=True):
                np.testing.assert_array_equal(g[0], w[0], err_msg=f"{mac} {resolver}")


@pytest.mark.parametrize("storage", [i8, i16], ids=str)
@pytest.mark.parametrize("adj_x", [False, True])
@pytest.mark.parametrize("adj_y", [False, True])
@pytest.mark.parametrize("zero_points", [(0, 0), (9, 0), (0, -128), (-3, 127)], ids=str)
def test_adjoints_and_zero_points(storage: ScalarType, adj_x: bool, adj_y: bool, zero_points: tuple[int, int]) -> None:
    left, right = (quantized(storage, 0.03, z) for z in zero_points)
    x = argument((2, 7, 5) if adj_x else (2, 5, 7), left)
    y = argument((2, 4, 7) if adj_y else (2, 7, 4), right, "y")
    to = quantized(storage, 0.4 if storage == i8 else 150.0, -5)
    check(matmul(x, y, (2, 5, 4), to, adj_x, adj_y), edge_inputs([x, y]))


@pytest.mark.parametrize(
    ("left", "right", "out"),
    [
        ((3, 6), (6, 4), (3, 4)),
        ((5, 3, 6), (6, 4), (5, 3, 4)),
        ((3, 6), (5, 6, 4), (5, 3, 4)),
        ((2, 1, 3, 6), (5, 6, 4), (2, 5, 3, 4)),
        ((5, 3, 6), (2, 1, 6, 4), (2, 5, 3, 4)),
        ((2, 1, 3, 3, 6), (2, 2, 1, 6, 4), (2, 2, 3, 3, 4)),
        ((1, 3, 1), (4, 1, 2), (4, 3, 2)),
    ],
    ids=str,
)
@pytest.mark.parametrize("storage", [i8, i16], ids=str)
def test_broadcast_batches(
    storage: ScalarType, left: tuple[int, ...], right: tuple[int, ...], out: tuple[int, ...]
) -> None:
    x, y = argument(left, quantized(storage, 0.05, 3)), argument(right, quantized(storage, 0.02, -20), "y")
    check(matmul(x, y, out, quantized(storage, 0.3 if storage == i8 else 90.0, 8)), edge_inputs([x, y]))


@pytest.mark.parametrize("storage", [i8, i16], ids=str)
@pytest.mark.parametrize("adj_y", [False, True])
def test_constant_right_side(storage: ScalarType, adj_y: bool) -> None:
    x = argument((2, 3, 5, 6), quantized(storage, 0.05, 3))
    y = random((2, 1, 4, 6) if adj_y else (2, 1, 6, 4), quantized(storage, 0.02, -20))
    to = quantized(storage, 0.3 if storage == i8 else 90.0, 8)
    check(matmul(x, y, (2, 3, 5, 4), to, adj_y=adj_y), edge_inputs([x]))


@pytest.mark.parametrize("storage", [i8, i16], ids=str)
@pytest.mark.parametrize("adj_x", [False, True])
def test_constant_left_side(storage: ScalarType, adj_x: bool) -> None:
    x = random((6, 5) if adj_x else (5, 6), quantized(storage, 0.05, 3))
    y = argument((3, 6, 4), quantized(storage, 0.02, -20), "y")
    to = quantized(storage, 0.3 if storage == i8 else 90.0, 8)
    check(matmul(x, y, (3, 5, 4), to, adj_x=adj_x), edge_inputs([y]))


@pytest.mark.parametrize("storage", [i8, i16], ids=str)
@pytest.mark.parametrize("known", [False, True])
def test_long_sums(storage: ScalarType, known: bool) -> None:
    """Sums beyond 2^24 are cut for the float form."""
    x, right = argument((2, 3, 700), quantized(storage, 0.05, -100)), quantized(storage, 0.02, 100)
    y = random((700, 4), right) if known else argument((2, 700, 4), right, "y")
    to = quantized(storage, 2.0 if storage == i8 else 20000.0, 8)
    check(matmul(x, y, (2, 3, 4), to), edge_inputs([x] if known else [x, y]))


@pytest.mark.parametrize("scale", [1e-6, 0.001, 0.9, 300.0])
def test_multipliers(scale: float) -> None:
    x, y = argument((2, 5, 7), quantized(i8, scale, 4)), argument((2, 7, 4), quantized(i8, 0.02, -4), "y")
    check(matmul(x, y, (2, 5, 4), quantized(i8, 0.07, -5)), edge_inputs([x, y]))


def test_int32_result_is_the_plain_product() -> None:
    """No zero points, no scales; of the sums of stored integers."""
    x, y = argument((2, 5, 7), quantized(i8, 0.5, 4)), argument((2, 4, 7), quantized(i8, 0.02, -4), "y")
    model = matmul(x, y, (2, 5, 4), UniformQuantizedType.of(i32, 0.01, 0), adj_y=True)
    check(model, edge_inputs([x, y]))
    assert "ignores" in " ".join(tflq.convert(model).report.warnings)


@pytest.mark.parametrize("mac", MACS)
@pytest.mark.parametrize("batch", [1, 3])
def test_open_batch(mac: str, batch: int) -> None:
    x = argument((None, 2, 5, 7), quantized(i8, 0.03, 4))
    y = argument((None, 2, 7, 4), quantized(i8, 0.03, -9), "y")
    model = matmul(x, y, (None, 2, 5, 4), quantized(i8, 0.4, 11))
    sized = [argument((batch, 2, 5, 7), x.type.element), argument((batch, 2, 7, 4), y.type.element)]
    conversion = convert_and_compare(model, edge_inputs(sized), mac=mac)
    assert [row.path for row in conversion.report.rows] == ["integer"]


@pytest.mark.parametrize("mac", MACS)
def test_static_batch_can_be_resized(mac: str) -> None:
    x, y = argument((1, 5, 7), quantized(i8, 0.03, 4)), argument((1, 7, 4), quantized(i8, 0.03, -9), "y")
    model = matmul(x, y, (1, 5, 4), quantized(i8, 0.4, 11))
    sized = [argument((6, 5, 7), x.type.element), argument((6, 7, 4), y.type.element)]
    convert_and_compare(model, edge_inputs(sized), mac=mac)


@pytest.mark.parametrize("mac", MACS)
@pytest.mark.parametrize("adj_x", [False, True])
def test_open_sums(mac: str, adj_x: bool) -> None:
    """A length of the sums that is not known."""
    x = argument((2, None, 5) if adj_x else (2, 5, None), quantized(i8, 0.03, 4))
    y = argument((2, None, 4), quantized(i8, 0.03, -9), "y")
    model = matmul(x, y, (2, 5, 4), quantized(i8, 0.4, 11), adj_x=adj_x)
    sized = [argument((2, 8, 5) if adj_x else (2, 5, 8), x.type.element), argument((2, 8, 4), y.type.element)]
    conversion = convert_and_compare(model, edge_inputs(sized), mac=mac)
    assert [row.path for row in conversion.report.rows] == ["integer"]


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize("zero_points", [(0, 0), (5, 77)], ids=str)
def test_lowering_of_any_integers(storage: ScalarType, zero_points: tuple[int, int]) -> None:
    acc = i64 if storage == i16 else i32

    def emit(b: Builder, x: Value, y: Value) -> Value:
        made = TensorType((*(x.type.shape or ())[:-1], 4), acc)
        return b.emit("tosa.matmul", [x, y], made, a_zp=zero_points[0], b_zp=zero_points[1])

    assert_lowered(emit, [draw(storage, (3, 5, 6), 1), draw(storage, (3, 6, 4), 2)], [storage, storage])


def test_types_without_an_integer_form() -> None:
    q8, q16 = quantized(i8, 0.1), quantized(i16, 0.1)
    u8 = UniformQuantizedType.of(ui8, 0.1, 128)
    assert refusal("tfl.batch_matmul", [u8, u8, u8]) == "no integer form for ui8 by ui8 into ui8"
    assert refusal("tfl.batch_matmul", [q8, q8, q16]) == "no integer form for i8 by i8 into i16"


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        ((5, 6), (7, 4), "rows of 6 do not meet columns of 7"),
        ((7,), (7, 4), "ranks 2 to 5"),
        ((2, 5, 7), (3, 7, 4), "do not broadcast"),
    ],
)
def test_shapes_the_kernel_refuses(left: tuple[int, ...], right: tuple[int, ...], reason: str) -> None:
    element = quantized(i8, 0.1)
    values = [argument(left, element), argument(right, element), argument((5, 4), element)]
    op = Op("tfl.batch_matmul", [*values[:2]], values[2:], {"adj_x": False, "adj_y": False})
    with pytest.raises(NotApplicable, match=reason):
        next(rules_of(type(op)))(op, RuleBuilder([], {}))


@pytest.mark.parametrize("adj_x", [False, True])
@pytest.mark.parametrize("adj_y", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_int16_by_int8(adj_x: bool, adj_y: bool, known: bool) -> None:
    x = argument((2, 7, 5) if adj_x else (2, 5, 7), quantized(i16, 0.0004))
    element = quantized(i8, 0.02)
    shape = (2, 6, 7) if adj_y else (2, 7, 6)
    y = random(shape, element) if known else argument(shape, element, "y")
    model = matmul(x, y, (2, 5, 6), quantized(i16, 0.003), adj_x, adj_y)
    check(model, edge_inputs([x] if known else [x, y]))


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(("x", "y"), [(i8, i8), (i16, i8), (i16, i16)])
def test_an_operand_per_axis_has_no_scale_to_the_kernel(x: ScalarType, y: ScalarType, which: int) -> None:
    """The interpreter's result is the zero point; real semantics multiply."""
    types: list[ElementType] = [UniformQuantizedType.of(x, 0.1), UniformQuantizedType.of(y, 0.1)]
    types[which] = UniformQuantizedPerAxisType.of((x, y)[which], 2, (0.1, 0.2, 0.3)[: 2 + which])
    left, zero_point = argument((1, 4, 2), types[0]), 5 if x == i8 else 0
    right = const(np.random.default_rng(0).integers(-100, 100, (1, 2, 3)), types[1])
    result = argument((1, 4, 3), UniformQuantizedType.of(x, 0.5, zero_point), "z")
    options = {"adj_x": False, "adj_y": False, "asymmetric_quantize_inputs": False}
    model = one_op("tfl.batch_matmul", [left, right], [result], options, version=4)
    convert_and_compare(model, edge_inputs([left]))
    conversion = tflq.convert(model)
    assert any("per axis as 0" in warning for warning in conversion.report.warnings)
    real = tflq.convert(model, semantics="real")
    assert not real.report.warnings
    assert any((out[0] != zero_point).any() for out in interpret(real.data, edge_inputs([left])))
