"""What a conversion loses of a model whose inputs are resized: compared in the interpreter, in a process of its own."""

from __future__ import annotations

import collections
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_RESOURCE = 13  # TensorType.RESOURCE of the schema
Sizes = Sequence[tuple[int, ...]]


def losses(
    model: bytes, made: Mapping[str, bytes], resizes: Mapping[int, Sequence[Sizes]], announced: Sequence[str] = ()
) -> tuple[dict[str, list[str]], int]:
    """By form, what is lost:

    dynamic  a result without memory after allocation, where the original has none
    stated   a tensor that states another shape than it is allocated with, where the original is static and has none
    resize   other results, or none, or dynamic ones, at sizes at which the original runs
    names    tensors without a name of their own, more than in the original

    And how many of the resizes the original runs. `announced`: forms of which the report says that numbers differ:
    their shapes alone are compared.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    found: dict[str, list[str]] = {form: [] for form in made}
    runs = 0
    for graph, wanted in resizes.items():
        for sizes in wanted:
            try:
                want = _run(model, graph, sizes)
            except (RuntimeError, ValueError):
                continue
            runs += 1
            for form, data in made.items():
                found[form] += _at(data, graph, sizes, want, numbers=form not in announced)
        honest = _restated(model, graph)
        for form, data in made.items():
            if honest == [] and (wrong := _restated(data, graph)):
                found[form].append(f"stated: subgraph {graph}: {wrong[0]} ({len(wrong)} tensors)")
    unnamed = _unnamed(model)
    for form, data in made.items():
        if opaque := _opaque(data):
            found[form].append(f"dynamic: {opaque[0]} is of type RESOURCE: get_tensor takes what memory holds for text")
        if _unnamed(data) > unnamed:
            found[form].append(f"names: {_unnamed(data)} tensors without a name of their own, {unnamed} before")
    return found, runs


def _at(data: bytes, graph: int, sizes: Sizes, want: tuple[list[np.ndarray], list[str]], *, numbers: bool) -> list[str]:
    where = f"subgraph {graph} at {' '.join('x'.join(map(str, s)) for s in sizes)}"
    try:
        got, dynamic = _run(data, graph, sizes)
    except (RuntimeError, ValueError) as error:
        return [f"resize: {where}: {str(error)[:200]}"]
    if dynamic and not want[1]:
        return [f"dynamic: {where}: from {dynamic[0]} on"]
    for w, g in zip(want[0], got, strict=True):
        if w.shape != g.shape:
            return [f"resize: {where}: {g.shape}, not {w.shape}"]
        if numbers and not np.array_equal(w, g, equal_nan=w.dtype.kind == "f"):
            return [f"resize: {where}: other results"]
    return []


def _interpreter(data: bytes) -> Any:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    return Interpreter(model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_REF, num_threads=1)


def _schema(data: bytes) -> Any:
    from ai_edge_litert import schema_py_generated as schema

    return schema.Model.GetRootAs(data, 0)


def _run(data: bytes, graph: int, sizes: Sizes) -> tuple[list[np.ndarray], list[str]]:
    """Outputs of two runs, and the results that have no memory before."""
    held = _interpreter(data)  # its wrapper keeps nothing alive
    run, function = held._interpreter, _schema(data).Subgraphs(graph)
    inputs = [function.Inputs(i) for i in range(function.InputsLength())]
    for tensor, shape in zip(inputs, sizes, strict=True):
        run.ResizeInputTensor(tensor, np.asarray(shape, np.int32), False, graph)
    run.AllocateTensors(graph)
    dynamic = [run.TensorName(t, graph) for t in _results(function) if not _is_there(run, t, graph)]
    rng = np.random.default_rng(5)
    found = []
    for _ in range(2):
        for tensor in inputs:
            dtype, shape = np.dtype(run.TensorType(tensor, graph)), tuple(run.TensorSize(tensor, graph))
            low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.itemsize < 4 else (0, 3)
            run.SetTensor(tensor, np.asarray(rng.integers(low, high, shape, endpoint=True), dtype), graph)
        run.Invoke(graph)
        found += [run.GetTensor(function.Outputs(i), graph) for i in range(function.OutputsLength())]
    return found, dynamic


def _results(function: Any) -> list[int]:
    ops = [function.Operators(i) for i in range(function.OperatorsLength())]
    found = [op.Outputs(i) for op in ops for i in range(op.OutputsLength()) if op.Outputs(i) >= 0]
    return [t for t in found if function.Tensors(t).Type() != _RESOURCE]


def _opaque(data: bytes) -> list[str]:
    """Handles that cannot be read: the interpreter's `get_tensor` crashes on them."""
    model = _schema(data)
    functions = [model.Subgraphs(s) for s in range(model.SubgraphsLength())]
    tensors = [f.Tensors(i) for f in functions for i in range(f.TensorsLength())]
    return [t.Name().decode() for t in tensors if t.Type() == _RESOURCE]


def _is_there(run: Any, tensor: int, graph: int) -> bool:
    try:
        run.GetTensor(tensor, graph)
    except ValueError:
        return False
    return True


def _restated(data: bytes, graph: int) -> list[str] | None:
    """Results that state another shape than they are allocated with; None if one has no memory."""
    held = _interpreter(data)
    run, function = held._interpreter, _schema(data).Subgraphs(graph)
    results = _results(function)
    before = {t: tuple(map(int, run.TensorSize(t, graph))) for t in results}
    try:
        run.AllocateTensors(graph)
    except (RuntimeError, ValueError):
        return None
    if not all(_is_there(run, t, graph) for t in results):
        return None
    after = {t: tuple(map(int, run.TensorSize(t, graph))) for t in results}
    return [
        f"{run.TensorName(t, graph)}: {before[t]}, allocated as {after[t]}" for t in results if before[t] != after[t]
    ]


def _unnamed(data: bytes) -> int:
    """How many inner tensors have no name of their own."""
    model, count = _schema(data), 0
    for s in range(model.SubgraphsLength()):
        graph = model.Subgraphs(s)
        edges = {graph.Inputs(i) for i in range(graph.InputsLength())}
        edges |= {graph.Outputs(i) for i in range(graph.OutputsLength())}
        names = [graph.Tensors(i).Name() or b"" for i in range(graph.TensorsLength()) if i not in edges]
        count += sum(times for name, times in collections.Counter(names).items() if times > 1 or not name)
    return count
