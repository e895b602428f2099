"""A module in any form on given inputs: in the interpreter as a file, or by the evaluator."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tflq.evaluate import Run, evaluate_function
from tflq.flatbuffer.writer import write
from tflq.ir.core import Function, Module, Value
from tflq.verification.layers import BUDGET, seen_as
from tflq.verification.runner import Resolver
from tflq.verification.tflite_runner import TfliteRunner

__all__ = ["Case", "Results", "evaluated", "function_of", "interpreted", "run_file"]


@dataclass(frozen=True, slots=True)
class Case:
    """A set of inputs of an entry (the key of its signature, or ""), by the names that the interpreter has."""

    entry: str
    name: str
    inputs: Mapping[str, np.ndarray]


@dataclass(slots=True)
class Results:
    """What a module gave for a case: its outputs by the interpreter's names, and operator results by theirs."""

    outputs: Mapping[str, np.ndarray]
    inner: dict[str, np.ndarray] = field(default_factory=dict)


def function_of(module: Module, entry: str) -> Function:
    """The function of an entry."""
    number = next((s.function for s in module.signatures or () if entry and s.key == entry), 0)
    return module.functions[number]


def interpreted(
    path: Path,
    module: Module,
    cases: Sequence[Case],
    names: Mapping[str, Sequence[str]],
    limits: tuple[Resolver, float],
) -> list[Results]:
    """What the interpreter gives for a module, written to a file. names: the operator results to fetch, by entry.
    RunError if it does not run."""
    path.write_bytes(write(module))
    with closing(TfliteRunner(str(path), *limits)) as runner:
        return run_file(runner, cases, names)


def run_file(runner: TfliteRunner, cases: Sequence[Case], names: Mapping[str, Sequence[str]]) -> list[Results]:
    """What the interpreter gives for each case, by an open model."""
    found = []
    for case in cases:
        sides = runner.entries[case.entry]
        arrays = [case.inputs[name] for name, _ in sides["inputs"]]
        outputs = runner.run(case.entry, arrays)
        results = Results(dict(zip([name for name, _ in sides["outputs"]], outputs, strict=True)))
        wanted = _affordable(runner, case.entry, [n for n in names[case.entry] if n in runner.names(case.entry)], cases)
        with runner.fetching(case.entry, wanted) as fetcher:
            fetcher.run(arrays, {})
            fetched = {name: fetcher.fetch(name) for name in wanted}
        results.inner = {name: array for name, array in fetched.items() if array is not None}
        found.append(results)
    return found


def _affordable(runner: TfliteRunner, entry: str, names: Sequence[str], cases: Sequence[Case]) -> list[str]:
    """The first names whose tensors fit into memory, for all cases together."""
    rest, found = BUDGET // len(cases), []
    for name, size in zip(names, runner.sizes(entry, names), strict=True):
        rest -= size
        if rest < 0:
            break
        found.append(name)
    return found


def evaluated(module: Module, cases: Iterable[Case], wanted: Sequence[Results]) -> list[Results]:
    """What the evaluator gives for a module in the integer or the tosa form. wanted: the original's results, whose
    names and types are taken. NotImplementedError names an op without an evaluator."""
    return [_evaluated(module, case, want) for case, want in zip(cases, wanted, strict=True)]


def _evaluated(module: Module, case: Case, want: Results) -> Results:
    function = function_of(module, case.entry)
    signature = next((s for s in module.signatures or () if case.entry and s.key == case.entry), None)
    inputs = _by_name(None if signature is None else signature.inputs, function.inputs, case.inputs)
    outputs = _by_name(None if signature is None else signature.outputs, function.outputs, want.outputs)
    given = {v: case.inputs[name].astype(v.type.storage.dtype) for name, v in inputs.items()}
    env = evaluate_function(function, given, Run(module))

    def array(value: Value, like: np.ndarray) -> np.ndarray:
        return seen_as(value.array if value.is_constant else env[value], like.dtype)

    results = Results({name: array(v, want.outputs[name]) for name, v in outputs.items()})
    for value in (v for op in function.ops for v in op.results):
        if value.name in want.inner and value in env:
            results.inner[value.name] = array(value, want.inner[value.name])
    return results


def _by_name(
    stated: Sequence[tuple[str | None, Value]] | None, values: Sequence[Value], names: Collection[str]
) -> dict[str, Value]:
    """Inputs or outputs by the names that the interpreter has: those of the signature, or of the tensors."""
    pairs = stated if stated is not None else [(v.name, v) for v in values]
    found = {name: value for name, value in pairs if name is not None and name in names}
    return found if len(found) == len(names) else dict(zip(names, values, strict=True))
