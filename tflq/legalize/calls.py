"""Functions that operators call, and what is done to a function and its operators before they are legalized.

IF, WHILE, CALL, STABLEHLO_COMPOSITE and STABLEHLO_CASE copy stored integers into a function's arguments, and from its
results into theirs, whatever the parameters on either side (kernels/control_flow_common.h). So a call and a function
must agree only on storage types: arguments and results of both are plain integers. Where parameters must hold, a
function takes and gives what its call does, and requantizes inside: calls on other parameters get a copy of the
function.

Only entry points have quantized arguments and results. One that is called as well has a copy for its calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tflq.dialects import traits
from tflq.dialects.declare import trait_of
from tflq.dialects.effects import callees, entry_functions, is_variable, renumber
from tflq.dialects.forms import is_recurrent
from tflq.dialects.parameters import Int16Symmetric, Misreads
from tflq.dialects.tfl.activation import Softmax
from tflq.dialects.tfl.arithmetic import Div, SquaredDifference
from tflq.dialects.tfl.casts import Dequantize, FakeQuant, Quantize
from tflq.dialects.tfl.convolution import BatchMatMul, Conv2D, DepthwiseConv2D
from tflq.dialects.tfl.indexing import ScatterND, SparseToDense
from tflq.dialects.tfl.movement import Densify
from tflq.dialects.tfl.pooling import AveragePool2D, MaxPool2D
from tflq.dialects.tfl.state import While
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import (
    ElementType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    element_storage,
    f32,
    i4,
    i8,
    i16,
    is_quantized,
)
from tflq.legalize.movement import parameters_differ, refused, seen_by_kernel
from tflq.legalize.probing import kernel_name
from tflq.legalize.rule import FOLLOWS_PARAMETERS

_DIFFERS = "the kernel copies the stored integers, though {} and {} have different quantization parameters"


def is_call(op: Op) -> bool:
    """Whether an operator runs functions of the module on its operands."""
    calls = trait_of(op, traits.Calls)
    return calls is not None and calls.inputs is not None


class Interface:
    """The types that a function takes and gives."""

    __slots__ = ("arguments", "results")

    def __init__(self, arguments: tuple[ElementType, ...], results: tuple[ElementType, ...]) -> None:
        self.arguments: Final = arguments
        self.results: Final = results

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Interface) and (self.arguments, self.results) == (other.arguments, other.results)

    def __hash__(self) -> int:
        return hash((self.arguments, self.results))


class _Passed:
    """A value of a call, and the value of a function that it is copied to or from; function -1: of the call itself."""

    __slots__ = ("function", "inner", "outer")

    def __init__(self, outer: Value, inner: Value, function: int) -> None:
        self.outer: Final = outer
        self.inner: Final = inner
        self.function: Final = function

    @property
    def place(self) -> str:
        return f" of subgraph {self.function}" if self.function >= 0 else ""


class Calls:
    """Who calls what in a module, and the functions that its legalized form has.

    strips: whether functions that are called lose their quantized types. real: whether parameters hold.
    """

    def __init__(self, module: Module, *, strips: bool, real: bool) -> None:
        self.module = module
        self.strips = strips
        self.real = real
        self._numbers: dict[tuple[int, Interface], int] = {}
        self.functions: list[tuple[int, Interface | None]] = [(i, None) for i in range(len(module.functions))]
        """For each function of the legalized form: the index of its source, and its interface if it is called."""
        if strips:
            self._number()

    def _number(self) -> None:
        entries = set(entry_functions(self.module))
        free = set(range(len(self.module.functions))) - entries
        for op in self.module.ops():
            for index, interface in self._called(op):
                if (index, interface) in self._numbers or _is_pinned(self.module.functions[index], index in entries):
                    continue
                if index in free:
                    free.discard(index)
                    self._numbers[index, interface] = index
                    self.functions[index] = (index, interface)
                else:
                    self._numbers[index, interface] = len(self.functions)
                    self.functions.append((index, interface))

    def _called(self, op: Op) -> Iterator[tuple[int, Interface]]:
        if is_call(op):
            for index in dict.fromkeys(callees(op)):
                yield index, self._interface(op, index)

    def _interface(self, op: Op, index: int) -> Interface:
        """The types of a function's arguments and results for a call: its own types, or the call's."""
        function = self.module.functions[index]
        arguments, results = list(function.inputs), list(function.outputs)
        if self.real:
            for passed in self.passed(op):
                if passed.function == index and _differ(passed):
                    arguments = [passed.outer if v is passed.inner else v for v in arguments]
                    results = [passed.outer if v is passed.inner else v for v in results]
        return Interface(tuple(v.type.element for v in arguments), tuple(v.type.element for v in results))

    def renumbered(self, op: Op) -> Op:
        """A new call, of the functions that the legalized form has for it."""
        copy = Op(op.name, op.operands, [], dict(op.attributes), op.location, info=op.info)
        numbers = {i: self._numbers[i, face] for i, face in self._called(op) if (i, face) in self._numbers}
        renumber(copy, numbers)
        return copy

    def passed(self, op: Op) -> Iterator[_Passed]:
        """The copies of a call, quantized or not; of a WHILE, the results of its body go where its arguments went."""
        calls = trait_of(op, traits.Calls)
        operands = op.operands if calls is None or calls.inputs is None else op.operands[calls.inputs.index :]
        for index in dict.fromkeys(callees(op)):
            function = self.module.functions[index]
            targets = op.results
            if isinstance(op, While):
                targets = [] if index == op.cond_subgraph_index else [v for v in operands if v is not None]
            yield from (
                _Passed(outer, inner, index)
                for side, other in ((operands, function.inputs), (targets, function.outputs))
                for outer, inner in zip(side, other, strict=False)
                if outer is not None
            )
        if isinstance(op, While):
            yield from (_Passed(a, b, -1) for a, b in zip(op.results, operands, strict=False) if b is not None)

    def problem(self, op: Op) -> str:
        """Why a call cannot be converted; empty if it can."""
        for passed in self.passed(op):
            outer, inner = passed.outer.type, passed.inner.type
            if not (outer.quantized or inner.quantized):
                continue
            sides = f"'{passed.outer.name}' ({outer})", f"'{passed.inner.name}' ({inner}){passed.place}"
            if outer.storage != inner.storage:
                return f"it copies between {sides[0]} and {sides[1]}, whose storage types differ; make them one"
            if self.real and _differ(passed) and not all(_is_plain_8_or_16(t.element) for t in (outer, inner)):
                return f"{sides[0]} and {sides[1]} differ in parameters; only 8 and 16 bits per layer are requantized"
        return ""

    def warning(self, op: Op) -> str:
        """Where a call copies integers between parameters that differ; empty if nowhere, or if it requantizes."""
        if self.real:
            return ""
        for passed in self.passed(op):
            if _differ(passed):
                return _DIFFERS.format(f"'{passed.outer.name}'", f"'{passed.inner.name}'{passed.place}")
        return ""


def _differ(passed: _Passed) -> bool:
    a, b = passed.outer.type.element, passed.inner.type.element
    return is_quantized(a) and is_quantized(b) and a != b


def _is_plain_8_or_16(element: ElementType) -> bool:
    return isinstance(element, UniformQuantizedType) and element_storage(element).bits in (8, 16)


def _is_pinned(function: Function, entry: bool) -> bool:
    """Whether calls run an entry point itself: it has no quantized edges, or a state that a copy would not share."""
    if not entry:
        return False
    edges = (*function.inputs, *function.outputs)
    return not any(v.type.quantized for v in edges) or any(is_variable(v) for v in function.values())


def plain_value(value: Value) -> Value:
    """A tensor of the storage type that replaces a quantized one, with the same name and stated shape."""
    info = {k: v for k, v in value.info.items() if k in ("shape", "shape_signature", "has_rank", "name")}
    return Value(value.type.stripped(), value.name, info=info)


def copied(function: Function) -> Function:
    """A copy of a function; constants share their buffers."""
    values: dict[Value, Value] = {}

    def of(value: Value) -> Value:
        if value not in values:
            values[value] = Value(value.type, value.name, buffer=value.buffer, info=value.info)
        return values[value]

    def copies(group: Sequence[Value | None]) -> list[Value | None]:
        return [None if v is None else of(v) for v in group]

    inputs = [of(v) for v in function.inputs]
    ops = []
    for op in function.ops:
        operands, results = copies(op.operands), [of(v) for v in op.results]
        inner = copies(op.intermediates)
        ops.append(Op(op.name, operands, results, op.attributes, op.location, info=op.info, intermediates=inner))
    return Function(function.name, inputs, [of(v) for v in function.outputs], ops, info=function.info)


# Sparse constants.


def densified(function: Function) -> tuple[Function, list[Op]]:
    """The function without its DENSIFY operators of constants, and these operators: what reads their results reads a
    dense constant. One whose result the function returns stays, and so does one that changes the type.

    A sparse constant that a quantized operator reads becomes dense, too: kernels take sparse ones only in blocks.
    """
    sparse = {v for op in function.ops if _is_quantized(op) for v in op.present_operands if _is_sparse(v)}
    dense = {v: _dense(v) for v in sparse}
    gone: list[Op] = []
    for op in function.ops:
        source = op.input if isinstance(op, Densify) else None
        if source is None or not source.is_constant or op.result in function.outputs:
            continue
        if source.type == op.result.type and source.type.storage.bits >= 8:
            dense[op.result] = _dense(source, op.result.name)
            gone.append(op)
    if not dense:
        return function, []
    ops = [_reading(op, dense) for op in function.ops if op not in gone]
    return Function(function.name, function.inputs, function.outputs, ops, info=function.info), gone


def _reading(op: Op, dense: dict[Value, Value]) -> Op:
    """The op on the dense constants."""
    sparse = () if _is_quantized(op) else [v for v in op.present_operands if _is_sparse(v)]
    operands = [v if v is None or v in sparse else dense.get(v, v) for v in op.operands]
    return op if operands == op.operands else op.copy_with(operands)


def _is_quantized(op: Op) -> bool:
    return not isinstance(op, Densify) and any(v.type.quantized for v in op.results)


def _is_sparse(value: Value) -> bool:
    return value.is_constant and "sparsity" in value.info and value.type.storage.bits >= 8


def _dense(value: Value, name: str | None = None) -> Value:
    return Value(value.type, value.name if name is None else name, buffer=Buffer.of(value.array))


# Tensors that kernels misread.


def misread(op: Op) -> dict[str, str]:
    """A warning, with the exception that it is, if a kernel runs the op and misreads one of its tensors: the result
    says nothing about the model, or has another type than stated.

        per axis       the kernel asks a tensor of several scales for its one, and computes with 0
        result type    the kernel takes the result to be of its operand's type, and says so to the interpreter, or
                       writes past what it holds
        int4           the kernel reads two packed values as one byte, or copies them under other parameters
        floats         the kernel reads the stored integers of a constant as floats
        past           the kernel reads past the end of a state, or of scales

    Other kernels refuse these, or move them as they are. What is misread is computed as the model's types say, and the
    report warns. Measured on BUILTIN_REF of ai-edge-litert 2.1, with a sample of the coverage table for each.
    """
    why = _why(op)
    return {f"{why}; {FOLLOWS_PARAMETERS}": "broken"} if why else {}


def _one_scale(op: Op, value: Value) -> str:
    per = "block" if isinstance(value.type.element, UniformQuantizedSubChannelType) else "channel"
    reads = f"TFLite's {kernel_name(op)} reads one scale, but '{value.name}' has one per {per}"
    return f"{reads}: where TFLite runs it, its result is wrong"


def _why(op: Op) -> str:
    if why := _of_recurrent(op) if is_recurrent(op) else _past_the_end(op):
        return why
    trait = trait_of(op, Misreads)
    kinds = frozenset[str]() if trait is None else trait.kinds
    quantized = [v for v in op.tensors if v.type.quantized] if kinds else []
    if isinstance(op, Conv2D) and not op.output.type.quantized and op.filter.type.storage == i16:
        return f"the kernel reads the stored integers of '{op.filter.name}' as floats"
    if "floats" in kinds and (isinstance(op, FakeQuant) or not op.result.type.quantized):
        return f"the kernel reads the stored integers of '{quantized[0].name}' as floats" if quantized else ""
    if "scales" in kinds and not refused(op) and (several := _of_several_scales(op)) is not None:
        return _one_scale(op, several)
    pool = isinstance(op, (AveragePool2D, MaxPool2D)) and op.fused_activation_function != "NONE"
    if pool and isinstance(op.result.type.element, UniformQuantizedPerAxisType):
        return _one_scale(op, op.result)
    if "packed" in kinds and (packed := next((v for v in quantized if v.type.storage == i4), None)) is not None:
        return f"the kernel reads '{packed.name}', which is packed int4, as int8"
    if "copied" in kinds and any(v.type.storage == i4 for v in quantized) and parameters_differ(op):
        return f"the kernel copies packed int4 to '{op.result.name}', which has other quantization parameters"
    if isinstance(op, Dequantize) and op.output.type.storage != f32:
        return f"the kernel writes f32 into '{op.output.name}', which is {op.output.type.storage}"
    return _of_operand(op) if "result type" in kinds else ""


def _of_several_scales(op: Op) -> Value | None:
    """The tensor that a kernel asks for its one scale, and that has several."""
    if isinstance(op, Div) and isinstance(op.rhs.type.element, UniformQuantizedPerAxisType):
        return None  # DIV refuses it
    if isinstance(op, BatchMatMul):
        return op.output if isinstance(op.output.type.element, UniformQuantizedPerAxisType) else _in_blocks(op)
    candidates = op.operands if isinstance(op, Quantize) else op.tensors
    return next((v for v in candidates if v and isinstance(v.type.element, UniformQuantizedPerAxisType)), None)


def _of_operand(op: Op) -> str:
    """A result that the kernel takes to be of its operand's type."""
    source = next((v for v in op.present_operands if v.type.quantized), None)
    result = next((v for v in op.results if v.type.quantized), None)
    if source is None or result is None or source.type.storage == result.type.storage or refused(op):
        return ""
    if source.type.storage == i16 and isinstance(op, (ScatterND, SparseToDense, SquaredDifference)):
        return ""  # no kernel of these takes int16 operands
    if isinstance(op, Softmax) and source.type.storage != i16:
        return ""  # SOFTMAX makes int16 of 8 bits
    zeros = source.type.storage == i16 and any(seen_by_kernel(v)[1] for v in (source, result))
    if zeros and (isinstance(op, Softmax) or trait_of(op, Int16Symmetric) is not None):
        return ""  # kernels that refuse int16 with zero points
    stored, declared = element_storage(source.type.element), element_storage(result.type.element)
    return f"the kernel takes '{result.name}', which is {declared}, for {stored} like '{source.name}'"


def _in_blocks(op: BatchMatMul) -> Value | None:
    """The int8 operand of a product on integers that has a scale per block."""
    x, y = op.lhs.type, op.rhs
    runs = op.output.type.quantized and x.storage in (i8, i16) and y.type.storage == i8
    return y if runs and isinstance(y.type.element, UniformQuantizedSubChannelType) else None


def _past_the_end(op: Op) -> str:
    """The values that float kernels with quantized constants read past the end of a tensor, in words."""
    if not op.results or op.result.type.quantized:
        return ""
    if isinstance(op, DepthwiseConv2D):
        weights, shape = op.filter, op.filter.type.dims
        single = isinstance(weights.type.element, UniformQuantizedType) and shape[-1:] != (1,)
        single = single and weights.type.storage == i8 and not op.input.type.quantized
        return f"the kernel reads a scale per channel of '{weights.name}', which has only one" if single else ""
    return ""


def _of_recurrent(op: Op) -> str:
    """The values that the kernel of a recurrent operator reads past its end, or without having set them, in words."""
    from tflq.legalize.recurrent import reads_past_state, unset

    if op.results and not op.result.type.quantized and reads_past_state(op):
        return "the kernel reads past its state"
    return unset(op)
