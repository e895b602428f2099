"""Kernels that run and misread a tensor: tflq computes what the parameters say, and the report warns."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, edge_inputs, interpret, one_op

import tflq
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import SCALARS, UniformQuantizedPerAxisType, UniformQuantizedType, f32, i4, i8, i16, i32

Q8, Q16, Q4 = (UniformQuantizedType.of(storage, 0.5) for storage in (i8, i16, i4))
AXIS = UniformQuantizedPerAxisType.of(i8, 1, [0.25, 0.5, 1.0])


def _file(name: str, operands: list[Value], result: Value, **attributes: object) -> bytes:
    for i, value in enumerate(operands):
        value.name = f"in{i}"
    return one_op(f"tfl.{name}", operands, [result], attributes)


CASES = {
    "a scale per index": _file("relu", [argument((2, 3), AXIS)], argument((2, 3), Q8, "out")),
    "another result": _file("neg", [argument((2, 3), Q8)], argument((2, 3), Q16, "out")),
    "the greatest as another type": _file(
        "reduce_max",
        [argument((2, 3), Q16), const(np.asarray([1], np.int32), i32)],
        argument((2,), Q8, "out"),
        keep_dims=False,
    ),
    "int16 as 8 bits": _file("softmax", [argument((2, 3), Q16)], argument((2, 3), Q8, "out"), beta=1.0),
    "packed values": _file("matrix_diag", [argument((2, 4), Q4)], argument((2, 4, 4), Q4, "out")),
    "packed values under others": _file(
        "reshape", [argument((2, 4), Q4)], argument((8,), UniformQuantizedType.of(i4, 2.0), "out"), new_shape=(8,)
    ),
    "integers as floats": _file(
        "prelu", [argument((2, 3), f32), const(np.asarray([1, 2, 3]), Q8)], argument((2, 3), f32, "out")
    ),
    "float16": _file("dequantize", [argument((2, 3), Q8)], argument((2, 3), SCALARS["f16"], "out")),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_misread_is_announced(name: str) -> None:
    (row,) = tflq.convert(CASES[name]).report.rows
    assert row.exception == "broken"
    assert "tflq computes what the parameters say" in row.warning
    (row,) = tflq.convert(CASES[name], semantics="real").report.rows
    assert not row.warning


@pytest.mark.parametrize("name", CASES)
def test_the_kernel_gives_another_result(name: str) -> None:
    batches = edge_inputs(tflq.read(CASES[name]).main.inputs)
    want, got = (interpret(data, batches) for data in (CASES[name], tflq.convert(CASES[name]).data))
    pairs = [(w, g) for ws, gs in zip(want, got, strict=True) for w, g in zip(ws, gs, strict=True)]
    assert any(w.dtype != g.dtype or (w != g).any() for w, g in pairs)


def test_no_values_show_nothing() -> None:
    file = _file(
        "maximum",
        [argument((0, 3), Q8), argument((0, 3), Q8)],
        argument((0, 3), UniformQuantizedType.of(i8, 2.0), "out"),
    )
    assert not tflq.convert(file).report.warnings


@pytest.mark.parametrize("name", ["bitwise_xor", "right_shift"])
def test_operators_on_stored_bits_need_no_warning(name: str) -> None:
    file = _file(name, [argument((2, 3), Q8), const(np.ones((2, 3)), Q8)], argument((2, 3), Q8, "out"))
    conversion = convert_and_compare(file, edge_inputs(tflq.read(file).main.inputs))
    assert not conversion.report.warnings
    assert "stored integers" in conversion.report.rows[0].note


@pytest.mark.parametrize("element", [Q4, UniformQuantizedType.of(i4, 3.0, -8)])
def test_bits_of_packed_values_are_kept(element: UniformQuantizedType) -> None:
    file = _file("bitcast", [argument((2, 4), Q4)], argument((2, 4), element, "out"))
    convert_and_compare(file, edge_inputs(tflq.read(file).main.inputs))


@pytest.mark.parametrize("body", ["stablehlo_add", "mul", "stablehlo_maximum", "minimum"])
@pytest.mark.parametrize("element", [Q8, Q16])
def test_windows_are_reduced_by_the_operator_of_their_function(body: str, element: UniformQuantizedType) -> None:
    x, init, y = argument((4, 5), element, "x"), argument((), element, "init"), argument((7, 3), element, "y")
    options = {
        "window_dimensions": np.asarray([2, 2]),
        "window_strides": np.asarray([1, 2]),
        "base_dilations": np.asarray([2, 1]),
        "window_dilations": np.asarray([1, 1]),
        "padding": np.asarray([0, 1, 1, 0]),
        "body_subgraph_index": 1,
    }
    op = Op("tfl.stablehlo_reduce_window", [x, init], [y], options, info={"version": 1})
    left, right, out = (argument((), element, name) for name in ("l", "r", "o"))
    attributes = {} if body.startswith("stablehlo") or body == "minimum" else {"fused_activation_function": "NONE"}
    inner = Function("body", [left, right], [out], [Op(f"tfl.{body}", [left, right], [out], attributes)])
    file = bytes(write(Module([Function("main", [x, init], [y], [op]), inner])))
    batches = edge_inputs([x, init])
    want = interpret(file, batches, "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
    for ws, gs in zip(want, interpret(tflq.convert(file).data, batches), strict=True):
        np.testing.assert_array_equal(gs[0], ws[0])


def test_softmax_of_uint8_honours_another_scale_where_parameters_hold() -> None:
    unsigned = UniformQuantizedType.of(SCALARS["ui8"], 0.1, 128)
    result = UniformQuantizedType.of(SCALARS["ui8"], 1 / 64, 3)
    file = one_op("tfl.softmax", [argument((2, 5), unsigned)], [argument((2, 5), result, "y")], {"beta": 1.0})
    batches = edge_inputs(tflq.read(file).main.inputs)
    convert_and_compare(file, batches)
    (got,) = interpret(tflq.convert(file, semantics="real").data, batches[:1])
    real = (batches[0][0].astype(np.float64) - 128) * 0.1
    powers = np.exp(real - real.max(-1, keepdims=True))
    want = np.round(powers / powers.sum(-1, keepdims=True) * 64) + 3
    assert np.abs(got[0] - want).max() <= 1
