"""The IR verifier: what holds in every form, whatever its dialect.

Values are defined once and before their use; constants are within the bounds of their types; quantized axes are axes of
the tensors, wherever a type stands; ops obey the constraints that their classes declare, also those that depend on the
module (a call is of a function that it has). Which ops are legal is for each form's own verifier. This one runs after
every pass, so it walks the module once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from typing import Any, Final, NoReturn, TypeAlias

from tflq.base.arguments import nearest
from tflq.base.errors import InvalidModelError, VerificationError
from tflq.ir.facts import walk
from tflq.ir.module import Function, Module
from tflq.ir.ops import COMPLETE, Op, Value, op_names
from tflq.ir.types import (
    BareType,
    FunctionType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    is_float,
    is_narrowed,
    is_quantized,
)

# Constraints: those of a class are its `constraints` and `module_constraints`.


Check: TypeAlias = Callable[[Any], str | None]
"""The reason why an op is invalid, or None."""


def constraint(sentence: str) -> Callable[[Callable[[Any], bool]], Check]:
    """Makes a predicate a check; the sentence is its reason where the predicate does not hold."""

    def checked(predicate: Callable[[Any], bool]) -> Check:
        def check(op: Op) -> str | None:
            return None if predicate(op) else sentence

        check.__doc__ = sentence
        return check

    return checked


# What `quant.qcast`, `quant.dcast` and `quant.scast` must satisfy, as in the `quant` dialect's specification.


PER_AXIS: Final = frozenset({UniformQuantizedPerAxisType, UniformQuantizedSubChannelType, FunctionType})
"""Element types that do not fit every tensor; a function type has them in its arguments and results."""


def axis_problem(type: TensorType) -> str | None:
    """The breach of the per-axis quantization integrity by a type, or None if there is none."""
    element = type.element
    if isinstance(element, UniformQuantizedPerAxisType):
        if isinstance(type, BareType):
            return "a scalar cannot have per-axis quantization: its type must be the element type of a tensor"
        if type.shape is None:
            return None
        if element.axis >= len(type.shape):
            return f"the tensor's rank ({len(type.shape)}) must be greater than the quantized axis ({element.axis})"
        size = type.shape[element.axis]
        if size is not None and size != element.scales.size:
            return f"there are {element.scales.size} scales, but dim {element.axis} of the tensor is {size}"
    if isinstance(element, UniformQuantizedSubChannelType):
        return _block_problem(type, element)
    if isinstance(element, FunctionType):
        return next(filter(None, map(axis_problem, (*element.inputs, *element.results))), None)
    return None


def size_problem(value: Value) -> str | None:
    """The difference of the bytes of a constant from its type, or None if there is none; sparse ones say their own
    size."""
    type, buffer = value.type, value.buffer
    if buffer is None or not buffer.data.size or not type.is_static or "sparsity" in value.info:
        return None
    storage = type.storage
    bits = storage.dtype.itemsize * 8 if storage.numpy and storage.bits >= 8 else storage.bits
    size = -(-math.prod(type.sizes) * bits // 8)
    if not bits or buffer.data.size == size:
        return None
    return f"constant '{value.name}' has {buffer.data.size} bytes, where {type} has {size}"


def bounds_problem(value: Value) -> str | None:
    """The element of a constant that is outside the bounds of its type, or None if there is none."""
    element = value.type.element
    if not is_narrowed(element) or not value.is_constant:
        return None
    low, high = element.storage_min, element.storage_max  # type: ignore[union-attr]
    outside = (value.array < low) | (value.array > high)
    if not outside.any():
        return None
    return f"constant '{value.name}' has the element {value.array[outside].flat[0]}, outside its bounds <{low}:{high}>"


def _block_problem(type: TensorType, element: UniformQuantizedSubChannelType) -> str | None:
    if isinstance(type, BareType) or type.shape is None:
        return "sub-channel quantization needs a tensor of known rank"
    if element.scales.ndim != len(type.shape) or any(axis >= len(type.shape) for axis in element.axes):
        return f"the scales have {element.scales.ndim} dims, but the tensor's rank is {len(type.shape)}"
    blocks = dict(zip(element.axes, element.block_sizes, strict=True))
    for axis, (size, count) in enumerate(zip(type.shape, element.scales.shape, strict=True)):
        if size is not None and count != (size // blocks[axis] if axis in blocks else 1):
            return f"there are {count} blocks along dim {axis}, which is {size} long"
        if size is not None and axis in blocks and size % blocks[axis]:
            return f"dim {axis}, which is {size} long, is not a multiple of the block size {blocks[axis]}"
    return None


@constraint("the op must have one operand and one result, and no region")
def one_operand_and_result(op: Op) -> bool:
    return len(op.operands) == len(op.results) == 1 and None not in op.operands and not op.regions


def _two_types(op: Op) -> tuple[TensorType, TensorType]:
    """The types of operand and result."""
    (operand,), (result,) = op.operands, op.results
    assert operand is not None
    return operand.type, result.type


@constraint("the operand must be a floating-point scalar or tensor")
def operand_float(op: Op) -> bool:
    return is_float(_two_types(op)[0].element)


@constraint("the operand must be a scalar or tensor of type !quant.uniform")
def operand_quantized(op: Op) -> bool:
    return _two_types(op)[0].quantized


@constraint("the result must be a floating-point scalar or tensor")
def result_float(op: Op) -> bool:
    return is_float(op.result.type.element)


@constraint("the result must be a scalar or tensor of type !quant.uniform")
def result_quantized(op: Op) -> bool:
    return op.result.type.quantized


@constraint("the expressed type of the quantized type must be the floating-point type of the other side")
def expressed_matches(op: Op) -> bool:
    plain, quantized = _sides(op)
    return getattr(quantized.element, "expressed", None) == plain.element


@constraint("the operand and the result must be scalars or tensors of an integer or !quant.uniform type")
def integer_or_quantized(op: Op) -> bool:
    elements = [type.element for type in _two_types(op)]
    return all(is_quantized(e) or (isinstance(e, ScalarType) and e.is_integer) for e in elements)


@constraint("one of operand and result must be of an integer type and the other of a !quant.uniform type")
def one_side_quantized(op: Op) -> bool:
    source, target = _two_types(op)
    return is_quantized(source.element) != is_quantized(target.element)


@constraint("the width of the quantized type's storage type must be the width of the integer type")
def storage_width(op: Op) -> bool:
    plain, quantized = _sides(op)
    return plain.storage.bits == quantized.storage.bits


@constraint("the integer type must be signless: i8, for unsigned storage, too")
def signless_integers(op: Op) -> bool:
    return _sides(op)[0].storage.kind != "uint"


@constraint("the operand and the result must be both scalars or both tensors")
def both_scalars_or_tensors(op: Op) -> bool:
    source, target = _two_types(op)
    return isinstance(source, BareType) == isinstance(target, BareType)


@constraint("the operand and the result must be both ranked or both unranked")
def both_ranked_or_unranked(op: Op) -> bool:
    source, target = _two_types(op)
    return (source.shape is None) == (target.shape is None)


@constraint("the operand and the result must have the same shape, dynamic dims included")
def same_shape(op: Op) -> bool:
    source, target = _two_types(op)
    return source.shape == target.shape


def _sides(op: Op) -> tuple[TensorType, TensorType]:
    """The plain type and the quantized one."""
    source, target = _two_types(op)
    return (target, source) if source.quantized else (source, target)


def axis_integrity(op: Op) -> str | None:
    """The breach of the per-axis quantization integrity by the type of operand or result."""
    source, target = _two_types(op)
    return axis_problem(source) or axis_problem(target)


def verify(module: Module) -> None:
    """VerificationError, showing the op among its neighbours, if the module breaks an invariant of the IR."""
    for index, function in enumerate(module.functions):
        _verify_header(module, index, "argument", function.inputs)
        if not function.info.get("declaration"):
            _Function(module, index, function).verify()
        _verify_header(module, index, "result", function.outputs)


def verify_ops(function: Function, known: Set[Value]) -> None:
    """`verify` of the ops of a function that is not whole: `known` are defined before these."""
    check = _Function(Module([function]), 0, function)
    check.defined |= known
    check.ops(function.ops, None, "")


def _verify_header(module: Module, index: int, kind: str, values: Sequence[Value]) -> None:
    for position, value in enumerate(values):
        if value.type.element.__class__ in PER_AXIS and (reason := axis_problem(value.type)) is not None:
            fail(module, index, None, f"{kind} {position}: {reason}")


class _Function:
    """The check of one function."""

    def __init__(self, module: Module, index: int, function: Function) -> None:
        self.module = module
        self.index = index
        self.function = function
        self.defined: set[Value] = set(function.inputs)

    def fail(self, op: Op | None, reason: str) -> NoReturn:
        fail(self.module, self.index, op, reason)

    def verify(self) -> None:
        function, defined = self.function, self.defined
        if len(defined) != len(function.inputs):
            self.fail(None, "two arguments of the function are the same value")
        for argument in function.inputs:
            if argument.producer is not None:
                self.fail(None, f"argument '{argument.name}' is the result of an op ({argument.producer.name})")
        self.ops(function.ops, None, "")
        for position, value in enumerate(function.outputs):
            if value not in defined and (value.producer is not None or not _has_content(value)):
                self.fail(None, f"output {position} {_undefined(value, function)}")
            if value.buffer is not None and (reason := bounds_problem(value)) is not None:
                self.fail(None, f"output {position}: {reason}")

    def ops(self, ops: Sequence[Op], outer: Op | None, parent: str) -> None:
        """The ops of a function, or of a region of `outer`, which messages show, or of an op inside of it: `parent`."""
        defined = self.defined
        for op in ops:
            shown = outer or op
            for position, value in enumerate(op.operands):
                if value is None or (value in defined and value.buffer is None):
                    continue
                if value not in defined and (value.producer is not None or not _has_content(value)):
                    self.fail(shown, _within(outer, op, f"operand {position} {_undefined(value, self.function)}"))
                if value.buffer is not None and value.type.element.__class__ is not ScalarType:
                    reason = constant_problem(value)
                    if reason is not None:
                        self.fail(shown, _within(outer, op, f"operand {position}: {reason}"))
            plain = True
            for position, value in enumerate(op.results):
                if value in defined:
                    what = f"result {position} ('{value.name}') is defined a second time"
                    self.fail(shown, _within(outer, op, what))
                if value.producer is not op:
                    what = f"result {position} ('{value.name}') names another op as its producer"
                    self.fail(shown, _within(outer, op, what))
                defined.add(value)
                plain = plain and value.type.element.__class__ is ScalarType
            for constraint in op.constraints:
                reason = constraint(op)
                if reason is not None:
                    self.fail(shown, _within(outer, op, reason))
            if op.__class__ is Op and (reason := _undeclared(op.name)) is not None:
                self.fail(shown, _within(outer, op, reason))
            for demand in op.module_constraints:
                reason = demand(op, self.module, parent)
                if reason is not None:
                    self.fail(shown, _within(outer, op, reason))
            for position, value in enumerate(() if plain else op.results):
                if value.type.element.__class__ in PER_AXIS and (reason := axis_problem(value.type)) is not None:
                    self.fail(shown, _within(outer, op, f"result {position}: {reason}"))
            if op.regions:
                self._regions(op, shown)

    def _regions(self, op: Op, outer: Op) -> None:
        """The content of an op: it sees what is defined before, and nothing after the op sees it."""
        before = self.defined
        for region in op.regions:
            for block in region.blocks:
                self.defined = before | set(block.arguments)
                if len(set(block.arguments)) != len(block.arguments) or not before.isdisjoint(block.arguments):
                    self.fail(outer, f"an argument of a block of '{op.name}' is defined a second time")
                for value in block.arguments:
                    if (reason := axis_problem(value.type)) is not None:
                        self.fail(outer, f"an argument of a block of '{op.name}': {reason}")
                self.ops(block.ops, outer, op.name)
        self.defined = before


def _undeclared(name: str) -> str | None:
    """Why there is no such op; None if its dialect may have it."""
    dialect, _, short = name.partition(".")
    if dialect not in COMPLETE:
        return None
    known = sorted(op.partition(".")[2] for op in op_names(dialect))
    return f"there is no such op; {nearest(short, known) or f'{dialect} has ' + ', '.join(known)}"


def _within(outer: Op | None, op: Op, reason: str) -> str:
    """A reason with the op it is about, if that is inside of another one."""
    return reason if outer is None else f"'{op.name}' inside of it: {reason}"


def verify_sizes(module: Module) -> None:
    """VerificationError if a constant of a text has more or fewer bytes than its type."""
    for index, function in enumerate(module.functions):
        for op in walk(function.ops):
            for value in op.operands:
                if value is not None and (problem := size_problem(value)) is not None:
                    fail(module, index, op, problem)


def constant_problem(value: Value) -> str | None:
    """Why a constant is invalid, or None."""
    if value.type.element.__class__ in PER_AXIS and (reason := axis_problem(value.type)) is not None:
        return reason
    return bounds_problem(value)


def _has_content(value: Value) -> bool:
    """Whether a value that nothing produces has a content: a constant or a variable tensor."""
    return value.buffer is not None or bool(value.info.get("is_variable"))


def _undefined(value: Value, function: Function) -> str:
    if value.producer is None:
        return f"('{value.name}') is used, but nothing defines it"
    if value.producer in function.ops:
        return f"('{value.name}') is used before {value.producer.name} defines it"
    return f"('{value.name}') is the result of {value.producer.name}, which is not an op of this function"


def fail(module: Module, index: int, op: Op | None, reason: str) -> NoReturn:
    """VerificationError: what is wrong with an op, or with its function, and the op among its neighbours."""
    from tflq.ir.text.printer import print_context

    function = module.functions[index]
    subject = f"function {index} '{function.name}'" if op is None else f"'{op.name}'"
    place = f"{op.location}: " if op is not None and op.location is not None else ""
    raise VerificationError(f"{place}{subject}: {reason}\n{print_context(module, index, op)}")


# What a verification of a file says: the first defect ends it, a harmless one is noted.

COPIED = "the kernel copies values as they are"
"""Part of a warning about parameters that differ; a conversion reports what it makes of each such operator."""

_MOST = 200
"""Warnings kept of one model."""


class Notes:
    """Harmless findings of a verification, in order; `warnings` holds one sentence each, without repetition."""

    __slots__ = ("left_out", "warnings")

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.left_out = 0

    def fail(self, where: str, reason: str, *, hint: str = "") -> NoReturn:
        raise InvalidModelError(where, reason, hint=hint)

    def fail_op(self, op: Op, reason: str) -> NoReturn:
        raise InvalidModelError(op.location or op.name, reason)

    def warn(self, where: str, reason: str, *, remedy: str) -> None:
        """Notes a harmless defect; `remedy`: what the user can do about it."""
        sentence = f"{where}: {reason}; {remedy}"
        if len(self.warnings) >= _MOST:
            self.left_out += 1
        elif sentence not in self.warnings:
            self.warnings.append(sentence)

    def warn_op(self, op: Op, reason: str, *, remedy: str) -> None:
        self.warn(place(op), reason, remedy=remedy)

    def finish(self) -> list[str]:
        """The warnings, with a last line for those left out."""
        return [*self.warnings, f"{self.left_out} more warnings"] if self.left_out else self.warnings


def place(op: Op) -> str:
    """Where an op is, for a message."""
    return str(op.location) if op.location is not None else op.name
