"""Operations from text: attributes (the counterpart of `AttributePrinter`), the generic form, regions and blocks, and
what every op ends with, in either form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tflq.ir.attributes import AffineMap, Opaque, TypedFloat, TypedInt, TypedString
from tflq.ir.facts import walk
from tflq.ir.ops import NO_INFO, Block, Buffer, Location, Op, Region, Value
from tflq.ir.text.lexer import CLOSED_OPS, CONSTANT_OPS, NO_VALUE_OP, PLACEHOLDER_OP, REPEATED, Symbol
from tflq.ir.text.parse_types import ElementParser
from tflq.ir.text.print_types import AttributePrinter, TypePrinter, type_text
from tflq.ir.types import ElementType, ScalarType, TensorType, bf16, f64, i64
from tflq.numerics.signless import bfloat16_bits

_INSIDE: Mapping[str, tuple[type, str]] = {
    "#tflq.bytes": (str, "a string"),
    "#tflq.value": (str, "a string"),
    "#tflq.tuple": (list, "a list"),
    "#tflq.scalar": (np.ndarray, "dense<...>"),
}
"""Types of what stands inside of an attribute of tflq's own, and what messages call them."""
_NUMBER_AHEAD = re.compile(r"[-+]?\d")
_ATTRIBUTE_ALIAS = re.compile(r"#[A-Za-z_][\w$.]*")
_TYPE_AHEAD = re.compile(r"(?:tensor|vector|memref|tuple|complex)<|[!(]|u?i\d+\b|b?f\d\w*|(?:index|none)\b")
_BY_TEXT = re.compile(r"(?:affine_set|opaque|sparse|strided)(?=<)")
_ALIASES = re.compile(r'"(?:[^"\\\n]|\\.)*"|([!#][A-Za-z_][\w$]*)(?![\w$.<])')


@dataclass(eq=False)
class Blob:
    """`dense_resource<name> : type`: bytes kept at the end of the text."""

    buffer: Buffer
    type: TensorType


class AttributeParser(ElementParser):
    """A scanner that reads attributes. `blobs`: the resources of the text, by name."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self.blobs: dict[str, Buffer] = {}
        self.attribute_aliases: dict[str, Any] = {}

    def dictionary(self) -> dict[str, Any]:
        """`{key = value, flag, "other key" = value}`"""
        self.expect("{")
        items: dict[str, Any] = {}
        for _ in self.items("}"):
            at = self.pos
            name = self.name_or_string("an attribute's name")
            if name in items:
                self.fail(f"'{name}' is given twice", at)
            items[name] = self.attribute() if self.accept("=") else None
        return items

    def attributes(self) -> dict[str, Any]:
        """A dictionary, or nothing."""
        return self.dictionary() if self.peek("{") else {}

    def properties(self) -> dict[str, Any]:
        """`<{...}>`, or nothing."""
        if not self.accept("<"):
            return {}
        items = self.dictionary()
        self.expect(">")
        return items

    def entry(self, items: Mapping[str, Any], key: str, kind: type, default: Any, at: int) -> Any:
        """The entry `key` of a dictionary that `tflq` prints. It must be of a `kind`, unless it is the default."""
        value = items.get(key, default)
        if value is not default and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            self.fail(f"'{key}' must be a {kind.__name__}", at)
        return value

    def attribute(self) -> Any:
        return self.typed_attribute()[0]

    def typed_attribute(self) -> tuple[Any, TensorType | ElementType | None]:
        """An attribute's value and the type that follows it, if one does."""
        text = self.string_or_none()
        if text is not None:
            kind = self._optional_type()
            return text if kind is None else TypedString(text, kind), kind
        if self.accept("["):
            with self.nested():
                return [self.attribute() for _ in self.items("]")], None
        if self.peek("{"):
            with self.nested():
                return self.dictionary(), None
        if self.accept("@"):
            return self._symbol(), None
        if self.peek("#"):
            return self._special(), None
        if _NUMBER_AHEAD.match(self.text, self.pos):
            return self._number()
        return self._word_attribute()

    def _symbol(self) -> Symbol | Opaque:
        """The symbol after `@`: a name; or `name::@name`, of which only the text is kept."""
        start = self.pos
        name = self.name_or_string("a symbol's name")
        if not self.peek("::"):
            return Symbol(name)
        while self.accept("::"):
            self.expect("@")
            self.name_or_string("a symbol's name")
        return Opaque(f"@{self.text[start : self.pos]}")

    def _word_attribute(self) -> tuple[Any, TensorType | ElementType | None]:
        word = self.peek_word()
        if word in ("true", "false"):
            self.pos += len(word)
            return word == "true", self._optional_type()
        if self.accept_word("unit"):
            return None, None
        if word == "dense":
            return self.dense()
        if word == "dense_resource":
            return self._blob()
        if word == "array":
            return self.array(), None
        if self.accept_word("affine_map"):
            return AffineMap.of(word + self.balanced()), None
        if (by_text := self.match(_BY_TEXT)) is not None:
            return self._typed_text(by_text + self.resolved(self.balanced())), None
        if not _TYPE_AHEAD.match(self.text, self.pos):
            self.fail("expected an attribute")
        return self.type_attribute(), None

    def _typed_text(self, text: str) -> Opaque:
        """An attribute of which only the text is kept, with the type that follows."""
        kind = self._optional_type()
        return Opaque(text if kind is None else f"{text} : {type_text(kind)}")

    def resolved(self, text: str) -> str:
        """A text in which aliases are replaced by what they stand for."""
        printer = AttributePrinter(TypePrinter(aliases=False))

        def meaning(match: re.Match[str]) -> str:
            name = match[1] or ""
            if name in self.type_aliases:
                return printer.types.text(self.type_aliases[name])
            return printer.text(self.attribute_aliases[name]) if name in self.attribute_aliases else match[0]

        return _ALIASES.sub(meaning, text)

    def _optional_type(self) -> TensorType | ElementType | None:
        return self.type() if self.accept(":") else None

    def _number(self) -> tuple[Any, TensorType | ElementType | None]:
        at = self.pos
        text = self.number()
        kind = self._optional_type()
        if isinstance(kind, ScalarType) and kind.is_float:
            value = float(self.float_bits(text, kind, at)) if text.startswith("0x") else float(text)
            return (value if kind is f64 else TypedFloat(self.rounded(value, kind), kind)), kind
        if text.startswith("0x"):
            number = int(text, 16)
        elif "." in text or "e" in text or "E" in text:
            return float(text), kind or f64
        else:
            number = int(text)
        return (number if kind is None or kind is i64 else TypedInt(number, kind)), kind

    def _special(self) -> Any:
        at = self.pos
        name = self.take(_ATTRIBUTE_ALIAS, "an attribute")
        if name in self.attribute_aliases:
            return self.attribute_aliases[name]
        if name not in _INSIDE:
            if "." not in name and not self.text.startswith("<", self.pos):
                self.fail(f"the alias '{name}' is not defined", at)
            inner = self.resolved(self.balanced()) if self.text.startswith("<", self.pos) else ""
            return self._typed_text(name + inner)
        self.expect("<")
        with self.nested():
            inside: Any = self.attribute()
        self.expect(">")
        kind, what = _INSIDE[name]
        fits = isinstance(inside, kind)
        if not fits:
            self.fail(f"{name} holds {what}", at)
        if name == "#tflq.bytes":
            return self.hexadecimal(inside, at)
        if name == "#tflq.value":
            return self.value_named(inside, at)
        return tuple(inside) if name == "#tflq.tuple" else inside[()]

    def value_named(self, name: str, at: int) -> Any:
        """The value that an SSA name stands for, where names can be defined."""
        self.fail(f"{name} is not defined here", at)

    def _blob(self) -> tuple[Blob, TensorType]:
        self.word("dense_resource")
        self.expect("<")
        self.skip()
        at = self.pos
        buffer = self.blob(self.word("a resource's name"), at)
        self.expect(">")
        self.expect(":")
        at = self.pos
        kind = self.type()
        if not isinstance(kind, TensorType):
            self.fail("a resource needs a tensor type", at)
        return Blob(buffer, kind), kind

    def blob(self, name: str, at: int) -> Buffer:
        if name == "__elided__":
            self.fail("the data was left out when this text was printed (elide=True), so it cannot be read back", at)
        buffer = self.blobs.get(name)
        if buffer is None:
            self.fail(f"the text has no resource '{name}'", at)
        return buffer


Types = list[TensorType | None]

_SSA = re.compile(r"%(?:\d+|[A-Za-z_$.-][\w$.-]*)(?:#\d+)?")
_LABEL = re.compile(r"\^[\w$.-]+")
_NONE = "none"
_MOST_RESULTS = 1 << 16


@dataclass
class Scope:
    """Visible names: values, the function's tensor table, and the place of the next op."""

    symbols: dict[str, Value | None] = field(default_factory=dict)
    table: dict[int, Value] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)


@dataclass
class OpText:
    """The content of an op's text: the names of its operands, their types (`operand_types`), those of its results
    (`types`), attributes and regions. And the number of results it names, and its place."""

    name: str
    operands: list[str] = field(default_factory=list)
    operand_types: Types = field(default_factory=list)
    types: Types = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    regions: list[Region] = field(default_factory=list)
    results: int = 0
    at: int = 0


class OpParser(AttributeParser):
    """A scanner that reads ops. Subclasses add custom forms and a module's buffer table."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self.scope = Scope()

    def custom(self, name: str, results: int, at: int) -> OpText:
        """The custom form after an op's bare name."""
        raise NotImplementedError

    def shared_buffer(self, key: int, data: Buffer | None, at: int) -> Buffer:
        """Row `key` of the module's buffer table, which `data` fills or must agree with."""
        raise NotImplementedError

    def value_named(self, name: str, at: int) -> Value | None:
        if name not in self.scope.symbols:
            self.fail(f"{name} is not defined before this", at)
        return self.scope.symbols[name]

    def op(self, at: int) -> None:
        """Reads an op and appends it to the scope's ops."""
        names = self._results()
        generic = self.string_or_none()
        form = self.generic(generic) if generic is not None else self.custom(self.word("an op's name"), len(names), at)
        self._finish(names, form, at)

    def generic(self, name: str) -> OpText:
        """`(%x, ...) <dict>? (regions)? dict? : (types) -> types`"""
        form = OpText(name)
        self.expect("(")
        form.operands = self.operand_names()
        self.expect(")")
        form.attributes = self.properties()
        if self.accept("("):
            form.regions = [self.region() for _ in self.items(")")]
        form.attributes |= self.attributes()
        self.expect(":")
        form.operand_types, form.types = self.types(), self.arrow_types()
        return form

    def region(self, arguments: Sequence[tuple[str, Value]] = ()) -> Region:
        """`{ ops }` or `{ ^label(%x: type): ops ... }`. What is defined inside is not visible after it."""
        outer, ops = self.scope.symbols, self.scope.ops
        self.scope.symbols = dict(outer)
        self.scope.symbols.update(arguments)
        self.expect("{")
        blocks: list[Block] = []
        with self.nested():
            if not self.peek("^") and not self.peek("}"):
                blocks.append(self._block([value for _, value in arguments]))
            while not self.accept("}"):
                blocks.append(self._block(self.block_arguments()))
        self.scope.symbols, self.scope.ops = outer, ops
        return Region(blocks or [Block([value for _, value in arguments], [])])

    def block_arguments(self) -> list[Value]:
        """`^label(%x: type, ...):`, the head of a block."""
        self.take(_LABEL, "a block")
        values: list[Value] = []
        for _ in self.items(")") if self.accept("(") else ():
            at = self.pos
            name = self.take(_SSA, "an argument")
            self.expect(":")
            value = Value(self.value_type())
            self.location()
            self.define(name, value, at)
            values.append(value)
        self.expect(":")
        return values

    def _block(self, arguments: list[Value]) -> Block:
        block = Block(arguments, [])
        self.scope.ops = block.ops
        while not self.peek("}") and not self.peek("^"):
            self.op(self.pos)
        return block

    def types(self) -> Types:
        """`(type, type, ...)`, with None for `none`."""
        self.expect("(")
        return [None if self.accept_word(_NONE) else self.value_type() for _ in self.items(")")]

    def arrow_types(self) -> Types:
        self.expect("->")
        if self.peek("("):
            return self.types()
        return [None] if self.accept_word(_NONE) else [self.value_type()]

    def define(self, name: str, value: Value | None, at: int) -> None:
        if name in self.scope.symbols:
            self.fail(f"{name} is defined a second time", at)
        self.scope.symbols[name] = value

    def tensor(self, value: Value, tensor: dict[str, Any], at: int) -> Value:
        """Gives a value the name, info, buffer and index that the text states for its tensor."""
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

    def operand_name(self) -> str:
        return self.take(_SSA, "an operand")

    def operand_name_or_none(self) -> str | None:
        """The name of a value, if one is next."""
        return self.match(_SSA)

    def operand_names(self) -> list[str]:
        names: list[str] = []
        while (name := self.match(_SSA)) is not None:
            names.append(name)
            if not self.accept(","):
                break
        return names

    def use(self, names: list[str], types: Types, at: int) -> list[Any]:
        """The values with these names, which must have these types."""
        if len(names) != len(types):
            self.fail(f"{len(names)} operands, but {len(types)} types", at)
        values: list[Value | None] = []
        for name, kind in zip(names, types, strict=True):
            value = self.value_named(name, at)
            if (None if value is None else value.type) != kind:
                self.fail(f"{name} is not of the type given for it here", at)
            values.append(value)
        return values

    def type_of(self, name: str, at: int) -> TensorType:
        """The type of a value that is defined before this."""
        value = self.value_named(name, at)
        if value is None:
            self.fail(f"{name} has no type", at)
        return value.type

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

    def _finish(self, names: list[str], form: OpText, at: int) -> None:
        op, attributes, types = form.name, form.attributes, form.types
        operands = self.use(form.operands, form.operand_types, at)
        location = self.location()
        if len(names) != len(types):
            self.fail(f"{len(names)} results, but {len(types)} types", at)
        if op == NO_VALUE_OP:
            for name in names:
                self.define(name, None, at)
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
            self.define(name, self.tensor(value, tensor, at), at)
            results.append(value)
        if op in CONSTANT_OPS or op == PLACEHOLDER_OP:
            return
        count = len(operands) - self.entry(attributes, "tflq.intermediates", int, 0, at)
        if not 0 <= count <= len(operands):
            self.fail("'tflq.intermediates' is not a number of operands", at)
        info = self.entry(attributes, "tflq.info", dict, NO_INFO, at)
        self.entry(info, "version", int, 1, at)
        for key in ("tflq.tensors", "tflq.intermediates", "tflq.info"):
            attributes.pop(key, None)
        if op in REPEATED and (declared := attributes.pop(REPEATED[op], None)) not in (None, types[0]):
            self.fail(f"'{REPEATED[op]}' is {declared}, and the result of another type", at)
        if op in CLOSED_OPS:
            self._closed(op, form.regions, at)
        read = Op(op, operands[:count], results, attributes, location, info=info, intermediates=operands[count:])
        if form.regions:
            read.regions = form.regions
            read.normalize()
        self.scope.ops.append(read)

    def _closed(self, op: str, regions: Sequence[Region], at: int) -> None:
        """Refuses constants from around an op whose regions may only read their own values. The IR does not keep which
        block a constant was in; only the text says it."""
        inside = (v for inner in walk(o for r in regions for b in r.blocks for o in b.ops) for v in inner.operands)
        constants = {value for value in inside if value is not None and value.buffer is not None}
        if constants and not constants.isdisjoint(self.scope.symbols.values()):
            self.fail(f"the values that ops inside of {op} read must be its operands, constants from outside, too", at)

    def _data(self, attributes: dict[str, Any], kind: TensorType, at: int) -> Buffer:
        """The buffer of a constant."""
        value = attributes.get("value", attributes.get("values"))
        if isinstance(value, Blob):
            return value.buffer
        storage = kind.storage
        if not isinstance(value, (np.ndarray, int, float)) or not (storage.numpy or storage is bf16):
            self.fail(f"a constant of {storage} needs a value", at)
        dtype = np.dtype(np.uint16) if storage is bf16 else storage.dtype
        if storage.is_integer and isinstance(value, int) and not storage.minimum <= value <= storage.maximum:
            self.fail(f"{int(value)} is not within {storage}", at)
        try:
            if isinstance(value, np.ndarray):
                array = value
            else:
                array = bfloat16_bits(float(value)) if storage is bf16 else np.asarray(value, dtype)
        except OverflowError:
            self.fail(f"{value} is not within {storage}", at)
        if kind.quantized and array.dtype.kind == "i" and dtype.kind == "u" and array.dtype.itemsize == dtype.itemsize:
            array = array.view(dtype)  # MLIR's constants of unsigned storage are signless
        if array.dtype != dtype or array.shape != kind.shape:
            self.fail("the value is not of the constant's type", at)
        return Buffer.of(array, storage)

    def location(self) -> Location | None:
        """`loc(unknown)`, `loc("file":1:2)`, `loc("tensor"("file":1:2))`, `loc(fused<"OPCODE">[...])`; others None."""
        if not self.accept_word("loc"):
            return None
        start = self.pos
        self.expect("(")
        fused = self.accept_word("fused")
        if not (self.peek("<") if fused else self.peek('"')):
            self.pos = start
            self.balanced()
            return None
        opcode = ""
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

    def location_skipped(self) -> bool:
        """Steps over a location; whether there was one."""
        if not self.accept_word("loc"):
            return False
        self.balanced()
        return True

    def _place(self, opcode: str) -> Location:
        first = self.string()
        if self.accept("("):
            with self.nested():
                location = self._place(opcode)
            self.expect(")")
            return Location(location.file, location.function, location.operator, opcode, first)
        if not self.accept(":"):
            return Location("", 0, 0, opcode, first)
        function = self.integer()
        self.expect(":")
        return Location(first, function, self.integer(), opcode, "")
