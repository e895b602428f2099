"""Types from text; the counterpart of `print_types`, which also reads what MLIR allows and `tflq` does not print.

type     ::= tensor<dims element> | element | function
dims     ::= `*x` | ((integer | `?`) `x`)*
element  ::= name | !alias | !quant.uniform<...> | !quant.any<...> | !quant.calibrated<...> | !quant.none<...> | foreign
function ::= `(` types `)` `->` (type | `(` types `)`)
foreign  ::= `none` | !dialect.name<...> | vector<...> | memref<...> | tuple<...>: known by its text alone
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

from tflq.ir.lexer import Scanner
from tflq.ir.syntax import float_of
from tflq.ir.types import (
    SCALARS,
    AnyQuantizedType,
    BareType,
    CalibratedQuantizedType,
    ElementType,
    FunctionType,
    NoQuantizedType,
    QuantizedType,
    ScalarType,
    Shape,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    f64,
    lost_scales,
    named_scalar,
)

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["TypeParser"]

_DIMS = re.compile(r"\*x|(?:(?:\d+|\?)x)*")
_SCALAR = re.compile(r"!?[A-Za-z][\w.]*(?:<[a-z]\d+>)?")
_SIMPLE_TENSOR = re.compile(r"tensor<[\w?*]*>")
_SIMPLE_QUANT = re.compile(r"!quant\.uniform<[^<>{}]*>")
_REAL = re.compile(r"0x[0-9A-Fa-f]+|-?\d+\.\d*(?:[eE][-+]?\d+)?")
_PAIR = rf"(?:{_REAL.pattern})(?::-?\d+)?"
_PAIRS = re.compile(rf"{_PAIR}(?:,\s*{_PAIR})*(?=\s*\}})")
_ALIAS = re.compile(r"![A-Za-z_][\w$.]*")
_BUILTIN = re.compile(r"(?:vector|memref|tuple)(?=<)")
NO_TYPE = ScalarType("none", 0, "opaque", "")
"""The type of a value that is left out."""


class TypeParser(Scanner):
    """A scanner that reads types."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self.type_aliases: dict[str, TensorType | ElementType] = {}
        self._tensors: dict[str, TensorType] = {}
        self._quantized: dict[str, ElementType] = {}

    def value_type(self) -> TensorType:
        """The type of an SSA value; an element type alone is a scalar's."""
        found = self.type()
        return found if isinstance(found, TensorType) else BareType.of(found)

    def type(self) -> TensorType | ElementType:
        self.skip()
        if not self.text.startswith("tensor<", self.pos):
            return self.function_type() if self.text.startswith("(", self.pos) else self.element_or_alias()
        simple = _SIMPLE_TENSOR.match(self.text, self.pos)
        if simple is not None and simple[0] in self._tensors:
            self.pos = simple.end()
            return self._tensors[simple[0]]
        self.pos += len("tensor<")
        shape = self._shape()
        at = self.pos
        element = self.element_or_alias()
        if isinstance(element, TensorType):
            self.fail("a tensor's elements cannot be tensors", at)
        self.expect(">")
        found = TensorType(shape, element)
        if simple is not None:
            self._tensors[simple[0]] = found
        return found

    def function_type(self) -> FunctionType:
        """`(type, type) -> type`"""
        inputs = tuple(self.value_types())
        self.expect("->")
        results = tuple(self.value_types()) if self.peek("(") else (self.value_type(),)
        return FunctionType(inputs, results)

    def value_types(self) -> list[TensorType]:
        """`(type, type, ...)`"""
        self.expect("(")
        return [self.value_type() for _ in self.items(")")]

    def _shape(self) -> Shape:
        dims = self.take(_DIMS, "dims")
        if dims == "*x":
            return None
        return tuple(None if dim == "?" else int(dim) for dim in dims.split("x")[:-1])

    def element_or_alias(self) -> TensorType | ElementType:
        self.skip()
        if self.text.startswith("!quant.", self.pos):
            return self._quantized_type()
        at = self.pos
        alias = _ALIAS.match(self.text, self.pos)
        if alias is not None and alias[0] in self.type_aliases:
            self.pos = alias.end()
            return self.type_aliases[alias[0]]
        builtin = _BUILTIN.match(self.text, self.pos)
        if builtin is not None or (alias is not None and "." in alias[0] and alias[0] not in SCALARS):
            return self._foreign((builtin or alias)[0])  # type: ignore[index]
        return NO_TYPE if self.accept_word("none") else self.scalar(at)

    def _foreign(self, name: str) -> ScalarType:
        self.pos += len(name)
        inner = self.resolved(self.balanced()) if self.text.startswith("<", self.pos) else ""
        return ScalarType(name + inner, 0, "opaque", "")

    def resolved(self, text: str) -> str:
        """A text with what aliases stand for in their place; the subclass's, which knows them all."""
        raise NotImplementedError

    def scalar(self, at: int) -> ScalarType:
        name = self.take(_SCALAR, "a type")
        found = named_scalar(name)
        if found is None:
            self.fail(f"'{name}' is not a type, or an alias that is not defined", at)
        return found

    def _quantized_type(self) -> ElementType:
        simple = _SIMPLE_QUANT.match(self.text, self.pos)
        if simple is not None and simple[0] in self._quantized:
            self.pos = simple.end()
            return self._quantized[simple[0]]
        at = self.pos
        name = self.take(_ALIAS, "a quantized type")
        self.expect("<")
        try:
            with np.errstate(over="ignore"):
                found = self._quantized_body(name, at)
        except (ValueError, OverflowError) as error:
            self.fail(str(error), at)
        self.expect(">")
        if simple is not None:
            self._quantized[simple[0]] = found
        return found

    def _quantized_body(self, name: str, at: int) -> ElementType:
        if name == "!quant.calibrated":
            expressed = self._expressed()
            self.expect("<")
            low = self.real(expressed)
            self.expect(":")
            high = self.real(expressed)
            self.expect(">")
            return CalibratedQuantizedType.of(expressed, low, high)
        if name == "!quant.none":
            return NoQuantizedType(self._expressed())
        storage = self._storage()
        low, high = self._range(storage)
        if name == "!quant.any":
            return AnyQuantizedType.of(storage, self._expressed() if self.accept(":") else None, low, high)
        if name != "!quant.uniform":
            self.fail(f"'{name}' is not a type", at)
        self.expect(":")
        return self._uniform(storage, self._expressed(), low, high)

    def _uniform(self, storage: ScalarType, expressed: ScalarType, low: int, high: int) -> QuantizedType:
        if not self.accept(":"):
            self.expect(",")
            scale, zero = self._pair(expressed)
            self._holds(expressed, scale)
            return UniformQuantizedType.of(storage, scale, zero, expressed=expressed, storage_min=low, storage_max=high)
        if self.peek("{"):
            axes, blocks = self._blocks()
            self.expect(",")
            scales, zeros = self._nested_pairs(expressed)
            self._holds(expressed, scales)
            return UniformQuantizedSubChannelType.of(
                storage, axes, blocks, scales, zeros, expressed=expressed, storage_min=low, storage_max=high
            )
        axis = self.integer()
        self.expect(",")
        scales, zeros = self._pairs(expressed)
        self._holds(expressed, scales)
        return UniformQuantizedPerAxisType.of(
            storage, axis, scales, zeros, expressed=expressed, storage_min=low, storage_max=high
        )

    def _storage(self) -> ScalarType:
        at = self.pos
        name = self.word("a storage type").removeprefix("s")
        found = named_scalar(f"ui{name[1:]}" if name[0] == "u" and name[1:].isdigit() else name)
        if found is None or not found.is_integer:
            self.fail(f"'{name}' is not a storage type", at)
        return found

    def _expressed(self) -> ScalarType:
        self.skip()
        at = self.pos
        found = self.scalar(at)
        if not found.is_float:
            self.fail(f"the expressed type must be a floating-point type, not {found}", at)
        return found

    def _range(self, storage: ScalarType) -> tuple[int, int]:
        if not self.accept("<"):
            return storage.minimum, storage.maximum
        low = self.integer()
        self.expect(":")
        high = self.integer()
        self.expect(">")
        return low, high

    def real(self, expressed: ScalarType) -> float:
        """A number with a decimal point, or the bits of one of the expressed type."""
        at = self.pos
        text = self.take(_REAL, "a number with a decimal point")
        return self._finite(text, expressed, at)

    def _finite(self, text: str, expressed: ScalarType, at: int) -> float:
        """The value of a number's text, which only bits can say is infinite; fewer bits than a double has begin with
        zeros, as MLIR reads them."""
        if text.startswith("0x"):
            return float_of(f"0x{text[2:]:0>16}" if expressed is f64 and len(text) < 18 else text)
        value = float_of(text)
        if math.isinf(value):
            self.fail(f"{text} is too large", at)
        return value

    def _pair(self, expressed: ScalarType) -> tuple[float, int]:
        """`scale`, or `scale:zero_point`"""
        scale = self.real(expressed)
        return scale, self.integer() if self.accept(":") else 0

    def _holds(self, expressed: ScalarType, scales: npt.ArrayLike) -> None:
        """Refuses scales that are not numbers of the expressed type: rounded to it, they would be 0 or infinite."""
        given = np.atleast_1d(np.asarray(scales, np.float64))
        lost = given[lost_scales(given, expressed)]
        if lost.size:
            self.fail(f"scale {lost.flat[0]} is not within the range of {expressed}")

    def _blocks(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        axes: list[int] = []
        sizes: list[int] = []
        self.expect("{")
        while True:
            axes.append(self.integer())
            self.expect(":")
            sizes.append(self.integer())
            if not self.accept(","):
                break
        self.expect("}")
        return tuple(axes), tuple(sizes)

    def _pairs(self, expressed: ScalarType) -> tuple[np.ndarray, np.ndarray]:
        """`{scale, scale:zero_point, ...}`"""
        self.expect("{")
        at = self.pos
        plain = self.match(_PAIRS)
        if plain is not None:
            pieces = [pair.partition(":") for pair in plain.split(",")]
            pairs = [(self._finite(scale.strip(), expressed, at), int(zero or 0)) for scale, _, zero in pieces]
        else:
            pairs = [self._pair(expressed)]
            while self.accept(","):
                pairs.append(self._pair(expressed))
        self.expect("}")
        scales, zeros = zip(*pairs, strict=True)
        return np.array(scales, np.float64), np.array(zeros, np.int64)

    def _nested_pairs(self, expressed: ScalarType) -> tuple[np.ndarray, np.ndarray]:
        self.skip()
        if not self.text.startswith("{", self.pos):
            self.fail("expected '{'")
        inner = re.compile(r"\{\s*\{").match(self.text, self.pos)
        if inner is None:
            return self._pairs(expressed)
        self.expect("{")
        rows = [self._nested_pairs(expressed)]
        while self.accept(","):
            rows.append(self._nested_pairs(expressed))
        self.expect("}")
        return np.stack([scale for scale, _ in rows]), np.stack([zero for _, zero in rows])
