"""Rules of a user for custom operators and for TFLite's own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.harness import argument, interpret, one_op

import tflq
from tflq import Extension
from tflq.base.errors import Refused
from tflq.cli import main
from tflq.dialects.tfl.activation import Relu
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import UniformQuantizedType, f32, i8
from tflq.legalize.rule import NotApplicable, RuleBuilder

EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_operator.py"
ELEMENT = UniformQuantizedType.of(i8, 0.5, -3)


def model(code: str = "Threshold", element: UniformQuantizedType = ELEMENT) -> bytes:
    x, y = argument((2, 3), ELEMENT, "x"), argument((2, 3), element, "y")
    info = {"custom_options": np.frombuffer(np.int32(10).tobytes(), np.uint8), "custom_options_format": "FLEXBUFFERS"}
    op = Op("tfl.custom", [x], [y], {"custom_code": code}, info=info)
    return bytes(write(Module([Function("main", [x], [y], [op])])))


def test_a_custom_operator_becomes_builtins() -> None:
    conversion = tflq.convert(model(), rules=[str(EXAMPLE)])
    assert [row.path for row in conversion.report.rows] == ["integer"]
    x = np.asarray([[-128, 9, 10], [11, 50, 127]], np.int8)
    ((got,),) = interpret(conversion.data, [[x]])
    np.testing.assert_array_equal(got, np.where(x > 10, x, -3))
    assert tflq.convert(model(), rules=[str(EXAMPLE)], format="tosa").data


def test_without_a_rule_it_is_kept() -> None:
    for source, rules in (
        (model("Other"), [str(EXAMPLE)]),
        (model(), []),
        (model(element=UniformQuantizedType.of(i8, 2.0)), [str(EXAMPLE)]),
    ):
        (row,) = tflq.convert(source, rules=rules).report.rows
        assert row.path == "kept"


def test_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "in.tflite", tmp_path / "out.tflite"
    path.write_bytes(model())
    assert main.run(["convert", str(path), str(out), "--rules", str(EXAMPLE), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["report"]["rows"][0]["path"] == "integer"
    assert main.run(["convert", str(path), str(out), "--rules", str(path), "--force"]) == 2
    assert "this is not a Python file" in capsys.readouterr().err


def test_rules_of_installed_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    from tflq.conversion.extensions import extension_of

    monkeypatch.setattr("tflq.conversion.extensions.installed", lambda: (extension_of(EXAMPLE),))
    (row,) = tflq.convert(model()).report.rows
    assert row.path == "integer"


def test_a_custom_operator_on_floats() -> None:
    def twice(op: Op, b: RuleBuilder) -> Value:
        x = b.value(op.operand(0))
        return b.emit("tfl.add", [x, x], x.type, fused_activation_function="NONE")

    x, y = (argument((2, 3), f32, name) for name in "xy")
    op = Op("tfl.custom", [x], [y], {"custom_code": "Twice"})
    source = bytes(write(Module([Function("main", [x], [y], [op])])))
    conversion = tflq.convert(source, rules=[Extension(rules={"Twice": [twice]})])
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    ((got,),) = interpret(conversion.data, [[given]])
    np.testing.assert_array_equal(got, 2 * given)


def test_rules_for_builtins_are_tried_first() -> None:
    asked = []

    def nothing(op: Relu, b: RuleBuilder) -> Value:
        asked.append(op)
        raise NotApplicable("it has nothing to say")

    def zero(op: Relu, b: RuleBuilder) -> Value:
        return b.constant(np.zeros((2, 3), np.int8), i8)

    relu = one_op("tfl.relu", [argument((2, 3), ELEMENT)], [argument((2, 3), ELEMENT, "y")], {})
    conversion = tflq.convert(relu, rules=[Extension(rules={Relu: [nothing, zero]})])
    ((got,),) = interpret(conversion.data, [[np.full((2, 3), 7, np.int8)]])
    assert not got.any()
    assert len(asked) == 1


def test_no_rule_is_tried_after_a_refusal() -> None:
    def refuse(op: Op, b: RuleBuilder) -> Value:
        raise Refused("it has no form", "leave it out")

    def unreached(op: Op, b: RuleBuilder) -> Value:
        raise AssertionError

    with pytest.raises(tflq.UnsupportedError) as caught:
        tflq.convert(model(), rules=[Extension(rules={"Threshold": [refuse, unreached]})])
    (reason,) = caught.value.reasons
    assert (reason.what, reason.remedy, reason.opcode) == ("it has no form", "leave it out", "CUSTOM")


def test_operands_that_do_not_fit_are_a_fault_of_the_rule() -> None:
    """Of a rule of the user's, with its file and line; not a refusal of the operator."""

    def rule(op: Op, b: RuleBuilder) -> Value:
        return b.add(b.value(op.operand(0)), b.constant(np.zeros(4), i8))

    with pytest.raises(
        tflq.OptionError, match=r"raises Misfit: its operands \[2, 3\] and \[4\] do not broadcast"
    ) as caught:
        tflq.convert(model("Other"), rules=[Extension(rules={"Other": [rule]})])
    assert caught.value.reason.path == __file__


def test_an_error_of_a_rule_names_it() -> None:
    def broken(op: Op, b: RuleBuilder) -> Value:
        raise ZeroDivisionError

    with pytest.raises(tflq.OptionError, match=r"broken' for subgraph 0, operator 0 .* raises ZeroDivision") as caught:
        tflq.convert(model(), rules=[Extension(rules={"Threshold": [broken]})])
    reason = caught.value.reason
    assert (reason.path, reason.place) == (__file__, str(broken.__code__.co_firstlineno + 1))
    assert (reason.subgraph, reason.operator, reason.opcode, reason.tensor) == (0, 0, "CUSTOM", "y")


WHOSE = "the rule 'twice' for {path}: subgraph 0, operator 0 (CUSTOM), tensor 'y' makes invalid IR: 'tosa.abs': "
TWO = WHOSE + "it has 2 operands, not 1; mend the file"
QUANTIZED = WHOSE
RULE = """import tflq

def twice(x, b):
    return {value}

EXTENSION = tflq.Extension(rules={{"Threshold": [twice]}})
"""


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("def f(:\n    pass\n", 1, "invalid syntax: def f(:; mend the file"),
        ("import os\nimport absent_package\n", 2, "install 'absent_package' where tflq runs"),
        ("import tflq\n\nEXTENSION = tflq.Extenson()\n", 3, "importing the file raises AttributeError"),
        ("raise SystemExit(0)\n", 1, "importing the file raises SystemExit: 0"),
        ("x = 1\n\ny = (\n", 3, "'(' was never closed"),
        ("import tflq\nEXTENSION = tflq.Extension(rules={'Threshold': print})\n", 2, "a list of functions, as [rule]"),
        ("import tflq\nEXTENSION = tflq.Extension(rules=[print])\n", 2, "lists by operator"),
        (RULE.format(value="x.nothing"), 4, "the rule 'twice' for {path}: subgraph 0, operator 0 (CUSTOM), tensor 'y'"),
        (RULE.format(value="[]"), 3, "gave 0 results for 1"),
        (RULE.format(value="b.emit('tosa.abs', [x.operand(0)] * 2, x.result.type.stripped())"), 3, TWO),
        (RULE.format(value="b.emit('tosa.abs', [x.operand(0)], x.result.type.stripped())"), 3, QUANTIZED),
    ],
)
def test_a_fault_of_a_file_is_its_own(
    text: str, line: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, rules, out = tmp_path / "in.tflite", tmp_path / "mine.py", tmp_path / "out.tflite"
    path.write_bytes(model())
    rules.write_text(text)
    assert main.run(["convert", str(path), str(out), "--rules", str(rules)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"tflq: {rules}:{line}: ")
    assert message.format(path=path) in error
    assert "bug" not in error
    assert not out.exists()
