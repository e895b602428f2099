"""Processes of our own: one call with a time limit, a pool for many jobs, and how a process ended.

A process that crashes, hangs or takes too much memory is an answer here; it never ends its parent. The server of a
sweep (`sweep.server`), which forks a child per task, and the processes that run models (`verification.runner`) are
built from the same parts.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Final, Generic, NoReturn, TypeVar

Job = TypeVar("Job")
Answer = TypeVar("Answer")

_PROC: Final = Path("/proc")
_PR_SET_PDEATHSIG: Final = 1


# How a process ended


class Died(Exception):  # noqa: N818 an answer, not an error of ours
    """A process ended without an answer. The message says how: "SIGSEGV", "exit code 3", "no answer in 60 s"."""


def signal_name(number: int) -> str:
    """The name of a signal; "signal 35" for one without a name, such as most real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def how_ended(code: int) -> str:
    """An exit code of `subprocess` or `multiprocessing` in words."""
    return signal_name(-code) if code < 0 else f"exit code {code}"


def last_words(log: IO[bytes], most: int = 4000) -> str:
    """The last bytes of a log."""
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - most))
    return log.read().decode(errors="replace").strip()


# One call


def call(function: Callable[..., Any], *arguments: Any, timeout: float) -> Any:
    """What function(*arguments) returns or raises in a child process that has `timeout` seconds. Both are pickled.

    If the system cannot fork, it runs in this process.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        return function(*arguments)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(theirs, function, arguments), daemon=True)
    with warnings.catch_warnings():  # about forking with threads: ours hold no locks that the child takes
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    theirs.close()
    try:
        with limited(timeout, child.kill) as late:
            returned, value = ours.recv()
    except (EOFError, OSError):  # it ended before or during its answer
        child.join()
        raise Died(f"no answer in {timeout:g} s" if late.is_set() else how_ended(child.exitcode or 0)) from None
    finally:
        child.kill()
        child.join()
        ours.close()
    if not returned:
        raise value
    return value


def _answer(pipe: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        answer = True, function(*arguments)
    except Exception as error:  # noqa: BLE001 - the parent raises it
        answer = False, error
    try:
        pipe.send(answer)
    except (AttributeError, TypeError, ValueError) as error:  # it cannot be pickled
        pipe.send((False, RuntimeError(f"{type(answer[1]).__name__}: {answer[1]} ({error})")))


@contextmanager
def limited(seconds: float, kill: Callable[[], None]) -> Iterator[threading.Event]:
    """Kills a process that still runs after so many seconds, so that reading from it ends. The event tells whether this
    happened."""
    late = threading.Event()

    def stop() -> None:
        late.set()
        kill()

    timer = threading.Timer(seconds, stop)
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()


# A pool


def in_processes(work: Callable[[Job], Answer], jobs: Iterable[Job], count: int) -> Iterator[tuple[int, Answer | Died]]:
    """Has `count` processes do jobs; yields the number and the answer of each when it is done. work: a function of a
    module. One job more than there are processes is taken ahead. If a process dies, only its job is lost."""
    workers: dict[Connection, _Worker[Job, Answer]] = {}
    waiting = iter(enumerate(jobs))
    following = next(waiting, None)

    def give(worker: _Worker[Job, Answer] | None) -> None:
        """Gives the following job to a process, or to a new one."""
        nonlocal following
        if following is not None:
            worker = worker or _Worker(work)
            workers[worker.pipe] = worker
            worker.give(*following)
            following = next(waiting, None)  # made while it works

    try:
        for _ in range(count):
            give(None)
        while workers:
            for pipe in wait(list(workers)):
                assert isinstance(pipe, Connection)
                worker = workers.pop(pipe)
                number, answer = worker.number, worker.answer()
                if following is None or isinstance(answer, Died):
                    worker.stop()
                give(None if isinstance(answer, Died) else worker)
                yield number, answer
    finally:
        for worker in workers.values():
            worker.stop()


_TOLD_AGAIN: Final = 5.0
"""Seconds after which a process that goes on is told again to end."""


class _Worker(Generic[Job, Answer]):
    """A process, and the number of its job."""

    def __init__(self, work: Callable[[Job], Answer]) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy the threads of a progress display
        self.pipe, end = context.Pipe()
        self.process: BaseProcess = context.Process(target=_serve, args=(work, end), daemon=True)
        with _no_main():
            self.process.start()
        end.close()
        self.number = -1

    def give(self, number: int, job: Job) -> None:
        self.number = number
        with suppress(OSError):  # the process has died; `answer` will say so
            self.pipe.send(job)

    def answer(self) -> Answer | Died:
        try:
            received: Answer = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            return Died(how_ended(self.process.exitcode or 0))
        return received

    def stop(self) -> None:
        """Ends the process at once; it removes its temporary files. Python loses an exception of a signal in a callback
        or a finalizer: then the process finds its pipe closed, or is told again."""
        self.pipe.close()
        while self.process.is_alive():
            self.process.terminate()
            self.process.join(_TOLD_AGAIN)


@contextmanager
def _no_main() -> Iterator[None]:
    """Processes that are spawned meanwhile do not run the program's main module again: a script that calls us needs no
    guard by `__name__`, and no process waits for imports that it does not need."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _serve(work: Callable[[Any], Any], pipe: Connection) -> None:
    """The process: answers each job, until the pipe is closed or it is told to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it as well, and ends this process
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _exit)
    with suppress(EOFError, OSError):
        while True:
            pipe.send(work(pipe.recv()))


def _exit(number: int, _: object) -> NoReturn:
    """Ends the process by an exception, so that it removes its temporary files."""
    sys.exit(128 + number)


# Groups of processes


def die_with_parent() -> None:
    """Makes the system kill this process when its parent ends, in whatever way (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def kill_group(group: int) -> None:
    """Ends all processes of a group, if there are any."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def kills_by_system() -> int:
    """How many processes the system has killed since it started because memory ran out (Linux)."""
    with suppress(OSError):
        for line in (_PROC / "vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def resident_bytes() -> Counter[int]:
    """Resident memory of each process group, in bytes. Pages that several processes share count for each."""
    by_group: Counter[int] = Counter()
    if not (_PROC / "self/stat").exists():
        listed = subprocess.run(["ps", "-axo", "pgid=,rss="], capture_output=True, text=True, check=True).stdout  # noqa: S607
        for line in listed.splitlines():
            group, kibibytes = line.split()
            by_group[int(group)] += int(kibibytes) << 10
        return by_group
    page = os.sysconf("SC_PAGE_SIZE")
    for name in os.listdir(_PROC):
        if name.isdigit():
            with suppress(OSError):  # it has ended
                fields = (_PROC / name / "stat").read_bytes().rpartition(b")")[2].split()
                by_group[int(fields[2])] += int(fields[21]) * page
    return by_group
