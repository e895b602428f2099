"""Constants of a module as text: their elements where they are used, the table of buffers, and resources."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tflq.ir.core import NO_DATA, Buffer, Module, Value
from tflq.ir.lexer import INLINE_LIMIT, Symbol
from tflq.ir.print_types import TypePrinter, elements_text, float_literal
from tflq.ir.types import BareType, TensorType, bf16
from tflq.numerics.signless import bfloat16_values, packed

SMALL_BLOB = 64
"""A buffer of up to so many bytes that no constant shows is written in the table itself."""


class ConstantPrinter:
    """Of one module.

    keys: the number of each buffer that has a row in the table. shown: those whose data the body has. resources: those
    that it names.
    """

    def __init__(self, module: Module, types: TypePrinter, elide: bool) -> None:
        self.module = module
        self.types = types
        self.elide = elide
        self.resources: dict[str, Buffer] = {}
        self.shown: set[Buffer] = set()
        self.also_elsewhere: set[Buffer] = set()
        self.keys = self._numbered()

    def _numbered(self) -> dict[Buffer, int]:
        """A number for each buffer of the table, and for others that the line of a constant cannot hold."""
        keys: dict[Buffer, int] = {}
        for index, buffer in enumerate(self.module.buffers):
            keys.setdefault(buffer, index)
        seen: set[Buffer] = set()
        following = len(self.module.buffers)
        for buffer, own_line in self._uses():
            if not own_line:
                self.also_elsewhere.add(buffer)
            if buffer in keys:
                continue
            if buffer in seen or not own_line or buffer.external is not None:
                keys[buffer] = following
                following += 1
            seen.add(buffer)
        return keys

    def _uses(self) -> Iterator[tuple[Buffer, bool]]:
        for function in self.module.functions:
            arguments = set(function.inputs)
            for value in dict.fromkeys((*function.values(), *function.tensors)):
                if value.buffer is not None:
                    yield value.buffer, value not in arguments and is_data(value)
        for entry in self.module.metadata or []:
            yield entry.buffer, False

    def rows(self) -> list[Any]:
        """The table: those of the module, then others with a key."""
        extra = [buffer for buffer, key in self.keys.items() if key >= len(self.module.buffers)]
        return [self._row(index, buffer) for index, buffer in enumerate((*self.module.buffers, *extra))]

    def _row(self, index: int, buffer: Buffer) -> Any:
        if self.keys[buffer] != index:
            return self.keys[buffer]
        data: Any = None
        if buffer not in self.shown or buffer in self.also_elsewhere or buffer.data is NO_DATA:
            small = buffer.data.size <= SMALL_BLOB
            data = buffer.data.tobytes() if small else Symbol(self.resource(buffer))
        extra: dict[str, Any] = {} if buffer.external is None else {"external": buffer.external}
        if data == b"" and buffer.data is not NO_DATA:
            extra["empty"] = True
        return {"data": data, **extra} if extra else data

    def resource(self, buffer: Buffer) -> str:
        """The name of the resource that holds a buffer's bytes."""
        if self.elide:
            return "__elided__"
        key = self.keys.get(buffer)
        name = f"c{len(self.resources)}" if key is None else f"b{key}"
        self.resources[name] = buffer
        return name

    def section(self) -> list[str]:
        """The lines after the module that hold what its resources name."""
        if not self.resources:
            return []
        blobs = ((name, buffer.data.tobytes().hex()) for name, buffer in self.resources.items())
        entries = ",\n".join(f'      {name}: "0x04000000{data}"' for name, data in blobs)
        return ["", "{-#", "  dialect_resources: {", "    builtin: {", entries, "    }", "  }", "#-}"]

    def literal(self, value: Value) -> str:
        """A scalar's value and type: `2.0 : f32`"""
        buffer, storage = value.buffer, value.type.storage
        assert buffer is not None
        self.shown.add(buffer)
        if storage.kind == "bool":
            return "true" if value.array else "false"
        number = _values(value).reshape(()).item()
        shown = float_literal(number, storage) if storage.is_float else str(number)
        return f"{shown} : {storage.name}"

    def elements(self, value: Value, *, signless: bool = False) -> str:
        """`dense<...> : type`. signless: print quantized unsigned storage as bits, as MLIR does."""
        buffer, stored = value.buffer, value.type.stripped()
        if signless and value.type.quantized and value.type.storage.bits >= 8:
            stored = value.type.stored()
            value = Value(stored, buffer=buffer)
        assert buffer is not None
        plain = TensorType(stored.shape, stored.element) if isinstance(stored, BareType) else stored
        self.shown.add(buffer)
        shown = inline(value)
        if shown is not None:
            return f"dense<{shown}> : {self.types.text(plain)}"
        name = self.resource(buffer)
        return f"dense_resource<{name}> : {self.types.text(plain)}"


def is_constant(value: Value) -> bool:
    """Whether a value is a constant, whatever its data."""
    return value.producer is None and value.buffer is not None


def _values(value: Value) -> np.ndarray:
    """The elements of a constant, bf16 as float32."""
    if value.type.storage is not bf16:
        return value.array
    assert value.buffer is not None
    return bfloat16_values(value.buffer.data.view(np.uint16)).reshape([d or 0 for d in value.type.shape or ()])


def is_data(value: Value) -> bool:
    """Whether a value is printed with its data: a constant, or a value whose data does not fit its type."""
    return value.producer is None and value.buffer is not None and (value.buffer.data.size > 0 or value.is_constant)


def inline(value: Value) -> str | None:
    """The elements of a constant, if they are few and reading them gives the same bytes."""
    buffer, storage, shape = value.buffer, value.type.storage, value.type.shape
    if buffer is None or shape is None or None in shape or not (storage.numpy or storage is bf16):
        return None
    count = math.prod(dim or 0 for dim in shape)
    if storage is bf16:
        return elements_text(_values(value)) if buffer.data.size == 2 * count else None
    if storage.bits < 8:
        fits = count <= INLINE_LIMIT and buffer.data.size == -(-count // (8 // storage.bits))
        same = fits and np.array_equal(packed(value.array, storage.bits), buffer.data)
        return elements_text(value.array) if same else None
    if buffer.data.size != count * storage.dtype.itemsize:
        return None
    if storage.kind == "bool" and (buffer.data > 1).any():
        return None
    return elements_text(value.array)
