"""Custom forms of ops from text: those of arith, func, linalg, quant, shape and tensor that differ from

    name operands dict? `:` signature
    signature ::= type | types `to` type | types `->` types | `(` types `)` `->` types | types

where a type alone is that of all operands and results, and several without more are those of the operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from tflq.ir.attributes import AffineMap, Opaque, TypedArray
from tflq.ir.core import Value
from tflq.ir.parse_ops import READERS, Form, OpParser, Types
from tflq.ir.types import BareType, FunctionType, TensorType, i1, i32, index

COMPARE_FLOAT = tuple("false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split())
"""What arith.cmpf tests, by the number that its attribute `predicate` holds."""
COMPARE_INTEGER = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")

_SHORT = {name: f"func.{name}" for name in ("call", "call_indirect", "constant")}
_FLAGS = {"fastmath": ("fastmath", "#arith.fastmath"), "overflow": ("overflowFlags", "#arith.overflow")}
_UNSAID = {"fastmath": "#arith.fastmath<none>", "overflowFlags": "#arith.overflow<none>"}
"""Attributes that the generic form says and the custom form leaves out."""
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
"""Forms that are one piece after another, with the types of operands and result where no signature says them.

%      an operand; %* any number of them, also in brackets that may be left out
@key   an attribute, #key an integer, "key a string
{}     a region
:T     attributes and a type, which is called T; T and U alone are a type. `elem` is an element of T
"""


class CustomParser(OpParser):
    """A scanner that reads custom forms. `readers` are those by name that are no `name operands dict? : signature`."""

    readers: ClassVar[dict[str, Callable[[Any, Form], None]]] = {}

    def custom(self, name: str, results: int, at: int) -> Form:
        form = Form(_SHORT.get(name, name), results=results, at=at)
        if form.name in _FORMS:
            self._pieces(form, *_FORMS[form.name])
            return form
        reader = self.readers.get(form.name)
        if reader is not None:
            reader(self, form)
            return form
        form.operands = self.operand_names()
        self.flags(form)
        self.signature(form)
        return form

    def _pieces(self, form: Form, pieces: str, given: str, result: str) -> None:
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
            *names, last = given.split() or [""]
            rest = [last[:-1]] * (len(form.operands) - len(names)) if last.endswith("*") else [last] * bool(last)
            form.given = [kinds[name] for name in (*names, *rest)]
            form.types = [kinds[result]]

    def generic(self, name: str) -> Form:
        """The generic form, with attributes as the custom form has them."""
        form = super().generic(name)
        for key, default in _UNSAID.items():
            value = form.attributes.get(key)
            if isinstance(value, Opaque) and value.text == default:
                del form.attributes[key]
        if form.name == "linalg.generic":
            form.attributes["iterator_types"] = [
                _iterator(item) for item in form.attributes.get("iterator_types") or []
            ]
        return form

    def flags(self, form: Form) -> None:
        """`fastmath<fast>`, `overflow<nsw>`"""
        while (word := self.peek_word()) in _FLAGS:
            self.pos += len(word)
            key, name = _FLAGS[word]
            form.attributes[key] = Opaque(name + self.balanced())

    def signature(self, form: Form) -> None:
        form.attributes |= self.attributes()
        self.expect(":")
        if self.peek("("):
            form.given, form.types = self.types(), self.arrow_types()
            return
        listed = self.listed_types()
        if self.accept_word("to"):
            form.given, form.types = listed, [self.value_type()]
        elif self.peek("->"):
            form.given, form.types = listed, self.arrow_types()
        elif len(listed) > 1:
            form.given = listed
        else:
            form.given, form.types = listed * len(form.operands), listed * form.results

    def listed_types(self) -> Types:
        """`type, type`"""
        types: Types = [self.value_type()]
        while self.accept(","):
            types.append(self.value_type())
        return types

    def _terminator(self, form: Form) -> None:
        """`%x, %y : type, type`, or nothing."""
        form.attributes |= self.attributes()
        form.operands = self.operand_names()
        form.attributes |= self.attributes()
        if form.operands:
            self.expect(":")
            form.given = self.listed_types()

    def _quant_return(self, form: Form) -> None:
        """`%x, %y : type, type`, or `%x, %y`, as the proposal of quant.region writes it."""
        form.attributes |= self.attributes()
        form.operands = self.operand_names()
        if self.accept(":"):
            form.given = self.listed_types()
        else:
            form.given = [self.type_of(name, form.at) for name in form.operands]

    def _constant(self, form: Form) -> None:
        """`{...}? 1.0 : f32`, or, of a quantized type, `() <{value = ...}> : () -> type`"""
        start = self.pos
        if self.accept("("):
            self.expect(")")
            self.expect("<")
            form.attributes = self.dictionary()
            self.expect(">")
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

    def _compare(self, form: Form) -> None:
        """`olt, %x, %y : type`"""
        predicates = COMPARE_FLOAT if form.name.endswith("f") else COMPARE_INTEGER
        word = self.word("a predicate")
        if word not in predicates:
            self.fail(f"'{word}' is not one of {', '.join(predicates)}", form.at)
        form.attributes["predicate"] = predicates.index(word)
        self.expect(",")
        form.operands = self.operand_names()
        self.flags(form)
        self.signature(form)
        form.types = [kind and kind.with_element(i1) for kind in form.types]

    def select(self, form: Form) -> None:
        """`%c, %x, %y : type`, or the condition's type and the others'. A type alone leaves arith's condition i1."""
        form.operands = self.operand_names()
        self.signature(form)
        if len(form.given) == 2:
            form.given, form.types = [*form.given, form.given[1]], form.given[1:]
        elif form.given and form.name == "arith.select":
            form.given = [BareType.of(i1), *form.given[1:]]

    def _call_indirect(self, form: Form) -> None:
        """`%f(%x) : types -> types`"""
        callee = self.operand_name()
        form.operands = [callee, *self.parenthesized()]
        self.signature(form)
        inputs, outputs = (tuple(t for t in side if t is not None) for side in (form.given, form.types))
        form.given = [BareType.of(FunctionType(inputs, outputs)), *form.given]

    def parenthesized(self) -> list[str]:
        self.expect("(")
        names = self.operand_names()
        self.expect(")")
        return names

    def one_type(self, form: Form) -> TensorType:
        """`{...}? : type`"""
        form.attributes |= self.attributes()
        self.expect(":")
        return self.value_type()

    def _const_shape(self, form: Form) -> None:
        """`[1, 2] : type`"""
        dims = np.array(self.attribute(), np.int64)
        form.types = [self.one_type(form)]
        form.attributes["shape"] = TypedArray.of(dims, index, TensorType(dims.shape, index))

    def _generic_linalg(self, form: Form) -> None:
        """`{...} ins(%x : type) outs(%y : type) attrs = {...}? {region} -> types`"""
        form.attributes = self.dictionary()
        counts = [0, 0]
        for side, word in enumerate(("ins", "outs")):
            if self.accept_word(word):
                self.expect("(")
                names = self.operand_names()
                self.expect(":")
                form.operands += names
                form.given += self.listed_types()
                self.expect(")")
                counts[side] = len(names)
        if self.accept_word("attrs"):
            self.expect("=")
            form.attributes |= self.dictionary()
        form.regions = [self.region()]
        if self.peek("->"):
            form.types = self.arrow_types()
        form.attributes["operandSegmentSizes"] = TypedArray.of(np.array(counts, np.int32), i32)
        form.attributes["iterator_types"] = [_iterator(item) for item in form.attributes.get("iterator_types") or []]
        if not all(isinstance(item, AffineMap) for item in form.attributes.get("indexing_maps") or [None]):
            self.fail("linalg.generic needs 'indexing_maps', a list of affine maps", form.at)

    def _quant_region(self, form: Form) -> None:
        """`(%x, %y) {region} {...}? : types -> types`; inside, the operands' names are the block's arguments."""
        form.operands = self.parenthesized()
        names = dict.fromkeys(form.operands)
        arguments = [(name, Value(self.type_of(name, form.at))) for name in names]
        if len(arguments) != len(form.operands):
            self.fail("an operand is given twice, so its name does not say which argument is meant", form.at)
        form.regions = [self.region(arguments)]
        self.signature(form)


def _iterator(item: Any) -> Any:
    """`#linalg.iterator_type<parallel>` as the word in it."""
    return item.text.partition("<")[2][:-1] if isinstance(item, Opaque) else item


Reader = Callable[[Any, Form], None]

CustomParser.readers.update(
    {
        **READERS,
        **dict.fromkeys(("linalg.yield", "stablehlo.return", "tensor.yield", "func.return"), CustomParser._terminator),
        **dict.fromkeys(("arith.constant", "stablehlo.constant"), CustomParser._constant),
        **dict.fromkeys(("arith.cmpf", "arith.cmpi"), CustomParser._compare),
        "arith.select": CustomParser.select,
        "func.call_indirect": CustomParser._call_indirect,
        "shape.const_shape": CustomParser._const_shape,
        "linalg.generic": CustomParser._generic_linalg,
        "quant.region": CustomParser._quant_region,
        "quant.return": CustomParser._quant_return,
    }
)
