"""`-v`, `-q`, progress, and the library's logger."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tflq
from tflq.cli import main

STAGES = ("reading", "legalization", "selection of kernels", "writing")


def run(*arguments: object) -> int:
    return main.run([*map(str, arguments)])


def test_verbose_says_what_is_done(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    level = logging.getLogger("tflq").level
    assert run("convert", models / "pad.tflite", tmp_path / "a.tflite", "-v") == 0
    once = capsys.readouterr().err.splitlines()
    assert all(any(line.startswith(f"tflq: {stage}") for line in once) for stage in STAGES)
    assert run("convert", models / "pad.tflite", tmp_path / "b.tflite", "-vv") == 0
    twice = capsys.readouterr().err.splitlines()
    assert any(line.startswith("tflq: pass dce of ") for line in twice)
    assert not any(line.startswith("tflq: pass ") for line in once)
    assert run("convert", models / "pad.tflite", tmp_path / "c.tflite") == 0
    assert capsys.readouterr().err == ""
    assert logging.getLogger("tflq").level == level


@pytest.mark.parametrize("options", [(), ("-v",), ("-vv",)])
def test_a_warning_is_printed_once(
    options: tuple[str, ...], models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("convert", models / "mul_per_axis.tflite", tmp_path / "out.tflite", *options) == 0
    printed = capsys.readouterr()
    assert (printed.out + printed.err).count("reads one scale") == 1


def test_quiet_says_nothing_but_errors(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = models / "mul_per_axis.tflite", tmp_path / "out.tflite"
    assert run("convert", source, out, "-q") == 0
    assert capsys.readouterr() == ("", "")
    assert run("convert", source, out, "-q") == 2
    assert "exists already" in capsys.readouterr().err
    assert run("inspect", source, "--why", "-q") == 0
    assert "warning" not in capsys.readouterr().out


@pytest.mark.parametrize("command", list(main.COMMANDS))
def test_every_command_can_talk(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(
            command,
            *(["run"] if command in ("calibrate", "sweep") else []),
            "--help-all" if command == "convert" else "--help",
        )
        == 0
    )
    text = capsys.readouterr().out
    assert text.count("--verbose") == text.count("--quiet") == 1


def test_the_library_is_silent_until_it_is_asked(models: Path, caplog: pytest.LogCaptureFixture) -> None:
    code = "import sys, tflq; tflq.convert(sys.argv[1])"
    command = [sys.executable, "-c", code, str(models / "mul_per_axis.tflite")]
    assert subprocess.run(command, capture_output=True, check=True).stderr == b""
    with caplog.at_level(logging.INFO, "tflq"):
        tflq.convert(models / "mul_per_axis.tflite")
    assert [record.levelname for record in caplog.records if "reads one scale" in record.message] == ["WARNING"]
    assert any(record.message.startswith("legalization of ") for record in caplog.records)


@pytest.mark.slow
@pytest.mark.parametrize(("options", "shown"), [((), True), (("-q",), False), (("-v",), False), (("--json",), False)])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a pseudo-terminal")
def test_progress_is_for_terminals(options: tuple[str, ...], shown: bool, models: Path, tmp_path: Path) -> None:
    import pty

    master, slave = pty.openpty()
    arguments = ["convert", str(models / "cnn_int8.tflite"), str(tmp_path / "out.tflite"), *options]
    environment = {**os.environ, "TERM": "xterm"}
    subprocess.run(
        [sys.executable, "-m", "tflq", *arguments], stdout=subprocess.PIPE, stderr=slave, check=True, env=environment
    )
    os.write(slave, b"end")
    said = b""
    while not said.endswith(b"end"):
        said += os.read(master, 4096)
    os.close(master)
    os.close(slave)
    assert (b"converting" in said) == shown
