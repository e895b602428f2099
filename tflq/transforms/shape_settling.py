"""Every result gets the shape that the model computes, before anything relies on the one that the file states.

An interpreter disregards what a file says of results: it computes their shapes from those of the inputs. A file may say
less (an unknown dim, an unknown rank), something else, or a number where the input is open. Rules and casts rely on
shapes that agree, so every result gets what follows from the inputs as they are stated; what does not follow stays as
the file says. After the conversion, an entry's inputs and results get their declared shapes back (`EntryShapes`).

The first dim of an input can be resized even where the file states a number. Lowerings leave the first dim of a tensor
to be inferred, whatever its number. That is not enough where the batch shows up in another dim of a result (transposed,
folded into the rows), or together with an open one: there all dims that follow from the batch are open. We find them
with a second batch, in numbers, which says more than an unknown one would. In the file they are closed again, but for
those that the source opens (`CloseDims`). Weights keep the size that is stated: what a kernel computes with them is
known exactly for that size only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from tflq.analysis.known import Accesses
from tflq.base.errors import UnsupportedError
from tflq.dialects.declare import trait_of
from tflq.dialects.effects import entry_functions
from tflq.dialects.forms import ModuleForm
from tflq.dialects.parameters import MultiplyAccumulate, NeverRuns
from tflq.dialects.tfl.movement import Slice
from tflq.dialects.tfl.state import ReadVariable
from tflq.ir.module import Function, Module
from tflq.ir.ops import Value
from tflq.ir.types import Shape, TensorType, UniformQuantizedPerAxisType, UniformQuantizedType
from tflq.ir.verifier import axis_problem
from tflq.transforms.pass_manager import Pass, PassResult
from tflq.transforms.shape_inference import (
    SHAPE_INFO,
    Inference,
    foreign_types,
    inferred,
    is_complete,
    refuse,
    refuse_misfits,
    set_shape,
    stored_shape,
)

_FACTOR = 3
"""The second batch over the one stated: what divides that one divides it."""
_MOST_INFERRED = 1 << 17
"""Operators, counted once for each input that is resized alone."""

_Row = tuple[Shape, Mapping[str, Any]]


class EntryShapes:
    """Declared shapes of each entry's inputs and results: by function, in order."""

    __slots__ = ("rows",)

    def __init__(self, rows: Mapping[int, tuple[_Row, ...]]) -> None:
        self.rows: Final = rows

    @classmethod
    def of(cls, module: Module) -> EntryShapes:
        return cls({i: tuple(map(_row, _edges(module.functions[i]))) for i in entry_functions(module)})

    def put_back(self, module: Module) -> bool:
        """States it again of a module converted from that file (changed in place); whether that is something else."""
        modified = False
        for index, rows in self.rows.items():
            function = module.functions[index]
            for place, (value, (shape, info)) in enumerate(zip(_edges(function), rows, strict=True)):
                if place < len(function.inputs) or _is_computed(value, function):
                    before = _row(value)
                    value.type = TensorType(shape, value.type.element)
                    rest = {key: item for key, item in value.info.items() if key not in SHAPE_INFO}
                    value.info = {**rest, **info}
                    modified |= _row(value) != before
        return modified


class RestoreDeclaredShapes(Pass):
    """Restores the shapes that the source declares for inputs and results of its entries (`EntryShapes`)."""

    name: ClassVar[str] = "restore-declared-shapes"
    takes: ClassVar[ModuleForm] = "kernels"

    def run(self, module: Module) -> PassResult:
        declared = module.record.find(EntryShapes)
        return PassResult(module, declared is not None and declared.put_back(module))


def _edges(function: Function) -> Sequence[Value]:
    return *function.inputs, *function.outputs


class CloseDims(Pass):
    """Gives tensors with open dims the shape that they are allocated with. The dims were open only so that the model
    can be resized: its source declares none of them open.

    An entry point's results are left to `restore-declared-shapes`, and tensors whose shape cannot be inferred stay as
    they are. So do results of SLICE with a closed shape: its kernel goes by that shape (kernels/slice.cc).
    """

    name: ClassVar[str] = "close-dims"
    takes: ClassVar[ModuleForm] = "kernels"

    def run(self, module: Module) -> PassResult:
        if all(is_complete(value.type.shape) for function in module.functions for value in function.values()):
            return PassResult(module, modified=False)
        modified = False
        entries = [module.functions[index] for index in entry_functions(module)]
        stored = {v: stored_shape(v) for function in entries for v in function.inputs}
        declared = self._declared(module)
        allocated = Inference(module, stored).shapes
        closed = allocated if declared == stored else Inference(module, declared).shapes
        edges = {v for function in entries for v in _edges(function)}
        for value, shape in allocated.items():
            if value in edges or is_complete(value.type.shape) or not _fits(value, shape):
                continue
            if not isinstance(value.producer, Slice):
                _close(value, closed.get(value))
            if not is_complete(value.type.shape):
                value.info = {**value.info, "shape": shape}
            modified = True
        return PassResult(module, modified)

    @staticmethod
    def _declared(module: Module) -> dict[Value, Shape]:
        """The shapes of inputs of entry points, as the source states them."""
        source = module.record.find(EntryShapes)
        rows = {} if source is None else source.rows
        declared: dict[Value, Shape] = {}
        for index in entry_functions(module):
            inputs = module.functions[index].inputs
            shapes = [shape for shape, _ in rows.get(index, ())] or [v.type.shape for v in inputs]
            declared.update(zip(inputs, shapes, strict=False))
        return declared


def _close(value: Value, shape: Shape) -> None:
    """Closes the open dims of a value that a shape knows."""
    dims = value.type.dims
    if shape is not None and len(shape) == len(dims):
        value.type = TensorType(
            tuple(s if d is None else d for d, s in zip(dims, shape, strict=True)), value.type.element
        )


def _fits(value: Value, shape: Shape) -> bool:
    """Whether a shape is whole, and one of those that the tensor's type allows."""
    dims = value.type.shape
    if not is_complete(shape) or shape is None or dims is None or len(shape) != len(dims):
        return False
    return all(d in (None, s) for d, s in zip(dims, shape, strict=True))


class InferShapes(Pass):
    """Gives every result the shape that an interpreter computes. The declared shapes of inputs and results are
    noted (`EntryShapes`). `resizable`: the result can be run with other batches than the declared one. Else a value
    that is read from a variable has its shape, too."""

    name: ClassVar[str] = "infer-shapes"
    title: ClassVar[str] = "inference of shapes"
    takes: ClassVar[ModuleForm] = "tfl"

    def __init__(self, resizable: bool = True) -> None:
        self.resizable: Final = resizable

    def run(self, module: Module) -> PassResult:
        declared, changed = _settle(module, self.resizable)
        module.record.note(declared)
        return PassResult(module, changed)


def settle(module: Module, *, resizable: bool = True) -> EntryShapes:
    """Gives every result of a module (changed in place) the shape that an interpreter computes, as far as it is known.
    `resizable`: so that the result can be run with other batches; else each variable has one shape, too.

    UnsupportedError lists the operators whose operands' shapes do not fit: no interpreter runs those.
    """
    return _settle(module, resizable)[0]


def _settle(module: Module, resizable: bool) -> tuple[EntryShapes, bool]:
    """`settle`; and whether it changed the module."""
    read = [op.result for f in module.functions for op in f.ops_of(ReadVariable) if op.result.type.shape]
    changed = [set_shape(value, stored_shape(value)) for value in read]  # their kernel goes by what the file says
    inference = Inference(module, {}) if resizable or any(changed) else inferred(module)
    refuse_misfits(module, inference)
    refuse(module, foreign_types(module), "types")
    declared = EntryShapes.of(module)
    sized = _sized(module, resizable)
    batched = _batched(module, sized or inference) if resizable else {}
    for value, shape in inference.shapes.items():
        if shape != value.type.shape or sized or batched:
            settled = _settled(value.type.shape, shape, sized.shapes.get(value) if sized else None)
            changed.append(_open(value, settled, batched.get(value, ())))
    changed.append(_settle_axes(module))
    refuse(module, {op: why for op in module.ops() if (why := _unfit(op.results, "result"))})
    wrong = [why for function in module.functions if (why := _unfit(function.inputs, "input"))]
    if wrong:
        raise UnsupportedError("inputs have shapes that do not fit:", wrong, remedy="state as many scales as dims have")
    return declared, any(changed)


def _unfit(values: Sequence[Value], what: str) -> str:
    """The first value with parameters that are not of its shape; empty if there is none."""
    for value in values:
        if problem := axis_problem(value.type):
            return f"{what} '{value.name}' is {value.type}, and that does not fit its parameters: {problem}"
    return ""


def _settle_axes(module: Module) -> bool:
    """Constant vectors with scales along a dim that they lack: along their only one, as they were read. Whether there
    are any."""
    changed = False
    for function in module.functions:
        for value in function.values():
            if "quantized_dimension" in value.info and value.is_constant:
                axis = {"axis_of_one_scale": value.info["quantized_dimension"]}
                value.info = {key: item for key, item in value.info.items() if key != "quantized_dimension"}
                value.info |= axis if isinstance(value.type.element, UniformQuantizedType) else {}
                changed = True
    return changed


def _row(value: Value) -> _Row:
    return value.type.shape, {key: item for key, item in value.info.items() if key in SHAPE_INFO}


def _is_computed(value: Value, function: Function) -> bool:
    return value not in function.inputs and not value.is_constant


def _sized(module: Module, resizable: bool) -> Inference | None:
    """The shapes that follow from the sizes that the file gives open dims of the inputs; None if there are none."""
    inputs = [v for i in entry_functions(module) for v in module.functions[i].inputs]
    if all(is_complete(v.type.shape) for v in inputs):
        return None
    return Inference(module, _stored(inputs), None if resizable else Accesses(module))


def _stored(inputs: Sequence[Value]) -> Mapping[Value, Shape]:
    return {v: stored_shape(v) for v in inputs}


def _batched(module: Module, sized: Inference) -> Mapping[Value, Sequence[int]]:
    """The dims that change with the first dim of an input that the file states in numbers: of all inputs at once, or of
    each alone, as the model can be resized, where these are not too many. `sized`: the shapes before that."""
    inputs = [v for i in entry_functions(module) for v in module.functions[i].inputs]
    larger = {
        v: (_FACTOR * (shape[0] or 1), *shape[1:]) for v in inputs if (shape := stored_shape(v)) and not _scaled(v, 0)
    }
    if all((v.type.shape or (None,))[0] is None for v in larger) or any(trait_of(op, NeverRuns) for op in module.ops()):
        return {}
    resized = [Inference(module, {**_stored(inputs), **larger})]
    few = len(larger) * sum(len(function.ops) for function in module.functions) <= _MOST_INFERRED
    if not _runs(module, resized[0]) and len(larger) > 1 and few:
        resized = [Inference(module, {**_stored(inputs), v: shape}) for v, shape in larger.items()]
    open_dims: dict[Value, set[int]] = {}
    for other in resized:
        if _runs(module, other):
            for value, shape in sized.shapes.items():
                if dims := _changed(shape, other.shapes.get(value)):
                    open_dims.setdefault(value, set()).update(dims)
    weights = {w for op in module.ops() if (m := trait_of(op, MultiplyAccumulate)) and (w := m.weights.value(op))}
    return {value: sorted(dims) for value, dims in open_dims.items() if value not in weights}


def _runs(module: Module, resized: Inference) -> bool:
    """Whether an interpreter allocates a module with these shapes."""
    return not resized.misfits and not any(
        isinstance(op, Slice) and _refuses_resizing(op, resized) for op in module.ops()
    )


def _refuses_resizing(op: Slice, resized: Inference) -> bool:
    """Whether a SLICE by constants would give another shape than the file states in numbers: the kernel refuses that,
    where those of other operators go by their operands."""
    declared = op.result.type.shape
    static = op.begin.is_constant and op.size.is_constant and is_complete(op.input.type.shape) and is_complete(declared)
    return static and resized.shape(op.result) != declared


def _scaled(value: Value, dim: int) -> bool:
    """Whether there is a scale for each index of a dim, which has as many then, whatever the batch."""
    element = value.type.element
    return isinstance(element, UniformQuantizedPerAxisType) and element.axis == dim


def _changed(before: Shape, after: Shape) -> list[int]:
    if before is None or after is None or len(before) != len(after) or before == after:
        return []
    return [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]


def _open(value: Value, shape: Shape, batched: Sequence[int]) -> bool:
    """Gives a value the shape with the dims open that change with the batch; whether that is something else. All
    stay closed if the first is the only one and no other is open. An open result of SLICE stays open, since its
    kernel goes by a closed shape. An input goes on saying the shape with which it is allocated."""
    scaled = any(_scaled(value, dim) for dim in batched)
    first = tuple(batched) == (0,) and shape is not None and None not in shape[1:]
    sliced = isinstance(value.producer, Slice) and not is_complete(value.type.shape)
    if shape is None or not batched or scaled or (first and not sliced):
        return set_shape(value, shape)
    stored = stored_shape(value)
    changed = set_shape(value, tuple(None if i in batched else d for i, d in enumerate(shape)))
    if value.producer is not None:
        return changed
    value.info = {**value.info, "shape": stored}
    return True


def _settled(declared: Shape, shape: Shape, sized: Shape) -> Shape:
    """The dims that follow from the inputs, and the stated ones where none does. A dim that follows once the inputs
    have sizes is open, whatever is stated."""
    if shape is None:
        return declared
    if declared is None or len(declared) != len(shape):
        return shape
    known = (None,) * len(shape) if sized is None or len(sized) != len(shape) else sized
    return tuple(
        f if f is not None else None if s is not None else d for d, f, s in zip(declared, shape, known, strict=True)
    )
