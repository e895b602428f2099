"""Functions, operations and locations from text; the grammar is in `parser`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tflq.ir.core import NO_INFO, Buffer, Function, Location, Op, Value
from tflq.ir.parse_attributes import AttributeParser, Blob
from tflq.ir.syntax import CONSTANT_OPS, NO_VALUE_OP, PLACEHOLDER_OP, pack
from tflq.ir.types import BareType, TensorType, i1

__all__ = ["FunctionParser", "ParsedFunction"]

_SSA = re.compile(r"%(?:\d+|[A-Za-z_$.-][\w$.-]*)(?:#\d+)?")
_NONE = "none"
_MOST_RESULTS = 1 << 16


@dataclass
class ParsedFunction:
    """A function and the names its text gives to its values."""

    function: Function
    symbols: dict[str, Value | None]


@dataclass
class _Scope:
    symbols: dict[str, Value | None] = field(default_factory=dict)
    table: dict[int, Value] = field(default_factory=dict)


class FunctionParser(AttributeParser):
    """A scanner that reads functions. A module's buffer table is the subclass's."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self.scope = _Scope()

    def shared_buffer(self, key: int, given: Buffer | None, at: int) -> Buffer:
        raise NotImplementedError

    def value_named(self, name: str, at: int) -> Value | None:
        if name not in self.scope.symbols:
            self.fail(f"{name} is not defined before this", at)
        return self.scope.symbols[name]

    def function(self) -> ParsedFunction:
        if not self.accept_word("func.func"):
            self.fail("expected 'func.func'")
        self.scope = _Scope()
        info: dict[str, Any] = {}
        if self.peek_word() in ("private", "public"):
            info["visibility"] = self.word("a visibility")
        self.expect("@")
        quoted = self.string_or_none()
        symbol = self.word("the function's name") if quoted is None else quoted
        inputs = self._arguments()
        at = self.pos
        types = self._result_types() if self.accept("->") else []
        attributes = self.dictionary() if self.accept_word("attributes") else {}
        info |= self.entry(attributes, "tflq.info", dict, {}, at)
        name = self.entry(attributes, "tflq.name", str, None if "tflq.name" in attributes else symbol, at)
        if not self.accept("{"):
            info["declaration"] = True
            return ParsedFunction(Function(name, inputs, [Value(t) for t in types], [], info=info), {})
        function = Function(name, inputs, [], [], info=info or NO_INFO)
        while (op_at := self._skip_to_op()) >= 0:
            self._op(function, op_at)
        function.outputs = self._return(types, at)
        self.expect("}")
        function.tensors = self._table(at)
        return ParsedFunction(function, self.scope.symbols)

    def _skip_to_op(self) -> int:
        if self.peek("}"):
            self.fail("the function ends without a return")
        return -1 if self.peek_word() in ("return", "func.return") else self.pos

    def _arguments(self) -> list[Value]:
        """`(%arg0: type {attributes}, ...)`, or only types where there is no body."""
        self.expect("(")
        values: list[Value] = []
        while not self.accept(")"):
            at = self.pos
            name = self.match(_SSA)
            if name is not None:
                self.expect(":")
            kind = self.value_type()
            attributes = self.dictionary() if self.peek("{") else {}
            value = self._tensor(Value(kind), {k.removeprefix("tflq."): v for k, v in attributes.items()}, at)
            if name is not None:
                self._define(name, value, at)
            values.append(value)
            if not self.accept(","):
                self.expect(")")
                break
        return values

    def _result_types(self) -> list[TensorType]:
        if not self.peek("("):
            return [self.value_type()]
        return [kind for kind in self._types() if kind is not None]

    def _types(self) -> list[TensorType | None]:
        """`(type, type, ...)`, with None for `none`."""
        self.expect("(")
        types: list[TensorType | None] = []
        while not self.accept(")"):
            types.append(None if self.accept_word(_NONE) else self.value_type())
            if not self.accept(","):
                self.expect(")")
                break
        return types

    def _define(self, name: str, value: Value | None, at: int) -> None:
        if name in self.scope.symbols:
            self.fail(f"{name} is defined a second time", at)
        self.scope.symbols[name] = value

    def _tensor(self, value: Value, tensor: dict[str, Any], at: int) -> Value:
        """Gives a value what the text says of its tensor."""
        value.name = self.entry(tensor, "name", str, "", at)
        value.info = self.entry(tensor, "info", dict, NO_INFO, at)
        if "buffer" in tensor:
            value.buffer = self.shared_buffer(self.entry(tensor, "buffer", int, -1, at), value.buffer, at)
        if "index" in tensor:
            index = self.entry(tensor, "index", int, -1, at)
            if index in self.scope.table:
                self.fail(f"two tensors have index {index}", at)
            self.scope.table[index] = value
        return value

    def _table(self, at: int) -> list[Value]:
        table = self.scope.table
        for index in range(len(table)):
            if index not in table:
                self.fail(f"no tensor of this function has index {index}, but one has a higher index", at)
        return [table[index] for index in range(len(table))]

    def _return(self, types: list[TensorType], at: int) -> list[Value]:
        self.word("return")
        here = self.pos
        names = self._operand_names()
        given = self._list_of_types() if names else []
        values = self._use(names, given, here)
        if [value.type for value in values] != types:
            self.fail("what the function returns is not of the types in its header", at)
        return values

    def _list_of_types(self) -> list[TensorType | None]:
        self.expect(":")
        types: list[TensorType | None] = [self.value_type()]
        while self.accept(","):
            types.append(self.value_type())
        return types

    def _operand_names(self) -> list[str]:
        names: list[str] = []
        while (name := self.match(_SSA)) is not None:
            names.append(name)
            if not self.accept(","):
                break
        return names

    def _use(self, names: list[str], types: list[TensorType | None], at: int) -> list[Any]:
        if len(names) != len(types):
            self.fail(f"{len(names)} operands, but {len(types)} types", at)
        values: list[Value | None] = []
        for name, kind in zip(names, types, strict=True):
            if name not in self.scope.symbols:
                self.fail(f"{name} is not defined before this", at)
            value = self.scope.symbols[name]
            if (None if value is None else value.type) != kind:
                self.fail(f"{name} is not of the type given for it here", at)
            values.append(value)
        return values

    def _op(self, function: Function, at: int) -> None:
        names = self._results()
        generic = self.string_or_none()
        if generic is None:
            self._custom(function, names, self.word("an op's name"), at)
            return
        self.expect("(")
        operands = self._operand_names()
        self.expect(")")
        attributes: dict[str, Any] = {}
        if self.accept("<"):
            attributes = self.dictionary()
            self.expect(">")
        if self.peek("("):
            self.fail("ops with regions are not supported: name another function in an attribute instead")
        if self.peek("{"):
            attributes |= self.dictionary()
        self.expect(":")
        given, types = self._types(), self._arrow_types()
        self._finish(function, names, generic, self._use(operands, given, at), types, attributes, at)

    def _arrow_types(self) -> list[TensorType | None]:
        self.expect("->")
        if self.peek("("):
            return self._types()
        return [None] if self.accept_word(_NONE) else [self.value_type()]

    def _results(self) -> list[str]:
        names: list[str] = []
        while (name := self.match(_SSA)) is not None:
            if self.accept(":"):
                count = self.integer()
                if not 0 < count <= _MOST_RESULTS:
                    self.fail(f"an op cannot have {count} results")
                names += [f"{name}#{i}" for i in range(count)]
            else:
                names.append(name)
            if not self.accept(","):
                break
        if names:
            self.expect("=")
        return names

    def _custom(self, function: Function, names: list[str], op: str, at: int) -> None:
        attributes: dict[str, Any] = {}
        if op == "arith.constant" and not self.peek("{"):
            value, kind = self.typed_attribute()
            if isinstance(value, bool):
                kind = kind or i1
            if kind is None:
                self.fail("a constant needs a type", at)
            own = kind if isinstance(kind, TensorType) else BareType.of(kind)
            self._finish(function, names, op, [], [own], {"value": value}, at)
            return
        if op in ("call", "func.call"):
            op, attributes["callee"] = "func.call", self.attribute()
        operands = self._call_operands() if "callee" in attributes else self._operand_names()
        if self.peek("{"):
            attributes |= self.dictionary()
        self.expect(":")
        given: list[TensorType | None]
        types: list[TensorType | None]
        if self.peek("("):
            given, types = self._types(), self._arrow_types()
        else:
            first = self.value_type()
            given, types = [first] * len(operands), [first] if names else []
            if self.accept_word("to"):
                types = [self.value_type()]
        self._finish(function, names, op, self._use(operands, given, at), types, attributes, at)

    def _call_operands(self) -> list[str]:
        self.expect("(")
        operands = self._operand_names()
        self.expect(")")
        return operands

    def _finish(
        self,
        function: Function,
        names: list[str],
        op: str,
        operands: list[Value | None],
        types: list[TensorType | None],
        attributes: dict[str, Any],
        at: int,
    ) -> None:
        location = self._location()
        if len(names) != len(types):
            self.fail(f"{len(names)} results, but {len(types)} types", at)
        if op == NO_VALUE_OP:
            for name in names:
                self._define(name, None, at)
            return
        tensors = self.entry(attributes, "tflq.tensors", list, [{}] * len(names), at)
        if len(tensors) != len(names) or not all(isinstance(tensor, dict) for tensor in tensors):
            self.fail(f"'tflq.tensors' must be {len(names)} dictionaries, one per result", at)
        results: list[Value] = []
        for name, kind, tensor in zip(names, types, tensors, strict=True):
            if kind is None:
                self.fail(f"{name} cannot be of type none", at)
            value = Value(kind)
            if op in CONSTANT_OPS:
                value.buffer = self._data(attributes, kind, at)
            self._define(name, self._tensor(value, tensor, at), at)
            results.append(value)
        if op in CONSTANT_OPS or op == PLACEHOLDER_OP:
            return
        count = len(operands) - self.entry(attributes, "tflq.intermediates", int, 0, at)
        if not 0 <= count <= len(operands):
            self.fail("'tflq.intermediates' is not a number of operands", at)
        info = self.entry(attributes, "tflq.info", dict, NO_INFO, at)
        for key in ("tflq.tensors", "tflq.intermediates", "tflq.info"):
            attributes.pop(key, None)
        function.ops.append(
            Op(op, operands[:count], results, attributes, location, info=info, intermediates=operands[count:])
        )

    def _data(self, attributes: dict[str, Any], kind: TensorType, at: int) -> Buffer:
        """A constant's buffer."""
        value = attributes.get("value", attributes.get("values"))
        if isinstance(value, Blob):
            return value.buffer
        storage = kind.storage
        if not isinstance(value, (np.ndarray, int, float)) or not storage.numpy:
            self.fail(f"a constant of {storage} needs a value", at)
        try:
            array = value if isinstance(value, np.ndarray) else np.asarray(value, storage.dtype)
        except OverflowError:
            self.fail(f"{value} is not within {storage}", at)
        if array.dtype != storage.dtype or array.shape != kind.shape:
            self.fail("the value is not of the constant's type", at)
        return Buffer.of(pack(array, storage)) if storage.bits < 8 else Buffer.of(array)

    def _location(self) -> Location | None:
        """`loc(unknown)`, `loc("file":1:2)`, `loc("tensor"("file":1:2))`, `loc(fused<"OPCODE">[...])`"""
        if self.peek_word() != "loc":
            return None
        self.word("loc")
        self.expect("(")
        if self.accept_word("unknown"):
            self.expect(")")
            return None
        opcode = ""
        fused = self.accept_word("fused")
        if fused:
            self.expect("<")
            opcode = self.string()
            self.expect(">")
            self.expect("[")
        location = self._place(opcode)
        if fused:
            self.expect("]")
        self.expect(")")
        return location

    def _place(self, opcode: str) -> Location:
        first = self.string()
        if self.accept("("):
            location = self._place(opcode)
            self.expect(")")
            return Location(location.file, location.function, location.operator, opcode, first)
        if not self.accept(":"):
            return Location("", 0, 0, opcode, first)
        function = self.integer()
        self.expect(":")
        return Location(first, function, self.integer(), opcode, "")
