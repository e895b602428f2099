"""The walk over a module that infers every shape from those of the arguments.

Each operator's `infer` says the shapes of its results, whatever the file states. Operators without `infer` have the
shapes that are stated, as long as their operands do. The values inside of a function that is run from several places
are inferred for what all of these have in common; each place gets the results that follow from its own arguments.

A `Site` is what is known where an operator stands, for its `infer`: shapes of values, elements that the model computes
from shapes, results of functions that it calls, and the shapes of variables.
A loop's shapes are those that no iteration changes; branches that differ leave dims open. The kernel of READ_VARIABLE
goes by the shape that the file gives its result; if that is of rank 0, by what the variable holds. Where inputs are not
resized, all that is read from a variable and assigned to it has one shape.

Sources: kernels/if.cc, while.cc, call_once.cc, stablehlo_case.cc, stablehlo_composite.cc, stablehlo_while.cc,
var_handle.cc, read_variable.cc, assign_variable.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from tflq.analysis.known import LIMIT, Access, Accesses, Known, constant_elements, elements_of
from tflq.base.errors import Reason, UnsupportedError, operators
from tflq.dialects.declare import Operator
from tflq.dialects.effects import entry_functions, is_pure
from tflq.dialects.inference import DeclaredShapes, Misfit, NotInferred, check_sizes, text
from tflq.dialects.tfl.state import Custom, ReadVariable
from tflq.dialects.traits import ReadsShapes
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.rewriting import remove_ops, remove_unneeded
from tflq.ir.types import ScalarType, Shape, TensorType

if TYPE_CHECKING:
    import numpy as np


_DIMS: Final = 1 << 31
"""The dims that an interpreter holds, in an int32, are below."""
Caller: TypeAlias = Callable[
    [int, Sequence[Shape], Sequence[Known | None]], tuple[Sequence[Shape], Sequence[Known | None]]
]
"""Infers a function of the module for given arguments: shapes and known elements of its results."""


class Site(DeclaredShapes):
    """The known facts at the place of one operator."""

    __slots__ = ("call", "inferred", "known", "results", "variables")

    def __init__(
        self,
        inferred: Callable[[Value], Shape],
        known: Callable[[Value], Known | None],
        call: Caller,
        variables: Variables | None = None,
        results: Sequence[Known | None] = (),
    ) -> None:
        self.inferred = inferred
        self.known = known
        self.call = call
        self.variables = variables
        """None if the shapes of variables may change."""
        self.results = results
        """Known elements of the results, where `infer` finds them on its way."""

    def shape(self, value: Value) -> Shape:
        return self.inferred(value)

    def array(self, value: Value) -> np.ndarray | None:
        known = self.known(value)
        return known.array if known is not None and known.complete else None

    def elements(self, value: Value) -> list[int | None] | None:
        known = self.known(value)
        return None if known is None else known.elements()

    def operand_facts(self, values: Sequence[Value | None]) -> tuple[list[Shape], list[Known | None]]:
        """Shapes and known elements of operands."""
        shapes = [None if v is None else self.shape(v) for v in values]
        return shapes, [None if v is None else self.known(v) for v in values]

    def branches(self, functions: Sequence[int], arguments: Sequence[Value | None], /) -> list[Shape]:
        shapes: Sequence[Shape] | None = None
        known: Sequence[Known | None] = []
        facts = self.operand_facts(arguments)
        for function in functions:
            returned, elements = self.call(function, *facts)
            known = elements if shapes is None else [join_known(a, b) for a, b in zip(known, elements, strict=True)]
            shapes = returned if shapes is None else [join_shapes(a, b) for a, b in zip(shapes, returned, strict=True)]
        self.results = known
        return list(shapes or ())

    def loop(self, condition: int, body: int, arguments: Sequence[Value | None], /) -> list[Shape]:
        """Elements that the body hands on unchanged stay known: they are the same each round."""
        shapes, known = self.operand_facts(arguments)
        while True:
            after, elements = self.call(body, shapes, known)
            if len(after) != len(shapes):
                raise Misfit("its body has not as many results as arguments")
            joined = [join_shapes(a, b) for a, b in zip(shapes, after, strict=True)]
            merged = [join_known(a, b) for a, b in zip(known, elements, strict=True)]
            settled = joined == shapes and all(_as_known(a, b) for a, b in zip(known, merged, strict=True))
            shapes, known = joined, merged
            if settled:
                break
        self.call(condition, shapes, known)
        self.results = known
        return shapes

    def variable(self, handle: Value, value: Value, written: bool, /) -> Shape:
        declared = value.type.shape
        if self.variables is None:
            if not written and (declared is None or None in declared):
                raise NotInferred("the file does not say what shape the variable has")
            return declared
        if written:
            return self._shape_of_variable(handle, value, self.dims(value))
        return self._shape_of_variable(handle, value, stored_shape(value) if declared else None)

    def _shape_of_variable(self, handle: Value, value: Value, shape: Shape) -> Shape:
        """The shape of a variable, which must be that of the value that is read or assigned, if it has one."""
        for access, known in () if self.variables is None else self.variables.to_compare(handle):
            if is_complete(shape) and shape != known:
                done = "initialized with" if access.once is not None else "assigned" if access.written else "read as"
                raise NotInferred(
                    f"'{value.name}' is {text(shape)}, and its variable '{access.name}' is {done} "
                    f"'{access.value.name}' {text(known)}"
                )
            shape = known
        if shape is None and value.type.shape is None:
            raise NotInferred(
                "nothing says what shape its variable has: neither what it is initialized with (CALL_ONCE), nor what "
                "is read or assigned elsewhere"
            )
        return () if shape is None else shape


class Variables:
    """Variables of one shape each. Of each one access with a known shape is remembered, with which others are compared
    as they are inferred."""

    def __init__(self, accesses: Accesses, inferred: Callable[[Value], Shape]) -> None:
        self._accesses = accesses
        self._inferred = inferred
        self._remembered: dict[str, tuple[Access, Shape]] = {}

    def to_compare(self, handle: Value) -> Iterator[tuple[Access, Shape]]:
        """Accesses to the variables of a handle, with their known shapes: the one remembered, else all."""
        for name in self._accesses.names(handle):
            remembered = self._remembered.get(name)
            if remembered is not None and self._shape(remembered[0]) == remembered[1]:
                yield remembered
                continue
            known = [(a, shape) for a in self._accesses.named(name) if is_complete(shape := self._shape(a))]
            yield from known
            if known:
                self._remembered[name] = known[0]

    def _shape(self, access: Access) -> Shape:
        return self._inferred(access.value) if access.written else stored_shape(access.value) or None


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
    """The dims that hold of both: dims that differ are open."""
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple(a if a == b else None for a, b in zip(one, other, strict=True))


def join_known(one: Known | None, other: Known | None) -> Known | None:
    """The elements that both have."""
    return None if one is None or other is None else one.join(other)


def _as_known(one: Known | None, other: Known | None) -> bool:
    return one is other if one is None or other is None else one.same(other)


# The walk.


_Arguments: TypeAlias = tuple[Sequence[Shape], Sequence[Known | None]]
_MOST_ENTERED = 64
"""Runs of a function, each on other arguments. Further calls are told what holds of all of them: in functions that call
others, runs would multiply."""


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
    could not be inferred, `misfits` the reasons for which an interpreter refuses an op, for any call of its function.
    """

    def __init__(self, module: Module, arguments: Mapping[Value, Shape], accesses: Accesses | None = None) -> None:
        self.shapes: dict[Value, Shape] = {}
        self.known: dict[Value, Known] = {}
        self.reasons: dict[Op, str] = {}
        self.misfits: dict[Op, str] = {}
        self._module = module
        self._variables = None if accesses is None else Variables(accesses, self.shape)
        self._arguments: dict[int, _Arguments] = {}
        self._results: dict[int, _Arguments] = {}
        self._active: set[int] = set()
        self._entered: dict[int, int] = {}
        for index in entry_functions(module):
            inputs = module.functions[index].inputs
            self._call(index, [arguments.get(v, v.type.shape) for v in inputs], [None] * len(inputs))

    def shape(self, value: Value) -> Shape:
        return self.shapes.get(value, value.type.shape)

    def _elements(self, value: Value) -> Known | None:
        elements = self.known.get(value)
        return constant_elements(value) if elements is None else elements

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
        merged = [join_known(a, b) for a, b in zip(before[1], wanted[1], strict=True)]
        if self._entered[index] >= _MOST_ENTERED:
            return self._results[index] if _alike(before, (joined, merged)) else self._enter(index, (joined, merged))
        exact = self._enter(index, wanted)
        if not _alike(wanted, (joined, merged)):
            self._enter(index, (joined, merged))
        return exact

    def _enter(self, index: int, arguments: _Arguments) -> _Arguments:
        """The results of a function; its values are those of these arguments after that."""
        self._arguments[index] = arguments
        self._entered[index] = self._entered.get(index, 0) + 1
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
        site = Site(self.shape, self._elements, self._call, self._variables, ())
        self.reasons.pop(op, None)
        elements: Sequence[Known | None] = ()
        shapes: Sequence[Shape] = [None] * len(op.results)
        try:
            shapes = self._infer(op, site)
            elements = site.results or self._computed(op, site)
        except (NotInferred, Misfit) as reason:
            self.reasons[op] = str(reason)
            if isinstance(reason, Misfit):
                self.misfits[op] = str(reason)
        for i, (value, shape) in enumerate(zip(op.results, shapes, strict=True)):
            self._define(value, shape, elements[i] if i < len(elements) else None)

    def _computed(self, op: Op, site: Site) -> Sequence[Known | None]:
        """The known elements of an op's results: none if one of its operands is not known, but for those that
        follow from shapes."""
        if not op.matches(ReadsShapes):
            for value in op.operands:
                if value is None or self._elements(value) is None:
                    return ()
        return elements_of(op, *site.operand_facts(op.operands)) or ()

    def _infer(self, op: Op, site: Site) -> Sequence[Shape]:
        if not isinstance(op, Operator) or not op.infers:
            return self._declared(op)
        if (missing := op.missing) is not None:
            raise NotInferred(f"operand '{missing.name}' is missing")
        answer = op.infer(site)
        shapes: list[Shape] = answer if isinstance(answer, list) else [answer]
        if len(shapes) != len(op.results):
            raise Misfit(f"it has {len(op.results)} results, where {len(shapes)} are expected")
        for dims in shapes:
            check_sizes(dims, _DIMS)
        return shapes

    def _declared(self, op: Op) -> list[Shape]:
        """The shapes that the file declares for an operator's results, if all else is as declared."""
        name = (op.code if isinstance(op, Custom) else "") or op.name
        declared = [v.type.shape for v in op.results]
        if not all(is_complete(s) for s in declared):
            raise NotInferred(f"what shape {name} gives is not known, and the file does not say it")
        for value in op.operands:
            if value is not None and (not is_complete(self.shape(value)) or self.shape(value) != value.type.shape):
                raise NotInferred(
                    f"what shape {name} gives for an operand '{value.name}' of another shape is not known"
                )
        return declared


# Sizes that a model computes, once they are known, are constants: SHAPE, what is computed with it, RANGE of it.


def fold_sizes(module: Module, known: Mapping[Value, Known]) -> bool:
    """Puts constants in the place of integer results whose elements are all known, and drops what only they read; and
    what nothing reads. Whether there is any."""
    modified = False
    for function in module.functions:
        folded = {op for op in function.ops if _is_known(op, known)} if known else set()
        modified |= bool(folded)
        for op in folded:
            for value in op.results:
                value.producer = None
                value.buffer = Buffer.of(known[value].array)
        remove_ops(function, folded)
    return remove_unneeded(module, is_pure) or modified


def _is_known(op: Op, known: Mapping[Value, Known]) -> bool:
    if not op.results or not all(v in known and known[v].complete and _is_size(v, known[v]) for v in op.results):
        return False
    return is_pure(op)


def _is_size(value: Value, known: Known) -> bool:
    storage = value.type.storage
    return storage.kind in ("int", "bool") and storage.bits >= 8 and known.array.dtype == storage.dtype


# Stated shapes and inferred ones: where they differ, and putting the inferred ones in place.


SHAPE_INFO = ("shape", "shape_signature", "has_rank")
"""Keys of `Value.info` for the forms that a shape has in a file."""


def inferred(module: Module) -> Inference:
    """The shapes that follow from those that the arguments state, where each variable has one shape: kept with what is
    known of the module's functions, until a pass changes something."""
    return module.main.once("shapes", lambda: Inference(module, {}, Accesses(module)))


def infer(module: Module) -> Module:
    """The module (changed in place) with the shapes that follow from its arguments' as they are stated: unknown dims
    filled in, and those that an interpreter would disregard replaced by what it computes.

    What cannot be inferred stays as it is.
    """
    inference = Inference(module, {})
    for value, shape in inference.shapes.items():
        set_shape(value, _filled(value.type.shape, shape))
    return module


def stale(module: Module, inference: Inference) -> Iterator[tuple[int, Op, Value, Shape]]:
    """Results whose stated shape has a dim other than the one inferred: function, op, value, inferred shape."""
    for index, function in enumerate(module.functions):
        for op in function.ops:
            for value in op.results:
                declared, shape = value.type.shape, inference.shapes.get(value)
                if declared == shape or declared is None or shape is None:
                    continue
                differ = (a is not None and b is not None and a != b for a, b in zip(declared, shape, strict=False))
                if len(declared) != len(shape) or any(differ):
                    yield index, op, value, shape


def reason(op: Op, function: int, what: str, remedy: str = "") -> Reason:
    """The reason that tells of a fault in an op's shapes."""
    if op.location is None:
        return Reason(what, subgraph=function, place=f"function {function}, {op.name}", remedy=remedy)
    return Reason.at(op.location, what, remedy=remedy)


def refuse(module: Module, reasons: Mapping[Op, str], what: str = "shapes") -> None:
    """UnsupportedError that lists the operators with a reason, if there are any; `what` does not fit."""
    wrong = [
        reason(op, index, reasons[op])
        for index, function in enumerate(module.functions if reasons else ())
        for op in function.ops
        if op in reasons
    ]
    if wrong:
        summary = f"{what} do not fit at {operators(len(wrong))}:"
        remedy = f"write the model again, with {what} that fit" + (", or give --shape" if what == "shapes" else "")
        raise UnsupportedError(summary, wrong, remedy=remedy)


def refuse_misfits(module: Module, inference: Inference) -> None:
    """UnsupportedError if no interpreter runs some operator on its operands."""
    refuse(module, {op: f"{why}; no interpreter runs it on these shapes" for op, why in inference.misfits.items()})


def foreign_types(module: Module) -> dict[Op, str]:
    """READ_VARIABLE of another type than all that is assigned to its variable, each with the reason. Kernels check the
    type as they read; a variable has none of its own. Source: kernels/read_variable.cc."""
    if not any(function.has_ops(ReadVariable) for function in module.functions):
        return {}
    reasons: dict[Op, str] = {}
    everywhere = Accesses(module)
    assigned: dict[str, dict[ScalarType, Value]] = {}
    for op in [op for function in module.functions for op in function.ops_of(ReadVariable)]:
        others: dict[ScalarType, tuple[str, Value]] = {}
        for name in everywhere.names(op.resource):
            if name not in assigned:
                assigned[name] = {}
                for value in (access.value for access in everywhere.named(name) if access.written):
                    assigned[name].setdefault(value.type.storage, value)
            others |= {storage: (name, value) for storage, value in assigned[name].items()}
        if others and op.value.type.storage not in others:
            name, other = next(iter(others.values()))
            reasons[op] = (
                f"'{op.value.name}' is {op.value.type.storage}, and its variable '{name}' is assigned "
                f"'{other.name}', which is {other.type.storage}"
            )
    return reasons


def set_shape(value: Value, shape: Shape) -> bool:
    """Gives a value a shape, and says whether it had another; what its file said of that one goes."""
    if shape == value.type.shape or value.is_constant:
        return False
    value.type = TensorType(shape, value.type.element)
    value.info = {key: item for key, item in value.info.items() if key not in SHAPE_INFO}
    return True


def _filled(declared: Shape, shape: Shape) -> Shape:
    """The inferred dims, and the stated ones where those are not known."""
    if shape is None:
        return declared
    if declared is None or len(declared) != len(shape):
        return shape
    return tuple(s if d is None else d for s, d in zip(declared, shape, strict=True))
