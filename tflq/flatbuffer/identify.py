"""Which schema's a file is: the identifier at byte 4."""

from __future__ import annotations

import os

from tflq.files import file_errors
from tflq.flatbuffer.layout import TFLITE, TOSA, Schema

__all__ = ["identify"]


def identify(source: str | os.PathLike[str] | bytes | bytearray | memoryview) -> Schema | None:
    """The schema whose identifier a file or its bytes have; None for anything else."""
    if isinstance(source, (str, os.PathLike)):
        if os.path.isdir(source):
            from tflq.flatbuffer.foreign import folder_error

            raise folder_error(os.fspath(source))
        with file_errors(source), open(source, "rb") as file:
            head = file.read(8)
    else:
        head = bytes(memoryview(source).cast("B")[:8])
    return next((schema for schema in (TFLITE, TOSA) if schema.identifier == head[4:]), None)
