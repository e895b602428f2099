"""Announced differences of the original's kernels, in files of each format: what follows goes on with what the original
gives, so that all else is compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from support.chains import Step, chain
from support.harness import argument, const, packed
from support.on_c import need_compiler
from support.on_onnx import need_onnx

import tflq
from tflq.cli import main
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import ElementType, UniformQuantizedPerAxisType, UniformQuantizedType, f32, i4, i8, i32, ui8
from tflq.tools.debug.reduction import Conversion
from tflq.tools.verify import runtimes

pytestmark = pytest.mark.usefixtures("forked")

pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")

Q: Final = UniformQuantizedType.of(i8, 0.05, 3)


@pytest.fixture(params=["tflite", "tosa", "onnx"])
def format(request: pytest.FixtureRequest) -> Any:
    if request.param == "tosa":
        pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
    if request.param == "onnx":
        need_onnx()
    return request.param


def value(name: str, element: ElementType = Q, shape: tuple[int, ...] = (2, 3)) -> Value:
    return argument(shape, element, name)


def misread(last: str = "tfl.add") -> bytes:
    """MUL by a constant of several scales, which the kernel misreads, then two operators."""
    x = value("x")
    several = UniformQuantizedPerAxisType.of(i8, 1, [0.1, 0.2, 0.3])
    factor = const(np.arange(-3, 3, dtype=np.int8).reshape(2, 3), several)
    steps: list[Step] = [
        ("tfl.mul", [factor], value("product"), {"fused_activation_function": "NONE"}, 2),
        ("tfl.abs", [], value("positive"), {}, 2),
        (last, [x], value("y"), {"fused_activation_function": "NONE"}, 2),
    ]
    return chain(x, steps)


def test_what_the_originals_kernel_misreads_is_expected_and_all_else_compared(format: Any) -> None:
    model = misread()
    result = tflq.verify(model, tflq.convert(model, format=format).data, layers=True)
    assert (result.verdict, [each.tensor for each in result.expected]) == ("accepted", ["product"])
    assert not result.expected[0].difference.equal
    assert all(found.equal for found in result.outputs.values())
    assert result.layers is not None
    assert (result.layers.compared, result.layers.diverging) == (2, ())
    wrong = tflq.verify(model, tflq.convert(misread("tfl.sub"), format=format).data, layers=True)
    assert wrong.verdict == "differs"
    assert wrong.layers is not None
    assert [each.tensor for each in wrong.layers.diverging] == ["y"]


def test_a_difference_at_an_output_is_accepted(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], format: Any
) -> None:
    path, out = models / "mul_per_axis.tflite", tmp_path / f"m.{format}"
    report = tflq.convert(path, out).report.to_json()
    assert main.run(["verify", str(path), str(out)]) == 0
    said = capsys.readouterr().out
    assert "expected    operator 0 (MUL), tensor 'z': up to 128 LSB" in said
    assert said.endswith("\nACCEPTED\n")
    assert tflq.verify(path, out, report=report).verdict == "accepted"


def test_an_announced_difference_is_no_failure_to_reduce(models: Path, format: Any) -> None:
    model = (models / "mul_per_axis.tflite").read_bytes()
    inputs = tflq.read(model).main.inputs
    x = {v.name: np.full([d or 1 for d in v.type.shape or ()], 100, np.int8) for v in inputs}
    with Conversion({"format": format}) as predicate:
        assert predicate(model, x) == ""
    other = tflq.convert(misread("tfl.sub"), format=format).data
    with Conversion(convert=lambda _: other) as predicate:
        assert predicate(misread(), {"x": np.full((2, 3), 100, np.int8)}) == "differs"


def test_values_are_fed_as_the_file_has_them(format: Any) -> None:
    """uint8 inside is int8 in TOSA, and less its zero point in ONNX. A tensor that is fed is also an output, which in a
    TFLite file is a copy of what the next operator reads."""
    q = UniformQuantizedType.of(ui8, 0.05, 130)
    weights = const(np.arange(1, 10, dtype=np.uint8).reshape(3, 3), UniformQuantizedType.of(ui8, 0.01, 5))
    other = const(np.arange(2, 11, dtype=np.uint8).reshape(3, 3), UniformQuantizedType.of(ui8, 0.01, 5))
    dense, y = value("dense", q), value("y", q)

    def model(operand: Value, last: str, outputs: list[Value]) -> bytes:
        steps: list[Step] = [
            ("tfl.fully_connected", [operand, const(np.zeros(3), i32)], dense, {}, 4),
            (last, [], y, {}, 2),
        ]
        return chain(value("x", q), steps, outputs)

    row = {"subgraph": 0, "operator": 0, "exception": "unsettled", "warning": "interpreters differ"}
    report = {"format": "tflq.report", "rows": [row]}
    for outputs in ([y], [dense, y]):
        original = model(weights, "tfl.relu", outputs)
        made = tflq.convert(model(other, "tfl.relu", outputs), format=format).data
        assert tflq.verify(original, made).verdict == "differs"
        result = tflq.verify(original, made, report=report)
        assert (result.verdict, result.notes) == ("accepted", [])
        assert not result.expected[0].difference.equal
        wrong = tflq.convert(model(other, "tfl.relu_n1_to_1", outputs), format=format).data
        assert tflq.verify(original, wrong, report=report).verdict == "differs"


def test_without_the_package_onnx_it_is_said_that_a_file_cannot_be_divided(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_onnx()
    monkeypatch.setattr(runtimes, "find_spec", lambda _: None)
    path = models / "mul_per_axis.tflite"
    result = tflq.verify(path, tflq.convert(path, format="onnx").data)
    assert result.verdict == "differs"
    assert result.notes[0].startswith("a model cannot be divided without the package onnx (pip install")


def test_a_result_that_the_other_model_lacks_is_expected_of_what_reads_it() -> None:
    """GATHER of int4, which its kernel misreads, and which is not in the result."""
    element = UniformQuantizedType.of(i4, 0.1, 0)
    rows = packed(np.arange(9).reshape(3, 3) - 4, element)
    ids, taken, y = argument((3,), i32, "ids"), value("taken", element, (3, 3)), argument((3, 3), f32, "y")
    ops = [Op("tfl.gather", [rows, ids], [taken], {"axis": 0, "batch_dims": 0}), Op("tfl.dequantize", [taken], [y], {})]
    model = bytes(write(Module([Function("main", [ids], [y], ops)])))
    conversion = tflq.convert(model)
    result = tflq.verify(model, conversion.data, report=conversion.report)
    assert (result.verdict, [each.tensor for each in result.expected]) == ("accepted", ["y"])
    assert not result.expected[0].difference.equal


def test_an_output_of_a_hybrid_operator_is_expected_to_differ(format: Any) -> None:
    """The output is the operator's own result, of floats."""
    weights = const(np.arange(-12, 12).reshape(3, 8), UniformQuantizedType.of(i8, 0.02, 0), "w")
    x, y = value("x", f32, (2, 8)), value("y", f32, (2, 3))
    model = chain(x, [("tfl.fully_connected", [weights], y, {}, 4)])
    conversion = tflq.convert(model, format=format)
    result = tflq.verify(model, conversion.data, report=conversion.report)
    assert (result.verdict, result.notes) == ("equal" if format == "tflite" else "accepted", [])


@need_compiler
def test_what_follows_a_hybrid_operator_is_compared_in_c(tmp_path: Path) -> None:
    """The program goes on with what the original gives, and a fault behind it is a difference."""
    hybrid = const(np.arange(-12, 12).reshape(3, 8), UniformQuantizedType.of(i8, 0.02, 0), "w")

    def model(factor: float) -> bytes:
        plain = const(np.arange(-6, 6, dtype=np.float32).reshape(4, 3) * np.float32(factor), f32, "v")
        steps: list[Step] = [
            ("tfl.fully_connected", [hybrid], value("dense", f32), {}, 4),
            ("tfl.fully_connected", [plain], value("y", f32, (2, 4)), {}, 1),
        ]
        return chain(value("x", f32, (2, 8)), steps)

    verdicts = {}
    for factor in (0.1, 0.11):
        conversion = tflq.convert(model(factor), tmp_path / "net.c", force=True)
        result = tflq.verify(model(0.1), tmp_path / "net.c", report=conversion.report, cc="cc -O0")
        assert [each.tensor for each in result.expected] == ["dense"]
        assert not result.expected[0].difference.equal
        assert result.layers is not None
        verdicts[result.verdict] = [each.tensor for each in result.layers.diverging if not each.difference.accepted]
    assert verdicts == {"accepted": [], "differs": ["y"]}


@need_compiler
def test_counts_of_an_operator_are_none_of_what_reads_it(tmp_path: Path) -> None:
    """C computes SUM within QUANTIZE, so a count of SUM is many of the result."""
    wide, fine = (UniformQuantizedType.of(i8, scale, -3) for scale in (0.2, 0.01))
    axes = const(np.array([1], np.int32), i32)
    steps: list[Step] = [
        ("tfl.sum", [axes], value("total", wide, (2,)), {"keep_dims": False}, 2),
        ("tfl.quantize", [], value("y", fine, (2,)), {}, 2),
    ]
    model = chain(value("x"), steps)
    tflq.convert(model, tmp_path / "net.c")
    result = tflq.verify(model, tmp_path / "net.c", cc="cc -O0")
    assert [(each.opcode, each.within) for each in result.expected] == [("QUANTIZE", None)]
    assert result.passed
