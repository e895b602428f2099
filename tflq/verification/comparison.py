"""Running two models on the same inputs and comparing what they give."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np

from tflq.errors import TflqError
from tflq.flatbuffer.reader import read
from tflq.verification.difference import difference
from tflq.verification.inputs import GivenInputs, Side, given, made
from tflq.verification.interface import interface_differences, same_inputs
from tflq.verification.layers import Plan, combine, compare, plan
from tflq.verification.outcome import Layers, Run, Verification
from tflq.verification.runner import Answer, Resolver, RunError, Runner

__all__ = ["Source", "verify"]

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
Given = GivenInputs | str | os.PathLike[str] | None

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
    timeout: float = 600.0,
) -> Verification:
    """Runs models `a` (the original) and `b` in the TFLite interpreter on the same inputs and compares everything they
    give.

    inputs: arrays by input name, or an .npz file of them; else `seeds` random sets, then all minimum, maximum and zero
    point.
    layers: compare operator results too, by tensor name, on the first set of inputs of each signature.
    batch: size to resize the first dim of inputs to where the model leaves it open.
    resolver: the kernels: "reference", "optimized" (no delegate) or "default" (with delegates).
    timeout: seconds that one run may take.

    Each model runs in a process of its own: if the interpreter aborts, that is part of the result. TflqError if no
    interpreter is installed, a file is missing or given inputs do not fit.
    """
    if seeds < 0 or (batch is not None and batch < 1):
        raise TflqError(f"seeds={seeds}, batch={batch}: seeds cannot be negative, a batch is 1 or more")
    with ExitStack() as stack:
        path_a, path_b = (stack.enter_context(_path(source)) for source in (a, b))
        result = Verification(_label(a, path_a), _label(b, path_b), resolver)
        comparison = _Comparison(result, inputs, seeds, batch, timeout)
        comparison.run(path_a, path_b, resolver, layers=layers)
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
        path = Path(folder, "model.tflite")
        path.write_bytes(source if isinstance(source, (bytes, bytearray, memoryview)) else source.read())
        yield str(path)


def _label(source: Source, path: str) -> str:
    return path if isinstance(source, (str, os.PathLike)) else str(getattr(source, "name", "") or "<bytes>")


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

    def run(self, path_a: str, path_b: str, resolver: Resolver, *, layers: bool) -> None:
        modules = (read(path_a), read(path_b)) if layers else None
        with ExitStack() as stack:
            pool = stack.enter_context(ThreadPoolExecutor(2))
            openings = [
                pool.submit(Runner, path, resolver=resolver, keep=layers, timeout=self._timeout)
                for path in (path_a, path_b)
            ]
            runners = [self._get(opening, label) for opening, label in zip(openings, self._labels, strict=True)]
            for runner in runners:
                if runner is not None:
                    stack.enter_context(runner)
            a, b = runners
            if a is None or b is None:
                return
            self.result.interpreter = a.interpreter
            self.result.interface = interface_differences(a.entries, b.entries)
            for key in self._keys(a):
                if not self._fatal and same_inputs(a.entries, b.entries, key):
                    self._entry(pool, a, b, key, None if modules is None else plan(key, *modules))
        if layers:
            self.result.layers = combine(self._layers)

    @property
    def _labels(self) -> tuple[str, str]:
        return self.result.a, self.result.b

    def _keys(self, a: Runner) -> list[str]:
        """The entries to run. A single signature of the first subgraph only names what "" runs by position."""
        keys = list(a.entries)
        return keys if len(keys) > 2 else keys[:1]

    def _get(self, future: Future[T], label: str) -> T | None:
        """The outcome of a job; None if it failed, which is then on record."""
        try:
            return future.result()
        except RunError as error:
            self.result.failures.append(f"{label}: {error}")
            self._fatal |= error.fatal
            return None

    def _entry(self, pool: ThreadPoolExecutor, a: Runner, b: Runner, key: str, wanted: Plan | None) -> None:
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

    def _record(self, a: Runner, key: str, name: str, want: Answer, got: Answer, wanted: Plan | None) -> None:
        names = [output for output, _ in a.entries[key]["outputs"]]
        pairs = zip(names, got.outputs, want.outputs, strict=False)  # a missing output is a difference of the interface
        self.result.runs.append(Run(key, name, tuple((n, difference(g, w)) for n, g, w in pairs)))
        if wanted is not None:
            self._layers.append(compare(wanted, want.fetched, got.fetched))
