"""The sets of inputs that two models run on: those of the user, or random ones, at shapes that both take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from tflq.errors import OptionError, Reason
from tflq.verification.inputs import (
    EDGES,
    GivenInputs,
    Options,
    given_inputs,
    inputs_in_a_row,
    load_inputs,
    made_inputs,
)
from tflq.verification.layers import AnyRunner
from tflq.verification.model_file import Graph, options_table
from tflq.verification.runner import RunError
from tflq.verification.tflite_runner import TfliteRunner
from tflq.verification.worker import Side

Shapes = list[tuple[int, ...]]
"""One for each input, in order."""
NamedShapes = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Case:
    """One set of inputs of an entry."""

    key: str
    name: str
    arrays: list[np.ndarray]
    shapes: NamedShapes = ()
    step: int | None = None
    """The number of cases before it whose state it continues; None if it stands alone."""


class Cases:
    """The cases of an entry, by the options; `notes` say what they leave out."""

    def __init__(self, options: Options) -> None:
        self.notes: list[str] = []
        self._options = options

    def __call__(self, a: AnyRunner, b: AnyRunner, key: str) -> Iterator[Case]:
        side, options = a.entries[key]["inputs"], self._options
        if options.inputs is not None:
            for name, source in self._given:
                yield Case(key, name, given_inputs(side, source))
            return
        either = open_in_both(side, b.entries[key]["inputs"])
        fixed = isinstance(b, TfliteRunner) and not b.resizes
        every = [bound_shapes(side, options.batch, options.shapes)] if fixed else self._shapes(a, key, either)
        names = [name for name, _ in side]
        for i, shapes in enumerate(every):
            named = tuple(zip(names, shapes, strict=True))
            for name, arrays in made_inputs(side, options.seeds, shapes, options.seed):
                if i == 0 or name not in EDGES:
                    yield Case(key, name, arrays, named)
        if self._with_state(a, b):
            named = tuple(zip(names, every[0], strict=True))
            for step, (name, arrays) in enumerate(inputs_in_a_row(side, every[0], options.seed)):
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
        return load_inputs(self._options.inputs)

    def _shapes(self, a: AnyRunner, key: str, side: Side) -> list[Shapes]:
        """The shapes that an entry runs with: one choice, or two where the file leaves dims open."""
        options = self._options
        stated = bound_shapes(side, options.batch, options.shapes)
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
            shapes = chosen_shapes(side, largest_window(graph), stated, fixed, options.batch, runs)
        finally:
            trial.close()
        if not shapes:
            self.notes.append("open dims are 1: the original does not run with other sizes; give --shape")
        return shapes or [stated]

    def _runs(self, trial: TfliteRunner, key: str, side: Side, shapes: Shapes) -> bool:
        """Whether a model runs with inputs of these shapes; one set is enough, because it may refuse some values."""
        for _, arrays in made_inputs(side, 1, shapes):
            try:
                trial.run(key, arrays)
            except RunError as error:
                if error.fatal:
                    return False
            else:
                return True
        return False


# The shapes to run open inputs at: dims that a file leaves open hide differences where they are 1.


_BATCHES: Final = (2, 3)
_STEP: Final = 16
_FACTORS: Final = (1, 2, 4, 8, 14, 16, 32)
_ODD: Final = 7


def is_open(side: Side) -> bool:
    """Whether any input has a dim that the file leaves open."""
    return any(-1 in description["shape_signature"] for _, description in side)


def open_in_both(a: Side, b: Side) -> list[tuple[str, dict[str, Any]]]:
    """The inputs of a, with those dims open that are open in both models."""
    pairs = [(d["shape_signature"], e["shape_signature"]) for (_, d), (_, e) in zip(a, b, strict=True)]
    joint = [
        [max(dims) for dims in zip(*pair, strict=True)] if len(set(map(len, pair))) == 1 else pair[0] for pair in pairs
    ]
    return [(name, description | {"shape_signature": dims}) for (name, description), dims in zip(a, joint, strict=True)]


def bound_shapes(side: Side, batch: int | None, given: Mapping[str, Sequence[int]]) -> Shapes:
    """The shapes to run inputs with: those `given` by name; else those of the file, where an open first dim becomes the
    batch. OptionError names an input that is not there or of another rank."""
    names = [name for name, _ in side]
    for name, shape in given.items():
        if name not in names:
            there = ", ".join(f"'{n}'" for n in names) or "none"
            raise OptionError(Reason(f"the model has no input '{name}'", value=name, remedy=f"its inputs are {there}"))
        stated = dict(side)[name]["shape_signature"]
        if stated and len(stated) != len(shape):
            what = f"input '{name}' is of rank {len(stated)}, the shape given for it of rank {len(shape)}"
            raise OptionError(Reason(what, tensor=name, value=list(shape)))
    return [tuple(given[name]) if name in given else _stated(description, batch) for name, description in side]


def _stated(description: Mapping[str, Any], batch: int | None) -> tuple[int, ...]:
    shape, signature = tuple(description["shape"]), description["shape_signature"]
    if batch is not None and signature and signature[0] == -1:
        return (batch, *shape[1:])
    return shape


def chosen_shapes(
    side: Side,
    window: int,
    stated: Shapes,
    fixed: Sequence[bool],
    batch: int | None,
    runs: Callable[[Shapes], bool],
) -> list[Shapes]:
    """Two choices for the open dims, the batch and others, larger than any window, with which the model `runs`; fewer
    if there are no more. `fixed` inputs have their shape from the user."""
    base = -(-(window + 1) // _STEP) * _STEP
    sized = any(-1 in d["shape_signature"][1:] for (_, d), kept in zip(side, fixed, strict=True) if not kept)
    choices: list[Shapes] = []
    even = (base * factor for factor in _FACTORS)
    for batches, sizes in ((_BATCHES[0], even), (_BATCHES[1], _uneven(base))):
        for size in sizes if sized else (base,):
            ends = zip(side, stated, fixed, strict=True)
            shapes = [given if kept else _filled(d, batch or batches, size) for (_, d), given, kept in ends]
            if shapes not in choices and runs(shapes):
                choices.append(shapes)
                break
    return choices


def _uneven(base: int) -> Iterator[int]:
    """Sizes that strides do not divide, then others."""
    yield base + _ODD
    yield from (base * n for factor in _FACTORS for n in (factor + 1, 2 * factor))


def _filled(description: Mapping[str, Any], batch: int, size: int) -> tuple[int, ...]:
    signature = description["shape_signature"]
    if -1 not in signature:
        return tuple(description["shape"])
    return tuple((size if i else batch) if d == -1 else d for i, d in enumerate(signature))


# The windows that operators slide over their operands.


_FILTERS: Final = {
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "CONV_3D": "Conv3DOptions",
    "TRANSPOSE_CONV": "",
}
"""Operators whose second operand is a filter, and the options that say how it is dilated."""
_POOLS: Final = ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")


def largest_window(graph: Graph) -> int:
    """The largest extent of the windows in a graph."""
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
    """The options of an operator; None if it has none."""
    options = graph.table.Operators(index).BuiltinOptions()
    return None if options is None else options_table(name, options)
