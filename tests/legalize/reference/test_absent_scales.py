"""Kernels that know one scale, on tensors that have several: as they run, with a warning; or honoured (real)."""

from __future__ import annotations

import numpy as np
import pytest
from harness import argument, const, convert_and_compare, edge_inputs, one_op

import tflq
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType, i8, i16, i32

SEVERAL = UniformQuantizedPerAxisType.of(i8, 1, [0.05, 0.2, 0.4], 2)
ONE = UniformQuantizedType.of(i8, 0.1, 3)
NONE = "has several scales: {}'s kernel finds none, and takes 0"
FIRST = "has several scales: {}'s kernel takes the first"


def _model(name: str, source: object, target: object) -> bytes:
    x = argument((4, 3), source)  # type: ignore[arg-type]
    reduces = name.startswith("reduce") or name == "mean"
    operands = [x, const(np.asarray([0]), i32, "axis")] if reduces else [x]
    y = argument((1, 3) if reduces else (4, 3), target, "y")  # type: ignore[arg-type]
    return one_op(f"tfl.{name}", operands, [y], {"keep_dims": True} if reduces else {})


@pytest.mark.parametrize("name", ["relu", "hard_swish", "mean", "neg", "exp", "quantize"])
def test_a_kernel_that_finds_no_scale(name: str) -> None:
    model = _model(name, SEVERAL, ONE)
    batches = edge_inputs(tflq.read(model).main.inputs)
    (row,) = convert_and_compare(model, batches).report.rows
    assert row.path == "integer"
    assert row.warning == "'x' " + NONE.format(name.upper())
    (row,) = tflq.convert(model, semantics="real").report.rows
    assert not row.warning


@pytest.mark.parametrize("elements", [(SEVERAL, ONE), (ONE, SEVERAL), (SEVERAL, SEVERAL)])
def test_a_kernel_that_takes_the_first(elements: tuple[object, object]) -> None:
    model = _model("abs", *elements)
    batches = edge_inputs(tflq.read(model).main.inputs)
    (row,) = convert_and_compare(model, batches).report.rows
    assert row.warning.endswith(FIRST.format("ABS"))


def test_a_kernel_that_asks_for_equal_scales() -> None:
    model = _model("reduce_max", SEVERAL, UniformQuantizedPerAxisType.of(i8, 1, [0.5, 0.1, 0.3], 0))
    (row,) = convert_and_compare(model, edge_inputs(tflq.read(model).main.inputs)).report.rows
    assert row.warning == "'x' " + NONE.format("REDUCE_MAX")


@pytest.mark.parametrize(
    "elements",
    [
        ("relu", ONE, SEVERAL),
        (
            "tanh",
            UniformQuantizedPerAxisType.of(i16, 1, [0.5, 0.1, 0.3], 0),
            UniformQuantizedType.of(i16, 2.0**-15, 0),
        ),
    ],
    ids=["divides by it", "takes its logarithm"],
)
def test_a_scale_of_0_that_is_not_defined_is_honoured(elements: tuple[str, object, object]) -> None:
    (row,) = tflq.convert(_model(*elements)).report.rows
    assert not row.warning
