"""Binding: the arguments of a model get known shapes, and every other shape follows from them.

The shapes are inferred twice: first with the dims that are bound left open, since what does not depend on them must be
as the file says; then with the numbers. Sizes that the model computes are constants after that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from tflq.analysis.known import Accesses
from tflq.base.errors import OptionError, Reason, UnsupportedError, operators
from tflq.dialects.declare import Operator
from tflq.dialects.effects import entry_functions, is_handle
from tflq.dialects.forms import ModuleForm
from tflq.dialects.inference import text
from tflq.dialects.tfl.state import AssignVariable, ReadVariable
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import Shape
from tflq.transforms.pass_manager import Pass, PassResult
from tflq.transforms.shape_inference import (
    Inference,
    fold_sizes,
    inferred,
    is_complete,
    reason,
    refuse_misfits,
    set_shape,
    stale,
)


class BindShapes(Pass):
    """Binds open dims of the inputs, and gives every tensor the shape that follows. `batch`: the first dim where it is
    open; `shapes`: whole shapes of inputs by name. Without both, a model with open inputs is left as it is, or has the
    `usual` batch."""

    name: ClassVar[str] = "bind-shapes"
    title: ClassVar[str] = "binding of shapes"
    takes: ClassVar[ModuleForm] = "tfl"

    def __init__(
        self, batch: int | None = None, shapes: Mapping[str, Sequence[int]] | None = None, usual: int | None = None
    ) -> None:
        self.batch: Final = batch
        self.shapes: Final[Mapping[str, Sequence[int]]] = {} if shapes is None else shapes
        self.usual: Final = usual

    def run(self, module: Module) -> PassResult:
        inputs = [v for f in module.functions for v in f.inputs]
        batch = self.batch
        entries = [v for index in entry_functions(module) for v in module.functions[index].inputs]
        if batch is None and any(v.type.shape and v.type.shape[0] is None for v in entries):
            batch = self.usual
        requested = batch is not None or bool(self.shapes)
        if not requested and not all(v.type.is_static or is_handle(v) for v in inputs):
            return PassResult(module, modified=False)
        return PassResult(module, _bind(module, batch, self.shapes))


def bind_batch(module: Module, n: int | None = None, dims: Mapping[str, Sequence[int]] | None = None) -> Module:
    """The module (changed in place) for batches of n: all shapes are known, and those that an interpreter computes.

    The first dims of arguments that are unknown become n. `dims` gives the whole shapes of arguments by name (of the
    tensor or in a signature), in the place of any that they have. Sizes that the model computes become constants.

    UnsupportedError lists what keeps the model from it: every argument with other unknown dims, or every operator.
    OptionError: `dims` names no argument, or there is no open dim for n.
    """
    _bind(module, n, dims or {})
    return module


def _bind(module: Module, n: int | None, dims: Mapping[str, Sequence[int]]) -> bool:
    """`bind_batch`; and whether it changed the module."""
    if n is not None and n < 1:
        raise OptionError(Reason(f"a batch of {n} is not possible", value=n, remedy="give 1 or more"))
    bound = _bound(module, n, dims)
    open_dims = {v: _opened(v.type.shape, shape) for v, shape in bound.items()}
    requested = n is not None or bool(dims)
    what = "bound to known shapes" if n is None else f"bound to a batch of {n}"
    as_declared = all(v.type.shape == shape for v, shape in open_dims.items())
    inference = inferred(module) if as_declared else Inference(module, open_dims, Accesses(module))
    if requested:
        _refuse_stale(module, inference, what)
    else:
        refuse_misfits(module, inference)
    if open_dims != bound:
        inference = Inference(module, bound, Accesses(module))
    missing = _missing(module, inference, requested)
    if missing:
        remedy = "state these sizes in the model, or cut before what computes them (--cut)"
        summary = f"the shapes of {operators(len(missing))} are not known before the model runs:"
        if requested:
            summary = f"the model cannot be {what}, because of {operators(len(missing))}:"
        raise UnsupportedError(summary, missing, remedy=remedy)
    changed = [set_shape(value, shape) for value, shape in inference.shapes.items()]
    return fold_sizes(module, inference.known) or any(changed)


def _refuse_stale(module: Module, inference: Inference, what: str) -> None:
    """UnsupportedError that lists the results of which the model states another shape than it computes: which of the
    two a batch is to be bound to is not known."""
    wrong = [
        reason(
            op,
            index,
            f"'{value.name}' is stated as {text(value.type.shape)}, but its operands give {text(shape)}",
            "state it so, or let tflq infer the shapes",
        )
        for index, op, value, shape in stale(module, inference)
    ]
    if wrong:
        summary = "shapes that the model states are not those that it computes:"
        raise UnsupportedError(f"the model cannot be {what}: {summary}", wrong)


def _opened(declared: Shape, bound: Shape) -> Shape:
    """The bound shape with the dims open that it gives anew."""
    if declared is None or bound is None or len(declared) != len(bound):
        return None if bound is None else (None,) * len(bound)
    return tuple(b if s == b else None for s, b in zip(declared, bound, strict=True))


def _bound(module: Module, n: int | None, dims: Mapping[str, Sequence[int]]) -> dict[Value, Shape]:
    """The shapes of all arguments of entry functions."""
    arguments = [v for index in entry_functions(module) for v in module.functions[index].inputs]
    bound = dict(_named(module, arguments, dims))
    rest = [v for v in arguments if v not in bound]
    if n is not None and not any(v.type.shape is None or None in v.type.shape for v in rest):
        raise OptionError(_nothing_open(arguments))
    wrong: list[Reason] = []
    for value in rest:
        shape = value.type.shape
        if shape is None:
            what = f"the rank of input '{value.name}' is not known"
            wrong.append(Reason(what, tensor=value.name, remedy="give its whole shape, () for a scalar"))
            continue
        if shape and n is not None and shape[0] is None:
            shape = (n, *shape[1:])
        if None in shape:
            unknown = [i for i, d in enumerate(shape) if d is None]
            what = "give a batch" if unknown == [0] else "give its whole shape"
            problem = f"input '{value.name}' {text(shape)}: dim(s) {str(unknown)[1:-1]} are not known"
            wrong.append(Reason(problem, tensor=value.name, remedy=what))
        bound[value] = shape
    if wrong:
        raise UnsupportedError("not all shapes of the model's inputs are known:", wrong)
    return bound


def _named(module: Module, arguments: Sequence[Value], dims: Mapping[str, Sequence[int]]) -> dict[Value, Shape]:
    """The arguments that names stand for, with their shapes."""
    names: dict[str, list[Value]] = {}
    for value in arguments:
        names.setdefault(value.name, []).append(value)
    for signature in module.signatures or ():
        for name, value in signature.inputs or ():
            if name is not None and value not in names.setdefault(name, []):
                names[name].append(value)
    shapes: dict[Value, Shape] = {}
    for name, wanted in dims.items():
        if name not in names:
            known = ", ".join(map(repr, names)) or "none"
            raise OptionError(Reason(f"there is no input '{name}'", value=name, remedy=f"the inputs are {known}"))
        if any(d < 0 for d in wanted):
            what = f"input '{name}': {list(wanted)} is not a shape"
            raise OptionError(Reason(what, tensor=name, value=list(wanted), remedy="give every dim a size"))
        shapes.update({value: tuple(int(d) for d in wanted) for value in names[name]})
    return shapes


def _nothing_open(arguments: Sequence[Value]) -> Reason:
    listed = ", ".join(f"input '{v.name}' {text(v.type.shape)}" for v in arguments) or "no inputs"
    name = arguments[0].name if arguments else ""
    what = f"there is no open dim for a batch: {listed}"
    return Reason(what, tensor=name, remedy="give other shapes whole: --shape INPUT=1,2,3")


def _missing(module: Module, inference: Inference, requested: bool) -> list[Reason]:
    """The operators with results of unknown shape, and why: those whose operands are known, if there are any.
    `requested`: the caller asks for a batch or for shapes."""
    causes: list[Reason] = []
    others: list[Reason] = []
    for index, function in enumerate(module.functions):
        for op in function.ops:
            why = inference.reasons.get(op)
            complete = all(_is_known(v, inference.shapes.get(v)) for v in op.results)
            if complete and why is None:
                continue
            known = all(v is None or _is_known(v, inference.shape(v)) for v in op.operands)
            (causes if known else others).append(reason(op, index, *_why(op, why, requested)))
    return causes or others


def _is_known(value: Value, shape: Shape) -> bool:
    """Whether a shape is whole; a handle needs none."""
    return is_complete(shape) or is_handle(value)


def _why(op: Op, why: str | None, requested: bool) -> tuple[str, str]:
    """The obstacle to knowing an operator's shapes, and what can be done."""
    if why is None:
        what = "the size of its result depends on what the model is given"
        return what, "leave it out" + (", or convert without a batch" if requested else "")
    if not isinstance(op, Operator) or not op.infers:
        remedy = "put builtin operators in its place"
        return why, remedy + (", or convert the model at the batch it was made for" if requested else "")
    if isinstance(op, (AssignVariable, ReadVariable)):
        return why, "give what is read from the variable and assigned to it one shape, and initialize it with that"
    return why, "make the model for this batch, or with an open one" if requested else "state the shapes in the model"
