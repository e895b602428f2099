"""What `infer` of an operator has to work with: the shapes of its operands, and words for what does not fit.

    class Transpose(Operator, name="tosa.transpose"):
        def infer(self, site: Stated) -> Shape:
            dims = site.dims(self.input)
            return tuple(dims[p] for p in self.perms)

`infer` answers the result's shape, or a list with one for each result. A dim is None where it is not known, a shape is
None where not even its rank is. Emitters give results their types by it, TOSA's laws compare with it, and shape
inference is a walk over it (`tflq.shapes`); so it may rely on what the op's results state only where nothing else says
it, as of a reshape. What operators share of the arithmetic is in `tflq.dialects.sizes` and `tflq.dialects.windows`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from tflq.ir.core import Value
from tflq.ir.types import Shape

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "STATED",
    "Dims",
    "Misfit",
    "NotInferred",
    "Stated",
    "agree",
    "broadcast",
    "constant_array",
    "plus",
    "product",
    "text",
]

Dims: TypeAlias = tuple[int | None, ...]


class NotInferred(ValueError):  # noqa: N818 - an answer of a rule
    """Result shapes do not follow from the operands; the message is a clause that says why."""


class Misfit(NotInferred):
    """No interpreter runs the operator on operands of these shapes."""


def constant_array(value: Value) -> np.ndarray | None:
    """The elements of a constant of plain numbers that no variable may change; None of another value."""
    if not value.is_constant or value.type.quantized or not value.type.storage.numpy or not value.type.is_static:
        return None
    return None if value.info.get("sparsity") or value.info.get("is_variable") else value.array


class Stated:
    """What the types of values say, and the elements of constants.

    `tflq.shapes.Site` knows more: elements that the model computes from shapes, functions that an op calls, variables.
    """

    __slots__ = ()

    def shape(self, value: Value) -> Shape:
        return value.type.shape

    def dims(self, value: Value | None, rank: int | None = None, least: int = 0) -> Dims:
        """The shape of an operand, of a rank if that is given, else of at least so many dims."""
        if value is None:
            raise NotInferred("an operand is missing")
        found = self.shape(value)
        if found is None:
            raise NotInferred(f"the rank of '{value.name}' is not known")
        if rank is not None and len(found) != rank:
            raise Misfit(f"'{value.name}' is {text(found)}, not of rank {rank}")
        if len(found) < least:
            raise Misfit(f"'{value.name}' is {text(found)}, and has to have at least {least} dims")
        return found

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from 0."""
        if not -rank <= axis < rank:
            raise Misfit(f"axis {axis} is outside a rank of {rank}")
        return axis % rank

    def common(self, values: Sequence[Value | None]) -> Dims:
        """The one shape of all these."""
        first = self.dims(values[0])
        for value in values[1:]:
            other = self.dims(value, len(first))
            if other != first:
                first = tuple(agree(a, b, "dims of its operands") for a, b in zip(first, other, strict=True))
        return first

    def joined(self, values: Sequence[Value | None], axis: int) -> Dims:
        """All values one after the other along an axis."""
        first = self.dims(values[0] if values else None)
        along = self.axis(axis, len(first))
        out = list(first)
        for value in values[1:]:
            for i, dim in enumerate(self.dims(value, len(first))):
                out[i] = plus(out[i], dim) if i == along else agree(out[i], dim, f"dim {i} of its operands")
        return tuple(out)

    def broadcast(self, values: Sequence[Value]) -> Dims:
        """The shape that these broadcast to."""
        return broadcast(*map(self.dims, values)) or ()

    def array(self, value: Value) -> np.ndarray | None:
        """All elements of an operand; None if one is not known before the model runs."""
        return constant_array(value)

    def elements(self, value: Value) -> list[int | None] | None:
        """The elements of an operand as integers, None for one that is not known; None if none is."""
        array = self.array(value)
        return None if array is None else [int(v) for v in array.reshape(-1).tolist()]

    def ints(self, value: Value | None, count: int | None = None) -> list[int | None]:
        """The elements of an operand that holds sizes, axes or indices, None for one that is not known.

        `count`: how many there must be.
        """
        if value is None:
            raise NotInferred("an operand is missing")
        found = self.elements(value)
        if found is None:
            total = product(self.dims(value))
            if total is None:
                raise NotInferred(f"the elements of '{value.name}' are not known before the model runs")
            found = [None] * total
        if count is not None and len(found) != count:
            raise Misfit(f"'{value.name}' has {len(found)} elements, where {count} are expected")
        return found

    def whole(self, value: Value, count: int | None = None) -> list[int]:
        """The elements of such an operand, if all are known."""
        found = self.ints(value, count)
        known = [v for v in found if v is not None]
        if len(known) != len(found):
            raise NotInferred(f"the elements of '{value.name}' are not known before the model runs")
        return known

    def chosen_axis(self, value: Value, rank: int) -> int | None:
        """The axis that an operand holds, counted from 0; None if it is not known."""
        (axis,) = self.ints(value, 1)
        return None if axis is None else self.axis(axis, rank)

    def branches(self, _functions: Sequence[int], _arguments: Sequence[Value | None], /) -> list[Shape]:
        """What holds of the results of all these functions of the module on the same arguments."""
        raise NotInferred("what the functions give that it calls is not known")

    def loop(self, _condition: int, _body: int, _arguments: Sequence[Value | None], /) -> list[Shape]:
        """What holds of the values that a function goes on with, as long as another says so."""
        raise NotInferred("what the functions give that it calls is not known")

    def variable(self, _handle: Value, _value: Value, _written: bool, /) -> Shape:
        """The shape of the variable that a handle stands for, by an op that reads or writes a value."""
        raise NotInferred("what shape the variable has is not known")


STATED: Final = Stated()


@lru_cache(maxsize=4096)
def broadcast(*shapes: Shape) -> Shape:
    """numpy's broadcast of shapes; an unknown dim meets 1 as itself, and a known dim other than 1 as that dim."""
    known = [s for s in shapes if s is not None]
    if len(known) != len(shapes):
        return None
    out: list[int | None] = []
    for i in range(max(map(len, known))):
        dims = {s[-1 - i] for s in known if i < len(s)} - {1}
        sizes = dims - {None}
        if len(sizes) > 1:
            raise Misfit(f"its operands {' and '.join(map(text, known))} do not broadcast")
        out.append(sizes.pop() if sizes else (None if dims else 1))
    return tuple(reversed(out))


def product(dims: Iterable[int | None]) -> int | None:
    """How many elements; None if a dim is not known."""
    total = 1
    for dim in dims:
        if dim is None:
            return None
        total *= dim
    return total


def plus(*terms: int | None) -> int | None:
    """The sum; None if a term is not known."""
    known = [t for t in terms if t is not None]
    return sum(known) if len(known) == len(terms) else None


def agree(one: int | None, other: int | None, what: str) -> int | None:
    """The dim that both must be."""
    if one is not None and other is not None and one != other:
        raise Misfit(f"{what}: {one} and {other} differ")
    return other if one is None else one


def text(dims: Shape) -> str:
    return "of unknown rank" if dims is None else f"[{', '.join('?' if d is None else str(d) for d in dims)}]"
