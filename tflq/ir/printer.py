"""A module as text, in MLIR's generic form.

Constants are printed as `tfl.pseudo_const` ops where they are first used. What MLIR has no place for is in attributes:
per op `tflq.tensors` (name, place in the tensor table, buffer, info of each result), `tflq.info`, and
`tflq.intermediates` (how many of the last operands are intermediates); the same per argument; per function and per
module what the file says of them. `tflq.buffers` is the buffer table; a row is `unit` where a constant in the body
gives its data.

The standard form has none of this: it is what all versions of MLIR read alike. Ops are in the generic form, constants
ops of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tflq.ir.core import NO_DATA, Buffer, Function, Module, Op, Signature, Value
from tflq.ir.print_attributes import AttributePrinter
from tflq.ir.print_functions import FunctionPrinter, is_data
from tflq.ir.print_types import TypePrinter
from tflq.ir.syntax import BARE_KEY, Symbol, quote

__all__ = ["print_context", "print_module", "standard_pieces"]

SMALL_BLOB = 64
"""Bytes up to which a buffer that no constant shows is written in the table itself."""


def print_module(module: Module, *, elide: bool = False) -> str:
    """The module's text; with `elide` large constants are left out, and the text can be read but not parsed."""
    return ModulePrinter(module, elide).text()


def standard_pieces(module: Module, comment: str, ops: Sequence[Op]) -> Iterator[str]:
    """The module's text in the standard form: after a comment, `ops`, which are the module's own, and functions, with
    what `comments` in their info says. In pieces, each a line or a part of a constant at most."""
    printer = ModulePrinter(module, False, aliases=False, standard=True)
    yield f"// {comment}\n{printer.header()}\n"
    for op in ops:
        yield f"  {FunctionPrinter(printer, Function('', [], [], [])).op_line(op)}\n"
    yield from printer.body()
    yield "}\n"


def print_context(module: Module, index: int, op: Op | None, *, around: int = 3) -> str:
    """The lines around an op of function `index`, which is marked; the function's ends if `op` is None."""
    function = module.functions[index]
    printer = FunctionPrinter(ModulePrinter(module, True, aliases=False), function)
    place = function.ops.index(op) if op in function.ops else 0
    lines = [printer.header()]
    for position, other in enumerate(function.ops):
        line = printer.op_line(other)
        if op is not None and abs(position - place) <= around:
            lines.append(("> " if other is op else "  ") + line)
    lines.append("  " + printer.return_line())
    return "\n".join(line if len(line) < 400 else line[:400] + " ..." for line in lines)


class ModulePrinter:
    def __init__(self, module: Module, elide: bool, *, aliases: bool = True, standard: bool = False) -> None:
        self.module = module
        self.standard = standard
        self.elide = elide
        self.types = TypePrinter(aliases=aliases)
        self.resources: dict[str, Buffer] = {}
        self.shown: set[Buffer] = set()
        self.also_elsewhere: set[Buffer] = set()
        self.keys = self._buffer_keys()
        self.functions = [FunctionPrinter(self, function) for function in module.functions]
        self.symbols = _symbols(module)

    def text(self) -> str:
        body = [*self.body()]
        header = self.header()
        lines = [*self.types.alias_lines(), f"{header}\n{''.join(body)}}}"]
        if self.resources:
            blobs = ((name, buffer.data.tobytes().hex()) for name, buffer in self.resources.items())
            entries = ",\n".join(f'      {name}: "0x04000000{data}"' for name, data in blobs)
            lines += ["", "{-#", "  dialect_resources: {", "    builtin: {", entries, "    }", "  }", "#-}"]
        return "\n".join(lines) + "\n"

    def header(self) -> str:
        name = self.module.info.get("name")
        shown = "" if name is None else f" @{name if BARE_KEY.fullmatch(name) else quote(name)}"
        attributes = self.module.info.get("attributes", {}) if self.standard else self._attributes()
        if attributes:
            shown += f" attributes {AttributePrinter(self.types).dictionary(attributes)}"
        return f"module{shown} {{"

    def body(self) -> Iterator[str]:
        """The functions."""
        for printer, symbol in zip(self.functions, self.symbols, strict=True):
            yield from printer.pieces(symbol)

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
                    yield value.buffer, value not in arguments and is_data(value)
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
        info = {key: item for key, item in module.info.items() if key not in ("attributes", "name")}
        if info:
            items["tflq.info"] = info
        if module.warnings:
            items["tflq.warnings"] = module.warnings
        if self.keys:
            items["tflq.buffers"] = self._buffer_rows()
            if len(self.keys) != len(module.buffers) or len(set(self.keys.values())) != len(self.keys):
                items["tflq.buffer_table"] = len(module.buffers)
        return items | module.info.get("attributes", {})

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
