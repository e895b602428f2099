"""`-` as a model, pipes that close early, and signals: the command line as a process among others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest

import tflq

TFLQ = [sys.executable, "-m", "tflq"]

DURING_A_WRITE = """
import os, signal, sys
from tflq.cli import main
from tflq.conversion.convert import Conversion

def pieces():
    yield b"half"
    os.kill(os.getpid(), signal.{name})
    yield b"a file"

Conversion.files_of = lambda self, function, stem="": [("", pieces())]
main.main(["convert", *sys.argv[1:]])
"""


class Named(BytesIO):
    """Standard input, as locations in a TOSA file name it."""

    name = "<stdin>"


def tflq_run(*arguments: object, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*TFLQ, *map(str, arguments)], input=given, capture_output=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("format", ["tflite", "tosa", "mlir"])
def test_a_model_through_a_pipe_is_the_same_to_the_byte(format: str, models: Path) -> None:
    data = (models / "cnn_int8.tflite").read_bytes()
    done = tflq_run("convert", "-", "-", *(() if format == "tflite" else ("--format", format)), given=data)
    assert done.returncode == 0
    assert done.stdout == tflq.convert(Named(data), format=format).data
    summary = done.stderr.decode()
    assert summary.startswith("integer: 9 of 9 operators\nstandard input -> standard output in ")


@pytest.mark.slow
def test_only_one_side_a_pipe(models: Path, tmp_path: Path) -> None:
    source = models / "pad.tflite"
    assert tflq_run("convert", "-", tmp_path / "out.tflite", given=source.read_bytes()).returncode == 0
    done = tflq_run("convert", "-q", source, "-")
    assert (done.returncode, done.stdout, done.stderr) == (0, (tmp_path / "out.tflite").read_bytes(), b"")


@pytest.mark.slow
def test_commands_that_read_take_a_pipe(models: Path) -> None:
    data = (models / "pad.tflite").read_bytes()
    assert json.loads(tflq_run("inspect", "-", "--json", given=data).stdout)["source"] == "<stdin>"
    assert b"1 of 1 operator" in tflq_run("inspect", "-", "--why", given=data).stdout
    assert b"tfl.pad" in tflq_run("opt", "-", given=data).stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-", "--json"], "--json and OUT '-' both go to standard output"),
        (["-", "--format", "mlir"], "a file for each signature: classify, embed; --signature says which"),
        (["out.tflite", "--format", "tosa"], "another format than tosa"),
    ],
)
def test_what_makes_no_sense(arguments: list[str], message: str, models: Path) -> None:
    done = tflq_run("convert", models / "two_signatures.tflite", *arguments)
    assert done.returncode == 2
    assert message in (done.stdout + done.stderr).decode()


def test_no_model_in_the_pipe() -> None:
    done = tflq_run("convert", "-", "-")
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.startswith(b"tflq: <stdin>: ")


@pytest.mark.slow
def test_a_format_that_no_suffix_says(models: Path, tmp_path: Path) -> None:
    source = models / "pad.tflite"
    assert tflq_run("convert", source, tmp_path / "out", "--format", "tosa").returncode == 0
    assert (tmp_path / "out").read_bytes() == tflq.convert(source, format="tosa").data
    assert tflq_run("convert", source, "/dev/null", "--format", "tosa").returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["ops", "--operator", "conv_2d"],
        ["ops", "--operator", "conv_2d", "--json"],
        ["inspect", "{}", "--ir"],
        ["opt", "{}"],
        ["convert", "--help"],
        ["convert", "{}", "-"],
    ],
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_had_enough(arguments: list[str], unbuffered: str, models: Path) -> None:
    filled = [part.format(models / "cnn_int8.tflite") for part in arguments]
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    process = subprocess.Popen([*TFLQ, *filled], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), said) == (141, b"")


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130), ("SIGHUP", 129)])
def test_a_signal_leaves_no_half_file(name: str, code: int, models: Path, tmp_path: Path) -> None:
    if not hasattr(signal, name):
        pytest.skip(f"no {name} here")
    out = tmp_path / "out.tflite"
    out.write_bytes(b"precious")
    command = [sys.executable, "-c", DURING_A_WRITE.format(name=name), str(models / "pad.tflite"), str(out), "--force"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == code
    assert done.stderr.strip().startswith(b"tflq: ")
    assert b"Traceback" not in done.stderr
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("out.tflite", b"precious")]


def test_a_link_is_written_through(models: Path, tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "out.tflite").symlink_to(tmp_path / "real")
    assert tflq_run("convert", models / "pad.tflite", tmp_path / "out.tflite", "--force").returncode == 0
    assert (tmp_path / "out.tflite").is_symlink()
    assert (tmp_path / "real").read_bytes() == tflq.convert(models / "pad.tflite").data
