"""Functions and modules from text: what `printer` prints, what MLIR's tools print, and text written by hand.

    module    ::= alias* (`module` name? (`attributes` dict)? `{` function* `}` | function*) resources?
    function  ::= `func.func` `private`? `@`name `(` arguments `)` (`->` types)? (`attributes` dict)?
                  (`{` op* return `}`)?
    op        ::= (results `=`)? (generic | custom) location?
    generic   ::= "name" `(` operands `)` (`<` dict `>`)? (`(` regions `)`)? dict? `:` `(` types `)` `->` types
    region    ::= `{` op* `}` | `{` (`^`label (`(` arguments `)`)? `:` op*)* `}`

In the generic form, as `--mlir-print-op-generic` writes it:

    module    ::= `"builtin.module"() ({` function* `})` dict? `: () -> ()`
    function  ::= `"func.func"() <` dict `> ({` (`^`label `(` arguments `)` `:`)? op* return `}) : () -> ()`

Custom forms are in `parse_custom` and `parse_stablehlo`. Every value is defined before it is used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tflq.ir.module import Function, Metadata, Module, Signature
from tflq.ir.ops import NO_DATA, NO_INFO, Buffer, Value
from tflq.ir.text.parse_ops import Scope, Types
from tflq.ir.text.parse_stablehlo import StablehloParser
from tflq.ir.types import FunctionType, TensorType

_RETURNS = ("return", "func.return")
_RETURN_IS = "what the function returns is"


@dataclass
class ParsedFunction:
    """A function, and its values by the names that they have in the text."""

    function: Function
    symbols: dict[str, Value | None]


class FunctionParser(StablehloParser):
    """A scanner that reads functions. The subclass knows the module's buffer table."""

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
        outputs = self.body()
        if [value.type for value in outputs] != types:
            self.fail(f"{_RETURN_IS} not of the types in its header", at)
        self.expect("}")
        self.location()
        function = Function(name, inputs, outputs, self.scope.ops, self._table_of_tensors(at), info or NO_INFO)
        return ParsedFunction(function, self.scope.symbols)

    def body(self) -> list[Value]:
        """The ops of a function, which go to the scope, and the values that it returns."""
        while self.peek_word() not in _RETURNS and not self.peek('"func.return"'):
            if self.peek("}"):
                self.fail("the function ends without a return")
            if self.peek("^"):
                self.fail("a function with several blocks is not supported: write its control flow as ops with regions")
            self.op(self.pos)
        return self._returned()

    def function_info(self, attributes: dict[str, Any], info: dict[str, Any], symbol: str, at: int) -> str | None:
        """Puts into a function's info what its attributes say; returns its name."""
        foreign = {key: item for key, item in attributes.items() if key not in ("tflq.info", "tflq.name")}
        if foreign:
            info["attributes"] = foreign
        info |= self.entry(attributes, "tflq.info", dict, {}, at)
        name: str | None = self.entry(attributes, "tflq.name", str, None if "tflq.name" in attributes else symbol, at)
        return name

    def _arguments(self) -> list[Value]:
        """`(%arg0: type {attributes}, ...)`, or only types if there is no body."""
        self.expect("(")
        values: list[Value] = []
        for _ in self.items(")"):
            at = self.pos
            name = self.operand_name_or_none()
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
        """Gives an argument the name and info that its attributes state."""
        tensor_info = {k.removeprefix("tflq."): v for k, v in attributes.items() if k.startswith("tflq.")}
        self.tensor(value, tensor_info, at)
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

    def _table_of_tensors(self, at: int) -> list[Value]:
        """The function's tensor table."""
        table = self.scope.table
        for index in range(len(table)):
            if index not in table:
                self.fail(f"no tensor of this function has index {index}, but one has a higher index", at)
        return [table[index] for index in range(len(table))]

    def _returned(self) -> list[Value]:
        """`return %x : type`, or `"func.return"(%x) : (type) -> ()`"""
        generic = self.string_or_none() is not None
        if generic:
            self.expect("(")
        else:
            self.word("return")
        at = self.pos
        names = self.operand_names()
        types: Types = []
        if generic:
            self.expect(")")
            self.expect(":")
            types = self.types()
            self.arrow_types()
        elif names:
            self.expect(":")
            types = self.listed_types()
        values = self.use(names, types, at)
        self.location()
        return values


class GenericParser(FunctionParser):
    """A scanner that also reads functions and modules in the generic form."""

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
        attributes = self.properties()
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
        declaration = self.accept("}")
        inputs: list[Value] = []
        outputs: list[Value] = []
        if not declaration:
            inputs = self.block_arguments() if self.peek("^") else []
            outputs = self.body()
            self.expect("}")
        attributes |= self._closing()
        kind = attributes.pop("function_type", None)
        if not isinstance(kind, FunctionType):
            self.fail("a function needs its 'function_type'", at)
        if declaration:
            inputs, outputs = ([Value(t) for t in side] for side in (kind.inputs, kind.results))
        for values, types, what in ((inputs, kind.inputs, "the arguments are"), (outputs, kind.results, _RETURN_IS)):
            if tuple(value.type for value in values) != types:
                self.fail(f"{what} not of the types in function_type", at)
        tensors = attributes.pop("arg_attrs", None) or [{}] * len(inputs)
        if len(tensors) != len(inputs) or not all(isinstance(tensor, dict) for tensor in tensors):
            self.fail(f"'arg_attrs' must be {len(inputs)} dictionaries", at)
        for value, tensor in zip(inputs, tensors, strict=True):
            self.argument(value, tensor, at)
        function = Function(None, inputs, outputs, self.scope.ops)
        function.name, function.info = self._generic_info(attributes, at)
        if declaration:
            function.info["declaration"] = True
        else:
            function.tensors = self._table_of_tensors(at)
        return ParsedFunction(function, self.scope.symbols)

    def _generic_info(self, attributes: dict[str, Any], at: int) -> tuple[str | None, dict[str, Any]]:
        """A function's name and info."""
        info: dict[str, Any] = {}
        symbol = self.entry(attributes, "sym_name", str, "", at)
        if (visibility := attributes.get("sym_visibility")) is not None:
            info["visibility"] = visibility
        if any(results := attributes.get("res_attrs") or []):
            info["result_attributes"] = results
        rest = {k: v for k, v in attributes.items() if k not in ("sym_name", "sym_visibility", "res_attrs")}
        return self.function_info(rest, info, symbol, at), info


def parse_module(text: str, file: str = "<text>") -> Module:
    """The module that a text describes. ParseError, with line and column, if the text is not valid."""
    return _ModuleParser(text, file).module()


@dataclass
class _Table:
    """The rows of `tflq.buffers`. Those whose data is in the body are filled while the body is read."""

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
        """Reads the resources, which constants before them refer to; returns where they start."""
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
            fields = row if isinstance(row, dict) else {"data": row}
            buffer = self._row(fields.get("data"), at)
            if buffer is not None and fields.get("empty"):
                buffer = Buffer(np.zeros(0, np.uint8))
            if "external" in fields:
                external = self.table.external[index] = self.entry(fields, "external", dict, {}, at)
                if buffer is not None:
                    buffer.external = external
            self.table.rows.append(buffer)

    def _row(self, data: Any, at: int) -> Buffer | None:
        """A row's buffer: bytes, a resource's name, the number of an earlier row, or None if its data is in the
        body."""
        if data is None:
            return None
        if isinstance(data, bytes):
            return Buffer(np.frombuffer(data, np.uint8) if data else NO_DATA)
        if isinstance(data, str):
            return self.blob(data, at)
        if not isinstance(data, int) or not 0 <= data < len(self.table.rows):
            self.fail("a row of 'tflq.buffers' is bytes, a resource or an earlier row's number", at)
        return self.table.rows[data]

    def shared_buffer(self, key: int, data: Buffer | None, at: int) -> Buffer:
        if not 0 <= key < len(self.table.rows):
            self.fail(f"the module has no buffer {key}", at)
        known = self.table.rows[key]
        if known is None:
            if data is None:
                self.fail(f"nothing before this gives the data of buffer {key}", at)
            data.external = self.table.external.get(key)
            self.table.rows[key] = data
            return data
        if data is not None and data is not known and not np.array_equal(data.data, known.data):
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
        """The module's name, and its attributes that are not tflq's."""
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
            self.fail(f"metadata names buffer {key}, which the module does not have", 0)
        return Metadata(self.entry(row, "name", str, None, 0), table[key])

    def _signature(self, row: dict[str, Any], functions: list[ParsedFunction]) -> Signature:
        index = self.entry(row, "function", int, -1, 0)
        if not 0 <= index < len(functions):
            self.fail(f"a signature names function {index}, which the module does not have", 0)
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
