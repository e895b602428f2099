"""Running two models on the same inputs and comparing what they give."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from tflq.errors import FileError
from tflq.flatbuffer.foreign import folder_error, refuse_foreign
from tflq.flatbuffer.identify import identify
from tflq.flatbuffer.layout import TOSA
from tflq.verification.alignment import align, tosa_differences
from tflq.verification.difference import EXACT, Difference, Tolerance, difference
from tflq.verification.division import divide
from tflq.verification.expected import Expectation, ReportLike, reported
from tflq.verification.inputs import EDGES, GivenInputs, Side, given, in_a_row, loaded, made
from tflq.verification.interface import allocation_differences, interface_differences, same_inputs
from tflq.verification.layers import AnyRunner, Named, Plan, plan, seen_as
from tflq.verification.outcome import Divergence, Expected, Layers, Run, Verification
from tflq.verification.recorded import Recorded
from tflq.verification.runner import Resolver, RunError
from tflq.verification.shapes import Shapes, bound, chosen, is_open, open_in_both
from tflq.verification.tflite_runner import TfliteRunner
from tflq.verification.timing import run_time
from tflq.verification.tosa_runner import TosaRunner
from tflq.verification.windows import largest_window

__all__ = ["Options", "Source", "compare_models"]

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
Progress = Callable[[str, int, int], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """How two models are compared: the options of `verify`, by the same names; and outputs of the original that are
    `recorded`, which spare it a run where nothing else of it is looked at."""

    inputs: GivenInputs | str | os.PathLike[str] | None = None
    seeds: int = 2
    seed: int = 0
    layers: bool = False
    batch: int | None = None
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    resolver: Resolver = "reference"
    interface: bool = True
    tolerance: Tolerance = EXACT
    report: ReportLike | None = None
    recorded: Recorded | None = None
    time: bool = False
    timeout: float = 600.0
    progress: Progress = lambda _, __, ___: None


@dataclass(frozen=True)
class Case:
    """One set of inputs of an entry."""

    key: str
    name: str
    arrays: list[np.ndarray]
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    step: int | None = None
    """How many cases before it leave it the state that it starts with; None if it stands alone."""


@dataclass(frozen=True)
class _Inner:
    """A case whose operator results are to be compared, and the values that the original feeds to the other model."""

    case: Case
    plan: Plan
    fed: dict[str, np.ndarray]


def compare_models(a: Source, b: Source, options: Options) -> Verification:
    """What `verify` does."""
    with ExitStack() as stack:
        path_a, path_b = (stack.enter_context(_path(source)) for source in (a, b))
        result = Verification(_label(a, path_a), _label(b, path_b), options.resolver, tolerance=options.tolerance)
        result.time = [] if options.time else None
        _Comparison(result, options, stack).run(path_a, path_b)
        return result


@contextmanager
def _path(source: Source) -> Iterator[str]:
    """The path of a source; bytes become a temporary file."""
    if isinstance(source, (str, os.PathLike)):
        if Path(source).is_dir():
            raise folder_error(os.fspath(source))
        if not Path(source).is_file():
            raise FileError(os.fspath(source), "there is no such file")
        refuse_foreign(source)
        yield os.fspath(source)
        return
    with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
        path = Path(folder, "model")
        path.write_bytes(source if isinstance(source, (bytes, bytearray, memoryview)) else source.read())
        yield str(path)


def _label(source: Source, path: str) -> str:
    return path if isinstance(source, (str, os.PathLike)) else str(getattr(source, "name", "") or "<bytes>")


def _open(path: str, resolver: Resolver, timeout: float) -> AnyRunner:
    """A TOSA file on the reference model, anything else in the interpreter."""
    return TosaRunner(path, timeout) if identify(path) is TOSA else TfliteRunner(path, resolver, timeout)


class _Comparison:
    """One comparison under way: fills in `result`."""

    def __init__(self, result: Verification, options: Options, stack: ExitStack) -> None:
        self.result = result
        self._options = options
        self._stack = stack
        self._pool = stack.enter_context(ThreadPoolExecutor(2))
        self._fatal = False
        self._done = self._total = 0
        self._expected: dict[tuple[str, str], Expected] = {}
        self._inner: list[_Inner] = []
        self._to_time: list[Case] = []

    def run(self, path_a: str, path_b: str) -> None:
        reports = reported(self._options.report) if self._options.report is not None else {}
        opened = partial(_open, resolver=self._options.resolver, timeout=self._options.timeout)
        openings = [self._pool.submit(opened, path) for path in (path_a, path_b)]
        runners = [self._get(opening, label) for opening, label in zip(openings, self._labels, strict=True)]
        for runner in runners:
            if runner is not None:
                self._stack.callback(runner.close)
        a, b = runners
        if a is None or b is None:
            return
        self.result.interpreter = " and ".join(dict.fromkeys((a.interpreter, b.interpreter)))
        for key in self._comparable(a, b):
            if not self._fatal:
                self._entry(a, b, key, reports)
        self.result.expected = list(self._expected.values())
        if self._options.layers and not self._fatal:
            self._layers(a, b)
        if self._options.time and not self._fatal:
            self._say("time")
            self.result.time = [run_time(a, b, case.key, case.arrays) for case in self._to_time]

    @property
    def _labels(self) -> tuple[str, str]:
        return self.result.a, self.result.b

    def _comparable(self, a: AnyRunner, b: AnyRunner) -> list[str]:
        """The entries to run. A single signature of the first subgraph only names what "" runs by position."""
        result, interface = self.result, self._options.interface
        if isinstance(a, TfliteRunner) and isinstance(b, TosaRunner):
            key, result.interface = align(a, a.file, b)
            return [] if key is None or result.interface else [key]
        if isinstance(a, TosaRunner) and isinstance(b, TfliteRunner):
            key, result.interface = align(b, b.file, a)
            return [] if key is None or result.interface else [key]
        keys = list(a.entries) if interface else [""]
        if interface or not same_inputs(a.entries, b.entries, "", fit=True):
            if isinstance(a, TfliteRunner) and isinstance(b, TfliteRunner):
                result.interface = interface_differences(a.file, b.file)
                if interface and not result.interface:
                    result.interface = allocation_differences(a.entries, b.entries)
            else:
                result.interface = tosa_differences(a.entries, b.entries)
        keys = keys if len(keys) > 2 else keys[:1]
        return [key for key in keys if same_inputs(a.entries, b.entries, key, fit=not interface)]

    def _get(self, future: Future[T], label: str) -> T | None:
        """The outcome of a job; None if it failed, which is then on record."""
        try:
            return future.result()
        except RunError as error:
            self.result.failures.append(f"{label}: {error}")
            self._fatal |= error.fatal
            return None

    def _entry(self, a: AnyRunner, b: AnyRunner, key: str, reports: Mapping[tuple[int, int], Expectation]) -> None:
        """Runs an entry of both on all its inputs."""
        divided = divide(a, b, key, reports, self._labels, self._options.resolver)
        self.result.apart += divided.apart
        self.result.notes += divided.notes
        cases = list(self._cases(a, b, key))
        self._total += len(cases)
        wanted = set()
        for case in cases:
            self._say(f"inputs '{case.name}'")
            fed = self._run(a, b, case, divided.expected)
            if self._fatal:
                return
            if fed is not None and key not in (timed.key for timed in self._to_time):
                self._to_time.append(case)
            if fed is not None and self._options.layers and case.shapes not in wanted:
                wanted.add(case.shapes)
                self._inner.append(_Inner(case, plan(a, b, key, divided.expected), fed))
            self._done += 1
            if fed is None and case.step is not None:
                return  # the two sides may have kept different state

    def _say(self, what: str) -> None:
        self._options.progress(what, self._done, self._total)

    def _cases(self, a: AnyRunner, b: AnyRunner, key: str) -> Iterator[Case]:
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
        self.result.notes.append("only first runs are compared: branches or loops of a TOSA file write variables")
        return False

    @cached_property
    def _given(self) -> list[tuple[str, GivenInputs]]:
        assert self._options.inputs is not None
        return loaded(self._options.inputs)

    def _shapes(self, a: AnyRunner, key: str, side: Side) -> list[Shapes]:
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
            self.result.notes.append("open dims are 1: the original does not run with other sizes; give --shape")
        return found or [stated]

    def _runs(self, trial: TfliteRunner, key: str, side: Side, shapes: Shapes) -> bool:
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

    def _run(
        self, a: AnyRunner, b: AnyRunner, case: Case, expected: Mapping[str, tuple[Named, Expectation]]
    ) -> dict[str, np.ndarray] | None:
        """Runs both on a set of inputs; answers what the original fed to the other, None where either did not run."""
        ahead = None if expected else self._pool.submit(b.run, case.key, case.arrays, {}, case.step)
        try:
            want = self._original(a, case) if ahead else a.run(case.key, case.arrays, {}, case.step)
        except RunError as error:
            self._original_failed(case, error, ahead)
            return None
        fed = a.cut(case.key) if isinstance(a, TfliteRunner) else {}
        ahead = ahead or self._pool.submit(b.run, case.key, case.arrays, fed, case.step)
        got = self._get(ahead, self._place(self.result.b, case))
        if got is None:
            return None
        pairs = zip(a.entries[case.key]["outputs"], got, want, strict=False)  # one missing is a difference already
        outputs = [(name, self._difference(g, w, description)) for (name, description), g, w in pairs]
        self.result.runs.append(Run(case.key, case.name, tuple(outputs), shapes=case.shapes))
        if fed and isinstance(b, TfliteRunner):
            self._record_expected(case.key, expected, fed, b.cut(case.key))
        return fed

    def _original(self, a: AnyRunner, case: Case) -> list[np.ndarray]:
        """The original's outputs; recorded ones, unless inner tensors are wanted, too. RunError if it does not run."""
        recorded, kernels = self._options.recorded, self._options.resolver
        if recorded is None or self._options.layers or case.step is not None or not isinstance(a, TfliteRunner):
            return a.run(case.key, case.arrays, {}, case.step)
        want = recorded.get(kernels, case.key, case.arrays)
        if want is None:
            want = a.run(case.key, case.arrays, {})
            recorded.put(kernels, case.key, case.arrays, want)
        return want

    def _difference(
        self, got: np.ndarray, want: np.ndarray, description: Mapping[str, Any] | None = None
    ) -> Difference:
        return difference(seen_as(got, want.dtype), want, self._options.tolerance, description)

    def _record_expected(
        self,
        key: str,
        expected: Mapping[str, tuple[Named, Expectation]],
        want: Mapping[str, np.ndarray],
        got: Mapping[str, np.ndarray],
    ) -> None:
        """Adds the differences of results of which some are expected to those of other runs."""
        for name in [name for name in want if name in got]:
            (operator, why), found = expected[name], self._difference(got[name], want[name])
            if (key, name) in self._expected:
                found = self._expected[key, name].difference + found
            place = operator.operator, operator.opcode, name
            self._expected[key, name] = Expected(key, *place, found, why.reason, why.within)

    def _original_failed(self, case: Case, error: RunError, ahead: Future[list[np.ndarray]] | None) -> None:
        """An error on some inputs (an index out of range, say) is no difference; an abort or a timeout ends the
        comparison.
        """
        wait([ahead] if ahead else [])
        if error.fatal:
            self.result.failures.append(f"{self._place(self.result.a, case)}: {error}")
            self._fatal = True
        self.result.runs.append(Run(case.key, case.name, skipped=str(error), shapes=case.shapes))

    def _place(self, label: str, case: Case) -> str:
        return label + (f", signature '{case.key}'" if case.key else "") + f", inputs '{case.name}'"

    def _layers(self, a: AnyRunner, b: AnyRunner) -> None:
        """Compares operator results, each chunk of them in copies of the models that return them."""
        for runner in (a, b):
            runner.release()
        self._total += sum(len(inner.plan.chunks) for inner in self._inner)
        results: dict[str, int] = {}
        every: list[Divergence] = []
        for inner in self._inner:
            results[inner.case.key] = inner.plan.results
            for chunk in inner.plan.chunks:
                self._say("operator results")
                if self._fatal:
                    break
                try:
                    every += self._chunk(a, b, inner, chunk)
                except RunError as error:
                    self.result.failures.append(f"{self._place('operator results', inner.case)}: {error}")
                    self._fatal |= error.fatal
                    continue
                self._done += 1
        compared = {(d.entry, d.tensor) for d in every}
        diverging = tuple(d for d in every if not d.difference.equal)
        self.result.layers = Layers(sum(results.values()), len(compared), diverging, tuple(every))

    def _chunk(self, a: AnyRunner, b: AnyRunner, inner: _Inner, chunk: Sequence[Named]) -> list[Divergence]:
        """The differences of some operator results; one that has no data after a run, in either, is not compared."""
        key, names = inner.case.key, [named.tensor for named in chunk]
        found: list[Divergence] = []
        with a.fetching(key, names) as before, b.fetching(key, names) as after:
            jobs = [self._pool.submit(fetcher.run, inner.case.arrays, inner.fed) for fetcher in (before, after)]
            wait(jobs)
            for job in jobs:
                job.result()
            for named in chunk:
                fetched = self._pool.submit(after.fetch, named.tensor)
                want, got = before.fetch(named.tensor), fetched.result()
                if want is not None and got is not None:
                    apart = self._difference(got, want)
                    found.append(Divergence(key, named.operator, named.opcode, named.tensor, apart))
        return found
