"""README.md shows what the commands print, and its library example runs."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tflq.cli import main

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text()
COMMANDS = re.findall(r"^\$ tflq (.*)\n((?:[^$`].*\n|\n)*)", TEXT, re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run in, with the project's models."""
    shutil.copytree(ROOT / "models", tmp_path / "models")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def without_figures(text: str) -> list[str]:
    """The words of a text; sizes, times and counts change with the machine and the release."""
    return re.sub(r"[\d.]+|[KM]i(?=B)", "#", text).split()


@pytest.mark.usefixtures("folder")
def test_commands_print_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install tflq[verify]")
    pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install tflq[tosa]")
    assert len(COMMANDS) == 6
    for command, shown in COMMANDS:
        main.run(shlex.split(command))
        printed = capsys.readouterr()
        assert without_figures(printed.out + printed.err) == without_figures(shown), command


@pytest.mark.usefixtures("folder")
def test_the_library_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install tflq[verify]")
    example = TEXT.split("```python\n")[1].split("```")[0]
    exec(compile(example, "README.md", "exec"), {})  # noqa: S102
    expected = re.findall(r"^print\(.*\)  # (.*)$", example, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == expected
