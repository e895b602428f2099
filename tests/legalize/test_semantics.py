"""Where reference kernels disregard quantization parameters: reproduced with one warning, or computed as the parameters
say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.disregarding import CASES, distance, inputs_of, parameters, two, values_of
from support.harness import argument, const, interpret, one_op

import tflq
from tflq.ir.types import ScalarType, UniformQuantizedType, i8, i16, i32, ui8
from tflq.numerics.elementwise import floor_quotients, floor_remainders


@pytest.mark.parametrize("text", CASES)
def test_interpreter_semantics_reproduce_the_kernel_and_warn_once(text: str) -> None:
    case = CASES[text]
    model = case.model(text.split()[0])
    batches = inputs_of(case.inputs)
    conversion = tflq.convert(model)
    assert len(conversion.report.warnings) == 1
    for want, got in zip(interpret(model, batches), interpret(conversion.data, batches), strict=True):
        for w, g in zip(want, got, strict=True):
            np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("text", CASES)
def test_real_semantics_honour_the_parameters(text: str) -> None:
    case = CASES[text]
    conversion = tflq.convert(case.model(text.split()[0]), semantics="real")
    assert conversion.report.warnings == []
    batches = inputs_of(case.inputs)
    for arrays, got in zip(batches, interpret(conversion.data, batches), strict=True):
        wanted = case.real(*(values_of(v, a) for v, a in zip(case.inputs, arrays, strict=True)))
        for result, want, g in zip(case.results, wanted, got, strict=True):
            assert distance(result, want, g) <= 1


@pytest.mark.parametrize("storage", [i8, i16])
@pytest.mark.parametrize(("name", "sign"), [("floor_div", 1), ("floor_mod", -1)])
def test_floor_division_of_realvalues_of(storage: ScalarType, name: str, sign: int) -> None:
    case = two(storage, np.floor_divide if name == "floor_div" else np.mod)
    model = case.model(name)
    assert len(tflq.convert(model).report.warnings) == 1
    conversion = tflq.convert(model, semantics="real")
    assert conversion.report.warnings == []
    stored = inputs_of(case.inputs)[0]
    stored[1][stored[1] == case.inputs[1].type.element.zero_point] += 1  # type: ignore[union-attr]
    x, y = (values_of(v, a).astype(np.float32) for v, a in zip(case.inputs, stored, strict=True))
    wanted = np.floor(x / y) if name == "floor_div" else np.mod(x, y)
    (got,) = interpret(conversion.data, [stored])[0]
    assert distance(case.results[0], wanted, got) <= 1


@pytest.mark.parametrize(("name", "table"), [("floor_div", floor_quotients), ("floor_mod", floor_remainders)])
def test_floor_division_of_uint8_has_no_kernel_and_is_a_table(name: str, table: Callable[..., np.ndarray]) -> None:
    """Zero divisors, at which the float kernels stop, included."""
    element = UniformQuantizedType.of(ui8, 0.0625, 130)
    x, y = np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8), indexing="ij")
    operands = [argument(x.shape, element, n) for n in "xy"]
    conversion = tflq.convert(one_op("tfl." + name, operands, [argument(x.shape, element, "z")], {}, 2))
    assert [(row.path, row.warning) for row in conversion.report.rows] == [("integer", "")]
    (got,) = interpret(conversion.data, [[x, y]])[0]
    np.testing.assert_array_equal(got, table(np.dtype(np.uint8), *[(0.0625, 130)] * 3))


def test_floor_division_by_zero_saturates() -> None:
    dtype, one = np.dtype(np.int8), (1.0, 0)
    quotients, remainders = floor_quotients(dtype, one, one, one), floor_remainders(dtype, one, one, one)
    assert quotients[128 + 5, 128] == 127
    assert quotients[128 - 5, 128] == -128
    assert quotients[128, 128] == 0
    assert (remainders[:, 128] == 0).all()
    assert quotients[128 - 7, 128 + 2] == -4
    assert remainders[128 - 7, 128 + 2] == 1


@pytest.mark.parametrize("storage", [i8, i16])
def test_sum_is_what_the_parameters_say(storage: ScalarType) -> None:
    x, y = argument((4, 9), parameters(storage, 0.05, 3), "x"), argument((4,), parameters(storage, 0.3, -9), "y")
    model = one_op("tfl.sum", [x, const(np.asarray([1]), i32, "axis")], [y], {"keep_dims": False}, 2)
    assert len(tflq.convert(model).report.warnings) == 1
    conversion = tflq.convert(model, semantics="real")
    assert conversion.report.warnings == []
    for arrays in inputs_of([x]):
        (got,) = interpret(conversion.data, [arrays])[0]
        assert distance(y, values_of(x, arrays[0]).sum(1), got) <= 1
