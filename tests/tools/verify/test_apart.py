"""Operators without a reference kernel, or with a wrong one, run on others; all else is compared on the same values."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.chains import Step, chain
from support.harness import argument, const, renamed
from support.recurrent import svdf_model

import tflq
from tflq.ir.ops import Value
from tflq.ir.types import ElementType, UniformQuantizedType, f32, i8, i32
from tflq.tools.verify.model_file import ModelFile
from tflq.tools.verify.tflite_runner import indivisible

pytestmark = pytest.mark.usefixtures("forked")

pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")

Q: ElementType = UniformQuantizedType.of(i8, 0.05, 3)


def value(name: str, shape: tuple[int, ...] = (2, 12), element: ElementType = Q) -> Value:
    return argument(shape, element, name)


def sums(factor: float = 1.0) -> bytes:
    """ABS, SUM and RELU on int8; the sum's scale is `factor` of what it should be."""
    wide = UniformQuantizedType.of(i8, 0.2 * factor, -3)
    steps: list[Step] = [
        ("tfl.abs", [], value("absolute"), {}, 2),
        ("tfl.sum", [const(np.array([1], np.int32), i32)], value("total", (2,), wide), {"keep_dims": False}, 2),
        ("tfl.relu", [], value("positive", (2,), wide), {}, 2),
    ]
    return chain(value("x"), steps)


def rounding() -> bytes:
    steps: list[Step] = [
        ("tfl.abs", [], value("absolute", element=f32), {}, 1),
        ("tfl.round", [], value("rounded", element=f32), {}, 1),
        ("tfl.neg", [], value("y", element=f32), {}, 1),
    ]
    return chain(value("x", element=f32), steps)


def test_an_operator_without_a_reference_kernel_runs_apart_and_all_else_on_the_reference_kernels() -> None:
    model = rounding()
    result = tflq.verify(model, model, layers=True)
    assert (result.verdict, result.failures, result.expected) == ("equal", [], [])
    assert [(each.opcode, each.operators, each.resolver) for each in result.apart] == [("ROUND", (1,), "optimized")] * 2
    assert "there is no reference kernel for ROUND version 1" in str(result.apart[0])
    assert result.layers is not None
    assert (result.layers.compared, result.layers.results) == (3, 3)
    document = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert document["apart"][0]["operators"] == [1]


def test_what_follows_a_broken_kernel_is_compared_on_the_values_of_the_original() -> None:
    model = sums()
    result = tflq.verify(model, tflq.convert(model).data, layers=True)
    assert result.passed
    assert [(each.opcode, each.tensor, each.within) for each in result.expected] == [("SUM", "total", 1)]
    assert all(difference.equal for difference in result.outputs.values())
    assert result.layers is not None
    assert not result.layers.diverging


def test_a_difference_larger_than_a_broken_kernel_explains_is_one() -> None:
    result = tflq.verify(sums(), sums(1.5), interface=False)
    assert result.verdict == "differs"
    (expected,) = result.expected
    assert not expected.accepted
    assert all(difference.equal for difference in result.outputs.values())


def test_without_reference_kernels_nothing_runs_apart() -> None:
    result = tflq.verify(sums(), sums(), resolver="optimized")
    assert (result.verdict, result.apart, result.expected) == ("equal", [], [])


def weighted(change: int) -> bytes:
    """A dense layer and RELU."""
    weights = np.arange(-30, 30, dtype=np.int8).reshape(5, 12)
    steps: list[Step] = [
        (
            "tfl.fully_connected",
            [const(weights ^ np.int8(change), UniformQuantizedType.of(i8, 0.01, 0)), const(np.zeros(5), i32)],
            value("dense", (2, 5)),
            {},
            4,
        ),
        ("tfl.relu", [], value("y", (2, 5)), {}, 2),
    ]
    return chain(value("x"), steps)


def report(exception: str) -> dict[str, object]:
    row = {"subgraph": 0, "operator": 0, "exception": exception, "warning": "interpreters differ"}
    return {"format": "tflq.report", "rows": [row]}


def test_what_the_report_of_a_conversion_warns_of_is_expected() -> None:
    a, b = weighted(0), weighted(4)
    assert tflq.verify(a, b).verdict == "differs"
    assert tflq.verify(a, b, report=report("disregarded")).verdict == "differs"
    result = tflq.verify(a, b, report=report("unsettled"), layers=True)
    assert result.verdict == "accepted"
    (expected,) = result.expected
    assert (expected.operator, expected.reason, expected.within) == (0, "interpreters differ", None)
    assert all(difference.equal for difference in result.outputs.values())
    with pytest.raises(tflq.OptionError, match="this is not the report of a conversion"):
        tflq.verify(a, b, report={})


def test_results_that_cannot_be_fed_are_said_to_be_so() -> None:
    module = tflq.read(sums())
    module.main.ops[1].result.name = "another"
    result = tflq.verify(sums(), tflq.write(module))
    assert [expectation.tensor for expectation in result.expected] == ["positive"], "what reads it"


@pytest.mark.parametrize("reset", [False, True])
def test_state_in_resource_variables_is_reset_and_not_divided(reset: bool, tmp_path: Path) -> None:
    model, path = svdf_model(np.random.default_rng(0)), tmp_path / "variables.tflite"
    tflq.convert(model, path, state="variables", reset_signature=reset)
    result = tflq.verify(model, path, layers=True)
    assert (result.verdict, result.interface, set(result.outputs)) == ("equal", [], {("", "y")})
    file = ModelFile(str(path))
    assert file.resets is reset
    assert indivisible(file, file.entries[""]) == "it has resource variables"


def test_a_change_behind_an_operator_that_runs_apart_is_found() -> None:
    module = tflq.read(sums())
    module.main.ops[2] = renamed(module.main.ops[2], "tfl.relu6")
    result = tflq.verify(sums(), tflq.write(module), layers=True)
    assert result.verdict == "differs"
    assert result.layers is not None
    assert result.layers.first is not None
    assert (result.layers.first.opcode, result.layers.first.tensor) == ("RELU", "positive")
