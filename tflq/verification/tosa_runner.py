"""A TOSA file on the reference model, seen as `tflite_runner.TfliteRunner` shows a TFLite model.

Its one entry is "", inputs and outputs in the file's order, until `align` gives it the key, names and order of another
model's entry. Inner tensors are fetched by running an extended file that returns them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tflq.dialects.tosa.state import Variable, VariableWrite
from tflq.ir.core import Buffer, Value
from tflq.tosa.files.read import read_tosa
from tflq.tosa.files.write import tosa_bytes
from tflq.verification.runner import Child, Opened

__all__ = ["Names", "TosaRunner"]

Names = Sequence[tuple[str, str]]
"""(name in the other model's entry, name in the TOSA file), in the order of the entry."""


class TosaFetcher:
    """An extended file that is open so that inner tensors can be fetched after a run."""

    def __init__(self, runner: TosaRunner, opened: Opened, places: Mapping[str, tuple[int, Value]]) -> None:
        self._runner = runner
        self._opened = opened
        self._places = places

    def run(self, inputs: Sequence[np.ndarray], _: Mapping[str, np.ndarray]) -> None:
        self._opened.run("", self._runner.ordered(inputs))

    def fetch(self, name: str) -> np.ndarray | None:
        place, value = self._places[name]
        found = self._opened.fetch((0, place))
        return None if found is None else found.view(_dtype(value)) if value in self._runner.outputs else found


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
        found = dict(zip((*main.inputs, *main.outputs, *self._fetched), (*inputs, *arrays), strict=True))
        for name, value in self._written.items():
            if not value.is_constant:
                array = np.ascontiguousarray(found[value]).view(_dtype(value))
                value = Value(value.type, buffer=Buffer.of(array))
            self._variables[name].operands[0] = value
        return arrays[: len(main.outputs)]


class TosaRunner:
    """One TOSA file, open in a child process."""

    def __init__(self, path: str, timeout: float) -> None:
        """Opens a file by its path. RunError, TflqError as `TfliteRunner`."""
        self.module = read_tosa(path)
        self.path = os.path.abspath(path)
        function = self.module.main
        self.outputs = function.outputs
        sides = {"inputs": function.inputs, "outputs": function.outputs}
        self.entries: dict[str, dict[str, list[tuple[str, dict[str, Any]]]]] = {
            "": {side: [(value.name, _description(value)) for value in values] for side, values in sides.items()}
        }
        self._places = {"inputs": list(range(len(function.inputs))), "outputs": list(range(len(function.outputs)))}
        self._folder = tempfile.TemporaryDirectory(prefix="tflq-")
        self._child = Child("the reference model", timeout)
        try:
            self._opened = Opened(self._child, {"tosa": self.path})
        except BaseException:
            self.close()
            raise
        self.interpreter: str = self._opened.head["interpreter"]

    def align(self, key: str, inputs: Names, outputs: Names) -> None:
        """Takes the key, names and order of another model's entry."""
        entry = self.entries.pop("")
        found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        for side, names in (("inputs", inputs), ("outputs", outputs)):
            free = [name for name, _ in entry[side]]
            indices = self._places[side]
            for place, (_, own) in enumerate(names):
                indices[place] = free.index(own)
                free[indices[place]] = ""
            found[side] = [(name, entry[side][i][1]) for (name, _), i in zip(names, indices, strict=True)]
        self.entries[key] = found

    def ordered(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Inputs in the order of the file, of its types."""
        ordered = [array for _, array in sorted(zip(self._places["inputs"], inputs, strict=True), key=lambda p: p[0])]
        return [a.astype(np.int32) if a.dtype == np.int64 else a for a in ordered]

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

    def run(
        self, _: str, inputs: Sequence[np.ndarray], __: Mapping[str, np.ndarray], step: int | None = None
    ) -> list[np.ndarray]:
        """Outputs, in the order of `entries`. `step`: as `TfliteRunner`. RunError if it does not run."""
        ordered = self.ordered(inputs)
        arrays = self._opened.run("", ordered) if step is None else self._in_a_row.run(ordered, step)
        outputs = [array.view(_dtype(value)) for array, value in zip(arrays, self.outputs, strict=True)]
        return [outputs[i] for i in self._places["outputs"]]

    def names(self, _: str) -> dict[str, int]:
        """Outputs, and results of operators that have a name."""
        values = (*self.outputs, *(v for op in self.module.main.ops for v in op.results))
        return {value.name: i for i, value in enumerate(values) if value.name}

    def sizes(self, _: str, names: Sequence[str]) -> list[int]:
        """Bytes of tensors, by name."""
        values = self._values()
        return [_size(values[name]) for name in names]

    @contextmanager
    def fetching(self, _: str, names: Sequence[str]) -> Iterator[TosaFetcher]:
        """An extended file that returns these tensors, too."""
        values = self._values()
        inner = [values[name] for name in names if values[name] not in self.outputs]
        path = Path(self._folder.name, "extended.tosa")
        path.write_bytes(tosa_bytes(self.module, fetch=inner))
        opened = Opened(self._child, {"tosa": str(path)})
        places = {value.name: (i, value) for i, value in enumerate((*self.outputs, *inner))}
        yield TosaFetcher(self, opened, places)
        opened.close()

    def release(self) -> None:
        """Nothing is held between runs."""

    def close(self) -> None:
        self._child.close()
        self._folder.cleanup()

    def _values(self) -> dict[str, Value]:
        inner = {v.name: v for op in self.module.main.ops for v in op.results}
        return inner | {value.name: value for value in self.outputs}


def _dtype(value: Value) -> np.dtype:
    return value.type.storage.dtype


def _description(value: Value) -> dict[str, Any]:
    """As `worker.describe`."""
    shape = [d or 1 for d in value.type.shape or ()]
    return {
        "name": value.name,
        "shape": shape,
        "shape_signature": [-1 if d is None else d for d in value.type.shape or ()],
        "dtype": _dtype(value).name,
        "scales": [],
        "zero_points": [],
        "axis": 0,
    }


def _size(value: Value) -> int:
    """Bytes of a tensor."""
    return int(np.prod([d or 1 for d in value.type.shape or ()], dtype=np.int64)) * -(-value.type.storage.bits // 8)
