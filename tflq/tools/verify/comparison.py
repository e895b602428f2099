"""Running two models on the same inputs and comparing what they give."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np

from tflq.base.errors import (
    InvalidModelError,
    OptionError,
    Reason,
    TflqError,
)
from tflq.formats.backend import opening
from tflq.tools.verify.difference import Difference, difference
from tflq.tools.verify.entries import comparable
from tflq.tools.verify.file_runner import FileRunner
from tflq.tools.verify.inputs import Case, Cases, Options, Source
from tflq.tools.verify.interface import Expectation, broken, reported
from tflq.tools.verify.kernels import exactness_of, mismatch, resolver_for
from tflq.tools.verify.layers import (
    AnyRunner,
    Cut,
    Named,
    Plan,
    cut_of,
    divide,
    plan,
    renumber,
    seen_as,
    written,
)
from tflq.tools.verify.metrics import Scorings
from tflq.tools.verify.model_file import entry_of
from tflq.tools.verify.outcome import (
    Agreement,
    Divergence,
    Expected,
    KernelShare,
    Layers,
    Run,
    Uncompared,
    Verification,
    agreement,
)
from tflq.tools.verify.postprocessing import FilledOutputs, Rows, cropped, operands_of
from tflq.tools.verify.runner import Opening, Resolver, RunError
from tflq.tools.verify.runtimes import MicroRunner, OnnxRunner
from tflq.tools.verify.sources import label_of, path_of
from tflq.tools.verify.tflite_runner import TfliteRunner
from tflq.tools.verify.timing import run_time
from tflq.tools.verify.within import steps_within, with_sums

T = TypeVar("T")

_FORMATS: Final = {"tflm": "tflite"}
"""Format that a runtime runs, where it is not ONNX."""


@dataclass(frozen=True)
class _Inner:
    """A case whose operator results are to be compared, and the values that the original feeds to the other model."""

    case: Case
    plan: Plan
    fed: dict[str, np.ndarray]


def compare_models(a: Source, b: Source, options: Options, *, on_named_kernels: bool = False) -> Verification:
    """Compares two models as `verify` does, without checking the options. on_named_kernels: on the kernels of the set
    that `b` names, if it names one."""
    with ExitStack() as stack:
        path_a, path_b = (stack.enter_context(path_of(source)) for source in (a, b))
        if on_named_kernels:
            options = _on_named_kernels(options, path_b)
        result = Verification(label_of(a), label_of(b), options.resolver, tolerance=options.tolerance)
        result.time = [] if options.time else None
        _Comparison(result, options, stack).run(path_a, path_b)
        return result


def _on_named_kernels(options: Options, path: str) -> Options:
    try:
        exactness = exactness_of(path)
    except InvalidModelError:
        raise
    except TflqError:
        return options  # the comparison says what is wrong with the file
    return options if exactness is None else replace(options, resolver=resolver_for(exactness), exactness=exactness)


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
        self._kernels: dict[tuple[str, str], KernelShare] = {}
        self._top1: dict[tuple[str, str], Agreement] = {}
        self._in_layers = options.layers
        self._scorings = Scorings(options.metrics)
        self._inner: list[_Inner] = []
        self._ran: dict[str, list[Case]] = {}
        self._filled: dict[str, FilledOutputs] = {}
        self._cases = Cases(options)
        self._cut: Cut | None = None
        self._on_reference: AnyRunner | None = None
        self._to_time: list[Case] = []

    def run(self, path_a: str, path_b: str) -> None:
        reports = reported(self._options.report) if self._options.report is not None else {}
        a, b = self._opened(path_a, path_b)
        if a is None or b is None or self._has_other_kernels(a):
            return
        self.result.interpreter = " and ".join(dict.fromkeys((a.interpreter, b.interpreter)))
        if isinstance(b, FileRunner):
            self.result.inexact = b.inexact
            self._in_layers |= b.shows_layers and self._options.recorded is None
        self._settle_tolerance(a, b)
        if self._cut is not None:
            reports = self._cut.reports(reports)
        common = comparable(a, b, interface=self._options.interface)
        self.result.interface = common.interface
        self.result.uncompared += common.uncompared
        for key in self._with_samples(a, b, common.keys):
            if self._fatal:
                self._leave_out([key], "the comparison ended before it")
            else:
                self._entry(a, b, key, reports)
        self.result.notes += self._cases.notes
        self.result.expected = list(self._expected.values())
        self.result.kernels = list(self._kernels.values())
        self.result.top1 = list(self._top1.values())
        self.result.scores = self._scorings.scores()
        if self._in_layers and not self._fatal:
            self._layers(a, b)
        if self._options.time and not self._fatal:
            self._say("time")
            self.result.time = [run_time(a, b, case.key, case.arrays) for case in self._to_time]
        if self._cut is not None:
            renumber(self.result, self._cut)

    def _opened(self, path_a: str, path_b: str) -> tuple[AnyRunner | None, AnyRunner | None]:
        """Both models; of the original only the part before the cut, if the other was cut."""
        openings = [self._pool.submit(self._open, path_a), self._pool.submit(self._open_other, path_b)]
        wait(openings)
        if openings[1].exception() is None and opening(path_a).interpreted:
            self._cut = cut_of(path_a, openings[1].result())
        if self._cut is None:
            return self._get_original(openings[0]), self._get(openings[1], self.result.b)
        self.result.cut = self._cut.names
        with suppress(RunError):  # what comes after the cut need not run
            openings[0].result().release()
        return self._get_original(self._pool.submit(self._open_cut, self._cut)), openings[1].result()

    def _has_other_kernels(self, a: AnyRunner) -> bool:
        """Whether the original runs on other kernels than the other model reproduces, which is noted."""
        exactness = self._options.exactness
        if exactness is None or not isinstance(a, TfliteRunner):
            return False
        self.result.other_kernels = mismatch(exactness, self._options.resolver, self._options.timeout, beside=a)
        return bool(self.result.other_kernels)

    def _open_cut(self, cut: Cut) -> AnyRunner:
        """The original up to a cut."""
        return self._open(self._stack.enter_context(written(cut)))

    def _open(self, path: str, resolver: Resolver | None = None) -> AnyRunner:
        """A file on what runs its format; open until the comparison ends."""
        options = self._options
        format = opening(path)
        if not format.runner:
            raise OptionError(Reason(f"there is nothing that runs .{format.name} files", path))
        kind: type[AnyRunner] = pkgutil.resolve_name(format.runner)
        runner = kind.open_file(path, Opening(options.timeout, resolver or options.resolver, options.cc))
        self._stack.callback(runner.close)
        return runner

    def _open_other(self, path: str) -> AnyRunner:
        """The other model, in the runtime that is asked for. OptionError if that does not run such files."""
        options = self._options
        if options.runtime is None:
            return self._open(path)
        format = _FORMATS.get(options.runtime, "onnx")
        if opening(path).name != format:
            what = f"runtime '{options.runtime}' runs .{format} files"
            raise OptionError(
                Reason(what, path, value=options.runtime, remedy="convert the model to one, or leave it out")
            )
        runner: AnyRunner
        if format == "tflite":
            runner = MicroRunner(path, options.timeout)
        else:
            runner = OnnxRunner(path, options.timeout, options.runtime)
        self._stack.callback(runner.close)
        return runner

    def _settle_tolerance(self, *runners: AnyRunner) -> None:
        """Says in numbers what TOSA or ONNX leaves open."""
        if self.result.tolerance.ulps is None:
            allowed = [runner.ulps() for runner in runners if isinstance(runner, FileRunner)]
            if None in allowed:
                allowed += [runner.ulps() for runner in runners if isinstance(runner, TfliteRunner)]
            most = max((ulps for ulps in allowed if ulps is not None), default=0)
            self.result.tolerance = replace(self.result.tolerance, ulps=float(most))

    @property
    def _labels(self) -> tuple[str, str]:
        return self.result.a, self.result.b

    def _with_samples(self, a: AnyRunner, b: AnyRunner, keys: list[str]) -> list[str]:
        """The entries that the user's samples are for. OptionError if they are for none."""
        misfits = {key: self._cases.misfit(a, b, key) for key in keys} if len(keys) > 1 else {}
        errors = {key: error for key, error in misfits.items() if error is not None}
        if errors and len(errors) == len(keys):
            raise next(iter(errors.values()))
        for key, error in errors.items():
            self._leave_out([key], f"the samples are not for it: {error}")
        return [key for key in keys if key not in errors]

    def _leave_out(self, keys: Iterable[str], reason: str) -> None:
        self.result.uncompared += [Uncompared(key, reason) for key in keys]

    def _get_original(self, future: Future[T]) -> T | None:
        """The outcome of a job of the original; None if it failed: then there is nothing to compare with."""
        try:
            return future.result()
        except RunError as error:
            self.result.incomparable.append(f"{self.result.a}: the original does not run: {error}")
            self._fatal |= error.fatal
            return None

    def _get(self, future: Future[T], label: str) -> T | None:
        """The outcome of a job; None if it failed, which is then recorded."""
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
        self._filled[key] = FilledOutputs(a, key)
        cases: Iterable[Case] = self._cases(a, b, key)
        if self._options.inputs is None:
            cases = known = list(cases)
            self._total += len(known)
        operands = list(operands_of(a, key))
        wanted = set()
        ran: list[tuple[Case, dict[str, np.ndarray]]] = []
        for case in cases:
            self._say(f"inputs '{case.name}'")
            fed = self._run(a, b, case, divided.expected)
            if self._fatal:
                break
            if fed is not None and case.step is None and operands:
                ran.append((case, fed))
            if fed is not None and key not in (timed.key for timed in self._to_time):
                self._to_time.append(case)
            if fed is not None and self._in_layers:
                self._ran.setdefault(key, []).append(case)
                if case.shapes not in wanted:
                    wanted.add(case.shapes)
                    self._inner.append(_Inner(case, plan(a, b, key, divided.expected), fed))
            self._done += 1
            if fed is None and case.step is not None:
                break  # the two sides may have kept different state
        self.result.notes += self._filled[key].notes
        if not self._fatal:
            self._operands(a, b, key, operands, ran)

    def _operands(
        self,
        a: AnyRunner,
        b: AnyRunner,
        key: str,
        wanted: Sequence[Named],
        ran: Sequence[tuple[Case, dict[str, np.ndarray]]],
    ) -> None:
        """Compares what post-processing operators read, on all inputs that both ran on."""
        there = a.names(key).keys() & {*b.names(key), *b.held(key)}
        operands = [each for each in wanted if each.tensor in there]
        left_out = [each for each in wanted if each.tensor not in there]
        self.result.notes += [
            f"'{each.tensor}', which {each.opcode} (operator {each.operator}) reads, is not compared: the second model "
            "has no tensor of that name"
            for each in left_out
        ]
        if not operands:
            return
        divergences: dict[str, Divergence] = {}
        try:
            for each in self._chunk(a, b, key, operands, ran):
                known = divergences.get(each.tensor)
                total = each.difference if known is None else known.difference + each.difference
                divergences[each.tensor] = replace(each, difference=total)
        except RunError as error:
            self.result.notes.append(f"what post-processing operators read is not compared: {error}")
        self.result.operands += divergences.values()

    def _say(self, what: str) -> None:
        self._options.progress(what, self._done, self._total)

    def _run(
        self, a: AnyRunner, b: AnyRunner, case: Case, expected: Mapping[str, tuple[Named, Expectation]]
    ) -> dict[str, np.ndarray] | None:
        """Runs both on a set of inputs. Returns what the original fed to the other; None if either did not run."""
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
        self._compare(a, case, got, want, self._filled[case.key].rows(want, case.arrays, fed))
        if case.sample is not None:
            sides = ((a, want), (b, got))
            described = [(x, side.entries[case.key]["outputs"]) for side, x in sides]
            self._scorings.add(case.key, self._cases.labels[case.key], case.sample, *described)
        if fed:
            self._record_expected(case.key, expected, fed, b.cut(case.key))
        return fed

    def _compare(
        self, a: AnyRunner, case: Case, got: Sequence[np.ndarray], want: Sequence[np.ndarray], rows: Rows
    ) -> None:
        """Records how far the outputs of a run are from those of the original."""
        outputs: list[tuple[str, Difference]] = []
        shares = self._options.resolver != "reference" and isinstance(a, TfliteRunner) and not case.step
        named = a.entries[case.key]["outputs"]
        for place, ((name, description), *pair) in enumerate(zip(named, got, want, strict=False)):
            g, w = cropped(rows, place, pair)  # an output that one has not is a difference already
            apart = self._difference(g, w, description)
            outputs.append((name, replace(apart, unfilled=pair[1].size - w.size)))
            if self._options.inputs is not None and place not in rows:
                top1 = agreement(case.key, name, seen_as(g, w.dtype), w, description)
                known = self._top1.get((case.key, name))
                if top1 is not None:
                    self._top1[case.key, name] = top1 if known is None else known + top1
        self.result.runs.append(Run(case.key, case.name, tuple(outputs), shapes=case.shapes))
        differing = [place for place, (_, apart) in enumerate(outputs) if not apart.accepted]
        if shares and differing:
            self._share_of_kernels(a, case, {place: (got[place], want[place]) for place in differing}, rows)

    def _share_of_kernels(
        self, a: AnyRunner, case: Case, differing: Mapping[int, tuple[np.ndarray, np.ndarray]], rows: Rows
    ) -> None:
        """Records how far the original is from itself on the reference kernels, and the other from these."""
        reference = self._recorded(a, "reference", case) if self._cut is None else None
        try:
            if reference is None:
                reference = self._reference(a.path, case.key).run(case.key, case.arrays, {})
        except RunError as error:
            note = (
                f"the original does not run on the reference kernels, to tell what of a difference is theirs: {error}"
            )
            self.result.notes += [note] if note not in self.result.notes else []
            return
        for place, (got, want) in differing.items():
            name, description = a.entries[case.key]["outputs"][place]
            g, w, plain = cropped(rows, place, [got, want, reference[place]])
            original, other = (self._difference(x, plain, description) for x in (w, g))
            known = self._kernels.get((case.key, name))
            if known is not None:
                original, other = known.original + original, known.other + other
            self._kernels[case.key, name] = KernelShare(case.key, name, original, other)

    def _reference(self, path: str, key: str) -> TfliteRunner:
        """The original on the reference kernels, except where these are wrong."""
        if self._on_reference is None:
            self._on_reference = self._open(path, "reference")
        runner = self._on_reference
        assert isinstance(runner, TfliteRunner)
        wrong = broken(entry_of(runner.file, key)[1])
        runner.divide(key, {i: why.reason for i, why in wrong.items() if why.apart}, {})
        return runner

    def _original(self, a: AnyRunner, case: Case) -> list[np.ndarray]:
        """The original's outputs; recorded ones, unless inner tensors are wanted, too. RunError if it does not run."""
        recorded, kernels = self._options.recorded, self._options.resolver
        inner = self._in_layers or self._cut is not None
        if recorded is None or inner or case.step is not None or not isinstance(a, TfliteRunner):
            return a.run(case.key, case.arrays, {}, case.step)
        want = self._recorded(a, kernels, case)
        if want is None:
            want = a.run(case.key, case.arrays, {})
            recorded.put(kernels, case.key, case.arrays, want)
        return want

    def _recorded(self, a: AnyRunner, kernels: str, case: Case) -> list[np.ndarray] | None:
        """The original's outputs, if there are some recorded of the types and ranks that the entry has."""
        recorded = self._options.recorded
        outputs = recorded.get(kernels, case.key, case.arrays) if recorded is not None else None
        sides = [description for _, description in a.entries[case.key]["outputs"]]
        if outputs is None or len(outputs) != len(sides):
            return None
        fit = all(
            array.dtype.kind == "S" or (array.dtype.name == side["dtype"] and len(side["shape"]) in (0, array.ndim))
            for array, side in zip(outputs, sides, strict=True)
        )
        return outputs if fit else None

    def _difference(
        self, got: np.ndarray, want: np.ndarray, description: Mapping[str, Any] | None = None
    ) -> Difference:
        return difference(seen_as(got, want.dtype), want, self.result.tolerance, description)

    def _record_expected(
        self,
        key: str,
        expected: Mapping[str, tuple[Named, Expectation]],
        want: Mapping[str, np.ndarray],
        got: Mapping[str, np.ndarray],
    ) -> None:
        """Adds differences of results that were expected to differ to those of other runs."""
        for name in [name for name in want if name in got]:
            (operator, why), apart = expected[name], self._difference(got[name], want[name])
            if (key, name) in self._expected:
                apart = self._expected[key, name].difference + apart
            place = operator.operator, operator.opcode, name
            self._expected[key, name] = Expected(key, *place, apart, why.reason, why.within)

    def _original_failed(self, case: Case, error: RunError, ahead: Future[list[np.ndarray]] | None) -> None:
        """Records an error of the original on some inputs, such as an index out of range. An abort or a timeout ends
        the comparison."""
        wait([ahead] if ahead else [])
        if error.fatal:
            place = self._place(self.result.a, case)
            self.result.incomparable.append(f"{place}: the original does not run: {error}")
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
        missing: dict[str, Sequence[Named]] = {}
        every: list[Divergence] = []
        for inner in self._inner:
            results[inner.case.key] = inner.plan.results
            missing[inner.case.key] = inner.plan.missing
            for chunk in inner.plan.chunks:
                self._say("operator results")
                if self._fatal:
                    break
                try:
                    every += self._chunk(a, b, inner.case.key, chunk, [(inner.case, inner.fed)])
                except RunError as error:
                    self.result.failures.append(f"{self._place('operator results', inner.case)}: {error}")
                    self._fatal |= error.fatal
                    continue
                self._done += 1
        steps: list[Divergence] = []
        if isinstance(a, TfliteRunner) and isinstance(b, FileRunner):
            every, steps = self._within(a, b, every)
        compared = {(d.entry, d.tensor) for d in every}
        diverging = tuple(d for d in (*every, *steps) if not d.difference.equal)
        listed = tuple(f"{n.opcode} {n.operator} '{n.tensor}'" for named in missing.values() for n in named)
        self.result.layers = Layers(sum(results.values()), len(compared), diverging, tuple(every), listed, len(steps))

    def _within(
        self, a: TfliteRunner, b: FileRunner, every: list[Divergence]
    ) -> tuple[list[Divergence], list[Divergence]]:
        """Adds to results of operators what chosen sums show. Returns them, and the results of steps."""
        steps: list[Divergence] = []
        for cases in self._ran.values():
            try:
                every = with_sums(a, b, cases[0], every, self._options.timeout, self._difference)
                steps += steps_within(a, b, cases, self._difference)
            except RunError as error:
                self.result.failures.append(f"{self._place('steps', cases[0])}: {error}")
                self._fatal |= error.fatal
        return every, steps

    def _chunk(
        self,
        a: AnyRunner,
        b: AnyRunner,
        key: str,
        chunk: Sequence[Named],
        inputs: Iterable[tuple[Case, dict[str, np.ndarray]]],
    ) -> list[Divergence]:
        """The differences of some tensors, in copies of the models that return them, on inputs with the values that are
        fed there. A tensor that has no data after a run, in either, is not compared."""
        names = list(dict.fromkeys(named.tensor for named in chunk))
        divergences: list[Divergence] = []
        filled = self._filled[key]
        with a.fetching(key, [*names, *filled.count_names(names)]) as before, b.fetching(key, names) as after:
            for case, fed in inputs:
                jobs = [self._pool.submit(fetcher.run, case.arrays, fed) for fetcher in (before, after)]
                wait(jobs)
                for job in jobs:
                    job.result()
                for named in chunk:
                    fetched = self._pool.submit(after.fetch, named.tensor)
                    want, got = before.fetch(named.tensor), fetched.result()
                    if want is not None and got is not None:
                        got, want = filled.part(named.tensor, before, [got, want])
                        apart = self._difference(got, want)
                        divergences.append(Divergence(key, named.operator, named.opcode, named.tensor, apart))
        return divergences


# `tflq.verify`: what it takes and checks.
