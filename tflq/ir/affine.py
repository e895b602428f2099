"""What affine maps compute: `affine_map<(d0, d1) -> (d1 floordiv 2, d0 * 3 + 1)>` of arrays of places.

sums and differences, products with a constant, `floordiv`, `ceildiv` and `mod` by a positive constant
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from tflq.ir.attributes import AffineMap

__all__ = ["applied", "dim_of"]

_OPERATORS: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.MatMult: lambda a, b: -(-a // b),  # ceildiv, which binds as strongly
}
_WORDS: Final = (("floordiv", "//"), ("ceildiv", "@"), ("mod", "%"))


def applied(where: AffineMap, places: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a map, of integers or of arrays of them. ValueError if it is none of these expressions."""
    names = dict(zip(where.dims, places, strict=True))
    return tuple(_value(_parsed(text), names) for text in where.results)


def dim_of(where: AffineMap, result: int) -> int | None:
    """Which dim a result of a map is; None if it is none of them as it is."""
    text = where.results[result]
    return where.dims.index(text) if text in where.dims else None


@cache
def _parsed(text: str) -> ast.expr:
    for word, symbol in _WORDS:
        text = text.replace(f" {word} ", f" {symbol} ")
    return ast.parse(text, mode="eval").body


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
    raise ValueError(f"'{ast.unparse(node)}' is no affine expression of {', '.join(names)}")
