"""Legalization rules: functions of one op that give new results, or raise NotApplicable or Refused.

    @rule(Add, Sub)
    def addition(op: Add | Sub, b: RuleBuilder) -> Answer: ...

`tflq/ir/index.py` lists the modules that have rules of an operator, in the order in which they are tried; a module is
imported only when its rule is tried.

The op's operands and results carry the quantized types of the source model; `b.value(operand)` is the same tensor in
the form being built, as plain integers (or unchanged where it is not quantized). The answer of a rewritten op is its
new results, plain, one per result. Reasons are kept for the report and for `tflq inspect --why`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from itertools import chain, count
from operator import itemgetter
from typing import Any, Final, TypeAlias, TypeVar

from tflq.analysis.known import Known, known_elements, variable_name
from tflq.base.errors import Refused
from tflq.dialects.builder import Builder
from tflq.dialects.declare import trait_of
from tflq.dialects.effects import is_variable
from tflq.dialects.quant import Scast
from tflq.dialects.registry import modules_of
from tflq.dialects.tfl.state import AssignVariable, VarHandle
from tflq.dialects.traits import View
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import ElementType, f32
from tflq.numerics.kernel_sets import REFERENCE
from tflq.numerics.reference import KernelSet


class Variables:
    """The variables of a module. names: of handles, and of variable tensors as they become variables. written: the
    element types of what is assigned to each resource variable, without repetition."""

    __slots__ = ("names", "written")

    def __init__(
        self, names: dict[Value, str] | None = None, written: Mapping[str, Sequence[ElementType]] | None = None
    ) -> None:
        self.names: Final[dict[Value, str]] = {} if names is None else names
        self.written: Final[Mapping[str, Sequence[ElementType]]] = {} if written is None else written

    def name(self, tensor: Value) -> tuple[str, bool]:
        """The name of the variable that a variable tensor becomes, and whether this is the first time."""
        known = self.names.get(tensor)
        if known is not None:
            return known, False
        base, used = tensor.name or "state", set(self.names.values())
        name = next(n for n in chain([base], (f"{base}_{i}" for i in count(1))) if n not in used)
        self.names[tensor] = name
        return name, True

    def elements(self, handle: Value) -> Sequence[ElementType]:
        """The types of what is written to the variable of a handle; none if the handle is passed in."""
        declared = handle.producer
        return self.written.get(variable_name(declared), ()) if isinstance(declared, VarHandle) else ()


def variables_of(module: Module) -> Variables:
    """The resource variables of a module."""
    handles = {op.result: variable_name(op) for op in module.ops() if isinstance(op, VarHandle)}
    written: dict[str, list[ElementType]] = {}
    for op in module.ops():
        if isinstance(op, AssignVariable) and op.resource in handles:
            elements = written.setdefault(handles[op.resource], [])
            if op.value.type.element not in elements:
                elements.append(op.value.type.element)
    return Variables(handles, written)


_LEAST_BYTES = 4
"""Tensors of at most so many bytes are not shared."""


class Memory:
    """Whether the interpreter writes an operator's result over an operand, as its memory planner decides.

    It matters where a kernel's loop does something undefined: the loop runs in vector registers if the result has its
    own memory, and one element at a time over an operand (`tflq.numerics.fixed_point`). With
    `experimental_preserve_all_tensors` nothing is written over. Source: ArenaPlanner::IdentifyInPlaceTensors in
    tflite/arena_planner.cc, for operators with kTfLiteInplaceOpInput0Shared and kTfLiteInplaceOpInput1Shared.
    """

    def __init__(self, function: Function) -> None:
        self._function = function

    @cached_property
    def _readers(self) -> dict[Value, int]:
        counts = {value: len(ops) for value, ops in self._function.users().items()}
        for value in self._function.outputs:
            counts[value] = counts.get(value, 0) + 1
        return counts

    @cached_property
    def _producers(self) -> dict[Value, Op]:
        return {result: op for op in self._function.ops for result in op.results}

    def writes_over(self, op: Op) -> bool:
        """Whether the result of an op that computes in place is stored where its first or second operand was."""
        if op.result in self._function.outputs:
            return False
        return any(v is not None and self._is_free(v, op.result) for v in op.operands[:2])

    def _is_free(self, operand: Value, result: Value) -> bool:
        shape, storage = result.type.shape, result.type.storage
        if operand.is_constant or is_variable(operand) or operand in self._function.inputs or shape is None:
            return False
        size = result.type.size
        if size != operand.type.size or size * storage.bits // 8 <= _LEAST_BYTES:
            return False
        return self._readers.get(operand, 0) == 1 and self._readers.get(self._root(operand), 0) <= 1

    def _root(self, value: Value) -> Value:
        """The tensor whose memory a view shares."""
        function = self._function
        while (op := self._producers.get(value)) is not None and (view := trait_of(op, View)) is not None:
            source = view.slots[0].value(op)
            if source is None or source.is_constant or source in function.inputs or value in function.outputs:
                break
            value = source
        return value


class NotApplicable(Refused):
    """Raised by a rule that does not cover an operator. The next rule is tried.

    Args:
        reason: Why not, for the report.
        warning: Where a kernel computes the operator: how far a later rule's answer can be from it.
        unsettled: What C++ leaves undefined in the kernel, so that interpreters differ. If it shows in a result, the
            report warns of it.

    Example:
        ```python
        def rule(op, b: tflq.RuleBuilder):
            if op.operand(0).type.shape is None:
                raise tflq.NotApplicable("the shape is unknown")
        ```
    """

    def __init__(self, reason: str, warning: str = "", unsettled: str = "") -> None:
        super().__init__(reason)
        self.warning = warning
        self.unsettled = unsettled


class Refusing:
    """`with Refusing(words):` turns a ValueError about an operator's parameters into NotApplicable. The words stand
    before its message."""

    __slots__ = ("_words",)

    def __init__(self, words: str = "") -> None:
        self._words = words

    def __enter__(self) -> None:
        """Nothing is opened."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, ValueError):
            raise NotApplicable(f"{self._words}{error}") from error


kernel_parameters: Final = Refusing("the kernel refuses these parameters: ")
no_parameters: Final = Refusing()


class Rewritten:
    """New results, with what the report should say: a `note` (how), a `warning` (where the kernel disregards
    parameters), and which `exception` that is (`tflq.legalize.caveats`). Where parameters must hold
    (`RuleBuilder.real`), an answer with a warning is not taken."""

    __slots__ = ("exception", "note", "results", "warning")

    def __init__(
        self, results: Sequence[Value], note: str = "", warning: str = "", exception: str = "disregarded"
    ) -> None:
        self.results: Final = results
        self.note: Final = note
        self.warning: Final = warning
        self.exception: Final = exception

    @property
    def result(self) -> Value:
        """The only result."""
        (result,) = self.results
        return result


Answer: TypeAlias = Value | Sequence[Value] | Rewritten
"""The answer of a rule: new results. It raises NotApplicable where the next rule is to be tried,
and Refused where no other can help."""


def rewritten(answer: Answer) -> Rewritten:
    """An answer with what the report says of it."""
    if isinstance(answer, Rewritten):
        return answer
    return Rewritten([answer] if isinstance(answer, Value) else answer)


class RuleBuilder(Builder):
    """Writer of the operators of the integer form, for rules.

    It knows what the operands of the current op have become, and the module's variables. Each method makes one operator
    and returns its result. If a rule cannot handle an operator, it raises `tflq.NotApplicable`, and the next rule is
    tried. See docs/extending.md.

    Attributes:
        real: Follow quantization parameters even where the reference kernel ignores them.
        memory: What the interpreter overwrites, if that is known.
        kernel_set: The kernels that results are exact for: it has the factors by which they scale.
        close: What reads the result asks how close the noted bounds of a sum are.
        probing: The ops only serve to measure how far off a kernel is.
        undefined: What C++ leaves undefined in the op's kernel, as rules note it with `note_undefined`. If it shows in
            a result, the report warns; if quantization parameters must hold, the rule does not apply.
        variables: The module's variables.
        ops: The ops written so far.
        location: The location that new ops get.

    Example:
        ```python
        def negative(op, b: tflq.RuleBuilder):
            x = b.value(op.operand(0))  # its stored integers
            return b.sub(0, x)

        EXTENSION = tflq.Extension(rules={"Negative": [negative]})
        ```
    """

    def __init__(
        self,
        ops: list[Op],
        plain: dict[Value, Value],
        variables: Variables | None = None,
        *,
        real: bool = False,
        close: bool = True,
        memory: Memory | None = None,
        probing: bool = False,
        kernel_set: KernelSet = REFERENCE,
    ) -> None:
        super().__init__(ops)
        self.real = real
        self.close = close
        self.memory = memory
        self.probing = probing
        self.kernel_set = kernel_set
        self.undefined: dict[str, int | None] = {}
        self._plain = plain
        self.variables = Variables() if variables is None else variables
        self._real_states: dict[Value, Value] = {}
        self._known: dict[Value, Known | None] = {}

    def note_undefined(self, what: str, counts: int | None = None) -> None:
        """Note something that C++ leaves undefined, and that is computed as kernels compiled for x86-64 compute it.

        Args:
            what: What is undefined.
            counts: How far the result is from the real value at most, if the rule knows.
        """
        self.undefined.setdefault(what, counts)

    def known_elements(self, operand: Value) -> Known | None:
        """Get the elements of a tensor of sizes that are the same for every batch, or None if nothing is known of it.

        Args:
            operand: An operand of the op, of plain integers.
        """
        return known_elements(operand, self._known, any_batch=True)

    def float_state(self, tensor: Value) -> Value:
        """Get the float variable tensor that stands for a variable tensor.

        Args:
            tensor: The variable tensor.
        """
        if not tensor.type.quantized:
            return tensor
        known = self._real_states.get(tensor)
        if known is None:
            type, info = tensor.type.with_element(f32), {"is_variable": True}
            known = self._real_states[tensor] = Value(type, tensor.name, info=info)
        return known

    def value(self, operand: Value) -> Value:
        """Get an operand in the integer form: its stored integers, or the operand itself if it is not quantized.

        Args:
            operand: An operand of the op.
        """
        plain = self._plain.get(operand)
        if plain is not None:
            return plain
        if not operand.type.quantized:
            return operand
        if operand.is_constant:
            buffer = Buffer.of(operand.array) if "sparsity" in operand.info else operand.buffer
            plain = Value(operand.type.stripped(), operand.name, buffer=buffer)
        else:  # a variable tensor, or one that nothing writes
            plain = self.scast(operand, operand.type.stripped())
        self._plain[operand] = plain
        return plain

    def bind(self, tensor: Value, plain: Value) -> None:
        """Record the integer form of a tensor between the builtins of one rule.

        Args:
            tensor: The tensor.
            plain: Its integer form.
        """
        self._plain[tensor] = plain

    def typed(self, operand: Value) -> Value:
        """Get an operand with its quantized type, which kept operators and quant.dcast read.

        Args:
            operand: An operand of the op.
        """
        plain = self._plain.get(operand)
        if plain is None or operand.is_constant:
            return operand
        if not operand.type.quantized:
            return plain
        producer = plain.producer
        if producer is not None and isinstance(producer, Scast) and producer.input.type == operand.type:
            return producer.input
        return self.scast(plain, plain.type.with_element(operand.type.element))


Rule: TypeAlias = Callable[[Any, RuleBuilder], Answer]
"""A function of an op: new results, or NotApplicable or Refused raised."""

MARK: Final = "kept"
"""The key of `Op.info` that says that an op keeps its quantized tensors."""

DECLARED: Final[dict[tuple[str, type[Op]], list[tuple[int, Rule]]]] = {}
"""The rules of all modules that are imported, by module and class of op, each with its order."""

R = TypeVar("R", bound=Rule)


def rule(*kinds: type[Op], order: int = 0) -> Callable[[R], R]:
    """Declares a function as a rule of operators. For each operator, rules are tried by `order`:

    0. what the reference kernel computes,
    1. the same with a weaker condition,
    2. the real result, rounded once,
    3. the real result in a more general way.
    """

    def declare(function: R) -> R:
        module: str = sys._getframe(1).f_globals["__name__"]
        for kind in kinds:
            declared = DECLARED.setdefault((module, kind), [])
            declared.append((order, function))
            declared.sort(key=itemgetter(0))
        return function

    return declare


def rules_of(kind: type[Op]) -> Iterator[Rule]:
    """The rules of a class of operators, in the order in which they are tried. The module of each is imported when it
    is reached."""
    for module in modules_of("tflq.legalize", getattr(kind, "op_name", "")):
        import_module(module)
        for _, function in DECLARED.get((module, kind), ()):
            yield function


FOLLOWS_PARAMETERS: Final = "tflq computes what the parameters say"
"""The difference of an answer from a kernel that disregards them."""
