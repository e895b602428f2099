"""Where two models are divided, so that each operator runs on kernels that there are and are right, and so that what
follows an operator of which a difference is expected has the same operands in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tflq.verification.expected import Expectation, broken, rounding
from tflq.verification.file_runner import FileRunner
from tflq.verification.layers import AnyRunner, Named
from tflq.verification.model_file import Graph, entry_of
from tflq.verification.outcome import Apart
from tflq.verification.runner import Resolver
from tflq.verification.tflite_runner import OTHER, Division, TfliteRunner

__all__ = ["Divided", "divide"]


_AS_TOSA_HAS_THEM: Final = (("int64", "int32"), ("uint8", "int8"))


@dataclass
class Divided:
    """An entry of both models, divided. expected: operator results, by tensor name, that the original feeds to the
    other. apart, notes: what to say of it."""

    expected: dict[str, tuple[Named, Expectation]] = field(default_factory=dict)
    apart: list[Apart] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def divide(
    a: AnyRunner,
    b: AnyRunner,
    key: str,
    reports: Mapping[tuple[int, int], Expectation],
    labels: tuple[str, str],
    resolver: Resolver,
) -> Divided:
    """Divides an entry of both models where that has to be. `reports`: what else is expected of the original's
    operators, by graph and operator."""
    found = Divided()
    expected: dict[int, Expectation] = {}
    if isinstance(a, TfliteRunner):
        entry, graph = entry_of(a.file, key)
        expected = {i: why for (g, i), why in reports.items() if g == entry.graph and i < len(graph.operators)}
        expected |= broken(graph) if resolver == "reference" else {}
        for i, why in sorted(expected.items()):
            op = graph.operators[i]
            for tensor in (graph.tensor(t).name for t in op.outputs if t >= 0):
                found.expected[tensor] = Named(i, op.opcode, tensor), why
        if isinstance(b, FileRunner):
            _note_rounding(found, graph, [i for i in rounding(graph) if i not in expected])
    cuts: list[dict[str, int]] = [{}, {}]
    if found.expected:
        reason = _unfit(a, b, key, found.expected)
        if reason:
            listed = ", ".join(f"{named.opcode} (operator {named.operator})" for named, _ in found.expected.values())
            found.notes.append(f"{listed}: a difference is expected, and what follows may differ for it: {reason}")
            found.expected = {}
        else:
            cuts = [{name: r.names(key)[name] for name in found.expected} for r in (a, b)]
    for runner, label, cut in zip((a, b), labels, cuts, strict=True):
        if isinstance(runner, FileRunner):
            runner.divide(cut)
        else:
            own = broken(entry_of(runner.file, key)[1]) if resolver == "reference" else {}
            division = runner.divide(key, {i: why.reason for i, why in own.items() if why.apart}, cut)
            found.apart += _listed(runner, label, key, division)
    if found.expected and not all(r.feeds(key) for r in (a, b)):
        found.notes.append(
            "a model cannot be divided: what follows operators of which a difference is expected may differ"
        )
        found.expected = {}
        for runner in (a, b):
            if isinstance(runner, FileRunner):
                runner.divide(())
    return found


def _note_rounding(found: Divided, graph: Graph, operators: Sequence[int]) -> None:
    """Says of which operators results differ, whatever the conversion does, and how to compare in spite of it."""
    if operators:
        listed = ", ".join(dict.fromkeys(graph.operators[i].opcode for i in operators))
        more = f" and {len(operators) - 1} more" if len(operators) > 1 else ""
        found.notes.append(
            f"{listed} (operator {operators[0]}{more}): the interpreter rounds activations to 8 bits, and TOSA does "
            "not: results differ; give the conversion's report (--report FILE) to compare the rest"
        )


def _unfit(a: AnyRunner, b: AnyRunner, key: str, expected: Mapping[str, object]) -> str:
    """Why results of the original cannot be fed to the other model; empty if they can."""
    for name in expected:
        if not name or any(name not in runner.names(key) for runner in (a, b)):
            return f"tensor '{name}' is not in both models"
        types = a.type_of(key, name), b.type_of(key, name)
        if types[0] != types[1] and not (isinstance(b, FileRunner) and types in _AS_TOSA_HAS_THEM):
            return f"tensor '{name}' is {types[1]} instead of {types[0]}"
    return ""


def _listed(runner: TfliteRunner, label: str, key: str, division: Division) -> list[Apart]:
    """The operators that other kernels run, by opcode and reason."""
    _, graph = entry_of(runner.file, key)
    groups: dict[tuple[str, str], list[int]] = {}
    for i, reason in sorted(division.apart.items()):
        groups.setdefault((graph.operators[i].opcode, reason), []).append(i)
    return [
        Apart(label, key, opcode, tuple(operators), OTHER, reason, division.whole)
        for (opcode, reason), operators in groups.items()
    ]
