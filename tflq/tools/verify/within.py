"""Results within a file besides tensors of the model: those of chosen sums, and of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflq.tools.verify.difference import Difference
from tflq.tools.verify.file_runner import Compare, FileRunner, StepRun
from tflq.tools.verify.inputs import Case
from tflq.tools.verify.outcome import Divergence
from tflq.tools.verify.tflite_runner import TfliteRunner


def with_sums(
    a: TfliteRunner, b: FileRunner, case: Case, every: Sequence[Divergence], timeout: float, compare: Compare
) -> list[Divergence]:
    """Results of operators, and with those of products how they differ on chosen sums, where the file can be given
    some. RunError if either does not run."""
    tried = {name: compare(got, want) for name, got, want in b.sums_beside(a, case.key, case.arrays, timeout)}
    return [
        replace(d, difference=d.difference + more)
        if d.entry == case.key and (more := tried.pop(d.tensor, None)) is not None
        else d
        for d in every
    ]


def steps_within(a: TfliteRunner, b: FileRunner, cases: Sequence[Case], compare: Compare) -> list[Divergence]:
    """The results of steps within a file, by operator and name, over cases of one entry. RunError if the file does not
    run."""
    known: dict[tuple[int, str, str], Difference] = {}
    runs = [StepRun(case.arrays, bool(case.step)) for case in cases]
    for step in b.steps_beside(a, cases[0].key, runs, compare):
        place, apart = step[:3], step.apart
        known[place] = known[place] + apart if place in known else apart
    return [Divergence(cases[0].key, *place, apart) for place, apart in known.items()]
