"""Where tasks run: an `Executor`, and the one of this machine, a warm server that forks a process for each task."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

import tflq
from tflq.errors import TflqError
from tflq.processes import kill_group
from tflq.sweep.measure import JOB
from tflq.sweep.task import Ending, Limits, Task

__all__ = ["Ended", "Event", "Executor", "LocalExecutor", "Staged"]

RESTARTS: Final = 5
"""How often a server that dies is started again before that is an error."""


@dataclass(frozen=True, slots=True)
class Staged:
    """A task has come to a stage."""

    number: int
    stage: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A task has ended. The files it left are in `ending.folder`, the caller's to keep or remove."""

    number: int
    ending: Ending


Event = Staged | Ended


class Executor(Protocol):
    """Runs tasks, at most `slots` at once, and says what becomes of them.

    Every task that was submitted gives one `Ended`, whatever happens to it. `close` ends what still runs.
    """

    @property
    def slots(self) -> int: ...

    def submit(self, number: int, task: Task, limits: Limits) -> None: ...

    def poll(self, seconds: float) -> list[Event]:
        """What happened; waits up to this long for something to happen."""
        ...

    def close(self) -> None: ...


class LocalExecutor:
    """Tasks in processes of this machine, forked from a warm server."""

    def __init__(self, folder: Path, workers: int = 0, job: str = JOB) -> None:
        """folder: for the files of tasks, one below it for each; it is emptied. workers: 0 for one per CPU."""
        self.slots = workers or len(
            os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
        )
        self._folder = folder
        self._job = job
        self._requests: dict[int, dict[str, Any]] = {}
        self._groups: dict[int, int] = {}
        self._restarts = 0
        self._rest = b""
        self._selector = selectors.DefaultSelector()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, number: int, task: Task, limits: Limits) -> None:
        place = self._folder / str(number)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        self._requests[number] = {
            "number": number,
            "job": self._job,
            "task": task.to_json(),
            "folder": str(place),
            "seconds": limits.seconds,
            "bytes": limits.bytes,
        }
        self._send(self._requests[number])

    def poll(self, seconds: float) -> list[Event]:
        if not self._selector.select(seconds):
            return []
        data = os.read(self._answers.fileno(), 1 << 20)
        if not data:
            self._restart()
            return []
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [event for line in lines if (event := self._event(json.loads(line))) is not None]

    def close(self) -> None:
        """Ends the server, and with it what still runs."""
        self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _event(self, message: dict[str, Any]) -> Event | None:
        number = message["number"]
        if "group" in message:
            self._groups[number] = message["group"]
            return None
        if "stage" in message:
            return Staged(number, message["stage"])
        del self._requests[number]
        self._groups.pop(number, None)
        return Ended(number, Ending(**message["ending"]))

    def _start(self) -> None:
        root = str(Path(tflq.__file__).resolve().parents[1])
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tflq.sweep.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | threads | {"PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"},
            start_new_session=True,  # Ctrl-C is the driver's business
            bufsize=0,
        )
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._input, self._answers = self._server.stdin, self._server.stdout
        self._rest = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._answers, selectors.EVENT_READ)

    def _send(self, request: dict[str, Any]) -> None:
        try:
            self._input.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:  # `poll` sees its end, too, and starts another
            return

    def _restart(self) -> None:
        """Another server for one that died; what it had under way starts over."""
        self._restarts += 1
        code = self._server.wait()
        self._stop()
        if self._restarts > RESTARTS:
            raise TflqError(f"the process that starts the tasks has ended {self._restarts} times, exit code {code}")
        self._start()
        for request in self._requests.values():
            self._send(request)

    def _stop(self) -> None:
        self._selector.close()
        self._input.close()
        try:
            self._server.wait(10)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        self._answers.close()
        for group in self._groups.values():
            kill_group(group)
        self._groups.clear()
