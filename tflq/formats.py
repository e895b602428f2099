"""The formats of model files: TFLite flatbuffers, TOSA flatbuffers and MLIR text of TOSA; the text form of a module is
read, too."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, TypeAlias, get_args

from tflq.errors import InvalidModelError, OptionError, Reason, VerificationError
from tflq.files import file_errors, replace_file
from tflq.flatbuffer import reader, writer
from tflq.flatbuffer.identify import identify
from tflq.flatbuffer.layout import TOSA
from tflq.ir.core import Module

if TYPE_CHECKING:
    from tflq.tosa.target import Target

__all__ = ["Format", "Source", "is_tosa", "named_by", "read", "serialize", "write"]

Format = Literal["tflite", "tosa", "mlir"]
Source: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]


def named_by(path: str | os.PathLike[str]) -> Format:
    """The format that a destination's suffix names. TflqError if it names none."""
    suffix = Path(path).suffix
    for known in get_args(Format):
        if suffix == f".{known}":
            return known
    known = ", ".join(f".{name}" for name in get_args(Format))
    what = f"the suffix says the format, and '{suffix}' names none"
    raise OptionError(Reason(what, os.fspath(path), value=suffix, remedy=f"there are {known}"))


def read(source: Source) -> Module:
    """The module of a TFLite or TOSA file, or of the text form: a path, bytes or a file object. InvalidModelError if it
    is not a valid one.

    A TFLite file gives the tfl form, one op per operator; a TOSA file the tosa form, whose compile-time-constant
    operands are attributes. UnsupportedError names what of a TOSA file the form cannot hold.
    """
    if not isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview)):
        name, source = str(getattr(source, "name", "")), source.read()
        source = _Named(source, name) if name else source
    schema = identify(source.data if isinstance(source, _Named) else source)
    if schema is None and is_text(source):
        return _read_text(source)
    if schema is not TOSA:
        return reader.read(source)
    from tflq.tosa.files.read import read_tosa

    return read_tosa(source)


def is_text(source: Source) -> bool:
    """Whether a source that is no flatbuffer is text: by the suffix, or by how such texts begin."""
    if isinstance(source, (str, os.PathLike)) and Path(source).suffix == ".mlir":
        return True
    with file_errors(source if isinstance(source, (str, os.PathLike)) else ""):
        head = _bytes(source, 4096).lstrip()
    return head.startswith(_BEGINNINGS)


_BEGINNINGS = (b"module", b"func.func", b"!", b"#", b"//")


def _bytes(source: Source, count: int = -1) -> bytes:
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            return file.read(count)
    data = source.data if isinstance(source, _Named) else source
    assert isinstance(data, (bytes, bytearray, memoryview))
    return bytes(memoryview(data).cast("B")[: count if count >= 0 else None])


def _read_text(source: Source) -> Module:
    """The module of the text form, as `tflq opt` prints it."""
    from tflq.ir.parser import parse_module
    from tflq.ir.verifier import verify

    is_path = isinstance(source, (str, os.PathLike))
    name = os.fspath(source) if is_path else getattr(source, "name", "")
    with file_errors(name):
        data = _bytes(source)
    try:
        module = parse_module(data.decode("utf-8"), name or "<text>")
    except UnicodeDecodeError as error:
        what = f"byte {error.start} is neither text nor of a model"
        raise InvalidModelError("", what, path=name) from error
    try:
        verify(module)
    except VerificationError as error:
        raise InvalidModelError("", str(error), path=name) from error
    return module


class _Named(io.BytesIO):
    """Bytes of a file object that has been read, under its name."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.data = data
        self.name = name


def is_tosa(module: Module) -> bool:
    """Whether a module is in the tosa form, as files of TOSA are read."""
    return any(op.name.startswith("tosa.") for op in module.ops()) and not any(
        op.name.startswith(("tfl.", "ext.", "quant.")) for op in module.ops()
    )


def serialize(
    module: Module, format: Format, function: int = 0, target: Target | None = None
) -> Iterable[bytes | bytearray | memoryview]:
    """The pieces of a file; for TOSA, of the entry that is `function`. MLIR text says what of the target it needs."""
    if format == "tflite":
        return writer.pieces(module)
    if format == "tosa":
        from tflq.tosa.files.write import tosa_pieces

        return tosa_pieces(module, function)
    from tflq.tosa.files.text import mlir_pieces

    return (piece.encode() for piece in mlir_pieces(module, target, function=function))


def write(module: Module, destination: str | os.PathLike[str] | None = None) -> bytes:
    """The bytes of a module as a TFLite file, or as TOSA if it is in the tosa form. With a destination, whose suffix
    can ask for MLIR text, they go there, whole or not at all, and b"" is returned.

    VerificationError if an operator, attribute or type has no form in the format; TflqError if the module's form is not
    that of the suffix's.
    """
    tosa = is_tosa(module)
    format: Format = ("tosa" if tosa else "tflite") if destination is None else named_by(destination)
    if tosa != (format != "tflite"):
        form = "TOSA's operators" if tosa else "operators of TFLite"
        raise OptionError(
            Reason(f"the module holds {form}, which a .{format} file does not", remedy="use tflq.convert")
        )
    pieces = serialize(module, format)
    if destination is None:
        return b"".join(pieces)
    replace_file(Path(destination), pieces)
    return b""
