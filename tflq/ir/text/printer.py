"""A module as text, in MLIR's generic form, except for casts, returns and linalg.generic.

A constant is printed in the innermost region that holds all its uses, before the first of them, and again in each
quant.region, which reads nothing from outside. It is a `tfl.pseudo_const`; an `arith.constant` if another dialect uses
it; a `stablehlo.constant` or `tosa.const` if these do.

What MLIR has no place for is in attributes. An op has `tflq.tensors` (name, place in the tensor table, buffer and info
of each result), `tflq.info`, and `tflq.intermediates` (how many of the last operands are intermediates). Arguments have
the same; functions and the module what the file says of them. `tflq.buffers` is the buffer table; a row is `unit` if a
constant in the body has its data.

The standard form, which all versions of MLIR read alike, has none of these attributes. Every value has a number, other
attributes are properties, before the regions, and a location is the name of the first result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tflq.ir.facts import walk
from tflq.ir.module import Function, Metadata, Module, Signature
from tflq.ir.ops import Block, Location, Op, Value
from tflq.ir.text.lexer import (
    ARITH_CONSTANT,
    BARE_KEY,
    CAST_OPS,
    CLOSED_OPS,
    NO_VALUE_OP,
    PLACEHOLDER_OP,
    STABLEHLO_CONSTANT,
    STRUCTURED_OP,
    TFL_CONSTANT,
    TOSA_CONSTANT,
    quote,
)
from tflq.ir.text.print_types import AttributePrinter, ConstantPrinter, TypePrinter, inline, is_constant, is_data
from tflq.ir.types import BareType, ScalarType

_ELSEWHERE = ("attributes", "declaration", "result_attributes", "visibility")
"""The parts of a function's info that are not printed as `tflq.info`."""
_TFLITE_DIALECTS = frozenset({"", "ext", "tfl"})
"""Dialects whose ops take `tfl.pseudo_const`, as the return of a function does."""
_CONSTANTS = {"stablehlo": STABLEHLO_CONSTANT, "tosa": TOSA_CONSTANT}


def print_module(module: Module, *, elide: bool = False) -> str:
    """The text of a module. elide: leave out large constants; such a text cannot be parsed."""
    return ModulePrinter(module, elide).text()


def standard_pieces(module: Module, comment: str, ops: Sequence[Op]) -> Iterator[str]:
    """The text of a module in the standard form, in pieces: a comment, the module's own `ops`, and the functions, each
    after the `comments` in its info."""
    printer = ModulePrinter(module, False, aliases=False, standard=True)
    yield f"// {comment}\n{printer.header()}\n"
    for op in ops:
        yield f"  {FunctionPrinter(printer, Function('', [], [], [])).op_line(op)}\n"
    yield from printer.body()
    yield "}\n"


def print_context(module: Module, index: int, op: Op | None, *, around: int = 3) -> str:
    """The lines around an op of function `index`, which is marked; without an op the function's first and last line."""
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


def print_op(op: Op) -> str:
    """The line of an op by itself: `repr(op)`. Values have the names of their tensors, or else numbers."""
    printer = FunctionPrinter(ModulePrinter(Module([]), True, aliases=False, standard=True), Function("", [], [], []))
    for number, value in enumerate(dict.fromkeys(op.tensors)):
        if value.name:
            name = "%" + re.sub(r"[^\w.$-]+", "_", value.name.rpartition(";")[2].rpartition("/")[2])
            printer.names[value] = f"{name}_{number}" if name in printer.names.values() else name
        elif value.producer is None and not value.is_constant:
            printer.names.setdefault(value, f"%arg{number}")
    return printer.op_line(op)


class ModulePrinter:
    def __init__(self, module: Module, elide: bool, *, aliases: bool = True, standard: bool = False) -> None:
        self.module = module
        self.standard = standard
        self.types = TypePrinter(aliases=aliases)
        self.constants = ConstantPrinter(module, self.types, elide)
        self.functions = [FunctionPrinter(self, function) for function in module.functions]
        self.symbols = _symbols(module)

    def text(self) -> str:
        body = [*self.body()]
        header = self.header()
        lines = [*self.types.alias_lines(), f"{header}\n{''.join(body)}}}", *self.constants.section()]
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

    def _attributes(self) -> dict[str, Any]:
        module = self.module
        signatures, metadata = module.signatures, module.metadata
        entries = {
            "description": module.description,
            "source": module.source or None,
            "operator_codes": module.operator_codes or None,
            "signatures": None if signatures is None else [self._signature(s) for s in signatures],
            "metadata": None if metadata is None else [self._metadata(entry) for entry in metadata],
            "info": {key: item for key, item in module.info.items() if key not in ("attributes", "name")} or None,
            "warnings": module.warnings or None,
        }
        items: dict[str, Any] = {"tflq.version": module.version}
        items |= {f"tflq.{key}": value for key, value in entries.items() if value is not None}
        if keys := self.constants.keys:
            items["tflq.buffers"] = self.constants.rows()
            if len(keys) != len(module.buffers) or len(set(keys.values())) != len(keys):
                items["tflq.buffer_table"] = len(module.buffers)
        return items | module.info.get("attributes", {})

    def _metadata(self, entry: Metadata) -> dict[str, Any]:
        return {"name": entry.name, "buffer": self.constants.keys[entry.buffer]}

    def _signature(self, signature: Signature) -> dict[str, Any]:
        printer = self.functions[signature.function]

        def pairs(entries: list[tuple[str | None, Value]] | None) -> list[list[str | None]] | None:
            return None if entries is None else [[name, printer.name(value)] for name, value in entries]

        row: dict[str, Any] = {"key": signature.key, "function": signature.function}
        row |= {"inputs": pairs(signature.inputs), "outputs": pairs(signature.outputs)}
        return row | {"info": signature.info} if signature.info else row


def _symbols(module: Module) -> list[str]:
    """One name per function, unlike all others."""
    used: set[str] = set()
    symbols: list[str] = []
    for index, function in enumerate(module.functions):
        symbol = function.name or f"function_{index}"
        while symbol in used:
            symbol = f"{symbol}_{index}"
        used.add(symbol)
        symbols.append(symbol)
    return symbols


class FunctionPrinter:
    def __init__(self, parent: ModulePrinter, function: Function) -> None:
        self.parent = parent
        self.types = parent.types
        self.constants = parent.constants
        self.standard = parent.standard
        self.attributes = AttributePrinter(self.types, self.name, standard=self.standard)
        self.function = function
        self.index = {value: index for index, value in enumerate(function.tensors)}
        self.arguments = set(function.inputs)
        self.names: dict[Value, str] = {value: f"%arg{i}" for i, value in enumerate(function.inputs)}
        self.count = 0
        self.constant_count = 0
        self.block_arguments = 0
        self.pending: list[str] = []
        self.no_value_defined = False
        self.user: Op | None = None  # the op that is being printed
        self.homes = _homes(function.ops)
        if self.homes:
            self.homes |= dict.fromkeys((*function.tensors, *function.outputs), ())

    def name(self, value: Value | None) -> str:
        """The SSA name of a value. If it needs a line that defines it and has none yet, the line becomes pending."""
        if value is None:
            if not self.no_value_defined:
                self.no_value_defined = True
                self.pending.append(f'%none = "{NO_VALUE_OP}"() {{value}} : () -> none')
            return "%none"
        known = self.names.get(value)
        if known is not None:
            return known
        if value.producer is not None:
            return self._numbered(value)
        name = self.names[value] = f"%cst{self.constant_count}"
        self.constant_count += 1
        self.pending.append(self._constant_line(name, value))
        return name

    def _numbered(self, value: Value) -> str:
        name = self.names[value] = f"%{self.count}"
        self.count += 1
        return name

    def pieces(self, symbol: str) -> Iterator[str]:
        """The text of the function: lines, or parts of lines with large constants."""
        if self.function.info.get("declaration"):
            yield f"{self.header(symbol)}\n"
            return
        for comment in self.function.info.get("comments", ()) if self.standard else ():
            yield f"  // {comment}\n"
        yield f"{self.header(symbol)} {{\n"
        for op in self.function.ops:
            yield from self._with_pending(self.op_pieces(op))
        for value in (*self.function.tensors, *self._signature_values()):
            if value.producer is None:
                self.name(value)
        yield from self._with_pending(iter([self.return_line()]))
        yield "  }\n"

    def _signature_values(self) -> Iterator[Value]:
        for signature in self.parent.module.signatures or []:
            if self.parent.functions[signature.function] is self:
                yield from signature.values

    def _with_pending(self, pieces: Iterator[str]) -> Iterator[str]:
        """A line in pieces, after the lines that define what its first piece names."""
        first = next(pieces)
        for pending in self.pending:
            yield f"    {pending}\n"
        self.pending.clear()
        yield f"    {first}"
        yield from pieces
        yield "\n"

    def header(self, symbol: str | None = None) -> str:
        function = self.function
        arguments = ", ".join(self._argument(value) for value in function.inputs)
        attributes: dict[str, Any] = {}
        if symbol is not None and symbol != function.name:
            attributes["tflq.name"] = function.name
        info = {key: item for key, item in function.info.items() if key not in _ELSEWHERE}
        if info and not self.standard:
            attributes["tflq.info"] = info
        attributes |= function.info.get("attributes", {})
        suffix = f" attributes {self.attributes.dictionary(attributes)}" if attributes else ""
        visibility = f"{function.info['visibility']} " if "visibility" in function.info else ""
        label = symbol if symbol is not None else function.name or "function"
        shown = label if BARE_KEY.fullmatch(label) else quote(label)
        return f"  func.func {visibility}@{shown}({arguments}){self._arrow()}{suffix}"

    def _arrow(self) -> str:
        results = [self.types.text(value.type) for value in self.function.outputs]
        listed = self.function.info.get("result_attributes")
        if listed is not None and len(listed) == len(results):
            shown = [f"{t} {self.attributes.dictionary(d)}" if d else t for t, d in zip(results, listed, strict=True)]
            return f" -> ({', '.join(shown)})"
        return f" -> {_grouped(results)}" if results else ""

    def _argument(self, value: Value) -> str:
        tensor: dict[str, Any] = {}
        declaration = self.function.info.get("declaration")
        if not declaration:
            tensor = {f"tflq.{key}": item for key, item in self._tensor(value).items()}
            info = {key: item for key, item in value.info.items() if key != "attributes"}
            if info != value.info:
                tensor.pop("tflq.info")
                tensor |= {"tflq.info": info} if info else {}
        tensor |= value.info.get("attributes", {})
        suffix = f" {self.attributes.dictionary(tensor)}" if tensor else ""
        kind = self.types.text(value.type)
        return f"{kind}{suffix}" if declaration else f"{self.names[value]}: {kind}{suffix}"

    def return_line(self) -> str:
        outputs = self.function.outputs
        if not outputs:
            return "return"
        names = ", ".join(self.name(value) for value in outputs)
        return f"return {names} : {', '.join(self.types.text(value.type) for value in outputs)}"

    def op_line(self, op: Op) -> str:
        """An op, in several lines if there are ops inside it."""
        return "".join(self.op_pieces(op))

    def op_pieces(self, op: Op, path: tuple[Block, ...] = ()) -> Iterator[str]:
        """The text of an op, in one piece unless it is a large constant of the standard form."""
        self.user = op
        operands = [*op.operands, *op.intermediates]
        names = ", ".join([self.name(value) for value in operands])
        results = ", ".join([self.name(value) for value in op.results])
        left = f"{results} = " if results else ""
        text = self.types.text
        types = ["none" if value is None else text(value.type) for value in operands]
        result_types = [text(value.type) for value in op.results]
        attributes = self._op_attributes(op)
        suffix = self._location(op)
        if op.regions:
            custom = op.custom_text(self.name) if attributes is op.attributes else None
            if custom is not None:
                yield f"{left}{custom} : ({', '.join(types)}) -> {_grouped(result_types)}{suffix}"
                return
            before, self.pending = self.pending, []
            if op.name in CLOSED_OPS:
                regions = self._closed_regions(op, path)
            else:
                for value in self._constants_here(op, path):
                    before += self._defined(value)
                regions = [self._region(region.blocks, path) for region in op.regions]
            self.pending = before
            if op.name == STRUCTURED_OP and _is_structured(op):
                yield f"{left}{self._structured(op, names.split(', '), types, attributes, regions[0])}{suffix}"
                return
            inside = f" ({', '.join(regions)})"
        else:
            inside = ""
        end = f" : ({', '.join(types)}) -> {_grouped(result_types)}{suffix}"
        if self.standard and attributes:
            large = self.attributes.large(attributes)
            if large is None:
                yield f'{left}"{op.name}"({names}) <{self.attributes.dictionary(attributes)}>{inside}{end}'
                return
            yield f'{left}"{op.name}"({names}) <{{{large[0]} = '
            yield from large[1]
            yield f"}}>{inside}{end}"
            return
        shown = f" {self.attributes.dictionary(attributes)}" if attributes else ""
        if op.name in CAST_OPS and len(operands) == len(op.results) == 1 and None not in operands:
            yield f"{left}{op.name} {names}{shown} : {types[0]} to {result_types[0]}{suffix}"
        else:
            yield f'{left}"{op.name}"({names}){inside}{shown}{end}'

    def _location(self, op: Op) -> str:
        if self.standard:
            return f" loc({quote(op.result.name)})" if op.results and op.result.name else ""
        return "" if op.location is None else f" {_location(op.location)}"

    def _closed_regions(self, op: Op, path: tuple[Block, ...]) -> list[str]:
        """The regions of an op that reads nothing from outside: constants that it shares with other ops are defined in
        it again."""
        names, homes, no_value_defined = self.names, self.homes, self.no_value_defined
        self.names = {value: name for value, name in names.items() if not is_constant(value)}
        self.homes = {}
        for block in (block for region in op.regions for block in region.blocks):
            self.homes |= _homes(block.ops, (*path, block))
        regions = [self._region(region.blocks, path) for region in op.regions]
        self.names, self.homes, self.no_value_defined = names, homes, no_value_defined
        return regions

    def _constants_here(self, op: Op, path: tuple[Block, ...]) -> Iterator[Value | None]:
        """The constants that several regions of an op use."""
        for inner in walk(block_op for region in op.regions for block in region.blocks for block_op in block.ops):
            for value in inner.operands:
                if (value is None or is_constant(value)) and self.homes.get(value, ()) == path:
                    self.user = inner
                    yield value

    def _defined(self, value: Value | None) -> list[str]:
        """The lines that define a value, if nothing does yet."""
        self.name(value)
        lines, self.pending = self.pending, []
        return lines

    def _region(self, blocks: Sequence[Block], path: tuple[Block, ...]) -> str:
        """`{ ops }`; each line is indented by two blanks for each region around it."""
        pad = "  " * (len(path) + 2)
        lines = ["{"]
        for number, block in enumerate(blocks):
            for value in block.arguments:
                if self.standard:
                    self._numbered(value)
                else:
                    self.names[value] = f"%b{self.block_arguments}"
                    self.block_arguments += 1
            if block.arguments or number:
                arguments = ", ".join(f"{self.names[v]}: {self.types.text(v.type)}" for v in block.arguments)
                lines.append(f"{pad}^bb{number}{f'({arguments})' if arguments else ''}:")
            for op in block.ops:
                line = "".join(self.op_pieces(op, (*path, block)))
                lines += [f"{pad}  {pending}" for pending in self.pending]
                self.pending.clear()
                lines.append(f"{pad}  {line}")
        return "\n".join([*lines, f"{pad}}}"])

    def _structured(
        self, op: Op, names: list[str], types: list[str], attributes: Mapping[str, Any], region: str
    ) -> str:
        """The custom form of linalg.generic. In its generic form MLIR's tools use enumerations of their own."""
        inputs = int(op.attributes["operandSegmentSizes"][0])
        head = {key: op.attributes[key] for key in ("indexing_maps", "iterator_types")}
        others = {key: v for key, v in attributes.items() if key not in (*head, "operandSegmentSizes")}
        sides = []
        for word, names_of_side, kinds in (
            ("ins", names[:inputs], types[:inputs]),
            ("outs", names[inputs:], types[inputs:]),
        ):
            if kinds:
                sides.append(f"{word}({', '.join(names_of_side)} : {', '.join(kinds)})")
        shown = f" attrs = {self.attributes.dictionary(others)}" if others else ""
        results = [self.types.text(value.type) for value in op.results]
        arrow = f" -> {_grouped(results)}" if results else ""
        return f"{op.name} {self.attributes.dictionary(head)} {' '.join(sides)}{shown} {region}{arrow}"

    def _op_attributes(self, op: Op) -> Mapping[str, Any]:
        if self.standard:
            return op.attributes
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
        """The known facts of a tensor, except for its type and data."""
        items: dict[str, Any] = {}
        if value.name:
            items["name"] = value.name
        index = self.index.get(value)
        if index is not None:
            items["index"] = index
        key = None if value.buffer is None else self.constants.keys.get(value.buffer)
        if key is not None:
            items["buffer"] = key
        if value.info:
            items["info"] = value.info
        return items

    def _constant_line(self, name: str, value: Value) -> str:
        tensor = self._tensor(value)
        attributes = f"tflq.tensors = [{self.attributes.dictionary(tensor)}]" if tensor else ""
        type_text = self.types.text(value.type)
        if not is_data(value):
            shown = f" {{{attributes}}}" if attributes else ""
            return f'{name} = "{PLACEHOLDER_OP}"(){shown} : () -> {type_text}'
        op = self._constant_op(value)
        bare = op == ARITH_CONSTANT and isinstance(value.type, BareType)
        signless = op == STABLEHLO_CONSTANT
        elements = self.constants.literal(value) if bare else self.constants.elements(value, signless=signless)
        if op == ARITH_CONSTANT and not attributes:
            return f"{name} = {op} {elements}"
        comma = ", " if attributes else ""
        key = "values" if op == TOSA_CONSTANT else "value"
        return f'{name} = "{op}"() {{{key} = {elements}{comma}{attributes}}} : () -> {type_text}'

    def _constant_op(self, value: Value) -> str:
        """The name of the op that stands for a constant. It depends on the op that uses it first."""
        dialect = "" if self.user is None else self.user.name.partition(".")[0]
        if dialect in _CONSTANTS and not isinstance(value.type, BareType):
            return _CONSTANTS[dialect]
        element = value.type.element
        plain = isinstance(element, ScalarType) and element.kind in ("int", "bool", "float", "index")
        others = dialect not in _TFLITE_DIALECTS or isinstance(value.type, BareType)
        if plain and others and inline(value) is not None:
            return ARITH_CONSTANT
        return TFL_CONSTANT


def _homes(ops: Sequence[Op], within: tuple[Block, ...] = ()) -> dict[Value | None, tuple[Block, ...]]:
    """The innermost block that holds all uses of each constant, after the blocks around it; None is an operand that is
    left out. Empty if no op has regions. Of closed ops only the operands count."""
    homes: dict[Value | None, tuple[Block, ...]] = {}

    def visit(ops: Sequence[Op], path: tuple[Block, ...]) -> None:
        for op in ops:
            for value in (*op.operands, *op.intermediates):
                if value is None or is_constant(value):
                    known = homes.get(value, path)
                    same = [a for a, b in zip(known, path, strict=False) if a is b]
                    homes[value] = tuple(same)
            for region in op.regions if op.name not in CLOSED_OPS else ():
                for block in region.blocks:
                    visit(block.ops, (*path, block))

    if any(op.regions for op in ops):
        visit(ops, within)
    return homes


def _is_structured(op: Op) -> bool:
    """Whether the custom form of linalg.generic can express an op."""
    sizes = op.attributes.get("operandSegmentSizes")
    has_parts = isinstance(sizes, np.ndarray) and sizes.size == 2 and op.attributes.keys() >= _OF_STRUCTURED
    return has_parts and len(op.regions) == 1 and not op.intermediates


_OF_STRUCTURED: Final = frozenset(("indexing_maps", "iterator_types"))


def _location(location: Location) -> str:
    place = f"{quote(location.file)}:{location.function}:{location.operator}"
    if location.tensor:
        place = f"{quote(location.tensor)}({place})"
    return f"loc(fused<{quote(location.opcode)}>[{place}])" if location.opcode else f"loc({place})"


def _grouped(types: list[str]) -> str:
    return types[0] if len(types) == 1 and types[0][0] != "(" else f"({', '.join(types)})"
