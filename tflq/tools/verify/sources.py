"""Models to compare as files: a path, a pipe, bytes, or a stream."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tflq.base.errors import FileError
from tflq.base.files import check_link, reads_once
from tflq.formats.backend import opening
from tflq.formats.flatbuffer.structure import folder_error, refuse_foreign
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
            if opening(os.fspath(source)).interpreted:
                refuse_foreign(source)
            yield os.fspath(source)
            return
    with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
        if isinstance(source, (str, os.PathLike)):
            yield on_disk(source, folder)
            return
        path = Path(folder, "model")
        path.write_bytes(source if isinstance(source, (bytes, bytearray, memoryview)) else source.read())
        yield str(path)


def label_of(source: Source) -> str:
    """The name of a source in what is printed."""
    return (
        os.fspath(source) if isinstance(source, (str, os.PathLike)) else str(getattr(source, "name", "") or "<bytes>")
    )
