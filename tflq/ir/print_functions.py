"""Functions and ops as text: the generic form, but for casts, returns and linalg.generic.

A constant is printed in the innermost region that holds all its uses, before the first of them, and again in each
quant.region, which reads nothing from outside: as `tfl.pseudo_const`,
`arith.constant` where other dialects use it, `stablehlo.constant` or `tosa.const` where theirs do.

In the standard form all values are numbered in one row, attributes are properties, before the regions, and a location
is the name of the first result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tflq.ir.core import Block, Function, Location, Op, Value, walk
from tflq.ir.print_attributes import AttributePrinter, elements_text, float_literal
from tflq.ir.syntax import BARE_KEY, CAST_OPS, CLOSED_OPS, INLINE_LIMIT, NO_VALUE_OP, PLACEHOLDER_OP, pack, quote
from tflq.ir.types import BareType, ScalarType, TensorType, bf16
from tflq.numerics.bfloat16 import bfloat16_values

if TYPE_CHECKING:
    from tflq.ir.printer import ModulePrinter

__all__ = ["FunctionPrinter", "is_data"]

_ELSEWHERE = ("attributes", "declaration", "result_attributes", "visibility")
"""What of a function's info is not printed as `tflq.info`."""
_OWN = frozenset({"", "ext", "tfl"})
"""Dialects whose ops take `tfl.pseudo_const`; so does a function's return."""
_CONSTANTS = {"stablehlo": "stablehlo.constant", "tosa": "tosa.const"}


class FunctionPrinter:
    def __init__(self, parent: ModulePrinter, function: Function) -> None:
        self.parent = parent
        self.types = parent.types
        self.standard = parent.standard
        self.attributes = AttributePrinter(self.types, self.name, standard=self.standard)
        self.function = function
        self.index = {value: index for index, value in enumerate(function.tensors)}
        self.arguments = set(function.inputs)
        self.names: dict[Value, str] = {value: f"%arg{i}" for i, value in enumerate(function.inputs)}
        self.count = 0
        self.constants = 0
        self.block_arguments = 0
        self.pending: list[str] = []
        self.no_value_defined = False
        self.user: Op | None = None  # the op that is being printed
        self.homes = _homes(function.ops)
        if self.homes:
            self.homes |= dict.fromkeys((*function.tensors, *function.outputs), ())

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
            return self._numbered(value)
        name = self.names[value] = f"%cst{self.constants}"
        self.constants += 1
        self.pending.append(self._constant_line(name, value))
        return name

    def _numbered(self, value: Value) -> str:
        name = self.names[value] = f"%{self.count}"
        self.count += 1
        return name

    def pieces(self, symbol: str) -> Iterator[str]:
        """The function's text: lines, or parts of lines with large constants."""
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
                for _, value in (*(signature.inputs or ()), *(signature.outputs or ())):
                    yield value

    def _with_pending(self, pieces: Iterator[str]) -> Iterator[str]:
        """A line in pieces, after those that define what its first piece names."""
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
        given = self.function.info.get("result_attributes")
        if given is not None and len(given) == len(results):
            shown = [f"{t} {self.attributes.dictionary(d)}" if d else t for t, d in zip(results, given, strict=True)]
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
        """An op, in several lines if there are ops inside of it."""
        return "".join(self.op_pieces(op))

    def op_pieces(self, op: Op, path: tuple[Block, ...] = ()) -> Iterator[str]:
        """An op's text, one piece but for large constants of the standard form."""
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
            custom = None if attributes is not op.attributes else op.custom_text(self.name)
            if custom is not None:
                yield f"{left}{custom} : ({', '.join(types)}) -> {_grouped(result_types)}{suffix}"
                return
            before, self.pending = self.pending, []
            if op.name in CLOSED_OPS:
                regions = self._closed_regions(op, path)
            else:
                for value in self._kept_here(op, path):
                    before += self._defined(value)
                regions = [self._region(region.blocks, path) for region in op.regions]
            self.pending = before
            if op.name == "linalg.generic" and _is_structured(op):
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
        """The regions of an op that reads no constants from outside: those that it shares with others are defined in
        it, too."""
        names, homes, no_value_defined = self.names, self.homes, self.no_value_defined
        self.names = {value: name for value, name in names.items() if not _is_constant(value)}
        self.homes = {}
        for block in (block for region in op.regions for block in region.blocks):
            self.homes |= _homes(block.ops, (*path, block))
        regions = [self._region(region.blocks, path) for region in op.regions]
        self.names, self.homes, self.no_value_defined = names, homes, no_value_defined
        return regions

    def _kept_here(self, op: Op, path: tuple[Block, ...]) -> Iterator[Value | None]:
        """The constants that are used inside of an op and not in one region alone."""
        for inner in walk(block_op for region in op.regions for block in region.blocks for block_op in block.ops):
            for value in inner.operands:
                if (value is None or _is_constant(value)) and self.homes.get(value, ()) == path:
                    self.user = inner
                    yield value

    def _defined(self, value: Value | None) -> list[str]:
        """The lines that define a value, if it has none yet."""
        self.name(value)
        lines, self.pending = self.pending, []
        return lines

    def _region(self, blocks: Sequence[Block], path: tuple[Block, ...]) -> str:
        """`{ ops }`, each line with two blanks for each region around it."""
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
                given = ", ".join(f"{self.names[v]}: {self.types.text(v.type)}" for v in block.arguments)
                lines.append(f"{pad}^bb{number}{f'({given})' if given else ''}:")
            for op in block.ops:
                line = "".join(self.op_pieces(op, (*path, block)))
                lines += [f"{pad}  {pending}" for pending in self.pending]
                self.pending.clear()
                lines.append(f"{pad}  {line}")
        return "\n".join([*lines, f"{pad}}}"])

    def _structured(
        self, op: Op, names: list[str], types: list[str], attributes: Mapping[str, Any], region: str
    ) -> str:
        """linalg.generic, whose generic form MLIR's tools write with enumerations of their own."""
        inputs = int(op.attributes["operandSegmentSizes"][0])
        head = {key: op.attributes[key] for key in ("indexing_maps", "iterator_types")}
        others = {key: v for key, v in attributes.items() if key not in (*head, "operandSegmentSizes")}
        sides = []
        for word, given, kinds in (("ins", names[:inputs], types[:inputs]), ("outs", names[inputs:], types[inputs:])):
            if kinds:
                sides.append(f"{word}({', '.join(given)} : {', '.join(kinds)})")
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
        if not is_data(value):
            shown = f" {{{attributes}}}" if attributes else ""
            return f'{name} = "{PLACEHOLDER_OP}"(){shown} : () -> {type_text}'
        op = self._speller(value)
        bare = op == "arith.constant" and isinstance(value.type, BareType)
        elements = self._literal(value) if bare else self._elements(value, signless=op == "stablehlo.constant")
        if op == "arith.constant" and not attributes:
            return f"{name} = {op} {elements}"
        comma = ", " if attributes else ""
        key = "values" if op == "tosa.const" else "value"
        return f'{name} = "{op}"() {{{key} = {elements}{comma}{attributes}}} : () -> {type_text}'

    def _speller(self, value: Value) -> str:
        """The op that stands for a constant, by what uses it first."""
        dialect = "" if self.user is None else self.user.name.partition(".")[0]
        if dialect in _CONSTANTS and not isinstance(value.type, BareType):
            return _CONSTANTS[dialect]
        element = value.type.element
        plain = isinstance(element, ScalarType) and element.kind in ("int", "bool", "float", "index")
        others = dialect not in _OWN or isinstance(value.type, BareType)
        if plain and others and _inline(value) is not None:
            return "arith.constant"
        return "tfl.pseudo_const"

    def _literal(self, value: Value) -> str:
        """A scalar's value and type: `2.0 : f32`"""
        buffer, storage = value.buffer, value.type.storage
        assert buffer is not None
        self.parent.shown.add(buffer)
        if storage.kind == "bool":
            return "true" if value.array else "false"
        number = _values(value).reshape(()).item()
        shown = float_literal(number, storage) if storage.is_float else str(number)
        return f"{shown} : {storage.name}"

    def _elements(self, value: Value, *, signless: bool = False) -> str:
        """`dense<...> : type`; `signless`: the bits of quantized unsigned storage, as MLIR has them."""
        buffer, stored = value.buffer, value.type.stripped()
        if signless and value.type.quantized and value.type.storage.bits >= 8:
            stored = value.type.stored()
            value = Value(stored, buffer=buffer)
        assert buffer is not None
        plain = TensorType(stored.shape, stored.element) if isinstance(stored, BareType) else stored
        self.parent.shown.add(buffer)
        elements = _inline(value)
        if elements is not None:
            return f"dense<{elements}> : {self.types.text(plain)}"
        name = self.parent.resource(buffer)
        return f"dense_resource<{name}> : {self.types.text(plain)}"


def _homes(ops: Sequence[Op], within: tuple[Block, ...] = ()) -> dict[Value | None, tuple[Block, ...]]:
    """The innermost blocks that hold all uses of each constant (None: of what is left out), where there are blocks; of
    closed ops only their operands count."""
    homes: dict[Value | None, tuple[Block, ...]] = {}

    def visit(ops: Sequence[Op], path: tuple[Block, ...]) -> None:
        for op in ops:
            for value in (*op.operands, *op.intermediates):
                if value is None or _is_constant(value):
                    known = homes.get(value, path)
                    same = [a for a, b in zip(known, path, strict=False) if a is b]
                    homes[value] = tuple(same)
            for region in op.regions if op.name not in CLOSED_OPS else ():
                for block in region.blocks:
                    visit(block.ops, (*path, block))

    if any(op.regions for op in ops):
        visit(ops, within)
    return homes


def _is_constant(value: Value) -> bool:
    return value.producer is None and value.buffer is not None


def _is_structured(op: Op) -> bool:
    """Whether the custom form of linalg.generic says all of it."""
    sizes = op.attributes.get("operandSegmentSizes")
    return len(op.regions) == 1 and isinstance(sizes, np.ndarray) and sizes.size == 2 and not op.intermediates


def _values(value: Value) -> np.ndarray:
    """A constant's elements, bf16 as float32."""
    if value.type.storage is not bf16:
        return value.array
    assert value.buffer is not None
    return bfloat16_values(value.buffer.data.view(np.uint16)).reshape([d or 0 for d in value.type.shape or ()])


def is_data(value: Value) -> bool:
    """Whether a value is printed with its data: a constant, or one whose data does not fit its type."""
    return value.producer is None and value.buffer is not None and (value.buffer.data.size > 0 or value.is_constant)


def _inline(value: Value) -> str | None:
    """The elements of a constant, if they are few and give back the very bytes."""
    buffer, storage, shape = value.buffer, value.type.storage, value.type.shape
    if buffer is None or shape is None or None in shape or not (storage.numpy or storage is bf16):
        return None
    count = math.prod(dim or 0 for dim in shape)
    if storage is bf16:
        return elements_text(_values(value)) if buffer.data.size == 2 * count else None
    if storage.bits < 8:
        fits = count <= INLINE_LIMIT and buffer.data.size == -(-count // (8 // storage.bits))
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
    return types[0] if len(types) == 1 and types[0][0] != "(" else f"({', '.join(types)})"
