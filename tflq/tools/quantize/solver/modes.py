"""The solver's modes: transform puts ops on integers where types and casts say that they can be, simplify moves, merges
and removes casts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypeAlias

import numpy as np

from tflq.analysis.cast_cost import RealCast, cast_cost, cost_of_op, is_quantizable
from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.effects import called_functions, is_pure
from tflq.dialects.quant import Qcast, Scast
from tflq.dialects.tfl.movement import Pad, PadV2
from tflq.dialects.traits import Surrounded
from tflq.ir.facts import walk
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Location, Op, Value
from tflq.ir.rewriting import replace_values
from tflq.ir.types import TensorType, UniformQuantizedType
from tflq.targets.load import load_kernels
from tflq.targets.target import Target
from tflq.tools.quantize.solver.contents import (
    QUANTIZED,
    REAL,
    STORED,
    Content,
    Contents,
    Form,
    Moves,
    Rounding,
    reals_of,
    steps_of,
)
from tflq.tools.quantize.solver.solution import solve
from tflq.transforms.canonicalize import Canonicalize, DeadCodeElimination
from tflq.transforms.pass_manager import Pass, PassResult, Summaries


@dataclass(frozen=True, slots=True)
class Solved:
    """Effect of a mode of the solver on a module; that of the last one is in its record.

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
        """Values of a function that users know by name: the results of the function and of its signatures."""
        values = dict.fromkeys(function.outputs)
        for signature in self.module.signatures or ():
            if self.module.functions[signature.function] is function:
                values |= dict.fromkeys(value for _, value in signature.outputs or ())
        return values

    def _contents(self, function: Function, typed: Mapping[Op, Rounding], how: _How) -> Contents:
        ways = {"encased": how == "transformed", "unrounded": how == "unrounded"}
        return Contents(function, self.apart(function), called=function in self.called, typed=typed, **ways)

    def _solved(self, function: Function, typed: Mapping[Op, Rounding], how: _How) -> Rewriting:
        contents = self._contents(function, typed, how)
        solve(contents)
        return Rewriting(contents, stored=how == "transformed")

    def simplify(self, function: Function, *, unrounded: bool) -> bool:
        """Puts casts where they cost least. Returns whether that changes the function."""
        return self._commit(self._solved(function, {}, "unrounded" if unrounded else "simplified"))

    def transform(self, function: Function, takes: Callable[[Op], bool]) -> bool:
        """Puts casts where they cost least, with ops on quantized types where possible. Returns whether that changes
        the function.

        If casts would cost more then, only ops whose operands are dequantized straight before take quantized types.
        """
        typed = _typed(self._contents(function, {}, "transformed"), takes)
        rewriting = self._solved(function, typed, "transformed")
        if typed and rewriting.cost > sum(map(cost_of_op, function.ops)):
            straight = {op: rounding for op, rounding in typed.items() if _straight(rewriting.contents, op)}
            rewriting = self._solved(function, straight, "transformed")
        return self._commit(rewriting)

    def _commit(self, rewriting: Rewriting) -> bool:
        contents = rewriting.contents
        moves = [step for step in contents.steps if isinstance(step, Moves)]
        encased = len(rewriting.encased)
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
    """The rounding of an op's results, if all are rounded alike, and all its real operands are on grids."""
    operands = [contents.look(value) for value in op.present_operands]
    results = [contents.look(value) for value in op.results]
    reals = [seen for seen in operands if seen is not None]
    if not reals or None in results or any(form != REAL or content.grid is None for content, form in reals):
        return None
    steps = steps_of(seen[0] for seen in results if seen is not None)
    return steps[0] if steps and steps[0] is not None and steps[0].usual else None


def _on_types(contents: Contents, op: Op, rounding: Rounding) -> Op:
    """The op as it would be on quantized types."""
    operands = [None if v is None else _on_grid(contents, v) for v in op.operands]
    results = [Value(value.type.with_element(rounding.grid), value.name) for value in op.results]
    return op.copy_with(operands, results)


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
    seen = (contents.look(value) for value in op.present_operands)
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
        return lambda op: op.name.startswith("tfl.") and target.judge(op).runs


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


# A function in the forms that were solved: its ops on other values, and the casts that these need. Casts stand where
# they are first needed. A value of the source stays where one in its form is needed; so do the names of what the
# function returns.


_NO_ATTRIBUTES: Final[Mapping[str, Any]] = {}


@dataclass(slots=True)
class _Step:
    """An op as it will be: one of the source (`op`) on these values, or a new one."""

    op: Op | None
    name: str
    operands: list[Value | None]
    results: list[Value]
    attributes: Mapping[str, Any]
    location: Location | None = None

    @property
    def same(self) -> bool:
        """Whether it is an op of the source as it was."""
        op = self.op
        if op is None or self.name != op.name or len(op.operands) != len(self.operands):
            return False
        pairs = (*zip(op.operands, self.operands, strict=True), *zip(op.results, self.results, strict=True))
        return all(a is b for a, b in pairs) and self.attributes is op.attributes

    def build(self) -> Op:
        """The op."""
        op = self.op
        if op is None or self.name != op.name:
            location, info = (self.location, {}) if op is None else (op.location, op.info)
            return Op(self.name, self.operands, self.results, dict(self.attributes), location, info=info)
        op.operands, op.results, op.attributes = self.operands, self.results, dict(self.attributes)
        for value in self.results:
            value.producer = op
        return op


class Rewriting:
    """One function. `stored`: ops that move elements do so on storage types, where they can."""

    def __init__(self, contents: Contents, *, stored: bool) -> None:
        self.contents = contents
        self.stored = stored
        self.encased = {op for op in contents.steps if isinstance(op, Op) and contents.is_encased(op)}
        self.steps: list[_Step] = []
        self.values: dict[tuple[Content, Form], Value] = {}
        for step in contents.steps:
            self._move(step) if isinstance(step, Moves) else self._keep(step)
        for value in (*contents.function.outputs, *contents.apart):
            self._operand(value, None)

    @property
    def cost(self) -> int:
        """The elements that its casts read."""
        return sum(_cost(step) for step in self.steps if step.op not in self.encased)

    def commit(self, module: Module) -> bool:
        """Puts the function into the new forms. Returns whether that changes it."""
        function = self.contents.function
        if len(self.steps) == len(function.ops) and all(step.same for step in self.steps):
            return False
        replacements: dict[Value, Value] = {}
        for content in self.contents.all:
            for form, values in content.values.items():
                replacement = self.values.get((content, form))
                if replacement is not None:
                    replacements |= {value: replacement for value in values if value is not replacement}
        before = {value for op in function.ops for value in op.results}
        function.ops = [step.build() for step in self.steps]
        replace_values(module, function, replacements)
        gone = before.difference(value for op in function.ops for value in op.results)
        function.tensors = [value for value in function.tensors if value not in gone]
        return True

    # Ops of the source.

    def _keep(self, op: Op) -> None:
        operands = [self._operand(value, op) for value in op.operands]
        for inner in walk([op]) if op.regions else ():
            for value in inner.operands if inner is not op else ():
                self._operand(value, None)
        results = [self._result(value) for value in op.results]
        self.steps.append(_Step(op, op.name, operands, results, op.attributes))

    def _operand(self, value: Value | None, op: Op | None) -> Value | None:
        seen = None if value is None else self.contents.read_as(value, op)
        return value if seen is None else self._get(*seen)

    def _result(self, value: Value) -> Value:
        """A result of an op that stays: in the form in which it makes its content, which it may make for the first
        time."""
        seen = self.contents.look(value)
        if seen is None:
            return value
        content, form = seen
        if content.rounded_from is not None:
            content, form = content.rounded_from, REAL
        elif content.form != form:
            form = content.form
        elif content.value is value:
            return self._claimed(content, form, value)
        return self._new(content, form)

    def _move(self, moves: Moves) -> None:
        op = moves.op
        form: Form = REAL if moves.reals else self._integers(moves)
        operands = [self._operand(v, None) if i not in moves.sources else None for i, v in enumerate(op.operands)]
        for index, content in moves.sources.items():
            operands[index] = self._get(self._rounded(moves, content), form)
        results = [self._new(self._rounded(moves, content), form) for content in moves.results]
        name, attributes = op.name, self._surrounded(moves, form)
        if isinstance(op, Pad) and form == STORED and moves.form != STORED:
            name = PadV2.op_name
            zero = np.asarray(self._grid(moves).zero_point)
            operands.append(_constant(zero, TensorType((), results[0].type.element)))
        self.steps.append(_Step(op, name, operands, results, attributes))

    def _rounded(self, moves: Moves, content: Content) -> Content:
        """The content that an op moves in the place of another: that one, or its rounding."""
        if moves.level == 0 and content.grid is None:  # a constant, which is on the grid
            return self.contents.rounded(content, Rounding(Qcast, self._grid(moves)))
        for rounding in moves.roundings:
            content = self.contents.rounded(content, rounding)
        return content

    def _integers(self, moves: Moves) -> Form:
        """The form in which an op moves integers."""
        op = moves.op
        assert isinstance(op, Operator)
        if moves.integers:
            return STORED
        trait = op.trait(Surrounded)
        if trait is not None and trait.zero_point and self._grid(moves).zero_point and not isinstance(op, Pad):
            return QUANTIZED
        if self.stored or moves.form == STORED:
            return STORED
        plain = any(slot.types for slot in (*op.operand_slots, *op.result_slots))
        return STORED if plain and moves.form == REAL else QUANTIZED

    def _grid(self, moves: Moves) -> UniformQuantizedType:
        """The type of the integers that an op moves."""
        grid = moves.roundings[-1].grid if moves.roundings else moves.grid
        assert isinstance(grid, UniformQuantizedType)
        return grid

    def _surrounded(self, moves: Moves, form: Form) -> Mapping[str, Any]:
        """Its attributes; what stands around the elements is in their form."""
        op = moves.op
        trait = trait_of(op, Surrounded)
        if trait is None or trait.attribute is None or (form == moves.form and not moves.roundings):
            return op.attributes
        around: Any = op.attributes[trait.attribute.key]
        type = moves.results[0].type
        for rounding in moves.roundings or [Rounding(Qcast, self._grid(moves))]:
            stored = rounding.of(np.asarray(around, type.storage.dtype), type)
            around = reals_of(stored, type.with_element(rounding.grid), type.storage)
        return {**op.attributes, trait.attribute.key: float(around) if form == REAL else int(stored)}

    # Values in the form that is needed.

    def _get(self, content: Content, form: Form) -> Value:
        known = self.values.get((content, form))
        if known is not None:
            return known
        if content.value is not None and content.form == form:
            return self._set(content, form, content.value)
        if content.rounded_from is not None and content.rounded_from.folds:
            return self._folded(content, form)
        if form == REAL and content.folds:
            return self._expressed_constant(content, self._get(content, content.form))
        if form == REAL:
            return self._cast(self.contents.dequantize, self._get(content, QUANTIZED), content, REAL)
        if form == STORED:
            return self._cast(Scast, self._get(content, QUANTIZED), content, STORED)
        if (content, STORED) in self.values or (content.value is not None and content.form == STORED):
            return self._cast(Scast, self._get(content, STORED), content, QUANTIZED)
        source, rounding = self._get(content.rounded_from or content, REAL), content.rounding
        if rounding is None:
            return self._cast(self.contents.quantize, source, content, QUANTIZED)
        return self._cast(rounding.kind, source, content, QUANTIZED, rounding.attributes())

    def _folded(self, content: Content, form: Form) -> Value:
        """A constant, rounded."""
        source, rounding = content.rounded_from, content.rounding
        assert source is not None
        assert rounding is not None
        if form == REAL:
            return self._expressed_constant(content, self._folded(content, QUANTIZED))
        stored = rounding.of(self._get(source, REAL).array, source.type)
        return self._set(content, form, _constant(stored, content.type_as(form), content.values.get(form, ())))

    def _expressed_constant(self, content: Content, value: Value) -> Value:
        reals = reals_of(value.array, content.type_as(QUANTIZED), content.type.storage)
        return self._set(content, REAL, _constant(reals, content.type, content.values.get(REAL, ())))

    def _cast(
        self,
        kind: type[Operator],
        source: Value,
        content: Content,
        form: Form,
        attributes: Mapping[str, Any] = _NO_ATTRIBUTES,
    ) -> Value:
        for value in self._choices(content, form):
            op = value.producer
            if type(op) is kind and op.operands == [source] and op.attributes == attributes:  # it is there already
                self.steps.append(_Step(op, op.name, op.operands, op.results, op.attributes))
                return self._set(content, form, value)
        result = self._new(content, form)
        before = result.producer
        location = before.location if isinstance(before, RealCast | Scast) else None  # no other operator's
        self.steps.append(_Step(None, kind.op_name, [source], [result], attributes, location))
        return result

    def _new(self, content: Content, form: Form) -> Value:
        """The value that a form of a content will be: one of the source, if there is one."""
        value = next(iter(self._choices(content, form)), None) or Value(content.type_as(form))
        return self._set(content, form, value)

    def _choices(self, content: Content, form: Form) -> Sequence[Value]:
        """The values of the source in a form: only the one that keeps its name, else all, those with a name first."""
        values = content.values.get(form, [])
        apart = [value for value in values if value in self.contents.apart]
        return apart[:1] or sorted(values, key=lambda value: not value.name)

    def _claimed(self, content: Content, form: Form, value: Value) -> Value:
        """A result, or the value that is returned in its place."""
        other = self._choices(content, form)[0]
        free = not value.name and value not in self.contents.apart
        return self._set(content, form, other if free else value)

    def _set(self, content: Content, form: Form, value: Value) -> Value:
        self.values[content, form] = value
        return value


def _cost(step: _Step) -> int:
    """The elements that an op casts."""
    if step.op is not None and not isinstance(step.op, RealCast):
        return cost_of_op(step.op) if step.results == step.op.results else 0
    (source,) = step.operands
    return 0 if source is None or step.name == Scast.op_name else source.type.size


def _constant(array: np.ndarray, type: TensorType, like: Sequence[Value] = ()) -> Value:
    """A constant of a type, with the name of a value."""
    return Value(type, like[0].name if like else "", buffer=Buffer.of(array.astype(type.storage.dtype)))
