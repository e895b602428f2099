"""Model files as modules and back: TFLite flatbuffers, TOSA flatbuffers, and text in MLIR's syntax."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import IO, Final, Literal, TypeAlias, overload

from tflq.base.arguments import check_source, not_expected
from tflq.base.errors import FileError, InvalidModelError, OptionError, Reason, VerificationError
from tflq.base.files import FilePath, file_errors, reads_once, replace_file
from tflq.dialects.forms import is_tosa, verify_declared, verify_form
from tflq.formats.backend import DEFAULT, backend, named_by, suffixes
from tflq.formats.flatbuffer.layout import TOSA
from tflq.formats.flatbuffer.structure import folder_error, foreign_error, identify
from tflq.formats.tflite import reader
from tflq.formats.tflite.checks import verify_operators
from tflq.formats.tflite.options import settle_options
from tflq.formats.tflite.tensors import without_fields, without_tensors
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import UniformQuantizedSubChannelType

ReusableSource: TypeAlias = FilePath | bytes | bytearray | memoryview
Source: TypeAlias = ReusableSource | IO[bytes]


def read(source: Source, *, copy: bool = False) -> Module:
    """Read a TFLite file, a TOSA file or the text form of a module.

    A TFLite file becomes the tfl form, with one op for each operator. A TOSA file becomes the tosa form, in which
    operands that are constant at compile time are attributes. A text is in one of the two.

    Args:
        source: A path, bytes or a binary file object. A file is mapped into memory, and constants are views of it: if
            another process truncates it while the module is in use, the system ends this one with SIGBUS.
        copy: Read the file into memory instead, which takes as much of it. What cannot be mapped, such as a pipe, is
            always read whole.

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
    return _checked(*_read(source, copy=copy))


def read_network(source: Source) -> Module:
    """Reads a source like `read`, or a text of logical kernels (`quant.region`), which no conversion takes."""
    from tflq.ir.text.lexer import REGION_OP

    module, text = _read(source)
    if text is not None and any(op.name == REGION_OP for op in module.ops()):
        return module
    return _checked(module, text)


def _checked(module: Module, text: str | None) -> Module:
    """The module that was read, if it came as text in the tfl or the tosa form. `text`: what messages call it."""
    if text is not None:
        module.source = module.source or text
        if any(op.name.startswith("tosa.") for op in module.ops()):
            from tflq.formats.tosa.text import to_tosa_form, with_attributes, with_stored_rescales

            try:
                with_stored_rescales(module)
                (to_tosa_form if is_tosa(module) else with_attributes)(module)
            except InvalidModelError as error:
                raise error.of_file(text) from None
        check_form(module, "tosa" if is_tosa(module) else "tfl", text)
    return module


def read_any_form(source: Source) -> Module:
    """Reads a source like `read`; a text may be in any form, such as the integer form."""
    return _read(source)[0]


def _read(source: Source, *, copy: bool = False) -> tuple[Module, str | None]:
    """The module; and if it came as text, what messages call the text."""
    source = reusable_source(source, copy=copy)
    content = source.data if isinstance(source, _Named) else source
    schema = identify(content)
    if schema is TOSA:
        from tflq.formats.tosa.read import read_tosa

        return read_tosa(source), None
    if schema is None and is_text(content):
        name = os.fspath(content) if isinstance(content, (str, os.PathLike)) else getattr(source, "name", "")
        return read_text(content, name), name
    return reader.read(source), None


@overload
def reusable_source(source: FilePath, *, copy: Literal[True]) -> _Named: ...
@overload
def reusable_source(source: FilePath | bytes, *, copy: Literal[True]) -> bytes | _Named: ...
@overload
def reusable_source(source: Source, *, copy: bool = False) -> ReusableSource | _Named: ...
def reusable_source(source: Source, *, copy: bool = False) -> ReusableSource | _Named:
    """A source that can be read again: for a file object its content, under its name; so for a path that can be read
    once only, and with `copy` for any path."""
    if isinstance(source, _Named):
        source.seek(0)
        return source
    if isinstance(source, (bytes, bytearray, memoryview)):
        return source
    check_source("source", source)
    if isinstance(source, (str, os.PathLike)):
        if os.path.isdir(source):
            raise folder_error(os.fspath(source))
        once = reads_once(source)
        if not once and not copy:
            return source
        with file_errors(source), open(source, "rb") as file:
            return _Named(read_stream(file, os.fspath(source)) if once else file.read(), os.fspath(source))
    name, data = str(getattr(source, "name", "")), source.read()
    if not isinstance(data, (bytes, bytearray)):
        raise not_expected("source", source, "a file opened for reading bytes", remedy="open(path, 'rb')")
    return _Named(data, name) if name else data


def read_stream(file: IO[bytes], name: str) -> bytes:
    """The model that comes from a pipe, a device or standard input. Errors as of `_pieces`."""
    content = io.BytesIO()
    content.writelines(_pieces(file, name, model=True))
    return content.getvalue()


def on_disk(path: FilePath, folder: FilePath) -> str:
    """The path of a model that other processes can read, too: of a copy in a folder, for what can be read once only.
    Errors as of `_pieces`."""
    if not reads_once(path):
        return os.fspath(path)
    name = os.fspath(path)
    format = suffixes().get(os.path.splitext(name)[1][1:], DEFAULT)  # its content can be read once
    place = os.path.join(folder, f"{os.urandom(4).hex()}-{os.path.basename(path)[-100:]}")
    with file_errors(path), open(path, "rb") as source, open(place, "xb") as copy:
        copy.writelines(_pieces(source, name, model=format in ("tflite", "tosa", "mlir")))
    return place


def _pieces(file: IO[bytes], name: str, *, model: bool) -> Iterator[bytes]:
    """The content of a stream, which may have no end. model: whether it is one that `read` takes.

    InvalidModelError as soon as it can be no model: its beginning is neither a flatbuffer's nor text, since that has no
    NUL. FileError if there is more than 2 GiB of it."""
    head = b""
    while len(head) < _HEAD and (more := file.read(_HEAD - len(head))):
        head += more
    if model and b"\0" in head and identify(head) is None:
        what = f"not a model: bytes 4 to 7 are {head[4:8]!r}, and it is no text"
        raise foreign_error(head, name) or InvalidModelError(
            "", what, hint="pipe in a .tflite or .tosa file", path=name
        )
    yield head
    size = len(head)
    while piece := file.read(1 << 20):
        size += len(piece)
        if size > _MOST_OF_STREAM:
            what = "there is more than 2 GiB to read, and it is not a file"
            raise FileError(name, what, remedy="write it to a file, and name that")
        yield piece


_MOST_OF_STREAM: Final = 1 << 31


def size_of(source: Source) -> int:
    """Number of bytes of a source from `reusable_source`."""
    if isinstance(source, (str, os.PathLike)):
        return os.stat(source).st_size
    return memoryview(source.data if isinstance(source, _Named) else source).nbytes  # type: ignore[arg-type]


def digest_of(source: Source) -> str:
    """The SHA-256 of a source from `reusable_source`, in hexadecimal digits."""
    import hashlib

    if isinstance(source, (str, os.PathLike)):
        with file_errors(source), open(source, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    return hashlib.sha256(source.data if isinstance(source, _Named) else source).hexdigest()  # type: ignore[arg-type]


class _Named(io.BytesIO):
    """The content of a file object, under its name."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.data = data
        self.name = name


def write(module: Module, destination: FilePath | None = None) -> bytes:
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
    form = "tosa" if is_tosa(module) else "kernels"
    format = named_by(destination) if destination is not None else "tosa" if form == "tosa" else DEFAULT
    if backend(format).form != form:
        operators = "TOSA's operators" if form == "tosa" else "operators of TFLite"
        what = f"the module holds {operators}, which a .{format} file does not"
        raise OptionError(Reason(what, remedy="use tflq.convert"))
    pieces = backend(format).pieces(module, 0, None)
    if destination is None:
        return b"".join(pieces)
    replace_file(destination, pieces)
    return b""


# Text as a source: what counts as text, what it holds, and whether a file could hold that.

_BEGINNINGS = (b"module", b"func.func", b"!", b"#", b"//")
_HEAD = 4096


def is_text(source: ReusableSource) -> bool:
    """Whether a source that is not a flatbuffer is text: by the suffix of its path, or by how it begins."""
    if isinstance(source, (str, os.PathLike)) and os.path.splitext(source)[1] == ".mlir":
        return True
    return _bytes(source, _HEAD).lstrip().startswith(_BEGINNINGS)


def read_text(source: ReusableSource, name: str) -> Module:
    """The module of a text, in any form, as `tflq opt` prints it. InvalidModelError if it is not valid; `name`: what
    messages call the text."""
    from tflq.dialects.quant import verify_casts
    from tflq.ir.text.parser import parse_module
    from tflq.ir.verifier import verify, verify_sizes

    try:
        module = parse_module(_bytes(source).decode("utf-8"), name or "<text>")
    except UnicodeDecodeError as error:
        what = f"byte {error.start} belongs neither to a text nor to a model"
        raise InvalidModelError("", what, path=name) from error
    try:
        verify_sizes(module)
        verify(module)
        verify_casts(module)
        verify_declared(module)
    except VerificationError as error:
        raise InvalidModelError("", str(error), path=name) from error
    return module


def check_form(module: Module, form: Literal["tfl", "tosa"], name: str) -> None:
    """InvalidModelError if a module from text is not in the form, or if no file could hold it. Types that files have no
    place for are left to the conversion."""
    from tflq.formats.tflite import writer

    if all(function.info.get("declaration") for function in module.functions):
        raise InvalidModelError("", "there is no function with a body", path=name)
    try:
        verify_form(module, form)
        _need_tensors(module)
        settle_options(module)
        if form == "tfl" and _is_beyond_files(module):
            b"".join(writer.pieces(_of_options(module)))
            verify_operators(module)
        elif form == "tfl":
            reader.read(b"".join(writer.pieces(module)))
    except (VerificationError, InvalidModelError) as error:
        raise InvalidModelError("", str(error), path=name) from error


def _need_tensors(module: Module) -> None:
    """VerificationError if an operator of TFLite has a tensor whose element type no file has."""
    for op in module.ops():
        for value in op.tensors if op.name.startswith("tfl.") else ():
            if problem := without_tensors(value.type.storage):
                raise VerificationError(f"{op.location or op.name}: '{value.name}': {problem}")


def _of_options(module: Module) -> Module:
    """The operators of TFLite with their attributes alone, of which the writer has tables of options."""
    ops = [op for op in module.ops() if op.name.startswith("tfl.")]
    bare = [Op(op.name, [], [], op.attributes, op.location) for op in ops]
    return Module([Function("options", [], [], bare)])


def _is_beyond_files(module: Module) -> bool:
    """Whether a module has ops or types that only the text form has."""
    return any(not op.name.startswith("tfl.") for op in module.ops()) or any(
        _beyond_files(value) for function in module.functions for value in function.values()
    )


def _beyond_files(value: Value) -> bool:
    """Whether only the text form has a tensor's type. Files have the scales of blocks as tensors."""
    element = value.type.element
    if isinstance(element, UniformQuantizedSubChannelType):
        return not value.info.get("quantization")
    return bool(without_fields(element))


def _bytes(source: ReusableSource, count: int = -1) -> bytes:
    """The first bytes, or all."""
    if isinstance(source, (str, os.PathLike)):
        with file_errors(source), open(source, "rb") as file:
            return file.read(count)
    return bytes(memoryview(source).cast("B")[: count if count >= 0 else None])
