"""StableHLO's pretty forms from text. Attributes are kept as MLIR's generic form has them."""

from __future__ import annotations

import re

import numpy as np

from tflq.ir.attributes import Opaque, TypedArray, TypedInt
from tflq.ir.ops import Block, Op, Region, Value
from tflq.ir.text.parse_custom import CustomParser
from tflq.ir.text.parse_ops import OpText
from tflq.ir.types import TensorType, i1, i32, i64

_DIMENSION = re.compile(r"dims?")
_LISTS = {
    "stablehlo.transpose": {"dims": "permutation"},
    "stablehlo.reverse": {"dims": "dimensions"},
    "stablehlo.broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "stablehlo.dynamic_broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "stablehlo.broadcast": {"sizes": "broadcast_sizes"},
    "stablehlo.dynamic_slice": {"sizes": "slice_sizes"},
    "stablehlo.pad": {"low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding"},
}
"""Lists that follow the operands, and the attributes that they are."""
_NUMBERS = {
    **dict.fromkeys(
        ("stablehlo.concatenate", "stablehlo.get_dimension_size", "stablehlo.set_dimension_size"), "dimension"
    ),
    **dict.fromkeys(("stablehlo.iota", "stablehlo.dynamic_iota"), "iota_dimension"),
}
_FORMAT = re.compile(r"e(\d+)m(\d+)")
_WINDOW = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}


class StablehloParser(CustomParser):
    """A scanner that reads StableHLO's pretty forms, too."""

    def _listed(self, form: OpText) -> None:
        """`%x, dims = [1, 0] : signature`"""
        names = _LISTS[form.name]
        form.operands = self.operand_names()
        while (word := self.peek_word()) in names:
            self._key()
            form.attributes[names[word]] = self._list()
            self.accept(",")
        self.signature(form)

    def _key(self) -> str:
        """`name =`"""
        name = self.word("a name")
        self.expect("=")
        return name

    def _list(self) -> TypedArray:
        return TypedArray.of(np.array(self.attribute(), np.int64), i64)

    def _numbered(self, form: OpText) -> None:
        """`%x, %y, dim = 0 : signature`"""
        form.operands = self.operand_names()
        self.take(_DIMENSION, "'dim'")
        self.expect("=")
        form.attributes[_NUMBERS[form.name]] = self.integer()
        self.signature(form)

    def _slice(self, form: OpText) -> None:
        """`%x [0:2, 1:5:2] : signature`"""
        form.operands = [self.operand_name()]
        self.expect("[")
        rows: list[list[int]] = []
        for _ in self.items("]"):
            row = [self.integer()]
            while self.accept(":"):
                row.append(self.integer())
            if len(row) not in (2, 3):
                self.fail("expected start:limit or start:limit:stride")
            rows.append([*row, 1][:3])
        table = np.array(rows, np.int64).reshape(-1, 3)
        for column, key in enumerate(("start_indices", "limit_indices", "strides")):
            form.attributes[key] = TypedArray.of(np.ascontiguousarray(table[:, column]), i64)
        self.signature(form)

    def _compare(self, form: OpText) -> None:
        """`LT, %x, %y, FLOAT : signature`"""
        form.attributes["comparison_direction"] = Opaque(f"#stablehlo<comparison_direction {self.word('a direction')}>")
        self.expect(",")
        form.operands = self.operand_names()
        if kind := self.peek_word():
            self.word("a type of comparison")
            form.attributes["compare_type"] = Opaque(f"#stablehlo<comparison_type {kind}>")
        self.signature(form)
        if form.types == form.operand_types[:1]:
            form.types = [t and t.with_element(i1) for t in form.types]

    def _same_as_operands(self, form: OpText) -> None:
        """`%x, %y : type, type`: the results have these types, too."""
        form.operands = self.operand_names()
        self.signature(form)
        form.types = form.types or form.operand_types

    def _product(self, form: OpText) -> list[str]:
        """Operands and types; the fields of `dot_dimension_numbers`."""
        form.operands = self.operand_names()
        fields: list[str] = []
        while self.peek_word():
            word = self._key()
            if word in ("batching_dims", "contracting_dims"):
                for side in ("lhs", "rhs"):
                    fields.append(f"{side}_{word[:-1]}ensions = {_spaced(self.balanced())}")
                    if side == "lhs":
                        self.expect("x")
            elif word == "precision":
                words = re.findall(r"\w+", self.balanced())
                form.attributes["precision_config"] = [Opaque(f"#stablehlo<precision {name}>") for name in words]
            else:
                form.attributes[word] = Opaque(f"#stablehlo.dot_{word}{self.balanced()}")
            self.accept(",")
        self.signature(form)
        return fields

    def _dot_general(self, form: OpText) -> None:
        """`%x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGH, HIGH] : signature`"""
        fields = self._product(form)
        form.attributes["dot_dimension_numbers"] = Opaque(f"#stablehlo.dot<{', '.join(fields)}>")

    def _dot(self, form: OpText) -> None:
        """`_dot_general` without dims: the last one of x and the first one of y are contracted."""
        self._product(form)

    def _convolution(self, form: OpText) -> None:
        """`(%x, %y) dim_numbers = [..]x[..]->[..], window = {stride = [1, 1], ...} {...} : signature`"""
        form.operands = self.parenthesized()
        for word in ("dim_numbers", "="):
            self.expect(word)
        left = _spaced(self.balanced())
        self.expect("x")
        right = _spaced(self.balanced())
        self.expect("->")
        form.attributes["dimension_numbers"] = Opaque(f"#stablehlo.conv<{left}x{right}->{_spaced(self.balanced())}>")
        for word in (",", "window", "=", "{"):
            self.expect(word)
        for _ in self.items("}"):
            self._window(form, self._key())
        self.signature(form)

    def _window(self, form: OpText, word: str) -> None:
        if word not in _WINDOW:
            self.fail(f"'{word}' is not one of {', '.join(_WINDOW)}")
        if word == "pad":
            form.attributes["padding"] = np.array(self.attribute(), np.int64).reshape(-1, 2)
        elif word == "reverse":
            form.attributes["window_reversal"] = TypedArray.of(np.array(self.attribute(), bool), i1)
        else:
            form.attributes[_WINDOW[word]] = self._list()

    def _reduce(self, form: OpText) -> None:
        """`(%x init: %y) applies OP across dimensions = [N] : types`. If the body has several ops: no `applies`, and
        `reducer(%a: type, %b: type) {region}`."""
        inputs: list[str] = []
        inits: list[str] = []
        while self.accept("("):
            inputs.append(self.operand_name())
            self.expect("init")
            self.expect(":")
            inits.append(self.operand_name())
            self.expect(")")
            self.accept(",")
        form.operands = inputs + inits
        inner = self.word("an op's name") if self.accept_word("applies") else ""
        for word in ("across", "dimensions", "="):
            self.expect(word)
        form.attributes["dimensions"] = self._list()
        self.signature(form)
        if inner:
            form.regions = [self._applied(inner, form)]
            return
        self.expect("reducer")
        first: list[tuple[str, Value]] = []
        second: list[tuple[str, Value]] = []
        while self.accept("("):
            for side, end in ((first, ","), (second, ")")):
                name = self.operand_name()
                self.expect(":")
                side.append((name, Value(self.value_type())))
                self.expect(end)
            self.accept(",")
        form.regions = [self.region([*first, *second])]

    def _applied(self, name: str, form: OpText) -> Region:
        """A body of one op."""
        kind = form.operand_types[0] if form.operand_types else None
        if kind is None or len(form.operand_types) != 2:
            self.fail("a form with 'applies' reduces one operand", form.at)
        scalar = TensorType((), kind.element)
        arguments, result = [Value(scalar), Value(scalar)], Value(scalar)
        return Region([Block(arguments, [Op(name, [*arguments], [result]), Op("stablehlo.return", [result], [])])])

    def _while(self, form: OpText) -> None:
        """`(%i = %x, ...) : types cond {region} do {region}`. The arguments of both regions have these names."""
        names: list[str] = []
        self.expect("(")
        for _ in self.items(")"):
            names.append(self.operand_name())
            self.expect("=")
            form.operands.append(self.operand_name())
        if names:
            self.expect(":")
            form.operand_types = self.listed_types()
        form.types = form.operand_types
        if self.accept_word("attributes"):
            form.attributes |= self.dictionary()
        for word in ("cond", "do"):
            self.expect(word)
            kinds = [kind for kind in form.operand_types if kind is not None]
            form.regions.append(self.region([(n, Value(kind)) for n, kind in zip(names, kinds, strict=False)]))

    def _worded(self, form: OpText) -> None:
        """`%x, type = FFT, length = [8] : signature`"""
        form.operands = self.operand_names()
        while (word := self.peek_word()) in ("type", "length", "distribution", "lower", "format"):
            at = self.pos
            self._key()
            if word == "length":
                form.attributes["fft_length"] = self._list()
            elif word == "lower":
                form.attributes["lower"] = self.word("true or false") == "true"
            elif word == "format":
                digits = _FORMAT.fullmatch(self.word("a format"))
                if digits is None:
                    self.fail("expected e, exponent bits, m and mantissa bits", at)
                form.attributes["exponent_bits"] = TypedInt(int(digits[1]), i32)
                form.attributes["mantissa_bits"] = TypedInt(int(digits[2]), i32)
            else:
                key = "fft_type" if word == "type" else "rng_distribution"
                form.attributes[key] = Opaque(f"#stablehlo<{key} {self.word('a kind')}>")
            self.accept(",")
        self.signature(form)

    def _custom_call(self, form: OpText) -> None:
        """`@target(%x) {...} : signature`"""
        form.attributes["call_target_name"] = str(self.attribute())
        form.operands = self.parenthesized()
        self.signature(form)


def _spaced(text: str) -> str:
    return re.sub(r"\s*,\s*", ", ", text)


StablehloParser.readers.update(
    {
        **dict.fromkeys(_LISTS, StablehloParser._listed),
        **dict.fromkeys(_NUMBERS, StablehloParser._numbered),
        "stablehlo.slice": StablehloParser._slice,
        "stablehlo.compare": StablehloParser._compare,
        "stablehlo.optimization_barrier": StablehloParser._same_as_operands,
        "stablehlo.select": CustomParser.select,
        "stablehlo.dot_general": StablehloParser._dot_general,
        "stablehlo.dot": StablehloParser._dot,
        "stablehlo.convolution": StablehloParser._convolution,
        "stablehlo.reduce": StablehloParser._reduce,
        "stablehlo.custom_call": StablehloParser._custom_call,
        "stablehlo.while": StablehloParser._while,
        **dict.fromkeys(
            ("stablehlo.fft", "stablehlo.rng", "stablehlo.cholesky", "stablehlo.reduce_precision"),
            StablehloParser._worded,
        ),
    }
)
