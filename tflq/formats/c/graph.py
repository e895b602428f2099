"""A function of a module in the tosa form as C: its kernels, their calls in order, and where everything is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from tflq.analysis.known import Ranges
from tflq.base.errors import Refused
from tflq.dialects.tosa import convolution as conv
from tflq.dialects.tosa import elementwise as ew
from tflq.dialects.tosa import movement as move
from tflq.formats.c.control import CONTROL, controlled
from tflq.formats.c.fusion import Fusion
from tflq.formats.c.loops import Body, kernel
from tflq.formats.c.memory import Plan
from tflq.formats.c.movement import MOVEMENT, find_views, moved
from tflq.formats.c.names import CALLED, MACRO, NAME, bytes_of, c_type, comment, count, described, dims_of
from tflq.formats.c.unit import Kernel
from tflq.ir.core import Function, Op, Value

if TYPE_CHECKING:
    from tflq.formats.c.program import Program

_INEXACT: Final = (
    *(ew.FloatFunction, ew.Reciprocal, ew.Pow, conv.Weighted, conv.MatMul),
    *(conv.AvgPool2D, move.ReduceSum, move.ReduceProduct),
)
"""Operators on floats whose results differ between libraries, or by the order of a sum; but for these:"""
_EXACT: Final = (ew.Ceil, ew.Floor)


class Graph:
    """One function in C. symbol: what it is called. `lines`: the statements of its calls, in order."""

    size = 0
    """Bytes of its arena."""
    complete = False
    """Whether all of it has a form in C."""

    def __init__(self, function: Function, symbol: str, program: Program, *, hooked: bool) -> None:
        """hooked: whether it calls the hook of layers."""
        self.function: Final = function
        self.symbol: Final = symbol
        self._program = program
        self.kernels: Final[list[Kernel]] = []
        self.lines: list[str] = []
        ends = [[*function.inputs, *function.outputs, *(v for _, v in program.state.values())]]
        parts: list[Iterable[Value]] = [*ends, *([*op.present_operands, *op.results] for op in function.ops)]
        places = [None, *(op.location for op in function.ops)]
        if program.all(zip(places, parts, strict=True), lambda part: [(c_type(v), dims_of(v)) for v in part]):
            self._fusion = Fusion(function)
            find_views(self._fusion)
            self._ranges = Ranges(sums=True)
            if program.all(((op.location, op) for op in function.ops), self._add):
                self._place()
                self.lines = [*self._statements(hooked=hooked)]
                self.complete = True

    def _add(self, op: Op) -> None:
        """The call of an operator that is the root of a kernel."""
        fusion, unit = self._fusion, self._program.unit
        if isinstance(op, (move.Reshape, move.Identity, move.Variable)) or not fusion.is_needed(op):
            return
        if isinstance(op, (move.VariableRead, move.VariableWrite)):
            if self.symbol.startswith(CALLED):
                raise Refused("a variable within control flow is not written in C")
            self.kernels.append(Kernel("", op, [fusion.root(v) for v in op.present_operands], op.results))
        elif isinstance(op, CONTROL):
            self.kernels.append(controlled(op, Body(unit, fusion, self._ranges), self._program.called))
        elif isinstance(op, MOVEMENT):
            if op.result not in fusion.views:
                body = Body(unit, fusion, self._ranges)
                lines = moved(op, body)
                self.kernels.append(body.finished(op, lines, op.results, len(body.terms.leaves)))
        elif len(op.results) != 1:
            raise Refused(f"{op.short_name.upper()} is not written in C")
        elif op.result not in fusion.inside:
            self.kernels.append(kernel(op, unit, fusion, self._ranges))

    # Memory.

    def _place(self) -> None:
        fusion, outputs = self._fusion, self._fusion.outputs
        self._pointers: dict[Value, str] = {v: f"in{at}" for at, v in enumerate(self.function.inputs)}
        computed = {v for k in self.kernels for v in k.results}
        times = Counter(outputs)
        for at, value in enumerate(outputs):
            if value in computed and times[value] == 1 and not isinstance(value.producer, move.VariableRead):
                self._pointers[value] = f"out{at}"
        self._read_state()
        self.plan = Plan(fusion, self.kernels, set(self._pointers))
        self.size = self.plan.size

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
                    self._pointers[value] = f"state->{self._program.state[name][0]}"

    def pointer(self, value: Value, *, writes: bool = False) -> str:
        """The expression that points to a tensor."""
        base, begin = self._fusion.base(value)
        if base.is_constant:
            return self._program.unit.constant(base.array, base.type.storage)
        place = self._pointers.get(base)
        if place is None:
            place = self._pointers.get(self.plan.place_of(base))
        if place is not None:
            return f"{place} + {begin}" if begin else place
        at = self.plan.at(base)
        assert at is not None
        size = bytes_of(base) // max(count(base), 1)
        return f"({'' if writes else 'const '}{c_type(base)} *)(void *)(arena + {at + begin * size})"

    # Text.

    @property
    def macro(self) -> str:
        """The text that its macros begin with."""
        return self.symbol.replace(NAME, MACRO).upper()

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters for inputs and outputs, by name."""
        rows = {f"in{at}": f"const {c_type(v)} in{at}[{max(count(v), 1)}]" for at, v in enumerate(self.function.inputs)}
        return rows | {
            f"out{at}": f"{c_type(v)} out{at}[{max(count(v), 1)}]" for at, v in enumerate(self.function.outputs)
        }

    def _statements(self, *, hooked: bool) -> Iterator[str]:
        for number, each in enumerate(self.kernels):
            yield from self._statement(number, each)
            for value in each.results if hooked else ():
                if named := self._fusion.named.get(value):
                    hook = f"{MACRO}_LAYER({next(self._program.numbers)}, {self.pointer(value)}, {bytes_of(value)});"
                    yield f"{hook} /* {described(named)} */"
        for at, value in enumerate(self._fusion.outputs):
            if self._pointers.get(value) != f"out{at}":
                yield f"memcpy(out{at}, {self.pointer(value)}, {bytes_of(value)});"

    def _statement(self, number: int, each: Kernel) -> Iterator[str]:
        """The call of a kernel, or the copy of a variable."""
        if isinstance(each.op, move.VariableWrite):
            target = f"state->{self._program.state[each.op.variable][0]}"
            yield f"memmove({target}, {self.pointer(each.leaves[0])}, {bytes_of(each.leaves[0])});"
        elif isinstance(each.op, move.VariableRead):
            if (value := each.op.output) not in self._pointers:
                source = f"state->{self._program.state[each.op.variable][0]}"
                yield f"memcpy({self.pointer(value, writes=True)}, {source}, {bytes_of(value)});"
        else:
            scratch = zip(each.scratch, self.plan.scratch[number], strict=True)
            arguments = [
                *(self.pointer(v) for v in each.leaves),
                *(self.pointer(v, writes=True) for v in each.results),
                *(f"({s.type} *)(void *)(arena + {span.at})" for s, span in scratch),
            ]
            yield f"{each.function}({', '.join(arguments)});"

    # Facts.

    @property
    def products(self) -> int:
        """Multiplications of convolutions and of products of matrices."""
        total = 0
        for op in self.function.ops:
            if isinstance(op, conv.Weighted):
                dims = dims_of(op.weight)
                depth = np.prod(dims[:2] if isinstance(op, conv.DepthwiseConv2D) else dims[1:], dtype=np.int64)
                places = (
                    count(op.input) // dims[-1] * dims[0] if isinstance(op, conv.TransposeConv2D) else count(op.result)
                )
                total += places * int(depth)
            elif isinstance(op, conv.MatMul):
                total += count(op.result) * dims_of(op.input1)[-1]
        return total

    @property
    def inexact(self) -> list[str]:
        """Operators on floats whose results no standard fixes, as texts for a comment."""
        places = [op.location.place if op.location else op.short_name for op in self.function.ops if _is_inexact(op)]
        return [comment(place) for place in dict.fromkeys(places)]

    @property
    def has_floats(self) -> bool:
        return any(v.type.storage.is_float for op in self.function.ops for v in (*op.present_operands, *op.results))


def _is_inexact(op: Op) -> bool:
    rounds = isinstance(op, _INEXACT) and not isinstance(op, _EXACT)
    rounds = rounds or (op.location is not None and op.location.opcode == "HARD_SWISH")
    return rounds and any(v.type.storage.is_float for v in op.results)


def unread(names: Iterable[str], lines: Iterable[str]) -> list[str]:
    """Statements that keep compilers from warning of parameters that no line reads."""
    words = set(re.findall(r"\w+", "\n".join(lines)))
    return [f"(void){name};" for name in names if name not in words]
