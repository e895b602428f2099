"""What the command line shows of passes: `--dump-ir`, `--timings`, and each step by its name in `opt`."""

from __future__ import annotations

import ast
import json
from inspect import signature
from itertools import pairwise
from pathlib import Path

import pytest

import tflq
from tflq.cli import main
from tflq.formats.tflite.writer import write
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.tools.opt import READERS, named_passes, parse_pipeline
from tflq.transforms.pass_manager import Pipeline


def pipeline(text: str) -> Pipeline:
    return parse_pipeline(text, named_passes())


def in_text(conversion: tflq.Conversion, options: dict[str, str]) -> str:
    """The steps of a conversion as `opt` takes them. docs/tour.md lists those of this model."""
    names = (row.name for row in conversion.timings)
    return ",".join(f"{name}{{{options[name]}}}" if options.get(name) else name for name in names)


@pytest.mark.parametrize("target", ["", "target=kernels"])
def test_the_steps_by_name_are_a_conversion(models: Path, target: str) -> None:
    options = {
        "legalize": target,
        "check-legality": target,
        "tabulate": "worth=kernels",
        "split-rows": "least=16777216",
    }
    conversion = tflq.convert(models / "cnn_int8.tflite", target="kernels" if target else None)
    module = pipeline(in_text(conversion, options)).run(tflq.read(models / "cnn_int8.tflite")).module
    assert bytes(write(module)) == conversion.data


def test_tosa_by_name(models: Path) -> None:
    conversion = tflq.convert(models / "cnn_int8.tflite", format="mlir")
    text = in_text(conversion, {"tabulate": "worth=tosa"})
    module = pipeline(text).run(tflq.read(models / "cnn_int8.tflite")).module
    assert print_module(module) == print_module(conversion.module)


def names_in_the_source() -> set[str]:
    """The names of all passes that tflq defines, in whichever module."""
    texts = [path.read_text() for path in Path(tflq.__file__).parent.rglob("*.py")]
    trees = [ast.parse(text) for text in texts if "name: ClassVar" in text]
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    kinds, size = {"Pass"}, 0
    while size < len(kinds):
        size = len(kinds)
        kinds |= {c.name for c in classes if any(isinstance(base, ast.Name) and base.id in kinds for base in c.bases)}
    lines = [line for c in classes if c.name in kinds for line in c.body if isinstance(line, ast.AnnAssign)]
    return {ast.literal_eval(line.value) for line in lines if line.value and ast.unparse(line.target) == "name"}


@pytest.mark.slow
def test_every_module_with_passes_is_listed() -> None:
    names = names_in_the_source()
    assert len(names) > 30
    assert sorted(names - named_passes().keys()) == []


def test_every_step_has_a_name_of_its_own() -> None:
    passes = named_passes()
    assert all(name == kind.name for name, kind in passes.items())
    known = {f"{name}.{option}" for name, kind in passes.items() for option in signature(kind).parameters}
    assert known >= READERS.keys()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("select", "takes the integer form, but the module is not in it"),
        ("legalize,legalize", "takes the tfl form, but gets the integer form"),
        ("legalize{state=gone}", "one of kept, variables, lowered, not 'gone'"),
        ("legalize{target=moon}", "target 'moon' is not known"),
        ("tabulate", "needs its option 'worth='"),
        ("tabulate{worth=all}", "kernels or tosa"),
        ("bind-shapes{shapes=x}", "not the shape of an input"),
        ("bind-shapes{batch=many}", "is a number"),
    ],
)
def test_wrong_steps(models: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["opt", str(models / "pad.tflite"), "-p", text]) == 2
    assert message in capsys.readouterr().err


def test_options_of_steps() -> None:
    steps = pipeline("bind-shapes{batch=2 shapes=x:1x2;y:},cut{tensors=a;b},select{mac=float32}").passes
    kinds = named_passes()
    assert vars(steps[0]) == vars(kinds["bind-shapes"](2, {"x": (1, 2), "y": ()}))  # type: ignore[call-arg]
    assert vars(steps[1]) == vars(kinds["cut"](("a", "b")))  # type: ignore[call-arg]
    assert vars(steps[2]) == vars(kinds["select"]("float32"))  # type: ignore[call-arg]


def test_dump(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = tmp_path / "passes", tmp_path / "out.tflite"
    command = ["convert", str(models / "cnn_int8.tflite"), str(out), "--dump-ir", str(folder)]
    assert main.run(command) == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names[:2] == ["00-read.mlir", "05-legalize.mlir"]
    assert print_module(parse_module((folder / names[0]).read_text())) == (folder / names[0]).read_text()
    last = parse_module((folder / names[-1]).read_text())
    assert [op.name for op in last.ops()] == [op.name for op in tflq.read(out).ops()]
    for before, after in pairwise(names):
        assert (folder / before).read_bytes() != (folder / after).read_bytes()
    (folder / "99-old.mlir").touch()
    out.unlink()
    capsys.readouterr()
    assert main.run(command) == 2
    assert "it exists already" in capsys.readouterr().err
    assert not out.exists()
    assert main.run([*command, "--force"]) == 0
    assert sorted(path.name for path in folder.iterdir()) == names


def test_timings(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["convert", str(models / "cnn_int8.tflite"), str(tmp_path / "out.tflite"), "--force"]
    assert main.run([*command, "--timings"]) == 0
    table = capsys.readouterr().out.partition("pass  ")[2].splitlines()
    assert [line.split()[0] for line in table[5:7]] == ["legalize", "canonicalize"]
    assert table[-1].split()[0] == "total"
    assert main.run([*command, "--timings", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["timings"]
    assert rows[4]["name"] == "legalize"
    assert rows[4]["modified"]
    assert rows[4]["ms"] > 0
    assert rows[4]["ops_before"] == 9
    assert rows[4]["ops_after"] == rows[5]["ops_before"] > 9
    assert main.run([*command, "--json"]) == 0
    assert "timings" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("option", [["--timings"], ["--dump-ir", "passes"]])
def test_of_one_model(models: Path, tmp_path: Path, option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["convert", str(models / "pad.tflite"), "-o", str(tmp_path), *option]) == 2
    assert "for one model" in capsys.readouterr().err
