"""A model that ends at a cut is compared with what the original has there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from support.harness import argument, const

import tflq
from tflq.cli import main
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import ElementType, UniformQuantizedType, i8, i32

pytestmark = pytest.mark.usefixtures("forked")

pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")

Q: ElementType = UniformQuantizedType.of(i8, 0.05, 3)


def value(name: str) -> Value:
    return argument((2, 3), Q, name)


def custom(changed: bool = False) -> bytes:
    """Operators around one that no interpreter knows, and a branch beside it; the number of the third is not that in
    the part before the custom one."""
    x, aside, before, after, y = (value(name) for name in ("x", "aside", "before", "after", "y"))
    ops = [
        Op("tfl.relu", [x], [aside], {}),
        Op("tfl.abs", [x], [value("unread")], {}),
        Op("tfl.abs" if changed else "tfl.neg", [x], [before], {}),
        Op("tfl.custom", [before], [after], {"custom_code": "Unknown"}),
        Op("tfl.relu", [after], [y], {}),
    ]
    return bytes(write(Module([Function("main", [x], [aside, y], ops)])))


@pytest.mark.parametrize("format", ["tflite", "tosa"])
def test_before_a_custom_operator(format: str) -> None:
    if format == "tosa":
        pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
    options: dict[str, Any] = {"format": format, "cut_before_custom": True}
    result = tflq.verify(custom(), tflq.convert(custom(), **options).data, layers=True)
    assert (result.verdict, result.cut, result.failures) == ("equal", ["before"], [])
    assert set(result.outputs) == {("", "aside"), ("", "before")}
    wrong = tflq.verify(custom(), tflq.convert(custom(changed=True), **options).data, layers=True)
    assert (wrong.verdict, wrong.cut) == ("differs", ["before"])
    assert wrong.outputs["", "aside"].equal
    assert wrong.layers is not None
    assert wrong.layers.first is not None
    assert (wrong.layers.first.operator, wrong.layers.first.tensor) == (2, "before")


@pytest.mark.parametrize("format", ["tflite", "tosa"])
def test_at_a_tensor_of_a_network(
    models: Path, tmp_path: Path, format: Literal["tflite", "tosa"], capsys: pytest.CaptureFixture[str]
) -> None:
    if format == "tosa":
        pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
    path, out = models / "cnn_uint8.tflite", tmp_path / f"cut.{format}"
    tflq.convert(path, out, cut=["pointwise"])
    assert main.run(["verify", str(path), str(out)]) == 0
    said = capsys.readouterr().out
    assert "cut         the second model ends at 'pointwise' of the first: compared with its values there" in said
    module = tflq.read(path)
    weights = module.main.ops[2].operand(1)
    assert weights.buffer is not None
    weights.buffer = Buffer(weights.buffer.data ^ np.uint8(0x20))
    other = tflq.convert(tflq.write(module), format=format, cut=["pointwise"])
    assert tflq.verify(path, other.data).to_json()["verdict"] == "differs"


def test_the_interface_counts_at_a_cut() -> None:
    module = tflq.read(tflq.convert(custom(), cut_before_custom=True).data)
    end = module.main.outputs[1]
    end.type = argument((2, 3), UniformQuantizedType.of(i8, 0.06, 3), "").type
    result = tflq.verify(custom(), tflq.write(module))
    assert result.verdict == "differs"
    assert "output 'before': scales are" in result.interface[0]


def test_an_output_that_is_lost_is_no_cut() -> None:
    x, inner, y, z = (value(name) for name in ("x", "inner", "y", "z"))
    ops = [Op("tfl.abs", [x], [inner], {}), Op("tfl.relu", [inner], [y], {}), Op("tfl.relu6", [x], [z], {})]

    def model(*outputs: Value) -> bytes:
        return bytes(write(Module([Function("main", [x], list(outputs), ops)])))

    for outputs in ([y], [inner]):
        result = tflq.verify(model(y, z), model(*outputs))
        assert (result.verdict, result.cut) == ("differs", [])
    assert tflq.verify(model(y, z), model(z, inner)).cut == ["inner"]


def test_what_the_report_says_is_of_operators_of_the_original() -> None:
    """The original's operators have other numbers in the part that is compared."""
    weights = const(np.arange(-4, 5, dtype=np.int8).reshape(3, 3), UniformQuantizedType.of(i8, 0.01, 0))
    x, unread, dense, end, y = (value(name) for name in ("x", "unread", "dense", "end", "y"))

    def model(operand: Value) -> bytes:
        ops = [
            Op("tfl.abs", [x], [unread], {}),
            Op("tfl.fully_connected", [x, operand, const(np.zeros(3), i32)], [dense], {}, info={"version": 4}),
            Op("tfl.relu", [dense], [end], {}),
            Op("tfl.relu6", [end], [y], {}),
        ]
        return bytes(write(Module([Function("main", [x], [y], ops)])))

    row = {"subgraph": 0, "operator": 1, "exception": "unsettled", "warning": "interpreters differ"}
    other = const(np.arange(-5, 4, dtype=np.int8).reshape(3, 3), UniformQuantizedType.of(i8, 0.01, 0))
    cut = tflq.convert(model(other), cut=["end"]).data
    assert tflq.verify(model(weights), cut).verdict == "differs"
    result = tflq.verify(model(weights), cut, report={"format": "tflq.report", "rows": [row]})
    assert (result.verdict, [each.operator for each in result.expected]) == ("accepted", [1])
