"""Element types that a file states otherwise than a kernel makes or takes them."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, interpret, one_op

import tflq
from tflq.ir.ops import Value
from tflq.ir.types import (
    ElementType,
    ScalarType,
    TensorType,
    UniformQuantizedType,
    complex128,
    element_storage,
    f32,
    i1,
    i8,
    i32,
    i64,
)

Q8 = UniformQuantizedType.of(i8, 0.5, 3)

SET: list[tuple[str, list[ElementType], ElementType]] = [
    ("greater", [f32, f32], i1),
    ("not_equal", [Q8, Q8], i1),
    ("logical_or", [i1, i1], i1),
    ("where", [f32], i64),
    ("rank", [f32], i32),
]
"""Operators whose kernel sets the element type of the result."""

REFUSED: list[tuple[str, list[ElementType], ElementType]] = [
    ("logical_not", [i8], i1),
    ("logical_and", [i8, i8], i1),
    ("select", [i8, f32, f32], f32),
    ("select_v2", [i32, Q8, Q8], Q8),
]
"""Operators on truth values with other operands, which no kernel takes."""


def model(name: str, operands: list[ElementType], result: ElementType) -> bytes:
    values = [argument((3,), element, f"x{i}") for i, element in enumerate(operands)]
    shape = {"where": (None, 1), "rank": ()}.get(name, (3,))
    return one_op(f"tfl.{name}", values, [Value(TensorType(shape, result), "y")], {})


@pytest.mark.parametrize("stated", [i8, f32, Q8], ids=["i8", "f32", "quantized"])
@pytest.mark.parametrize(("name", "operands", "result"), SET, ids=[case[0] for case in SET])
def test_a_result_has_the_type_that_its_kernel_sets(
    name: str, operands: list[ElementType], result: ElementType, stated: ElementType
) -> None:
    data = model(name, operands, stated)
    module = tflq.read(data)
    assert module.main.outputs[0].type.element is result
    assert "and the kernel makes it" in module.warnings[0]
    inputs = [[np.asarray([0, 1, 2]).astype(element_storage(element).dtype) for element in operands]]
    (expected,), (actual,) = interpret(data, inputs), interpret(tflq.convert(data).data, inputs)
    np.testing.assert_array_equal(actual[0], expected[0])
    assert actual[0].dtype == expected[0].dtype


@pytest.mark.parametrize(("name", "operands", "result"), REFUSED, ids=[case[0] for case in REFUSED])
def test_what_is_no_truth_value_is_refused(name: str, operands: list[ElementType], result: ElementType) -> None:
    data = model(name, operands, result)
    with pytest.raises(tflq.InvalidModelError, match=r"is .*, not i1"):
        tflq.read(data)
    with pytest.raises(RuntimeError):
        interpret(data, [[np.zeros(3, np.int8 if e is not f32 else np.float32) for e in operands]])


@pytest.mark.parametrize(("option", "element"), [("INT32", i32), ("INT64", i64)])
def test_a_shape_has_the_type_that_its_option_says(option: str, element: ScalarType) -> None:
    stated = Value(TensorType((1,), complex128), "y")
    data = one_op("tfl.shape", [argument((3,), Q8, "x")], [stated], {"out_type": option})
    module = tflq.read(data)
    assert module.main.outputs[0].type.element is element
    assert f"and the kernel makes it {element}" in module.warnings[0]
    assert interpret(data, [[np.zeros(3, np.int8)]])[0][0].dtype == element.dtype
