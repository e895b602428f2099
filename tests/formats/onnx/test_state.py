"""Variables and calls: a state is an input with a first value and an output; functions are lowered in place."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from support.on_onnx import file_of, need_onnx, run_file

from tflq.formats.onnx.engine import lower, runtimes
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, i8, i32
from tflq.tools.verify.runtimes import OnnxRunner

START = np.asarray([1, 2, 3], np.int32)


def counting() -> Module:
    """A variable that grows by the input in each run; the result is what it was."""
    x, was, more = (Value(TensorType((3,), i32), name) for name in ("x", "was", ""))
    ops = [
        Op("tosa.variable", [constant(START)], [], {"name": "count"}),
        Op("tosa.variable_read", [], [was], {"name": "count"}),
        Op("tosa.add", [was, x], [more]),
        Op("tosa.variable_write", [more], [], {"name": "count"}),
    ]
    return Module([Function("main", [x], [was], ops)])


def test_a_state_can_be_left_out_and_fed_back() -> None:
    need_onnx()
    import onnx

    data, x = file_of(counting()), np.asarray([5, 6, 7], np.int32)
    model = onnx.load_from_string(data)
    assert [v.name for v in model.graph.input] == ["x", "count"]
    assert [v.name for v in model.graph.output] == ["was", "count_next"]
    metadata = {prop.key: json.loads(prop.value) for prop in model.metadata_props}
    assert metadata["tflq.state"] == {"count_next": "count"}
    assert metadata["tflq.exact_in"] == ["onnxruntime"]
    was, count = run_file(data, {"x": x})
    np.testing.assert_array_equal(was, START)
    np.testing.assert_array_equal(count, START + x)
    was, count = run_file(data, {"x": x, "count": count})
    np.testing.assert_array_equal(was, START + x)
    np.testing.assert_array_equal(count, START + 2 * x)


def test_a_state_is_given_in_every_run_where_no_initializer_has_its_first_value() -> None:
    need_onnx()
    import onnx

    model = onnx.load_from_string(file_of(counting(), given=True))
    assert not model.graph.initializer
    metadata = {prop.key: json.loads(prop.value) for prop in model.metadata_props}
    assert metadata["tflq.start"] == {"count": START.tolist()}
    assert metadata["tflq.exact_in"] == ["onnxruntime", "openvino"]


def test_the_report_says_what_a_state_needs_in_openvino() -> None:
    module, given = lower(counting()), lower(counting(), state_required=True)
    assert runtimes(module).to_json() == {
        "opset": 18,
        "exact_in": ["onnxruntime"],
        "remedy": "with state as inputs that are always given (--state inputs), in OpenVINO, too",
        "lost": [],
    }
    assert str(runtimes(given)) == "ONNX, opset 18: exact in ONNX Runtime and OpenVINO"


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_a_runtime_starts_with_the_first_value_and_goes_on_with_what_a_run_leaves(
    runtime: str, given: bool, tmp_path: Path
) -> None:
    need_onnx()
    pytest.importorskip(runtime)
    path = tmp_path / "counting.onnx"
    path.write_bytes(file_of(counting(), given=given))
    x = np.asarray([5, 6, 7], np.int32)
    with closing(OnnxRunner(str(path), 60, runtime)) as runner:
        for step, want in enumerate([START, START + x, START + 2 * x]):
            (was,) = runner.run("", [x], {}, step)
            np.testing.assert_array_equal(was, want)
        (was,) = runner.run("", [x], {})
        np.testing.assert_array_equal(was, START)


def test_a_function_that_is_called_is_lowered_in_place() -> None:
    need_onnx()
    argument, inside = (Value(TensorType((4,), i8), name) for name in ("argument", "inside"))
    called = Function("called", [argument], [inside], [Op("tosa.bitwise_not", [argument], [inside])])
    x, y = (Value(TensorType((4,), i8), name) for name in ("x", "y"))
    main = Function("main", [x], [y], [Op("tfl.call", [x], [y], {"subgraph": 1})])
    array = np.asarray([1, -128, 127, 0], np.int8)
    (made,) = run_file(file_of(Module([main, called])), {"x": array})
    np.testing.assert_array_equal(made, ~array)
