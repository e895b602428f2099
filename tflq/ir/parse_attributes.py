"""Attributes from text; the counterpart of `AttributePrinter`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tflq.ir.attributes import AffineMap, Opaque, TypedFloat, TypedInt, TypedString
from tflq.ir.core import Buffer
from tflq.ir.lexer import Symbol
from tflq.ir.parse_types import ElementParser
from tflq.ir.print_types import AttributePrinter, TypePrinter, type_text
from tflq.ir.types import ElementType, ScalarType, TensorType, f64, i64

_NUMBER_AHEAD = re.compile(r"[-+]?\d")
_ATTRIBUTE_ALIAS = re.compile(r"#[A-Za-z_][\w$.]*")
_TYPE_AHEAD = re.compile(r"(?:tensor|vector|memref|tuple|complex)<|[!(]|u?i\d+\b|b?f\d\w*|(?:index|none)\b")
_BY_TEXT = re.compile(r"(?:affine_set|opaque|sparse|strided)(?=<)")
_ALIASES = re.compile(r'"(?:[^"\\\n]|\\.)*"|([!#][A-Za-z_][\w$]*)(?![\w$.<])')


class Blob:
    """`dense_resource<name> : type`: bytes kept at the end of the text."""

    def __init__(self, buffer: Buffer, kind: TensorType) -> None:
        self.buffer = buffer
        self.type = kind


class AttributeParser(ElementParser):
    """A scanner that reads attributes. `blobs`: the resources of the text, by name."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self.blobs: dict[str, Buffer] = {}
        self.attribute_aliases: dict[str, Any] = {}

    def dictionary(self) -> dict[str, Any]:
        """`{key = value, flag, "other key" = value}`"""
        self.expect("{")
        items: dict[str, Any] = {}
        for _ in self.items("}"):
            at = self.pos
            name = self.name_or_string("an attribute's name")
            if name in items:
                self.fail(f"'{name}' is given twice", at)
            items[name] = self.attribute() if self.accept("=") else None
        return items

    def attributes(self) -> dict[str, Any]:
        """A dictionary, or nothing."""
        return self.dictionary() if self.peek("{") else {}

    def properties(self) -> dict[str, Any]:
        """`<{...}>`, or nothing."""
        if not self.accept("<"):
            return {}
        items = self.dictionary()
        self.expect(">")
        return items

    def entry(self, items: Mapping[str, Any], key: str, kind: type, default: Any, at: int) -> Any:
        """The entry `key` of a dictionary that `tflq` prints. It must be of a `kind`, unless it is the default."""
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
            kind = self._optional_type()
            return text if kind is None else TypedString(text, kind), kind
        if self.accept("["):
            return [self.attribute() for _ in self.items("]")], None
        if self.peek("{"):
            return self.dictionary(), None
        if self.accept("@"):
            return self._symbol(), None
        if self.peek("#"):
            return self._special(), None
        if _NUMBER_AHEAD.match(self.text, self.pos):
            return self._number()
        return self._word_attribute()

    def _symbol(self) -> Symbol | Opaque:
        """What follows `@`: a name; or `name::@name`, of which only the text is kept."""
        start = self.pos
        name = self.name_or_string("a symbol's name")
        if not self.accept("::"):
            return Symbol(name)
        self.expect("@")
        self._symbol()
        return Opaque(f"@{self.text[start : self.pos]}")

    def _word_attribute(self) -> tuple[Any, TensorType | ElementType | None]:
        word = self.peek_word()
        if word in ("true", "false"):
            self.pos += len(word)
            return word == "true", self._optional_type()
        if self.accept_word("unit"):
            return None, None
        if word == "dense":
            return self.dense()
        if word == "dense_resource":
            return self._blob()
        if word == "array":
            return self.array(), None
        if self.accept_word("affine_map"):
            return AffineMap.of(word + self.balanced()), None
        if (by_text := self.match(_BY_TEXT)) is not None:
            return self._typed_text(by_text + self.resolved(self.balanced())), None
        if not _TYPE_AHEAD.match(self.text, self.pos):
            self.fail("expected an attribute")
        return self.type(), None

    def _typed_text(self, text: str) -> Opaque:
        """An attribute of which only the text is kept, with the type that follows."""
        kind = self._optional_type()
        return Opaque(text if kind is None else f"{text} : {type_text(kind)}")

    def resolved(self, text: str) -> str:
        """A text in which aliases are replaced by what they stand for."""
        printer = AttributePrinter(TypePrinter(aliases=False))

        def meaning(match: re.Match[str]) -> str:
            name = match[1] or ""
            if name in self.type_aliases:
                return printer.types.text(self.type_aliases[name])
            return printer.text(self.attribute_aliases[name]) if name in self.attribute_aliases else match[0]

        return _ALIASES.sub(meaning, text)

    def _optional_type(self) -> TensorType | ElementType | None:
        return self.type() if self.accept(":") else None

    def _number(self) -> tuple[Any, TensorType | ElementType | None]:
        at = self.pos
        text = self.number()
        kind = self._optional_type()
        if isinstance(kind, ScalarType) and kind.is_float:
            value = float(self.float_bits(text, kind, at)) if text.startswith("0x") else float(text)
            return (value if kind is f64 else TypedFloat(self.rounded(value, kind), kind)), kind
        if text.startswith("0x"):
            number = int(text, 16)
        elif "." in text or "e" in text or "E" in text:
            return float(text), kind or f64
        else:
            number = int(text)
        return (number if kind is None or kind is i64 else TypedInt(number, kind)), kind

    def _special(self) -> Any:
        at = self.pos
        name = self.take(_ATTRIBUTE_ALIAS, "an attribute")
        if name in self.attribute_aliases:
            return self.attribute_aliases[name]
        if name not in ("#tflq.bytes", "#tflq.tuple", "#tflq.scalar", "#tflq.value"):
            if "." not in name and not self.text.startswith("<", self.pos):
                self.fail(f"the alias '{name}' is not defined", at)
            inner = self.resolved(self.balanced()) if self.text.startswith("<", self.pos) else ""
            return self._typed_text(name + inner)
        self.expect("<")
        inside: Any = self.attribute()
        self.expect(">")
        if name == "#tflq.bytes":
            return self.hexadecimal(inside, at)
        if name == "#tflq.value":
            return self.value_named(inside, at)
        return tuple(inside) if name == "#tflq.tuple" else inside[()]

    def value_named(self, name: str, at: int) -> Any:
        """The value that an SSA name stands for, where names can be defined."""
        self.fail(f"{name} is not defined here", at)

    def _blob(self) -> tuple[Blob, TensorType]:
        self.word("dense_resource")
        self.expect("<")
        self.skip()
        at = self.pos
        buffer = self.blob(self.word("a resource's name"), at)
        self.expect(">")
        self.expect(":")
        at = self.pos
        kind = self.type()
        if not isinstance(kind, TensorType):
            self.fail("a resource needs a tensor type", at)
        return Blob(buffer, kind), kind

    def blob(self, name: str, at: int) -> Buffer:
        if name == "__elided__":
            self.fail("the data was left out when this text was printed (elide=True), so it cannot be read back", at)
        buffer = self.blobs.get(name)
        if buffer is None:
            self.fail(f"the text has no resource '{name}'", at)
        return buffer
