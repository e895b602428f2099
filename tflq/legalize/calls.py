"""Functions that operators call: their arguments and results are plain integers, as those of the calls are.

IF, WHILE, CALL, STABLEHLO_COMPOSITE and STABLEHLO_CASE copy what they are given into a function's arguments, and its
results into theirs, as it is stored, whatever the parameters on either side (kernels/control_flow_common.h). So a call
and a function have nothing to agree on but storage types. Where parameters must hold, a function takes and gives what
its call does, and requantizes inside: for calls on other parameters there is a copy of the function.

Only entry points have quantized arguments and results. One that is called, too, has a copy for its calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflq.dialects.calls import callees, entry_functions, renumber
from tflq.dialects.declare import trait_of
from tflq.dialects.effects import is_variable
from tflq.dialects.tfl.control import While
from tflq.dialects.traits import effects
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.types import ElementType, UniformQuantizedType, element_storage, is_quantized
from tflq.light import dataclass

__all__ = ["Calls", "Interface", "copied", "is_call", "plain_value"]

_DIFFERS = "the kernel copies the stored integers, though {} and {} have different quantization parameters"


def is_call(op: Op) -> bool:
    """Whether an operator runs functions of the module on its operands."""
    calls = trait_of(op, effects.Calls)
    return calls is not None and calls.inputs is not None


@dataclass(frozen=True, slots=True)
class Interface:
    """The types that a function takes and gives."""

    arguments: tuple[ElementType, ...]
    results: tuple[ElementType, ...]


@dataclass(frozen=True, slots=True)
class _Passed:
    """A value of a call, and the one of the function that it is copied to or from; -1: of the call itself, too."""

    outer: Value
    inner: Value
    function: int

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
        self.made: list[tuple[int, Interface | None]] = [(i, None) for i in range(len(module.functions))]
        """Of each function of the legalized form: the one it is made of, and its interface if it is called."""
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
                    self.made[index] = (index, interface)
                else:
                    self._numbers[index, interface] = len(self.made)
                    self.made.append((index, interface))

    def _called(self, op: Op) -> Iterator[tuple[int, Interface]]:
        if is_call(op):
            for index in dict.fromkeys(callees(op)):
                yield index, self._interface(op, index)

    def _interface(self, op: Op, index: int) -> Interface:
        """What a function takes and gives for a call: its own types, or the call's."""
        function = self.module.functions[index]
        arguments, results = list(function.inputs), list(function.outputs)
        if self.real:
            for passed in self.passed(op):
                if passed.function == index and _differ(passed):
                    arguments = [passed.outer if v is passed.inner else v for v in arguments]
                    results = [passed.outer if v is passed.inner else v for v in results]
        return Interface(tuple(v.type.element for v in arguments), tuple(v.type.element for v in results))

    def renumbered(self, op: Op) -> Op:
        """The call, a new op, of the functions that the legalized form has for it."""
        copy = Op(op.name, op.operands, [], dict(op.attributes), op.location, info=op.info)
        numbers = {i: self._numbers[i, face] for i, face in self._called(op) if (i, face) in self._numbers}
        renumber(copy, numbers)
        return copy

    def passed(self, op: Op) -> Iterator[_Passed]:
        """What a call copies, quantized or not; of a WHILE, the results of its body go where its arguments went."""
        calls = trait_of(op, effects.Calls)
        given = op.operands if calls is None or calls.inputs is None else op.operands[calls.inputs.index :]
        for index in dict.fromkeys(callees(op)):
            function = self.module.functions[index]
            taken = op.results
            if isinstance(op, While):
                taken = [] if index == op.cond_subgraph_index else [v for v in given if v is not None]
            yield from (
                _Passed(outer, inner, index)
                for side, other in ((given, function.inputs), (taken, function.outputs))
                for outer, inner in zip(side, other, strict=False)
                if outer is not None
            )
        if isinstance(op, While):
            yield from (_Passed(a, b, -1) for a, b in zip(op.results, given, strict=False) if b is not None)

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
    """A tensor of the storage type in the place of a quantized one: name and stated shape are the same."""
    info = {k: v for k, v in value.info.items() if k in ("shape", "shape_signature", "has_rank", "name")}
    return Value(value.type.stripped(), value.name, info=info)


def copied(function: Function) -> Function:
    """A copy of a function; constants share their buffers."""
    values: dict[Value, Value] = {}

    def of(value: Value) -> Value:
        if value not in values:
            values[value] = Value(value.type, value.name, buffer=value.buffer, info=value.info)
        return values[value]

    def each(group: Sequence[Value | None]) -> list[Value | None]:
        return [None if v is None else of(v) for v in group]

    inputs = [of(v) for v in function.inputs]
    ops = [
        Op(
            op.name,
            each(op.operands),
            [of(v) for v in op.results],
            op.attributes,
            op.location,
            info=op.info,
            intermediates=each(op.intermediates),
        )
        for op in function.ops
    ]
    return Function(function.name, inputs, [of(v) for v in function.outputs], ops, info=function.info)
