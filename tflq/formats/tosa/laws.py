"""Demands of TOSA on an op beyond element types: the result has the shape that `infer` gives, and a law per op.

    @law(Transpose)
    def transpose(op: Transpose, c: Context) -> Violations: yield "the reason, a clause"

A law answers what it finds: as a generator or, where most networks have hundreds of the op, a list, which takes a
quarter of the time if it is empty.

A law can rely on the declaration of the op's class, on known ranks, and on operands whose shapes fit each other. A dim
that is not known violates nothing. Source: TOSA 1.0 specification, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isnan
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.dialects.declare import Operator
from tflq.dialects.effects import callees
from tflq.dialects.inference import Dims, Misfit, product, text
from tflq.dialects.registry import Registry
from tflq.dialects.tosa.convolution import (
    AvgPool2D,
    Conv2D,
    Conv3D,
    Convolution,
    DepthwiseConv2D,
    MatMul,
    Pool,
    TransposeConv2D,
)
from tflq.dialects.tosa.elementwise import Clamp, Mul, Negate
from tflq.dialects.tosa.movement import (
    ArgMax,
    Concat,
    CondIf,
    Gather,
    Pad,
    Reduction,
    Rescale,
    Reshape,
    Resize,
    Reverse,
    Scatter,
    Slice,
    Table,
    Tile,
    Transpose,
    Variable,
    VariableRead,
    VariableWrite,
    WhileLoop,
)
from tflq.dialects.traits import Broadcasts, Calls
from tflq.formats.tosa.rules import Limits
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType

Violations: TypeAlias = Iterator[str]
Messages: TypeAlias = Sequence[str]


class Context:
    """The module an op is in, its variables, and the limits of the target's level."""

    __slots__ = ("limits", "module", "variables")

    def __init__(self, module: Module, variables: Mapping[str, TensorType], limits: Limits) -> None:
        self.module: Final = module
        self.variables: Final = variables
        self.limits: Final = limits


Law: TypeAlias = Callable[[Any, Context], Iterable[str]]
law: Final[Registry[Law]] = Registry("tflq.formats.tosa.laws")
"""The law of each op; all are in this module."""


def violations(op: Op, context: Context) -> Messages:
    """All that TOSA forbids of an op whose ranks are known."""
    messages: list[str] = []
    expected = None
    if isinstance(op, Operator):
        try:
            expected = op.infer_shapes()
        except Misfit as misfit:
            return [str(misfit)]
    if isinstance(expected, tuple):
        declared = dims(op.result)
        if declared != expected and (len(declared) != len(expected) or not all(map(same, declared, expected))):
            messages.append(
                f"the result is {text(declared)}, where {text(expected)} follows from operands and attributes"
            )
    if (of_op := law.get(type(op))) is not None:
        messages += of_op(op, context)
    return messages


def dims(value: Value) -> Dims:
    """The dims of a value whose rank is known."""
    return value.type.dims


def same(a: int | None, b: int | None) -> bool:
    """Whether two dims can be equal."""
    return a is None or b is None or a == b


# What laws ask for most.


def bounds(what: str, numbers: Sequence[int], low: int | None, high: int | None = None) -> Messages:
    """Numbers are within bounds, both included."""
    if not numbers:
        return ()
    least, most = min(numbers), max(numbers)
    if (low is None or low <= least) and (high is None or most <= high):
        return ()
    messages: list[str] = []
    if low is not None and least < low:
        messages.append(f"{what} of {least}, where {low} is the least")
    if high is not None and most > high:
        messages.append(f"{what} of {most}, where {high} is the most")
    return messages


def axis_of(axis: int, rank: int) -> Messages:
    """An axis counts one of the dims, from the first."""
    return () if 0 <= axis < rank else (f"axis {axis} of a tensor of rank {rank}",)


def zero_point(op: Op, name: str, value: Value) -> Messages:
    """A zero point is any number of 8 bits, 0 or 32768 for ui16, else 0."""
    point, element = op.attributes[name], value.type.storage
    if point == 0:
        return ()
    if element.name in ("i8", "ui8"):
        return bounds(name, [point], element.minimum, element.maximum)
    if element.name == "ui16" and point == 32768:
        return ()
    return (f"{name} of {point} with a tensor of {element}",)


# What slides a window or multiplies (sections 2.2 and 2.10.1): biases, exact division, zero points, limits of a level.

_LARGEST_IMAGE = 16384
_LARGEST_NUMERATOR = 1 << 11


@law(MatMul)
def matmul(op: MatMul, _: Context) -> Violations:
    for value in (op.input1, op.input2):
        if len(dims(value)) != 3:
            yield f"operand '{value.name}' {text(dims(value))} is not of rank 3"
            return
    a, b = dims(op.input1), dims(op.input2)
    yield from zero_point(op, "a_zp", op.input1)
    yield from zero_point(op, "b_zp", op.input2)
    if not all(same(x[0], y[0]) for x, y in ((a, b), (a, dims(op.output)), (b, dims(op.output)))):
        yield f"batches of {a[0]} and {b[0]}"


@law(Resize)
def resize(op: Resize, c: Context) -> Violations:
    shape, result = dims(op.input), dims(op.result)
    numerators, denominators = op.scale[::2], op.scale[1::2]
    yield from bounds("a scale", op.scale, 1)
    yield from bounds("a scale's numerator", numerators, None, _LARGEST_NUMERATOR)
    for i, axis in enumerate("yx"):
        n, d = numerators[i], denominators[i]
        offset, border = op.offset[i], op.border[i]
        if n < 1 or d < 1:
            return
        if d >= 16 * n:
            yield f"the scale {n}/{d} of {axis} is not greater than 1/16"
        if n // d > c.limits.scale:
            yield f"the scale {n}/{d} of {axis} is greater than the level's {c.limits.scale}"
        yield from bounds(f"an offset of {axis}", [offset], -n, 16 * n - 1)
        yield from bounds(f"a border of {axis}", [border], -16 * n, n - 1)
        size = shape[1 + i]
        if size is None:
            continue
        if ((size - 1) * n - offset + border) % d:
            yield f"((size - 1) * {n} - {offset} + {border}) of {axis}, size {size}, is not divisible by {d}"
            return
    sizes = [d for d in (*shape[1:3], *result[1:3]) if d is not None]
    yield from bounds("a height or width", sizes, None, _LARGEST_IMAGE - 1)
    source, target = op.input.type.storage, op.result.type.storage
    if source.is_integer and (source == target) != (op.mode == "NEAREST_NEIGHBOR"):
        yield f"{op.mode} from {source} to {target}, {text(shape)}"


def divides(
    sizes: Sequence[int | None], pads: Sequence[int], windows: Sequence[int | None], strides: Sequence[int]
) -> Messages:
    """Windows use up what they slide over: size + pads - window is a multiple of the stride in each spatial dim.
    `pads`: before and after the first dim, then the next."""
    messages: list[str] = []
    for size, before, after, window, stride in zip(sizes, pads[::2], pads[1::2], windows, strides, strict=True):
        if size is not None and window is not None and stride >= 1 and (size + before + after - window) % stride:
            added = before + after
            messages.append(f"{size} + {added} of padding - a window of {window} is not divisible by {stride}")
    return messages


def _common(op: Convolution, channels: int | None) -> Messages:
    """Violations of the laws of all convolutions: zero points, and a bias for each channel of the result or one for
    all."""
    messages = [*zero_point(op, "input_zp", op.input), *zero_point(op, "weight_zp", op.weight)]
    bias = dims(op.bias)
    if len(bias) != 1:
        messages.append(f"operand '{op.bias.name}' {text(bias)} is not of rank 1")
    elif bias != (1,) and not same(bias[0], channels):
        messages.append(f"{bias[0]} biases for the channels, where there are {channels}")
    return messages


@law(Conv2D, Conv3D, DepthwiseConv2D)
def conv(op: Conv2D | Conv3D | DepthwiseConv2D, c: Context) -> Messages:
    pad, stride, dilation, weight, limits = op.pad, op.stride, op.dilation, dims(op.weight), c.limits
    if isinstance(op, DepthwiseConv2D):
        kernel, channels = weight[:2], product(weight[2:])
    else:
        kernel, channels = weight[1:-1], weight[0]
    pairs = list(zip(dilation, kernel, strict=True))
    reach = [None if k is None else (k - 1) * d + 1 for d, k in pairs]
    return [
        *bounds("a pad", pad, 0, limits.kernel),
        *bounds("a stride", stride, 1, limits.stride),
        *bounds("a dilation", dilation, 1, limits.kernel),
        *bounds("a dilated kernel", [d * k for d, k in pairs if k], 1, limits.kernel),
        *divides(dims(op.input)[1:-1], pad, reach, stride),
        *_common(op, channels),
    ]


@law(TransposeConv2D)
def transpose_conv2d(op: TransposeConv2D, c: Context) -> Violations:
    yield from bounds("an out_pad", op.out_pad, None, c.limits.kernel)
    yield from bounds("a stride", op.stride, 1, c.limits.stride)
    for i, kernel in enumerate(dims(op.weight)[1:3]):
        if kernel is not None:
            yield from bounds("an out_pad", op.out_pad[2 * i : 2 * i + 2], 1 - kernel)
            yield from bounds("a kernel", [kernel], 1, c.limits.kernel)
    yield from _common(op, dims(op.weight)[0])


@law(Pool)
def pool(op: Pool, c: Context) -> Violations:
    kernel, pad = op.kernel, op.pad
    yield from bounds("a kernel", kernel, 1, c.limits.kernel)
    yield from bounds("a stride", op.stride, 1, c.limits.stride)
    yield from bounds("a pad", pad, 0, c.limits.kernel)
    for size, *ends in zip(kernel, pad[::2], pad[1::2], strict=True):
        if max(ends) >= size:
            yield f"a pad of {max(ends)} is not smaller than the kernel's {size}"
    yield from divides(dims(op.input)[1:3], pad, kernel, op.stride)
    if isinstance(op, AvgPool2D):
        yield from zero_point(op, "input_zp", op.input)
        yield from zero_point(op, "output_zp", op.result)


# Elementwise operators and RESCALE (sections 2.3 to 2.8 and 2.11.2).


@law(Clamp)
def clamp(op: Clamp, _: Context) -> Violations:
    low, high, storage = op.min_val, op.max_val, op.input.type.storage
    if isnan(low) or isnan(high):
        yield "a bound is NaN"
    elif low > high:
        yield f"min_val {low} is greater than max_val {high}"
    elif storage.is_integer:
        yield from bounds("bounds", [low, high], storage.minimum, storage.maximum)


@law(Rescale)
def rescale(op: Rescale, _: Context) -> Messages:
    x, multiplier, shift, wide = op.input, op.multiplier, op.shift, op.scale32
    shape = dims(x)
    messages = [*zero_point(op, "input_zp", x), *zero_point(op, "output_zp", op.result)]
    if wide and x.type.storage.name == "i64":
        messages.append("scale32 with an input of 48 bits")
    if not wide and op.rounding_mode == "DOUBLE_ROUND":
        messages.append("DOUBLE_ROUND without scale32")
    messages += bounds("multiplier", _ends(multiplier), 0, (1 << (31 if wide else 15)) - 1)
    messages += bounds("shift", _ends(shift), 2, 62)
    per_channel = op.per_channel
    if per_channel and not shape:
        return [*messages, "per_channel of a scalar"]
    channels = shape[-1] if per_channel else 1
    for name, array in (("multipliers", multiplier), ("shifts", shift)):
        if channels is not None and array.shape != (channels,):
            messages.append(f"{array.size} {name}, where there are {channels} channels")
    return messages


def _ends(numbers: np.ndarray) -> list[int]:
    """All of few numbers, the least and the greatest of many."""
    return numbers.tolist() if numbers.size <= 64 else [int(numbers.min()), int(numbers.max())]


@law(Broadcasts)
def broadcasting(op: Operator, _: Context) -> Messages:
    shapes = [dims(v) for v in op.present_operands]
    if len(set(map(len, shapes))) < 2:
        return ()
    return (f"operands of unequal ranks: {' and '.join(map(text, shapes))}",)


@law(Mul)
def mul(op: Mul, c: Context) -> Messages:
    most = 63 if op.input1.type.storage.name == "i32" else 0
    return [*broadcasting(op, c), *bounds("shift", [op.shift], 0, most)]


@law(Negate)
def negate(op: Negate, _: Context) -> Violations:
    yield from zero_point(op, "input1_zp", op.input1)
    yield from zero_point(op, "output_zp", op.result)


# Data movement, indices and reductions (sections 2.4, 2.7, 2.9).


@law(Concat)
def concat(op: Concat, c: Context) -> Violations:
    shapes = [dims(v) for v in op.present_operands]
    yield from bounds("a number of operands", [len(shapes)], 1, c.limits.list)
    if shapes:
        yield from axis_of(op.axis, len(shapes[0]))


@law(Pad)
def pad(op: Pad, _: Context) -> Violations:
    shape, padding = dims(op.input1), op.padding
    storage = op.input1.type.storage
    if not shape:
        yield "it pads a tensor of rank 0"
    yield from bounds("a padding", padding, 0)
    if storage.is_integer:
        yield from bounds("pad_const", [op.pad_const], storage.minimum, storage.maximum)


@law(Reshape)
def reshape(op: Reshape, _: Context) -> Violations:
    open_dims = dims(op.result).count(None)
    if open_dims > 1:
        yield f"the result {text(dims(op.result))} has {open_dims} dims that are not known; one can be inferred"


@law(Reverse)
def reverse(op: Reverse, _: Context) -> Violations:
    yield from axis_of(op.axis, len(dims(op.input1)))


@law(Slice)
def slice(op: Slice, _: Context) -> Violations:
    shape, start, size = dims(op.input), op.start, op.size
    if not shape:
        yield "a block of a tensor of rank 0"
    yield from bounds("a start", start, 0)
    yield from bounds("a size", [n for n in size if n is not None], 1)
    for d, first, n in zip(shape, start, size, strict=True):
        if d is not None and first + (n or 1) > d:
            yield f"from {first} on there are not {n or 1} of {d}"


@law(Tile)
def tile(op: Tile, _: Context) -> Violations:
    if not op.multiples:
        yield "multiples of a scalar"
    yield from bounds("a multiple", op.multiples, 1)


@law(Transpose)
def transpose(op: Transpose, _: Context) -> Violations:
    if not op.perms or min(op.perms) < 0:
        yield f"perms {text(op.perms)} of a tensor of rank {len(dims(op.input))}"


_ENTRIES = {"i8": 256, "i16": 513}


@law(Table)
def table(op: Table, _: Context) -> Violations:
    entries, shape = _ENTRIES.get(op.input.type.storage.name), dims(op.table)
    if not op.table.is_constant:
        yield "the table is not a constant"
    if len(shape) != 1 or entries not in (None, shape[0]):
        yield f"a table of {text(shape)}, where {op.input.type.storage} needs {entries} entries"


def _indices(value: Value, rows: int | None) -> Violations:
    """Constant indices count rows that there are."""
    if value.is_constant and value.array.size and rows is not None:
        yield from bounds("an index", [int(value.array.min()), int(value.array.max())], 0, rows - 1)


@law(Gather)
def gather(op: Gather, _: Context) -> Violations:
    yield from _indices(op.indices, dims(op.values)[1])


@law(Scatter)
def scatter(op: Scatter, _: Context) -> Violations:
    values, indices = dims(op.values_in), dims(op.indices)
    if values[1] is not None and indices[1] is not None and indices[1] > values[1]:
        yield f"{indices[1]} indices into {values[1]} rows"
    yield from _indices(op.indices, values[1])
    if op.indices.is_constant and (np.diff(np.sort(op.indices.array, axis=1), axis=1) == 0).any():
        yield "an index twice"


@law(ArgMax, Reduction)
def reduce(op: ArgMax | Reduction, _: Context) -> Violations:
    yield from axis_of(op.axis, len(dims(op.input)))


# Control flow and variables (sections 2.13 and 2.14): what functions take and give.


def _agree(what: str, actual: Sequence[Value], expected: Sequence[Value]) -> Violations:
    if len(actual) != len(expected):
        yield f"{what}: {len(actual)}, where there are {len(expected)}"
        return
    for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
        if not fits(a.type, b.type):
            yield f"{what}: number {i} is {a.type}, not {b.type}"


def fits(a: TensorType, b: TensorType) -> bool:
    shapes = a.shape or (), b.shape or ()
    return a.storage == b.storage and len(shapes[0]) == len(shapes[1]) and all(map(same, *shapes))


def _condition(what: str, value: Value) -> Violations:
    if value.type.storage.name != "i1" or any(d not in (1, None) for d in dims(value)):
        yield f"{what} is {value.type}, not one i1"


def _function(index: int, c: Context) -> Function | None:
    return c.module.functions[index] if 0 <= index < len(c.module.functions) else None


@law(CondIf)
def cond_if(op: CondIf, c: Context) -> Violations:
    operands = [v for v in op.inputs if v is not None]
    yield from _condition("the condition", op.condition)
    yield from bounds("a number of operands or results", [len(operands), len(op.results)], 0, c.limits.list)
    for name, index in (("then_graph", op.then_graph), ("else_graph", op.else_graph)):
        if (function := _function(index, c)) is None:
            yield f"{name} names no function"
            continue
        yield from _agree(f"inputs of {name}", function.inputs, operands)
        yield from _agree(f"outputs of {name}", function.outputs, op.results)


@law(WhileLoop)
def while_loop(op: WhileLoop, c: Context) -> Violations:
    operands = [v for v in op.inputs if v is not None]
    yield from bounds("a number of operands or results", [len(operands), len(op.results)], 0, c.limits.list)
    yield from _agree("results", op.results, operands)
    for name, index in (("cond_graph", op.cond_graph), ("body_graph", op.body_graph)):
        if (function := _function(index, c)) is None:
            yield f"{name} names no function"
            continue
        yield from _agree(f"inputs of {name}", function.inputs, operands)
        if name == "body_graph":
            yield from _agree(f"outputs of {name}", function.outputs, operands)
        elif len(function.outputs) != 1:
            yield f"{name} has {len(function.outputs)} outputs, not one i1"
        else:
            yield from _condition(f"the output of {name}", function.outputs[0])


def nesting(c: Context, function: int, seen: tuple[int, ...] = ()) -> int:
    """The depth of control flow in a function; more than any level takes if it calls itself."""
    if function in seen:
        return c.limits.nesting + 1
    called = (index for op in c.module.functions[function].ops_with(Calls) for index in callees(op))
    known = (index for index in called if index < len(c.module.functions))
    return max((1 + nesting(c, index, (*seen, function)) for index in known), default=0)


@law(Variable)
def variable(op: Variable, _: Context) -> Violations:
    if not op.variable:
        yield "a variable without a name"
    if not op.initial_value.is_constant:
        yield f"the initial value of '{op.variable}' is not a constant"


@law(VariableRead, VariableWrite)
def access(op: VariableRead | VariableWrite, c: Context) -> Violations:
    name = op.variable
    value = op.output if isinstance(op, VariableRead) else op.input
    declared = c.variables.get(name)
    if declared is None:
        yield f"no variable is called '{name}'"
    elif not fits(value.type, declared):
        yield f"'{name}' is {declared}, not {value.type}"
