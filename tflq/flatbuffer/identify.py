"""What a file is: by which schema it is read, what it is if by none, and the archive that may follow a model."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Sequence
from typing import Final

import numpy as np

from tflq.errors import FileError, InvalidModelError
from tflq.files import file_errors
from tflq.flatbuffer.layout import TFLITE, TOSA, Schema
from tflq.light import dataclass


def identify(source: str | os.PathLike[str] | bytes | bytearray | memoryview) -> Schema | None:
    """The schema whose identifier a file or its bytes have at byte 4, else None."""
    if isinstance(source, (str, os.PathLike)):
        if os.path.isdir(source):
            raise folder_error(os.fspath(source))
        with file_errors(source), open(source, "rb") as file:
            head = file.read(8)
    else:
        head = bytes(memoryview(source).cast("B")[:8])
    return next((schema for schema in (TFLITE, TOSA) if schema.identifier == head[4:]), None)


# Files of other formats: what they are, and how to get a model from them.

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
    """The error for a file of another format, if that is a known one."""
    named = _named(bytes(data[:_HEAD]), data)
    return None if named is None else InvalidModelError("", named[0], hint=named[1], path=path)


def refuse_foreign(path: str | os.PathLike[str]) -> None:
    """InvalidModelError for a file of another format, if that is a known one."""
    with open(path, "rb") as file:
        head = file.read(_HEAD)
        if head[4:8] in (b"TFL3", b"TOSA"):
            return
        data = head + file.read() if head.startswith(_ZIP) else head
    if (error := foreign_error(data, os.fspath(path))) is not None:
        raise error


def folder_error(path: str) -> FileError:
    """The error for a folder in the place of a model."""
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
        return "this is a text, but not one that tflq reads", "give a .tflite or .tosa file, or what tflq opt prints"
    return None


def _is_text(head: bytes) -> bool:
    """Whether bytes are UTF-8 without control characters; the last character may be cut off."""
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3 or len(head) < _HEAD:
            return False
        text = head[: error.start].decode()
    return all(character >= " " or character in "\t\r\n" for character in text)


def _of_zip(data: bytes | memoryview) -> tuple[str, str]:
    """What an archive holds."""
    import zipfile

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


# The zip archive that may follow a model: the files that its metadata names, such as labels. TFLite's metadata tools
# append it to the model and count its offsets from the start of the whole file, so they change with the length of the
# model. Source: the ZIP format, APPNOTE 4.3.12 (central directory header) and 4.3.16 (end of central directory record).

_END = struct.Struct("<4s4H2IH")  # signature, disks, entries, size and offset of the directory, comment length
_ENTRY = struct.Struct("<4s24x3H8xI")  # signature, lengths of name, extra field and comment, offset of the local header
_LONGEST_COMMENT = 65535


@dataclass(frozen=True, eq=False)
class Archive:
    """An archive: its bytes, and where they began in the file. `entries` and `end` are places in its bytes."""

    data: np.ndarray
    start: int
    entries: tuple[int, ...]
    end: int


def find_archive(data: memoryview) -> Archive | None:
    """The archive at the end of a file, if there is one, with offsets that count from the start of the file."""
    first = max(0, len(data) - _LONGEST_COMMENT - _END.size)
    at = first + bytes(data[first:]).rfind(b"PK\5\6")
    if at < first or at + _END.size > len(data):
        return None
    *_, size, offset, comment = _END.unpack_from(data, at)
    if at + _END.size + comment != len(data) or offset + size != at:
        return None
    entries, start, place = [], offset, offset
    while place < at:
        signature, name, extra, note, local = (
            _ENTRY.unpack_from(data, place) if place + _ENTRY.size <= at else (b"",) * 5
        )
        if signature != b"PK\1\2" or local >= offset:
            return None
        entries.append(place)
        start = min(start, local)
        place += _ENTRY.size + name + extra + note
    return Archive(np.frombuffer(data, np.uint8)[start:], start, tuple(p - start for p in entries), at - start)


def place_archive(archive: Archive, start: int) -> bytes:
    """The archive's bytes for a file in which it begins at `start`."""
    out = bytearray(archive.data)
    shift = start - archive.start
    for at in [entry + _ENTRY.size - 4 for entry in archive.entries] + [archive.end + 16]:
        struct.pack_into("<I", out, at, struct.unpack_from("<I", out, at)[0] + shift)
    return bytes(out)
