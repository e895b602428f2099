"""An ONNX file in a runtime, seen as `tflite_runner.TfliteRunner` shows a TFLite model.

What the file holds of the model's inner tensors, its metadata says: the value, what is taken off it, whether channels
come first. They are fetched by running an extended file that returns these values.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from tflq.errors import Reason, TflqError, to_install
from tflq.ir.core import Function, Module, Value
from tflq.ir.types import SCALARS, ScalarType, TensorType
from tflq.verification.runner import Child, FileRunner, Held, Opened

_TYPES: Final = {t.numpy: t for t in reversed(SCALARS.values()) if t.numpy and t.bits >= 8 and t.name != "index"}


class OnnxFetcher:
    """An extended file that is open so that inner tensors, by their places among its results, can be fetched."""

    def __init__(self, runner: OnnxRunner, opened: Opened, places: Mapping[str, tuple[int, Held]]) -> None:
        self._runner = runner
        self._opened = opened
        self._places = places

    def run(self, inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        return self._opened.run("", self._runner.ordered(inputs))

    def fetch(self, name: str) -> np.ndarray | None:
        place, held = self._places[name]
        array = self._opened.fetch((0, place))
        return None if array is None else held.tensor(array)

    def close(self) -> None:
        self._opened.close()


class OnnxRunner(FileRunner):
    """One ONNX file, open in a child process. runtime: as `worker.RUNTIMES` names it."""

    untimed = "only models in the TFLite interpreter are timed"

    def __init__(self, path: str, timeout: float, runtime: str = "onnxruntime") -> None:
        """Opens a file by its path. RunError, TflqError as `TfliteRunner`."""
        self._runtime = runtime
        self._folder = tempfile.TemporaryDirectory(prefix="tflq-")
        self._child = Child(runtime, timeout)
        try:
            self._opened = Opened(self._child, {"onnx": str(Path(path).absolute()), "runtime": runtime})
        except BaseException:
            self.close()
            raise
        head = self._opened.head
        super().__init__(path, _interface(head))
        self.interpreter = head["interpreter"]
        self.has_state = bool(head["state"])
        tensors = json.loads(head["metadata"].get("tflq.tensors", "{}"))
        if json.loads(head["metadata"].get("tflq.exact_in", "null")) == []:
            self.inexact = "the second model says that it is exact in no runtime: QDQ form, or sums of real numbers"
        self._held = {name: Held(*said) for name, said in tensors.items()}

    def run(
        self, _: str, inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray], step: int | None = None
    ) -> list[np.ndarray]:
        """Outputs, in the order of `entries`; a run that follows another starts with the state that it left."""
        outputs = self._opened.run("", self.ordered(inputs), follows=bool(step))
        return [outputs[i] for i in self._places["outputs"]]

    def type_of(self, key: str, name: str) -> str:
        return self._held[name].dtype if name in self._held else super().type_of(key, name)

    def names(self, _: str) -> dict[str, int]:
        """Inner tensors of the model that the file has."""
        return {name: i for i, name in enumerate(self._held)}

    def sizes(self, _: str, names: Sequence[str]) -> list[int]:
        """Not known: the other model says them."""
        return [0 for _ in names]

    @contextmanager
    def fetching(self, _: str, names: Sequence[str]) -> Iterator[OnnxFetcher]:
        """An extended file that returns these tensors, too."""
        path = Path(self._folder.name, "extended.onnx")
        count = extend(self.path, path, [self._held[name].place for name in names])
        opened = Opened(self._child, {"onnx": str(path), "runtime": self._runtime, "outputs": len(self.outputs)})
        fetcher = OnnxFetcher(self, opened, {name: (count + i, self._held[name]) for i, name in enumerate(names)})
        try:
            yield fetcher
        finally:
            fetcher.close()

    def close(self) -> None:
        self._child.close()
        self._folder.cleanup()


def _interface(head: Mapping[str, Any]) -> Module:
    """A module without operators that has a file's inputs and outputs."""
    inputs, outputs = ([_value(*row) for row in head[side]] for side in ("inputs", "outputs"))
    return Module([Function("main", inputs, outputs, [])])


def _value(name: str, dtype: str, shape: Sequence[int | None]) -> Value:
    element: ScalarType = _TYPES[dtype]
    return Value(TensorType(tuple(shape), element), name)


def extend(source: str, target: Path, values: Sequence[str]) -> int:
    """Writes a file that also returns some values, behind all that it returned, whose number is the answer. TflqError
    without the package `onnx`."""
    try:
        import onnx
    except ImportError:
        raise TflqError(
            Reason("results inside of an ONNX file need the package onnx", remedy=to_install("onnx"))
        ) from None
    model = onnx.load(source)
    count = len(model.graph.output)
    made = (onnx.helper.make_empty_tensor_value_info(f"{value}/fetched") for value in values)
    for value, output in zip(values, made, strict=True):
        model.graph.node.append(onnx.helper.make_node("Identity", [value], [output.name]))
        model.graph.output.append(output)
    onnx.save(model, str(target))
    return count
