"""The text form as a source: what is one, what it holds, and whether a file could hold that."""

from __future__ import annotations

import os
from typing import Literal, TypeAlias

from tflq.errors import InvalidModelError, VerificationError
from tflq.files import file_errors
from tflq.ir.core import Module, Value
from tflq.ir.types import ScalarType, UniformQuantizedSubChannelType

__all__ = ["check_form", "is_text", "read_text"]

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
