"""A TOSA file on the reference model, seen as `runner.Runner` shows a TFLite model.

Its one entry is "", inputs and outputs in the file's order, until `align` gives it the key, names and order of another
model's entry. Inner tensors are fetched by running an extended file that returns them as well.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

import numpy as np

from tflq.ir.core import Value
from tflq.tosa.files.read import read_tosa
from tflq.tosa.files.write import tosa_bytes
from tflq.verification.layers import Places
from tflq.verification.runner import Answer, Child

__all__ = ["TosaRunner"]

Names = Sequence[tuple[str, str]]
"""(name in the other model's entry, name in the TOSA file), in the order of the entry."""


class TosaRunner(Child):
    """One TOSA file, open in a child process."""

    what: ClassVar = "the reference model"

    def __init__(self, model: str, *, keep: bool, timeout: float) -> None:
        """Opens a file by its path; `keep`: inner tensors can be fetched. RunError, TflqError as `Runner`."""
        self.module = read_tosa(model)
        self._folder = tempfile.TemporaryDirectory(prefix="tflq-")
        self._function = self.module.main
        inner = self._inner()
        extended = Path(self._folder.name, "extended.tosa")
        if keep:
            extended.write_bytes(tosa_bytes(self.module, fetch=inner))
        outputs = len(self._function.outputs)
        self.places: Places = {v.name: (0, i) for i, v in enumerate((*self._function.outputs, *inner))}
        super().__init__({"tosa": os.path.abspath(model), "extended": str(extended)}, timeout)
        self.interpreter: str = self.head["interpreter"]
        sides = {"inputs": self._function.inputs, "outputs": self._function.outputs}
        self.entries: dict[str, dict[str, list[tuple[str, dict[str, Any]]]]] = {
            "": {side: [(value.name, _description(value)) for value in values] for side, values in sides.items()}
        }
        self._inputs = list(range(len(self._function.inputs)))
        self._outputs = list(range(outputs))

    def align(self, key: str, inputs: Names, outputs: Names) -> None:
        """Takes the key, names and order of another model's entry."""
        entry = self.entries.pop("")
        found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        for side, names, indices in (("inputs", inputs, self._inputs), ("outputs", outputs, self._outputs)):
            free = [name for name, _ in entry[side]]
            for place, (_, own) in enumerate(names):
                indices[place] = free.index(own)
                free[indices[place]] = ""
            found[side] = [(name, entry[side][i][1]) for (name, _), i in zip(names, indices, strict=True)]
        self.entries[key] = found

    def run(self, _: str, inputs: Sequence[np.ndarray], fetch: Sequence[tuple[int, int]] = ()) -> Answer:
        """Runs the file; `fetch` are `places`. RunError if it does not run."""
        ordered = [array for _, array in sorted(zip(self._inputs, inputs, strict=True), key=lambda pair: pair[0])]
        narrow = [a.astype(np.int32) if a.dtype == np.int64 else a for a in ordered]
        head, arrays = self._ask({"do": "run", "entry": "", "fetch": list(fetch)}, narrow)
        count = head["outputs"]
        types = [_dtype(value) for value in self._function.outputs]
        outputs = [array.view(dtype) for array, dtype in zip(arrays[:count], types, strict=True)]
        fetched: list[np.ndarray | None] = [
            array.view(types[place]) if place < count else array
            for (_, place), array in zip(fetch, arrays[count:], strict=True)
        ]
        return Answer([outputs[i] for i in self._outputs], fetched)

    def close(self) -> None:
        super().close()
        self._folder.cleanup()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _inner(self) -> list[Value]:
        """Results of operators that are not outputs and have a name."""
        outputs = set(self._function.outputs)
        return [v for op in self._function.ops for v in op.results if v.name and v not in outputs]


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
