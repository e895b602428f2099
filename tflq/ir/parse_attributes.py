"""Attributes from text; the counterpart of `print_attributes`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from tflq.ir.core import Buffer
from tflq.ir.parse_types import TypeParser
from tflq.ir.syntax import Symbol
from tflq.ir.types import ElementType, ScalarType, TensorType, f64

__all__ = ["AttributeParser", "Blob"]

_RAW_ELEMENTS = re.compile(r"[^<>\"]*")
_TOKENS = re.compile(r"[\[\],]|[^\s\[\],]+")
_BLOB_NAME = re.compile(r"[A-Za-z_][\w$.]*")
_NUMBER_AHEAD = re.compile(r"[-+]?\d")
_ATTRIBUTE_ALIAS = re.compile(r"#[A-Za-z_][\w$.]*")
_LARGEST = 1 << 31
_TYPE_AHEAD = re.compile(r"tensor<|!|u?i\d+\b|b?f\d\w*|complex<|index\b")


class Blob:
    """`dense_resource<name> : type`: bytes kept at the end of the text."""

    def __init__(self, buffer: Buffer, kind: TensorType) -> None:
        self.buffer = buffer
        self.type = kind


class AttributeParser(TypeParser):
    """A scanner that reads attributes. `blobs` are the resources of the text, by name."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self.blobs: dict[str, Buffer] = {}
        self.attribute_aliases: dict[str, Any] = {}

    def dictionary(self) -> dict[str, Any]:
        """`{key = value, flag, "other key" = value}`"""
        self.expect("{")
        items: dict[str, Any] = {}
        while not self.accept("}"):
            at = self.pos
            key = self.string_or_none()
            name = key if key is not None else self.word("an attribute's name")
            if name in items:
                self.fail(f"'{name}' is given twice", at)
            items[name] = self.attribute() if self.accept("=") else None
            if not self.accept(","):
                self.expect("}")
                break
        return items

    def entry(self, items: Mapping[str, Any], key: str, kind: type, default: Any, at: int) -> Any:
        """What a dictionary that `tflq` prints has under `key`, which must be of a `kind` unless it is the default."""
        value = items.get(key, default)
        if value is not default and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            self.fail(f"'{key}' must be a {kind.__name__}", at)
        return value

    def attribute(self) -> Any:
        return self.typed_attribute()[0]

    def typed_attribute(self) -> tuple[Any, TensorType | ElementType | None]:
        """An attribute's value and the type that follows it, if one does."""
        text = self.string_or_none()
        if text is not None:
            return text, self._optional_type()
        if self.accept("["):
            return self._items("]"), None
        if self.peek("{"):
            return self.dictionary(), None
        if self.accept("@"):
            name = self.string_or_none()
            return Symbol(self.word("a symbol's name") if name is None else name), None
        if self.peek("#"):
            return self._special(), None
        if _NUMBER_AHEAD.match(self.text, self.pos):
            return self._number()
        return self._word_attribute()

    def _word_attribute(self) -> tuple[Any, TensorType | ElementType | None]:
        word = self.peek_word()
        if word in ("true", "false"):
            self.pos += len(word)
            return word == "true", self._optional_type()
        if word == "unit":
            self.pos += len(word)
            return None, None
        if word == "dense":
            return self._dense()
        if word == "dense_resource":
            return self._blob()
        if word == "array":
            return self._array(), None
        if not _TYPE_AHEAD.match(self.text, self.pos):
            self.fail("expected an attribute")
        return self.type(), None

    def _optional_type(self) -> TensorType | ElementType | None:
        return self.type() if self.accept(":") else None

    def _items(self, end: str) -> list[Any]:
        items: list[Any] = []
        while not self.accept(end):
            items.append(self.attribute())
            if not self.accept(","):
                self.expect(end)
                break
        return items

    def _number(self) -> tuple[Any, TensorType | ElementType | None]:
        at = self.pos
        text = self.number()
        kind = self._optional_type()
        if isinstance(kind, ScalarType) and kind.is_float:
            if text.startswith("0x"):
                return float(self._float_bits(text, kind, at)), kind
            return float(text), kind
        if text.startswith("0x"):
            return int(text, 16), kind
        if "." in text or "e" in text or "E" in text:
            return float(text), kind or f64
        return int(text), kind

    def _float_bits(self, text: str, kind: ScalarType, at: int) -> np.floating:
        if not kind.numpy:
            self.fail(f"a {kind} cannot be given by its bits", at)
        size = kind.dtype.itemsize
        bits: np.floating = np.array([int(text, 16) & ((1 << 8 * size) - 1)], f"u{size}").view(kind.dtype)[0]
        return bits

    def _special(self) -> Any:
        at = self.pos
        name = self.take(_ATTRIBUTE_ALIAS, "an attribute")
        if name in self.attribute_aliases:
            return self.attribute_aliases[name]
        if name not in ("#tflq.bytes", "#tflq.tuple", "#tflq.scalar", "#tflq.value"):
            self.fail(f"'{name}' is not an attribute this form has", at)
        self.expect("<")
        inner: Any = self.attribute()
        self.expect(">")
        if name == "#tflq.bytes":
            return self._hex(inner, at)
        if name == "#tflq.value":
            return self.value_named(inner, at)
        return tuple(inner) if name == "#tflq.tuple" else inner[()]

    def value_named(self, name: str, at: int) -> Any:
        """The value of an SSA name, where there are such."""
        self.fail(f"{name} is not defined here", at)

    def _hex(self, text: str, at: int) -> bytes:
        if not text.startswith("0x"):
            self.fail("hexadecimal data starts with 0x", at)
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            self.fail("this is not hexadecimal data", at)

    def _array(self) -> np.ndarray:
        """`array<i32: 1, 2>`"""
        self.word("array")
        self.expect("<")
        at = self.pos
        kind = self.scalar(at)
        raw = self.take(_RAW_ELEMENTS, "elements").strip().removeprefix(":").strip() if self.peek(":") else ""
        self.expect(">")
        tokens = [item.strip() for item in raw.split(",")] if raw else []
        return self._values(tokens, kind, at)

    def _dense(self) -> tuple[np.ndarray, TensorType]:
        """`dense<...> : tensor<...>`: the unpacked elements and their type."""
        self.word("dense")
        self.expect("<")
        at = self.pos
        data = self.string_or_none()
        raw = self.take(_RAW_ELEMENTS, "elements") if data is None else ""
        self.expect(">")
        self.expect(":")
        kind = self._static_type()
        shape, storage = tuple(dim or 0 for dim in kind.shape or ()), kind.storage
        count = math.prod(shape)
        if data is not None:
            return self._from_hex(data, shape, storage.dtype, at), kind
        tokens = _TOKENS.findall(raw)
        if tokens and tokens[0] != "[":
            if len(tokens) != 1:
                self.fail("expected one element or a list", at)
            if count * storage.dtype.itemsize > _LARGEST:
                self.fail("a constant is limited to 2 GiB", at)
            return np.full(shape, self._values(tokens, storage, at)[0], storage.dtype), kind
        values = self._values([item for item in tokens if item not in "[],"], storage, at)
        if values.size != count or (count and self._nesting(tokens, at) != shape):
            self.fail(f"these elements are not in the shape of {'x'.join(map(str, shape)) or 'a scalar'}", at)
        return values.reshape(shape), kind

    def _static_type(self) -> TensorType:
        self.skip()
        at = self.pos
        kind = self.type()
        if not isinstance(kind, TensorType) or not kind.is_static or not kind.storage.numpy:
            self.fail("elements need a tensor type of known shape", at)
        return kind

    def _from_hex(self, data: str, shape: tuple[int, ...], dtype: np.dtype, at: int) -> np.ndarray:
        raw = self._hex(data, at)
        if len(raw) != dtype.itemsize * math.prod(shape):
            self.fail(f"{len(raw)} bytes are not what the type needs", at)
        return np.frombuffer(raw, dtype).reshape(shape)

    def _nesting(self, tokens: list[str], at: int) -> tuple[int, ...]:
        """The shape that the brackets give; they must be even."""
        stack: list[list[tuple[int, ...]]] = [[]]
        for item in tokens:
            if item == "[":
                stack.append([])
            elif item == "]":
                if len(stack) < 2:
                    self.fail("a bracket is closed that is not open", at)
                items = stack.pop()
                if len(set(items)) > 1:
                    self.fail("the lists in these elements have different lengths", at)
                stack[-1].append((len(items), *(items[0] if items else ())))
            elif item != ",":
                stack[-1].append(())
        if len(stack) != 1 or len(stack[0]) != 1:
            self.fail("a bracket is open that is not closed", at)
        return stack[0][0]

    def _values(self, tokens: list[str], kind: ScalarType, at: int) -> np.ndarray:
        try:
            if kind.kind == "bool":
                return np.array([{"true": True, "false": False, "1": True, "0": False}[t] for t in tokens], bool)
            if kind.is_float:
                floats = [self._float_bits(t, kind, at) if t.startswith("0x") else float(t) for t in tokens]
                return self._floats(floats, kind)
            numbers = [int(item, 0) for item in tokens]
            if kind.is_integer and any(not kind.minimum <= n <= kind.maximum for n in numbers):
                self.fail(f"an element is not within {kind}", at)
            return np.array(numbers, kind.dtype)
        except (KeyError, ValueError, OverflowError):
            self.fail(f"these are not elements of {kind}", at)

    def _floats(self, values: list[float | np.floating], kind: ScalarType) -> np.ndarray:
        out = np.empty(len(values), kind.dtype)
        for index, value in enumerate(values):
            out[index] = value
        return out

    def _blob(self) -> tuple[Blob, TensorType]:
        self.word("dense_resource")
        self.expect("<")
        buffer = self.blob_named()
        self.expect(">")
        self.expect(":")
        at = self.pos
        kind = self.type()
        if not isinstance(kind, TensorType):
            self.fail("a resource needs a tensor type", at)
        return Blob(buffer, kind), kind

    def blob_named(self) -> Buffer:
        self.skip()
        at = self.pos
        name = self.take(_BLOB_NAME, "a resource's name")
        return self.blob(name, at)

    def blob(self, name: str, at: int) -> Buffer:
        if name == "__elided__":
            self.fail("the data was left out when this text was printed (elide=True), so it cannot be read back", at)
        buffer = self.blobs.get(name)
        if buffer is None:
            self.fail(f"the text has no resource '{name}'", at)
        return buffer
