"""Bisection: which pass of a conversion first changed a result."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from tflq.analysis.evaluate.registry import Run, evaluate_function
from tflq.base.arguments import check_choice, check_numbers
from tflq.base.errors import OptionError, Reason, TflqError
from tflq.base.faults import name_of
from tflq.base.files import FilePath
from tflq.formats.backend import of_target
from tflq.formats.options import Fallback, Mac, Options, Semantics, State, options_from_arguments
from tflq.formats.pipeline import form_of, narrowing, passes_of
from tflq.formats.sources import Source, read
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Location, Op, Value
from tflq.numerics.kernel_sets import DEFAULT as DEFAULT_SET
from tflq.tools.verify.difference import Tolerance, difference
from tflq.tools.verify.inputs import generated_inputs
from tflq.tools.verify.interface import function_number, signature_of
from tflq.tools.verify.layers import BUDGET, seen_as
from tflq.tools.verify.runner import Resolver, RunError
from tflq.tools.verify.tflite_runner import TfliteRunner
from tflq.transforms.pass_manager import Decisions, Pipeline, Step

JSON_VERSION = 1


@dataclass(frozen=True, slots=True)
class Checked:
    """The model after a pass that changed something. by: what ran it; "" if nothing can: `note` says why."""

    number: int
    name: str
    by: Literal["interpreter", "evaluator", ""]
    equal: bool | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """The pass that first changed a result, and where that first shows: `Bisection.finding`.

    Attributes:
        number: Number of the pass.
        name: Name of the pass.
        unchecked: Earlier passes that may be the cause as well, because nothing can run the model after them.
        tensor: Name of the tensor that differs.
        inputs: The set of inputs that shows it.
        difference: How far the tensor is from the original's.
        subgraph: Number of the subgraph.
        operator: Number of the operator in its subgraph. None if the tensor belongs to no operator.
        opcode: The operator's type, such as "CONV_2D".
        path: How the operator was converted: see `Row.path`.
        reason: Why: see `Row.reason`.
        warning: What the report warns of: see `Row.warning`.
        remedy: What you can do about the warning: see `Row.remedy`.
        rule: The legalization function that lowered the operator.
        before: The operator before the pass.
        after: What the pass turned it into.
    """

    number: int
    name: str
    unchecked: tuple[str, ...]
    tensor: str
    inputs: str
    difference: str
    subgraph: int = 0
    operator: int | None = None
    opcode: str = ""
    path: str = ""
    reason: str = ""
    warning: str = ""
    remedy: str = ""
    rule: str = ""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bisection:
    """Comparison of a model's results after each pass: returned by `tflq.bisect`.

    Attributes:
        source: Path of the model.
        interpreter: What ran the original.
        steps: The model after each pass that changed something: `number`, `name`, what ran it (`by`), whether the
            results are `equal`, and a `note`.
        finding: The pass that first changed a result. None if the end result equals the original's.
        sets: Names of the sets of inputs.

    Example:
        ```python
        for step in tflq.bisect("model.tflite").steps:
            print(step.name, step.equal)
        ```
    """

    source: str
    interpreter: str
    steps: tuple[Checked, ...]
    finding: Finding | None = None
    sets: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """The result in a versioned JSON form."""
        return {"format": "tflq.bisection", "version": JSON_VERSION, **asdict(self)}


# A module in any form on given inputs: in the interpreter as a file, or by the evaluator.


@dataclass(frozen=True, slots=True)
class Case:
    """A set of inputs of an entry (the key of its signature, or ""), by the names that the interpreter has."""

    entry: str
    name: str
    inputs: Mapping[str, np.ndarray]


@dataclass(slots=True)
class Results:
    """Results of a module for a case: outputs by the interpreter's names, operator results by their tensors' names."""

    outputs: Mapping[str, np.ndarray]
    inner: dict[str, np.ndarray] = field(default_factory=dict)


def function_of(module: Module, entry: str) -> Function:
    return module.functions[function_number(module, entry)]


def interpreted(
    path: Path,
    module: Module,
    cases: Sequence[Case],
    names: Mapping[str, Sequence[str]],
    limits: tuple[Resolver, float],
) -> list[Results]:
    """The interpreter's results for a module, written to a file. names: the operator results to fetch, by entry.
    RunError if it does not run."""
    path.write_bytes(write(module))
    with closing(TfliteRunner(str(path), *limits)) as runner:
        return run_file(runner, cases, names)


def run_file(runner: TfliteRunner, cases: Sequence[Case], names: Mapping[str, Sequence[str]]) -> list[Results]:
    """The interpreter's results for each case, by an open model."""
    every = []
    for case in cases:
        sides = runner.entries[case.entry]
        arrays = [case.inputs[name] for name, _ in sides["inputs"]]
        outputs = runner.run(case.entry, arrays)
        results = Results(dict(zip([name for name, _ in sides["outputs"]], outputs, strict=True)))
        known = [name for name in names[case.entry] if name in runner.names(case.entry)]
        totals = accumulate(runner.sizes(case.entry, known))  # all that is fetched has to fit into memory
        wanted = [name for name, size in zip(known, totals, strict=True) if size <= BUDGET // len(cases)]
        with runner.fetching(case.entry, wanted) as fetcher:
            fetcher.run(arrays, {})
            fetched = {name: fetcher.fetch(name) for name in wanted}
        results.inner = {name: array for name, array in fetched.items() if array is not None}
        every.append(results)
    return every


def evaluated(module: Module, case: Case, want: Results) -> Results:
    """The evaluator's results for a module in the integer or the tosa form. Names and types are those of `want`, the
    original's results. NotImplementedError names an op without an evaluator."""
    function = function_of(module, case.entry)
    signature = signature_of(module, case.entry)
    inputs = _by_name(None if signature is None else signature.inputs, function.inputs, case.inputs)
    outputs = _by_name(None if signature is None else signature.outputs, function.outputs, want.outputs)
    arrays = {v: case.inputs[name].astype(v.type.storage.dtype) for name, v in inputs.items()}
    env = evaluate_function(function, arrays, Run(module))

    def array(value: Value, like: np.ndarray) -> np.ndarray:
        return seen_as(value.array if value.is_constant else env[value], like.dtype)

    results = Results({name: array(v, want.outputs[name]) for name, v in outputs.items()})
    for value in (v for op in function.ops for v in op.results):
        if value.name in want.inner and value in env:
            results.inner[value.name] = array(value, want.inner[value.name])
    return results


def _by_name(
    pairs_in_signature: Sequence[tuple[str | None, Value]] | None, values: Sequence[Value], names: Collection[str]
) -> dict[str, Value]:
    """Inputs or outputs by the names that the interpreter has: those of the signature, or of the tensors."""
    pairs = pairs_in_signature if pairs_in_signature is not None else [(v.name, v) for v in values]
    by_name = {name: value for name, value in pairs if name is not None and name in names}
    return by_name if len(by_name) == len(names) else dict(zip(names, values, strict=True))


# `tflq bisect`: the model after each pass of its conversion is run on the same inputs.
#
# The interpreter runs the original and the kernels' form, the evaluator the integer form and TOSA's. The pass that is
# found is the first after which all results differ, to the end: some passes of selection need the next one.


_Ops = Mapping[Location, tuple[str, ...]]


def bisect(
    source: Source,
    *,
    target: FilePath | None = None,
    mac: Mac = "integer",
    fallback: Fallback = "float",
    semantics: Semantics = "interpreter",
    kernel_set: str = DEFAULT_SET,
    state: State | None = None,
    signature: str | None = None,
    batch: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    seeds: int = 1,
    seed: int = 0,
    resolver: Resolver = "reference",
    max_lsb: float = 0,
    atol: float = 1e-6,
    rtol: float = 1e-5,
    timeout: float = 600.0,
    progress: Callable[[str], None] | None = None,
) -> Bisection:
    """Find the pass of a TFLite model's conversion that first changed a result.

    Args:
        source: The TFLite model: a path, bytes or a binary file object.
        target: As in `tflq.convert`. The target's file says whether to convert to TFLite or TOSA.
        mac: As in `tflq.convert`.
        fallback: As in `tflq.convert`.
        semantics: As in `tflq.convert`.
        kernel_set: As in `tflq.convert`.
        state: As in `tflq.convert`.
        signature: As in `tflq.convert`.
        batch: As in `tflq.convert`.
        shapes: As in `tflq.convert`.
        seeds: Number of sets of random inputs; sets of edge values follow them.
        seed: Another seed gives other random sets.
        resolver: Kernels of the interpreter, as in `tflq.verify`.
        max_lsb: Accepted difference of integers, in counts, as in `tflq.verify`.
        atol: Accepted absolute difference of floats, as in `tflq.verify`.
        rtol: Accepted relative difference of floats. By default 1e-5, because a float kernel may add in another order
            than the evaluator.
        timeout: Seconds that one run may take.
        progress: Called with a description of what is about to run.

    Returns:
        Each pass and what became of the results. `finding` names the first pass that changed one, or is None if the end
        result equals the original's.

    Raises:
        InvalidModelError: The source is not a valid model.
        UnsupportedError: The model cannot be converted as asked.
        OptionError: An option makes no sense, or the model is a TOSA file.
        TflqError: No interpreter is installed, or the original does not run.

    Example:
        ```python
        found = tflq.bisect("model.tflite", target="kernels").finding
        if found is not None:
            print(found.name, found.opcode, found.tensor, found.difference)
        ```
    """
    check_numbers(0, whole=True, seeds=seeds, seed=seed)
    check_numbers(0, max_lsb=max_lsb, atol=atol, rtol=rtol, timeout=timeout)
    tell = progress or (lambda _: None)
    check_choice("resolver", resolver, get_args(Resolver))
    options = options_from_arguments(
        of_target(target).name,
        target,
        mac=mac,
        fallback=fallback,
        semantics=semantics,
        kernel_set=kernel_set,
        state=state,
        signature=signature,
        batch=batch,
        shapes=shapes,
    )
    module = read(source)
    if form_of(module) == "tosa":
        what = "this is a TOSA file; bisecting needs a TFLite model, which the interpreter can run"
        raise OptionError(Reason(what, module.source, remedy="compare two files with tflq verify"))
    module = Pipeline(narrowing(options, "tfl"), "tfl").run(module).module
    with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
        path = Path(folder) / "model.tflite"
        search = _Search(path, (resolver, timeout), Tolerance(max_lsb, atol, rtol))
        tell("running the original")
        search.begin(module, seeds, seed)
        return search.run(module, options, tell)


class _Where(NamedTuple):
    """Where results differ first: entry, set of inputs, tensor, and how far it is from the original's."""

    entry: str = ""
    inputs: str = ""
    tensor: str = ""
    difference: str = ""


@dataclass(eq=False)
class _Search:
    """One model's passes, each run on the same cases."""

    _path: Path
    _limits: tuple[Resolver, float]
    _tolerance: Tolerance

    def begin(self, module: Module, seeds: int, seed: int) -> None:
        """Runs the original on all sets of inputs. TflqError if it does not run."""
        self._path.write_bytes(write(module))
        try:
            with closing(TfliteRunner(str(self._path), *self._limits)) as runner:
                self._interpreter = runner.interpreter
                self._cases = list(_cases(runner, seeds, seed))
                self._names = {key: _results(module, key) for key in runner.entries}
                self._want = run_file(runner, self._cases, self._names)
        except RunError as error:
            raise TflqError(Reason(f"the original does not run: {error}", module.source)) from error

    def run(self, module: Module, options: Options, progress: Callable[[str], None]) -> Bisection:
        steps, finding, source = [Checked(0, "read", "interpreter", True)], None, module.source
        unchecked: list[str] = []
        ops = _ops(module)
        for number, step in enumerate(Pipeline(passes_of(options, "tfl"), "tfl").steps(module), 1):
            if not step.modified:
                continue
            progress(f"running what {step.item.name} made")
            checked, where = self._check(number, step)
            steps.append(checked)
            if not checked.by:
                unchecked.append(step.item.name)
                continue
            if checked.equal:
                finding = None
            elif finding is None:
                finding = self._finding(number, step, ops, unchecked, where)
            unchecked, ops = [], _ops(step.module)
        sets = tuple(dict.fromkeys(case.name for case in self._cases))
        return Bisection(source, self._interpreter, tuple(steps), finding, sets)

    def _check(self, number: int, step: Step) -> tuple[Checked, _Where]:
        """A step, and where it differs first."""
        name = step.item.name
        by: Literal["interpreter", "evaluator"] = "evaluator" if step.form in ("integer", "tosa") else "interpreter"
        try:
            if by == "evaluator":
                pairs = zip(self._cases, self._want, strict=True)
                got = [evaluated(step.module, case, want) for case, want in pairs]
            else:
                got = interpreted(self._path, step.module, self._cases, self._names, self._limits)
        except NotImplementedError as error:
            return Checked(number, name, "", None, str(error)), _Where()
        except RunError as error:
            return Checked(number, name, "interpreter", False, f"does not run: {error}"), _Where()
        except (ValueError, IndexError, KeyError, TypeError, AssertionError) as error:
            note = f"does not evaluate: {type(error).__name__}: {error}"
            return Checked(number, name, "evaluator", False, note), _Where()
        where = self._first(got, step.module)
        return Checked(number, name, by, where is None), where or _Where()

    def _first(self, got: Sequence[Results], module: Module) -> _Where | None:
        """The first operator result that differs in a case whose outputs differ; if there is none, the output."""
        for case, want, results in zip(self._cases, self._want, got, strict=True):
            apart = {n: text for n, array in want.outputs.items() if (text := self._apart(results.outputs[n], array))}
            if not apart:
                continue
            for name in _results(module, case.entry):
                if name in results.inner and name in want.inner:
                    text = self._apart(results.inner[name], want.inner[name])
                    if text:
                        return _Where(case.entry, case.name, name, text)
            return _Where(case.entry, case.name, *next(iter(apart.items())))
        return None

    def _apart(self, got: np.ndarray, want: np.ndarray) -> str:
        """Text of the difference of two arrays; empty if it is accepted."""
        apart = difference(got, want, self._tolerance)
        return "" if apart.accepted else str(apart)

    def _finding(self, number: int, step: Step, ops: _Ops, unchecked: Sequence[str], where: _Where) -> Finding:
        how_far = where.difference or "the model after it does not run"
        finding = Finding(number, step.item.name, tuple(unchecked), where.tensor, where.inputs, how_far)
        op = _producer(step.module, where.entry, where.tensor) if where.tensor else None
        place = None if op is None else op.location
        if place is None:
            return finding
        finding = replace(
            finding,
            subgraph=place.function,
            operator=place.operator,
            opcode=place.opcode,
            before=ops.get(place, ()),
            after=_ops(step.module).get(place, ()),
        )
        decision = next((d for d in Decisions.of(step.module) if d.op.location == place), None)
        if decision is None:
            return finding
        rule = decision.rule
        return replace(
            finding,
            path=decision.path,
            reason=decision.reason,
            warning=decision.warning,
            remedy=decision.remedy,
            rule="" if rule is None else f"{rule.__module__}.{name_of(rule)}",
        )


def _cases(runner: TfliteRunner, seeds: int, seed: int) -> Iterator[Case]:
    for key, sides in runner.entries.items():
        for name, arrays in generated_inputs(sides["inputs"], seeds, None, seed):
            yield Case(key, name, dict(zip([n for n, _ in sides["inputs"]], arrays, strict=True)))


def _results(module: Module, entry: str) -> list[str]:
    """The names of an entry's operator results, in order."""
    return [v.name for op in function_of(module, entry).ops for v in op.results if v.name]


def _producer(module: Module, entry: str, tensor: str) -> Op | None:
    function = function_of(module, entry)
    named = (op for op in function.ops if any(v.name == tensor for v in op.results))
    signature = signature_of(module, entry)
    outputs = [] if signature is None else [v.producer for name, v in signature.outputs or () if name == tensor]
    return next(named, outputs[0] if outputs else None)


def _ops(module: Module) -> dict[Location, tuple[str, ...]]:
    """The ops that compute each operator of the source now: names, in order, each once."""
    shared: dict[int, tuple[Location, dict[str, None]]] = {}  # ops share their locations, whose hashes are slow
    for op in module.ops():
        if op.location is not None:
            shared.setdefault(id(op.location), (op.location, {}))[1][op.name] = None
    joined: dict[Location, dict[str, None]] = {}
    for place, names in shared.values():
        joined.setdefault(place, {}).update(names)
    return {place: tuple(names) for place, names in joined.items()}
