"""The walk over a module that infers every shape from those of the arguments.

Each operator's `infer` says the shapes of its results. What the file says of them is not looked at, but for operators
without `infer`: theirs hold as long as their operands are as the file says. What is inside of a function that is run
from several places is inferred for what all of them have in common; each place gets the results that follow from its
own arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from tflq.analysis.known import LIMIT, Known, constant_elements, elements_of
from tflq.analysis.variables import Accesses
from tflq.dialects.calls import entry_functions
from tflq.dialects.declare import Operator
from tflq.dialects.inference import Misfit, NotInferred
from tflq.dialects.tfl.control import Custom
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.types import Shape
from tflq.shapes.site import Site, join_known, join_shapes

__all__ = ["Inference", "is_complete"]

_Arguments: TypeAlias = tuple[Sequence[Shape], Sequence[Known | None]]


def is_complete(shape: Shape) -> bool:
    return shape is not None and None not in shape


def _alike(one: _Arguments, other: _Arguments) -> bool:
    if list(one[0]) != list(other[0]):
        return False
    return all(a is b or (a is not None and b is not None and a.same(b)) for a, b in zip(one[1], other[1], strict=True))


class Inference:
    """Shapes of all values that a module's entry functions compute, for given shapes of their arguments. `accesses`:
    what the module does with variables, where each of these has one shape.

    `shapes` holds arguments and results, `known` what is known of their elements, `reasons` why an op's results
    could not be inferred, `misfits` the reasons for which an interpreter refuses an op.
    """

    def __init__(self, module: Module, arguments: Mapping[Value, Shape], accesses: Accesses | None = None) -> None:
        self.shapes: dict[Value, Shape] = {}
        self.known: dict[Value, Known] = {}
        self.reasons: dict[Op, str] = {}
        self.misfits: dict[Op, str] = {}
        self._module = module
        self._accesses = None if accesses is None else accesses.of
        self._arguments: dict[int, _Arguments] = {}
        self._results: dict[int, _Arguments] = {}
        self._active: set[int] = set()
        for index in entry_functions(module):
            inputs = module.functions[index].inputs
            self._call(index, [arguments.get(v, v.type.shape) for v in inputs], [None] * len(inputs))

    def shape(self, value: Value) -> Shape:
        return self.shapes.get(value, value.type.shape)

    def _elements(self, value: Value) -> Known | None:
        found = self.known.get(value)
        return constant_elements(value) if found is None else found

    def _call(self, index: int, shapes: Sequence[Shape], known: Sequence[Known | None]) -> _Arguments:
        if index in self._active:
            raise Misfit(f"function {index} runs itself")
        if not 0 <= index < len(self._module.functions):
            raise Misfit(f"there is no function {index}")
        function = self._module.functions[index]
        if len(shapes) != len(function.inputs):
            raise Misfit(f"{len(shapes)} arguments for the {len(function.inputs)} of function {index}")
        wanted = list(shapes), [None if k is None or k.array.size > LIMIT else k for k in known]
        before = self._arguments.get(index)
        if before is None:
            return self._enter(index, wanted)
        if _alike(before, wanted):
            return self._results[index]
        joined = [join_shapes(a, b) for a, b in zip(before[0], wanted[0], strict=True)]
        kept = [join_known(a, b) for a, b in zip(before[1], wanted[1], strict=True)]
        exact = self._enter(index, wanted)
        if not _alike(wanted, (joined, kept)):
            self._enter(index, (joined, kept))
        return exact

    def _enter(self, index: int, arguments: _Arguments) -> _Arguments:
        """The results of a function; its values are those of these arguments after that."""
        self._arguments[index] = arguments
        self._active.add(index)
        try:
            self._results[index] = self._run(self._module.functions[index], *arguments)
        finally:
            self._active.discard(index)
        return self._results[index]

    def _run(self, function: Function, shapes: Sequence[Shape], known: Sequence[Known | None]) -> _Arguments:
        for value, shape, elements in zip(function.inputs, shapes, known, strict=True):
            self._define(value, shape, elements)
        for op in function.ops:
            self._op(op)
        outputs = function.outputs
        return [self.shape(v) for v in outputs], [self._elements(v) for v in outputs]

    def _define(self, value: Value, shape: Shape, elements: Known | None) -> None:
        self.shapes[value] = shape
        self.known.pop(value, None)
        if elements is not None and elements.array.shape == shape:
            self.known[value] = elements

    def _op(self, op: Op) -> None:
        site = Site(self.shape, self._elements, self._call, self._accesses)
        self.reasons.pop(op, None)
        self.misfits.pop(op, None)
        elements: Sequence[Known | None] = ()
        found: Sequence[Shape] = [None] * len(op.results)
        try:
            found = self._infer(op, site)
            elements = site.results or elements_of(op, *site.given(op.operands)) or ()
        except NotInferred as reason:
            self.reasons[op] = str(reason)
            if isinstance(reason, Misfit):
                self.misfits[op] = str(reason)
        for i, (value, shape) in enumerate(zip(op.results, found, strict=True)):
            self._define(value, shape, elements[i] if i < len(elements) else None)

    def _infer(self, op: Op, site: Site) -> Sequence[Shape]:
        if not isinstance(op, Operator) or not op.infers:
            return self._stated(op)
        if (missing := op.missing) is not None:
            raise NotInferred(f"operand '{missing.name}' is missing")
        answer = op.infer(site)
        found: list[Shape] = answer if isinstance(answer, list) else [answer]
        if len(found) != len(op.results):
            raise Misfit(f"it has {len(op.results)} results, where {len(found)} are expected")
        if any(d is not None and d < 0 for dims in found for d in dims or ()):
            raise Misfit(f"its result would have a negative dim: {found}")
        return found

    def _stated(self, op: Op) -> list[Shape]:
        """What the file says of an operator's results, if it is as the file says otherwise."""
        name = (op.code if isinstance(op, Custom) else "") or op.name
        stated = [v.type.shape for v in op.results]
        if not all(is_complete(s) for s in stated):
            raise NotInferred(f"what shape {name} gives is not known, and the file does not say it")
        for value in op.operands:
            if value is not None and (not is_complete(self.shape(value)) or self.shape(value) != value.type.shape):
                raise NotInferred(
                    f"what shape {name} gives for an operand '{value.name}' of another shape is not known"
                )
        return stated
