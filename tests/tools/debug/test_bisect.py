"""Which pass first changed a result, with faults planted in passes, rules and lowerings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from support.planted import plant, wrong_table_entry

from tflq.base.errors import OptionError
from tflq.cli import main
from tflq.dialects.tfl.arithmetic import Add
from tflq.formats.tflite import backend as to_tflite
from tflq.formats.tflite.lowering import engine
from tflq.formats.tflite.lowering.engine import Select
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType
from tflq.legalize import arithmetic as elementwise
from tflq.legalize.rule import RuleBuilder, rules_of
from tflq.tools.debug.bisection import Bisection, bisect
from tflq.transforms.pass_manager import Pass, PassResult


def names(found: Bisection) -> dict[str, bool | None]:
    return {step.name: step.equal for step in found.steps}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["cnn_int8", "cnn_uint8", "two_signatures", "cnn_int16x8"])
@pytest.mark.parametrize("target", [None, "kernels", "tosa"])
def test_no_pass_changes_a_result(models: Path, model: str, target: str | None) -> None:
    found = bisect(models / f"{model}.tflite", target=target)
    assert found.finding is None
    assert False not in names(found).values()
    assert found.steps[0].by == "interpreter"
    assert found.steps[-1].by == ("evaluator" if target == "tosa" else "interpreter")
    assert target == "kernels" or all(step.by for step in found.steps)


def test_a_pass(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(wrong_table_entry, monkeypatch)
    found = bisect(models / "two_signatures.tflite").finding
    assert found is not None
    assert (found.name, found.opcode, found.unchecked) == ("plant", "TANH", ())
    assert "tosa.table" in found.after
    assert "1 LSB" in found.difference


def test_of_a_rule(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ADD takes the first operand twice: the rule is named, though other operators follow."""

    def twice(op: Op, b: RuleBuilder) -> Any:
        same = Op(op.name, [op.operand(0), op.operand(0)], op.results, op.attributes, op.location)
        assert isinstance(same, Add)
        return elementwise.add(same, b)

    monkeypatch.setattr(
        "tflq.legalize.deciding.rules_of", lambda kind: (twice,) if issubclass(kind, Add) else rules_of(kind)
    )
    found = bisect(models / "cnn_int8.tflite")
    assert found.finding is not None
    assert names(found)["legalize"] is False
    assert (found.finding.name, found.finding.opcode, found.finding.path) == ("legalize", "ADD", "integer")
    assert found.finding.rule.endswith("twice")
    assert found.finding.before == ("tfl.add",)


@dataclass(frozen=True)
class Passing(Pass):
    """Reverses the operands of every op of a name: a fault on kernels, which a second pass may undo."""

    name: ClassVar[str] = "passing"
    op: str = "tfl.sub"

    def run(self, module: Module) -> PassResult:
        for op in module.ops():
            if op.name == self.op:
                op.operands.reverse()
        return PassResult(module, modified=True)


@pytest.mark.parametrize(("times", "expected"), [(1, "passing"), (2, None)])
def test_a_difference_that_a_later_pass_mends_is_none(
    models: Path, monkeypatch: pytest.MonkeyPatch, times: int, expected: str | None
) -> None:
    to_kernels = to_tflite.to_kernels
    monkeypatch.setattr(to_tflite, "to_kernels", lambda *given: [*to_kernels(*given), *[Passing()] * times])
    found = bisect(models / "cnn_int8.tflite")
    assert (found.finding and found.finding.name) == expected
    assert found.steps[-times].equal is False


def test_what_the_interpreter_gets_wrong_is_of_legalization(models: Path) -> None:
    found = bisect(models / "mul_per_axis.tflite").finding
    assert found is not None
    assert (found.name, found.opcode, found.tensor) == ("legalize", "MUL", "z")
    assert "reads one scale" in found.warning
    assert found.rule.startswith("tflq.legalize.")


def test_selection(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Faulty(Select):
        def run(self, module: Module) -> PassResult:
            module = super().run(module).module
            for op in module.ops():
                if op.name == "tfl.sub" and op.location is not None and op.location.opcode == "ADD":
                    op.operands.reverse()
            return PassResult(module, modified=True)

    monkeypatch.setattr(engine, "Select", Faulty)
    found = bisect(models / "cnn_int16x8.tflite").finding
    assert found is not None
    assert (found.name, found.opcode) == ("select", "ADD")
    assert "tosa.rescale" in found.before
    assert "tfl.sub" in found.after


def test_what_cannot_be_run_is_named(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that a target keeps have no evaluator: the fault may be in any pass since."""

    def reversed_pad(op: Op, function: Function) -> None:
        if op.name == "tfl.softmax":
            op.attributes["beta"] = 0.5

    plant(reversed_pad, monkeypatch)
    found = bisect(models / "cnn_int8.tflite", target="kernels").finding
    assert found is not None
    assert found.name == "select"
    assert {"legalize", "plant"} <= set(found.unchecked)
    assert found.opcode == "SOFTMAX"


def test_what_does_not_evaluate(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_short(op: Op, function: Function) -> None:
        if op.name == "tosa.matmul" or op.name == "tosa.conv2d":
            op.operands[1] = Value(TensorType((1,), op.operand(1).type.element))

    plant(cut_short, monkeypatch)
    with pytest.raises(Exception, match="left invalid IR"):
        bisect(models / "cnn_int8.tflite")


def test_a_file_of_tosa_has_no_original(models: Path, tmp_path: Path) -> None:
    import tflq

    tflq.convert(models / "pad.tflite", tmp_path / "pad.tosa")
    with pytest.raises(OptionError, match="needs a TFLite model"):
        bisect(tmp_path / "pad.tosa")


@pytest.mark.slow
def test_command(models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(models / "cnn_int8.tflite")
    assert main.run(["bisect", model]) == 0
    assert "no pass changed a result" in capsys.readouterr().out

    def wrong(op: Op, function: Function) -> None:
        if op.name == "tosa.conv2d":
            op.attributes["input_zp"] += 1

    plant(wrong, monkeypatch)
    assert main.run(["bisect", model]) == 5
    out = capsys.readouterr().out
    assert "first changed by: pass 10, plant" in out
    assert "operator 0 (CONV_2D)" in out
    finding = bisect(model).finding
    assert finding is not None
    assert f"first tensor '{finding.tensor}' on inputs '{finding.inputs}'" in " ".join(out.split())
    assert main.run(["bisect", model, "--json"]) == 5
    document = json.loads(capsys.readouterr().out)
    assert (document["format"], document["version"]) == ("tflq.bisection", 1)
    assert document["finding"]["name"] == "plant"
    assert document["finding"]["operator"] == 0
    assert document["steps"][0] == {"number": 0, "name": "read", "by": "interpreter", "equal": True, "note": ""}
