"""What no model could be converted with is said before any is: in one line, and nothing is written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tflq.cli.main import run

Said = Callable[..., str]
TOSA_ALONE = "a .tosa file has no use for it; leave it out, or sweep the targets that take it on their own"


@pytest.fixture
def said(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Said:
    """Runs a sweep that must not start; what it says, in one line."""
    manifests = {source: tmp_path / f"{source}.toml" for source in ("kaggle", "manifest")}
    manifests["kaggle"].write_text('[[model]]\nkaggle = "a/b/tfLite/c/1"\nfile = "*"\n')
    manifests["manifest"].write_text('[[model]]\npath = "x.tflite"\ntargets = ["tsa"]\n')
    (tmp_path / "x.tflite").write_bytes((models / "pad.tflite").read_bytes())

    def one(*options: str, source: str = "models") -> str:
        place = str(manifests.get(source, models))
        assert run(["sweep", place, "-o", str(tmp_path / "out"), "--no-cache", *options]) == 2
        assert not (tmp_path / "out").exists()
        shown = capsys.readouterr()
        assert not shown.out
        assert shown.err.count("\n") == 1
        return shown.err

    return one


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target", "integr"], "target 'integr' is not known"),
        (["--target", "integer", "--target", "nope.toml"], "nope.toml: No such file"),
        (
            ["--target", "integer", "--target", "tosa", "--mac", "float32"],
            f"target tosa: mac 'float32' is for TFLite files; {TOSA_ALONE}",
        ),
        (["--target", "tosa", "--state", "kept"], "target tosa: state 'kept' is for TFLite files"),
    ],
)
def test_targets_and_options(said: Said, options: list[str], words: str) -> None:
    assert words in said(*options)


def test_a_target_of_a_manifest(said: Said) -> None:
    assert "target 'tsa' is not known" in said("--only", "x", source="manifest")


def test_a_file_without_rules(said: Said, tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text("print\n")
    assert "EXTENSION" in said("--rules", str(tmp_path / "rules.py"))


NOT_THERE = [
    ("models", "ai_edge_litert tensorflow", "", "ai-edge-litert (to run models), which is not installed"),
    ("models", "jinja2", "", "jinja2 (to write its page), which is not installed; pip install '.[verify]'"),
    ("models", "jinja2 tosa_reference_model", "--target tosa", "are not installed; pip install '.[tosa,verify]'"),
    ("kaggle", "kagglehub", "--only a/b", "kagglehub (to fetch models from Kaggle), which is not installed"),
    ("models", "distributed", "--scheduler tcp://127.0.0.1:1", "pip install '.[dask]' in a checkout"),
]


@pytest.mark.parametrize(("source", "modules", "options", "words"), NOT_THERE)
def test_packages(
    said: Said, source: str, modules: str, options: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in modules.split():
        monkeypatch.setitem(sys.modules, module, None)
    assert words in said(*options.split(), source=source)


def test_a_scheduler_that_does_not_answer(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="needs dask: pip install '.[dask]' in a checkout")

    def nobody(*_: object, **__: object) -> None:
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", nobody)
    assert "no Dask scheduler answers at tcp://127.0.0.1:1: timed out; start one" in said(
        "--scheduler", "tcp://127.0.0.1:1"
    )
