"""The child process that runs one model in the interpreter, or on the TOSA reference model, since either can abort on a
model it does not like.

Run as a script: it imports nothing of tflq. Requests come on standard input, answers go to standard output, each one
line of JSON whose "arrays" lists [dtype, shape] of the arrays that follow it, as plain bytes.

    {"do": "open", "model": PATH, "resolver": NAME, "keep": BOOL, "anew": BOOL} → {"interpreter": ..., "entries": {...}}
    {"do": "open", "tosa": PATH, "extended": PATH}                   → {"interpreter": ...}
    {"do": "run", "entry": KEY, "fetch": [[subgraph, index], ...]} + inputs → {"missing": [...]} + outputs + fetched
    tensors

An entry is a way into the model: "" is its first subgraph by position, any other key a signature, by names. A TOSA file
has one; its extended form has more outputs, and what is fetched are those: index i is output i. `anew`: every run has
a new interpreter, which models with resource variables need: nothing resets these.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import IO, Any

import numpy as np

__all__ = ["NO_INTERPRETER", "NO_REFERENCE_MODEL", "main", "receive", "send"]

NO_INTERPRETER = "no interpreter"
NO_REFERENCE_MODEL = "no reference model"
RESET = "tflq_reset"
"""The signature that a conversion adds to reset state; it is no entry of the model."""
RESOLVERS = {"reference": "BUILTIN_REF", "optimized": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "default": "AUTO"}


def load() -> tuple[str, Any, Any]:
    """Name and version of the interpreter that is installed, its class and its resolver types."""
    try:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType
    except ImportError:
        try:
            import tensorflow as tf
        except ImportError:
            raise LookupError(NO_INTERPRETER) from None
        return f"tensorflow {tf.__version__}", tf.lite.Interpreter, tf.lite.experimental.OpResolverType
    try:
        return f"ai-edge-litert {version('ai-edge-litert')}", Interpreter, OpResolverType
    except PackageNotFoundError:  # one of its nightly builds, which have other names
        return "ai-edge-litert", Interpreter, OpResolverType


def describe(detail: dict[str, Any]) -> dict[str, Any]:
    """What of a tensor an interface consists of."""
    quantization = detail["quantization_parameters"]
    return {
        "name": detail["name"],
        "shape": [int(d) for d in detail["shape"]],
        "shape_signature": [int(d) for d in detail["shape_signature"]],
        "dtype": np.dtype(detail["dtype"]).name,
        "scales": [float(s) for s in quantization["scales"]],
        "zero_points": [int(z) for z in quantization["zero_points"]],
        "axis": int(quantization["quantized_dimension"]),
    }


def send(stream: IO[bytes], head: dict[str, Any], arrays: Sequence[np.ndarray]) -> None:
    """Writes one message."""
    plain = [_plain(array) for array in arrays]
    head = head | {"arrays": [[array.dtype.str, array.shape] for array in plain]}
    stream.write(json.dumps(head).encode() + b"\n")
    for array in plain:
        stream.write(array.reshape(-1).view(np.uint8).data)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Reads one message. EOFError at the end of the stream."""
    line = stream.readline()
    if not line:
        raise EOFError
    head = json.loads(line)
    arrays: list[np.ndarray] = []
    for dtype, shape in head["arrays"]:
        array = np.empty(shape, dtype)
        data = array.reshape(-1).view(np.uint8)
        if stream.readinto(data.data) != data.size:  # type: ignore[attr-defined]
            raise EOFError
        arrays.append(array)
    return head, arrays


def _plain(array: np.ndarray) -> np.ndarray:
    """The array in C order, and strings as bytes of a fixed width."""
    return np.ascontiguousarray(array.astype(np.bytes_) if array.dtype.hasobject else array).reshape(array.shape)


class Model:
    """One model in one interpreter."""

    def __init__(self, path: str, resolver: str, keep: bool, anew: bool) -> None:
        self.label, interpreter, resolvers = load()
        self._open = partial(
            interpreter,
            model_path=path,
            experimental_op_resolver_type=getattr(resolvers, RESOLVERS[resolver]),
            experimental_preserve_all_tensors=keep,
            num_threads=1,
        )
        self._anew = anew
        self.interpreter = self._open()
        self.interpreter.allocate_tensors()
        keys = [key for key in self.interpreter.get_signature_list() if key]
        self.signatures = [key for key in keys if key != RESET]
        self._resets = RESET in keys

    def entries(self) -> dict[str, Any]:
        """Inputs and outputs of each entry, as [name, description]: the tensor's name, or the signature's for it."""
        details = {"inputs": self.interpreter.get_input_details(), "outputs": self.interpreter.get_output_details()}
        entries: dict[str, Any] = {"": {side: [[d["name"], describe(d)] for d in ds] for side, ds in details.items()}}
        for key in self.signatures:
            runner = self.interpreter.get_signature_runner(key)  # not kept: it would stop the interpreter from resizing
            sides = {"inputs": runner.get_input_details(), "outputs": runner.get_output_details()}
            entries[key] = {side: [[name, describe(d)] for name, d in sorted(ds.items())] for side, ds in sides.items()}
        return entries

    def run(self, entry: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """Outputs, in the order of `entries`. State is reset first, so that runs do not depend on each other."""
        if self._anew:
            self.interpreter = self._open()
            self.interpreter.allocate_tensors()
        self.interpreter.reset_all_variables()
        if self._resets:
            self.interpreter.get_signature_runner(RESET)()
        if entry:
            runner = self.interpreter.get_signature_runner(entry)
            results = runner(**dict(zip(sorted(runner.get_input_details()), inputs, strict=True)))
            return [results[name] for name in sorted(results)]
        details = self.interpreter.get_input_details()
        for detail, value in zip(details, inputs, strict=True):
            if tuple(detail["shape"]) != value.shape:
                self.interpreter.resize_tensor_input(detail["index"], value.shape, strict=False)
        self.interpreter.allocate_tensors()
        for detail, value in zip(details, inputs, strict=True):
            self.interpreter.set_tensor(detail["index"], value)
        self.interpreter.invoke()
        return [self.interpreter.get_tensor(d["index"]) for d in self.interpreter.get_output_details()]

    def fetch(self, places: list[list[int]]) -> tuple[list[int], list[np.ndarray]]:
        """The tensors at (subgraph, index); first, which of them hold no data."""
        missing: list[int] = []
        found: list[np.ndarray] = []
        for i, (subgraph, index) in enumerate(places):
            try:
                found.append(self.interpreter.get_tensor(index, subgraph))
            except (ValueError, RuntimeError):
                missing.append(i)
        return missing, found


class TosaModel:
    """One TOSA file on the reference model."""

    def __init__(self, path: str, extended: str) -> None:
        try:
            import tosa_reference_model
        except ImportError:
            raise LookupError(NO_REFERENCE_MODEL) from None
        self.label = f"TOSA reference model {version('tosa-tools')}"
        self._execute = tosa_reference_model.run
        self._paths = path, extended
        self._inputs: list[np.ndarray] = []

    def run(self, _: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """Outputs, in the file's order."""
        self._inputs = inputs
        return self._run(self._paths[0])

    def fetch(self, places: list[list[int]]) -> tuple[list[int], list[np.ndarray]]:
        """Outputs of the extended file on the inputs of the last run."""
        if not places:
            return [], []
        outputs = self._run(self._paths[1])
        return [], [outputs[index] for _, index in places]

    def _run(self, path: str) -> list[np.ndarray]:
        with open(path, "rb") as file:
            outputs, status = self._execute(file.read(), self._inputs)
        if status.name != "TOSA_VALID":
            raise RuntimeError(f"the reference model says {status.name}")
        return list(outputs)


def answer(
    model: Model | TosaModel | None, request: dict[str, Any], inputs: list[np.ndarray]
) -> tuple[Model | TosaModel, dict[str, Any], list[np.ndarray]]:
    """The model that is open now, and what to send."""
    if request["do"] == "open" and "tosa" in request:
        opened = TosaModel(request["tosa"], request["extended"])
        return opened, {"interpreter": opened.label}, []
    if request["do"] == "open":
        model = Model(request["model"], request["resolver"], request["keep"], request["anew"])
        return model, {"interpreter": model.label, "entries": model.entries()}, []
    if model is None:
        raise RuntimeError("no model is open")
    outputs = [array.copy() for array in model.run(request["entry"], inputs)]
    missing, fetched = model.fetch(request["fetch"])
    return model, {"outputs": len(outputs), "missing": missing}, [*outputs, *fetched]


def main(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answers requests until there are no more. What goes wrong in the interpreter is an answer, {"error": ...}."""
    model: Model | TosaModel | None = None
    while True:
        try:
            request, inputs = receive(requests)
        except EOFError:
            return
        arrays: list[np.ndarray] = []
        try:
            model, head, arrays = answer(model, request, inputs)
        except (LookupError, MemoryError, RuntimeError, TypeError, ValueError) as error:
            head = {"error": str(error) or type(error).__name__}
        send(answers, head, arrays)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with os.fdopen(os.dup(1), "wb") as pipe:
        os.dup2(2, 1)  # what the interpreter prints is not an answer
        main(sys.stdin.buffer, pipe)
