"""A file beside a TFLite model in a comparison: a module that says its interface, and how it runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from tflq.ir.module import Function, Module
from tflq.ir.ops import Value
from tflq.tools.verify.difference import Difference
from tflq.tools.verify.worker import Entries, Side

if TYPE_CHECKING:
    from tflq.tools.verify.tflite_runner import TfliteRunner

from tflq.tools.verify.runner import Opening

Names = Sequence[tuple[str, str]]
"""(name in the other model's entry, name in the TOSA file), in the order of the entry."""


class StepRun(NamedTuple):
    """Inputs of an entry, and whether the run goes on with the state of the run before it."""

    inputs: Sequence[np.ndarray]
    follows: bool


Compare = Callable[[np.ndarray, np.ndarray], Difference]
"""The difference of what a file computes from what it should."""


class Step(NamedTuple):
    """A result within a file, and how far it is from that of tflq's evaluator. operator, opcode: those of the original;
    -1 if it has none."""

    operator: int
    opcode: str
    tensor: str
    apart: Difference


class FileRunner:
    """One file, and the module that says its interface. `interpreter`: what runs it. `untimed`: why it is not timed.
    `inexact`: why it need not equal the model that it was made from, if it says so. `shows_layers`: whether operator
    results are compared though nobody asks for them.

    A backend must add `compute`, or override `run`, which has state to go on with; the rest, if tensors can also be
    fetched or given other values.
    """

    interpreter: str = ""
    untimed: str = "what runs these files says nothing of the time on a device"
    inexact: str = ""
    shows_layers: bool = False
    has_state: Any = False
    keeps_state: Any = True

    @classmethod
    def open_file(cls, path: str, options: Opening) -> Self:
        """The runner that `tflq verify` makes of a file."""
        return cls(path)  # type: ignore[call-arg]

    def __init__(self, path: str, module: Module, functions: Mapping[str, Function] | None = None) -> None:
        """functions: the entries by signature key; by default the first of the module alone."""
        self.module = module
        self.path = os.path.abspath(path)
        self.outputs = module.main.outputs
        self.functions = dict(functions or {"": module.main})
        self.entries: Entries = {
            key: {side: [(value.name, _description(value)) for value in values] for side, values in _sides(f).items()}
            for key, f in self.functions.items()
        }
        self._places = {
            key: {side: list(range(len(values))) for side, values in _sides(f).items()}
            for key, f in self.functions.items()
        }

    def compute(self, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """The file's outputs, in its order and storage types. RunError if it does not run."""
        raise NotImplementedError

    def run(
        self, _: str, inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray], step: int | None = None
    ) -> list[np.ndarray]:
        """Outputs, in the order of `entries`. `step`: as `TfliteRunner`. RunError if it does not run."""
        return self.returned(self.compute(self.ordered(inputs)))

    def ulps(self) -> int | None:
        """By how many float32 ulps its floats may differ, where a call does not say. None: the original's operators
        say it."""
        return 0

    def align(self, entry_key: str, key: str, inputs: Names, outputs: Names) -> None:
        """Gives an entry the key, names and order of another model's entry."""
        entry, places = self.entries.pop(entry_key), self._places.pop(entry_key)
        self.functions[key] = self.functions.pop(entry_key)
        aligned: dict[str, Side] = {}
        for side, names in (("inputs", inputs), ("outputs", outputs)):
            free = [name for name, _ in entry[side]]
            indices = places[side]
            for place, (_, tensor) in enumerate(names):
                indices[place] = free.index(tensor)
                free[indices[place]] = ""
            aligned[side] = [(name, entry[side][i][1]) for (name, _), i in zip(names, indices, strict=True)]
        self.entries[key], self._places[key] = aligned, places

    def ordered(self, inputs: Sequence[np.ndarray], key: str | None = None) -> list[np.ndarray]:
        """Inputs of an entry in the order of the file, of its types. key: None is the only entry."""
        key = next(iter(self.functions)) if key is None else key
        ordered = sorted(zip(self._places[key]["inputs"], inputs, strict=True), key=lambda p: p[0])
        values = self.functions[key].inputs
        return [stored(array, dtype_of(value)) for (_, array), value in zip(ordered, values, strict=True)]

    def returned(self, outputs: Sequence[np.ndarray], key: str | None = None) -> list[np.ndarray]:
        """Outputs of an entry, from the order of the file in that of `entries`."""
        key = next(iter(self.functions)) if key is None else key
        return [outputs[i] for i in self._places[key]["outputs"]]

    @property
    def undivided(self) -> str:
        """Missing requirement of `divide`, as the end of a sentence; empty where nothing but the file is to blame."""
        return ""

    def divide(self, cuts: Iterable[str]) -> None:
        """These tensors can be given other values, by name: what follows them goes on with these."""

    def feeds(self, _: str) -> bool:
        """Whether tensors can be given other values."""
        return False

    def sums_beside(
        self, original: TfliteRunner, key: str, inputs: Sequence[np.ndarray], timeout: float
    ) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """For products of which the file computes results again, from sums that it is given: the name of a result, and
        what the file and the original make of the sums. None where sums cannot be given. RunError if either does not
        run."""
        yield from ()

    def steps_beside(
        self, original: TfliteRunner, key: str, runs: Sequence[StepRun], compare: Compare
    ) -> Iterator[Step]:
        """Results within the file that tflq's evaluator has, too, in runs of an entry. None where the file shows none.
        RunError if it does not run."""
        yield from ()

    def cut(self, _: str) -> dict[str, np.ndarray]:
        """The tensors after which the file is divided, as the last run computed them."""
        return {}

    def type_of(self, _: str, name: str) -> str:
        """The type of a tensor, by name."""
        return dtype_of(self._values()[name]).name

    def names(self, _: str) -> dict[str, int]:
        """Tensors that can be fetched after a run."""
        return {}

    def held(self, _: str) -> Mapping[str, object]:
        """Further tensors that can be fetched, which the file has in another form."""
        return {}

    def sizes(self, _: str, names: Sequence[str]) -> list[int]:
        """Bytes of tensors, by name."""
        values = self._values()
        return [_size(values[name]) for name in names]

    @contextmanager
    def fetching(self, _: str, names: Sequence[str]) -> Iterator[Any]:
        """A runner of the file from which these tensors can be fetched."""
        yield self  # there are no names to fetch

    def release(self) -> None:
        """Frees what is opened again when it is needed."""

    def close(self) -> None:
        """Ends what runs the file."""

    def _values(self) -> dict[str, Value]:
        return by_name(self.module.main)


def _sides(function: Function) -> dict[str, list[Value]]:
    return {"inputs": function.inputs, "outputs": function.outputs}


def by_name(function: Function) -> dict[str, Value]:
    inner = {v.name: v for op in function.ops for v in op.results}
    return inner | {value.name: value for value in function.outputs}


def stored(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """An array of another model's type as TOSA has it: uint8 as int8 is the same integers less 128, int64 is int32."""
    if array.dtype == np.uint8 and dtype == np.int8:
        return (array ^ np.uint8(128)).view(np.int8)
    return array.astype(dtype) if array.dtype == np.int64 and dtype == np.int32 else array


def dtype_of(value: Value) -> np.dtype:
    return value.type.storage.dtype


def _description(value: Value) -> dict[str, Any]:
    """Description of a tensor, with the fields of `worker.describe`."""
    shape = [1 if d is None else d for d in value.type.dims]
    return {
        "name": value.name,
        "shape": shape,
        "shape_signature": [-1 if d is None else d for d in value.type.dims],
        "dtype": dtype_of(value).name,
        "scales": [],
        "zero_points": [],
        "axis": 0,
    }


def _size(value: Value) -> int:
    """Bytes of a tensor."""
    return int(np.prod([1 if d is None else d for d in value.type.dims], dtype=np.int64)) * -(
        -value.type.storage.bits // 8
    )
