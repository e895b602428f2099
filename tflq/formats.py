"""The formats of model files: TFLite flatbuffers, TOSA flatbuffers and MLIR text of TOSA; the text form of a module is
read, too."""

from __future__ import annotations

import io
import os
from typing import IO, TypeAlias

from tflq.arguments import check_source, not_expected
from tflq.backends import backend, named_by
from tflq.dialects.forms import CORE
from tflq.errors import OptionError, Reason
from tflq.files import replace_file
from tflq.flatbuffer import reader
from tflq.flatbuffer.identify import identify
from tflq.flatbuffer.layout import TOSA
from tflq.ir.core import Module
from tflq.text_form import check_form, is_text, read_text

__all__ = ["Source", "held", "is_tosa", "read", "read_any_form", "size_of", "write"]

_NOT_OF_TOSA = ("tfl.", "ext.", "quant.", *(f"{name}." for name in CORE))
Source: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]


def read(source: Source) -> Module:
    """Read a TFLite file, a TOSA file or the text form of a module.

    A TFLite file becomes the tfl form, with one op for each operator. A TOSA file becomes the tosa form, in which
    operands that are constant at compile time are attributes. A text is in one of the two.

    Args:
        source: A path, bytes or a binary file object.

    Returns:
        The module.

    Raises:
        InvalidModelError: The source is not a valid model.
        UnsupportedError: A TOSA file holds something that the form cannot express; the error names it.
        FileError: The source cannot be read.

    Example:
        ```python
        module = tflq.read("model.tflite")
        print([op.name for op in module.ops()])
        ```
    """
    module, text = _read(source)
    if text is not None:
        module.source = module.source or text
        if is_tosa(module):
            from tflq.tosa.files.from_text import to_tosa_form

            to_tosa_form(module)
        elif any(op.name.startswith("tosa.") for op in module.ops()):
            from tflq.tosa.files.from_text import with_attributes

            with_attributes(module)
        check_form(module, "tosa" if is_tosa(module) else "tfl", text)
    return module


def read_any_form(source: Source) -> Module:
    """As `read`; a text may be in any form, such as the integer form."""
    return _read(source)[0]


def _read(source: Source) -> tuple[Module, str | None]:
    """The module, and what messages call the text that it came as, if it did."""
    source = held(source)
    given = source.data if isinstance(source, _Named) else source
    schema = identify(given)
    if schema is TOSA:
        from tflq.tosa.files.read import read_tosa

        return read_tosa(source), None
    if schema is None and is_text(given):
        name = source.name if isinstance(source, _Named) else ""
        name = os.fspath(given) if isinstance(given, (str, os.PathLike)) else name
        return read_text(given, name), name
    return reader.read(source), None


def held(source: Source) -> str | os.PathLike[str] | bytes | bytearray | memoryview | _Named:
    """A source that can be read again: of a file object what it holds, under its name."""
    if isinstance(source, _Named):
        source.seek(0)
        return source
    if isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview)):
        return source
    check_source("source", source)
    name, data = str(getattr(source, "name", "")), source.read()
    if not isinstance(data, (bytes, bytearray)):
        raise not_expected("source", source, "a file opened for reading bytes", remedy="open(path, 'rb')")
    return _Named(data, name) if name else data


def size_of(source: Source) -> int:
    """Bytes of a source that is `held`."""
    if isinstance(source, (str, os.PathLike)):
        return os.stat(source).st_size
    return memoryview(source.data if isinstance(source, _Named) else source).nbytes  # type: ignore[arg-type]


class _Named(io.BytesIO):
    """Bytes of a file object that has been read, under its name."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.data = data
        self.name = name


def is_tosa(module: Module) -> bool:
    """Whether a module is in the tosa form, as files of TOSA are read."""
    return any(op.name.startswith("tosa.") for op in module.ops()) and not any(
        op.name.startswith(_NOT_OF_TOSA) for op in module.ops()
    )


def write(module: Module, destination: str | os.PathLike[str] | None = None) -> bytes:
    """Serialize a module as TFLite, or as TOSA if it is in the tosa form.

    Args:
        module: The module.
        destination: Where to write it, whole or not at all. The suffix `.mlir` asks for MLIR text.

    Returns:
        The bytes of the file, or b"" if there is a destination.

    Raises:
        VerificationError: The format cannot express an operator, an attribute or a type.
        OptionError: The suffix does not match the module's form.
        FileError: The destination cannot be written.

    Example:
        ```python
        data = tflq.write(tflq.read("model.tflite"))
        ```
    """
    tosa = is_tosa(module)
    format = ("tosa" if tosa else "tflite") if destination is None else named_by(destination)
    if ("tosa" if tosa else "integer") not in backend(format).targets:
        form = "TOSA's operators" if tosa else "operators of TFLite"
        raise OptionError(
            Reason(f"the module holds {form}, which a .{format} file does not", remedy="use tflq.convert")
        )
    pieces = backend(format).pieces(module, 0, None)
    if destination is None:
        return b"".join(pieces)
    replace_file(destination, pieces)
    return b""
