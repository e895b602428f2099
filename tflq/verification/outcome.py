"""What a comparison of two models found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, Final, Literal

import numpy as np
import tflite

from tflq.verification.difference import EXACT, Difference, Tolerance
from tflq.verification.inputs import (
    EDGES,
    GivenInputs,
    Options,
    Side,
    bound,
    chosen,
    given,
    in_a_row,
    is_open,
    loaded,
    made,
    open_in_both,
)
from tflq.verification.inputs import Shapes as InputsShapes
from tflq.verification.layers import AnyRunner, RunTime
from tflq.verification.model_file import Graph
from tflq.verification.runner import RunError
from tflq.verification.tflite_runner import TfliteRunner

JSON_VERSION = 1

Verdict = Literal["equal", "accepted", "differs", "failed"]
Shapes = tuple[tuple[str, tuple[int, ...]], ...]


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
    shapes: Shapes = ()

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
        found = self.difference
        return found.equal or not (found.problem or (self.within is not None and found.largest > self.within))

    def to_json(self) -> dict[str, Any]:
        known = {"reason": self.reason, "within": self.within, "accepted": self.accepted}
        return super(Expected, self).to_json() | known


@dataclass(frozen=True, slots=True)
class Apart:
    """Operators of a model that other kernels ran than those asked for, by index. `whole`: why these ran all of it."""

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
class KernelShare:
    """What of an output's difference is one of kernels: how far the `original` on the kernels asked for is from itself
    on the reference kernels, and how far the `other` model is from these."""

    entry: str
    name: str
    original: Difference
    other: Difference

    def __str__(self) -> str:
        where = f"signature '{self.entry}', " if self.entry else ""
        return f"{where}output '{self.name}': {self._own}; {self._rest}"

    @property
    def _own(self) -> str:
        if self.original.equal:
            return "the original gives the same on these kernels and on the reference ones"
        return f"the original itself differs between these kernels and the reference ones ({self.original})"

    @property
    def _rest(self) -> str:
        if self.other.equal:
            return "the other model equals the original on the reference kernels"
        return f"the other model differs from the original on the reference kernels, too ({self.other})"

    def to_json(self) -> dict[str, Any]:
        return {
            "entry": self.entry,
            "name": self.name,
            "original": self.original.to_json(),
            "other": self.other.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Agreement:
    """For how many inputs, of all that were given, both models have the highest score at the same class."""

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

    results: int  # operator results that the original has
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


@dataclass
class Verification:
    """The result of `tflq.verify`. It is true only if the models are `equal`; `passed` also allows accepted
    differences.

    Attributes:
        a: Path of the original.
        b: Path of the other model.
        resolver: The kernels that were asked for.
        interpreter: What ran the models.
        failures: Models that could not be opened, aborted or took too long, by name, and what happened.
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

    def __bool__(self) -> bool:
        return self.equal

    @property
    def verdict(self) -> Verdict:
        """The result in a word: `equal`; `accepted` (there are differences, but none beyond the tolerance or what is
        expected of an operator); `differs`; or `failed` (something could not run, so nobody knows).
        """
        ran = any(not run.skipped for run in self.runs)
        if self.failures or not (ran or self.interface):
            return "failed"
        found = [d for run in self.runs for _, d in run.outputs]
        found += [d.difference for d in (self.layers.diverging if self.layers else ())]
        if self.interface or not all(d.accepted for d in found) or not all(e.accepted for e in self.expected):
            return "differs"
        return "equal" if all(d.equal for d in (*found, *(e.difference for e in self.expected))) else "accepted"

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
        found: dict[tuple[str, str], list[Difference]] = {}
        for run in self.runs:
            for name, d in run.outputs:
                found.setdefault((run.entry, name), []).append(d)
        return {key: reduce(add, differences) for key, differences in found.items()}

    def to_json(self) -> dict[str, Any]:
        """The result in a versioned JSON form: docs/json.md."""
        outputs = [{"entry": e, "name": n, **d.to_json()} for (e, n), d in self.outputs.items()]
        return {
            "format": "tflq.verification",
            "version": JSON_VERSION,
            "a": self.a,
            "b": self.b,
            "interpreter": self.interpreter,
            "resolver": self.resolver,
            "verdict": self.verdict,
            "tolerance": self._tolerance,
            "failures": self.failures,
            "interface": self.interface,
            "outputs": outputs,
            "runs": [run.to_json() for run in self.runs],
            "expected": [each.to_json() for each in self.expected],
            "apart": [each.to_json() for each in self.apart],
            "notes": self.notes,
            "cut": self.cut,
            "kernels": [each.to_json() for each in self.kernels],
            "top1": [each.to_json() for each in self.top1],
            "time": None if self.time is None else [each.to_json() for each in self.time],
            "layers": None if self.layers is None else self.layers.to_json(),
        }

    @property
    def _tolerance(self) -> dict[str, float]:
        accepted = self.tolerance
        return {"max_lsb": accepted.lsb, "atol": accepted.atol, "rtol": accepted.rtol, "ulps": accepted.ulps or 0.0}


# The sets of inputs that two models run on: those that are given, or ones that are made, at shapes that both take.


_FILTERS: Final = {
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "CONV_3D": "Conv3DOptions",
    "TRANSPOSE_CONV": "",
}
"""Operators whose second operand is a filter, and the options that say how it is dilated."""
_POOLS: Final = ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")


@dataclass(frozen=True)
class Case:
    """One set of inputs of an entry."""

    key: str
    name: str
    arrays: list[np.ndarray]
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    step: int | None = None
    """How many cases before it leave it the state that it starts with; None if it stands alone."""


class Cases:
    """The cases of an entry, by the options; `notes` say what they leave out."""

    def __init__(self, options: Options) -> None:
        self.notes: list[str] = []
        self._options = options

    def __call__(self, a: AnyRunner, b: AnyRunner, key: str) -> Iterator[Case]:
        side, options = a.entries[key]["inputs"], self._options
        if options.inputs is not None:
            for name, source in self._given:
                yield Case(key, name, given(side, source))
            return
        every = self._shapes(a, key, open_in_both(side, b.entries[key]["inputs"]))
        for i, shapes in enumerate(every):
            named = tuple(zip((name for name, _ in side), shapes, strict=True))
            for name, arrays in made(side, options.seeds, shapes, options.seed):
                if i == 0 or name not in EDGES:
                    yield Case(key, name, arrays, named)
        if self._with_state(a, b):
            named = tuple(zip((name for name, _ in side), every[0], strict=True))
            for step, (name, arrays) in enumerate(in_a_row(side, every[0], options.seed)):
                yield Case(key, name, arrays, named, step)

    def _with_state(self, a: AnyRunner, b: AnyRunner) -> bool:
        """Whether runs in a row are to be compared."""
        if not (a.has_state or b.has_state):
            return False
        if a.keeps_state and b.keeps_state:
            return True
        self.notes.append("only first runs are compared: branches or loops of a TOSA file write variables")
        return False

    @cached_property
    def _given(self) -> list[tuple[str, GivenInputs]]:
        assert self._options.inputs is not None
        return loaded(self._options.inputs)

    def _shapes(self, a: AnyRunner, key: str, side: Side) -> list[InputsShapes]:
        """The shapes that an entry runs with: one choice, or two where the file leaves dims open."""
        options = self._options
        stated = bound(side, options.batch, options.shapes)
        if not isinstance(a, TfliteRunner) or not is_open(side):
            return [stated]
        fixed = [name in options.shapes for name, _ in side]
        open_ones = [(name, d) for (name, d), kept in zip(side, fixed, strict=True) if not kept]
        if not any(-1 in d["shape_signature"][options.batch is not None :] for _, d in open_ones):
            return [stated]
        graph = a.file.graphs[a.file.entries[key].graph]
        trial = TfliteRunner(a.path, a.kernels, options.timeout)
        try:
            runs = partial(self._runs, trial, key, side)
            found = chosen(side, largest_window(graph), stated, fixed, options.batch, runs)
        finally:
            trial.close()
        if not found:
            self.notes.append("open dims are 1: the original does not run with other sizes; give --shape")
        return found or [stated]

    def _runs(self, trial: TfliteRunner, key: str, side: Side, shapes: InputsShapes) -> bool:
        """Whether a model runs with inputs of these shapes: on any, since some values are none for it."""
        for _, arrays in made(side, 1, shapes):
            try:
                trial.run(key, arrays)
            except RunError as error:
                if error.fatal:
                    return False
            else:
                return True
        return False


def largest_window(graph: Graph) -> int:
    """The largest extent of a window that the operators of a graph slide over their operands."""
    return max((extent for i in range(len(graph.operators)) for extent in _extents(graph, i)), default=1)


def _extents(graph: Graph, index: int) -> Iterator[int]:
    op = graph.operators[index]
    if op.opcode in _POOLS:
        options = _options(graph, index, "Pool2DOptions")
        yield from (options.FilterHeight(), options.FilterWidth()) if options else ()
    elif op.opcode in _FILTERS and len(op.inputs) > 1:
        name, shape = _FILTERS[op.opcode], graph.tensor(op.inputs[1]).shape
        options = _options(graph, index, name) if name else None
        dilations = (options.DilationHFactor(), options.DilationWFactor()) if options else (1, 1)
        window = shape[:3] if op.opcode == "CONV_3D" else shape[1:3]
        yield from ((extent - 1) * max(dilations) + 1 for extent in window)


def _options(graph: Graph, index: int, name: str) -> Any:
    """The options of an operator; None if it states none."""
    found = graph.table.Operators(index).BuiltinOptions()
    if found is None:
        return None
    options = getattr(tflite, name)()
    options.Init(found.Bytes, found.Pos)
    return options
