"""The text form on the command line: `tflq opt` prints the whole model, and every command reads it as one."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from support import corpus

import tflq
from tflq.cli import main
from tflq.formats.sources import Source, read_any_form
from tflq.ir.text.printer import print_module

OWN = sorted((Path(__file__).resolve().parents[2] / "models").glob("*.tflite"))
Q = "!quant.uniform<i8:f32, 0.5:3>"
GOOD = f"""func.func @main(%x: tensor<2x{Q}>) -> tensor<2x{Q}> {{
  %y = "tfl.add"(%x, %x) {{fused_activation_function = "NONE"}} : (tensor<2x{Q}>, tensor<2x{Q}>) -> tensor<2x{Q}>
  return %y : tensor<2x{Q}>
}}
"""


def opt(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> str:
    code = main.run(["opt", str(path), *options])
    printed = capsys.readouterr()
    assert (code, printed.err) == (0, "")
    return printed.out


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_what_opt_prints_is_the_model(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "x.mlir"
    text.write_text(opt(capsys, path))
    assert opt(capsys, text) == text.read_text()
    for name, source in (("of_text", text), ("of_file", path)):
        assert main.run(["convert", str(source), str(tmp_path / f"{name}.tflite"), "-q"]) == 0
    assert (tmp_path / "of_text.tflite").read_bytes() == (tmp_path / "of_file.tflite").read_bytes()


def test_that_of_tosa_too(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tosa, text = tmp_path / "x.tosa", tmp_path / "x.mlir"
    tflq.convert(models / "cnn_int8.tflite", tosa)
    text.write_text(opt(capsys, tosa))
    assert opt(capsys, text) == text.read_text()
    assert tflq.convert(text).data == tflq.convert(tosa).data


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder",
    [pytest.param(name, marks=corpus.needs_corpus) for name in ("zoo", "fresh", "ops", "ops_unsupported")],
)
def test_of_every_model_of_the_corpus(folder: str) -> None:
    """Text, model, text: the same; and the same bytes, be it written from the file or from the text."""
    paths = corpus.models(folder)
    assert paths
    for path in paths:
        try:
            module = tflq.read(path)
        except tflq.InvalidModelError:
            continue
        text = print_module(module)
        again = read_any_form(text.encode())
        assert print_module(again) == text, path
        assert tflq.write(again) == tflq.write(module), path


def test_passes(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, both = ["-p", "lower-quant-ops"], ["-p", "lower-quant-ops,canonicalize"]
    path = models / "split.tflite"
    text = tmp_path / "x.mlir"
    text.write_text(opt(capsys, path, *first))
    assert opt(capsys, text, "-p", "canonicalize") == opt(capsys, path, *both)


@pytest.mark.parametrize("source", ["path", "bytes", "stream", "no suffix"])
def test_hand_written_text_is_a_model(source: str, tmp_path: Path) -> None:
    path = tmp_path / ("x" if source == "no suffix" else "x.mlir")
    path.write_text(GOOD)
    others: dict[str, Source] = {"bytes": GOOD.encode(), "stream": io.BytesIO(GOOD.encode())}
    assert tflq.convert(others.get(source, path)).report.counts["integer"] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("(%x, %x)", "(%x)").replace(f"(tensor<2x{Q}>, tensor<2x{Q}>)", f"(tensor<2x{Q}>)"), "1 operand"),
        (GOOD.replace("tfl.add", "tfl.nonsense"), "does not declare this op"),
        (GOOD.replace("tfl.add", "quant.qcast"), "quant.qcast"),
        (GOOD.replace('"NONE"', '"NONSENSE"'), "NONSENSE"),
        (GOOD.replace("%x, %x", "%x, %z"), "z"),
        ("module {}", "no function with a body"),
        ("func.func private @f()", "no function with a body"),
        ("module \xff", "byte 7 belongs neither to a text nor to a model"),
    ],
)
def test_text_that_is_no_model(text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.mlir"
    path.write_bytes(text.encode("latin-1"))
    for command in (["convert", str(path), str(tmp_path / "out.tflite")], ["inspect", str(path)]):
        code = main.run(command)
        err = capsys.readouterr().err
        assert (code, err.startswith(f"tflq: {path}")) == (3, True), err
        assert message in err
    assert not (tmp_path / "out.tflite").exists()
