"""The walk over a module that infers every shape from those of the arguments.

Each operator's `infer` says the shapes of its results, whatever the file states. Operators without `infer` have the
shapes that are stated, as long as their operands do. The values inside of a function that is run from several places
are inferred for what all of these have in common; each place gets the results that follow from its own arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, TypeAlias

from tflq.analysis.known import LIMIT, Accesses, Known, constant_elements, elements_of
from tflq.contract import Pass, PassResult
from tflq.dialects.declare import Operator
from tflq.dialects.effects import entry_functions
from tflq.dialects.forms import Form
from tflq.dialects.inference import Misfit, NotInferred, text
from tflq.dialects.tfl.state import Custom
from tflq.errors import Reason
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.types import Shape, TensorType
from tflq.shapes.site import Site, join_known, join_shapes, stored_shape

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
        site = Site(self.shape, self._elements, self._call, self._accesses, ())
        self.reasons.pop(op, None)
        self.misfits.pop(op, None)
        elements: Sequence[Known | None] = ()
        found: Sequence[Shape] = [None] * len(op.results)
        try:
            found = self._infer(op, site)
            elements = site.results or elements_of(op, *site.given(op.operands)) or ()
        except (NotInferred, Misfit) as reason:
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


# Stated shapes and inferred ones: where they differ, and putting the inferred ones in place.


SHAPE_INFO = ("shape", "shape_signature", "has_rank")
"""What `Value.info` keeps of the forms that a shape has in a file."""


def infer(module: Module) -> Module:
    """The module (changed in place) with the shapes that follow from its arguments' as they are stated: unknown dims
    filled in, and those that an interpreter would disregard replaced by what it computes.

    What cannot be inferred stays as it is.
    """
    inference = Inference(module, {})
    for value, shape in inference.shapes.items():
        set_shape(value, _filled(value.type.shape, shape))
    return module


def contradictions(module: Module) -> list[str]:
    """Where a module states a result's shape that an interpreter would not compute: one sentence for each."""
    return [
        str(
            reason(
                op,
                index,
                f"'{value.name}' is stated as {text(value.type.shape)}, but an interpreter computes {text(shape)}",
            )
        )
        for index, op, value, shape in stale(module, Inference(module, {}))
    ]


def stale(module: Module, inference: Inference) -> Iterator[tuple[int, Op, Value, Shape]]:
    """Results whose stated shape has a dim other than the one inferred: function, op, value, inferred shape."""
    for index, function in enumerate(module.functions):
        for op in function.ops:
            for value in op.results:
                stated, shape = value.type.shape, inference.shapes.get(value)
                if stated is None or shape is None:
                    continue
                differ = (a is not None and b is not None and a != b for a, b in zip(stated, shape, strict=False))
                if len(stated) != len(shape) or any(differ):
                    yield index, op, value, shape


def reason(op: Op, function: int, what: str, remedy: str = "") -> Reason:
    """What is wrong with an op's shapes."""
    if op.location is None:
        return Reason(what, subgraph=function, place=f"function {function}, {op.name}", remedy=remedy)
    return Reason.at(op.location, what, remedy=remedy)


def set_shape(value: Value, shape: Shape) -> None:
    """Gives a value a shape; what its file said of the old one goes."""
    if shape == value.type.shape or value.is_constant:
        return
    value.type = TensorType(shape, value.type.element)
    value.info = {key: item for key, item in value.info.items() if key not in SHAPE_INFO}


def _filled(stated: Shape, shape: Shape) -> Shape:
    """The inferred dims, and the stated ones where those are not known."""
    if shape is None:
        return stated
    if stated is None or len(stated) != len(shape):
        return shape
    return tuple(s if d is None else d for s, d in zip(stated, shape, strict=True))


# A file has two shapes for a tensor with open dims: the signature, with -1 for an open dim, and the one that it is
# allocated with before the model is resized, which follows from what the inputs state.


class StateShapes(Pass):
    """Has tensors with open dims state the shape that they are allocated with. What an entry point returns states what
    it did, as does a tensor whose shape cannot be inferred."""

    name: ClassVar[str] = "state-shapes"
    takes: ClassVar[Form] = "kernels"

    def run(self, module: Module) -> PassResult:
        shapes = [value.type.shape for function in module.functions for value in function.values()]
        if all(shape is not None and None not in shape for shape in shapes):
            return PassResult(module, modified=False)
        modified = False
        entries = [module.functions[index] for index in entry_functions(module)]
        inference = Inference(module, {v: stored_shape(v) for function in entries for v in function.inputs})
        fixed = {v for function in entries for v in (*function.inputs, *function.outputs)}
        for value, shape in inference.shapes.items():
            if value not in fixed and _is_open(value) and _fits(value, shape):
                value.info = {**value.info, "shape": shape}
                modified = True
        return PassResult(module, modified)


def _is_open(value: Value) -> bool:
    return value.type.shape is not None and None in value.type.shape


def _fits(value: Value, shape: Shape) -> bool:
    """Whether a shape is whole, and one of those that the tensor's type allows."""
    dims = value.type.shape
    if not is_complete(shape) or shape is None or dims is None or len(shape) != len(dims):
        return False
    return all(d in (None, s) for d, s in zip(dims, shape, strict=True))
