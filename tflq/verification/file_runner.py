"""A file that is not TFLite, seen as `tflite_runner.TfliteRunner` shows a TFLite model.

Its one entry is "", inputs and outputs in the file's order, until `align` gives it the key, names and order of another
model's entry.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tflq.ir.core import Function, Module, Value

__all__ = ["FileRunner", "Names", "by_name", "dtype_of", "stored"]

Names = Sequence[tuple[str, str]]
"""(name in the other model's entry, name in the TOSA file), in the order of the entry."""


class FileRunner:
    """One file, and the module that says its interface. `interpreter`: what runs it.

    `compute` is what a backend has to add; whose tensors can also be fetched or given other values adds the rest.
    """

    interpreter: str = ""
    has_state: Any = False
    keeps_state: Any = True

    def __init__(self, path: str, module: Module) -> None:
        self.module = module
        self.path = os.path.abspath(path)
        function = module.main
        self.outputs = function.outputs
        sides = {"inputs": function.inputs, "outputs": function.outputs}
        self.entries: dict[str, dict[str, list[tuple[str, dict[str, Any]]]]] = {
            "": {side: [(value.name, _description(value)) for value in values] for side, values in sides.items()}
        }
        self._places = {"inputs": list(range(len(function.inputs))), "outputs": list(range(len(function.outputs)))}

    def compute(self, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """The file's outputs, in its order and storage types. RunError if it does not run."""
        raise NotImplementedError

    def run(
        self, _: str, inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray], step: int | None = None
    ) -> list[np.ndarray]:
        """Outputs, in the order of `entries`. `step`: as `TfliteRunner`. RunError if it does not run."""
        outputs = self.compute(self.ordered(inputs))
        return [outputs[i] for i in self._places["outputs"]]

    def ulps(self) -> int:
        """By how many float32 ulps its floats may differ, where a call does not say."""
        return 0

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
        return [stored(a, np.dtype(np.int32)) if a.dtype == np.int64 else a for a in ordered]

    def divide(self, cuts: Iterable[str]) -> None:
        """These tensors can be given other values, by name: what follows them goes on with these."""

    def feeds(self, _: str) -> bool:
        """Whether tensors can be given other values."""
        return False

    def cut(self, _: str) -> dict[str, np.ndarray]:
        """The tensors after which the file is divided, as the last run computed them."""
        return {}

    def type_of(self, _: str, name: str) -> str:
        """The type of a tensor, by name."""
        return dtype_of(self._values()[name]).name

    def names(self, _: str) -> dict[str, int]:
        """Tensors that can be fetched after a run."""
        return {}

    def sizes(self, _: str, names: Sequence[str]) -> list[int]:
        """Bytes of tensors, by name."""
        values = self._values()
        return [_size(values[name]) for name in names]

    @contextmanager
    def fetching(self, _: str, names: Sequence[str]) -> Iterator[Any]:
        """What runs the file so that these tensors can be fetched."""
        yield self  # there are no names to fetch

    def release(self) -> None:
        """Frees what is opened again when it is needed."""

    def close(self) -> None:
        """Ends what runs the file."""

    def _values(self) -> dict[str, Value]:
        return by_name(self.module.main)


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
    """As `worker.describe`."""
    shape = [d or 1 for d in value.type.shape or ()]
    return {
        "name": value.name,
        "shape": shape,
        "shape_signature": [-1 if d is None else d for d in value.type.shape or ()],
        "dtype": dtype_of(value).name,
        "scales": [],
        "zero_points": [],
        "axis": 0,
    }


def _size(value: Value) -> int:
    """Bytes of a tensor."""
    return int(np.prod([d or 1 for d in value.type.shape or ()], dtype=np.int64)) * -(-value.type.storage.bits // 8)
