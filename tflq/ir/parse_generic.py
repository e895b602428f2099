"""Modules and functions from text in MLIR's generic form, as `--mlir-print-op-generic` writes them:

module    ::= `"builtin.module"() ({` function* `})` dict? `: () -> ()`
function  ::= `"func.func"() <` dict `> ({` (`^`label `(` arguments `)` `:`)? op* return `}) : () -> ()`
"""

from __future__ import annotations

from typing import Any

from tflq.ir.core import Function, Value
from tflq.ir.parse_functions import FunctionParser, ParsedFunction
from tflq.ir.parse_ops import LABEL, Scope
from tflq.ir.types import FunctionType

__all__ = ["GenericParser"]


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
