"""The parent's side of `worker.py`: a model in a process of its own, with a time limit."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from tflq.errors import TflqError
from tflq.verification import worker
from tflq.verification.start import start

__all__ = ["Answer", "Child", "Resolver", "RunError", "Runner"]

Resolver = Literal["reference", "optimized", "default"]


class RunError(Exception):
    """The interpreter could not open or run the model; `fatal` if its process is gone."""

    def __init__(self, reason: str, *, fatal: bool = False) -> None:
        super().__init__(reason)
        self.fatal = fatal


class Answer(NamedTuple):
    """Outputs of a run in the entry's order, and the tensors fetched; None for one without data."""

    outputs: list[np.ndarray]
    fetched: list[np.ndarray | None]


class Child:
    """A model, open in a child process; `head` is what the child says of it."""

    what: ClassVar = "the interpreter"

    def __init__(self, request: dict[str, Any], timeout: float) -> None:
        """Opens the model of a request. RunError if it cannot be opened; TflqError if what should run it is missing."""
        self._timeout = timeout
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process it belongs to
        self._child = start(self._log)
        try:
            self.head, _ = self._ask({"do": "open", **request}, ())
        except BaseException:
            self.close()
            raise

    def run(self, entry: str, inputs: Sequence[np.ndarray], fetch: Sequence[tuple[int, int]] = ()) -> Answer:
        """Runs an entry; `fetch` names other tensors wanted, as (subgraph, index). RunError if it does not run."""
        head, arrays = self._ask({"do": "run", "entry": entry, "fetch": fetch}, inputs)
        rest = iter(arrays[head["outputs"] :])
        missing = set(head["missing"])
        return Answer(arrays[: head["outputs"]], [None if i in missing else next(rest) for i in range(len(fetch))])

    def close(self) -> None:
        self._child.kill()
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout, self._log):
            if stream is not None:
                _close(stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, request: dict[str, Any], inputs: Sequence[np.ndarray]) -> tuple[dict[str, Any], list[np.ndarray]]:
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._child.kill()

        timer = threading.Timer(self._timeout, stop)
        timer.start()
        try:
            head, arrays = self._exchange(request, inputs)
        except (BrokenPipeError, EOFError) as error:
            reason = f"no answer in {self._timeout:g} s" if late.is_set() else self._last_words()
            raise RunError(reason, fatal=True) from error
        finally:
            timer.cancel()
        if head.get("error") == worker.NO_INTERPRETER:
            raise TflqError("no TFLite interpreter is installed: pip install 'tflq[verify]'")
        if head.get("error") == worker.NO_REFERENCE_MODEL:
            raise TflqError("the TOSA reference model is not installed: pip install 'tflq[tosa]'")
        if "error" in head:
            raise RunError(head["error"].strip())
        return head, arrays

    def _exchange(
        self, request: dict[str, Any], inputs: Sequence[np.ndarray]
    ) -> tuple[dict[str, Any], list[np.ndarray]]:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        worker.send(self._child.stdin, request, inputs)
        return worker.receive(self._child.stdout)

    def _last_words(self) -> str:
        """How the child ended, and the last line it printed."""
        code = self._child.wait()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").split("\n")
        said = next(
            (f": {line.strip()}" for line in reversed(lines) if line.strip() and not line.startswith("INFO")), ""
        )
        how = f"aborted ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"
        return f"{self.what}'s process {how}{said}"


class Runner(Child):
    """One TFLite model in the interpreter. `entries` and `interpreter` are what the child says of it."""

    def __init__(self, model: str, *, resolver: Resolver, keep: bool, timeout: float, anew: bool = False) -> None:
        """Opens a model by its path, `anew` for every run. RunError if the interpreter refuses it; TflqError without an
        interpreter."""
        self._request = {"resolver": resolver, "keep": keep, "anew": anew}
        super().__init__({"model": os.path.abspath(model), **self._request}, timeout)
        self._read_head()

    def reopen(self, model: str) -> None:
        """Opens another model in the same process, which takes no time to start. RunError as for the first."""
        self.head, _ = self._ask({"do": "open", "model": os.path.abspath(model), **self._request}, ())
        self._read_head()

    def _read_head(self) -> None:
        self.interpreter: str = self.head["interpreter"]
        self.entries: dict[str, dict[str, list[tuple[str, dict[str, Any]]]]] = self.head["entries"]


def _close(stream: Any) -> None:
    with suppress(BrokenPipeError):  # unsent bytes for a process that is gone
        stream.close()
