"""Starting the processes that run models: anew, or forked ahead from a process that has the interpreter loaded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Protocol

from tflq.verification import worker

__all__ = ["Process", "forked_ahead", "start"]


class Process(Protocol):
    """What is used of a process, as `subprocess.Popen` has it."""

    @property
    def stdin(self) -> IO[bytes] | None: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    def kill(self) -> None: ...
    def wait(self) -> int: ...


def start(log: IO[bytes]) -> Process:
    """A process that runs `worker.py`, one that was forked ahead if there is one; what it prints goes to the log."""
    with suppress(IndexError):
        ready = _ahead.pop()
        os.dup2(ready.log.fileno(), log.fileno())
        return ready
    return subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, "-P", str(Path(worker.__file__))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
    )


@contextmanager
def forked_ahead(count: int, prepare: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Within it, the first `count` processes are forks of this one, made now, while it has a single thread: they are
    there in milliseconds if the interpreter's library is loaded already. `prepare` is called in each."""
    _ahead.extend(_Forked(prepare) for _ in range(count))
    try:
        yield
    finally:
        while _ahead:
            _ahead.pop().end()


class _Forked:
    """A fork that waits for requests."""

    def __init__(self, prepare: Callable[[], None]) -> None:
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process it belongs to
        requests, ours = os.pipe()
        answers, theirs = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            self._serve(prepare, requests, theirs, (ours, answers))
        os.close(requests)
        os.close(theirs)
        self.stdin: IO[bytes] | None = os.fdopen(ours, "wb")
        self.stdout: IO[bytes] | None = os.fdopen(answers, "rb")
        self._code: int | None = None

    def _serve(self, prepare: Callable[[], None], requests: int, answers: int, others: tuple[int, int]) -> None:
        try:
            for descriptor in others:
                os.close(descriptor)
            for one in _ahead:
                for stream in (one.stdin, one.stdout):
                    if stream is not None:
                        stream.close()
            for descriptor in (1, 2):
                os.dup2(self.log.fileno(), descriptor)
            prepare()
            with os.fdopen(requests, "rb") as source, os.fdopen(answers, "wb") as sink:
                worker.main(source, sink)
        finally:
            os._exit(0)

    def kill(self) -> None:
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._code

    def end(self) -> None:
        """Ends one that nobody used."""
        self.kill()
        self.wait()
        for stream in (self.stdin, self.stdout, self.log):
            if stream is not None:
                stream.close()


_ahead: list[_Forked] = []
