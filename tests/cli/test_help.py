"""What `--help` and docs/cli.md say: it fits, it is current, and the examples run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from support.float_nets import net, samples

import tflq
from scripts.pages import cli as page_of_commands
from tflq.analysis.statistics import PointStatistics, Statistics, write_statistics
from tflq.base.files import resource
from tflq.cli import main
from tflq.cli.main import EXAMPLES, GROUPS

ROOT = Path(__file__).resolve().parents[2]
LINES = [(command, line) for command, examples in EXAMPLES.items() for _, line in examples]

GIVEN = (
    "models",
    "npu.toml",
    "samples.npz",
    *(f"{name}.tflite" for name in ("model", "float", "int8")),
    "first.json",
    "second.json",
)
BEFORE = {
    "tflq opt model.mlir -p lower-quant-ops,canonicalize": ["tflq opt model.tflite > model.mlir"],
    "tflq sweep models -o after --resume": ["tflq sweep models -o after"],
}
"""What has to be there for some of the examples."""


def test_every_command_is_in_one_group() -> None:
    assert set(EXAMPLES) == set(main.COMMANDS)
    assert set(BEFORE) <= {line for _, line in LINES}


@pytest.mark.parametrize("columns", [80, 160])
@pytest.mark.parametrize("command", [None, *main.COMMANDS])
def test_help_fits_and_ends_with_examples(
    command: str | None, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main.run([*([command] if command else []), "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    if command:
        assert lines[-1].strip() == EXAMPLES[command][-1][1]
        assert any(line.strip() == "Examples:" for line in lines)
    else:
        assert all(any(line.startswith(f"{title}:") for line in lines) for title in GROUPS)


def test_help_of_convert_is_short_and_help_all_has_all(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for flag in ("--help", "--help-all"):
        assert main.run(["convert", flag]) == 0
        lines = capsys.readouterr().out.partition("Examples:")[0].splitlines()
        shown[flag] = [line.split()[0] for line in lines if line.startswith("  -")]
    assert len(shown["--help"]) == 13
    assert "--help-all" in shown["--help"]
    command = main.group.get_command(click.Context(main.group), "convert")
    assert command is not None
    assert len(shown["--help-all"]) == len(command.get_params(click.Context(command))) - 1  # all but IN OUT


@pytest.mark.parametrize(("command", "line"), LINES)
def test_examples_have_options_that_the_help_shows(command: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = line[line.index("tflq") :].partition(" | ")[0].split()[1:]
    name = words[:2] if words[:2] == ["calibrate", "merge"] else [command]
    name += ["run"] if command in ("calibrate", "sweep") and len(name) == 1 else []
    assert main.run([*name, "--help"]) == 0
    options = re.findall(r"--?[a-z][a-z-]*", capsys.readouterr().out.partition("Examples:")[0])
    assert {word for word in words if word.startswith("-") and word != "-"} <= set(options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the examples name, and `tflq` on the path."""
    place = tmp_path_factory.mktemp("examples")
    (place / "models").mkdir()
    for name in ("pad", "split"):
        shutil.copy(ROOT / "models" / f"{name}.tflite", place / "models")
    shutil.copy(ROOT / "models" / "cnn_int8.tflite", place / "model.tflite")
    shutil.copy(resource("rules/npu_example.toml"), place / "npu.toml")
    (place / "float.tflite").write_bytes(tflq.write(net()))
    tflq.quantize(place / "float.tflite", place / "int8.tflite", scheme="weight-only")
    np.savez(place / "samples.npz", given=samples(4))
    points = {"x": PointStatistics(1, 0.0, 1.0)}
    for name in ("first", "second"):
        write_statistics(place / f"{name}.json", Statistics(points))
    (place / "bin").mkdir()
    program = place / "bin" / "tflq"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m tflq "$@"\n')
    program.chmod(0o755)
    assert main.run(["convert", str(place / "model.tflite"), str(place / "integer.tflite"), "-q"]) == 0
    return place


@pytest.mark.slow
@pytest.mark.parametrize(("command", "line"), LINES, ids=[line.removeprefix("tflq ") for _, line in LINES])
def test_examples_run(command: str, line: str, folder: Path, tmp_path: Path) -> None:
    if command in (*GROUPS["Check"], *GROUPS["Quantize"]):
        pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    for name in GIVEN + (("integer.tflite",) if command == "verify" else ()):
        (tmp_path / name).symlink_to(folder / name)
    environment = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    shell = ["bash", "-o", "pipefail", "-c", " && ".join([*BEFORE.get(line, ()), line])]
    done = subprocess.run(shell, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_page_is_current() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert text == page_of_commands.page(), "make it anew: scripts/make_docs.py cli"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("tflq in", ["inspect"]),
        ("tflq convert --fo", ["--format", "--form", "--force"]),
        ("tflq convert --mac f", ["float32"]),
        ("tflq convert --target k", ["kernels"]),
        ("tflq opt -p dce,canon", ["dce,canonicalize"]),
    ],
)
def test_completion(words: str, found: list[str]) -> None:
    count = str(len(words.split()) - 1)
    environment = {**os.environ, "_TFLQ_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": count}
    code = "from tflq.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"plain,{word}" for word in found]


def test_version_and_help_import_nothing_heavy() -> None:
    code = (
        "import sys; from tflq.cli import main\n"
        "for words in (['--version'], ['--help'], ['convert', '--help'], ['opt', '--help']): main.run(words)\n"
        "sys.exit([name for name in ('numpy', 'rich', 'tflq.ir') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() in ("", "[]")
