"""What a legalization rule is: a function for one op that answers rewritten, not applicable or rejected.

    @rule(Add, Sub)
    def addition(op: Add | Sub, b: RuleBuilder) -> Answer: ...

`tflq/index.py` lists the modules that have rules of an operator, in the order in which they are tried, so that a
rule's module is imported only when the rule is tried.

The op's operands and results carry the quantized types of the source model; `b.value(operand)` is the same tensor in
the form being built, as plain integers (or unchanged where it is not quantized). The answer of a rewritten op is its
new results, plain, one per result. Reasons are kept for the report and for `tflq inspect --why`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from operator import itemgetter
from typing import Any, Final, TypeAlias, TypeVar

from tflq.builder import Builder
from tflq.dialects.quant.casts import Scast
from tflq.errors import Refused
from tflq.ir.core import Buffer, Op, Value
from tflq.ir.types import f32
from tflq.legalize.in_place import Memory
from tflq.legalize.variables import Variables
from tflq.light import dataclass
from tflq.registering import modules_of

__all__ = [
    "AS_STATED",
    "DECLARED",
    "Answer",
    "NotApplicable",
    "Rewritten",
    "Rule",
    "RuleBuilder",
    "rewritten",
    "rule",
    "rules_of",
]


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


@dataclass(frozen=True, slots=True)
class Rewritten:
    """New results, with what the report should say: a `note` (how), a `warning` (where the kernel disregards
    parameters), and which `exception` that is (`tflq.legalize.exceptions`). Where parameters must hold
    (`RuleBuilder.real`), an answer with a warning is none."""

    results: Sequence[Value]
    note: str = ""
    warning: str = ""
    exception: str = "disregarded"


Answer: TypeAlias = Value | Sequence[Value] | Rewritten
"""What a rule gives: new results. It raises NotApplicable where the next rule is to be tried,
and Refused where no other can help."""


def rewritten(answer: Answer) -> Rewritten:
    """An answer with what the report says of it."""
    if isinstance(answer, Rewritten):
        return answer
    return Rewritten([answer] if isinstance(answer, Value) else answer)


class RuleBuilder(Builder):
    """What a rule uses to write operators of the integer form.

    It knows what the operands of the current op have become, and the module's variables. Each method makes one operator
    and returns its result. If a rule cannot handle an operator, it raises `tflq.NotApplicable`, and the next rule is
    tried. See docs/extending.md.

    Attributes:
        real: Follow quantization parameters even where the reference kernel ignores them.
        memory: What the interpreter overwrites, if that is known.
        probing: The ops only serve to measure how far off a kernel is.
        undefined: What C++ leaves undefined in the op's kernel, as rules note it with `note_undefined`. If it shows in
            a result, the report warns; if quantization parameters must hold, the rule does not apply.
        variables: The module's variables.
        ops: The ops written so far.
        location: The location that new ops get.

    Example:
        ```python
        from tflq.ir.types import i8

        def negative(op, b: tflq.RuleBuilder):
            x = b.value(op.operand(0))  # its stored integers
            return b.sub(b.constant(0, i8), x)

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
        memory: Memory | None = None,
        probing: bool = False,
    ) -> None:
        super().__init__(ops)
        self.real = real
        self.memory = memory
        self.probing = probing
        self.undefined: dict[str, int | None] = {}
        self._plain = plain
        self.variables = Variables() if variables is None else variables
        self._real_states: dict[Value, Value] = {}

    def note_undefined(self, what: str, counts: int | None = None) -> None:
        """Note something that C++ leaves undefined, and that is computed as kernels compiled for x86-64 compute it.

        Args:
            what: What is undefined.
            counts: How far the result is from the real value at most, if the rule knows.
        """
        self.undefined.setdefault(what, counts)

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
        found = self._plain.get(operand)
        if found is not None:
            return found
        if not operand.type.quantized:
            return operand
        if operand.is_constant:
            buffer = Buffer.of(operand.array) if "sparsity" in operand.info else operand.buffer
            plain = Value(operand.type.stripped(), operand.name, buffer=buffer)
        else:  # a variable tensor, or one that nothing writes
            plain = self.scast(operand, operand.type.stripped())
        self._plain[operand] = plain
        return plain

    def became(self, tensor: Value, plain: Value) -> None:
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
        if plain is None or not operand.type.quantized or operand.is_constant:
            return operand if plain is None else (operand if operand.is_constant else plain)
        producer = plain.producer
        if producer is not None and isinstance(producer, Scast) and producer.input.type == operand.type:
            return producer.input
        return self.scast(plain, plain.type.with_element(operand.type.element))


Rule: TypeAlias = Callable[[Any, RuleBuilder], Answer]
"""A function of an op: new results, or NotApplicable or Refused raised."""

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
        path = f"tflq.legalize.{module}"
        import_module(path)
        for _, function in DECLARED[path, kind]:
            yield function


AS_STATED: Final = "here the result is what the parameters say"
"""How an answer differs from a kernel that disregards them."""
