"""Where tasks run: an `Executor`, and that of this machine, with a warm server: a process that has imported all that a
task needs, and forks a child for each.

Requests come on the server's standard input, answers go to its standard output, each as one line of JSON:

    {"number": N, "job": "module:function", "task": {...}, "folder": PATH, "seconds": S, "bytes": B}
    → {"number": N, "group": PID}  {"number": N, "stage": "convert"}*  {"number": N, "ending": {...}} as `task.Ending`

The server has one thread, so that forking is safe; it watches time and memory of its children's process groups. When
its input ends, because the driver did, it ends all of them and itself.
"""

from __future__ import annotations

import gc
import json
import os
import pkgutil
import selectors
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn, Protocol, Required, TypedDict

from tflq.base.documents import DocumentError
from tflq.base.errors import TflqError, plain_numbers
from tflq.base.processes import (
    die_with_parent,
    kill_group,
    kills_by_system,
    last_words,
    python_call,
    resident_bytes,
    signal_name,
)
from tflq.tools.sweep.fields import Answer
from tflq.tools.sweep.measure import JOB
from tflq.tools.sweep.task import Ending, Limits, Lines, Task, write_all

POLL: Final = 0.1  # seconds between looks at the memory of the children
LOG: Final = "log.txt"
PACKAGES: Final = (
    "tflq.analysis",
    "tflq.formats.flatbuffer",
    "tflq.formats.tflite",
    "tflq.formats.tosa",
    "tflq.ir",
    "tflq.legalize",
    "tflq.numerics",
    "tflq.targets",
    "tflq.tools.verify",
    "tflq.transforms",
)
"""Packages that the server imports first, so that no child has to."""
DIALECTS: Final = ("quant", "tfl", "tosa")
Job = Callable[[dict[str, Any], Path, Callable[[str], None]], dict[str, Any]]
"""Work of a child: the task as JSON, the folder for its files, and whom to tell the stage; its answer as JSON."""
RESTARTS: Final = 5
"""Number of restarts of a server that dies before that is an error."""


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
        """Events since the last call; waits up to this long for one."""
        ...

    def close(self) -> None: ...


class _ServerLine(TypedDict, total=False):
    """A line of the server."""

    number: Required[int]
    group: int
    stage: str
    ending: Ending


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
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._start()

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
        return [event for message in self._lines.messages(data) if (event := self._event(message)) is not None]

    def close(self) -> None:
        """Ends the server, and what still runs."""
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
        return Ended(number, message["ending"])

    def _start(self) -> None:
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._server = python_call(
            "tflq.tools.sweep.server:main",
            env=threads | {"TF_CPP_MIN_LOG_LEVEL": "3"},
            start_new_session=True,  # Ctrl-C is the driver's business
            bufsize=0,
        )
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._input, self._answers = self._server.stdin, self._server.stdout
        self._lines = Lines(_ServerLine)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._answers, selectors.EVENT_READ)

    def _send(self, request: dict[str, Any]) -> None:
        with suppress(BrokenPipeError):  # `poll` sees that it ended, too, and starts another
            self._input.write(json.dumps(request).encode() + b"\n")

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


# The server


class _ChildLine(TypedDict, total=False):
    """A line of a child, which has run a model that nobody vouches for."""

    stage: str
    answer: Answer
    memory: str
    error: str
    trace: str


class Try:
    """One child under way."""

    def __init__(self, request: dict[str, Any], group: int, pipe: int) -> None:
        self.number: int = request["number"]
        self.group = group
        self.pipe = pipe
        self.folder: str = request["folder"]
        self.start = time.monotonic()
        self.deadline = self.start + request["seconds"]
        self.limit: int = request["bytes"]
        self.seconds: float = request["seconds"]
        self.peak = 0
        self.stage = "start"
        self.ending: dict[str, Any] = {}
        self.lines = Lines(_ChildLine)
        self._killed_by_system = kills_by_system()

    def hear(self, message: dict[str, Any]) -> bool:
        """Takes note of what a child said. Returns whether it is a new stage."""
        if "stage" in message:
            self.stage = message["stage"]
            return True
        if "answer" in message:
            self._end("answer", answer=message["answer"])
        elif "memory" in message:
            self._end("memory", what=message["memory"])
        else:
            self.fail(message.get("error", "its answer is empty"), log=message.get("trace", ""))
        return False

    def fail(self, what: str, **more: str) -> None:
        """Takes note of an error, if nothing ended it before."""
        self._end("error", what=what, **more)

    def overdue(self, now: float, used: int) -> bool:
        """Whether it took too much time or memory."""
        self.peak = max(self.peak, used)
        if used > self.limit:
            self._end("memory", what=f"{used >> 20} MiB, of {self.limit >> 20} MiB allowed")
        elif now > self.deadline:
            self._end("timeout", what=f"no answer in {self.seconds:g} s")
        else:
            return False
        return True

    def close(self, status: int, usage: Any) -> dict[str, Any]:
        """The ending, of a process that was waited for."""
        if os.WIFSIGNALED(status):
            name = signal_name(os.WTERMSIG(status))
            if name == "SIGKILL" and kills_by_system() > self._killed_by_system:
                self._end("memory", what="killed by the system for want of memory")
            self._end("signal", what=f"ended by {name}")
        self._end("exit", what=f"ended with exit code {os.waitstatus_to_exitcode(status)} and no answer")
        unit = 1 if sys.platform == "darwin" else 1024
        return {
            "log": _log_of(self.folder) if self.ending["how"] != "answer" else "",
            **self.ending,
            "stage": self.stage,
            "seconds": round(time.monotonic() - self.start, 4),
            "cpu": round(usage.ru_utime + usage.ru_stime, 4),
            "peak": max(self.peak, usage.ru_maxrss * unit),
            "folder": self.folder,
        }

    def _end(self, how: str, **more: Any) -> None:
        """Takes note of how it ended, if nothing ended it before."""
        if not self.ending:
            self.ending = {"how": how, **more}


class Server:
    """Starts a child for each request, and tells what it hears from them."""

    def __init__(self, requests: int, answers: int) -> None:
        self._requests = requests
        self._answers = answers
        self._selector = selectors.DefaultSelector()
        self._selector.register(requests, selectors.EVENT_READ)
        self._tries: dict[int, Try] = {}
        self._lines = Lines(dict[str, Any])
        self._next_look = 0.0

    def serve(self) -> None:
        """Serves until the input ends."""
        try:
            while self._turn():
                pass
        finally:
            for one in self._tries.values():
                kill_group(one.group)

    def _turn(self) -> bool:
        for key, _ in self._selector.select(POLL if self._tries else None):
            if key.fd != self._requests:
                self._hear(self._tries[key.fd])
            elif not self._take():
                return False
        self._look()
        return True

    def _take(self) -> bool:
        data = os.read(self._requests, 1 << 16)
        for request in self._lines.messages(data):
            self._start(request)
        return bool(data)

    def _start(self, request: dict[str, Any]) -> None:
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            os.close(ours)
            os.close(self._answers)
            for one in self._tries.values():
                os.close(one.pipe)
            self._selector.close()
            _run(request["job"], request["task"], Path(request["folder"]), theirs)
        os.close(theirs)
        with suppress(PermissionError, ProcessLookupError):  # it was faster, or is gone
            os.setpgid(child, child)
        self._tries[ours] = Try(request, child, ours)
        self._say({"number": request["number"], "group": child})
        self._selector.register(ours, selectors.EVENT_READ)

    def _hear(self, one: Try) -> None:
        data = os.read(one.pipe, 1 << 20)
        try:
            for message in one.lines.messages(data):
                if one.hear(message):
                    self._say({"number": one.number, "stage": one.stage})
        except DocumentError as error:
            one.fail(f"its answer is none: {error}")
        if not data or one.ending:
            self._close(one)

    def _look(self) -> None:
        """Memory and time of all children, now and then."""
        now = time.monotonic()
        if not self._tries or now < self._next_look:
            return
        used = resident_bytes()
        self._next_look = now + POLL
        for one in list(self._tries.values()):
            if one.overdue(now, used[one.group]):
                self._close(one)

    def _close(self, one: Try) -> None:
        """Ends what is left of a try, and says how it ended."""
        kill_group(one.group)  # a process that is ending already keeps its status
        _, status, usage = os.wait4(one.group, 0)
        self._selector.unregister(one.pipe)
        os.close(one.pipe)
        del self._tries[one.pipe]
        self._say({"number": one.number, "ending": one.close(status, usage)})

    def _say(self, message: dict[str, Any]) -> None:
        write_all(self._answers, json.dumps(message).encode() + b"\n")


def _log_of(folder: str) -> str:
    """The last of a child's log."""
    try:
        with open(os.path.join(folder, LOG), "rb") as file:
            return last_words(file)
    except OSError:
        return ""


def _run(job: str, task: dict[str, Any], folder: Path, pipe: int) -> NoReturn:
    """Does a job, "module:function", in a process that was just forked, and ends it. Lines of JSON go to the pipe."""

    def tell(message: dict[str, Any]) -> None:
        write_all(pipe, json.dumps(plain_numbers(message), allow_nan=False).encode() + b"\n")

    code = 1
    try:
        _settle(folder)
        try:
            function: Job = pkgutil.resolve_name(job)
            tell({"answer": function(task, folder, lambda stage: tell({"stage": stage}))})
            code = 0
        except MemoryError:
            tell({"memory": "an allocation failed"})
        except BaseException as error:  # noqa: BLE001 - whatever happens is a result
            traceback.print_exc()
            tell({"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()})
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _settle(folder: Path) -> None:
    """Gives a child its own group, signals and output instead of the server's."""
    die_with_parent()
    os.setpgid(0, 0)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    log = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    for old, new in ((null, 0), (log, 1), (log, 2)):
        os.dup2(old, new)
    os.close(log)
    os.close(null)
    sys.stdout = os.fdopen(1, "w", errors="backslashreplace", closefd=False)
    sys.stderr = os.fdopen(2, "w", errors="backslashreplace", closefd=False)


def _warm() -> None:
    """Imports the compiler, numpy, the interpreter and TOSA's reference model, and reads the files of rules."""
    import_module("tflq.tools.sweep.measure")
    for name in PACKAGES:
        package = import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            import_module(module.name)
    from tflq.ir.ops import dialect
    from tflq.targets.load import load_target
    from tflq.tools.sweep.task import surroundings
    from tflq.tools.verify.runner import interpreter_name

    interpreter_name()
    surroundings()
    with suppress(ImportError):
        import_module("tosa_reference_model")
    for name in DIALECTS:
        if (declared := dialect(name)) is not None:
            declared.classes()
    load_target("kernels")


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    answers = os.dup(1)
    os.dup2(2, 1)  # what imports print is not an answer
    for number in (signal.SIGINT, signal.SIGTERM):  # the driver's business, which closes our input
        signal.signal(number, signal.SIG_IGN)
    _warm()
    gc.collect()
    gc.freeze()
    with suppress(BrokenPipeError):  # the driver is gone
        Server(0, answers).serve()
