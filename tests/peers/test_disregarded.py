"""Where TFLite's reference kernels disregard quantization parameters: both forms reproduce the kernel, and the report
tells its user so, once. `tests/legalize/test_semantics.py` has what the parameters say."""

from __future__ import annotations

import numpy as np
import pytest
from support.disregarding import CASES, inputs_of, two
from support.harness import argument, const, edge_inputs, one_op
from support.peer import assert_exact, assert_real, image, q

import tflq
from tflq.ir.types import ScalarType, UniformQuantizedPerAxisType, i8, i16, i32


def assert_reproduced(text: str) -> None:
    """A case gives the kernel's integers, with one warning."""
    case = CASES[text]
    model = case.model(text.split()[0])
    assert len(tflq.convert(model).report.warnings) == 1
    assert_exact(model, inputs_of(case.inputs))


@pytest.mark.parametrize("storage", ["i8", "ui8", "i16"])
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_maximum_and_minimum_of_other_scales(name: str, storage: str) -> None:
    assert_reproduced(f"{name} {storage}")


@pytest.mark.parametrize("storage", ["i8", "ui8", "i16"])
@pytest.mark.parametrize("name", ["select", "select_v2"])
def test_select_of_other_scales(name: str, storage: str) -> None:
    assert_reproduced(f"{name} {storage}")


@pytest.mark.parametrize("storage", ["i8", "ui8", "i16"])
def test_split_to_other_scales(storage: str) -> None:
    assert_reproduced(f"split {storage}")


def test_concatenation_i16_of_other_scales() -> None:
    assert_reproduced("concatenation i16")


@pytest.mark.parametrize("storage", [i8, i16], ids=str)
@pytest.mark.parametrize("name", ["floor_div", "floor_mod"])
def test_floor_div_and_floor_mod_raw(name: str, storage: ScalarType) -> None:
    case = two(storage, np.floor_divide)
    model = case.model(name)
    assert len(tflq.convert(model).report.warnings) == 1
    x, y = edge_inputs(case.inputs)[0]
    assert_exact(model, [[x, np.where(y == 0, 1, y).astype(y.dtype)]])


@pytest.mark.parametrize("storage", ["i8", "i16"])
def test_neg_raw(storage: str) -> None:
    assert_reproduced(f"neg {storage}")


@pytest.mark.parametrize("text", ["cast i8 to f32", "cast i16 to i32", "cast i8 to i16"])
def test_cast_raw(text: str) -> None:
    assert_reproduced(text)


def test_mul_with_per_axis_parameters() -> None:
    """The kernel gives zeros: the conversion what the parameters say, and the report says how."""
    scales = np.asarray([0.05, 0.03, 0.021])
    x, y, z = image(UniformQuantizedPerAxisType.of(i8, 3, scales, 0)), image(q(i8, 0.04), name="y"), image(q(i8, 0.09))
    z.name = "z"
    model = one_op("tfl.mul", [x, y], [z], {"fused_activation_function": "NONE"}, 2)
    batches = edge_inputs([x, y])
    conversion = assert_real(model, z, batches, [a * scales * b * np.float32(0.04) for a, b in batches])
    (row,) = conversion.report.rows
    assert row.path == "integer"
    assert "no kernel computes it" in row.note


@pytest.mark.parametrize("storage", [i8, i16], ids=str)
def test_sum(storage: ScalarType) -> None:
    """The reference kernel reads other memory: the conversion gives what the parameters say, and warns."""
    x, y = argument((4, 9), q(storage, 0.05, 3)), argument((4,), q(storage, 0.3, -9), "y")
    model = one_op("tfl.sum", [x, const(np.asarray([1]), i32, "axis")], [y], {"keep_dims": False}, 2)
    batches, zero = edge_inputs([x]), 3 if storage is i8 else 0
    conversion = assert_real(model, y, batches, [(b[0] - float(zero)).sum(1) * np.float32(0.05) for b in batches])
    assert len(conversion.report.warnings) == 1
