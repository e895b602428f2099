"""What is known where an operator stands, for its `infer`: shapes of values, elements that the model computes from
shapes, results of functions that it calls, and the shapes of variables.

A loop's shapes are those that no iteration changes; branches that differ leave dims open. The kernel of READ_VARIABLE
goes by the shape that the file gives its result; if that is of rank 0, by what the variable holds. Where inputs are not
resized, all that is read from a variable and assigned to it has one shape.

Sources: kernels/if.cc, while.cc, call_once.cc, stablehlo_case.cc, stablehlo_composite.cc, stablehlo_while.cc,
var_handle.cc, read_variable.cc, assign_variable.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from tflq.analysis.known import Access, Known
from tflq.dialects.effects import is_pure
from tflq.dialects.inference import Misfit, NotInferred, Stated, text
from tflq.ir.core import Buffer, Module, Op, Value
from tflq.ir.rewriting import remove_ops, remove_unneeded
from tflq.ir.types import Shape
from tflq.light import dataclass

if TYPE_CHECKING:
    import numpy as np


Caller: TypeAlias = Callable[
    [int, Sequence[Shape], Sequence[Known | None]], tuple[Sequence[Shape], Sequence[Known | None]]
]
"""Infers a function of the module for given arguments: shapes and known elements of its results."""


@dataclass(slots=True)
class Site(Stated):
    """What is known where one operator stands."""

    inferred: Callable[[Value], Shape]
    known: Callable[[Value], Known | None]
    call: Caller
    accesses: Callable[[Value], Sequence[Access]] | None = None
    """What is done with the variables of a handle; None if their shapes may change."""
    results: Sequence[Known | None] = ()
    """Known elements of the results, where `infer` finds them on its way."""

    def shape(self, value: Value) -> Shape:
        return self.inferred(value)

    def array(self, value: Value) -> np.ndarray | None:
        known = self.known(value)
        return known.array if known is not None and known.complete else None

    def elements(self, value: Value) -> list[int | None] | None:
        known = self.known(value)
        return None if known is None else known.elements()

    def given(self, values: Sequence[Value | None]) -> tuple[list[Shape], list[Known | None]]:
        """Shapes and known elements of operands."""
        shapes = [None if v is None else self.shape(v) for v in values]
        return shapes, [None if v is None else self.known(v) for v in values]

    def branches(self, functions: Sequence[int], arguments: Sequence[Value | None], /) -> list[Shape]:
        shapes: Sequence[Shape] | None = None
        known: Sequence[Known | None] = []
        given = self.given(arguments)
        for function in functions:
            found, elements = self.call(function, *given)
            known = elements if shapes is None else [join_known(a, b) for a, b in zip(known, elements, strict=True)]
            shapes = found if shapes is None else [join_shapes(a, b) for a, b in zip(shapes, found, strict=True)]
        self.results = known
        return list(shapes or ())

    def loop(self, condition: int, body: int, arguments: Sequence[Value | None], /) -> list[Shape]:
        """Elements that the body hands on unchanged stay known: they are the same each round."""
        shapes, known = self.given(arguments)
        while True:
            after, elements = self.call(body, shapes, known)
            if len(after) != len(shapes):
                raise Misfit("its body has not as many results as arguments")
            joined = [join_shapes(a, b) for a, b in zip(shapes, after, strict=True)]
            kept = [join_known(a, b) for a, b in zip(known, elements, strict=True)]
            settled = joined == shapes and all(_as_known(a, b) for a, b in zip(known, kept, strict=True))
            shapes, known = joined, kept
            if settled:
                break
        self.call(condition, shapes, known)
        self.results = known
        return shapes

    def variable(self, handle: Value, value: Value, written: bool, /) -> Shape:
        stated = value.type.shape
        if self.accesses is None:
            if not written and (stated is None or None in stated):
                raise NotInferred("the file does not say what shape the variable has")
            return stated
        if written:
            return self._held(handle, value, self.dims(value))
        return self._held(handle, value, stored_shape(value) if stated else None)

    def _held(self, handle: Value, value: Value, shape: Shape) -> Shape:
        """The shape of a variable, which must be that of the value that is read or assigned, if it has one."""
        for access in () if self.accesses is None else self.accesses(handle):
            other = access.value
            found = self.shape(other) if access.written else stored_shape(other) or None
            if found is None or None in found:
                continue
            if shape is not None and None not in shape and shape != found:
                done = "initialized with" if access.once is not None else "assigned" if access.written else "read as"
                raise NotInferred(
                    f"'{value.name}' is {text(shape)}, and its variable '{access.name}' is {done} '{other.name}' "
                    f"{text(found)}"
                )
            shape = found
        if shape is None and value.type.shape is None:
            raise NotInferred(
                "nothing says what shape its variable has: neither what it is initialized with (CALL_ONCE), nor what "
                "is read or assigned elsewhere"
            )
        return () if shape is None else shape


def stored_shape(value: Value) -> Shape:
    """The shape that a file gives a tensor with open dims; 1 for an open dim if it does not say."""
    dims = value.type.shape
    if dims is None:
        return None
    stored = value.info.get("shape")
    if stored is None or len(stored) != len(dims):
        stored = (1,) * len(dims)
    return tuple(int(s) if d is None else d for d, s in zip(dims, stored, strict=True))


def join_shapes(one: Shape, other: Shape) -> Shape:
    """What holds of both: dims that differ are open."""
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple(a if a == b else None for a, b in zip(one, other, strict=True))


def join_known(one: Known | None, other: Known | None) -> Known | None:
    """The elements that both have."""
    return None if one is None or other is None else one.join(other)


def _as_known(one: Known | None, other: Known | None) -> bool:
    return one is other if one is None or other is None else one.same(other)


# Sizes that a model computes, once they are known, are constants: SHAPE, what is computed with it, RANGE of it.


def fold_sizes(module: Module, known: Mapping[Value, Known]) -> None:
    """Puts constants in the place of integer results whose elements are all known, and drops what only they read."""
    for function in module.functions:
        folded = {op for op in function.ops if _is_known(op, known)}
        for op in folded:
            for value in op.results:
                value.producer = None
                value.buffer = Buffer.of(known[value].array)
        remove_ops(function, folded)
    remove_unneeded(module, is_pure)


def _is_known(op: Op, known: Mapping[Value, Known]) -> bool:
    if not op.results or not is_pure(op):
        return False
    return all(v in known and known[v].complete and _is_size(v, known[v]) for v in op.results)


def _is_size(value: Value, known: Known) -> bool:
    storage = value.type.storage
    return storage.kind in ("int", "bool") and storage.bits >= 8 and known.array.dtype == storage.dtype
