"""Values inside of IF and WHILE, watched from outside: a network whose operators also return their ends.

The interpreter holds of a body what its last run left. So each branch and body returns the least and the largest of
each float value as well. A WHILE carries these from one run of its body to the next. Of the branch that an IF does
not take they are `UNSEEN`, as before the first run. The numbers of all other values stay.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

import numpy as np

from tflq.dialects.effects import callees
from tflq.dialects.tfl.state import If, While
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, f32
from tflq.tools.quantize.calibration.collecting import UNSEEN

_SCALAR: Final = TensorType((), f32)
_REDUCTIONS: Final = ("tfl.reduce_min", "tfl.reduce_max")
_JOINED: Final = ("tfl.minimum", "tfl.maximum")


class Ends(NamedTuple):
    """A value inside of an operator, the function that it is in, and its ends as values outside."""

    function: Function
    value: Value
    least: Value
    largest: Value


def watch_inside(module: Module, function: Function) -> list[Ends]:
    """Changes a module so that a function has the ends of all float values of the branches and bodies that it runs, and
    returns these. What several operators run is left as it is, and so are the conditions of loops."""
    calls = Counter(index for op in module.ops() for index in callees(op))
    calls.update(signature.function for signature in module.signatures or [])
    return _Watching(module, calls).inside(function)


class _Watching:
    def __init__(self, module: Module, calls: Counter[int]) -> None:
        """calls: how many operators and signatures run a function."""
        self.module = module
        self.calls = calls

    def inside(self, function: Function) -> list[Ends]:
        """The ends of all that operators of a function run, as values of it."""
        return [each for op in list(function.ops) for each in self._of(op)]

    def _of(self, op: Op) -> list[Ends]:
        if not isinstance(op, (If, While)) or any(self.calls[index] > 1 for index in callees(op)):
            return []
        called = [self.module.functions[index] for index in callees(op)]
        return self._of_branches(op, called) if isinstance(op, If) else self._of_loop(op, *called)

    def _of_branches(self, op: Op, branches: list[Function]) -> list[Ends]:
        """Each branch returns its own ends, and in their place the other one what was not computed."""
        sides = [self._all(branch) for branch in branches]
        for branch, computed in zip(branches, sides, strict=True):
            for side in sides:
                for each in side:
                    ends = [each.least, each.largest] if side is computed else [constant(end) for end in _unseen()]
                    branch.outputs += ends
        return [_returned(op, each) for side in sides for each in side]

    def _of_loop(self, op: Op, condition: Function, body: Function) -> list[Ends]:
        """The body joins its ends with those of the runs before."""
        ends = self._all(body)
        for each in ends:
            for name, end, unseen in zip(_JOINED, each[2:], _unseen(), strict=True):
                before, after = Value(_SCALAR), Value(_SCALAR)
                body.inputs.append(before)
                body.ops.append(Op(name, [before, end], [after], {}))
                body.outputs.append(after)
                condition.inputs.append(Value(_SCALAR))
                op.operands = [*op.operands, constant(unseen)]
        return [_returned(op, each) for each in ends]

    def _all(self, function: Function) -> list[Ends]:
        """The ends of all float values of a function, as values of it, and of what its operators run."""
        values = [v for v in function.values() if v.type.element == f32 and not v.is_constant]
        return [*self.inside(function), *(_reduced(function, value) for value in values)]


def _unseen() -> list[np.ndarray]:
    return [np.array(end, np.float32) for end in UNSEEN]


def _reduced(function: Function, value: Value) -> Ends:
    """The ends of a value, computed at the end of its function."""
    flat, ends = Value(TensorType((None,), f32)), [Value(_SCALAR) for _ in _REDUCTIONS]
    shape, axis = constant(np.array([-1], np.int32)), constant(np.array([0], np.int32))
    function.ops.append(Op("tfl.reshape", [value, shape], [flat], {"new_shape": (-1,)}))
    for name, end in zip(_REDUCTIONS, ends, strict=True):
        function.ops.append(Op(name, [flat, axis], [end], {"keep_dims": False}))
    return Ends(function, value, *ends)


def _returned(op: Op, inside: Ends) -> Ends:
    """Ends that the function of an operator returns, as results of it."""
    results = [Value(_SCALAR), Value(_SCALAR)]
    op.results = [*op.results, *results]
    for result in results:
        result.producer = op
    return inside._replace(least=results[0], largest=results[1])
