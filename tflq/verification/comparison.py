"""Running two models on the same inputs and comparing what they give."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, TypeVar

import numpy as np

from tflq.errors import TflqError
from tflq.flatbuffer.identify import identify
from tflq.flatbuffer.layout import TOSA
from tflq.flatbuffer.reader import read
from tflq.ir.core import Module
from tflq.verification.difference import difference
from tflq.verification.inputs import GivenInputs, Side, given, made
from tflq.verification.interface import allocation_differences, interface_differences, same_inputs
from tflq.verification.layers import Plan, combine, compare, function_of, places, plan, seen_as
from tflq.verification.model_file import ModelFile
from tflq.verification.outcome import Layers, Run, Verification
from tflq.verification.runner import Answer, Resolver, RunError, Runner

if TYPE_CHECKING:
    from tflq.verification.tosa_runner import TosaRunner

__all__ = ["Source", "verify"]

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
Given = GivenInputs | str | os.PathLike[str] | None

AnyRunner: TypeAlias = "Runner | TosaRunner"
T = TypeVar("T")


def verify(
    a: Source,
    b: Source,
    *,
    inputs: Given = None,
    seeds: int = 2,
    layers: bool = False,
    batch: int | None = None,
    resolver: Resolver = "reference",
    interface: bool = True,
    timeout: float = 600.0,
) -> Verification:
    """Runs models `a` (the original) and `b` on the same inputs and compares everything they give: TFLite files in the
    interpreter, TOSA files on the TOSA reference model.

    inputs: arrays by input name, or an .npz file of them; else `seeds` random sets, then all minimum, maximum and zero
    point.
    layers: compare operator results too, by tensor name, on the first set of inputs of each signature.
    batch: size to resize the first dim of inputs to where the model leaves it open.
    resolver: the kernels: "reference", "optimized" (no delegate) or "default" (with delegates).
    interface: compare names, shapes, types, quantization and signatures, too. Without it, inputs and outputs are taken
        by position: what came back from TOSA has neither signatures nor quantization parameters.
    timeout: seconds that one run may take.

    Each model runs in a process of its own: if the interpreter aborts, that is part of the result. TflqError if no
    interpreter (for a TOSA file, no reference model) is installed, a file is missing or given inputs do not fit.

    A TOSA file is compared with the entry of a TFLite model that has its inputs and outputs, at the shapes of the file;
    quantization parameters are not compared, since TOSA has none.
    """
    if seeds < 0 or (batch is not None and batch < 1):
        raise TflqError(f"seeds={seeds}, batch={batch}: seeds cannot be negative, a batch is 1 or more")
    with ExitStack() as stack:
        path_a, path_b = (stack.enter_context(_path(source)) for source in (a, b))
        result = Verification(_label(a, path_a), _label(b, path_b), resolver)
        comparison = _Comparison(result, inputs, seeds, batch, timeout)
        comparison.run(path_a, path_b, resolver, layers=layers, interface=interface)
        return comparison.result


@contextmanager
def _path(source: Source) -> Iterator[str]:
    """The path of a source; bytes become a temporary file."""
    if isinstance(source, (str, os.PathLike)):
        if not Path(source).is_file():
            raise TflqError(f"{os.fspath(source)}: there is no such file")
        yield os.fspath(source)
        return
    with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
        path = Path(folder, "model")
        path.write_bytes(source if isinstance(source, (bytes, bytearray, memoryview)) else source.read())
        yield str(path)


def _label(source: Source, path: str) -> str:
    return path if isinstance(source, (str, os.PathLike)) else str(getattr(source, "name", "") or "<bytes>")


def _open(path: str, *, resolver: Resolver, keep: bool, timeout: float) -> AnyRunner:
    """A TOSA file on the reference model, anything else in the interpreter."""
    if identify(path) is TOSA:
        from tflq.verification.tosa_runner import TosaRunner

        return TosaRunner(path, keep=keep, timeout=timeout)
    return Runner(path, resolver=resolver, keep=keep, timeout=timeout, anew=_has_variables(path))


def _has_variables(path: str) -> bool:
    """Whether a model has resource variables, which nothing resets unless it has a signature for it."""
    try:
        file = ModelFile(path)
    except TflqError:
        return False  # the interpreter says what is wrong with it
    return file.has_variables and not file.resets


def _plan(key: str, a: AnyRunner, b: AnyRunner, modules: tuple[Module, Module]) -> Plan:
    """What to fetch after running an entry of both."""
    found = [
        places(module, key) if isinstance(r, Runner) else r.places for r, module in zip((a, b), modules, strict=True)
    ]
    return plan(modules[0].functions[function_of(key, modules[0])], key, *found)


def _module(runner: AnyRunner, path: str) -> Module:
    return read(path) if isinstance(runner, Runner) else runner.module


class _Comparison:
    """One comparison under way: fills in `result`."""

    def __init__(self, result: Verification, given: Given, seeds: int, batch: int | None, timeout: float) -> None:
        self.result = result
        self._given = given
        self._seeds = seeds
        self._batch = batch
        self._timeout = timeout
        self._layers: list[Layers] = []
        self._fatal = False

    def run(self, path_a: str, path_b: str, resolver: Resolver, *, layers: bool, interface: bool) -> None:
        with ExitStack() as stack:
            pool = stack.enter_context(ThreadPoolExecutor(2))
            openings = [
                pool.submit(_open, path, resolver=resolver, keep=layers, timeout=self._timeout)
                for path in (path_a, path_b)
            ]
            runners = [self._get(opening, label) for opening, label in zip(openings, self._labels, strict=True)]
            for runner in runners:
                if runner is not None:
                    stack.enter_context(runner)
            a, b = runners
            if a is None or b is None:
                return
            self.result.interpreter = " and ".join(dict.fromkeys((a.interpreter, b.interpreter)))
            keys = self._comparable(a, b, (path_a, path_b), interface)
            modules = (_module(a, path_a), _module(b, path_b)) if layers and keys else None
            for key in keys:
                if not self._fatal:
                    self._entry(pool, a, b, key, _plan(key, a, b, modules) if modules else None)
        if layers:
            self.result.layers = combine(self._layers)

    @property
    def _labels(self) -> tuple[str, str]:
        return self.result.a, self.result.b

    def _comparable(self, a: AnyRunner, b: AnyRunner, paths: tuple[str, str], interface: bool) -> list[str]:
        """The entries to run. A single signature of the first subgraph only names what "" runs by position."""
        if isinstance(a, Runner) and not isinstance(b, Runner):
            return self._aligned(a, paths[0], b)
        if isinstance(b, Runner) and not isinstance(a, Runner):
            return self._aligned(b, paths[1], a)
        keys = list(a.entries) if interface else [""]
        if isinstance(a, Runner) and isinstance(b, Runner):
            if interface or not same_inputs(a.entries, b.entries, "", fit=True):
                self.result.interface = interface_differences(*map(ModelFile, paths))
            if interface and not self.result.interface:
                self.result.interface = allocation_differences(a.entries, b.entries)
        elif interface:
            from tflq.verification.alignment import tosa_differences

            self.result.interface = tosa_differences(a.entries, b.entries)
        keys = keys if len(keys) > 2 else keys[:1]
        return [key for key in keys if same_inputs(a.entries, b.entries, key, fit=not interface)]

    def _aligned(self, model: Runner, path: str, tosa: TosaRunner) -> list[str]:
        """The entry of a TFLite model that a TOSA file is, if they can be compared."""
        from tflq.verification.alignment import align

        key, self.result.interface = align(model, ModelFile(path), tosa)
        return [] if key is None or self.result.interface else [key]

    def _get(self, future: Future[T], label: str) -> T | None:
        """The outcome of a job; None if it failed, which is then on record."""
        try:
            return future.result()
        except RunError as error:
            self.result.failures.append(f"{label}: {error}")
            self._fatal |= error.fatal
            return None

    def _entry(self, pool: ThreadPoolExecutor, a: AnyRunner, b: AnyRunner, key: str, wanted: Plan | None) -> None:
        for name, values in self._inputs(a.entries[key]["inputs"]):
            ahead = pool.submit(b.run, key, values, wanted.b if wanted else ())
            try:
                want = a.run(key, values, wanted.a if wanted else ())
            except RunError as error:
                self._original_failed(key, name, error, ahead)
            else:
                got = self._get(ahead, self._place(self.result.b, key, name))
                if got is not None:
                    self._record(a, key, name, want, got, wanted)
                    wanted = None
            if self._fatal:
                return

    def _inputs(self, side: Side) -> Iterable[tuple[str, list[np.ndarray]]]:
        if self._given is None:
            return made(side, self._seeds, self._batch)
        return [("given", given(side, self._given))]

    def _original_failed(self, key: str, name: str, error: RunError, ahead: Future[Answer]) -> None:
        """An error on some inputs (an index out of range, say) is no difference; an abort or a timeout ends the
        comparison.
        """
        wait([ahead])
        if error.fatal:
            self.result.failures.append(f"{self._place(self.result.a, key, name)}: {error}")
            self._fatal = True
        self.result.runs.append(Run(key, name, skipped=str(error)))

    def _place(self, label: str, key: str, name: str) -> str:
        return label + (f", signature '{key}'" if key else "") + f", inputs '{name}'"

    def _record(self, a: AnyRunner, key: str, name: str, want: Answer, got: Answer, wanted: Plan | None) -> None:
        names = [output for output, _ in a.entries[key]["outputs"]]
        pairs = zip(names, got.outputs, want.outputs, strict=False)  # a missing output is a difference of the interface
        self.result.runs.append(Run(key, name, tuple((n, difference(seen_as(g, w.dtype), w)) for n, g, w in pairs)))
        if wanted is not None:
            self._layers.append(compare(wanted, want.fetched, got.fetched))
