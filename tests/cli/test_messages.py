"""What commands say of a model as a whole, of refusals and of warnings."""

from __future__ import annotations

import json
import logging
import pickle
from pathlib import Path

import numpy as np
import pytest
from support.harness import argument, const, one_op

import tflq
from tflq.base.errors import Reason, UnsupportedError
from tflq.cli.main import run
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, UniformQuantizedType, f32, i8

MODELS = Path(__file__).resolve().parents[2] / "models"
Q = UniformQuantizedType.of(i8, 0.5, 3)


def chain(name: str, count: int, element: UniformQuantizedType = Q, **attributes: object) -> bytes:
    """One operator after another, each on one tensor."""
    x = argument((4,), element)
    ops, value = [], x
    for number in range(count):
        result = Value(TensorType((4,), element), f"y{number}")
        ops.append(Op(f"tfl.{name}", [value], [result], dict(attributes)))
        value = result
    return bytes(write(Module([Function("main", [x], [value], ops)])))


# A model in the integer form, a float network.


@pytest.mark.parametrize("options", [[], ["--mac", "float32"], ["--prefer", "size"]], ids=str)
def test_the_integer_form_converts_with_a_note_and_no_warning(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    once, again = str(tmp_path / "once.tflite"), str(tmp_path / "again.tflite")
    assert run(["convert", str(MODELS / "cnn_int8.tflite"), once, "-q", *options]) == 0
    capsys.readouterr()
    assert run(["convert", once, again]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "note: this model is in the integer form: nothing to lower"
    assert "warning" not in out


def test_a_cast_between_quantized_operators_still_warns() -> None:
    x, y, z = argument((4,), Q), Value(TensorType((4,), i8), "y"), Value(TensorType((4,), i8), "z")
    relu = Value(TensorType((4,), Q), "r")
    ops = [Op("tfl.relu", [x], [relu]), Op("tfl.cast", [relu], [y]), Op("tfl.abs", [y], [z])]
    report = tflq.convert(bytes(write(Module([Function("main", [x], [z], ops)])))).report
    assert any("CAST" in text for text in report.warnings)
    assert not report.remarks
    alone = tflq.convert(one_op("tfl.cast", [x], [Value(TensorType((4,), i8), "y")], {})).report
    assert alone.warnings, "nothing says that this file is in the integer form"


def test_a_float_network_is_called_that(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["convert", str(MODELS / "residual_float.tflite"), str(tmp_path / "o.tflite")]) == 0
    notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ")]
    assert notes == ["note: no tensor is quantized: this is a float network, which 'tflq quantize' quantizes"]


# Warnings and refusals by kind.


def test_warnings_that_differ_in_the_tensor_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(chain("cast", 5))
    model = chain("neg", 5)
    (tmp_path / "m.tflite").write_bytes(model)
    assert len(tflq.convert(model).report.warnings) == 5
    assert run(["convert", str(tmp_path / "m.tflite"), str(tmp_path / "o.tflite")]) == 0
    warnings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 1
    assert warnings[0].startswith("warning: 5 operators (NEG x5), the first of them operator 0 (NEG), tensor 'y0': ")


def reason(operator: int, what: str, opcode: str = "CONV_2D") -> Reason:
    return Reason(what, "m.tflite", 0, operator, opcode, f"t{operator}")


def test_refusals_are_grouped_by_what_is_missing() -> None:
    inner = [reason(n, f"tfl.floor on f32, of 't{n}', has no kernel") for n in range(14)]
    own = reason(20, "tfl.gelu on f32 has no kernel", "GELU")
    error = UnsupportedError("no kernels for 15 operators:", [*inner, own], remedy="convert the part before it")
    assert str(error).splitlines() == [
        "m.tflite: no kernels for 15 operators:",
        "  subgraph 0, operator 20 (GELU), tensor 't20': tfl.gelu on f32 has no kernel",
        "  tfl.floor on f32, of 't0', has no kernel: 14 operators, the first CONV_2D 0",
        "  convert the part before it",
    ]
    assert len(error.reasons) == 15


def test_ten_kinds_of_refusals_are_listed() -> None:
    error = UnsupportedError("all wrong:", [reason(n, f"{chr(97 + n)} is missing") for n in range(14)])
    lines = str(error).splitlines()
    assert len(lines) == 12
    assert lines[-1] == "  and 4 more kinds; --json, or `error.reasons` in Python, has all"


# What a user gave and nothing took.


def test_rules_that_do_not_apply_are_in_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text(
        "import tflq\nfrom tflq.dialects.tfl.arithmetic import Abs, Neg\n"
        "def never(op, b):\n    raise tflq.NotApplicable('the moon is full')\n"
        "EXTENSION = tflq.Extension(rules={Abs: [never], Neg: [never]})\n"
    )
    (tmp_path / "m.tflite").write_bytes(chain("abs", 1))
    report = tflq.convert(tmp_path / "m.tflite", rules=[rules]).report
    assert report.rows[0].not_rule == "rule 'never': the moon is full"
    assert report.remarks == [
        "rule 'never' for Abs matched nothing: it applied to none of them",
        "rule 'never' for Neg matched nothing: the model has no such operator",
    ]
    assert run(["convert", str(tmp_path / "m.tflite"), str(tmp_path / "o.tflite"), "--rules", str(rules)]) == 0
    assert "note: rule 'never' for Abs matched nothing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "listed"),
    [
        (
            "convert m.tflite o.tflite",
            "known: integer, kernels, portable, tflm, int8, int16x8, uint8, and target files",
        ),
        ("convert m.tflite o.tosa", "known for .tosa files: tosa, ethos-u55, ethos-u65, ethos-u85, and target files"),
        ("convert m.tflite o.onnx", "known for .onnx files: onnx"),
        ("convert m.tflite o.c", "known for .c files: c"),
        (
            "ops",
            "known: integer, kernels, portable, tflm, int8, int16x8, uint8, tosa, ethos-u55, ethos-u65, ethos-u85, onn",
        ),
        ("inspect m.tflite --why", "known: integer, kernels, portable"),
        ("opt m.tflite -p lower-to-tosa{target=ethosu55}", "did you mean 'ethos-u55'? known for .tosa files: tosa"),
    ],
)
def test_a_target_that_is_not_known_is_one_sentence(
    line: str, listed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.tflite").write_bytes(chain("abs", 1))
    name = "ethosu55" if "opt" in line else "nosuch"
    assert run([*line.split(), *([] if "opt" in line else ["--target", name])]) == 2
    assert f"target '{name}' is not known; {listed}" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["ABS", "abs", "tfl.abs"])
def test_a_rule_keyed_by_the_name_of_a_builtin_is_told_its_class(key: str) -> None:
    report = tflq.convert(chain("abs", 1), rules=[tflq.Extension(rules={key: [lambda op, _: op.operands[0]]})]).report
    assert report.remarks[0].endswith(
        "a text is the code of a custom operator, and this is the builtin tfl.abs; "
        "its key is a class: from tflq.dialects.tfl.arithmetic import Abs"
    )


def test_lines_of_a_target_that_match_nothing_are_said_with_the_nearest_miss(tmp_path: Path) -> None:
    target = tmp_path / "zeta.toml"
    target.write_text('[kernels]\nabs = ["qi16 -> qi16", "qui8 -> qi16"]\nneg = "qi8 -> qi8"\nrelu = "...; lowered"\n')
    remarks = tflq.convert(chain("abs", 2), target=target).report.remarks
    (remark,) = remarks
    assert remark == (
        "abs = \"qi16 -> qi16\" of target 'zeta' matched none of 2 operators; nearest is operator 0: "
        "'x' is qi8, not qi16, 'y0' is qi8, not qi16"
    )
    (row,) = tflq.convert(chain("relu", 1), target=target).report.rows
    assert row.not_kernel == "lowered, as target 'zeta' says: relu = \"...; lowered\""
    assert not tflq.convert(chain("neg", 2), target=target).report.remarks


def test_the_sample_of_the_page_takes_a_convolution_per_channel(tmp_path: Path) -> None:
    page = (MODELS.parent / "docs" / "targets.md").read_text()
    target = tmp_path / "npu.toml"
    target.write_text(page.partition("```toml\n")[2].partition("```")[0])
    rows = tflq.convert(MODELS / "cnn_int8.tflite", target=target).report.rows
    assert {row.outcome for row in rows if row.opcode == "CONV_2D"} == {"kernel"}


# The rest.


def test_a_report_prints_as_the_command_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, result = str(MODELS / "atan2_int16.tflite"), str(tmp_path / "o.tflite")
    assert run(["convert", source, result]) == 0
    printed = capsys.readouterr().out.splitlines()
    lines = str(tflq.convert(source).report).splitlines()
    assert [line for line in printed if not line.startswith((source, "file "))] == lines
    assert lines[0] == "integer: 0 of 1 operator"
    assert lines[-1].endswith("ATAN2 on int16 has no integer form (a table needs 8 bits or one constant operand)")


def test_log_lines_name_the_model(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    model = tmp_path / "m.tflite"
    model.write_bytes(chain("neg", 1))
    with caplog.at_level(logging.DEBUG, "tflq"):
        tflq.convert(model)
    assert caplog.records
    assert all(str(model) in record.getMessage() for record in caplog.records)


def test_tflq_alone_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    assert capsys.readouterr().out.startswith("Usage: tflq")


def test_each_format_is_listed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", str(MODELS / "pad.tflite"), str(tmp_path / "x.foo")]) == 2
    assert capsys.readouterr().err.count(".onnx") == 1


def test_inspect_names_custom_operators_and_lists_tensors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, c, y = argument((2,), f32, ""), const(np.zeros(2, np.float32), f32, "c"), Value(TensorType((2,), f32), "")
    op = Op("tfl.custom", [x, c], [y], {"custom_code": "Threshold"})
    path = tmp_path / "m.tflite"
    path.write_bytes(bytes(write(Module([Function("main", [x], [y], [op])]))))
    assert run(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert "Threshold" in out
    assert "tensor 0, 2 f32" in out
    assert run(["inspect", str(path), "--tensors"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert ["c", "constant", "2", "f32"] in [row[1:] for row in rows]
    assert run(["inspect", str(path), "--tensors", "--json"]) == 0
    (tensors,) = json.loads(capsys.readouterr().out)["subgraphs"]
    assert sorted(tensor["role"] for tensor in tensors) == ["constant", "input", "output"]


@pytest.mark.parametrize("part", [0.0, 0.001, 0.1, 0.3, 0.6, 0.9, 0.99])
def test_a_truncated_file_is_asked_about(part: float) -> None:
    data = (MODELS / "cnn_int8.tflite").read_bytes()
    with pytest.raises(tflq.InvalidModelError, match="downloaded, to the end"):
        tflq.read(data[: int(part * len(data))])


def test_verify_quietly_says_the_verdict_alone(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    assert run(["verify", str(MODELS / "pad.tflite"), str(MODELS / "pad.tflite"), "-q"]) == 0
    assert capsys.readouterr().out == "EQUAL\n"


def test_a_missing_package_is_an_error_of_its_own() -> None:
    error: tflq.TflqError = pickle.loads(pickle.dumps(tflq.MissingPackageError("no interpreter", "verify")))  # noqa: S301
    assert issubclass(tflq.MissingPackageError, ImportError)
    assert error.reason.remedy == "pip install '.[verify]' in a checkout of tflq"
