"""A function of a module in the tosa form as C: its kernels, their calls in order, and where everything is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count as numbers
from typing import Any, Final, TypeVar

from tflq.analysis.blocks import MOVEMENT
from tflq.analysis.known import Ranges
from tflq.analysis.placing import alive, least_end
from tflq.base.errors import Reason, Refused
from tflq.dialects.declare import Operator
from tflq.dialects.tosa import convolution as conv
from tflq.dialects.tosa import elementwise as ew
from tflq.dialects.tosa import movement as move
from tflq.formats.c.fusion import Fusion
from tflq.formats.c.kernels import kernel
from tflq.formats.c.loops import Body
from tflq.formats.c.memory import Plan
from tflq.formats.c.movement import find_views, moved
from tflq.formats.c.names import CALLED, MACRO, bytes_of, c_type, count, declared, described, dims_of
from tflq.formats.c.unit import Kernel, Scratch, Unit, result_names, rolled
from tflq.ir.module import Function, Module
from tflq.ir.ops import Location, Op, Value

T = TypeVar("T")

_INEXACT: Final = (
    *(ew.FloatFunction, ew.Reciprocal, ew.Pow, conv.Weighted, conv.MatMul),
    *(conv.AvgPool2D, move.ReduceSum, move.ReduceProduct),
)
"""Operators on floats whose results differ between libraries, or by the order of a sum; but for these:"""
_EXACT: Final = (ew.Ceil, ew.Floor)
_MORE: Final = 1.05
"""How much more than tensors need, if none is in the memory of outputs, sums and copies of windows may take."""
_CONTROL: Final = (move.CondIf, move.WhileLoop)
_DEEPEST: Final = 50
"""Functions of control flow within each other, at most: they are planned by recursion."""


class Shared:
    """Data that functions share. `state`: name and initial value of each variable; `numbers`: of layers."""

    def __init__(self, module: Module) -> None:
        self.unit: Final = Unit()
        self.numbers: Final = numbers()
        variables = (op for function in module.functions for op in function.ops if isinstance(op, move.Variable))
        self.state: Final = {op.variable: (f"v{at}", op.initial_value) for at, op in enumerate(variables)}
        self.refused: Final[dict[Reason, None]] = {}
        self._module = module
        self._called: dict[int, Graph | None] = {}

    def all(self, items: Iterable[tuple[Location | None, T]], step: Callable[[T], Any]) -> bool:
        """Takes a step for each item. Whether none of them is refused, which is noted with its place."""
        before = len(self.refused)
        for place, item in items:
            try:
                step(item)
            except Refused as refusal:
                self.refused[refusal.at(place)] = None
        return len(self.refused) == before

    def called(self, index: int) -> Graph:
        """A function that control flow calls: a static one, written once. Refused if it calls itself."""
        if index not in self._called:
            if list(self._called.values()).count(None) >= _DEEPEST:
                raise Refused(f"more than {_DEEPEST} functions that control flow calls, one within the other")
            self._called[index] = None
            self._called[index] = graph = Graph(self._module.functions[index], f"{CALLED}{index}", self, entry=False)
            if graph.complete:
                body = [*unread([*graph.parameters, "arena"], graph.lines), *graph.lines]
                self.unit.add(graph.symbol, [*graph.parameters.values(), "uint8_t *arena"], body)
        known = self._called[index]
        if known is None:
            raise Refused("a function that calls itself is not written in C")
        return known


class Graph:
    """One function in C. symbol: what it is called. `lines`: the statements of its calls, in order."""

    size = 0
    """Bytes of its arena."""
    complete = False
    """Whether all of it has a form in C."""

    def __init__(self, function: Function, symbol: str, shared: Shared, *, entry: bool) -> None:
        """entry: whether it is one of the module's: these alone have hooks of results, and variables."""
        self.function: Final = function
        self.symbol: Final = symbol
        self._shared = shared
        self._is_entry = entry
        self.kernels: Final[list[Kernel]] = []
        self.lines: list[str] = []
        self.stored: Final[list[Value]] = []
        """The results behind which a hook stands, in the order of a run."""
        ends = [*function.inputs, *function.outputs, *(v for _, v in shared.state.values())]
        tensors: list[tuple[Location | None, Sequence[Value]]] = [(None, ends)]
        tensors += [(op.location, [*op.present_operands, *op.results]) for op in function.ops]
        if shared.all(tensors, lambda values: [(c_type(v), dims_of(v)) for v in values]):
            self._fusion = Fusion(function)
            find_views(self._fusion)
            self._ranges = Ranges(sums=True)
            if shared.all(((op.location, op) for op in function.ops), self._add):
                self._place()
                self.lines = rolled([*self._statements()])
                self.complete = True

    def _add(self, op: Op) -> None:
        """The call of an operator that is the root of a kernel."""
        fusion, unit = self._fusion, self._shared.unit
        if not fusion.is_root(op):
            return
        body = Body(unit, fusion, self._ranges)
        if isinstance(op, (move.VariableRead, move.VariableWrite)):
            if not self._is_entry:
                raise Refused("a variable within control flow is not written in C")
            self.kernels.append(Kernel(op, [fusion.root(v) for v in op.present_operands], op.results))
        elif isinstance(op, _CONTROL):
            self.kernels.append(_controlled(op, body, self._shared.called))
        elif isinstance(op, MOVEMENT):
            if op.result not in fusion.views:
                self.kernels.append(body.finished(op, moved(op, body), op.results))
        elif not isinstance(op, Operator):
            raise Refused(f"{op.short_name.upper()} is not written in C")
        else:
            self.kernels.append(kernel(op, unit, fusion, self._ranges))

    # Memory.

    def _place(self) -> None:
        fusion, outputs = self._fusion, self._fusion.outputs
        computed = {v for k in self.kernels for v in k.results if not isinstance(k.op, move.VariableRead)}
        written = {v: f"out{at}" for at, v in enumerate(outputs) if v in computed and outputs.count(v) == 1}
        self._pointers = {v: f"in{at}" for at, v in enumerate(self.function.inputs)} | written
        self._read_state()
        self.plan = Plan(fusion, self.kernels, self._pointers)
        least = least_end(self.plan.spans.values())
        for value, name in written.items():
            self.plan.lend(name, value)
        self._spare(max(self.plan.place([]), int(_MORE * least)))
        self.size = self.plan.place(self.kernels)

    def _spare(self, most: int) -> None:
        """Sums fewer channels at a time, and copies one window or none, where more bytes than the most would live."""
        bytes = alive(self.plan.spans.values())
        known: dict[tuple[object, ...], Kernel] = {}
        for number, each in enumerate(self.kernels):
            room = most - bytes.get(number, 0)
            root = each.results[0].producer if each.scratch and each.results else None
            if root is not None and each.bytes > room and self._fusion.row_of(root.result):
                if (key := (room, *each.lines)) not in known:
                    known[key] = kernel(root, self._shared.unit, self._fusion, self._ranges, room=room)
                self.kernels[number] = replace(each, scratch=known[key].scratch, lines=known[key].lines)

    def _read_state(self) -> None:
        """Reads a variable where it is, unless it is written before the last use."""
        returned = {self._fusion.base(v)[0] for v in self._fusion.outputs}
        last_use = {self._fusion.base(v)[0]: number for number, k in enumerate(self.kernels) for v in k.leaves}
        next_write: dict[str, int] = {}
        for number, each in reversed([*enumerate(self.kernels)]):
            if isinstance(each.op, move.VariableWrite):
                next_write[each.op.variable] = number
            elif isinstance(each.op, move.VariableRead) and each.op.output not in returned:
                value, name = each.op.output, each.op.variable
                if last_use.get(value, 0) <= next_write.get(name, len(self.kernels)):
                    self._pointers[value] = f"state->{self._shared.state[name][0]}"

    def pointer(self, value: Value, *, writes: bool = False) -> str:
        """The expression that points to a tensor."""
        base, begin = self._fusion.base(value)
        if base.is_constant:
            return self._shared.unit.constant(base.array, base.type.storage)
        if (place := self._pointers.get(base)) is not None:
            return f"{place} + {begin}" if begin else place
        memory, at = self.plan.at(base)
        if memory != "arena":
            memory = f"(uint8_t *){memory}"
        size = bytes_of(base) // max(count(base), 1)
        return f"({'' if writes else 'const '}{c_type(base)} *)(void *)({memory} + {at + begin * size})"

    def sums_of(self, value: Value) -> Value | None:
        """The sums of which a kernel makes its result, where it calls the hook of sums."""
        row = self._fusion.row_of(value)
        return row.result if isinstance(row, conv.Weighted) else None

    # Text.

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters for inputs and outputs, by name."""
        rows = {f"in{at}": f"const {declared(v, f'in{at}')}" for at, v in enumerate(self.function.inputs)}
        return rows | {f"out{at}": declared(v, f"out{at}") for at, v in enumerate(self.function.outputs)}

    def _statements(self) -> Iterator[str]:
        for number, each in enumerate(self.kernels):
            yield from self._statement(number, each)
            for value in each.results if self._is_entry else ():
                named, bytes = self._fusion.named.get(value), f"{self.pointer(value)}, {bytes_of(value)}"
                if named:
                    yield f"{MACRO}_LAYER({next(self._shared.numbers)}, {bytes}); /* {described(named)} */"
                elif each.lines:
                    yield f"{MACRO}_STEP({bytes});"
                if named or each.lines:
                    self.stored.append(value)
        for at, value in enumerate(self._fusion.outputs):
            if self._pointers.get(value) != f"out{at}":
                yield f"memcpy(out{at}, {self.pointer(value)}, {bytes_of(value)});"

    def _statement(self, number: int, each: Kernel) -> Iterator[str]:
        """The call of a kernel, or the copy of a variable."""
        if isinstance(each.op, move.VariableWrite):
            target = f"state->{self._shared.state[each.op.variable][0]}"
            yield f"memmove({target}, {self.pointer(each.leaves[0])}, {bytes_of(each.leaves[0])});"
        elif isinstance(each.op, move.VariableRead):
            if (value := each.op.output) not in self._pointers:
                source = f"state->{self._shared.state[each.op.variable][0]}"
                yield f"memcpy({self.pointer(value, writes=True)}, {source}, {bytes_of(value)});"
        elif each.lines:
            scratch = zip(each.scratch, self.plan.scratch[number], strict=True)
            arguments = [
                *(self.pointer(v) for v in each.leaves),
                *(self.pointer(v, writes=True) for v in each.results),
                *(f"({s.type} *)(void *)(arena + {span.at})" for s, span in scratch),
            ]
            yield f"{self._shared.unit.function(each)}({', '.join(arguments)});"


# Control flow: a kernel that calls functions of the module, on memory within its scratch.


def _controlled(op: move.CondIf | move.WhileLoop, body: Body, called: Callable[[int], Graph]) -> Kernel:
    """The kernel of control flow. called: the function of an index. Refused if it calls itself."""
    inputs = [body.operand(v)[0] for v in op.inputs if v is not None]
    outputs = result_names(op.outputs)
    if isinstance(op, move.CondIf):
        condition = body.operand(op.condition)[0]
        graphs = [called(op.then_graph), called(op.else_graph)]
        then, otherwise = (_call(graph, inputs, outputs) for graph in graphs)
        lines = [f"if ({condition}[0] != 0) {{", then, "} else {", otherwise, "}"]
    else:
        graphs = [called(op.cond_graph), called(op.body_graph)]
        after = [f"t{at}" for at in range(len(outputs))]
        body.scratch += [Scratch(c_type(v), t, bytes_of(v)) for v, t in zip(op.outputs, after, strict=True)]
        body.scratch.append(Scratch("uint8_t", "more", 1))
        sizes = [bytes_of(v) for v in op.outputs]
        lines = [f"memcpy({y}, {x}, {size});" for y, x, size in zip(outputs, inputs, sizes, strict=True)]
        lines += ["for (;;) {", _call(graphs[0], outputs, ["more"]), "if (more[0] == 0) {", "return;", "}"]
        lines.append(_call(graphs[1], outputs, after))
        lines += [f"memcpy({y}, {t}, {size});" for y, t, size in zip(outputs, after, sizes, strict=True)]
        lines.append("}")
    body.scratch.append(Scratch("uint8_t", "arena", max(graph.size for graph in graphs)))
    return body.finished(op, lines, op.outputs)


def _call(graph: Graph, inputs: Sequence[str], outputs: Sequence[str]) -> str:
    return f"{graph.symbol}({', '.join([*inputs, *outputs, 'arena'])});"


# Facts of operators.


def is_inexact(op: Op) -> bool:
    """Whether an operator on floats has results that no standard fixes."""
    rounds = isinstance(op, _INEXACT) and not isinstance(op, _EXACT)
    rounds = rounds or (op.location is not None and op.location.opcode == "HARD_SWISH")
    return rounds and any(v.type.storage.is_float for v in op.results)


def unread(names: Iterable[str], lines: Iterable[str]) -> list[str]:
    """Statements that keep compilers from warning of parameters that no line reads but hooks, which do nothing."""
    words = set(re.findall(r"\w+", "\n".join(line for line in lines if not line.startswith(MACRO))))
    return [f"(void){name};" for name in names if name not in words]
