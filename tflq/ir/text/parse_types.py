"""Types and the elements of constants from text: what `print_types` prints, and what MLIR also allows.

type     ::= tensor<dims element> | element | function
dims     ::= `*x` | ((integer | `?`) `x`)*
element  ::= name | !alias | !quant.uniform<...> | !quant.any<...> | !quant.calibrated<...> | !quant.none<...> | foreign
function ::= `(` types `)` `->` (type | `(` types `)`)
foreign  ::= `none` | !dialect.name<...> | vector<...> | memref<...> | tuple<...>, of which only the text is kept; the
             per-axis types inside of the last three are checked
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tflq.ir.attributes import Opaque, TypedArray
from tflq.ir.text.lexer import SCALAR_OF_DTYPE, Scanner, float_of
from tflq.ir.text.print_types import type_text
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
    bf16,
    f64,
    named_scalar,
    scalar_type,
    unrepresentable_scales,
)
from tflq.ir.verifier import axis_problem
from tflq.numerics.signless import bfloat16_bits, bfloat16_values

if TYPE_CHECKING:
    import numpy.typing as npt


_DIMS = re.compile(r"\*x|(?:(?:\d+|\?)x)*")
_SHAPED = re.compile(r"\*x|(?:(?:\d+|\?|\[\d+\])x)*")
_SCALAR = re.compile(r"!?[A-Za-z][\w.]*(?:<[a-z]\d+>)?")
_SIMPLE_TENSOR = re.compile(r"tensor<[\w?*]*>")
_SIMPLE_QUANT = re.compile(r"!quant\.uniform<[^<>{}]*>")
_REAL = re.compile(r"0x[0-9A-Fa-f]+|-?\d+\.\d*(?:[eE][-+]?\d+)?")
_PAIR = rf"(?:{_REAL.pattern})(?::-?\d+)?"
_PAIRS = re.compile(rf"{_PAIR}(?:,\s*{_PAIR})*(?=\s*\}})")
_NESTED = re.compile(r"\{\s*\{")
_ALIAS = re.compile(r"![A-Za-z_][\w$.]*")
_BUILTIN = re.compile(r"(?:vector|memref|tuple)(?=<)")
NO_TYPE = scalar_type("none", 0, "opaque", "")
"""The type of a value that is left out."""


class TypeParser(Scanner):
    """A scanner that reads types."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self.type_aliases: dict[str, TensorType | ElementType] = {}
        self._tensors: dict[str, TensorType] = {}
        self._quantized: dict[str, ElementType] = {}

    def value_type(self) -> TensorType:
        """The type of an SSA value. An element type alone is that of a scalar."""
        kind = self.type()
        return kind if isinstance(kind, TensorType) else BareType.of(kind)

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
        element = self._element_of_shape()
        self.expect(">")
        kind = TensorType(shape, element)
        if simple is not None:
            self._tensors[simple[0]] = kind
        return kind

    def function_type(self) -> FunctionType:
        """`(type, type) -> type`"""
        with self.nested():
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
        start = self.pos
        inner = self.resolved(self.balanced()) if self.text.startswith("<", self.pos) else ""
        if "!quant.uniform<" in inner and _BUILTIN.match(name + inner):
            end, self.pos = self.pos, start
            self._check_inside(name)
            self.pos = end
        return scalar_type(name + inner, 0, "opaque", "")

    def _check_inside(self, name: str) -> None:
        """Reads what is inside of a tuple, vector or memref, so that its types are checked."""
        self.expect("<")
        if name == "tuple":
            while True:
                self.skip()
                inner = self.pos
                self.check_axes(self.value_type(), inner)
                if not self.accept(","):
                    return
        self.skip()
        at = self.pos
        dims = [int(n) if n else None for n in re.findall(r"(?:\[?(\d+)\]?|\?)x", self.take(_SHAPED, "dims"))]
        unranked = self.text.startswith("*", at)
        self.check_axes(TensorType(None if unranked else tuple(dims), self._element_of_shape()), at)

    def _element_of_shape(self) -> ElementType:
        at = self.pos
        element = self.element_or_alias()
        if isinstance(element, TensorType):
            self.fail("elements cannot be tensors", at)
        return element

    def type_attribute(self) -> TensorType | ElementType:
        """A type that is not that of a value. Nothing else checks its axes."""
        self.skip()
        at = self.pos
        kind = self.type()
        if isinstance(kind, (TensorType, FunctionType)):
            self.check_axes(kind if isinstance(kind, TensorType) else BareType.of(kind), at)
        return kind

    def check_axes(self, kind: TensorType, at: int) -> None:
        """Fails where scales do not fit the dims of a type."""
        if (reason := axis_problem(kind)) is not None:
            self.fail(reason, at)

    def resolved(self, text: str) -> str:
        """A text in which aliases are replaced by what they stand for: of a type alone, the text itself."""
        return text

    def scalar(self, at: int) -> ScalarType:
        name = self.take(_SCALAR, "a type")
        kind = named_scalar(name)
        if kind is None:
            self.fail(f"'{name}' is not a type, or an alias that is not defined", at)
        return kind

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
                kind = self._quantized_body(name, at)
        except (ValueError, OverflowError) as error:
            self.fail(str(error), at)
        self.expect(">")
        if simple is not None:
            self._quantized[simple[0]] = kind
        return kind

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
        rest: dict[str, Any] = {"expressed": expressed, "storage_min": low, "storage_max": high}
        if not self.accept(":"):
            self.expect(",")
            scale, zero = self._pair(expressed)
            self._check_range(expressed, scale)
            return UniformQuantizedType.of(storage, scale, zero, **rest)
        if self.peek("{"):
            axes, blocks = self._blocks()
            self.expect(",")
            scales, zeros = self._nested_pairs(expressed)
            self._check_range(expressed, scales)
            return UniformQuantizedSubChannelType.of(storage, axes, blocks, scales, zeros, **rest)
        axis = self.integer()
        self.expect(",")
        scales, zeros = self._pairs(expressed)
        self._check_range(expressed, scales)
        return UniformQuantizedPerAxisType.of(storage, axis, scales, zeros, **rest)

    def _storage(self) -> ScalarType:
        at = self.pos
        name = self.word("a storage type").removeprefix("s")
        storage = named_scalar(f"ui{name[1:]}" if name[0] == "u" and name[1:].isdigit() else name)
        if storage is None or not storage.is_integer:
            self.fail(f"'{name}' is not a storage type", at)
        return storage

    def _expressed(self) -> ScalarType:
        self.skip()
        at = self.pos
        expressed = self.scalar(at)
        if not expressed.is_float:
            self.fail(f"the expressed type must be a floating-point type, not {expressed}", at)
        return expressed

    def _range(self, storage: ScalarType) -> tuple[int, int]:
        if not self.accept("<"):
            return storage.minimum, storage.maximum
        low = self.integer()
        self.expect(":")
        high = self.integer()
        self.expect(">")
        return low, high

    def real(self, expressed: ScalarType) -> float:
        """A number with a decimal point, or the bits of a number of the expressed type."""
        at = self.pos
        text = self.take(_REAL, "a number with a decimal point")
        return self._finite(text, expressed, at)

    def _finite(self, text: str, expressed: ScalarType, at: int) -> float:
        """The value of a number's text. Only bits can be infinite; a double given by fewer bits begins with zeros, as
        MLIR reads it."""
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

    def _check_range(self, expressed: ScalarType, scales: npt.ArrayLike) -> None:
        """Refuses scales that would be 0 or infinite when rounded to the expressed type."""
        numbers = np.atleast_1d(np.asarray(scales, np.float64))
        unrepresentable = numbers[unrepresentable_scales(numbers, expressed)]
        if unrepresentable.size:
            self.fail(f"scale {unrepresentable.flat[0]} is not within the range of {expressed}")

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
        if _NESTED.match(self.text, self.pos) is None:
            return self._pairs(expressed)
        self.expect("{")
        rows = [self._nested_pairs(expressed)]
        while self.accept(","):
            rows.append(self._nested_pairs(expressed))
        self.expect("}")
        return np.stack([scale for scale, _ in rows]), np.stack([zero for _, zero in rows])


# Elements of constants: `dense<...>`, `array<...>`

_RAW_ELEMENTS = re.compile(r"[^<>\"]*")
_TOKENS = re.compile(r"[\[\],]|[^\s\[\],]+")
_LARGEST = 1 << 31


class ElementParser(TypeParser):
    """A scanner that reads elements."""

    def array(self) -> TypedArray:
        """`array<i32: 1, 2>`"""
        self.word("array")
        self.expect("<")
        at = self.pos
        kind = self.scalar(at)
        raw = self.take(_RAW_ELEMENTS, "elements").strip().removeprefix(":").strip() if self.peek(":") else ""
        self.expect(">")
        tokens = [item.strip() for item in raw.split(",")] if raw else []
        return TypedArray.of(self._values(tokens, kind, at), kind)

    def dense(self) -> tuple[Any, TensorType | ElementType]:
        """`dense<...> : tensor<...>`: the unpacked elements and their type; only the text of types that numpy does not
        have."""
        self.word("dense")
        start = self.pos
        self.expect("<")
        at = self.pos
        data = self.string_or_none()
        raw = "" if data is not None else self.take(_RAW_ELEMENTS, "elements")
        if not self.accept(">"):  # strings
            self.pos = start
            text = self.balanced()
            self.expect(":")
            kind = self.type()
            return Opaque(f"dense{text} : {type_text(kind)}"), kind
        self.expect(":")
        kind = self.type()
        if isinstance(kind, ScalarType) and kind.kind == "opaque":
            shown = self.text[start : self.text.index(">", start) + 1]
            return Opaque(f"dense{shown} : {type_text(kind)}"), kind
        if not isinstance(kind, TensorType) or not kind.is_static or not (kind.storage.numpy or kind.storage is bf16):
            self.fail("elements need a tensor type of known shape", at)
        array = self._array_of(kind, data, raw, at)
        element = kind.element
        if isinstance(element, ScalarType) and SCALAR_OF_DTYPE.get(array.dtype.str) is element:
            return array, kind
        return TypedArray.of(array, element, kind), kind

    def _array_of(self, kind: TensorType, data: str | None, raw: str, at: int) -> np.ndarray:
        shape, storage = kind.sizes, kind.storage
        dtype = np.dtype(np.uint16) if storage is bf16 else storage.dtype
        count = math.prod(shape)
        if data is not None:
            return self._from_hex(data, shape, storage, dtype, at)
        tokens = _TOKENS.findall(raw)
        if tokens and tokens[0] != "[":
            if len(tokens) != 1:
                self.fail("expected one element or a list", at)
            if count * dtype.itemsize > _LARGEST:
                self.fail("a constant is limited to 2 GiB", at)
            return np.full(shape, self._values(tokens, storage, at)[0], dtype)
        values = self._values([item for item in tokens if item not in "[],"], storage, at)
        if values.size != count or (count and self._nesting(tokens, at) != shape):
            self.fail(f"these elements are not in the shape of {'x'.join(map(str, shape)) or 'a scalar'}", at)
        return values.reshape(shape)

    def hexadecimal(self, text: str, at: int) -> bytes:
        """`0x` and digits."""
        if not text.startswith("0x"):
            self.fail("hexadecimal data starts with 0x", at)
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            self.fail("this is not hexadecimal data", at)

    def _from_hex(self, data: str, shape: tuple[int, ...], storage: ScalarType, dtype: np.dtype, at: int) -> np.ndarray:
        """The elements of bytes. Each takes as many bytes as its bits need."""
        raw = np.frombuffer(self.hexadecimal(data, at), np.uint8)
        size, count = max(1, -(-storage.bits // 8)), math.prod(shape)
        if raw.size == count * size != count * dtype.itemsize:
            wide = np.zeros((count, dtype.itemsize), np.uint8)
            wide[:, :size] = raw.reshape(count, size)
            if storage.signed:
                wide[:, size:] = np.where(wide[:, size - 1 : size] & 0x80, 0xFF, 0)
            raw = wide.reshape(-1)
        if raw.size != dtype.itemsize * count:
            self.fail(f"{raw.size} bytes are not what the type needs", at)
        return raw.view(dtype).reshape(shape)

    def _nesting(self, tokens: list[str], at: int) -> tuple[int, ...]:
        """The shape that the brackets say; lists at one level must have the same length."""
        stack: list[list[tuple[int, ...]]] = [[]]
        for item in tokens:
            if item == "[":
                stack.append([])
            elif item == "]":
                if len(stack) < 2:
                    self.fail("a bracket is closed that is not open", at)
                items = stack.pop()
                if len(set(items)) > 1:
                    self.fail("the lists in these elements have different lengths", at)
                stack[-1].append((len(items), *(items[0] if items else ())))
            elif item != ",":
                stack[-1].append(())
        if len(stack) != 1 or len(stack[0]) != 1:
            self.fail("a bracket is open that is not closed", at)
        return stack[0][0]

    def _values(self, tokens: list[str], kind: ScalarType, at: int) -> np.ndarray:
        try:
            if kind.kind == "bool":
                return np.array([{"true": True, "false": False, "1": True, "0": False}[t] for t in tokens], bool)
            if kind.is_float:
                floats = [self.float_bits(t, kind, at) if t.startswith("0x") else float(t) for t in tokens]
                return self._floats(floats, kind)
            numbers = [int(item, 0) for item in tokens]
            if kind.is_integer and any(not kind.minimum <= n <= kind.maximum for n in numbers):
                self.fail(f"an element is not within {kind}", at)
            return np.array(numbers, kind.dtype)
        except (KeyError, ValueError, OverflowError, TypeError):
            self.fail(f"these are not elements of {kind}", at)

    def _floats(self, values: list[float | np.floating], kind: ScalarType) -> np.ndarray:
        if kind is bf16:
            return bfloat16_bits(np.array(values, np.float64))
        out = np.empty(len(values), kind.dtype)
        for index, value in enumerate(values):
            out[index] = value
        return out

    def float_bits(self, text: str, kind: ScalarType, at: int) -> np.floating:
        """The float whose bits a hexadecimal number says."""
        if kind is bf16:
            wide: np.floating = bfloat16_values(np.array([int(text, 16) & 0xFFFF], np.uint16))[0]
            return wide
        if not kind.numpy:
            self.fail(f"a {kind} cannot be given by its bits", at)
        size = kind.dtype.itemsize
        bits: np.floating = np.array([int(text, 16) & ((1 << 8 * size) - 1)], f"u{size}").view(kind.dtype)[0]
        return bits

    def rounded(self, value: float, kind: ScalarType) -> float:
        """A number rounded to a float type, if numpy has the type."""
        if kind is bf16:
            return float(bfloat16_values(bfloat16_bits(value)))
        with np.errstate(over="ignore"):
            return float(np.asarray(value, kind.dtype)) if kind.numpy else value
