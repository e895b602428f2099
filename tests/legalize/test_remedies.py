"""Every warning of a conversion says what to do: of an operator in `Row.remedy`, of the model in its last words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from exception_cases import CASES, Case, misread
from support.harness import argument, const
from support.recurrent import svdf_model

import tflq
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op
from tflq.ir.types import UniformQuantizedType, f32, i8, i16
from tflq.ir.verifier import Notes
from tflq.legalize.caveats import EXCEPTIONS, remedies

Q = UniformQuantizedType.of(i8, 0.05, 3)


@pytest.mark.slow
@pytest.mark.parametrize("make", CASES)
def test_of_operators(make: Callable[[], Iterator[Case]]) -> None:
    for case in make():
        report = tflq.convert(case.model, **case.options).report
        rows = [row for row in report.rows if row.warning]
        assert rows, case
        for row in rows:
            assert EXCEPTIONS[row.exception].remedy in row.remedy
            assert row.advice == f"{row.warning}; {row.remedy}"
            assert any(said.endswith(f": {row.advice}") for said in report.warnings)


@pytest.mark.slow
def test_of_tensors_that_kernels_misread() -> None:
    for _, model in misread.models():
        warned = [row for row in tflq.convert(model).report.rows if row.warning]
        assert [row.remedy for row in warned] == [EXCEPTIONS["broken"].remedy] * len(warned)


def test_of_two_exceptions_both_remedies_are_given() -> None:
    module = tflq.read(svdf_model(np.random.default_rng(0)))
    time = module.main.ops[0].operand(2)
    time.type = time.type.with_element(UniformQuantizedType.of(i16, 0.001, 40))
    (row,) = tflq.convert(bytes(write(module)), state="variables").report.rows
    assert row.remedy == remedies(["disregarded", "state"])


def test_nothing_to_warn_of_has_no_remedy() -> None:
    x, y = argument((2, 3), Q), argument((2, 3), Q, "y")
    (row,) = tflq.convert(bytes(write(Module([Function("f", [x], [y], [Op("tfl.relu", [x], [y], {})])])))).report.rows
    assert (row.warning, row.remedy, row.advice) == ("", "", "")


@pytest.mark.parametrize("options", [{"format": "tosa"}, {"format": "onnx"}, {"target": "tflm"}])
def test_where_there_are_no_hybrid_kernels(options: dict[str, Any]) -> None:
    """They round activations, which operators on floats do not."""
    if options.get("format") == "onnx":
        pytest.importorskip("onnx")
    x, y = argument((2, 4), f32, "x"), argument((2, 3), f32, "y")
    weights = const(np.arange(12).reshape(3, 4), UniformQuantizedType.of(i8, 0.1), "w")
    attributes = {"fused_activation_function": "NONE", "weights_format": "DEFAULT", "keep_num_dims": False}
    attributes |= {"asymmetric_quantize_inputs": False}
    op = Op("tfl.fully_connected", [x, weights, None], [y], attributes, info={"version": 9})
    model = bytes(write(Module([Function("f", [x], [y], [op])])))
    conversion = tflq.convert(model, **options)
    (row,) = conversion.report.rows
    if options.get("format") == "onnx":
        assert str(conversion.report.requirements).endswith("exact in no runtime")
    assert "rounds the activations" in row.warning
    assert row.remedy.startswith("allow for the difference, or quantize the activations")


def test_of_harmless_defects() -> None:
    notes = Notes()
    notes.warn("subgraph 0", "one tensor is listed twice as an input", remedy="list it once")
    assert notes.finish() == ["subgraph 0: one tensor is listed twice as an input; list it once"]
