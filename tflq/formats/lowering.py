"""The engine of the stages that lower the integer form to a format with operators of its own: TOSA, ONNX.

Each op is lowered where it stands (`FunctionWalk.lower`). What has no form gets a stand-in, since an operator that
computes shapes is not needed where they are known without it. At the end of a function the ops that nothing needs go,
and stand-ins that are left are collected over the whole module into one `UnsupportedError` (`refuse`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from tflq.base.errors import Reason, Refused, UnsupportedError, operators
from tflq.base.sized import MOST, need_few, need_few_parts
from tflq.dialects.builder import Emitter
from tflq.dialects.declare import Operator
from tflq.dialects.effects import is_handle, is_pure
from tflq.dialects.forms import undeclared
from tflq.dialects.tfl.state import VarHandle
from tflq.dialects.traits import Calls, Impure
from tflq.ir.facts import walk
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.rewriting import split_dead
from tflq.ir.types import SCALARS, ScalarType, TensorType

Result = TypeVar("Result")
"""The lowered form of a value."""
_STAND_IN: Final = "refused"
_REPEATED: Final = 8
"""Elements of constants in repeated calls for each one in calls that are the first, where these are many."""

WITHOUT_NUMBERS: Final = frozenset(t for t in SCALARS.values() if t.kind in ("opaque", "complex"))
"""Strings, variants and resources, and complex numbers."""


def _elements(ops: Sequence[Op]) -> int:
    """The number of elements of all constants that ops read."""
    constants = {value for op in ops for value in op.present_operands if value.is_constant}
    return sum(value.type.size for value in constants)


@dataclass(eq=False)
class FunctionWalk(ABC, Generic[Result]):
    """The walk of one function. A stage defines the lowered form of an op and of a value."""

    source: Function
    emitter: Emitter
    refused: dict[Reason, None]
    """Why something that is needed has no form, over the whole module."""
    inlined: set[int] = field(default_factory=set)
    """The lists of ops that took the place of a call."""
    copies: int = 0
    """The number of ops that calls have repeated."""
    elements: Counter[bool] = field(default_factory=Counter)
    """The number of elements of constants of functions that took the place of a call: the first time, and again."""

    @abstractmethod
    def lowered(self, op: Op) -> Sequence[Result]:
        """The lowered results of an op. Refused if the op has no form."""

    @abstractmethod
    def record(self, value: Value, result: Result | Value) -> None:
        """Records the lowered form of a value."""

    @abstractmethod
    def counterparts(self, value: Value) -> Sequence[Value]:
        """The values in the place of an operand; none if the operand has not been lowered."""

    @abstractmethod
    def stand_in_type(self, value: Value) -> TensorType:
        """The type of a value's stand-in."""

    def lower(self, ops: Sequence[Op]) -> None:
        """Lowers ops in order."""
        for op in ops:
            self.emitter.location = op.location
            for old, new in zip(op.results, self._results(op), strict=True):
                self.record(old, new)

    def inline(self, ops: Sequence[Op]) -> None:
        """Lowers the ops of a function in the place of its call. TooLarge if calls repeat too many, or too large
        constants."""
        repeats, start = id(ops) in self.inlined, len(self.emitter.ops)
        self.copies += len(ops) if repeats else 0
        self.inlined.add(id(ops))
        need_few_parts(self.copies)
        self.lower(ops)
        self.elements[repeats] += _elements(self.emitter.ops[start:])
        need_few(self.elements[True], max(MOST, _REPEATED * self.elements[False]), "copies of {} numbers in its place")

    def _results(self, op: Op) -> Sequence[Result | Value]:
        start = len(self.emitter.ops)
        try:
            _need_ranks(op)
            _need_numbers(op, self.source.outputs)
            results = self.lowered(op)
        except Refused as refusal:
            return self._stand_in(op, refusal.at(op.location))
        if misfit := undeclared(self.emitter.ops[start:]):
            return self._stand_in(op, Reason.at(op.location, misfit))
        if len(results) != len(op.results):
            return self._stand_in(op, Reason.at(op.location, f"it has {len(op.results)} results, and a form has one"))
        return results

    def function(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> Function:
        """The lowered function: the ops that its results or variables follow from."""
        ops = needed(self.emitter.ops, outputs)
        self.refused.update((op.info["reason"], None) for op in walk(ops) if op.name == _STAND_IN)
        return Function(self.source.name, list(inputs), list(outputs), ops)

    def _stand_in(self, op: Op, reason: Reason) -> Sequence[Value]:
        """Results of an op that has no form, until it is known whether something needs them."""
        operands = [new for value in op.present_operands for new in self.counterparts(value)]
        info = {"reason": reason, "pure": is_pure(op)}
        return self.emitter.op(_STAND_IN, operands, [self.stand_in_type(v) for v in op.results], info=info).results


def needed(ops: Sequence[Op], results: Iterable[Value]) -> list[Op]:
    """The ops that some results follow from, or that do more than compute; stand-ins among them."""
    return split_dead(ops, results, lambda op: op.info["pure"] if op.name == _STAND_IN else is_pure(op))[0]


def need_elements(op: Op, lacking: Set[ScalarType]) -> None:
    """Refused if an operand or result has one of the element types that no tensor of the format has."""
    handles = isinstance(op, Operator) and op.has(Calls, Impure)
    for value in op.tensors:
        if value.type.storage in lacking and not (handles and is_handle(value)):
            raise Refused(f"'{value.name}' is {value.type.storage}, which has no form")


def _need_ranks(op: Op) -> None:
    """Refused if an operand's rank is not known."""
    for value in op.operands:
        if value is not None and value.type.shape is None and not is_handle(value):
            raise Refused(f"the rank of its operand '{value.name}' is not known")


def _need_numbers(op: Op, outputs: Sequence[Value]) -> None:
    """Refused for an operator that computes with the handle of a variable, or that returns one as a number: which it is
    follows from a run alone."""
    returned = isinstance(op, VarHandle) and not is_handle(op.result) and op.result in outputs
    of_handles = any(isinstance(value.producer, VarHandle) for value in op.present_operands)
    computed = of_handles and not (isinstance(op, Operator) and op.has(Calls, Impure))
    if returned or computed:
        raise Refused("the handle of a variable is no number")


def distinct_result(result: Value, used: set[Value], copy: Callable[[Value], Value]) -> Value:
    """The result; a copy of it if it is a result already, an argument or a constant."""
    result = copy(result) if result in used or result.producer is None else result
    used.add(result)
    return result


def entries(module: Module) -> list[int]:
    """The functions that become entry points: the first and those of signatures that are more than a declaration."""
    named = {0, *(s.function for s in module.signatures or ())}
    return [i for i in sorted(named) if not module.functions[i].info.get("declaration")]


def keyed_entries(module: Module) -> list[tuple[str, int]]:
    """Signature key and index of each function that a signature names; if there are less than two, the only entry, with
    the key ""."""
    functions = {s.function: s.key or "" for s in module.signatures or ()}
    return [("", next(iter(functions), 0))] if len(functions) < 2 else [(key, at) for at, key in functions.items()]


def refuse(refused: Iterable[Reason], format: str, remedy: str = "") -> None:
    """UnsupportedError, if there is a reason, that lists all of them. remedy: what else can be done."""
    reasons = list(refused)
    if reasons:
        what = f"no form in {format} for {operators(len(reasons))}:"
        remedy += "convert to a .tflite file, or only the part before it (--cut)"
        raise UnsupportedError(what, reasons, remedy=remedy)


def lowered_module(source: Module, functions: Sequence[Function], renamed: Mapping[Value, Value]) -> Module:
    """The module of lowered functions: first the entry points, in their order, then others. renamed: what arguments
    and results of the entry points have become."""
    places = entries(source)

    def side(pairs: list[tuple[str | None, Value]] | None) -> list[tuple[str | None, Value]] | None:
        return None if pairs is None else [(name, renamed.get(value, value)) for name, value in pairs]

    def moved(s: Signature) -> Signature:
        return Signature(s.key, places.index(s.function), side(s.inputs), side(s.outputs))

    signatures = None if source.signatures is None else [moved(s) for s in source.signatures]
    module = Module(list(functions), signatures, source.metadata, source.description, source=source.source)
    module.warnings = list(source.warnings)
    return module
