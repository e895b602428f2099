"""The solver's modes: transform puts ops on integers where types and casts say that they can be, simplify moves, merges
and removes casts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Literal, TypeAlias

from tflq.analysis.cast_cost import cast_cost, cost_of_op, is_quantizable
from tflq.contract import Pass, PassResult, Summaries
from tflq.dialects.effects import called_functions, is_pure
from tflq.ir.core import Function, Module, Op, Value
from tflq.light import dataclass
from tflq.passes.canonicalize import Canonicalize, DeadCodeElimination
from tflq.passes.solver.contents import REAL, Contents, Moves, steps_of
from tflq.passes.solver.grids import Rounding
from tflq.passes.solver.rewriting import Rewriting
from tflq.passes.solver.solution import solve
from tflq.targets.load import load_kernels
from tflq.targets.target import Target


@dataclass(frozen=True, slots=True)
class Solved:
    """What a mode of the solver did to a module; the last one is in its record.

    before, after: the cost of casts (`tflq.analysis.cast_cost`). to_integers, to_reals: ops that moved elements of one
    kind and now move those of the other. typed: ops that now take quantized types. encased: ops on quantized types that
    are now between casts.
    """

    before: int
    after: int
    to_integers: int = 0
    to_reals: int = 0
    typed: int = 0
    encased: int = 0

    def __str__(self) -> str:
        counts = (
            (self.to_integers, "moved from reals to integers"),
            (self.to_reals, "moved from integers to reals"),
            (self.typed, "put on quantized types"),
            (self.encased, "put between casts"),
        )
        done = [f"{count} op{'s' * (count != 1)} {what}" for count, what in counts if count]
        return "; ".join([f"casts read {self.after} elements, before {self.before}", *done])


_How: TypeAlias = Literal["simplified", "unrounded", "transformed"]


class _Solver:
    """One run of a mode on a module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.before = cast_cost(module)
        self.counts = dict.fromkeys(("to_integers", "to_reals", "typed", "encased"), 0)
        self.called = set(called_functions(module))
        self.functions = [function for function in module.functions if not function.info.get("declaration")]

    def apart(self, function: Function) -> dict[Value, None]:
        """What users know of a function by name: what it returns, and what its signatures return."""
        values = dict.fromkeys(function.outputs)
        for signature in self.module.signatures or ():
            if self.module.functions[signature.function] is function:
                values |= dict.fromkeys(value for _, value in signature.outputs or ())
        return values

    def _contents(self, function: Function, typed: Mapping[Op, Rounding], how: _How) -> Contents:
        apart, called = self.apart(function), function in self.called
        return Contents(
            function, apart, called=called, typed=typed, encased=how == "transformed", unrounded=how == "unrounded"
        )

    def _solved(self, function: Function, typed: Mapping[Op, Rounding], how: _How) -> Rewriting:
        contents = self._contents(function, typed, how)
        solve(contents)
        return Rewriting(contents, stored=how == "transformed")

    def simplify(self, function: Function, *, unrounded: bool) -> bool:
        """Puts casts where they cost least. Returns whether that changes the function."""
        return self._commit(self._solved(function, {}, "unrounded" if unrounded else "simplified"))

    def transform(self, function: Function, takes: Callable[[Op], bool]) -> bool:
        """The same, with ops on quantized types that can be: if casts would cost more then, only those whose operands
        are dequantized straight before."""
        typed = _typed(self._contents(function, {}, "transformed"), takes)
        rewriting = self._solved(function, typed, "transformed")
        if typed and rewriting.cost > sum(map(cost_of_op, function.ops)):
            straight = {op: rounding for op, rounding in typed.items() if _straight(rewriting.contents, op)}
            rewriting = self._solved(function, straight, "transformed")
        return self._commit(rewriting)

    def _commit(self, rewriting: Rewriting) -> bool:
        contents = rewriting.contents
        moves = [step for step in contents.steps if isinstance(step, Moves)]
        encased = sum(isinstance(step, Op) and contents.is_encased(step) for step in contents.steps)
        if not rewriting.commit(self.module):
            return False
        self.counts["to_integers"] += sum(not op.reals and op.form == REAL for op in moves)
        self.counts["to_reals"] += sum(op.reals and op.form != REAL for op in moves)
        self.counts["typed"] += len(contents.typed)
        self.counts["encased"] += encased
        return True

    def result(self, item: Pass, modified: bool) -> PassResult:
        """Notes what was done."""
        solved = Solved(self.before, cast_cost(self.module), **self.counts)
        self.module.record.note(solved)
        Summaries.add(self.module, item, solved)
        return PassResult(self.module, modified)


def _typed(contents: Contents, takes: Callable[[Op], bool]) -> dict[Op, Rounding]:
    """The ops that can take quantized types, with what their results are rounded to."""
    typed: dict[Op, Rounding] = {}
    for op in contents.steps:
        if isinstance(op, Op) and not op.regions and is_pure(op) and any(v.type.storage.is_float for v in op.results):
            rounding = _rounding(contents, op)
            if rounding is not None and (is_quantizable(op) or takes(_on_types(contents, op, rounding))):
                typed[op] = rounding
    return typed


def _rounding(contents: Contents, op: Op) -> Rounding | None:
    """What the results of an op are rounded to, if all are, alike, and all its real operands are on grids."""
    operands = [contents.look(value) for value in op.reads]
    results = [contents.look(value) for value in op.results]
    reals = [seen for seen in operands if seen is not None]
    if not reals or any(form != REAL or content.grid is None for content, form in reals):
        return None
    if None in results:
        return None
    steps = steps_of(seen[0] for seen in results if seen is not None)
    return steps[0] if steps and steps[0] is not None and steps[0].usual else None


def _on_types(contents: Contents, op: Op, rounding: Rounding) -> Op:
    """The op as it would be on quantized types."""
    operands = [None if v is None else _on_grid(contents, v) for v in op.operands]
    results = [Value(value.type.with_element(rounding.grid), value.name) for value in op.results]
    return Op(op.name, operands, results, op.attributes, op.location, info=op.info)


def _on_grid(contents: Contents, value: Value) -> Value:
    seen = contents.look(value)
    if seen is None:
        return value
    content = seen[0]
    known = content.value
    buffer = None if known is None or known.type.storage != content.type_as("quantized").storage else known.buffer
    return Value(content.type_as("quantized"), value.name, buffer=buffer)


def _straight(contents: Contents, op: Op) -> bool:
    """Whether no operand comes from an op that moves elements."""
    seen = (contents.look(value) for value in op.reads)
    return all(s is None or s[0].moves is None for s in seen)


@dataclass(frozen=True)
class QuantTransform(Pass):
    """Puts ops on integers where types and casts say that they can be, and changes types accordingly.

    Ops that move elements work on storage types, between `quant.scast`s, where this costs no more casts. Ops that are
    declared to take quantized types take them, if their operands are dequantized and their results quantized, straight
    or behind ops that move elements; so do operators of TFLite that the `target` has a kernel for. Their own rounding
    takes the place of the cast's. Ops on quantized types that are declared for reals only are put between casts. The
    cost of casts never rises; the results of all other ops stay as they are.

    target: a target's file; without one, operators of TFLite on reals stay on reals.
    """

    name: ClassVar[str] = "quant-transform"
    target: str = ""

    def run(self, module: Module) -> PassResult:
        solver = _Solver(module)
        modified = DeadCodeElimination().run(module).modified
        takes = self._takes()
        for function in solver.functions:
            modified |= solver.transform(function, takes)
        return solver.result(self, modified)

    def _takes(self) -> Callable[[Op], bool]:
        """Whether the target runs an op on quantized types."""
        if not self.target:
            return lambda _: False
        target = Target(self.target, load_kernels(self.target))
        return lambda op: op.name.startswith("tfl.") and target.judge(op).kept


@dataclass(frozen=True)
class QuantSimplify(Pass):
    """Moves, merges and removes casts, so that casts read the fewest elements, and as much as possible is moved as
    integers.

    Only casts and ops that move elements change: these move reals or integers, whichever costs least; equal casts are
    one; a qcast that changes nothing goes. No stored result changes, unless `roundings=removed`: then a value that is
    quantized and dequantized again is the value that it was, as `canonicalize{semantics=real}` has it.
    """

    name: ClassVar[str] = "quant-simplify"
    roundings: Literal["kept", "removed"] = "kept"

    def run(self, module: Module) -> PassResult:
        solver = _Solver(module)
        removed = self.roundings == "removed"
        modified = Canonicalize("real" if removed else "interpreter").run(module).modified
        modified |= DeadCodeElimination().run(module).modified
        for function in solver.functions:
            modified |= solver.simplify(function, unrounded=removed)
        return solver.result(self, modified)
