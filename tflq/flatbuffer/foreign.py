"""Files of other formats that are given as models: what they are, and how to get a model of them."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Sequence
from typing import Final

from tflq.errors import FileError, InvalidModelError

__all__ = ["folder_error", "foreign_error", "refuse_foreign"]

_HEAD: Final = 4096
_CONVERTER: Final = "tf.lite.TFLiteConverter.from_{}"
_FETCH: Final = "fetch the file itself: git lfs pull, or download the raw file"
_MAGICS: Final[Sequence[tuple[bytes, str, str]]] = (
    (b"version https://git-lfs", "this is a Git LFS pointer, not the model that it stands for", _FETCH),
    (b"/annex/objects/", "this is a git-annex pointer, not the model that it stands for", "git annex get FILE"),
    (
        b"\x89HDF\r\n\x1a\n",
        "this is an HDF5 file, such as Keras writes (.h5), not a TFLite model",
        f"load it in Keras and convert it with {_CONVERTER.format('keras_model')}",
    ),
    (b"\x1f\x8b", "this is compressed (gzip), not a TFLite model", "unpack it, and give the .tflite file in it"),
    (b"GGUF", "this is a GGUF file, not a TFLite model", "give a .tflite file"),
    (b"LITERTLM", "this is a LiteRT-LM bundle, not a TFLite model", "give a .tflite file of it"),
    (
        b"\x08\x01\x12",
        "this is TensorFlow's saved_model.pb, not a TFLite model",
        f"convert its folder with {_CONVERTER.format('saved_model')}",
    ),
)
_ONNX: Final = (
    "this is an ONNX model, not a TFLite model",
    "convert it to TFLite first, for instance with onnx2tf (quantized: its option -oiqt)",
)
_ZIP: Final = b"PK\x03\x04"


def foreign_error(data: bytes | memoryview, path: str = "") -> InvalidModelError | None:
    """The error for a file of a format that is known and none of ours; None for anything else."""
    found = _named(bytes(data[:_HEAD]), data)
    return None if found is None else InvalidModelError("", found[0], hint=found[1], path=path)


def refuse_foreign(path: str | os.PathLike[str]) -> None:
    """InvalidModelError for a file of a format that is known and none of ours."""
    with open(path, "rb") as file:
        head = file.read(_HEAD)
        if head[4:8] in (b"TFL3", b"TOSA"):
            return
        data = head + file.read() if head.startswith(_ZIP) else head
    if (error := foreign_error(data, os.fspath(path))) is not None:
        raise error


def folder_error(path: str) -> FileError:
    """The error for a folder that is given as a model."""
    if os.path.exists(os.path.join(path, "saved_model.pb")):
        what = "this is the folder of a SavedModel, not a TFLite model"
        return FileError(path, what, remedy=f"convert it with {_CONVERTER.format('saved_model')}")
    return FileError(path, "this is a folder, not a model", remedy="name a file in it")


def _named(head: bytes, data: bytes | memoryview) -> tuple[str, str] | None:
    """What a file is, and what to do with it."""
    if head.startswith(_ZIP):
        return _of_zip(data)
    for magic, what, remedy in _MAGICS:
        if head.startswith(magic):
            return what, remedy
    if len(head) > 2 and head[0] == 8 and 3 <= head[1] <= 20 and head[2:3] in b"\x12\x1a:":
        return _ONNX
    start = head.lstrip()[:15].lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "this is a web page, not a model: a download that went wrong", "download the file itself"
    if len(head) >= 8 and _is_text(head):
        return "this is a text, and none that tflq reads", "give a .tflite or .tosa file, or what tflq opt prints"
    return None


def _is_text(head: bytes) -> bool:
    """Whether bytes are UTF-8 without control characters, but for a character cut off at the end."""
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3 or len(head) < _HEAD:
            return False
        text = head[: error.start].decode()
    return all(character >= " " or character in "\t\r\n" for character in text)


def _of_zip(data: bytes | memoryview) -> tuple[str, str]:
    """What an archive holds."""
    try:
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    except zipfile.BadZipFile:
        return "this is a zip archive that is damaged, not a TFLite model", "download it again"
    if "model.weights.h5" in names:
        what = "this is a model of Keras (.keras), not a TFLite model"
        return what, f"load it in Keras and convert it with {_CONVERTER.format('keras_model')}"
    if any(name.endswith("data.pkl") for name in names):
        return "this is a model of PyTorch, not a TFLite model", "convert it with ai-edge-torch"
    models = [name for name in names if name.lower().endswith((".tflite", "_tflite"))]
    if models:
        held = ", ".join(f"'{name}'" for name in models[:4]) + (", ..." if len(models) > 4 else "")
        return f"this is a zip archive or a .task bundle that holds {held}", "unzip it, and give one of these"
    return "this is a zip archive, not a TFLite model", "unzip it, and give the .tflite file in it, if there is one"
