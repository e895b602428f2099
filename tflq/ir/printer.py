"""A module as text, in MLIR's generic form.

Constants are printed as `tfl.pseudo_const` ops where they are first used. What MLIR has no place for is in attributes:
per op `tflq.tensors` (name, place in the tensor table, buffer, info of each result), `tflq.info`, and
`tflq.intermediates` (how many of the last operands are intermediates); the same per argument; per function and per
module what the file says of them. `tflq.buffers` is the buffer table; a row is `unit` where a constant in the body
gives its data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tflq.ir.core import NO_DATA, Buffer, Function, Location, Module, Op, Signature, Value
from tflq.ir.print_attributes import AttributePrinter, elements_text
from tflq.ir.print_types import TypePrinter
from tflq.ir.syntax import BARE_KEY, CAST_OPS, INLINE_LIMIT, NO_VALUE_OP, PLACEHOLDER_OP, Symbol, pack, quote
from tflq.ir.types import BareType, TensorType

__all__ = ["print_context", "print_module"]

SMALL_BLOB = 64
"""Bytes up to which a buffer that no constant shows is written in the table itself."""


def print_module(module: Module, *, elide: bool = False) -> str:
    """The module's text; with `elide` large constants are left out, and the text can be read but not parsed."""
    return _ModulePrinter(module, elide).text()


def print_context(module: Module, index: int, op: Op | None, *, around: int = 3) -> str:
    """The lines around an op of function `index`, which is marked; the function's ends if `op` is None."""
    function = module.functions[index]
    printer = _FunctionPrinter(_ModulePrinter(module, True, aliases=False), function)
    place = function.ops.index(op) if op in function.ops else 0
    lines = [printer.header()]
    for position, other in enumerate(function.ops):
        line = printer.op_line(other)
        if op is not None and abs(position - place) <= around:
            lines.append(("> " if other is op else "  ") + line)
    lines.append("  " + printer.return_line())
    return "\n".join(line if len(line) < 400 else line[:400] + " ..." for line in lines)


class _ModulePrinter:
    def __init__(self, module: Module, elide: bool, *, aliases: bool = True) -> None:
        self.module = module
        self.elide = elide
        self.types = TypePrinter(aliases=aliases)
        self.resources: dict[str, Buffer] = {}
        self.shown: set[Buffer] = set()
        self.also_elsewhere: set[Buffer] = set()
        self.keys = self._buffer_keys()
        self.functions = [_FunctionPrinter(self, function) for function in module.functions]
        self.symbols = _symbols(module)

    def text(self) -> str:
        body: list[str] = []
        for printer, symbol in zip(self.functions, self.symbols, strict=True):
            body += printer.lines(symbol)
        attributes = self._attributes()
        header = f"module attributes {AttributePrinter(self.types).dictionary(attributes)} {{"
        lines = [*self.types.alias_lines(), header, *body, "}"]
        if self.resources:
            blobs = ((name, buffer.data.tobytes().hex()) for name, buffer in self.resources.items())
            entries = ",\n".join(f'      {name}: "0x04000000{data}"' for name, data in blobs)
            lines += ["", "{-#", "  dialect_resources: {", "    builtin: {", entries, "    }", "  }", "#-}"]
        return "\n".join(lines) + "\n"

    def _buffer_keys(self) -> dict[Buffer, int]:
        """A number for each buffer of the table, and for others that a constant's own line cannot hold."""
        keys: dict[Buffer, int] = {}
        for index, buffer in enumerate(self.module.buffers):
            keys.setdefault(buffer, index)
        seen: set[Buffer] = set()
        following = len(self.module.buffers)
        for buffer, own_line in self._buffer_uses():
            if not own_line:
                self.also_elsewhere.add(buffer)
            if buffer in keys:
                continue
            if buffer in seen or not own_line or buffer.external is not None:
                keys[buffer] = following
                following += 1
            seen.add(buffer)
        return keys

    def _buffer_uses(self) -> Iterator[tuple[Buffer, bool]]:
        for function in self.module.functions:
            arguments = set(function.inputs)
            for value in dict.fromkeys((*function.values(), *function.tensors)):
                if value.buffer is not None:
                    yield value.buffer, value not in arguments and _is_data(value)
        for entry in self.module.metadata or []:
            yield entry.buffer, False

    def _attributes(self) -> dict[str, Any]:
        module = self.module
        items: dict[str, Any] = {"tflq.version": module.version}
        if module.description is not None:
            items["tflq.description"] = module.description
        if module.source:
            items["tflq.source"] = module.source
        if module.operator_codes:
            items["tflq.operator_codes"] = module.operator_codes
        if module.signatures is not None:
            items["tflq.signatures"] = [self._signature(s) for s in module.signatures]
        if module.metadata is not None:
            items["tflq.metadata"] = [{"name": m.name, "buffer": self.keys[m.buffer]} for m in module.metadata]
        if module.info:
            items["tflq.info"] = module.info
        if module.warnings:
            items["tflq.warnings"] = module.warnings
        if self.keys:
            items["tflq.buffers"] = self._buffer_rows()
            if len(self.keys) != len(module.buffers) or len(set(self.keys.values())) != len(self.keys):
                items["tflq.buffer_table"] = len(module.buffers)
        return items

    def _signature(self, signature: Signature) -> dict[str, Any]:
        printer = self.functions[signature.function]

        def pairs(entries: list[tuple[str | None, Value]] | None) -> list[list[str | None]] | None:
            return None if entries is None else [[name, printer.name(value)] for name, value in entries]

        row: dict[str, Any] = {"key": signature.key, "function": signature.function}
        row |= {"inputs": pairs(signature.inputs), "outputs": pairs(signature.outputs)}
        return row | {"info": signature.info} if signature.info else row

    def _buffer_rows(self) -> list[Any]:
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


class _FunctionPrinter:
    def __init__(self, parent: _ModulePrinter, function: Function) -> None:
        self.parent = parent
        self.types = parent.types
        self.attributes = AttributePrinter(self.types, self.name)
        self.function = function
        self.index = {value: index for index, value in enumerate(function.tensors)}
        self.arguments = set(function.inputs)
        self.names: dict[Value, str] = {value: f"%arg{i}" for i, value in enumerate(function.inputs)}
        self.count = 0
        self.constants = 0
        self.pending: list[str] = []
        self.no_value_defined = False

    def name(self, value: Value | None) -> str:
        """The SSA name of a value; the line that defines it, if it needs one and has none yet, becomes pending."""
        if value is None:
            if not self.no_value_defined:
                self.no_value_defined = True
                self.pending.append(f'%none = "{NO_VALUE_OP}"() {{value}} : () -> none')
            return "%none"
        known = self.names.get(value)
        if known is not None:
            return known
        if value.producer is not None:
            name = self.names[value] = f"%{self.count}"
            self.count += 1
            return name
        name = self.names[value] = f"%cst{self.constants}"
        self.constants += 1
        self.pending.append(self._constant_line(name, value))
        return name

    def lines(self, symbol: str) -> Iterator[str]:
        if self.function.info.get("declaration"):
            yield self.header(symbol)
            return
        yield f"{self.header(symbol)} {{"
        for op in self.function.ops:
            yield from self._with_pending(self.op_line(op))
        for value in (*self.function.tensors, *self._signature_values()):
            if value.producer is None:
                self.name(value)
        yield from self._with_pending(self.return_line())
        yield "  }"

    def _signature_values(self) -> Iterator[Value]:
        for signature in self.parent.module.signatures or []:
            if self.parent.functions[signature.function] is self:
                for _, value in (*(signature.inputs or ()), *(signature.outputs or ())):
                    yield value

    def _with_pending(self, line: str) -> Iterator[str]:
        for pending in self.pending:
            yield f"    {pending}"
        self.pending.clear()
        yield f"    {line}"

    def header(self, symbol: str | None = None) -> str:
        function = self.function
        arguments = ", ".join(self._argument(value) for value in function.inputs)
        results = [self.types.text(value.type) for value in function.outputs]
        arrow = f" -> {_grouped(results)}" if results else ""
        attributes: dict[str, Any] = {}
        if symbol is not None and symbol != function.name:
            attributes["tflq.name"] = function.name
        info = {key: item for key, item in function.info.items() if key not in ("declaration", "visibility")}
        if info:
            attributes["tflq.info"] = info
        suffix = f" attributes {self.attributes.dictionary(attributes)}" if attributes else ""
        visibility = f"{function.info['visibility']} " if "visibility" in function.info else ""
        label = symbol if symbol is not None else function.name or "function"
        shown = label if BARE_KEY.fullmatch(label) else quote(label)
        return f"  func.func {visibility}@{shown}({arguments}){arrow}{suffix}"

    def _argument(self, value: Value) -> str:
        if self.function.info.get("declaration"):
            return self.types.text(value.type)
        tensor = {f"tflq.{key}": item for key, item in self._tensor(value).items()}
        suffix = f" {self.attributes.dictionary(tensor)}" if tensor else ""
        return f"{self.names[value]}: {self.types.text(value.type)}{suffix}"

    def return_line(self) -> str:
        outputs = self.function.outputs
        if not outputs:
            return "return"
        names = ", ".join(self.name(value) for value in outputs)
        return f"return {names} : {', '.join(self.types.text(value.type) for value in outputs)}"

    def op_line(self, op: Op) -> str:
        operands = [*op.operands, *op.intermediates]
        names = ", ".join([self.name(value) for value in operands])
        results = ", ".join([self.name(value) for value in op.results])
        left = f"{results} = " if results else ""
        text = self.types.text
        types = ["none" if value is None else text(value.type) for value in operands]
        result_types = [text(value.type) for value in op.results]
        attributes = self._op_attributes(op)
        shown = f" {self.attributes.dictionary(attributes)}" if attributes else ""
        suffix = "" if op.location is None else f" {_location(op.location)}"
        if op.name in CAST_OPS and len(operands) == len(op.results) == 1 and None not in operands:
            return f"{left}{op.name} {names}{shown} : {types[0]} to {result_types[0]}{suffix}"
        return f'{left}"{op.name}"({names}){shown} : ({", ".join(types)}) -> {_grouped(result_types)}{suffix}'

    def _op_attributes(self, op: Op) -> Mapping[str, Any]:
        tensors = [self._tensor(value) for value in op.results]
        if not op.info and not op.intermediates and not any(tensors):
            return op.attributes
        attributes = dict(op.attributes)
        if op.intermediates:
            attributes["tflq.intermediates"] = len(op.intermediates)
        if op.info:
            attributes["tflq.info"] = op.info
        if any(tensors):
            attributes["tflq.tensors"] = tensors
        return attributes

    def _tensor(self, value: Value) -> dict[str, Any]:
        """What is known of a tensor beside its type and data."""
        items: dict[str, Any] = {}
        if value.name:
            items["name"] = value.name
        index = self.index.get(value)
        if index is not None:
            items["index"] = index
        key = None if value.buffer is None else self.parent.keys.get(value.buffer)
        if key is not None:
            items["buffer"] = key
        if value.info:
            items["info"] = value.info
        return items

    def _constant_line(self, name: str, value: Value) -> str:
        tensor = self._tensor(value)
        attributes = f"tflq.tensors = [{self.attributes.dictionary(tensor)}]" if tensor else ""
        type_text = self.types.text(value.type)
        if not _is_data(value):
            shown = f" {{{attributes}}}" if attributes else ""
            return f'{name} = "{PLACEHOLDER_OP}"(){shown} : () -> {type_text}'
        elements = self._elements(value)
        comma = ", " if attributes else ""
        return f'{name} = "tfl.pseudo_const"() {{value = {elements}{comma}{attributes}}} : () -> {type_text}'

    def _elements(self, value: Value) -> str:
        buffer, stored = value.buffer, value.type.stripped()
        assert buffer is not None
        plain = TensorType(stored.shape, stored.element) if isinstance(stored, BareType) else stored
        self.parent.shown.add(buffer)
        elements = _inline(value)
        if elements is not None:
            return f"dense<{elements}> : {self.types.text(plain)}"
        name = self.parent.resource(buffer)
        return f"dense_resource<{name}> : {self.types.text(plain)}"


def _is_data(value: Value) -> bool:
    """Whether a value is printed with its data: a constant, or one whose data does not fit its type."""
    return value.producer is None and value.buffer is not None and (value.buffer.data.size > 0 or value.is_constant)


def _inline(value: Value) -> str | None:
    """The elements of a constant, if they are few and give back the very bytes."""
    buffer, storage, shape = value.buffer, value.type.storage, value.type.shape
    if buffer is None or shape is None or None in shape or not storage.numpy:
        return None
    count = math.prod(dim or 0 for dim in shape)
    if storage.bits < 8:
        fits = count <= INLINE_LIMIT and buffer.data.size == -(-count * storage.bits // 8)
        return elements_text(value.array) if fits and np.array_equal(pack(value.array, storage), buffer.data) else None
    if buffer.data.size != count * storage.dtype.itemsize:
        return None
    if storage.kind == "bool" and (buffer.data > 1).any():
        return None
    return elements_text(value.array)


def _location(location: Location) -> str:
    place = f"{quote(location.file)}:{location.function}:{location.operator}"
    if location.tensor:
        place = f"{quote(location.tensor)}({place})"
    return f"loc(fused<{quote(location.opcode)}>[{place}])" if location.opcode else f"loc({place})"


def _grouped(types: list[str]) -> str:
    return types[0] if len(types) == 1 else f"({', '.join(types)})"


def _symbols(module: Module) -> list[str]:
    """One name per function, unlike all others."""
    taken: set[str] = set()
    symbols: list[str] = []
    for index, function in enumerate(module.functions):
        symbol = function.name or f"function_{index}"
        while symbol in taken:
            symbol = f"{symbol}_{index}"
        taken.add(symbol)
        symbols.append(symbol)
    return symbols
