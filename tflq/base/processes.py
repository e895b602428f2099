"""Processes of our own: one call with a time limit, a pool for many jobs, and how a process ended.

A process that crashes, hangs or takes too much memory is an answer here; it never ends its parent. The server of a
sweep (`sweep.server`), which forks a child per task, and the processes that run models (`verification.runner`) are
built from the same parts.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from subprocess import PIPE, Popen, TimeoutExpired
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar

from tflq.base.files import PACKAGE

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

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
    """Result of function(*arguments) from a child process that has `timeout` seconds, or its error. Both are pickled.

    If the system cannot fork, it runs in this process.
    """
    import multiprocessing

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


# Processes of Python
#
# Each gets the safe path: neither the current folder nor that of the script is on it, so that no file beside the models
# is imported. What it starts in turn gets the same, by the environment. PYTHONPATH stays as it is.


_SAFE: Final = {"PYTHONSAFEPATH": "1"}
_INHERITED: Final = {"isolated": "-I", "ignore_environment": "-E", "no_user_site": "-s"}
_CALL: Final = """\
import sys
path = sys.argv[1:]
del sys.argv[1:]
sys.path[:] = [*path, *(entry for entry in sys.path if entry not in path)]
from {module} import {function}
{function}()"""


def python_process(*arguments: str, env: Mapping[str, str] = MappingProxyType({}), **options: Any) -> Popen[bytes]:
    """A process of Python on the safe path, under the flags of this one. arguments: a script's path, or as `-c` wants.
    env: variables in addition to those of this process. options: others of `subprocess.Popen`."""
    flags = [flag for name, flag in _INHERITED.items() if getattr(sys.flags, name)]
    command = [sys.executable, "-P", *flags, *["-O"] * sys.flags.optimize, *arguments]
    return Popen(command, stdin=PIPE, stdout=PIPE, env={**os.environ, **_SAFE, **env}, **options)  # noqa: S603 - ours


def python_call(function: str, env: Mapping[str, str] = MappingProxyType({}), **options: Any) -> Popen[bytes]:
    """A process of `python_process` that runs a function "module:name" of tflq, which finds what this process can
    import."""
    module, _, name = function.partition(":")
    return python_process("-c", _CALL.format(module=module, function=name), *_safe_path(), env=env, **options)


def _safe_path() -> list[str]:
    """Folders of `sys.path` in their order, without the one that Python puts first to start a program, and tflq's."""
    script = getattr(sys.modules["__main__"], "__file__", None)
    unsafe = {os.path.realpath(os.path.dirname(script))} if script else set()
    with suppress(FileNotFoundError):  # the current folder was removed
        unsafe.add(os.path.realpath(os.getcwd()))
    safe = [entry for entry in sys.path if os.path.isabs(entry) and os.path.realpath(entry) not in unsafe]
    root = os.path.dirname(PACKAGE)
    return safe if root in safe else [*safe, root]


# A pool


def in_processes(work: Callable[[Job], Answer], jobs: Iterable[Job], count: int) -> Iterator[tuple[int, Answer | Died]]:
    """Has `count` processes do jobs; yields the number and the answer of each when it is done. work: a function of a
    module. One job more than there are processes is taken ahead. If a process dies, only its job is lost."""
    workers: set[_Worker[Job, Answer]] = set()
    answers: SimpleQueue[tuple[_Worker[Job, Answer], Answer | Died]] = SimpleQueue()
    waiting = iter(enumerate(jobs))
    following = next(waiting, None)

    def give(worker: _Worker[Job, Answer] | None) -> None:
        """Gives the following job to a process, or to a new one."""
        nonlocal following
        if following is not None:
            if worker is None:
                worker = _Worker(work, answers)
                workers.add(worker)
            worker.give(*following)
            following = next(waiting, None)  # made while it works

    try:
        for _ in range(count):
            give(None)
        while workers:
            worker, answer = answers.get()
            if worker not in workers:  # one that was stopped
                continue
            number = worker.number
            if following is None or isinstance(answer, Died):
                workers.remove(worker)
                worker.stop()
            give(None if isinstance(answer, Died) else worker)
            yield number, answer
    finally:
        for worker in workers:
            worker.stop()


_SECOND_SIGNAL: Final = 5.0
"""Seconds after which a process that goes on is told again to end."""


class _Worker(Generic[Job, Answer]):
    """A process, and the number of its job."""

    def __init__(self, work: Callable[[Job], Answer], answers: SimpleQueue[Any]) -> None:
        """answers: where the process's answers go, each with this worker."""
        with _without_interrupts():
            self._process = python_call("tflq.base.processes:serve")  # a fork would copy threads of a progress display
        self.number = -1
        self._send(work)
        self._reader = threading.Thread(target=self._read, args=(answers,), daemon=True)
        self._reader.start()

    def give(self, number: int, job: Job) -> None:
        self.number = number
        self._send(job)

    def stop(self) -> None:
        """Ends the process at once; it removes its temporary files. Python loses an exception of a signal in a callback
        or a finalizer: then the process finds its pipe closed, or is told again."""
        assert self._process.stdin is not None
        with suppress(OSError):  # unsent bytes for a process that is gone
            self._process.stdin.close()
        while self._process.poll() is None:
            self._process.terminate()
            with suppress(TimeoutExpired):
                self._process.wait(_SECOND_SIGNAL)
        self._reader.join()

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # the process has died; its reader says so
            pickle.dump(message, self._process.stdin)
            self._process.stdin.flush()

    def _read(self, answers: SimpleQueue[Any]) -> None:
        """Passes the answers on, the last of which is how the process died."""
        assert self._process.stdout is not None
        with self._process.stdout as stream, suppress(EOFError, OSError, pickle.UnpicklingError):
            while True:
                answers.put((self, pickle.load(stream)))  # noqa: S301 - our own process
        answers.put((self, Died(how_ended(self._process.wait()))))


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Blocks Ctrl-C, in processes started meanwhile for good: else one would say so until `serve` ignores it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve() -> None:
    """Is the process: answers each job, until there are no more or it is told to end. The first message is the function
    that does them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it as well, and ends this process
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _exit)
    try:
        _answer_jobs()
    except Exception:
        if not _ends:  # else C code has turned the exception of the signal into this one, as numpy's import does
            raise
        sys.exit(_ends[-1])


def _answer_jobs() -> None:
    with os.fdopen(os.dup(0), "rb") as jobs, os.fdopen(os.dup(1), "wb") as answers, suppress(EOFError, OSError):
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)  # what a job prints is no answer
        work = pickle.load(jobs)  # noqa: S301 - from our parent
        while True:
            answer = pickle.dumps(work(pickle.load(jobs)))  # noqa: S301
            answers.write(answer)
            answers.flush()


_ends: Final[list[int]] = []
"""The exit code, once the process is told to end."""


def _exit(number: int, _: object) -> NoReturn:
    """Ends the process by an exception, so that it removes its temporary files."""
    _ends.append(128 + number)
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
    """Number of processes that the system has killed since its start because memory ran out (Linux)."""
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
