"""The sets of inputs that two models run on: those that are given, or ones that are made, at shapes that both take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import tflite

from tflq.verification.inputs import EDGES, GivenInputs, Side, given, in_a_row, loaded, made
from tflq.verification.layers import AnyRunner
from tflq.verification.model_file import Graph
from tflq.verification.options import Options
from tflq.verification.runner import RunError
from tflq.verification.shapes import Shapes, bound, chosen, is_open, open_in_both
from tflq.verification.tflite_runner import TfliteRunner

__all__ = ["Case", "Cases", "largest_window"]

_FILTERS: Final = {
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "CONV_3D": "Conv3DOptions",
    "TRANSPOSE_CONV": "",
}
"""Operators whose second operand is a filter, and the options that say how it is dilated."""
_POOLS: Final = ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")


@dataclass(frozen=True)
class Case:
    """One set of inputs of an entry."""

    key: str
    name: str
    arrays: list[np.ndarray]
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    step: int | None = None
    """How many cases before it leave it the state that it starts with; None if it stands alone."""


class Cases:
    """The cases of an entry, by the options; `notes` say what they leave out."""

    def __init__(self, options: Options) -> None:
        self.notes: list[str] = []
        self._options = options

    def __call__(self, a: AnyRunner, b: AnyRunner, key: str) -> Iterator[Case]:
        side, options = a.entries[key]["inputs"], self._options
        if options.inputs is not None:
            for name, source in self._given:
                yield Case(key, name, given(side, source))
            return
        every = self._shapes(a, key, open_in_both(side, b.entries[key]["inputs"]))
        for i, shapes in enumerate(every):
            named = tuple(zip((name for name, _ in side), shapes, strict=True))
            for name, arrays in made(side, options.seeds, shapes, options.seed):
                if i == 0 or name not in EDGES:
                    yield Case(key, name, arrays, named)
        if self._with_state(a, b):
            named = tuple(zip((name for name, _ in side), every[0], strict=True))
            for step, (name, arrays) in enumerate(in_a_row(side, every[0], options.seed)):
                yield Case(key, name, arrays, named, step)

    def _with_state(self, a: AnyRunner, b: AnyRunner) -> bool:
        """Whether runs in a row are to be compared."""
        if not (a.has_state or b.has_state):
            return False
        if a.keeps_state and b.keeps_state:
            return True
        self.notes.append("only first runs are compared: branches or loops of a TOSA file write variables")
        return False

    @cached_property
    def _given(self) -> list[tuple[str, GivenInputs]]:
        assert self._options.inputs is not None
        return loaded(self._options.inputs)

    def _shapes(self, a: AnyRunner, key: str, side: Side) -> list[Shapes]:
        """The shapes that an entry runs with: one choice, or two where the file leaves dims open."""
        options = self._options
        stated = bound(side, options.batch, options.shapes)
        if not isinstance(a, TfliteRunner) or not is_open(side):
            return [stated]
        fixed = [name in options.shapes for name, _ in side]
        open_ones = [(name, d) for (name, d), kept in zip(side, fixed, strict=True) if not kept]
        if not any(-1 in d["shape_signature"][options.batch is not None :] for _, d in open_ones):
            return [stated]
        graph = a.file.graphs[a.file.entries[key].graph]
        trial = TfliteRunner(a.path, a.kernels, options.timeout)
        try:
            runs = partial(self._runs, trial, key, side)
            found = chosen(side, largest_window(graph), stated, fixed, options.batch, runs)
        finally:
            trial.close()
        if not found:
            self.notes.append("open dims are 1: the original does not run with other sizes; give --shape")
        return found or [stated]

    def _runs(self, trial: TfliteRunner, key: str, side: Side, shapes: Shapes) -> bool:
        """Whether a model runs with inputs of these shapes: on any, since some values are none for it."""
        for _, arrays in made(side, 1, shapes):
            try:
                trial.run(key, arrays)
            except RunError as error:
                if error.fatal:
                    return False
            else:
                return True
        return False


def largest_window(graph: Graph) -> int:
    """The largest extent of a window that the operators of a graph slide over their operands."""
    return max((extent for i in range(len(graph.operators)) for extent in _extents(graph, i)), default=1)


def _extents(graph: Graph, index: int) -> Iterator[int]:
    op = graph.operators[index]
    if op.opcode in _POOLS:
        options = _options(graph, index, "Pool2DOptions")
        yield from (options.FilterHeight(), options.FilterWidth()) if options else ()
    elif op.opcode in _FILTERS and len(op.inputs) > 1:
        name, shape = _FILTERS[op.opcode], graph.tensor(op.inputs[1]).shape
        options = _options(graph, index, name) if name else None
        dilations = (options.DilationHFactor(), options.DilationWFactor()) if options else (1, 1)
        window = shape[:3] if op.opcode == "CONV_3D" else shape[1:3]
        yield from ((extent - 1) * max(dilations) + 1 for extent in window)


def _options(graph: Graph, index: int, name: str) -> Any:
    """The options of an operator; None if it states none."""
    found = graph.table.Operators(index).BuiltinOptions()
    if found is None:
        return None
    options = getattr(tflite, name)()
    options.Init(found.Bytes, found.Pos)
    return options
