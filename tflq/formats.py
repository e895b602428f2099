"""The formats of model files: TFLite flatbuffers, TOSA flatbuffers and MLIR text of TOSA; the text form of a module is
read, too.
"""

from __future__ import annotations

import io
import os
from typing import IO, Literal, TypeAlias

from tflq.backends import backend, named_by
from tflq.dialects.forms import CORE
from tflq.errors import InvalidModelError, OptionError, Reason, VerificationError, check_source, not_expected
from tflq.files import file_errors, replace_file
from tflq.flatbuffer import reader
from tflq.flatbuffer.identify import identify
from tflq.flatbuffer.layout import TOSA
from tflq.ir.core import Module, Value
from tflq.ir.types import ScalarType, UniformQuantizedSubChannelType

# The text form as a source: what is one, what it holds, and whether a file could hold that.


Given: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview

_BEGINNINGS = (b"module", b"func.func", b"!", b"#", b"//")
_HEAD = 4096


def is_text(given: Given) -> bool:
    """Whether what is no flatbuffer is text: by the suffix of its path, or by how such texts begin."""
    if isinstance(given, (str, os.PathLike)) and os.path.splitext(given)[1] == ".mlir":
        return True
    return _bytes(given, _HEAD).lstrip().startswith(_BEGINNINGS)


def read_text(given: Given, name: str) -> Module:
    """The module of a text, as `tflq opt` prints it, in whatever form. InvalidModelError if it is none; `name`: what
    messages call it."""
    from tflq.ir.parser import parse_module
    from tflq.ir.verifier import verify, verify_casts

    try:
        module = parse_module(_bytes(given).decode("utf-8"), name or "<text>")
    except UnicodeDecodeError as error:
        what = f"byte {error.start} is neither text nor of a model"
        raise InvalidModelError("", what, path=name) from error
    try:
        verify(module)
        verify_casts(module)
    except VerificationError as error:
        raise InvalidModelError("", str(error), path=name) from error
    return module


def check_form(module: Module, form: Literal["tfl", "tosa"], name: str) -> None:
    """InvalidModelError if a module that came as text is not in the form, or is one that no file could hold. Types that
    files have no place for are for the conversion to judge."""
    from tflq.dialects.forms import verify_form
    from tflq.flatbuffer import reader, writer

    if all(function.info.get("declaration") for function in module.functions):
        raise InvalidModelError("", "there is no function with a body", path=name)
    try:
        verify_form(module, form)
        if form == "tfl" and not _is_beyond_files(module):
            reader.read(b"".join(writer.pieces(module)))
    except (VerificationError, InvalidModelError) as error:
        raise InvalidModelError("", str(error), path=name) from error


def _is_beyond_files(module: Module) -> bool:
    """Whether a module has ops or types that the text form alone has."""
    return any(not op.name.startswith("tfl.") for op in module.ops()) or any(
        _beyond_files(value) for function in module.functions for value in function.values()
    )


def _beyond_files(value: Value) -> bool:
    """Whether a tensor's type is one that the text form alone has: files name blocks' scales as tensors."""
    from tflq.flatbuffer.tensors import without_fields

    element = value.type.element
    if isinstance(element, UniformQuantizedSubChannelType):
        return not value.info.get("quantization")
    return not isinstance(element, ScalarType) and bool(without_fields(element))


def _bytes(given: Given, count: int = -1) -> bytes:
    """The first bytes, or all."""
    if isinstance(given, (str, os.PathLike)):
        with file_errors(given), open(given, "rb") as file:
            return file.read(count)
    return bytes(memoryview(given).cast("B")[: count if count >= 0 else None])


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
            from tflq.tosa.files.text import to_tosa_form

            to_tosa_form(module)
        elif any(op.name.startswith("tosa.") for op in module.ops()):
            from tflq.tosa.files.text import with_attributes

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
