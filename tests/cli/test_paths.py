"""Paths of all kinds: names that are not UTF-8, pipes, `/dev/stdin`, links to themselves, suffixes in capitals."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.float_nets import net, samples

import tflq
from tflq.base.files import replace_file, text_bytes
from tflq.cli import main
from tflq.formats import sources
from tflq.tools.verify.sources import label_of

BYTES = b"n\xffme"
TFLQ = [sys.executable, "-m", "tflq"]


def tflq_run(*arguments: object, cwd: Path, data: bytes = b"") -> subprocess.CompletedProcess[str]:
    command = [*TFLQ, *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, input=data, capture_output=True, check=False, timeout=300)
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def odd(tmp_path: Path) -> str:
    """A name that is not UTF-8."""
    name = os.fsdecode(BYTES)
    try:
        (tmp_path / name).touch()
    except OSError:
        pytest.skip("the file system wants names in UTF-8")
    (tmp_path / name).unlink()
    return name


@pytest.mark.slow
def test_a_sweep_of_a_name_that_is_not_utf8(odd: str, models: Path, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs an interpreter")
    (tmp_path / "models").mkdir()
    shutil.copy(models / "pad.tflite", tmp_path / "models" / f"{odd}.tflite")
    line = ["sweep", "models", "-o", "swept", "--seeds", "0", "--no-xnnpack", "--shard", "1/1"]
    done = tflq_run(*line, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    swept = tmp_path / "swept"
    assert json.loads((swept / "results.jsonl").read_text())["id"] == f"models/{odd}"
    for name in ("index.html", "junit.xml", "baseline.json"):
        assert r"n\udcffme" in (swept / name).read_text("utf-8")
    assert tflq_run("sweep", "page", "swept", cwd=tmp_path).returncode == 0
    assert tflq_run("sweep", "diff", "swept", "swept/baseline.json", cwd=tmp_path).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["tflite", "tosa", "onnx"])
def test_verify_of_a_name_that_is_not_utf8(suffix: str, odd: str, models: Path, tmp_path: Path) -> None:
    package = {"tflite": "jinja2", "tosa": "tosa_reference_model", "onnx": "onnxruntime"}[suffix]
    for name in ("ai_edge_litert", package):
        pytest.importorskip(name, reason=f"needs {name}")
    a, b = f"{odd}.tflite", f"{odd}2.{suffix}"
    shutil.copy(models / "pad.tflite", tmp_path / a)
    done = tflq_run("convert", a, b, "--report", f"{odd}.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    more = ["--layers", "--html", f"{odd}.html"] if suffix == "tflite" else []
    done = tflq_run("verify", a, b, "--report", f"{odd}.json", "--json", *more, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["a"] == a
    if more:
        assert r"n\udcffme" in (tmp_path / f"{odd}.html").read_text("utf-8")


def test_a_byte_that_is_not_utf8_is_written_as_in_json(tmp_path: Path) -> None:
    name = os.fsdecode(BYTES)
    assert text_bytes(name).decode() == json.dumps(name)[1:-1] == r"n\udcffme"
    assert text_bytes("é") == "é".encode()


def piped(data: bytes) -> int:
    """The descriptor of a pipe that gives the data, once: `<(...)` of a shell is `/dev/fd/N`."""
    source, sink = os.pipe()
    os.write(sink, data)
    os.close(sink)
    return source


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="has no /dev/fd")
@pytest.mark.parametrize(
    "line",
    [
        "convert {} out.tflite",
        "convert {} {} -o out --workers 2",
        "inspect {} --why",
        "opt {}",
        "verify {} {}",
        "verify {} {} --layers --html out.html",
        "reduce {}",
        "bisect {}",
        "quantize {} out.tflite --calibration samples.npz",
        "calibrate {} samples.npz -o out.json",
        "debug {} {} samples.npz",
        "sweep {} -o out --seeds 0 --no-xnnpack --target integer --target kernels",
    ],
)
@pytest.mark.usefixtures("forked")
def test_a_pipe_is_read_whole_and_once(
    line: str, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if line.split()[0] not in ("convert", "inspect", "opt"):
        pytest.importorskip("ai_edge_litert", reason="needs an interpreter")
    floats = "samples" in line
    data = tflq.write(net()) if floats else (models / "pad.tflite").read_bytes()
    np.savez(tmp_path / "samples.npz", given=samples(2))
    monkeypatch.chdir(tmp_path)
    fds = tuple(piped(data) for _ in range(line.count("{}")))
    try:
        code = main.run(line.format(*(f"/dev/fd/{fd}" for fd in fds)).split())
    finally:
        for fd in fds:
            os.close(fd)
    assert code == 0, capsys.readouterr()


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="has no /dev/zero")
@pytest.mark.parametrize("line", ["convert {} out.tflite", "opt {}", "verify {} {}", "calibrate {} x.npz -o x.json"])
def test_a_stream_without_end_that_is_no_model_is_refused_at_once(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("x.npz", given=samples(2))
    monkeypatch.setattr(sources, "_MOST_OF_STREAM", 1 << 22)
    assert main.run(line.format("/dev/zero", "/dev/zero").split()) == 3
    assert (
        "/dev/zero: not a model: bytes 4 to 7 are b'\\x00\\x00\\x00\\x00', and it is no text" in capsys.readouterr().err
    )


def test_a_stream_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_MOST_OF_STREAM", 1 << 20)
    with pytest.raises(tflq.FileError, match="pipe: there is more than 2 GiB to read, and it is not a file; write it"):
        sources.read_stream(io.BytesIO(b"//" + b" " * (1 << 21)), "pipe")
    with pytest.raises(tflq.InvalidModelError, match="pipe: this is an HDF5 file"):
        sources.read_stream(io.BytesIO(b"\x89HDF\r\n\x1a\n" + bytes(1 << 21)), "pipe")


def test_verify_names_a_pipe_as_the_user_does() -> None:
    assert label_of(Path("/dev/fd/62")) == "/dev/fd/62"


@pytest.mark.slow
def test_standard_input_by_its_path(models: Path, tmp_path: Path) -> None:
    """As a pipe, and as a file, whose path is of no use to a process that verify starts."""
    pytest.importorskip("ai_edge_litert", reason="needs an interpreter")
    source = models / "pad.tflite"
    assert tflq_run("verify", source, "/dev/stdin", cwd=tmp_path, data=source.read_bytes()).returncode == 0
    with source.open("rb") as file:
        command = [*TFLQ, "verify", "/dev/stdin", str(source)]
        assert subprocess.run(command, stdin=file, capture_output=True, check=False).returncode == 0


def test_a_link_to_itself_is_called_that(tmp_path: Path, models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop, model = tmp_path / "loop.tflite", str(models / "pad.tflite")
    loop.symlink_to(loop)
    lines = (
        ["inspect", str(loop)],
        ["convert", model, str(loop)],
        ["convert", model, str(tmp_path / "x.tflite"), "--rules", str(loop)],
        ["verify", model, str(loop)],
        ["verify", model, model, "--inputs", str(loop)],
        ["sweep", str(loop), "-o", str(tmp_path / "swept")],
    )
    for line in lines:
        assert main.run(line) == 2
        assert f"{loop}: this is a link that leads back to itself" in capsys.readouterr().err
    with pytest.raises(tflq.FileError, match="leads back to itself"):
        tflq.read(loop)
    with pytest.raises(tflq.FileError, match="leads back to itself"):
        replace_file(loop, [b""])


@pytest.mark.slow
def test_a_suffix_in_capitals_is_seen_in_a_folder(models: Path, tmp_path: Path) -> None:
    from tflq.tools.sweep.manifest import find_models

    folder = tmp_path / "folder [1]"
    folder.mkdir()
    shutil.copy(models / "pad.tflite", folder / "PAD.TFLITE")
    shutil.copy(models / "split.tflite", folder / "split.tfLite")
    os.mkfifo(folder / "pipe.tflite")
    assert main.run(["convert", str(folder), "-o", str(tmp_path / "out")]) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["PAD.tflite", "split.tflite"]
    assert [model.id for model in find_models([folder])] == ["folder [1]/PAD", "folder [1]/split"]


@pytest.mark.parametrize("kind", [str, Path])
def test_a_copy_outlives_its_file(kind: type, models: Path, tmp_path: Path) -> None:
    """A view of a mapped file would end the process where the file was truncated."""
    path = tmp_path / "model.tflite"
    shutil.copy(models / "cnn_int8.tflite", path)
    module = tflq.read(kind(path), copy=True)
    path.write_bytes(b"")
    assert tflq.write(module) == tflq.write(tflq.read(models / "cnn_int8.tflite"))
    assert module.source == str(path)
