"""A function of a module in the tosa form as C: its kernels, their calls in order, and where everything is.

Symbols begin with `@`, in whose place a writer puts the name: no other text has the character. What has no form in C is
collected over the whole function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tflq.analysis.known import Ranges
from tflq.base.errors import Reason, Refused
from tflq.dialects.tosa import convolution as conv
from tflq.dialects.tosa import elementwise as ew
from tflq.dialects.tosa import movement as move
from tflq.formats.c.fusion import Fusion
from tflq.formats.c.loops import Body, kernel
from tflq.formats.c.memory import Plan
from tflq.formats.c.movement import MOVEMENT, find_views, moved
from tflq.formats.c.names import bytes_of, c_type, comment, count, described, dims_of
from tflq.formats.c.unit import Kernel, Unit
from tflq.formats.lowering import refuse
from tflq.ir.core import Module, Op, Value

NAME: Final = "@"
_INEXACT: Final = (
    *(
        ew.Reciprocal,
        ew.Cos,
        ew.Erf,
        ew.Exp,
        ew.Log,
        ew.Pow,
        ew.Rsqrt,
        ew.Sigmoid,
        ew.Sin,
        ew.Tanh,
        conv.Weighted,
        conv.MatMul,
    ),
    *(conv.AvgPool2D, move.ReduceSum, move.ReduceProduct),
)
"""Operators on floats whose results differ between libraries, or by the order of a sum."""


class Program:
    """One function in C. `state`: initial value and name of each variable. `layers`: the named results, in order."""

    def __init__(self, module: Module, index: int) -> None:
        self.function: Final = module.functions[index]
        self.unit: Final = Unit(NAME)
        self.state: Final = {
            op.variable: (f"v{at}", op.initial_value)
            for at, op in enumerate(o for f in module.functions for o in f.ops if isinstance(o, move.Variable))
        }
        self._refused: dict[Reason, None] = {}
        ends = [*self.function.inputs, *self.function.outputs, *(v for _, v in self.state.values())]
        self._each([None], lambda _: [(c_type(v), dims_of(v)) for v in ends])
        self._each(self.function.ops, lambda op: [(c_type(v), dims_of(v)) for v in (*op.present_operands, *op.results)])
        self._fusion = Fusion(self.function)
        find_views(self._fusion)
        self._ranges = Ranges(sums=True)
        self.kernels: Final[list[Kernel]] = []
        self._each(self.function.ops, self._add)
        self._place()

    def _each(self, ops: Sequence[Any], step: Callable[[Any], object]) -> None:
        """Takes a step for each operator. UnsupportedError lists what is refused."""
        for op in ops:
            try:
                step(op)
            except Refused as refusal:
                self._refused[refusal.at(None if op is None else op.location)] = None
        refuse(self._refused, "C")

    def _add(self, op: Op) -> None:
        """The call of an operator that is the root of a kernel."""
        fusion = self._fusion
        if isinstance(op, (move.Reshape, move.Identity, move.Variable)) or not fusion.is_needed(op):
            return
        if isinstance(op, (move.VariableRead, move.VariableWrite)):
            leaves = [fusion.root(v) for v in op.present_operands]
            self.kernels.append(Kernel("", op, leaves, op.results[0] if op.results else None))
        elif isinstance(op, MOVEMENT):
            if op.result not in fusion.views:
                body = Body(self.unit, fusion, self._ranges)
                lines = moved(op, body)
                self.kernels.append(body.finished(op, lines, op.result, len(body.terms.leaves)))
        elif len(op.results) != 1 or isinstance(op, (move.CondIf, move.WhileLoop)):
            raise Refused(f"{op.short_name.upper()} is not written in C")
        elif op.result not in fusion.inside:
            self.kernels.append(kernel(op, self.unit, fusion, self._ranges))

    # Memory.

    def _place(self) -> None:
        fusion, outputs = self._fusion, self._fusion.outputs
        self._pointers: dict[Value, str] = {v: f"in{at}" for at, v in enumerate(self.function.inputs)}
        computed = {k.result for k in self.kernels}
        times = Counter(outputs)
        for at, value in enumerate(outputs):
            if value in computed and times[value] == 1 and not isinstance(value.producer, move.VariableRead):
                self._pointers[value] = f"out{at}"
        self._read_state()
        self.plan = Plan(fusion, self.kernels, set(self._pointers))

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
                    self._pointers[value] = f"state->{self.state[name][0]}"

    def pointer(self, value: Value, *, writes: bool = False) -> str:
        """The expression that points to a tensor."""
        base, begin = self._fusion.base(value)
        if base.is_constant:
            return self.unit.constant(base.array, base.type.storage)
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

    def calls(self) -> list[str]:
        """The statements of the run, in order."""
        out = []
        layers = 0
        for number, each in enumerate(self.kernels):
            if isinstance(each.op, move.VariableWrite):
                target = f"state->{self.state[each.op.variable][0]}"
                out.append(f"memmove({target}, {self.pointer(each.leaves[0])}, {bytes_of(each.leaves[0])});")
            elif isinstance(each.op, move.VariableRead):
                if each.op.output not in self._pointers:
                    source = f"state->{self.state[each.op.variable][0]}"
                    out.append(
                        f"memcpy({self.pointer(each.op.output, writes=True)}, {source}, {bytes_of(each.op.output)});"
                    )
            else:
                assert each.result is not None
                scratch = zip(each.scratch, self.plan.scratch[number], strict=True)
                arguments = [
                    *(self.pointer(v) for v in each.leaves),
                    self.pointer(each.result, writes=True),
                    *(f"({s.type} *)(void *)(arena + {span.at})" for s, span in scratch),
                ]
                out.append(f"{each.function}({', '.join(arguments)});")
            if each.result is not None and each.result.name:
                hook = f"{NAME}_LAYER({layers}, {self.pointer(each.result)}, {bytes_of(each.result)});"
                out.append(f"{hook} /* {described(each.result)} */")
                layers += 1
        for at, value in enumerate(self._fusion.outputs):
            if self._pointers.get(value) != f"out{at}":
                out.append(f"memcpy(out{at}, {self.pointer(value)}, {bytes_of(value)});")
        return out

    @property
    def layers(self) -> list[Value]:
        """The results that a layer hook sees, in the order of its numbers."""
        return [k.result for k in self.kernels if k.result is not None and k.result.name]

    @property
    def constant_bytes(self) -> int:
        return sum(array.nbytes for _, array, _ in self.unit.constants.values())

    @property
    def state_bytes(self) -> int:
        return sum(bytes_of(value) for _, value in self.state.values())

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
    rounds = isinstance(op, _INEXACT) or (op.location is not None and op.location.opcode == "HARD_SWISH")
    return rounds and any(v.type.storage.is_float for v in op.results)
