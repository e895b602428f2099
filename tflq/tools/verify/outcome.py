"""The outcome of a comparison of two models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, Literal

import numpy as np

from tflq.tools.verify.difference import EXACT, Difference, Tolerance
from tflq.tools.verify.metrics import Score

JSON_VERSION = 1

NamedShapes = tuple[tuple[str, tuple[int, ...]], ...]
"""Shapes of inputs, by name."""
Verdict = Literal["equal", "accepted", "differs", "failed", "nothing comparable"]


@dataclass(frozen=True, slots=True)
class Run:
    """One entry of both models on one set of inputs: an item of `Verification.runs`.

    Attributes:
        entry: The key of a signature, or "".
        inputs: Name of the set of inputs, such as "random 0".
        outputs: Name and `Difference` of each output.
        skipped: Why the original cannot run on it. Empty if it ran.
        shapes: Shapes of the inputs, by name.

    Example:
        ```python
        for run in tflq.verify("in.tflite", "out.tflite").runs:
            print(run.inputs, [(name, difference.largest) for name, difference in run.outputs])
        ```
    """

    entry: str
    inputs: str
    outputs: tuple[tuple[str, Difference], ...] = ()
    skipped: str = ""
    shapes: NamedShapes = ()

    def to_json(self) -> dict[str, Any]:
        """The run as in `tflq verify --json`: docs/json.md."""
        outputs = [{"name": name, **d.to_json()} for name, d in self.outputs]
        shapes = {name: list(shape) for name, shape in self.shapes}
        return {
            "entry": self.entry,
            "inputs": self.inputs,
            "skipped": self.skipped,
            "shapes": shapes,
            "outputs": outputs,
        }


@dataclass(frozen=True, slots=True)
class Divergence:
    """An operator result that differs."""

    entry: str
    operator: int
    opcode: str
    tensor: str
    difference: Difference

    def __str__(self) -> str:
        where = f"signature '{self.entry}', " if self.entry else ""
        return f"{where}operator {self.operator} ({self.opcode}), tensor '{self.tensor}': {self.difference}"

    def to_json(self) -> dict[str, Any]:
        place = {"entry": self.entry, "operator": self.operator, "opcode": self.opcode, "tensor": self.tensor}
        return place | self.difference.to_json()


@dataclass(frozen=True, slots=True)
class Expected(Divergence):
    """An operator result of which a difference is known to come from the original's kernel. The other model goes on
    with what the original gives. `within`: counts up to which that explains it; None: any number."""

    reason: str
    within: float | None

    @property
    def accepted(self) -> bool:
        apart = self.difference
        return apart.equal or not (apart.problem or (self.within is not None and apart.largest > self.within))

    def to_json(self) -> dict[str, Any]:
        known = {"reason": self.reason, "within": self.within, "accepted": self.accepted}
        return super(Expected, self).to_json() | known


@dataclass(frozen=True, slots=True)
class Apart:
    """Operators of a model, by index, that ran on other kernels than asked for. `whole`: why these ran all of it."""

    model: str
    entry: str
    opcode: str
    operators: tuple[int, ...]
    resolver: str
    reason: str
    whole: str = ""

    def __str__(self) -> str:
        where = f", signature '{self.entry}'" if self.entry else ""
        listed = ", ".join(map(str, self.operators[:5])) + (", ..." if len(self.operators) > 5 else "")
        what = f"all operators, since {self.whole}," if self.whole else f"{self.opcode} (operator {listed})"
        return f"{self.model}{where}: {self.resolver} kernels run {what}: {self.reason}"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "operators": list(self.operators)}


@dataclass(frozen=True, slots=True)
class Uncompared:
    """A signature that is not compared: an item of `Verification.uncompared`.

    Attributes:
        entry: Its key, or "" for the first subgraph by position.
        reason: Why not.
    """

    entry: str
    reason: str

    def __str__(self) -> str:
        what = f"signature '{self.entry}'" if self.entry else "the first subgraph by position"
        return f"{what}: {self.reason}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class KernelShare:
    """The part of an output's difference that comes from the kernels.

    original: difference of the original on the kernels asked for from itself on the reference kernels. other: that of
    the other model from the original on the reference kernels.
    """

    entry: str
    name: str
    original: Difference
    other: Difference

    def __str__(self) -> str:
        where = f"signature '{self.entry}', " if self.entry else ""
        sentence = f"the original itself differs between these kernels and the reference ones ({self.original})"
        if self.original.equal:
            sentence = "the original gives the same on these kernels and on the reference ones"
        rest = f"the other model differs from the original on the reference kernels, too ({self.other})"
        if self.other.equal:
            rest = "the other model equals the original on the reference kernels"
        return f"{where}output '{self.name}': {sentence}; {rest}"

    def to_json(self) -> dict[str, Any]:
        return {
            "entry": self.entry,
            "name": self.name,
            "original": self.original.to_json(),
            "other": self.other.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Agreement:
    """For how many of the user's inputs both models have the highest score at the same class."""

    entry: str
    name: str
    inputs: int
    agreeing: int

    @property
    def share(self) -> float:
        return self.agreeing / self.inputs

    def __add__(self, other: Agreement) -> Agreement:
        """Both together."""
        return replace(self, inputs=self.inputs + other.inputs, agreeing=self.agreeing + other.agreeing)

    def __str__(self) -> str:
        where = f"{self.entry}: " if self.entry else ""
        return f"{where}{self.name}: {self.agreeing} of {self.inputs} agree ({self.share:.2%})"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "share": self.share}


def agreement(
    entry: str, name: str, got: np.ndarray, want: np.ndarray, description: Mapping[str, Any]
) -> Agreement | None:
    """For how many inputs both have their highest score at the same class; None if the output does not look like
    scores of classes: floats or quantized integers, two or more for each input of a batch, along one axis."""
    classes = [d for d in want.shape[1:] if d != 1] if want.ndim > 1 else list(want.shape)
    number = want.dtype.kind == "f" or (want.dtype.kind in "iu" and bool(description.get("scales")))
    if not number or got.shape != want.shape or len(classes) != 1 or not want.size:
        return None
    rows = [np.argmax(array.reshape(-1, classes[0]), axis=1) for array in (got, want)]
    return Agreement(entry, name, rows[0].size, int(np.count_nonzero(rows[0] == rows[1])))


@dataclass(frozen=True, slots=True)
class Layers:
    """Results of operators, compared by tensor name: `Verification.layers`.

    Attributes:
        results: Number of operator results in the original.
        compared: How many of them were compared.
        diverging: Those that differ, in the order of operators. One that differs at several shapes of the inputs is
            listed once for each.
        every: All that were compared, in the same way.
        missing: Those whose name the second model lacks, or has twice, such as "SOFTMAX 8 'probs'".
        steps: Number of results and sums within a program in C that tflq's evaluator has, too, and that were compared.
    """

    results: int
    compared: int
    diverging: tuple[Divergence, ...]
    every: tuple[Divergence, ...] = ()
    missing: tuple[str, ...] = ()
    steps: int = 0

    @property
    def first(self) -> Divergence | None:
        """The first result that differs: where to look."""
        return self.diverging[0] if self.diverging else None

    def to_json(self) -> dict[str, Any]:
        """The comparison as in `tflq verify --json`: docs/json.md."""
        diverging = [d.to_json() for d in self.diverging]
        return {
            "results": self.results,
            "compared": self.compared,
            "diverging": diverging,
            "missing": list(self.missing),
            "steps": self.steps,
        }


@dataclass(frozen=True, slots=True)
class RunTime:
    """Duration of a run of one entry in both models: an item of `Verification.time`.

    Attributes:
        entry: The key of a signature, or "" for the first subgraph by position.
        before: Seconds for a run of the original: the median of its turns. None if not measured.
        after: The same for the other model.
        ratio: How many times as long the other model takes: the median of the turns' ratios.
        turns: How often both were measured.
        problem: Why they were not measured. Empty if they were.

    Example:
        ```python
        for found in tflq.verify("in.tflite", "out.tflite", time=True).time:
            print(found.entry, found.ratio)
        ```
    """

    entry: str
    before: float | None = None
    after: float | None = None
    ratio: float | None = None
    turns: int = 0
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        """The times as in `tflq verify --json`: docs/json.md."""
        return asdict(self)


@dataclass
class Verification:
    """The result of `tflq.verify`. It is true only if the models are `equal`; `passed` also allows accepted
    differences.

    Attributes:
        a: Path of the original.
        b: Path of the other model.
        resolver: The kernels that were asked for.
        interpreter: What ran the models.
        failures: Why the other model could not be opened, aborted or took too long, by name.
        interface: Differences of names, shapes, types, quantization, signatures and metadata, one sentence each.
        runs: Each entry on each set of inputs.
        layers: Results of operators compared. None if not asked for; of C they always are.
        tolerance: Differences that are accepted.
        expected: Results of operators whose kernels are known to differ, compared on the same operands.
        apart: Operators that ran on other kernels than asked for.
        notes: What was not compared, and why.
        cut: Inner tensors of the original that are the other model's outputs, if the model was cut there. The
            original's values there are what it is compared with.
        kernels: With other kernels than the reference ones: which part of each output's difference comes from the
            kernels.
        top1: With your own inputs: on how many of them the class with the highest score is the same, for each output.
        time: How long a run of each entry takes in both models. None if not asked for.
        inexact: Why the other model can differ on other inputs, where it says so itself. Then it is never `equal`.
        incomparable: Why the original, by name, has no results to compare with: it could not be opened, aborted or took
            too long.
        other_kernels: Why the original runs on other kernels than the other model reproduces. Then nothing is compared.
        uncompared: Signatures that are not compared, and why.
        operands: Operands of post-processing operators, which drop most of what they read, compared on all inputs.
        scores: Metrics of the outputs on your own inputs, of both models.

    Example:
        ```python
        result = tflq.verify("in.tflite", "out.tflite")
        if not result:
            print(result.verdict, result.failures, result.interface)
        ```
    """

    a: str
    b: str
    resolver: str
    interpreter: str = ""
    failures: list[str] = field(default_factory=list)
    interface: list[str] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    layers: Layers | None = None
    tolerance: Tolerance = EXACT
    expected: list[Expected] = field(default_factory=list)
    apart: list[Apart] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    kernels: list[KernelShare] = field(default_factory=list)
    top1: list[Agreement] = field(default_factory=list)
    time: list[RunTime] | None = None
    inexact: str = ""
    incomparable: list[str] = field(default_factory=list)
    other_kernels: str = ""
    uncompared: list[Uncompared] = field(default_factory=list)
    operands: list[Divergence] = field(default_factory=list)
    scores: list[Score] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.equal

    @property
    def verdict(self) -> Verdict:
        """The result in a word.

        `equal`; `accepted` (there are differences, or on other inputs there can be, but none beyond the tolerance or
        what is expected of an operator); `differs`; `failed` (the other model does not run); or `nothing comparable`
        (no output could be compared: `reason` says why).
        """
        compared = any(run.outputs for run in self.runs)
        if self.failures and (compared or not self.incomparable):
            return "failed"
        if not (compared or self.interface):
            return "nothing comparable"
        differences = [d for run in self.runs for _, d in run.outputs]
        differences += [d.difference for d in (*(self.layers.diverging if self.layers else ()), *self.operands)]
        if self.interface or not all(d.accepted for d in differences) or not all(e.accepted for e in self.expected):
            return "differs"
        differences += [e.difference for e in self.expected]
        return "equal" if not self.inexact and all(d.equal for d in differences) else "accepted"

    @property
    def reason(self) -> str:
        """Why nothing could be compared. Empty for any other verdict."""
        if self.verdict != "nothing comparable":
            return ""
        skipped = [f"{self.a}: the original does not run: {run.skipped}" for run in self.runs if run.skipped]
        reasons = [*filter(None, [self.other_kernels]), *self.incomparable, *skipped, *map(str, self.uncompared)]
        return reasons[0] if reasons else "the original has no outputs, or there are no inputs to run on"

    @property
    def equal(self) -> bool:
        """Whether the models are equal."""
        return self.verdict == "equal"

    @property
    def passed(self) -> bool:
        """Whether the models are equal, or differ no more than accepted."""
        return self.verdict in ("equal", "accepted")

    @property
    def outputs(self) -> dict[tuple[str, str], Difference]:
        """The difference of each output over all runs, by entry and name."""
        by_name: dict[tuple[str, str], list[Difference]] = {}
        for run in self.runs:
            for name, d in run.outputs:
                by_name.setdefault((run.entry, name), []).append(d)
        return {key: reduce(add, differences) for key, differences in by_name.items()}

    def to_json(self) -> dict[str, Any]:
        """The result in a versioned JSON form: docs/json.md."""
        outputs = [{"entry": e, "name": n, **d.to_json()} for (e, n), d in self.outputs.items()]
        most = self.tolerance
        tolerance = {"max_lsb": most.lsb, "atol": most.atol, "rtol": most.rtol, "ulps": most.ulps or 0.0}
        return {
            "format": "tflq.verification",
            "version": JSON_VERSION,
            "a": self.a,
            "b": self.b,
            "interpreter": self.interpreter,
            "resolver": self.resolver,
            "verdict": self.verdict,
            "tolerance": tolerance,
            "inexact": self.inexact,
            "reason": self.reason,
            "failures": self.failures,
            "incomparable": self.incomparable,
            "other_kernels": self.other_kernels,
            "uncompared": [each.to_json() for each in self.uncompared],
            "interface": self.interface,
            "outputs": outputs,
            "runs": [run.to_json() for run in self.runs],
            "expected": [each.to_json() for each in self.expected],
            "apart": [each.to_json() for each in self.apart],
            "notes": self.notes,
            "cut": self.cut,
            "operands": [each.to_json() for each in self.operands],
            "kernels": [each.to_json() for each in self.kernels],
            "scores": [each.to_json() for each in self.scores],
            "top1": [each.to_json() for each in self.top1],
            "time": None if self.time is None else [each.to_json() for each in self.time],
            "layers": None if self.layers is None else self.layers.to_json(),
        }
