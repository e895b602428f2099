"""Warnings stand where a value can show what they say, and only there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from support.harness import argument, const, edge_inputs, interpret, one_op

import tflq
from tflq.ir.ops import Value
from tflq.ir.types import (
    SCALARS,
    ElementType,
    ScalarType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i1,
    i4,
    i8,
    i16,
    i32,
    ui8,
)

Quantized = UniformQuantizedType
FINE, COARSE = Quantized.of(ui8, 0.01, 3), Quantized.of(ui8, 1e6, 200)


def const_of(values: Sequence[object] | np.ndarray, element: ElementType, name: str = "c") -> Value:
    return const(np.asarray(values), element, name)


def warned(model: bytes, inputs: Sequence[Value], target: str = "integer") -> bool:
    """Whether the report of a model has warnings. If not, the results are the interpreter's."""
    conversion = tflq.convert(model, target=target)
    if conversion.report.warnings:
        return True
    batches = edge_inputs(inputs)
    for want, got in zip(interpret(model, batches), interpret(conversion.data, batches), strict=True):
        for w, g in zip(want, got, strict=True):
            np.testing.assert_array_equal(g, w)
    return False


@pytest.mark.parametrize(
    ("condition", "needed"), [([True] * 4, False), ([False] * 4, True), ([True, False] * 2, True)], ids=str
)
def test_select_by_a_constant(condition: list[bool], needed: bool) -> None:
    """What is not chosen may have any parameters."""
    x, y = argument((4,), FINE, "x"), argument((4,), COARSE, "y")
    model = one_op("tfl.select_v2", [const_of(condition, i1), x, y], [argument((4,), FINE, "z")], {})
    assert warned(model, [x, y]) is needed


@pytest.mark.parametrize(("rows", "needed"), [([[0], [255]], False), ([[0], [201]], True)], ids=str)
def test_rows_that_are_stored_alike(rows: list[list[int]], needed: bool) -> None:
    """0 and 255 at a large scale are beyond what a small one holds, on either side."""
    ids = const_of([1, 0, 1], i32, "ids")
    model = one_op("tfl.embedding_lookup", [ids, const_of(rows, COARSE)], [argument((3, 1), FINE, "y")], {})
    assert warned(model, []) is needed


@pytest.mark.parametrize(
    ("ids", "needed", "same_needed"), [([1, 3], True, False), ([1, 2], True, True), ([0, 2], True, True)], ids=str
)
def test_keys_of_a_table(ids: list[int], needed: bool, same_needed: bool) -> None:
    """Rows that are found need a warning of other parameters; those that are not, one of the zero point."""
    x = argument((2, 5), FINE, "x")
    for element, wanted in ((COARSE, needed), (FINE, same_needed)):
        results = [argument((2, 5), element, "y"), argument((2,), ui8, "hits")]
        model = one_op("tfl.hashtable_lookup", [const_of(ids, i32), const_of([1, 3], i32), x], results, {})
        assert warned(model, [x]) is wanted


def test_matrix_of_one_element_has_no_zeros() -> None:
    for size in (1, 2):
        x = argument((3, size), FINE, "x")
        model = one_op("tfl.matrix_diag", [x], [argument((3, size, size), FINE, "y")], {})
        assert warned(model, [x]) is (size == 2)


@pytest.mark.parametrize(("scale", "needed"), [(1e38, False), (1e5, True)])
def test_comparison_above_one(scale: float, needed: bool) -> None:
    """What interpreters make of a shift that C++ leaves undefined is not told where all come to the same."""
    x = argument((5,), Quantized.of(ui8, 0.0076, 0), "x")
    y = argument((5,), Quantized.of(ui8, scale, 255 if scale > 1e6 else 3), "y")
    assert warned(one_op("tfl.greater", [x, y], [argument((5,), i1, "z")], {}), [x, y]) is needed


@pytest.mark.parametrize(("scale", "needed"), [(1e4, False), (0.07, True)])
def test_sum_of_zeros(scale: float, needed: bool) -> None:
    """A reference kernel that reads int8 as uint8 sums to the zero point, too, at a large enough scale."""
    x, axis = argument((2, 3), Quantized.of(i8, 0.01, 4), "x"), const_of([1], i32, "axis")
    model = one_op("tfl.sum", [x, axis], [argument((2,), Quantized.of(i8, scale, 7), "y")], {"keep_dims": False})
    assert warned(model, [x]) is needed


@pytest.mark.parametrize(("scale", "needed"), [(0.0, False), (1e-45, False), (1e-5, True)])
def test_bias_at_another_scale(scale: float, needed: bool) -> None:
    """A bias whose own scale is as good as the kernel's."""
    tiny = Quantized.of(i8, 1e-25)
    x, weights = argument((1, 4), tiny, "x"), const_of([[1.0] * 4] * 2, tiny, "weights")
    bias = const_of([900, -7000], Quantized.of(i32, scale), "bias")
    options = {"fused_activation_function": "NONE", "weights_format": "DEFAULT", "keep_num_dims": False}
    options |= {"asymmetric_quantize_inputs": False, "quantized_bias_type": "FLOAT32"}
    result = argument((1, 2), Quantized.of(i8, 0.01), "y")
    assert warned(one_op("tfl.fully_connected", [x, weights, bias], [result], options, 4), [x]) is needed


@pytest.mark.parametrize("target", ["integer", "kernels"])
def test_product_of_nothing(target: str) -> None:
    """Its kernel leaves what memory held, and is not a kernel to keep."""
    x = argument((4, 0), Quantized.of(i8, 0.01, 127), "x")
    result = argument((4,), Quantized.of(i8, 0.1, 5), "y")
    model = one_op("tfl.reduce_prod", [x, const_of([1], i32)], [result], {"keep_dims": False}, 2)
    conversion = tflq.convert(model, target=target)
    assert any("multiplies none" in warning for warning in conversion.report.warnings)
    assert not any(op.name == "tfl.reduce_prod" and op.result.type.quantized for op in tflq.read(conversion.data).ops())


def test_int16_table_of_nothing() -> None:
    """Tensors without elements, of more dims than RIGHT_SHIFT takes."""
    x, y = (argument((3, 2, 2, 0, 5), Quantized.of(i16, s), n) for s, n in ((2.0**-14, "x"), (2.0**-15, "y")))
    assert warned(one_op("tfl.logistic", [x], [y], {}), [x]) is False


@pytest.mark.parametrize(("scale", "needed"), [(1e38, True), (1e36, False)])
def test_a_fallback_on_numbers_that_floats_do_not_hold(scale: float, needed: bool) -> None:
    element = Quantized.of(i4, scale)
    x = argument((2, 3), element)
    model = one_op("tfl.expand_dims", [x, const(np.asarray(0), i32)], [argument((1, 2, 3), element, "y")], {})
    assert warned(model, [x]) is needed


@pytest.mark.parametrize(("storage", "needed"), [(i8, False), (i16, True)])
def test_a_sum_of_nothing(storage: ScalarType, needed: bool) -> None:
    """The reference kernel writes one byte of it."""
    element = Quantized.of(storage, 0.5)
    x = argument((8, 0), element)
    model = one_op("tfl.sum", [x, const_of([0, 1], i32)], [argument((), element, "y")], {"keep_dims": False})
    assert warned(model, [x]) is needed


@pytest.mark.parametrize("name", ["prelu", "mul"])
def test_infinite_scales_are_converted(name: str) -> None:
    """By real semantics, too, where a quotient of two of them is no number."""
    infinite = Quantized.of(i8, np.inf, 2)
    several = UniformQuantizedPerAxisType.of(i8, 1, [0.02, 0.06, np.inf])
    x, y = argument((2, 3), infinite, "x"), argument((2, 3), several, "y")
    attributes = {} if name == "prelu" else {"fused_activation_function": "NONE"}
    model = one_op(f"tfl.{name}", [x, y], [argument((2, 3), infinite, "z")], attributes)
    (row,) = tflq.convert(model, semantics="real").report.rows
    assert row.path == "float"


@pytest.mark.parametrize("target", ["integer", "kernels"])
def test_choosing_one_element_keeps_the_stated_shape(target: str) -> None:
    x, y = (argument((), Quantized.of(i16, 0.5), n) for n in "xy")
    model = one_op("tfl.select_v2", [const_of([[False]], i1), x, y], [argument((), x.type.element, "z")], {})
    assert warned(model, [x, y], target) is False


def test_prelu_on_int16_takes_zero_points() -> None:
    source, slope = Quantized.of(i16, 0.03, -5), Quantized.of(i8, 0.02, 1)
    x, alpha = argument((2, 3, 4), source, "x"), argument((1, 1, 4), slope, "alpha")
    model = one_op("tfl.prelu", [x, alpha], [argument((2, 3, 4), Quantized.of(i16, 0.04, 32767), "y")], {})
    assert warned(model, [x, alpha]) is False


def test_a_scalar_has_no_axis_to_sum_along() -> None:
    """No interpreter runs this."""
    element = Quantized.of(ui8, 0.5)
    attributes = {"exclusive": False, "reverse": False}
    axis = const(np.asarray(0), i32)
    model = one_op("tfl.cumsum", [argument((), element, "x"), axis], [argument((), element, "y")], attributes)
    for kind in ("tflite", "tosa"):
        with pytest.raises(tflq.InvalidModelError, match=r"CUMSUM.*kernels take at least 1 dims"):
            tflq.convert(model, format=kind)


def test_a_product_of_nothing_with_a_left_shift() -> None:
    element = Quantized.of(i8, 0.5)
    x, y = argument((0, 5, 1), element, "x"), const_of(np.zeros((0, 3, 1)), element, "y")
    attributes = {"adj_x": False, "adj_y": True, "asymmetric_quantize_inputs": False}
    result = argument((0, 5, 3), Quantized.of(i8, 0.05, 20), "z")
    assert warned(one_op("tfl.batch_matmul", [x, y], [result], attributes), [x]) is False


@pytest.mark.parametrize("target", ["integer", "kernels"])
def test_windows_of_no_elements(target: str) -> None:
    """Each gives the initial value."""
    element = Quantized.of(ui8, 0.5, 128)
    x, init = argument((5,), element, "x"), const(np.asarray(161), element)
    numbers = [const(np.asarray([n], np.int64), SCALARS["i64"]) for n in (0, 3, 1)]
    model = one_op(
        "tfl.reduce_window", [x, init, *numbers], [argument((2,), element, "y")], {"reduce_function": "MAXIMUM"}
    )
    assert warned(model, [x], target) is False
