"""Attributes that say more than Python's own values: numbers and arrays of a stated type, affine maps, and those of
dialects that are known by their text alone.

Each is also the plain value: `TypedInt` is an int, `TypedArray` a numpy array. Where the type is what a plain value
means anyway (i64, f64, an array's dtype), the plain value is used.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, ClassVar, Final, Self

import numpy as np

from tflq.ir.types import ElementType, TensorType


class _Typed:
    """A plain value of Python with a type."""

    type: TensorType | ElementType
    _base: ClassVar[Any]

    def __new__(cls, value: Any, type: TensorType | ElementType) -> Self:
        attribute = super().__new__(cls, value)  # type: ignore[call-arg]
        attribute.type = type
        return attribute

    @property
    def plain(self) -> Any:
        """The value without the type."""
        return self._base(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.plain, self.type)


class TypedInt(_Typed, int):
    """`3 : i32`"""

    _base = int


class TypedFloat(_Typed, float):
    """`0.5 : f32`, rounded to the type."""

    _base = float


class TypedString(_Typed, str):
    """`"text" : !some.type`"""

    _base = str


class TypedArray(np.ndarray):
    """`array<i32: 1, 2>` where `type` is None (its elements are of `element`), else `dense<...> : type`.

    Elements that numpy has no type for are held as bits: bf16 as uint16.
    """

    element: ElementType | None
    type: TensorType | None

    @classmethod
    def of(cls, array: np.ndarray, element: ElementType, type: TensorType | None = None) -> TypedArray:
        typed = np.asarray(array).view(cls)
        typed.element, typed.type = element, type
        return typed

    def __array_finalize__(self, source: Any) -> None:
        self.element, self.type = getattr(source, "element", None), getattr(source, "type", None)

    def __reduce__(self) -> tuple[Any, ...]:
        return TypedArray.of, (np.asarray(self), self.element, self.type)


class Opaque:
    """An attribute of a dialect, such as `#stablehlo<precision HIGH>`, as it is written, with single blanks."""

    def __init__(self, text: str) -> None:
        self.text: Final = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


class AffineMap:
    """`affine_map<(d0, d1) -> (d1)>`, as it is written, without needless blanks."""

    def __init__(self, text: str) -> None:
        self.text: Final = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineMap) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @cached_property
    def dims(self) -> tuple[str, ...]:
        """The names of its dims."""
        return _names(self.text[self.text.index("(") + 1 : self.text.index(")")])

    @cached_property
    def results(self) -> tuple[str, ...]:
        """The types of the results, as text."""
        return _names(self.text[self.text.rindex("-> (") + 4 : -2])

    @classmethod
    def projection(cls, rank: int, dims: tuple[int, ...]) -> AffineMap:
        """The map of a number of dims to some of them."""
        names = [f"d{i}" for i in range(rank)]
        return cls(f"affine_map<({', '.join(names)}) -> ({', '.join(names[d] for d in dims)})>")

    @classmethod
    def of(cls, text: str) -> AffineMap:
        """The map of a text, with blanks as MLIR prints them."""
        tight = re.sub(r"\s+", " ", text.strip())
        tight = re.sub(r"\s*([<>(),\[\]])\s*", r"\1", tight)
        tight = re.sub(r"\s*->\s*|-\s*>", " -> ", tight.replace("->", " -> "))
        return cls(re.sub(r",(?=\S)", ", ", tight))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


# What affine maps compute, `affine_map<(d0, d1) -> (d1 floordiv 2, d0 * 3 + 1)>`: sums and differences, products with a
# constant, `floordiv`, `ceildiv` and `mod` by a positive constant.


_OPERATORS: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.MatMult: lambda a, b: -(-a // b),  # ceildiv, which binds as strongly
}
_LONGEST: Final = 256
_WORDS: Final = (("floordiv", "//"), ("ceildiv", "@"), ("mod", "%"))


def applied(where: AffineMap, places: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a map at places, which are integers or arrays of them. ValueError for another expression."""
    names = dict(zip(where.dims, places, strict=True))
    return tuple(_value(_parsed(text), names) for text in where.results)


def dim_of(where: AffineMap, result: int) -> int | None:
    """The dim that a result of a map is; None if it is an expression of dims."""
    text = where.results[result]
    return where.dims.index(text) if text in where.dims else None


@cache
def _parsed(text: str) -> ast.expr:
    for word, symbol in _WORDS:
        text = text.replace(f" {word} ", f" {symbol} ")
    if len(text) > _LONGEST:  # the parser and `_value` call themselves for each bracket and sign
        raise ValueError(f"an affine expression of {len(text)} characters; the longest that is read has {_LONGEST}")
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        raise ValueError(f"'{text}' is not an affine expression") from None


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, names)
        case ast.BinOp(left=left, op=kind, right=right) if type(kind) in _OPERATORS:
            return _OPERATORS[type(kind)](_value(left, names), _value(right, names))
    raise ValueError(f"'{ast.unparse(node)}' is not an affine expression of {', '.join(names)}")
