"""A module from text: the counterpart of `printer`, and the seeds' hand-written examples.

    module    ::= alias* (`module` name? (`attributes` dict)? `{` function* `}` | function*) resources?
    function  ::= `func.func` `private`? `@`name `(` arguments `)` (`->` types)? (`attributes` dict)?
                  (`{` op* return `}`)?
    op        ::= (results `=`)? (generic | custom) location?
    generic   ::= "name" `(` operands `)` (`<` dict `>`)? dict? `:` `(` types `)` `->` types
    custom    ::= name operands dict? `:` (type | type `to` type | `(` types `)` `->` types)

A `type` alone is that of all operands and of the one result. Every value is defined before it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tflq.ir.core import Buffer, Metadata, Module, Signature, Value
from tflq.ir.parse_functions import FunctionParser, ParsedFunction

__all__ = ["parse_module"]


def parse_module(text: str, file: str = "<text>") -> Module:
    """The module that a text stands for. ParseError, with line and column, if it stands for none."""
    return _ModuleParser(text, file).module()


@dataclass
class _Table:
    """The rows of `tflq.buffers`; those that the body gives are filled in while it is read."""

    rows: list[Buffer | None] = field(default_factory=list)
    external: dict[int, Any] = field(default_factory=dict)


class _ModuleParser(FunctionParser):
    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self.table = _Table()
        self.end = self._read_resources()

    def module(self) -> Module:
        self._aliases()
        attributes: dict[str, Any] = {}
        functions: list[ParsedFunction] = []
        if self.accept_word("module"):
            if self.accept("@"):
                self.word("the module's name")
            attributes_at = self.pos
            if self.accept_word("attributes"):
                attributes = self.dictionary()
            self._read_buffers(attributes, attributes_at)
            self.expect("{")
            while not self.accept("}"):
                functions.append(self.function())
        else:
            while self.pos < self.end and not self._at_end():
                functions.append(self.function())
                self._aliases()
        if not self._at_end():
            self.fail("expected the end of the text")
        return self._assemble(attributes, functions)

    def _at_end(self) -> bool:
        self.skip()
        return self.pos >= self.end

    def _aliases(self) -> None:
        while self.peek("!") or self.peek("#"):
            kind = self.text[self.pos]
            self.pos += 1
            name = kind + self.word("an alias")
            self.expect("=")
            if kind == "!":
                self.type_aliases[name] = self.type()
            else:
                self.attribute_aliases[name] = self.attribute()

    def _read_resources(self) -> int:
        """Reads the resources, which the constants before them refer to; where they start."""
        text = self.text
        start = text.rfind("{-#") if text.endswith(("#-}", "#-}\n")) else -1
        if start < 0:
            return len(text)
        self.pos = start + 3
        for word in ("dialect_resources", "builtin"):
            self.word(f"'{word}'")
            self.expect(":")
            self.expect("{")
        while not self.accept("}"):
            name = self.word("a resource's name")
            self.expect(":")
            self.blobs[name] = Buffer(self._blob_data())
            if not self.accept(","):
                self.expect("}")
                break
        self.expect("}")
        self.expect("#-}")
        self.pos = 0
        return start

    def _blob_data(self) -> np.ndarray:
        """`"0x"`, four bytes of alignment, the data."""
        self.expect('"0x')
        close = self.text.find('"', self.pos)
        at = self.pos
        if close < at + 8:
            self.fail("a resource starts with its alignment, four bytes")
        self.pos = close + 1
        try:
            return np.frombuffer(bytes.fromhex(self.text[at + 8 : close]), np.uint8)
        except ValueError:
            self.fail("this is not hexadecimal data", at)

    def _read_buffers(self, attributes: dict[str, Any], at: int) -> None:
        for index, row in enumerate(attributes.get("tflq.buffers", [])):
            external = None
            if isinstance(row, dict):
                external, row = row["external"], row["data"]
                self.table.external[index] = external
            buffer: Buffer | None = None
            if isinstance(row, bytes):
                buffer = Buffer(np.frombuffer(row, np.uint8))
            elif isinstance(row, str):
                buffer = self.blob(row, at)
            elif isinstance(row, int):
                buffer = self.table.rows[row]
            if buffer is not None and external is not None:
                buffer.external = external
            self.table.rows.append(buffer)

    def shared_buffer(self, key: int, given: Buffer | None, at: int) -> Buffer:
        """Row `key` of the buffer table, which `given` fills or must agree with."""
        if not 0 <= key < len(self.table.rows):
            self.fail(f"the module has no buffer {key}", at)
        known = self.table.rows[key]
        if known is None:
            if given is None:
                self.fail(f"nothing before this gives the data of buffer {key}", at)
            given.external = self.table.external.get(key)
            self.table.rows[key] = given
            return given
        if given is not None and given is not known and not np.array_equal(given.data, known.data):
            self.fail(f"buffer {key} is given twice, with different data", at)
        return known

    def _assemble(self, attributes: dict[str, Any], functions: list[ParsedFunction]) -> Module:
        rows = self.table.rows
        for index, row in enumerate(rows):
            if row is None:
                self.fail(f"nothing gives the data of buffer {index}", 0)
        table = [row for row in rows if row is not None]
        return Module(
            [parsed.function for parsed in functions],
            signatures=_optional(attributes, "tflq.signatures", lambda s: self._signature(s, functions)),
            metadata=_optional(attributes, "tflq.metadata", lambda m: Metadata(m["name"], table[m["buffer"]])),
            description=attributes.get("tflq.description"),
            version=attributes.get("tflq.version", 3),
            buffers=table[: attributes.get("tflq.buffer_table", len(table))],
            operator_codes=attributes.get("tflq.operator_codes", []),
            info=attributes.get("tflq.info", {}),
            source=attributes.get("tflq.source", ""),
            warnings=attributes.get("tflq.warnings", []),
        )

    def _signature(self, row: dict[str, Any], functions: list[ParsedFunction]) -> Signature:
        index = row["function"]
        if not 0 <= index < len(functions):
            self.fail(f"a signature names function {index}, which the module has not", 0)
        symbols = functions[index].symbols

        def pairs(entries: list[list[str]] | None) -> list[tuple[str | None, Value]] | None:
            if entries is None:
                return None
            for _, symbol in entries:
                if symbols.get(symbol) is None:
                    self.fail(f"a signature names {symbol}, which function {index} has not", 0)
            return [(name, value) for name, symbol in entries if (value := symbols[symbol]) is not None]

        return Signature(row["key"], index, pairs(row["inputs"]), pairs(row["outputs"]), row.get("info", {}))


def _optional(attributes: dict[str, Any], key: str, make: Callable[[Any], Any]) -> list[Any] | None:
    return None if key not in attributes else [make(item) for item in attributes[key]]
