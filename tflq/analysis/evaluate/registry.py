"""The numpy evaluator: one function per op, arrays in, arrays out.

    @evaluator(Add)
    def add(op: Add, a: np.ndarray, b: np.ndarray) -> np.ndarray: ...

An evaluator takes the operands' arrays (None for one left out) and answers the result array, or a list of them. An op
that runs other functions of the module or has a state (`running`) also gets the `Run` it belongs to. Arrays hold
elements by their numpy type, bf16 by bits (uint16), functions by their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.dialects.declare import Operator
from tflq.dialects.registry import Registry
from tflq.dialects.traits import MovesElements
from tflq.ir.module import Function, Module
from tflq.ir.ops import Block, Op, Value
from tflq.ir.types import FunctionType, ScalarType, TensorType, bf16


def array_dtype(type: TensorType) -> np.dtype:
    """The type of the arrays that hold values of a type. TypeError if numpy has no such type."""
    if isinstance(type.element, FunctionType):
        return np.dtype(object)
    return np.dtype(np.uint16) if type.storage is bf16 else type.storage.dtype


def array_of(value: Value) -> np.ndarray:
    """The elements of a constant. TypeError if the value is not constant."""
    if value.type.storage is not bf16 or value.buffer is None or not value.type.is_static:
        return value.array
    shape = value.type.sizes
    return value.buffer.data.view(np.uint16).reshape(shape)


def floats(type: TensorType, array: np.ndarray) -> np.ndarray:
    """The numbers of an array of a type. NotImplementedError for floats of 8 bits and the like."""
    if type.storage is bf16:
        from tflq.numerics.signless import bfloat16_values

        return bfloat16_values(np.asarray(array, np.uint16))
    _check(type.storage)
    return np.asarray(array)


def float_array(type: TensorType, numbers: np.ndarray) -> np.ndarray:
    """The array of a type for floats, rounded to it: to nearest, ties to even."""
    if type.storage is bf16:
        from tflq.numerics.signless import bfloat16_bits

        return bfloat16_bits(numbers)
    _check(type.storage)
    with np.errstate(over="ignore"):
        return np.asarray(numbers).astype(type.storage.dtype)


def _check(storage: ScalarType) -> None:
    if not storage.numpy:
        raise NotImplementedError(f"{storage} is not evaluated")


Evaluator: TypeAlias = Callable[..., Any]


class Run:
    """The state that the functions of a module share while they are evaluated, such as variables by name. `others`
    evaluates ops that no dialect declares, by name. `schedule` is the order in which reductions of the `stablehlo`
    dialect combine values (`evaluate.stablehlo_reduction`)."""

    def __init__(
        self,
        module: Module | None = None,
        others: Mapping[str, Evaluator] | None = None,
        schedule: Callable[[int], Sequence[int]] | None = None,
    ) -> None:
        self.module = module
        self.variables: dict[str, np.ndarray] = {}
        self.others: Mapping[str, Evaluator] = {} if others is None else others
        self.schedule = schedule
        self.scope: Mapping[Value, np.ndarray] = {}
        """The values of the function that is being evaluated, as far as they are known."""
        self.calling: list[str] = []
        """The functions that are being called, by name."""

    def call(self, index: int, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """The results of a function of the module."""
        if self.module is None:
            raise ValueError("a function is called, but its module was not passed")
        return self._called(self.module.functions[index], arrays)

    def call_named(self, name: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """The results of a function by its name. NotImplementedError if it has no body, or calls itself."""
        functions = [] if self.module is None else self.module.functions
        function = next((f for f in functions if f.name == name), None)
        if function is None:
            raise ValueError(f"@{name} is called, but no module with it was passed")
        if function.info.get("declaration"):
            raise NotImplementedError(f"@{name} is declared without a body, so it has no evaluator")
        if name in self.calling:
            raise NotImplementedError(f"@{name} calls itself, which has no evaluator")
        self.calling.append(name)
        try:
            return self._called(function, arrays)
        finally:
            self.calling.pop()

    def _called(self, function: Function, arrays: list[np.ndarray]) -> list[np.ndarray]:
        env = evaluate_function(function, dict(zip(function.inputs, arrays, strict=True)), self)
        return [env[v] if v in env else array_of(v) for v in function.outputs]


Running: TypeAlias = Callable[[Any, list[np.ndarray], Run], list[np.ndarray]]

evaluator: Final[Registry[Evaluator]] = Registry("tflq.analysis.evaluate")
"""The evaluator of each op on arrays."""

running: Final[Registry[Running]] = Registry("tflq.analysis.evaluate")
"""The evaluator of each op that also takes the `Run`."""


def of_arrays(function: Callable[..., Any]) -> Evaluator:
    """The evaluator of an op that computes a function of its operands, whatever its attributes."""
    return lambda _, *arrays: function(*arrays)


def evaluate_op(op: Op, arrays: list[np.ndarray | None]) -> list[np.ndarray] | None:
    """Results of one op, of the dtype of their storage types; None if it has no evaluator."""
    function = evaluator.get(type(op))
    return None if function is None else _typed(op, function(op, *arrays))


_WITHOUT_BF16: Final = ("tfl", "tosa", "ext")
"""Dialects whose evaluators compute on numpy's own types."""


def takes_bits(op: Op) -> bool:
    """Whether the evaluator of an op takes bf16 by its bits: it computes on what they stand for, or moves them."""
    return op.name.partition(".")[0] not in _WITHOUT_BF16 or (isinstance(op, Operator) and op.has(MovesElements))


def _typed(op: Op, out: Any) -> list[np.ndarray]:
    if not isinstance(out, list):
        (value,) = op.results
        return [np.asarray(out, array_dtype(value.type))]
    return [np.asarray(r, array_dtype(v.type)) for r, v in zip(out, op.results, strict=True)]


def evaluate_one(op: Op, arrays: Sequence[np.ndarray | None], run: Run) -> list[np.ndarray]:
    """Results of one op, which may call functions or hold a state. NotImplementedError if it has no evaluator."""
    runs = running.get(type(op))
    if runs is not None:
        return _typed(op, runs(op, [a for a in arrays if a is not None], run))
    if run.others and op.name in run.others:
        return _typed(op, run.others[op.name](op, *arrays))
    results = evaluate_op(op, list(arrays))
    if results is None:
        raise NotImplementedError(f"{op.name} has no evaluator")
    return results


def evaluate_function(
    function: Function,
    inputs: Mapping[Value, np.ndarray],
    run: Run | None = None,
    after: Callable[[Op, dict[Value, np.ndarray]], None] | None = None,
) -> dict[Value, np.ndarray]:
    """Every value of a function for some inputs. NotImplementedError names an op without an evaluator; where a result
    is undefined (a divisor of 0) it is an ArithmeticError or an IndexError.

    `run` knows the module of a function that calls others, and keeps the variables from one evaluation to the next.
    `after` is called behind each op, with all values so far, which it may replace.
    """
    env: dict[Value, np.ndarray] = dict(inputs)
    run = Run() if run is None else run
    outer, run.scope = run.scope, env
    try:
        for op in function.ops:
            results = evaluate_one(op, _operands(op, env, array_of), run)
            env.update(zip(op.results, results, strict=True))
            if after is not None:
                after(op, env)
    finally:
        run.scope = outer
    return env


def evaluate_block(
    block: Block,
    arguments: Sequence[np.ndarray],
    compute: Callable[[Op, list[np.ndarray | None]], list[np.ndarray]],
    outside: Callable[[Value], np.ndarray],
) -> list[np.ndarray]:
    """The operands of a block's last op. `compute` evaluates one op, `outside` gives the values from around it."""
    env = dict(zip(block.arguments, arguments, strict=True))
    *steps, last = block.ops
    for op in steps:
        env.update(zip(op.results, compute(op, _operands(op, env, outside)), strict=True))
    return [a for a in _operands(last, env, outside) if a is not None]


def _operands(
    op: Op, env: Mapping[Value, np.ndarray], outside: Callable[[Value], np.ndarray]
) -> list[np.ndarray | None]:
    return [None if v is None else env[v] if v in env else outside(v) for v in op.operands]
