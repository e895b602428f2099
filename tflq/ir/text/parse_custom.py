"""Custom forms of ops from text: of arith, func, linalg, math, quant, shape and tensor. The usual one is

    name operands flags? dict? `:` signature
    signature ::= type | types `to` type | types `->` types | `(` types `)` `->` types | types

A type alone is that of all operands and results; several types without an arrow are those of the operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from tflq.ir.attributes import AffineMap, Opaque, TypedArray
from tflq.ir.ops import Value
from tflq.ir.text.lexer import ARITH_CONSTANT, REGION_OP, STABLEHLO_CONSTANT, STRUCTURED_OP
from tflq.ir.text.parse_ops import OpParser, OpText, Types
from tflq.ir.types import BareType, FunctionType, TensorType, i1, i32, i64, index

COMPARE_FLOAT = tuple("false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split())
"""The tests of arith.cmpf, by the number in its attribute `predicate`."""
COMPARE_INTEGER = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")

_SHORT = {name: f"func.{name}" for name in ("call", "call_indirect", "constant")}
_FLAGS = {"fastmath": ("fastmath", "#arith.fastmath"), "overflow": ("overflowFlags", "#arith.overflow")}
_DEFAULTS = {"fastmath": "#arith.fastmath<none>", "overflowFlags": "#arith.overflow<none>"}
"""Attributes that the generic form states and the custom form leaves out."""
_OF_OPERAND = -(1 << 63)
"""Stands in a list of numbers for one that an operand gives."""
_ENDS = (".return", ".yield")
"""Endings of the names of ops that end a block, in every dialect."""
_INDEX = BareType.of(index)
_FORMS = {
    "func.call": ("@callee ( %* ) signature", "", ""),
    "func.constant": ("@value : T", "", "T"),
    "linalg.index": ("#dim :T", "", "T"),
    "stablehlo.composite": ('"name %* signature', "", ""),
    "tensor.collapse_shape": ("% @reassociation :T into U", "T", "U"),
    "tensor.concat": ("dim ( #dim ) %* signature", "", ""),
    "tensor.dim": ("%* :T", "T index", "index"),
    "tensor.empty": ("( %* ) :T", "index*", "T"),
    "tensor.extract": ("% [%*]? :T", "T index*", "elem"),
    "tensor.from_elements": ("%* :T", "elem*", "T"),
    "tensor.generate": ("%* {} :T", "index*", "T"),
    "tensor.insert": ("% into % [ %* ] :T", "elem T index*", "T"),
    "tensor.reshape": ("% ( %* ) signature", "", ""),
    "tensor.splat": ("% [%*]? :T", "elem index*", "T"),
}
"""Forms that are one piece after another, with the types of operands and result where there is no signature.

%      an operand; %* any number of them, also in brackets that may be left out
@key   an attribute, #key an integer, "key a string
{}     a region
:T     attributes and a type, which is called T; T and U alone are a type. `elem` is an element of T
"""


class CustomParser(OpParser):
    """A scanner that reads custom forms. `readers`: how to read those that are neither usual nor in `_FORMS`."""

    readers: ClassVar[dict[str, Callable[[Any, OpText], None]]] = {}

    def custom(self, name: str, results: int, at: int) -> OpText:
        form = OpText(_SHORT.get(name, name), results=results, at=at)
        if form.name in _FORMS:
            self._pieces(form, *_FORMS[form.name])
        elif form.name.endswith(_ENDS):
            self._terminator(form)
        else:
            self.readers.get(form.name, CustomParser.usual)(self, form)
        return form

    def usual(self, form: OpText) -> None:
        """`%x, %y flags? {...}? : signature`"""
        form.operands = self.operand_names()
        self.flags(form)
        self.signature(form)

    def _pieces(self, form: OpText, pieces: str, operand_kinds: str, result: str) -> None:
        """A form of `_FORMS`."""
        kinds: dict[str, TensorType] = {"index": _INDEX}
        for piece in pieces.split():
            start, key = piece[0], piece[1:]
            if piece == "%":
                form.operands.append(self.operand_name())
            elif piece == "%*":
                form.operands += self.operand_names()
            elif piece == "[%*]?":
                if self.accept("["):
                    form.operands += self.operand_names()
                    self.expect("]")
            elif piece == "{}":
                form.regions.append(self.region())
            elif piece == "signature":
                self.signature(form)
            elif piece == ":T":
                kinds["T"] = self.one_type(form)
            elif piece in ("T", "U"):
                kinds[piece] = self.value_type()
            elif start in '@#"':
                read = {"@": self.attribute, "#": self.integer, '"': self.string}[start]
                form.attributes[key] = read()
            elif piece.isalpha():
                self.expect_word(piece)
            else:
                self.expect(piece)
        if result:
            kinds["elem"] = BareType.of(kinds["T"].element)
            *names, last = operand_kinds.split() or [""]
            rest = [last[:-1]] * (len(form.operands) - len(names)) if last.endswith("*") else [last] * bool(last)
            form.operand_types = [kinds[name] for name in (*names, *rest)]
            form.types = [kinds[result]]

    def generic(self, name: str) -> OpText:
        """The generic form, with attributes as the custom form has them."""
        form = super().generic(name)
        for key, default in _DEFAULTS.items():
            value = form.attributes.get(key)
            if isinstance(value, Opaque) and value.text == default:
                del form.attributes[key]
        if form.name == STRUCTURED_OP:
            form.attributes["iterator_types"] = [
                _iterator(item) for item in form.attributes.get("iterator_types") or []
            ]
        return form

    def flags(self, form: OpText) -> None:
        """`fastmath<fast>`, `overflow<nsw>`"""
        while (word := self.peek_word()) in _FLAGS:
            self.pos += len(word)
            key, name = _FLAGS[word]
            form.attributes[key] = Opaque(name + self.balanced())

    def signature(self, form: OpText) -> None:
        form.attributes |= self.attributes()
        self.expect(":")
        if self.peek("("):
            form.operand_types, form.types = self.types(), self.arrow_types()
            return
        listed = self.listed_types()
        if self.accept_word("to"):
            form.operand_types, form.types = listed, [self.value_type()]
        elif self.peek("->"):
            form.operand_types, form.types = listed, self.arrow_types()
        elif len(listed) > 1:
            form.operand_types = listed
        else:
            form.operand_types, form.types = listed * len(form.operands), listed * form.results

    def listed_types(self) -> Types:
        """`type, type`"""
        types: Types = [self.value_type()]
        while self.accept(","):
            types.append(self.value_type())
        return types

    def _terminator(self, form: OpText) -> None:
        """`%x, %y : type, type`, or nothing."""
        form.attributes |= self.attributes()
        form.operands = self.operand_names()
        form.attributes |= self.attributes()
        if form.name == "quant.return" and not self.peek(":"):  # as the proposal of quant.region writes it
            form.operand_types = [self.type_of(name, form.at) for name in form.operands]
        elif form.operands:
            self.expect(":")
            form.operand_types = self.listed_types()

    def _constant(self, form: OpText) -> None:
        """`{...}? 1.0 : f32`, or, of a quantized type, `() <{value = ...}> : () -> type`"""
        start = self.pos
        if self.accept("("):
            self.expect(")")
            form.attributes = self.properties()
            self.signature(form)
            return
        form.attributes |= self.attributes()
        if "value" in form.attributes:  # the attribute is in the dictionary
            self.pos = start
            self.signature(form)
            return
        value, kind = self.typed_attribute()
        if isinstance(value, bool):
            kind = kind or i1
        if kind is None:
            self.fail("a constant needs a type", form.at)
        form.attributes["value"] = value
        form.types = [kind if isinstance(kind, TensorType) else BareType.of(kind)]

    def _compare(self, form: OpText) -> None:
        """`olt, %x, %y : type`"""
        predicates = COMPARE_FLOAT if form.name.endswith("f") else COMPARE_INTEGER
        word = self.word("a predicate")
        if word not in predicates:
            self.fail(f"'{word}' is not one of {', '.join(predicates)}", form.at)
        form.attributes["predicate"] = predicates.index(word)
        self.expect(",")
        self._question(form)

    def _question(self, form: OpText) -> None:
        """`%x : type`, or several operands; the result is of i1."""
        self.usual(form)
        form.types = [kind and kind.with_element(i1) for kind in form.types]

    def _of_two_types(self, form: OpText) -> None:
        """`%x, %n : type of x and of the result, type of n`"""
        self.usual(form)
        form.types = form.operand_types[:1]

    def _sum_and_overflow(self, form: OpText) -> None:
        """`%x, %y : type, type of the overflow`"""
        self.usual(form)
        form.operand_types, form.types = [form.operand_types[0]] * 2, form.operand_types

    def _rank(self, form: OpText) -> None:
        """`%x : type`"""
        self.usual(form)
        form.types = [_INDEX]

    def _expanded(self, form: OpText) -> None:
        """`%x [[0], [1, 2]] output_shape [%n, 2, 3] : type into type`"""
        form.operands = [self.operand_name()]
        form.attributes["reassociation"] = self.attribute()
        if self.accept_word("output_shape"):
            self._numbers(form, "static_output_shape")
        self._tensors_and_indices(form, 1, "into")

    def _extracted(self, form: OpText) -> None:
        """`%x[offsets][sizes][strides] : type to type`"""
        form.operands = [self.operand_name()]
        self._part(form, "to")

    def _inserted(self, form: OpText) -> None:
        """`%x into %t[offsets][sizes][strides] : type into type`"""
        form.operands = [self.operand_name()]
        self.expect_word("into")
        form.operands.append(self.operand_name())
        self._part(form, "into")

    def _part(self, form: OpText, word: str) -> None:
        tensors = len(form.operands)
        counts = [self._numbers(form, f"static_{kind}") for kind in ("offsets", "sizes", "strides")]
        _note_segments(form, *[1] * tensors, *counts)
        self._tensors_and_indices(form, tensors, word)

    def _pad(self, form: OpText) -> None:
        """`%x nofold? low[1, %n] high[0, 2] {region} : type to type`"""
        form.operands = [self.operand_name()]
        if self.accept_word("nofold"):
            form.attributes["nofold"] = None
        counts = [1]
        for side in ("low", "high"):
            self.expect_word(side)
            counts.append(self._numbers(form, f"static_{side}"))
        _note_segments(form, *counts)
        form.regions = [self.region()]
        self._tensors_and_indices(form, 1, "to")

    def _numbers(self, form: OpText, key: str) -> int:
        """`[1, %n, 2]`: the numbers as an attribute, and operands for names; how many names there are."""
        numbers: list[int] = []
        before = len(form.operands)
        self.expect("[")
        for _ in self.items("]"):
            name = self.operand_name_or_none()
            numbers.append(self.integer() if name is None else _OF_OPERAND)
            form.operands += [] if name is None else [name]
        form.attributes[key] = TypedArray.of(np.array(numbers, np.int64), i64)
        return len(form.operands) - before

    def _tensors_and_indices(self, form: OpText, tensors: int, word: str) -> None:
        """`{...}? : type WORD type`, for ops whose operands are one or two tensors and then indices."""
        source = self.one_type(form)
        self.expect_word(word)
        form.types = [self.value_type()]
        form.operand_types = [source, *form.types][:tensors] + [_INDEX] * (len(form.operands) - tensors)

    def select(self, form: OpText) -> None:
        """`%c, %x, %y : type`, or the types of the condition and of the others."""
        self._chosen(form, None)

    def _select_by_bit(self, form: OpText) -> None:
        """`select` by one bit; a type alone leaves the condition i1."""
        self._chosen(form, BareType.of(i1))

    def _chosen(self, form: OpText, condition: TensorType | None) -> None:
        form.operands = self.operand_names()
        self.signature(form)
        if len(form.operand_types) == 2:
            form.operand_types, form.types = [*form.operand_types, form.operand_types[1]], form.operand_types[1:]
        elif form.operand_types and condition is not None:
            form.operand_types = [condition, *form.operand_types[1:]]

    def _call_indirect(self, form: OpText) -> None:
        """`%f(%x) : types -> types`"""
        callee = self.operand_name()
        form.operands = [callee, *self.parenthesized()]
        self.signature(form)
        inputs, outputs = (tuple(t for t in side if t is not None) for side in (form.operand_types, form.types))
        form.operand_types = [BareType.of(FunctionType(inputs, outputs)), *form.operand_types]

    def parenthesized(self) -> list[str]:
        self.expect("(")
        names = self.operand_names()
        self.expect(")")
        return names

    def one_type(self, form: OpText) -> TensorType:
        """`{...}? : type`"""
        form.attributes |= self.attributes()
        self.expect(":")
        return self.value_type()

    def _const_shape(self, form: OpText) -> None:
        """`[1, 2] : type`"""
        dims = np.array(self.attribute(), np.int64)
        form.types = [self.one_type(form)]
        form.attributes["shape"] = TypedArray.of(dims, index, TensorType(dims.shape, index))

    def _generic_linalg(self, form: OpText) -> None:
        """`{...} ins(%x : type) outs(%y : type) attrs = {...}? {region} -> types`"""
        form.attributes = self.dictionary()
        counts = [0, 0]
        for side, word in enumerate(("ins", "outs")):
            if self.accept_word(word):
                self.expect("(")
                names = self.operand_names()
                self.expect(":")
                form.operands += names
                form.operand_types += self.listed_types()
                self.expect(")")
                counts[side] = len(names)
        if self.accept_word("attrs"):
            self.expect("=")
            form.attributes |= self.dictionary()
        form.regions = [self.region()]
        if self.peek("->"):
            form.types = self.arrow_types()
        _note_segments(form, *counts)
        form.attributes["iterator_types"] = [_iterator(item) for item in form.attributes.get("iterator_types") or []]
        if not all(isinstance(item, AffineMap) for item in form.attributes.get("indexing_maps") or [None]):
            self.fail("linalg.generic needs 'indexing_maps', a list of affine maps", form.at)

    def _quant_region(self, form: OpText) -> None:
        """`(%x, %y) {region} {...}? : types -> types`. Inside, the names of the operands are the block's arguments."""
        form.operands = self.parenthesized()
        names = dict.fromkeys(form.operands)
        arguments = [(name, Value(self.type_of(name, form.at))) for name in names]
        if len(arguments) != len(form.operands):
            self.fail("an operand is given twice, so its name does not say which argument is meant", form.at)
        form.regions = [self.region(arguments)]
        self.signature(form)


def _note_segments(form: OpText, *counts: int) -> None:
    """Writes the number of operands of each group."""
    form.attributes["operandSegmentSizes"] = TypedArray.of(np.array(counts, np.int32), i32)


def _iterator(item: Any) -> Any:
    """`#linalg.iterator_type<parallel>` as the word in it."""
    return item.text.partition("<")[2][:-1] if isinstance(item, Opaque) else item


CustomParser.readers.update(
    {
        **{f"math.{name}": CustomParser._question for name in ("isfinite", "isinf", "isnan", "isnormal")},
        **dict.fromkeys((ARITH_CONSTANT, STABLEHLO_CONSTANT), CustomParser._constant),
        **dict.fromkeys(("arith.cmpf", "arith.cmpi"), CustomParser._compare),
        "math.fpowi": CustomParser._of_two_types,
        "arith.addui_extended": CustomParser._sum_and_overflow,
        "tensor.rank": CustomParser._rank,
        "tensor.expand_shape": CustomParser._expanded,
        "tensor.extract_slice": CustomParser._extracted,
        "tensor.insert_slice": CustomParser._inserted,
        "tensor.pad": CustomParser._pad,
        "arith.select": CustomParser._select_by_bit,
        "func.call_indirect": CustomParser._call_indirect,
        "shape.const_shape": CustomParser._const_shape,
        STRUCTURED_OP: CustomParser._generic_linalg,
        REGION_OP: CustomParser._quant_region,
    }
)
