"""`tflq bisect`: the model after each pass of its conversion is run on the same inputs, until the results differ.

The original and what its kernels' form gives are run by the interpreter; the integer form and TOSA's by the evaluator.
A pass counts that all later results differ after: some passes of selection need the next one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from tflq.arguments import check_choice, check_numbers
from tflq.backends import of_target
from tflq.bisection.outcome import Bisection, Checked, Finding
from tflq.bisection.running import Case, Results, evaluated, function_of, interpreted, run_file
from tflq.contract import Pipeline, Step
from tflq.errors import OptionError, Reason, TflqError
from tflq.flatbuffer.writer import write
from tflq.formats import Source, read
from tflq.ir.core import Location, Module, Op
from tflq.options import Fallback, Options, Semantics, State, asked
from tflq.pipelines import form_of, lowering, narrowing
from tflq.records import Decision, Decisions
from tflq.select.lowering import Mac
from tflq.verification.difference import Tolerance, difference
from tflq.verification.inputs import made
from tflq.verification.runner import Resolver, RunError
from tflq.verification.tflite_runner import TfliteRunner

__all__ = ["bisect"]

_Ops = Mapping[Location, tuple[str, ...]]


def bisect(
    source: Source,
    *,
    target: str | os.PathLike[str] | None = None,
    mac: Mac = "integer",
    fallback: Fallback = "float",
    semantics: Semantics = "interpreter",
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
    options = asked(
        of_target(target).name,
        target,
        mac=mac,
        fallback=fallback,
        semantics=semantics,
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


class _Search:
    """One model's passes, each run on the same cases."""

    def __init__(self, path: Path, limits: tuple[Resolver, float], tolerance: Tolerance) -> None:
        self._path = path
        self._limits = limits
        self._tolerance = tolerance

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
        steps, found, source = [Checked(0, "read", "interpreter", True)], None, module.source
        unchecked: list[str] = []
        ops = _ops(module)
        for number, step in enumerate(Pipeline(lowering(options, "tfl"), "tfl").steps(module), 1):
            if not step.modified:
                continue
            progress(f"running what {step.item.name} made")
            checked, seen = self._check(number, step)
            steps.append(checked)
            if not checked.by:
                unchecked.append(step.item.name)
                continue
            if checked.equal:
                found = None
            elif found is None:
                found = self._finding(number, step, ops, unchecked, seen)
            unchecked, ops = [], _ops(step.module)
        sets = tuple(dict.fromkeys(case.name for case in self._cases))
        return Bisection(source, self._interpreter, tuple(steps), found, sets)

    def _check(self, number: int, step: Step) -> tuple[Checked, tuple[str, str, str, str]]:
        """A step, and where it differs first: entry, set of inputs, tensor and how far it is away."""
        name = step.item.name
        by: Literal["interpreter", "evaluator"] = "evaluator" if step.form in ("integer", "tosa") else "interpreter"
        nowhere = ("", "", "", "")
        try:
            if by == "evaluator":
                got = evaluated(step.module, self._cases, self._want)
            else:
                got = interpreted(self._path, step.module, self._cases, self._names, self._limits)
        except NotImplementedError as error:
            return Checked(number, name, "", None, str(error)), nowhere
        except RunError as error:
            return Checked(number, name, "interpreter", False, f"does not run: {error}"), nowhere
        except (ValueError, IndexError, KeyError, TypeError, AssertionError) as error:
            note = f"does not evaluate: {type(error).__name__}: {error}"
            return Checked(number, name, "evaluator", False, note), nowhere
        where = self._first(got, step.module)
        return Checked(number, name, by, where is None), where or nowhere

    def _first(self, got: Sequence[Results], module: Module) -> tuple[str, str, str, str] | None:
        """The first operator result that differs in a case whose outputs differ, or else the output."""
        for case, want, results in zip(self._cases, self._want, got, strict=True):
            apart = {n: text for n, array in want.outputs.items() if (text := self._apart(results.outputs[n], array))}
            if not apart:
                continue
            for name in _results(module, case.entry):
                if name in results.inner and name in want.inner:
                    text = self._apart(results.inner[name], want.inner[name])
                    if text:
                        return case.entry, case.name, name, text
            return case.entry, case.name, *next(iter(apart.items()))
        return None

    def _apart(self, got: np.ndarray, want: np.ndarray) -> str:
        """How far two arrays are from each other; empty if not by more than is accepted."""
        found = difference(got, want, self._tolerance)
        if found.accepted:
            return ""
        if found.problem:
            return found.problem
        return f"{found.differing} of {found.elements} elements, by up to {found.largest:g} {found.unit}"

    def _finding(
        self, number: int, step: Step, ops: _Ops, unchecked: Sequence[str], seen: tuple[str, str, str, str]
    ) -> Finding:
        entry, inputs, tensor, text = seen
        op = _producer(step.module, entry, tensor) if tensor else None
        place = None if op is None else op.location
        name, passed = step.item.name, tuple(unchecked)
        if place is None:
            return Finding(number, name, passed, tensor, inputs, text or "the model after it does not run")
        decisions = (d for d in Decisions.of(step.module) if d.op.location == place)
        decision = next(decisions, None)
        found = Finding(number, name, passed, tensor, inputs, text, place.function, place.operator, place.opcode)
        found = replace(found, before=ops.get(place, ()), after=_ops(step.module).get(place, ()))
        if decision is None:
            return found
        return replace(
            found,
            path=decision.path,
            reason=decision.reason,
            warning=decision.warning,
            remedy=decision.remedy,
            rule=_rule(decision),
        )


def _rule(decision: Decision) -> str:
    """The rule that answered for an operator, as `module.function`."""
    rule = decision.rule
    return "" if rule is None else f"{rule.__module__}.{getattr(rule, '__qualname__', repr(rule))}"


def _cases(runner: TfliteRunner, seeds: int, seed: int) -> Iterator[Case]:
    for key, sides in runner.entries.items():
        for name, arrays in made(sides["inputs"], seeds, None, seed):
            yield Case(key, name, dict(zip([n for n, _ in sides["inputs"]], arrays, strict=True)))


def _results(module: Module, entry: str) -> list[str]:
    """The names of an entry's operator results, in order."""
    return [v.name for op in function_of(module, entry).ops for v in op.results if v.name]


def _producer(module: Module, entry: str, tensor: str) -> Op | None:
    function = function_of(module, entry)
    named = (op for op in function.ops if any(v.name == tensor for v in op.results))
    signature = next((s for s in module.signatures or () if entry and s.key == entry), None)
    outputs = [] if signature is None else [v.producer for name, v in signature.outputs or () if name == tensor]
    return next(named, outputs[0] if outputs else None)


def _ops(module: Module) -> dict[Location, tuple[str, ...]]:
    """What each operator of the source is now: names of ops, in order, each once."""
    found: dict[int, tuple[Location, dict[str, None]]] = {}  # ops share their locations, whose hashes are slow
    for op in module.ops():
        if op.location is not None:
            found.setdefault(id(op.location), (op.location, {}))[1][op.name] = None
    joined: dict[Location, dict[str, None]] = {}
    for place, names in found.values():
        joined.setdefault(place, {}).update(names)
    return {place: tuple(names) for place, names in joined.items()}
