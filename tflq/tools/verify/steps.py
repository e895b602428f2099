"""Results within a program in C, compared with those of tflq's evaluator.

A program stores more than the tensors that the model names: gates of an LSTM, steps of a SOFTMAX, sums of products. The
model is converted again as the source says that it was. If both call the same functions, every result that the program
stores and every row of sums is compared with the evaluator's, which is exact.

Inputs leave much unused: channels that are always clamped, levels that no result has. So the inputs also run with drawn
elements in the place of each product's result, the same in both; floats then have all magnitudes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from tflq.analysis.evaluate.registry import Run, evaluate_function
from tflq.analysis.known import Ranges
from tflq.base.errors import TflqError
from tflq.conversion.convert import convert
from tflq.formats.c.graph import Graph
from tflq.formats.c.program import Program, program_of
from tflq.formats.sources import digest_of
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value
from tflq.tools.verify.c_interface import CALLED
from tflq.tools.verify.compiled import CompiledSource, Shown
from tflq.tools.verify.difference import Difference
from tflq.tools.verify.file_runner import Compare, Step, StepRun
from tflq.tools.verify.runner import RunError

_MOST: Final = 1 << 28
"""Multiplications of all runs, at most; one run is always evaluated."""
_RUNS: Final = 16
"""Runs, at most."""


def steps(model: str, b: CompiledSource, key: str, runs: Sequence[StepRun], compare: Compare) -> Iterator[Step]:
    """The results within runs of an entry. model: the path of what the source was written from. None where the source
    does not say how, or has results that no standard fixes. RunError if the program does not run."""
    if model not in b.again:
        b.again[model] = _module(model, b)
    module = b.again[model]
    if module is None:
        return
    program = program_of(module)
    graph = program.entries[b.index(key)][1]
    if [*b.calls(key)] != CALLED.findall("\n".join(graph.lines)):
        return
    most, unread = _MOST // (2 * max(program.products, 1)), _unread_behind(graph)
    with b.showing(key) as shown:
        for drawn in (False, True):
            state = Run(module)
            for number, each in enumerate(runs[: max(1, min(_RUNS, most))]):
                if not each.follows:
                    state = _first(module, program)
                yield from _Evaluation(graph, unread, shown, compare, _Drawn(number) if drawn else None).steps(
                    each, state
                )


def _module(model: str, b: CompiledSource) -> Module | None:
    """The module of which a source was written; None if it was written from another file, or cannot be again."""
    source = b.interface
    if source.inexact or not source.kernels or source.digest != digest_of(model):
        return None
    for batch in (None, source.batch):  # one for an open dim, else those of the model
        with suppress(TflqError):
            module = convert(model, format="c", kernel_set=source.kernels, batch=batch).module
            graphs = (graph for _, graph in program_of(module).entries)
            if [[v.type.shape for v in graph.function.inputs] for graph in graphs] == source.shapes:
                return module
    return None


def _first(module: Module, program: Program) -> Run:
    """The state before the first run."""
    run = Run(module)
    run.variables.update({name: value.array for name, (_, value) in program.state.items()})
    return run


class _Drawn:
    """Elements that take the place of others: in turns any, those at both ends, and few at the upper one."""

    def __init__(self, number: int) -> None:
        self._rng = np.random.default_rng(number)
        self._upper = (None, 1 / 2, 1 / 16)[number % 3]
        self._ranges = Ranges(sums=True)

    def result(self, value: Value) -> np.ndarray:
        """Integers within what is proven of a value."""
        (low, high), shape = self._ranges.of(value), value.type.sizes
        if self._upper is None:
            return self._rng.integers(low, high, shape, value.type.storage.dtype, endpoint=True)
        return np.where(self._rng.random(shape) < self._upper, high, low).astype(value.type.storage.dtype)

    def input(self, array: np.ndarray) -> np.ndarray:
        """An input; floats of all magnitudes, since those of a model are seldom within 1."""
        if array.dtype.kind != "f":
            return array
        return array * np.exp2(self._rng.integers(-4, 16, array.shape)).astype(array.dtype)


class _Evaluation:
    """One run of a program and of the evaluator, operator by operator. unread: what nothing reads behind an operator.
    drawn: what results of products get; None: nothing."""

    def __init__(
        self, graph: Graph, unread: Mapping[Op, Sequence[Value]], shown: Shown, compare: Compare, drawn: _Drawn | None
    ) -> None:
        self._graph = graph
        self._shown = shown
        self._compare = compare
        self._drawn = drawn
        self._stored = set(graph.stored)
        self._unread = unread
        self._steps: list[Step] = []

    def steps(self, run: StepRun, state: Run) -> list[Step]:
        """The results of a run."""
        function, inputs = self._graph.function, run.inputs
        if self._drawn is not None:
            inputs = [self._drawn.input(array) for array in inputs]
        self._shown.start(inputs, follows=run.follows)
        try:
            evaluate_function(function, dict(zip(function.inputs, inputs, strict=True)), state, self._after)
        except (NotImplementedError, ArithmeticError, IndexError) as error:
            raise RunError(f"tflq's evaluator does not run: {error}") from error
        self._shown.end()
        return self._steps

    def _after(self, op: Op, env: dict[Value, np.ndarray]) -> None:
        for value in op.results:
            if value in self._stored:
                self._add(op, value, env)
        for value in self._unread.get(op, ()):
            del env[value]

    def _add(self, op: Op, value: Value, env: dict[Value, np.ndarray]) -> None:
        """Compares a result, and the sums that it comes from."""
        sums = self._graph.sums_of(value)
        got, rows = self._shown.result(value)
        self._steps.append(_step(op, value, self._compare(got, env[value])))
        if sums is None or sums.producer is None:
            self._shown.replace(None)
            return
        want = env[sums]
        wide = np.frombuffer(rows, f"i{len(rows) // max(want.size, 1)}").reshape(want.shape)
        self._steps.append(_step(sums.producer, sums, self._compare(wide, want.astype(wide.dtype))))
        if self._drawn is not None and value.type.storage.bits <= 16:
            env[value] = self._drawn.result(value)
            self._shown.replace(env[value])
        else:
            self._shown.replace(None)


def _unread_behind(graph: Graph) -> dict[Op, list[Value]]:
    """By operator: what nothing reads behind it. Sums are read with the result that is stored of them."""
    order = {op: at for at, op in enumerate(graph.function.ops)}
    last = {v: op for op in order for v in (*op.results, *filter(None, op.operands))}
    for value in graph.stored:
        if value.producer is not None and (sums := graph.sums_of(value)) is not None:
            last[sums] = max(last[sums], value.producer, key=order.__getitem__)
    computed = {v for op in graph.function.ops for v in op.results} - {*graph.function.outputs}
    unread: dict[Op, list[Value]] = {}
    for value, op in last.items():
        if value in computed:
            unread.setdefault(op, []).append(value)
    return unread


def _step(op: Op, value: Value, apart: Difference) -> Step:
    place = op.location
    if place is None:
        return Step(-1, op.short_name, value.name, apart)
    return Step(place.operator, place.opcode, value.name or f"{place.tensor}: {op.short_name}", apart)
