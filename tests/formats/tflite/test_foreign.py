"""Files of other formats, given as models: called by their names."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import tflq
from tflq.cli import main

pytestmark = pytest.mark.usefixtures("forked")


def zipped(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return file.getvalue()


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
FILES = {
    "lfs.tflite": (LFS, "Git LFS pointer", "git lfs pull"),
    "annex.tflite": (b"/annex/objects/MD5E-s1--x.tflite\n", "git-annex pointer", "git annex get"),
    "notes.tflite": (b"Notes\n\nSome text.\n", "this is a text", "give a .tflite"),
    "page.tflite": (b"\n<!DOCTYPE html>\n<html></html>", "a web page", "download the file itself"),
    "model.keras": (zipped("config.json", "model.weights.h5"), "model of Keras", "from_keras_model"),
    "hands.task": (zipped("a.tflite", "b.tflite"), "holds 'a.tflite', 'b.tflite'", "unzip it"),
    "model.pt": (zipped("archive/data.pkl"), "model of PyTorch", "ai-edge-torch"),
    "any.zip": (zipped("readme"), "a zip archive", "unzip it"),
    "cut.zip": (zipped("readme")[:40], "damaged", "download it again"),
    "model.h5": (b"\x89HDF\r\n\x1a\n" + bytes(64), "HDF5", "from_keras_model"),
    "model.tar.gz": (b"\x1f\x8b\x08" + bytes(64), "compressed", "unpack it"),
    "net": (b"\x08\x07\x12\x07pytorch" + bytes(64), "an ONNX model", "onnx2tf"),
    "saved_model.pb": (b"\x08\x01\x12\x90" + bytes(64), "saved_model.pb", "from_saved_model"),
    "empty.tflite": (b"", "not a TFLite model: the file is empty", "to the end?"),
    "zeros.tflite": (bytes(64), "not a TFLite model: bytes 4 to 7", "to the end?"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_called_by_its_name(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, what, remedy = FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    assert main.run(["convert", str(path), str(tmp_path / "out.tflite")]) == 3
    error = capsys.readouterr().err
    assert error.startswith(f"tflq: {path}: ")
    assert what in error
    assert remedy in error
    with pytest.raises(tflq.InvalidModelError) as caught:
        tflq.read(content)
    assert what in caught.value.reason.what
    assert remedy in caught.value.reason.remedy


CALLS: dict[str, Callable[[Path], object]] = {
    "read": tflq.read,
    "convert": tflq.convert,
    "inspect": tflq.inspect,
    "reduce": tflq.reduce,
    "bisect": tflq.bisect,
    "verify": lambda path: tflq.verify(path, path),
}


@pytest.mark.parametrize("call", CALLS)
def test_by_every_call(call: str, tmp_path: Path) -> None:
    pointer, folder = tmp_path / "lfs.tflite", tmp_path / "saved"
    pointer.write_bytes(LFS)
    with pytest.raises(tflq.InvalidModelError, match=r"lfs\.tflite: this is a Git LFS pointer.*git lfs pull"):
        CALLS[call](pointer)
    folder.mkdir()
    with pytest.raises(tflq.FileError, match="this is a folder, not a model"):
        CALLS[call](folder)
    (folder / "saved_model.pb").touch()
    with pytest.raises(tflq.FileError, match=r"the folder of a SavedModel.*from_saved_model"):
        CALLS[call](folder)
