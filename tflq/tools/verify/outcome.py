"""The outcome of a comparison of two models."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, Final, Literal, NamedTuple

import numpy as np

# How much two results differ: counts of the stored integers (LSB), or the absolute difference of floats.


_BLOCK: Final = 1 << 20
"""Elements that are compared at a time: what that takes in memory does not grow with a tensor."""


def in_decibels(signal: float, noise: float) -> float:
    """10 log10(signal / noise): infinite without noise, negative infinity without a signal."""
    return math.inf if noise == 0 else 10 * math.log10(signal / noise) if signal else -math.inf


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Differences that are accepted: integers up to `lsb` counts; floats up to atol + rtol * |original|.

    Floats may also differ by so many `ulps` of the largest value of their tensor. None: as many as TOSA or ONNX leaves
    open in what is compared.
    """

    lsb: float = 0.0
    atol: float = 0.0
    rtol: float = 0.0
    ulps: float | None = 0.0

    @classmethod
    def from_arguments(cls, lsb: float, atol: float | None, rtol: float | None) -> Tolerance:
        """The user's tolerance; if it does not mention floats, these may differ by what TOSA or ONNX leaves open."""
        return cls(lsb, atol or 0.0, rtol or 0.0, None if atol is None and rtol is None else 0.0)

    def for_tensor(self, want: np.ndarray) -> Tolerance:
        """The tolerance for a tensor: with the ulps of a float tensor as a number."""
        if not self.ulps or want.dtype.kind != "f" or not want.size:
            return self
        largest = np.max(np.abs(want), initial=0, where=np.isfinite(want))
        return replace(self, atol=max(self.atol, self.ulps * float(np.spacing(largest))))


EXACT: Final = Tolerance()


class Moments(NamedTuple):
    """Sums over elements: of absolute differences, in the unit; of squares and products of the real values.

    The original's values are the signal. noise: of the squares of the differences of real values.
    """

    absolute: float = 0.0
    signal: float = 0.0
    other: float = 0.0
    product: float = 0.0
    noise: float = 0.0


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of two results: a value of `Verification.outputs`.

    Attributes:
        elements: Number of elements.
        differing: How many of them differ at all.
        largest: The largest difference, in `unit`. Infinite if only one of two floats is finite.
        unit: "LSB" (counts of the stored integers) or "absolute" (for floats).
        problem: Why the results cannot be compared. Empty if they can.
        beyond: How many elements differ by more than the tolerance.
        moments: Sums from which `mean`, `cosine` and `snr` are computed.
        histogram: For each power p of two, how many elements differ by 2**p up to less than 2**(p + 1), in `unit`.
            Infinite differences are not counted.
        unfilled: Elements that the original's kernel does not fill, such as rows behind the last detection. They are
            neither compared nor among `elements`.

    Example:
        ```python
        for (entry, name), difference in tflq.verify("in.tflite", "out.tflite").outputs.items():
            print(name, difference)  # "equal, 10 elements"
        ```
    """

    elements: int
    differing: int
    largest: float
    unit: str
    problem: str = ""
    beyond: int = field(default=0, compare=False)
    moments: Moments = field(default=Moments(), compare=False)
    histogram: Mapping[int, int] = field(default_factory=dict, compare=False)
    unfilled: int = field(default=0, compare=False)

    @property
    def equal(self) -> bool:
        """Whether every element is the same."""
        return not self.differing and not self.problem

    @property
    def accepted(self) -> bool:
        """Whether no element differs by more than the tolerance."""
        return not self.beyond and not self.problem

    @property
    def share(self) -> float:
        """Share of the elements that differ."""
        return self.differing / self.elements if self.elements else 0.0

    @property
    def mean(self) -> float:
        """Mean absolute difference, in `unit`. NaN if the results cannot be compared."""
        if self.problem:
            return math.nan
        return self.moments.absolute / self.elements if self.elements else 0.0

    @property
    def cosine(self) -> float:
        """Cosine of the angle between the real values: 1 if they are equal, NaN if one is all zeros or not finite."""
        if self.equal:
            return 1.0
        size = math.sqrt(self.moments.signal * self.moments.other)
        return self.moments.product / size if size and not self.problem else math.nan

    @property
    def snr(self) -> float:
        """Signal-to-noise ratio in dB, of the real values: infinite if they are equal, NaN if there is no signal."""
        if self.equal:
            return math.inf
        signal, noise = self.moments.signal, self.moments.noise
        if self.problem or not (signal and noise and math.isfinite(signal) and math.isfinite(noise)):
            return math.nan
        return in_decibels(signal, noise)

    def __str__(self) -> str:
        if self.problem:
            return self.problem
        if self.equal:
            return f"equal, {self.elements}{f' of {self.elements + self.unfilled}' if self.unfilled else ''} elements"
        size = f"{self.largest:g} LSB" if self.unit == "LSB" else f"{self.largest:.3g}"
        return f"up to {size}, {self.differing} of {self.elements} elements ({self.share:.2%})"

    def to_json(self) -> dict[str, Any]:
        """The numbers by name; one that is not finite is None."""
        counts = {"elements": self.elements, "differing": self.differing, "beyond": self.beyond}
        counts["unfilled"] = self.unfilled
        numbers = {"largest": self.largest, "mean": self.mean, "cosine": self.cosine, "snr_db": self.snr}
        finite = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
        words = {"unit": self.unit, "problem": self.problem, "equal": self.equal, "accepted": self.accepted}
        histogram = {str(power): count for power, count in sorted(self.histogram.items())}
        return {**counts, **finite, **words, "share": self.share, "histogram": histogram}

    def __add__(self, other: Difference) -> Difference:
        """Both together: elements add up, the larger difference counts."""
        largest = max(self.largest, other.largest) if not (self.problem or other.problem) else math.nan
        counts = self.elements + other.elements, self.differing + other.differing
        moments = Moments(*(x + y for x, y in zip(self.moments, other.moments, strict=True)))
        problem, beyond = self.problem or other.problem, self.beyond + other.beyond
        histogram = dict(Counter(self.histogram) + Counter(other.histogram))
        unfilled = self.unfilled + other.unfilled
        return Difference(*counts, largest, self.unit, problem, beyond, moments, histogram, unfilled)


def difference(
    got: np.ndarray, want: np.ndarray, tolerance: Tolerance = EXACT, quantization: Mapping[str, Any] | None = None
) -> Difference:
    """Difference of `got` from `want`. NaN equals NaN; arrays of other shape or dtype do not compare.

    quantization: "scales", "zero_points" and "axis" of stored integers, which say their real values. Without it, equal
    arrays have no moments: nothing is to be added to them.
    """
    unit = "absolute" if want.dtype.kind in "fc" else "LSB"
    if got.shape != want.shape:
        return _incomparable(want, unit, f"shape {got.shape} instead of {want.shape}")
    if got.dtype != want.dtype and not (got.dtype.kind == want.dtype.kind == "S"):
        return _incomparable(want, unit, f"{got.dtype} instead of {want.dtype}")
    if quantization is None and want.dtype.kind in "biu" and np.array_equal(got, want):
        return Difference(want.size, 0, 0.0, unit)
    scale, zero = _grid(want, quantization or {})
    tolerance = tolerance.for_tensor(want)
    total = Difference(0, 0, 0.0, unit)
    for start in range(0, want.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        grid = (g[block] if g.size > 1 else g for g in (scale, zero))
        total += _block(got.reshape(-1)[block], want.reshape(-1)[block], unit, tolerance, *grid)
    return total


def _incomparable(want: np.ndarray, unit: str, problem: str) -> Difference:
    return Difference(want.size, want.size, math.nan, unit, problem, want.size)


def _grid(want: np.ndarray, quantization: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Scale and zero point, one for all or one for each element."""
    scales = np.asarray(quantization.get("scales") or [1.0], np.float64)
    zeros = np.asarray(quantization.get("zero_points") or [0], np.float64)
    axis = int(quantization.get("axis", 0))
    if scales.size == 1 or want.dtype.kind not in "iu" or want.shape[axis : axis + 1] != scales.shape:
        return scales[:1], zeros[:1]
    places = np.broadcast_to(
        np.arange(scales.size).reshape([-1 if i == axis else 1 for i in range(want.ndim)]), want.shape
    ).reshape(-1)
    return scales[places], np.broadcast_to(zeros, scales.shape)[places]


def _block(
    got: np.ndarray, want: np.ndarray, unit: str, tolerance: Tolerance, scale: np.ndarray, zero: np.ndarray
) -> Difference:
    """The difference of two vectors of a type."""
    same = got == want
    if unit == "absolute":
        same |= np.isnan(got) & np.isnan(want)
    differing = int(want.size - np.count_nonzero(same))
    if want.dtype.kind == "S":
        return Difference(want.size, differing, float(differing > 0), unit, "", differing)
    with np.errstate(all="ignore"):
        a, b = (((_wide(x) - zero) * scale if unit == "LSB" else _wide(x)) for x in (got, want))
        signal, other = float(np.vdot(b, b).real), float(np.vdot(a, a).real)
        if not differing:
            return Difference(want.size, 0, 0.0, unit, "", 0, Moments(0.0, signal, other, signal, 0.0))
        gap = _gaps(got, want, same)
        share = tolerance.rtol * np.where(np.isfinite(want), np.abs(_wide(want)), 0.0)
        most = tolerance.lsb if unit == "LSB" else tolerance.atol + share
        beyond = int(np.count_nonzero(gap > most))
        noise = np.where(same, 0.0, np.abs(a - b))
        products = float(np.vdot(b, a).real), float(np.vdot(noise, noise))
        moments = Moments(float(gap.sum()), signal, other, *products)
        return Difference(want.size, differing, float(gap.max()), unit, "", beyond, moments, _histogram(gap))


def _histogram(gap: np.ndarray) -> dict[int, int]:
    """Number of differences above 0 by power of two."""
    _, exponents = np.frexp(gap[(gap > 0) & np.isfinite(gap)])
    powers, counts = np.unique(exponents - 1, return_counts=True)
    return dict(zip(powers.tolist(), counts.tolist(), strict=True))


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _gaps(got: np.ndarray, want: np.ndarray, same: np.ndarray) -> np.ndarray:
    """Absolute differences; infinite where only one is NaN."""
    if want.dtype.kind in "biu" and want.dtype.itemsize < 8:
        return np.abs(got.astype(np.int64) - want.astype(np.int64)).astype(np.float64)
    gap = np.abs(_wide(got) - _wide(want))
    return np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))


# What a comparison found.


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


@dataclass(frozen=True, slots=True)
class Layers:
    """Results of operators, compared by tensor name: `Verification.layers`.

    Attributes:
        results: Number of operator results in the original.
        compared: How many of them were compared.
        diverging: Those that differ, in the order of operators. One that differs at several shapes of the inputs is
            listed once for each.
        every: All that were compared, in the same way.
    """

    results: int
    compared: int
    diverging: tuple[Divergence, ...]
    every: tuple[Divergence, ...] = ()

    @property
    def first(self) -> Divergence | None:
        """The first result that differs: where to look."""
        return self.diverging[0] if self.diverging else None

    def to_json(self) -> dict[str, Any]:
        """The comparison as in `tflq verify --json`: docs/json.md."""
        diverging = [d.to_json() for d in self.diverging]
        return {"results": self.results, "compared": self.compared, "diverging": diverging}


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
        layers: Results of operators compared. None if not asked for.
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
        uncompared: Signatures that are not compared, and why.
        operands: Operands of post-processing operators, which drop most of what they read, compared on all inputs.

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
    uncompared: list[Uncompared] = field(default_factory=list)
    operands: list[Divergence] = field(default_factory=list)

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
        reasons = [*self.incomparable, *skipped, *map(str, self.uncompared)]
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
            "top1": [each.to_json() for each in self.top1],
            "time": None if self.time is None else [each.to_json() for each in self.time],
            "layers": None if self.layers is None else self.layers.to_json(),
        }
