"""Models to compare as files: a path, a pipe, bytes, or a stream."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tflq.base.errors import FileError, InvalidModelError
from tflq.base.files import FilePath, check_link, reads_once
from tflq.formats.backend import opening
from tflq.formats.flatbuffer.source import open_source
from tflq.formats.flatbuffer.structure import check, folder_error
from tflq.formats.sources import on_disk
from tflq.tools.verify.inputs import Source


@contextmanager
def path_of(source: Source) -> Iterator[str]:
    """The path of a source; bytes become a temporary file."""
    if isinstance(source, (str, os.PathLike)):
        if Path(source).is_dir():
            raise folder_error(os.fspath(source))
        check_link(source)
        if not Path(source).exists():
            raise FileError(os.fspath(source), "there is no such file")
        if not reads_once(source):
            yield _whole(os.fspath(source), source)
            return
    with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
        if isinstance(source, (str, os.PathLike)):
            yield _whole(on_disk(source, folder), source)
            return
        path = Path(folder, "model")
        path.write_bytes(source if isinstance(source, (bytes, bytearray, memoryview)) else source.read())
        yield _whole(str(path), source)


def _whole(path: str, source: Source) -> str:
    """The path of a source that is a whole file, as far as its bytes say. InvalidModelError for another one."""
    format = opening(path)
    try:
        if format.interpreted:
            check(open_source(path)[0])
        elif format.name == "onnx" and find_spec("onnx"):
            onnx_model(path, data=False)
    except InvalidModelError as error:
        raise error.of_file(label_of(source)) from None
    return path


def onnx_model(path: FilePath, *, data: bool = True) -> Any:
    """An ONNX file as `onnx.ModelProto`. data: with constants that are in files beside it. InvalidModelError for what
    is no ONNX file; ImportError without the package `onnx`."""
    import onnx

    try:
        model = onnx.load(path, load_external_data=data)
        why = "" if model.HasField("graph") else "it has no graph"
    except Exception as error:
        if type(error).__name__ != "DecodeError":  # of protobuf, which comes with onnx
            raise
        why = str(error)
    if why:
        hint = "was it written, or downloaded, to the end?"
        raise InvalidModelError("", f"not an ONNX model: {why}", hint=hint)
    return model


def onnx_metadata(path: FilePath) -> dict[str, bytes]:
    """The metadata of an ONNX file."""
    rows = ((each.key, each.value) for each in onnx_model(path, data=False).metadata_props)
    return {str(key): value if isinstance(value, bytes) else value.encode() for key, value in rows}


def label_of(source: Source) -> str:
    """The name of a source in what is printed."""
    return (
        os.fspath(source) if isinstance(source, (str, os.PathLike)) else str(getattr(source, "name", "") or "<bytes>")
    )
