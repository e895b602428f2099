"""The sets of inputs that two models run on: those that are given, or ones that are made, at shapes that both take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from tflq.verification.inputs import EDGES, GivenInputs, Side, given, in_a_row, loaded, made
from tflq.verification.layers import AnyRunner
from tflq.verification.options import Options
from tflq.verification.runner import RunError
from tflq.verification.shapes import Shapes, bound, chosen, is_open, open_in_both
from tflq.verification.tflite_runner import TfliteRunner
from tflq.verification.windows import largest_window

__all__ = ["Case", "Cases"]


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
