"""The command line: exit codes, messages, refusals."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.harness import argument, one_op

import tflq
from tflq.cli import main
from tflq.ir.types import UniformQuantizedType, f32, i32
from tflq.tools.opt import named_passes

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs the command line: exit code, standard output and standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        code = main.run([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def model(tmp_path: Path, models: Path) -> Path:
    """A copy of a model of one operator."""
    return Path(shutil.copy(models / "pad.tflite", tmp_path))


def test_version(cli: Cli) -> None:
    assert cli("--version") == (0, f"tflq {tflq.__version__}\n", "")


@pytest.mark.parametrize("command", [(), *((name,) for name in main.COMMANDS)])
def test_help(cli: Cli, command: tuple[str, ...]) -> None:
    code, out, _ = cli(*command, "--help")
    assert code == 0
    assert out.startswith("Usage: tflq")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["conert"], "there is no command 'conert'; did you mean 'convert'?"),
        (
            ["sweep", "merg", "a", "-o", "b"],
            "'merg' is neither a command of sweep nor a file or folder; did you mean 'merge'?",
        ),
        (["inspect"], "tflq: missing argument 'MODEL'; see tflq inspect --help"),
        (["inspect", "nowhere.tflite"], "tflq: nowhere.tflite: there is no such file"),
        (["inspect", "."], "tflq: .: this is a folder, not a model; name a file in it"),
        (["convert", "--targt", "x"], "tflq: there is no option --targt; did you mean '--target'?"),
        (["convert", "a", "b", "--mac", "flaot32"], "did you mean 'float32'?"),
        (["convert", "nowhere.tflite", "out.tflite"], "there is no such file"),
        (["verify", "nowhere.tflite", "nowhere.tflite"], "there is no such file"),
        (["opt", "nowhere.mlir", "-p", "cse"], "there is no such file"),
    ],
)
def test_wrong_usage(cli: Cli, arguments: list[str], message: str) -> None:
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("command", [["inspect"], ["convert"]])
@pytest.mark.parametrize("data", [b"", b"TFL3", b"\0\0\0\0TFL3" + b"\xff" * 64])
def test_invalid_model(cli: Cli, tmp_path: Path, command: list[str], data: bytes) -> None:
    path = tmp_path / "bad.tflite"
    path.write_bytes(data)
    code, out, err = cli(*command, path, *([tmp_path / "out.tflite"] if command == ["convert"] else []))
    assert (code, out) == (3, "")
    assert err.startswith("tflq: ")
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == [path]


def test_convert_writes_the_model_and_the_report(cli: Cli, model: Path, tmp_path: Path) -> None:
    out, report = tmp_path / "out.tflite", tmp_path / "report.json"
    code, printed, err = cli("convert", model, out, "--report", report)
    assert (code, err) == (0, "")
    assert "PAD" in printed
    assert tflq.read(out).main.inputs[0].name == "x"
    document = json.loads(report.read_text())
    assert (document["format"], document["version"]) == ("tflq.report", 3)
    row = document["rows"][0]
    assert (row["opcode"], row["path"], row["operands"], row["results"]) == ("PAD", "integer", ["qi8", "i32"], ["qi8"])
    assert row["emitted"] >= 1


def test_convert_prints_json(cli: Cli, model: Path, tmp_path: Path) -> None:
    code, printed, _ = cli("convert", model, tmp_path / "out.tflite", "--json", "--mac", "float32")
    document = json.loads(printed)
    assert code == 0
    assert (document["format"], document["version"], document["options"]["mac"]) == ("tflq.conversion", 2, "float32")
    assert document["report"]["operators"] | {"emitted": 1} == {
        "integer": 1,
        "float": 0,
        "kept": 0,
        "total": 1,
        "emitted": 1,
    }
    assert document["bytes_in"] == model.stat().st_size


def test_convert_replaces_a_file_only_by_force(cli: Cli, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tflite"
    out.write_bytes(b"precious")
    code, _, err = cli("convert", model, out)
    assert (code, out.read_bytes()) == (2, b"precious")
    assert "--force" in err
    assert cli("convert", model, out, "--force")[0] == 0
    assert out.read_bytes()[4:8] == b"TFL3"


def test_convert_replaces_a_report_only_by_force(cli: Cli, model: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text("precious")
    code, _, err = cli("convert", model, tmp_path / "out.tflite", "--report", report)
    assert (code, report.read_text()) == (2, "precious")
    assert "--force" in err
    assert not (tmp_path / "out.tflite").exists()


@pytest.mark.parametrize("name", ["pad.tflite", "link.tflite"])
def test_convert_never_replaces_its_source(cli: Cli, model: Path, name: str) -> None:
    before = model.read_bytes()
    if name == "link.tflite":
        model.with_name(name).symlink_to(model)
    code, _, err = cli("convert", model, model.with_name(name), "--force")
    assert (code, model.read_bytes()) == (2, before)
    assert "this is an input, which is never replaced" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{model}", "{folder}"], "this is a folder; name a file, or say -o DIR"),
        (["{folder}", "out.tflite"], "{folder}: this is a folder, not a model"),
        (["{model}", "out.tflite", "--report", "-"], "--json prints it"),
    ],
)
def test_convert_of_paths_that_are_none(
    cli: Cli, model: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    names = {"model": model, "folder": tmp_path}
    code, out, err = cli("convert", *(text.format(**names) for text in arguments))
    assert (code, out) == (2, "")
    assert message.format(**names) in err


def test_convert_into_no_folder(cli: Cli, model: Path, tmp_path: Path) -> None:
    code, _, err = cli("convert", model, tmp_path / "nowhere" / "out.tflite")
    assert code == 2
    assert "no folder" in err


def test_convert_to_a_format_that_is_not_there(cli: Cli, model: Path, tmp_path: Path) -> None:
    code, _, err = cli("convert", model, tmp_path / "out.pb")
    assert code == 2
    assert ".tflite, .tosa, .mlir" in err


def test_a_form_is_a_format_with_the_suffix_of_another(cli: Cli, model: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnx.checker", reason="needs ONNX: pip install '.[onnx]'")
    code, out, _ = cli("convert", model, tmp_path / "out.onnx", "--form", "qdq")
    assert code == 0
    assert "QDQ: 1 operator between casts; exact in no runtime" in out
    assert (tmp_path / "out.onnx").read_bytes() == tflq.convert(model, format="qdq").data
    code, _, err = cli("convert", model, tmp_path / "out.tosa", "--form", "qdq")
    assert code == 2
    assert "the suffix says another format than qdq" in err


@pytest.mark.parametrize("suffix", [".tosa", ".mlir"])
def test_convert_to_tosa(cli: Cli, model: Path, tmp_path: Path, suffix: str) -> None:
    code, out, _ = cli("convert", model, tmp_path / f"out{suffix}")
    assert code == 0
    assert "valid for the integer profile" in out
    assert (tmp_path / f"out{suffix}").stat().st_size


def test_convert_for_an_unknown_target(cli: Cli, model: Path, tmp_path: Path) -> None:
    code, _, err = cli("convert", model, tmp_path / "out.tflite", "--target", "moon")
    assert code == 2
    assert "'moon'" in err


def test_inspect(cli: Cli, models: Path) -> None:
    code, out, _ = cli("inspect", models / "two_signatures.tflite")
    assert code == 0
    assert "classify(image) -> (scores), subgraph 0" in out
    assert "?x16x16x1 qi8" in out


def test_inspect_json(cli: Cli, models: Path) -> None:
    code, out, _ = cli("inspect", models / "two_signatures.tflite", "--json")
    document = json.loads(out)
    assert (code, document["format"], document["version"]) == (0, "tflq.inspection", 2)
    assert [s["key"] for s in document["signatures"]] == ["classify", "embed"]
    (tensor,) = document["functions"][0]["inputs"]
    assert tensor["shape"] == [None, 16, 16, 1]
    element = tflq.read(models / "two_signatures.tflite").functions[0].inputs[0].type.element
    assert isinstance(element, UniformQuantizedType)
    assert tensor["quantization"] == {
        "scales": [element.scale],
        "zero_points": [-1],
        "axis": None,
        "axes": None,
        "block_sizes": None,
    }


PARTLY = """
func.func @main(%x: tensor<1x4xf32> {tflq.name = "x"}) -> tensor<1x4xf32> {
  %q = "quant.qcast"(%x) : (tensor<1x4xf32>) -> tensor<1x4x!quant.uniform<i8:f32, 0.5>>
  %a = "tfl.relu"(%q) : (tensor<1x4x!quant.uniform<i8:f32, 0.5>>) -> tensor<1x4x!quant.uniform<i8:f32, 0.5>>
  %d = "quant.dcast"(%a) : (tensor<1x4x!quant.uniform<i8:f32, 0.5>>) -> tensor<1x4xf32>
  %b = "tfl.tanh"(%d) {tflq.tensors = [{name = "out"}]} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %b : tensor<1x4xf32>
}
"""


@pytest.mark.parametrize("fused", [False, True])
def test_inspect_says_what_is_not_quantized(cli: Cli, tmp_path: Path, fused: bool) -> None:
    path = tmp_path / "partly.mlir"
    path.write_text(PARTLY)
    if fused:
        assert cli("opt", path, "-p", "kernel-fusion", "-o", tmp_path / "fused.mlir")[0] == 0
        path = tmp_path / "fused.mlir"
    code, out, _ = cli("inspect", path)
    assert code == 0
    assert "quantized   partly, 1 of 2 operators" in out
    assert "TANH      output 0 (out)" in out.splitlines()[-1]
    found = json.loads(cli("inspect", path, "--json")[1])["quantization"]
    assert (found["operators"], found["quantized"], found["full"]) == (2, 1, False)
    (missing,) = found["unquantized"]
    assert (missing["subgraph"], missing["opcode"], missing["port"], missing["tensor"]) == (
        0,
        "TANH",
        "output 0",
        "out",
    )


def test_inspect_of_networks_that_are_all_quantized_or_not_at_all(cli: Cli, models: Path, tmp_path: Path) -> None:
    assert "quantized   fully, 9 operators" in cli("inspect", models / "cnn_int8.tflite")[1]
    path = tmp_path / "float.mlir"
    path.write_text(PARTLY.replace("%d)", "%x)"))
    assert cli("opt", path, "-p", "dce", "-o", tmp_path / "no.mlir")[0] == 0
    assert "quantized   no, 0 of 1 operators" in cli("inspect", tmp_path / "no.mlir")[1]
    made = tmp_path / "made.tosa"
    assert cli("convert", models / "pad.tflite", made)[0] == 0
    assert json.loads(cli("inspect", made, "--json")[1])["quantization"] is None


def test_inspect_why(cli: Cli, model: Path) -> None:
    code, out, _ = cli("inspect", model, "--why")
    assert code == 0
    assert "qi8, i32 -> qi8" in out
    assert json.loads(cli("inspect", model, "--why", "--json")[1])["format"] == "tflq.report"


def test_inspect_why_says_why_a_listed_kernel_was_not_taken(cli: Cli, models: Path, tmp_path: Path) -> None:
    target = tmp_path / "npu.toml"
    target.write_text('[kernels]\nconv_2d = "qi8 qi8:0 qi32? -> qi8"\n')
    code, out, _ = cli("inspect", models / "cnn_int8.tflite", "--why", "--target", target)
    (line,) = [line for line in out.splitlines() if " CONV_2D " in line][:1]
    assert code == 0
    assert "is qi8/axis0, not qi8:0" in line
    assert "in the target 'npu': qi8 qi8:0 qi32? -> qi8" in line
    assert "no kernel" not in next(line for line in out.splitlines() if " ADD " in line)


def test_inspect_ir_is_text_that_opt_reads(cli: Cli, model: Path, tmp_path: Path) -> None:
    code, text, _ = cli("inspect", model, "--ir")
    assert code == 0
    assert "!quant.uniform<i8:f32, 0.05" in text
    path = tmp_path / "pad.mlir"
    path.write_text(text)
    code, again, err = cli("opt", path, "-p", "canonicalize, cse,dce")
    assert (code, err) == (0, "")
    assert "tfl.pad" in again


def test_inspect_forms_exclude_each_other(cli: Cli, model: Path) -> None:
    assert cli("inspect", model, "--ir", "--json")[0] == 2


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("moon", "there is no pass 'moon'; the passes are bind-shapes, by-rows, canonicalize"),
        ("cannonicalize", "there is no pass 'cannonicalize'; did you mean 'canonicalize'?"),
        ("", "the pipeline is empty"),
        ("cse{size=1}", "no option 'size=1'"),
        ("fold{limit=big}", "option 'limit' is a number, not 'big'"),
        ("cse;dce", "expected a pass at"),
    ],
)
def test_opt_with_a_wrong_pipeline(cli: Cli, tmp_path: Path, pipeline: str, message: str) -> None:
    path = tmp_path / "empty.mlir"
    path.write_text("module {}")
    code, _, err = cli("opt", path, "-p", pipeline)
    assert code == 2
    assert message in err


def test_opt_of_text_that_is_none(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "bad.mlir"
    path.write_text("func.func @f( {")
    code, _, err = cli("opt", path, "-p", "cse")
    assert code == 3
    assert "bad.mlir:1:" in err


def test_opt_of_a_model(cli: Cli, model: Path) -> None:
    code, out, _ = cli("opt", model, "-p", "cse")
    assert code == 0
    assert "tfl.pad" in out


def test_opt_writes_a_file(cli: Cli, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.mlir"
    assert cli("opt", model, "-p", "cse", "-o", path) == (0, "", "")
    assert path.read_text() == cli("opt", model, "-p", "cse")[1]
    before = model.read_bytes()
    assert cli("opt", model, "-o", path)[0] == 2
    assert cli("opt", model, "-o", model, "--force")[0] == 2
    assert model.read_bytes() == before
    assert cli("opt", model, "-o", path, "--force")[0] == 0


def test_opt_lists_the_passes(cli: Cli) -> None:
    code, out, _ = cli("opt", "--list-passes")
    assert code == 0
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert set(named_passes()) <= set(lines)
    assert "Merges identical pure ops" in lines["cse"]
    assert "semantics=interpreter|real" in lines["legalize"]
    assert "Checks that TOSA allows each operator" in lines["check-laws"]
    for python in ("int", "Literal", "Mapping", "Callable", "Sequence", "| None", "InvalidModelError for"):
        assert not re.search(rf"\b{python}\b", out) if python.isalpha() else python not in out


def test_a_custom_operator_in_the_way_of_tosa(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "custom.tflite"
    path.write_bytes(one_op("tfl.custom", [argument((4,), f32)], [argument((4,), f32, "y")], {"custom_code": "Mine"}))
    code, _, err = cli("convert", path, tmp_path / "out.tosa")
    assert code == 4
    assert "the custom operator 'Mine'; convert the part before it (--cut-before-custom)" in err


def test_opt_of_a_binary_file(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(bytes(range(256)))
    code, _, err = cli("opt", path, "-p", "cse")
    assert code == 3
    assert "not a TFLite model" in err


def test_a_bug_says_how_to_report_it(cli: Cli, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(tflq, "convert", broken, raising=False)
    code, _, err = cli("convert", model, model.with_name("out.tflite"))
    assert code == 70
    assert "Traceback" not in err
    path = Path(err.split("the file ")[1].strip().rstrip("."))
    assert "KeyError: 'x'" in path.read_text()
    path.unlink()


def test_inspect_for_model_explorer(cli: Cli, models: Path) -> None:
    code, out, _ = cli("inspect", models / "cnn_int8.tflite", "--format", "model-explorer", "--target", "kernels")
    assert code == 0
    assert [stage["label"] for stage in json.loads(out)] == ["before", "integer form", "after"]


def test_inspect_shows_what_it_can_of_a_model_that_is_refused(cli: Cli, tmp_path: Path) -> None:
    operands, results = [argument((4,), f32)], [argument((None,), f32, "y"), argument((4,), i32, "z")]
    path = tmp_path / "unique.tflite"
    path.write_bytes(one_op("tfl.unique", operands, results, {}))
    code, out, err = cli("inspect", path, "--format", "model-explorer", "--target", "tosa")
    assert (code, [stage["label"] for stage in json.loads(out)]) == (4, ["before"])
    assert "UNIQUE" in err
