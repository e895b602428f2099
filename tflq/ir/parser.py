"""A module from text: the counterpart of `printer`, and the seeds' hand-written examples.

    module    ::= alias* (`module` name? (`attributes` dict)? `{` function* `}` | function*) resources?
    function  ::= `func.func` `private`? `@`name `(` arguments `)` (`->` types)? (`attributes` dict)?
                  (`{` op* return `}`)?
    op        ::= (results `=`)? (generic | custom) location?
    generic   ::= "name" `(` operands `)` (`<` dict `>`)? (`(` regions `)`)? dict? `:` `(` types `)` `->` types
    region    ::= `{` op* `}` | `{` (`^`label (`(` arguments `)`)? `:` op*)* `}`
    custom    ::= name operands dict? `:` (type | types `to` type | types `->` types | `(` types `)` `->` types | types)

A `type` alone is that of all operands and of the one result. Other custom forms are in `parse_custom` and
`parse_stablehlo`, modules and functions in the generic form in `parse_generic`. Every value is defined before it is
used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tflq.ir.core import NO_DATA, NO_INFO, Buffer, Function, Metadata, Module, Signature, Value
from tflq.ir.parse_ops import LABEL, Scope, Types
from tflq.ir.parse_stablehlo import StablehloParser
from tflq.ir.types import FunctionType, TensorType

# Functions from text; the grammar is in `parser`.


_RETURNS = ("return", "func.return")


@dataclass
class ParsedFunction:
    """A function and the names its text gives to its values."""

    function: Function
    symbols: dict[str, Value | None]


class FunctionParser(StablehloParser):
    """A scanner that reads functions. A module's buffer table is the subclass's."""

    def function(self) -> ParsedFunction:
        if not self.accept_word("func.func"):
            self.fail("expected 'func.func'")
        self.scope = Scope()
        info: dict[str, Any] = {}
        if self.peek_word() in ("private", "public", "nested"):
            info["visibility"] = self.word("a visibility")
        self.expect("@")
        symbol = self.name_or_string("the function's name")
        inputs = self._arguments()
        at = self.pos
        types = self._result_types(info) if self.accept("->") else []
        attributes = self.dictionary() if self.accept_word("attributes") else {}
        name = self.function_info(attributes, info, symbol, at)
        if not self.accept("{"):
            info["declaration"] = True
            self.location()
            return ParsedFunction(Function(name, inputs, [Value(t) for t in types], [], info=info), {})
        while (op_at := self.skip_to_op()) >= 0:
            self.op(op_at)
        function = Function(name, inputs, self._return(types, at), self.scope.ops, info=info or NO_INFO)
        self.expect("}")
        self.location()
        function.tensors = self.table_of(at)
        return ParsedFunction(function, self.scope.symbols)

    def function_info(self, attributes: dict[str, Any], info: dict[str, Any], symbol: str, at: int) -> str | None:
        """Puts what a function's attributes say into its info; its name."""
        foreign = {key: item for key, item in attributes.items() if key not in ("tflq.info", "tflq.name")}
        if foreign:
            info["attributes"] = foreign
        info |= self.entry(attributes, "tflq.info", dict, {}, at)
        name: str | None = self.entry(attributes, "tflq.name", str, None if "tflq.name" in attributes else symbol, at)
        return name

    def skip_to_op(self) -> int:
        if self.peek("}"):
            self.fail("the function ends without a return")
        if self.peek("^"):
            self.fail("a function of several blocks is not supported: write its control flow as ops with regions")
        return -1 if self.peek_word() in _RETURNS or self.peek('"func.return"') else self.pos

    def _arguments(self) -> list[Value]:
        """`(%arg0: type {attributes}, ...)`, or only types where there is no body."""
        self.expect("(")
        values: list[Value] = []
        for _ in self.items(")"):
            at = self.pos
            name = self.ssa_or_none()
            if name is not None:
                self.expect(":")
            kind = self.value_type()
            value = self.argument(Value(kind), self.attributes(), at)
            self.location()
            if name is not None:
                self.define(name, value, at)
            values.append(value)
        return values

    def argument(self, value: Value, attributes: dict[str, Any], at: int) -> Value:
        """Gives an argument what its attributes say."""
        own = {k.removeprefix("tflq."): v for k, v in attributes.items() if k.startswith("tflq.")}
        self.tensor(value, own, at)
        foreign = {k: v for k, v in attributes.items() if not k.startswith("tflq.")}
        if foreign:
            value.info = {**value.info, "attributes": foreign}
        return value

    def _result_types(self, info: dict[str, Any]) -> list[TensorType]:
        """`type`, or `(type {attributes}, ...)`"""
        if not self.accept("("):
            return [self.value_type()]
        types: list[TensorType] = []
        attributes: list[dict[str, Any]] = []
        for _ in self.items(")"):
            types.append(self.value_type())
            attributes.append(self.attributes())
            self.location()
        if any(attributes):
            info["result_attributes"] = attributes
        return types

    def table_of(self, at: int) -> list[Value]:
        table = self.scope.table
        for index in range(len(table)):
            if index not in table:
                self.fail(f"no tensor of this function has index {index}, but one has a higher index", at)
        return [table[index] for index in range(len(table))]

    def _return(self, types: list[TensorType], at: int) -> list[Value]:
        values = self.returned()
        if [value.type for value in values] != types:
            self.fail("what the function returns is not of the types in its header", at)
        return values

    def returned(self) -> list[Value]:
        """`return %x : type`, or `"func.return"(%x) : (type) -> ()`"""
        generic = self.string_or_none() is not None
        if generic:
            self.expect("(")
        else:
            self.word("return")
        here = self.pos
        names = self.operand_names()
        given: Types = []
        if generic:
            self.expect(")")
            self.expect(":")
            given = self.types()
            self.arrow_types()
        elif names:
            self.expect(":")
            given = self.listed_types()
        values = self.use(names, given, here)
        self.location()
        return values


# Modules and functions from text in MLIR's generic form, as `--mlir-print-op-generic` writes them:
#
# module ::= `"builtin.module"() ({` function* `})` dict? `: () -> ()` function ::= `"func.func"() <` dict `> ({`
# (`^`label `(` arguments `)` `:`)? op* return `}) : () -> ()`


class GenericParser(FunctionParser):
    """A scanner that reads functions in the generic form, too."""

    def any_function(self) -> ParsedFunction:
        return self._generic_function() if self.peek('"func.func"') else self.function()

    def generic_module(self) -> tuple[dict[str, Any], list[ParsedFunction]]:
        """The module's attributes and functions."""
        attributes = self._opening()
        functions: list[ParsedFunction] = []
        while not self.accept("}"):
            functions.append(self.any_function())
        return attributes | self._closing(), functions

    def _opening(self) -> dict[str, Any]:
        """`"name"() <dict>? ({`, and the dictionary."""
        self.string_or_none()
        self.expect("(")
        self.expect(")")
        attributes: dict[str, Any] = {}
        if self.accept("<"):
            attributes = self.dictionary()
            self.expect(">")
        self.expect("(")
        self.expect("{")
        return attributes

    def _closing(self) -> dict[str, Any]:
        """`) dict? : () -> ()`, and the dictionary."""
        self.expect(")")
        attributes = self.attributes()
        self.expect(":")
        if self.function_type() != FunctionType((), ()):
            self.fail("this op has neither operands nor results")
        self.location()
        return attributes

    def _generic_function(self) -> ParsedFunction:
        self.scope = Scope()
        at = self.pos
        attributes = self._opening()
        if self.accept("}"):
            attributes |= self._closing()
            kind, given, attributes = self._header(attributes, at)
            inputs = [self.argument(Value(t), a, at) for t, a in zip(kind.inputs, given, strict=True)]
            return self._made(attributes, inputs, [Value(t) for t in kind.results], at, declaration=True)
        names = self._block_header()
        while (op_at := self.skip_to_op()) >= 0:
            self.op(op_at)
        body, start = self.scope.ops, self.pos
        returned = self.returned()
        self.expect("}")
        attributes |= self._closing()
        kind, given, attributes = self._header(attributes, at)
        inputs = [value for _, value in names]
        if [value.type for value in inputs] != list(kind.inputs):
            self.fail("the arguments are not of the types in function_type", at)
        if [value.type for value in returned] != list(kind.results):
            self.fail("what the function returns is not of the types in function_type", start)
        for value, tensor in zip(inputs, given, strict=True):
            self.argument(value, tensor, at)
        parsed = self._made(attributes, inputs, returned, at, declaration=False)
        parsed.function.ops = body
        parsed.function.tensors = self.table_of(at)
        return parsed

    def _block_header(self) -> list[tuple[str, Value]]:
        """`^bb0(%arg0: type, ...):`, or nothing."""
        if not self.peek("^"):
            return []
        self.take(LABEL, "a block")
        names: list[tuple[str, Value]] = []
        if self.accept("("):
            for _ in self.items(")"):
                name = self.operand_name()
                self.expect(":")
                names.append((name, Value(self.value_type())))
                self.location()
        self.expect(":")
        for name, value in names:
            self.define(name, value, self.pos)
        return names

    def _header(self, attributes: dict[str, Any], at: int) -> tuple[FunctionType, list[dict[str, Any]], dict[str, Any]]:
        """A function's type, the attributes of its arguments, and what else is said of it."""
        others = dict(attributes)
        kind = others.pop("function_type", None)
        if not isinstance(kind, FunctionType):
            self.fail("a function needs its 'function_type'", at)
        given = others.pop("arg_attrs", None) or [{}] * len(kind.inputs)
        if len(given) != len(kind.inputs) or not all(isinstance(each, dict) for each in given):
            self.fail(f"'arg_attrs' must be {len(kind.inputs)} dictionaries", at)
        return kind, given, others

    def _made(
        self, attributes: dict[str, Any], inputs: list[Value], outputs: list[Value], at: int, *, declaration: bool
    ) -> ParsedFunction:
        info: dict[str, Any] = {}
        symbol = self.entry(attributes, "sym_name", str, "", at)
        visibility = attributes.get("sym_visibility")
        if visibility is not None:
            info["visibility"] = visibility
        results = attributes.get("res_attrs") or []
        if any(results):
            info["result_attributes"] = results
        rest = {k: v for k, v in attributes.items() if k not in ("sym_name", "sym_visibility", "res_attrs")}
        name = self.function_info(rest, info, symbol, at)
        if declaration:
            info["declaration"] = True
        return ParsedFunction(Function(name, inputs, outputs, [], info=info), self.scope.symbols)


def parse_module(text: str, file: str = "<text>") -> Module:
    """The module that a text stands for. ParseError, with line and column, if it stands for none."""
    return _ModuleParser(text, file).module()


@dataclass
class _Table:
    """The rows of `tflq.buffers`; those that the body gives are filled in while it is read."""

    rows: list[Buffer | None] = field(default_factory=list)
    external: dict[int, Any] = field(default_factory=dict)


class _ModuleParser(GenericParser):
    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self.table = _Table()
        self.name: str | None = None
        self.end = self._read_resources()

    def module(self) -> Module:
        self._aliases()
        attributes: dict[str, Any] = {}
        functions: list[ParsedFunction] = []
        if self.peek('"builtin.module"'):
            attributes, functions = self.generic_module()
            self.name = attributes.pop("sym_name", None)
            self._aliases()
        elif self.accept_word("module"):
            if self.accept("@"):
                self.name = self.name_or_string("the module's name")
            attributes_at = self.pos
            if self.accept_word("attributes"):
                attributes = self.dictionary()
            self._read_buffers(attributes, attributes_at)
            self.expect("{")
            while not self.accept("}"):
                functions.append(self.any_function())
            self.location()
            self._aliases()
        else:
            while self.pos < self.end and not self._at_end():
                functions.append(self.any_function())
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
            if self.location_skipped():
                continue
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
        for _ in self.items("}"):
            name = self.word("a resource's name")
            self.expect(":")
            self.blobs[name] = Buffer(self._blob_data())
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
        for index, row in enumerate(self.entry(attributes, "tflq.buffers", list, [], at)):
            given: Any = row
            external = None
            if isinstance(row, dict):
                given = row.get("data")
                if "external" in row:
                    external = self.table.external[index] = self.entry(row, "external", dict, {}, at)
            buffer = self._row(given, at)
            if buffer is not None and isinstance(row, dict) and row.get("empty"):
                buffer = Buffer(np.zeros(0, np.uint8))
            if buffer is not None and external is not None:
                buffer.external = external
            self.table.rows.append(buffer)

    def _row(self, given: Any, at: int) -> Buffer | None:
        """A row's buffer: bytes, a resource's name, the number of an earlier row, or None where the body gives it."""
        if given is None:
            return None
        if isinstance(given, bytes):
            return Buffer(np.frombuffer(given, np.uint8) if given else NO_DATA)
        if isinstance(given, str):
            return self.blob(given, at)
        if not isinstance(given, int) or not 0 <= given < len(self.table.rows):
            self.fail("a row of 'tflq.buffers' is bytes, a resource or an earlier row's number", at)
        return self.table.rows[given]

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
        signatures = self._rows(attributes, "tflq.signatures")
        metadata = self._rows(attributes, "tflq.metadata")
        return Module(
            [parsed.function for parsed in functions],
            signatures=None if signatures is None else [self._signature(row, functions) for row in signatures],
            metadata=None if metadata is None else [self._metadata(row, table) for row in metadata],
            description=self.entry(attributes, "tflq.description", str, None, 0),
            version=self.entry(attributes, "tflq.version", int, 3, 0),
            buffers=table[: self.entry(attributes, "tflq.buffer_table", int, len(table), 0)],
            operator_codes=[*(self._rows(attributes, "tflq.operator_codes") or ())],
            info=self.entry(attributes, "tflq.info", dict, {}, 0) | self._foreign_attributes(attributes),
            source=self.entry(attributes, "tflq.source", str, "", 0),
            warnings=self.entry(attributes, "tflq.warnings", list, [], 0),
        )

    def _foreign_attributes(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """What a module says beside the attributes of tflq."""
        others = {key: value for key, value in attributes.items() if not key.startswith("tflq.")}
        return ({"attributes": others} if others else {}) | ({} if self.name is None else {"name": self.name})

    def _rows(self, attributes: dict[str, Any], key: str) -> list[dict[str, Any]] | None:
        rows = self.entry(attributes, key, list, None, 0)
        if rows is not None and not all(isinstance(row, dict) for row in rows):
            self.fail(f"'{key}' must be a list of dictionaries", 0)
        return rows

    def _metadata(self, row: dict[str, Any], table: list[Buffer]) -> Metadata:
        key = self.entry(row, "buffer", int, -1, 0)
        if not 0 <= key < len(table):
            self.fail(f"metadata names buffer {key}, which the module has not", 0)
        return Metadata(self.entry(row, "name", str, None, 0), table[key])

    def _signature(self, row: dict[str, Any], functions: list[ParsedFunction]) -> Signature:
        index = self.entry(row, "function", int, -1, 0)
        if not 0 <= index < len(functions):
            self.fail(f"a signature names function {index}, which the module has not", 0)
        symbols = functions[index].symbols

        def pairs(side: str) -> list[tuple[str | None, Value]] | None:
            entries = self.entry(row, side, list, None, 0)
            return None if entries is None else [self._named_value(entry, symbols) for entry in entries]

        info = self.entry(row, "info", dict, {}, 0)
        return Signature(self.entry(row, "key", str, None, 0), index, pairs("inputs"), pairs("outputs"), info)

    def _named_value(self, entry: Any, symbols: dict[str, Value | None]) -> tuple[str | None, Value]:
        match entry:
            case [str() | None as name, str() as symbol]:
                value = symbols.get(symbol)
            case _:
                name, value = None, None
        if value is None:
            self.fail(f"a signature's {entry!r} is not a name and a value of its function", 0)
        return name, value
