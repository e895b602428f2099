"""A TOSA file on the reference model, seen as `tflite_runner.TfliteRunner` shows a TFLite model.

Inner tensors are fetched by running an extended file that returns them. Tensors of a file that is divided can be given
other values: the extended file takes them as inputs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from tflq.dialects.tosa.movement import Rescale, Variable, VariableWrite
from tflq.ir.core import Buffer, Value
from tflq.ir.types import i8, ui8
from tflq.tosa.read import read_tosa
from tflq.tosa.write import tosa_bytes
from tflq.verification.difference import allowed_ulps
from tflq.verification.runner import Child, FileRunner, Opened, by_name, dtype_of, stored

_SHIFTED: Final = {"input_zp": -128, "output_zp": 0, "multiplier": 1 << 30, "shift": 30}
"""A RESCALE of int8 that only reinterprets it as uint8."""


class TosaFetcher:
    """An extended file that is open so that inner tensors can be fetched after a run: `values`, behind its own outputs.
    `cuts`: the tensors of which the file takes the values that it goes on with."""

    def __init__(
        self, runner: TosaRunner, opened: Opened, values: Mapping[str, tuple[int, Value]], cuts: Mapping[str, Value]
    ) -> None:
        self._runner = runner
        self._opened = opened
        self._places = values
        self._cuts = cuts

    def run(self, inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The file's outputs, in its order, as they were computed."""
        values = [stored(fed[name], dtype_of(value)) for name, value in self._cuts.items()]
        arrays = self._opened.run("", [*self._runner.ordered(inputs), *values])
        outputs = self._runner.outputs
        return [array.view(dtype_of(value)) for array, value in zip(arrays, outputs, strict=False)]

    def fetch(self, name: str) -> np.ndarray | None:
        place, value = self._places[name]
        array = self._opened.fetch((0, place))
        return array if array is None or place >= len(self._runner.outputs) else array.view(dtype_of(value))

    def close(self) -> None:
        self._opened.close()


class _InARow:
    """Runs that keep state. The reference model forgets it, so a copy of the file returns what is written to each
    variable, and that is what the variable starts as in the next run."""

    def __init__(self, path: str, copy: Path, child: Child) -> None:
        self._module = read_tosa(path)
        ops = self._module.main.ops
        self._variables = {op.variable: op for op in ops if isinstance(op, Variable)}
        self._starts = {name: op.initial_value for name, op in self._variables.items()}
        self._written = {op.variable: op.input for op in ops if isinstance(op, VariableWrite)}
        there = {*self._module.main.inputs, *self._module.main.outputs}
        self._fetched = [v for v in dict.fromkeys(self._written.values()) if v not in there and not v.is_constant]
        self._copy = copy
        self._child = child
        self._opened: Opened | None = None

    def run(self, inputs: Sequence[np.ndarray], step: int) -> list[np.ndarray]:
        """Outputs of the file. Step 0 starts with its initial values."""
        if step == 0:
            for name, value in self._starts.items():
                self._variables[name].operands[0] = value
        self._copy.write_bytes(tosa_bytes(self._module, fetch=self._fetched))
        if self._opened is None:
            self._opened = Opened(self._child, {"tosa": str(self._copy)})
        arrays = self._opened.run("", inputs)
        main = self._module.main
        values = dict(zip((*main.inputs, *main.outputs, *self._fetched), (*inputs, *arrays), strict=True))
        for name, value in self._written.items():
            if not value.is_constant:
                array = np.ascontiguousarray(values[value]).view(dtype_of(value))
                value = Value(value.type, buffer=Buffer.of(array))
            self._variables[name].operands[0] = value
        return arrays[: len(main.outputs)]


class TosaRunner(FileRunner):
    """One TOSA file, open in a child process."""

    untimed = "the time that the TOSA reference model takes says nothing of a device's"

    def __init__(self, path: str, timeout: float) -> None:
        """Opens a file by its path. RunError, TflqError as `TfliteRunner`."""
        super().__init__(path, read_tosa(path))
        self._cuts: tuple[str, ...] = ()
        self._divided: TosaFetcher | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="tflq-")
        self._child = Child("the reference model", timeout)
        try:
            self._opened = Opened(self._child, {"tosa": self.path})
        except BaseException:
            self.close()
            raise
        self.interpreter = self._opened.head["interpreter"]

    def ulps(self) -> int:
        return allowed_ulps(self.module.main)

    @cached_property
    def has_state(self) -> bool:
        """As `TfliteRunner`."""
        return any(isinstance(op, Variable) for op in self.module.main.ops)

    @cached_property
    def keeps_state(self) -> bool:
        """Whether runs in a row can keep it: what branches and bodies write cannot be fetched."""
        return not any(isinstance(op, VariableWrite) for f in self.module.functions[1:] for op in f.ops)

    @cached_property
    def _in_a_row(self) -> _InARow:
        return _InARow(self.path, Path(self._folder.name, "in_a_row.tosa"), self._child)

    def divide(self, cuts: Iterable[str]) -> None:
        """These tensors can be given other values, by name: what follows them goes on with these. A file with state is
        not divided."""
        self._cuts = () if self.has_state else tuple(dict.fromkeys(cuts))

    def feeds(self, _: str) -> bool:
        """Whether tensors can be given other values."""
        return bool(self._cuts)

    def run(
        self, _: str, inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray], step: int | None = None
    ) -> list[np.ndarray]:
        """Outputs, in the order of `entries`. `step`: as `TfliteRunner`. RunError if it does not run."""
        if fed:
            self._divided = self._divided or self._extended("divided", self._cuts)
            outputs = self._divided.run(inputs, fed)
            outputs = [fed.get(value.name, array) for value, array in zip(self.outputs, outputs, strict=True)]
        else:
            ordered = self.ordered(inputs)
            arrays = self._opened.run("", ordered) if step is None else self._in_a_row.run(ordered, step)
            outputs = [array.view(dtype_of(value)) for array, value in zip(arrays, self.outputs, strict=True)]
        return [outputs[i] for i in self._places["outputs"]]

    def cut(self, _: str) -> dict[str, np.ndarray]:
        """The tensors after which the file is divided, as the last run computed them."""
        values = {name: self._divided.fetch(name) for name in self._cuts} if self._divided else {}
        return {name: value for name, value in values.items() if value is not None}

    def names(self, _: str) -> dict[str, int]:
        """Outputs, and results of operators that have a name."""
        values = (*self.outputs, *(v for op in self.module.main.ops for v in op.results))
        return {value.name: i for i, value in enumerate(values) if value.name}

    @contextmanager
    def fetching(self, _: str, names: Sequence[str]) -> Iterator[TosaFetcher]:
        """An extended file that returns these tensors, too."""
        fetcher = self._extended("extended", names)
        yield fetcher
        fetcher.close()

    def release(self) -> None:
        """Closes the divided file; it is opened again when it is needed."""
        if self._divided is not None:
            self._divided.close()
            self._divided = None

    def close(self) -> None:
        self._child.close()
        self._folder.cleanup()

    def _extended(self, name: str, fetched: Iterable[str]) -> TosaFetcher:
        """The file that returns these tensors, too, and takes those after which it is divided."""
        module = read_tosa(self.path) if self._cuts else self.module
        function = module.main
        outputs, values = list(function.outputs), by_name(function)
        cuts = {cut: _behind_sign(values[cut]) for cut in self._cuts}
        taken = {value: Value(value.type, f"{cut}/fed") for cut, value in cuts.items()}
        function.replace(taken)
        function.outputs = outputs  # those that are cut are fetched as they are computed
        function.inputs += taken.values()
        wanted = {each: cuts.get(each, values[each]) for each in fetched}
        results = [*outputs, *(v for v in dict.fromkeys(wanted.values()) if v not in outputs)]
        path = Path(self._folder.name, f"{name}.tosa")
        path.write_bytes(tosa_bytes(module, fetch=results[len(outputs) :]))
        places = {each: (results.index(value), value) for each, value in wanted.items()}
        return TosaFetcher(self, Opened(self._child, {"tosa": str(path)}), places, cuts)


def _behind_sign(value: Value) -> Value:
    """An output of uint8 as what follows reads it: int8, of which the output is another view."""
    op = value.producer
    if value.type.storage is ui8 and isinstance(op, Rescale):
        source = op.input
        attributes = [int(x) for name in _SHIFTED for x in np.atleast_1d(op.attributes[name])]
        if attributes == list(_SHIFTED.values()) and source.producer is not None and source.type.storage is i8:
            return source
    return value
