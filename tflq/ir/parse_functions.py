"""Functions from text; the grammar is in `parser`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tflq.ir.core import NO_INFO, Function, Value
from tflq.ir.parse_ops import Scope, Types
from tflq.ir.parse_stablehlo import StablehloParser
from tflq.ir.types import TensorType

__all__ = ["FunctionParser", "ParsedFunction"]

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
