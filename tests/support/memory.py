"""What the interpreter allocates before it runs a model: which tensors have memory, and in which shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from support.harness import in_child


@dataclass(frozen=True, slots=True)
class Memory:
    """dynamic: the results without memory until the model runs; restated: the tensors whose stated shape is not the one
    that they are allocated with, as "name: stated, allocated"; outputs: what it says of its outputs."""

    dynamic: tuple[str, ...]
    restated: tuple[str, ...]
    outputs: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]


def memory(model: bytes, *shapes: Sequence[int], resolver: str = "BUILTIN_REF") -> Memory:
    """After `allocate_tensors`, of inputs resized to these shapes if they are given."""
    found: Memory = in_child(_memory, model, shapes, resolver)
    return found


def _memory(model: bytes, shapes: Sequence[Sequence[int]], resolver: str) -> Memory:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=model, experimental_op_resolver_type=OpResolverType[resolver], num_threads=1
    )
    stated = {d["index"]: tuple(map(int, d["shape"])) for d in interpreter.get_tensor_details()}
    for detail, shape in zip(interpreter.get_input_details(), shapes, strict=False):
        interpreter.resize_tensor_input(detail["index"], list(shape))
    interpreter.allocate_tensors()
    tensors = {d["index"]: d for d in interpreter.get_tensor_details()}
    results = [int(t) for op in interpreter._get_ops_details() for t in op["outputs"] if t >= 0]
    dynamic = tuple(tensors[t]["name"] for t in results if t in tensors and not _is_there(interpreter, t))
    restated = tuple(
        f"{d['name']}: {stated[t]}, {tuple(map(int, d['shape']))}"
        for t, d in tensors.items()
        if t in stated and tuple(map(int, d["shape"])) != stated[t]
    )
    outputs = tuple(
        (d["name"], tuple(map(int, d["shape"])), tuple(map(int, d["shape_signature"])))
        for d in interpreter.get_output_details()
    )
    return Memory(dynamic, restated, outputs)


def _is_there(interpreter: object, tensor: int) -> bool:
    try:
        interpreter.get_tensor(tensor)  # type: ignore[attr-defined]
    except ValueError:
        return False
    return True


def result_shapes(
    model: bytes, inputs: Sequence[np.ndarray], resolver: str = "BUILTIN_REF"
) -> list[list[tuple[int, ...] | None]]:
    """The shapes that the results of each op of the first subgraph have after a run, on inputs cast to the model's
    element types; None for one without memory. RuntimeError if the interpreter refuses."""
    found: list[list[tuple[int, ...] | None]] = in_child(_result_shapes, model, inputs, resolver)
    return found


def _result_shapes(model: bytes, inputs: Sequence[np.ndarray], resolver: str) -> list[list[tuple[int, ...] | None]]:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=model,
        experimental_op_resolver_type=OpResolverType[resolver],
        experimental_preserve_all_tensors=True,
        num_threads=1,
    )
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], array.astype(detail["dtype"]))
    interpreter.invoke()
    tensors = {d["index"]: tuple(map(int, d["shape"])) for d in interpreter.get_tensor_details()}
    return [
        [tensors[t] if t in tensors and _is_there(interpreter, t) else None for t in map(int, op["outputs"]) if t >= 0]
        for op in interpreter._get_ops_details()
    ]


def addresses(model: bytes) -> dict[int, tuple[int, int]]:
    """The address and bytes of each tensor of the first subgraph that has memory after `allocate_tensors`, by its
    number in the file: with optimized kernels, one thread and no delegate."""
    found: dict[int, tuple[int, int]] = in_child(_addresses, model)
    return found


def _addresses(model: bytes) -> dict[int, tuple[int, int]]:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=model,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        num_threads=1,
    )
    interpreter.allocate_tensors()
    found = {}
    for detail in interpreter.get_tensor_details():
        index = int(detail["index"])
        if detail["name"] and _is_there(interpreter, index):
            array = interpreter._interpreter.tensor(interpreter, index, 0)
            found[index] = array.__array_interface__["data"][0], array.nbytes
    return found
