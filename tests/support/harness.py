"""Building one-operator models, and running models in the interpreter in a process of its own (it can abort)."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
import pytest

from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import ElementType, ScalarType, TensorType, UniformQuantizedType, element_storage, parameters

_CONTEXT = multiprocessing.get_context("spawn")
TENSORFLOW: Final = os.environ.get("TFLQ_TENSORFLOW", "0") not in ("", "0")
"""Whether models run in TensorFlow's interpreter instead of ai-edge-litert."""


def argument(shape: Sequence[int | None], element: ElementType, name: str = "x") -> Value:
    """A tensor without data."""
    return Value(TensorType(tuple(shape), element), name)


def const(array: np.ndarray, element: ElementType, name: str = "c") -> Value:
    """A constant of stored integers with any element type."""
    array = np.asarray(array, element_storage(element).dtype, order="C")
    return Value(TensorType(array.shape, element), name, buffer=Buffer.of(array))


def packed(array: np.ndarray, element: ElementType, name: str = "c") -> Value:
    """A constant of integers of 4 or 2 bits, several in a byte, the first in the lowest bits."""
    bits = element_storage(element).bits
    array = np.asarray(array)
    rows = np.resize(array, -(-array.size * bits // 8) * (8 // bits)).reshape(-1, 8 // bits).astype(np.uint8)
    stored = np.bitwise_or.reduce((rows & ((1 << bits) - 1)) << np.arange(0, 8, bits, dtype=np.uint8), 1)
    return Value(TensorType(array.shape, element), name, buffer=Buffer.of(stored.astype(np.uint8)))


def one_op(
    name: str,
    operands: Sequence[Value | None],
    results: Sequence[Value],
    attributes: Mapping[str, Any],
    version: int = 1,
) -> bytes:
    """The file of a model with one operator; operands without data are its inputs."""
    op = Op(name, list(operands), list(results), dict(attributes), info={"version": version})
    inputs = [v for v in operands if v is not None and v.buffer is None]
    return bytes(write(Module([Function("main", inputs, list(results), [op])])))


def edge_inputs(values: Sequence[Value], seed: int = 0, count: int = 2) -> list[list[np.ndarray]]:
    """Random, all-minimum, all-maximum and zero-point arrays for the inputs of a model; unknown dims are 1. count: of
    random ones."""
    rng = np.random.default_rng(seed)
    draws: list[list[np.ndarray]] = []
    for kind in (*["random"] * count, "minimum", "maximum", "zero"):
        arrays = []
        for value in values:
            shape, storage = [1 if d is None else d for d in value.type.shape or ()], value.type.storage
            zero = value.type.element.zero_point if isinstance(value.type.element, UniformQuantizedType) else 0
            if storage.is_float:
                arrays.append(rng.normal(0, 4, shape).astype(storage.dtype))
            elif storage.dtype == bool:
                arrays.append(np.asarray(rng.integers(0, 2, shape), bool))
            elif kind == "random":
                arrays.append(rng.integers(storage.minimum, storage.maximum, shape, storage.dtype, endpoint=True))
            else:
                arrays.append(
                    np.full(
                        shape,
                        {"minimum": storage.minimum, "maximum": storage.maximum, "zero": zero}[kind],
                        storage.dtype,
                    )
                )
        draws.append(arrays)
    return draws


def _run(
    model: bytes, batches: list[list[np.ndarray]], resolver: str, resets: Sequence[int] = ()
) -> list[list[np.ndarray]]:
    if TENSORFLOW:
        from tensorflow import lite

        interpreters, resolvers = lite.Interpreter, lite.experimental.OpResolverType
    else:
        from ai_edge_litert import interpreter as litert

        interpreters, resolvers = litert.Interpreter, litert.OpResolverType
    interpreter = interpreters(model_content=model, experimental_op_resolver_type=resolvers[resolver], num_threads=1)
    for detail, array in zip(interpreter.get_input_details(), batches[0], strict=True):
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    results = []
    for number, arrays in enumerate(batches):
        if number in resets:
            interpreter.reset_all_variables()
            if "tflq_reset" in interpreter.get_signature_list():
                interpreter.get_signature_runner("tflq_reset")()
        for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        results.append([interpreter.get_tensor(d["index"]).copy() for d in interpreter.get_output_details()])
    return results


def own_tests() -> None:
    """Lets a new process find a test's functions: `tests` is ours, whatever else is installed under that name."""
    ours = ModuleType("tests")
    ours.__path__ = [str(Path(__file__).parents[1])]
    sys.modules["tests"] = ours


def _serve(pipe: Any) -> None:
    """The child: answers each request with results, or with the error's text."""
    own_tests()
    while True:
        try:
            request = pipe.recv()
        except EOFError:
            return
        function, *arguments = request
        try:
            pipe.send(function(*arguments))
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent fails the test with it
            pipe.send(repr(error))


class _Worker:
    """A process that runs models for all tests, started anew if the interpreter takes it down."""

    def __init__(self) -> None:
        self.pipe: Any = None
        self.process: Any = None

    def ask(self, request: object) -> Any:
        if self.process is None or not self.process.is_alive():
            self.pipe, end = _CONTEXT.Pipe()
            self.process = _CONTEXT.Process(target=_serve, args=(end,), daemon=True)
            self.process.start()
            end.close()
        self.pipe.send(request)
        try:
            if self.pipe.poll(120):
                return self.pipe.recv()
            answer = "no answer in 120 s"
        except EOFError:
            answer = "the interpreter died"
        self.process.kill()
        self.process.join()
        return answer


_WORKER = _Worker()


def interpret(
    model: bytes, batches: list[list[np.ndarray]], resolver: str = "BUILTIN_REF", *, resets: Sequence[int] = ()
) -> list[list[np.ndarray]]:
    """Outputs for each list of inputs; inputs are resized to the arrays. `resets`: numbers of lists before which state
    is reset. RuntimeError if the interpreter refuses or dies."""
    return in_child(_run, model, batches, resolver, resets)


def in_child(function: Callable[..., Any], *arguments: object) -> Any:
    """What a function of a module gives in a process that it may take down. RuntimeError with what it says if it
    fails."""
    if TENSORFLOW:
        pytest.importorskip(
            "tensorflow", reason="NO TENSORFLOW, which TFLQ_TENSORFLOW needs: pip install tensorflow-cpu"
        )
    else:
        pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    answer = _WORKER.ask((function, *arguments))
    if isinstance(answer, str):
        raise RuntimeError(answer)  # noqa: TRY004 - the text of the child's error
    return answer


def convert_and_compare(model: bytes, batches: list[list[np.ndarray]], **options: Any) -> Any:
    """Converts a model, runs both with the reference kernels and asserts equal outputs; the conversion."""
    import tflq

    conversion = tflq.convert(model, **options)
    for want, got in zip(interpret(model, batches), interpret(conversion.data, batches), strict=True):
        for w, g in zip(want, got, strict=True):
            np.testing.assert_array_equal(g, w)
    return conversion


def real_of(value: Value, stored: np.ndarray) -> np.ndarray:
    """What stored integers stand for, in double."""
    scale, zero = parameters(value.type)
    return (stored.astype(np.int64) - zero) * scale.astype(np.float64)


def random_integers(shape: tuple[int, ...], element: ScalarType, seed: int = 0) -> np.ndarray:
    """Integers of a whole type."""
    rng = np.random.default_rng(seed)
    return rng.integers(element.minimum, element.maximum, shape, np.int64, endpoint=True).astype(element.dtype)


def renamed(op: Op, name: str) -> Op:
    """The same op under another name."""
    return Op(name, op.operands, op.results, op.attributes, op.location, info=op.info)
