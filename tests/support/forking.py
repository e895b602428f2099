"""Processes of Python as forks of a server that has loaded what they import: they start in milliseconds.

What starts a process of `tflq.base.processes` is tested with real ones; most tests ask only what the process computes.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection, wait
from pathlib import Path
from subprocess import TimeoutExpired
from types import MappingProxyType
from typing import IO, Any, Final

from tflq.base.files import PACKAGE
from tflq.base.processes import python_process

LOADED: Final = (
    "numpy",
    "ai_edge_litert.interpreter",
    "onnxruntime",
    "tflq.conversion.convert",
    "tflq.tools.quantize.correction.correcting",
    "tflq.tools.quantize.debugging.measuring",
    "tflq.tools.verify.worker",
)
"""Modules of the server; those that are not installed are left out."""

_CONTEXT: Final = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(list(LOADED))


class Fork:
    """As much of `subprocess.Popen` as `tflq` uses."""

    def __init__(self, arguments: tuple[str, ...], env: Mapping[str, str], stderr: IO[bytes] | None) -> None:
        requests, stdin = _CONTEXT.Pipe(duplex=False)
        stdout, answers = _CONTEXT.Pipe(duplex=False)
        errors = Connection(os.dup(2 if stderr is None else stderr.fileno()))
        ends = requests, answers, errors
        environment = {**os.environ, "PYTHONSAFEPATH": "1", **env}
        self._process = _CONTEXT.Process(target=_run, args=(ends, os.getcwd(), environment, arguments), daemon=True)
        self._process.start()
        for end in ends:
            end.close()
        self.stdin: IO[bytes] | None = os.fdopen(os.dup(stdin.fileno()), "wb")
        self.stdout: IO[bytes] | None = os.fdopen(os.dup(stdout.fileno()), "rb")
        stdin.close()
        stdout.close()
        self._lock = threading.Lock()

    def kill(self) -> None:
        self._process.kill()

    def terminate(self) -> None:
        self._process.terminate()

    def poll(self) -> int | None:
        with self._lock:  # the exit code can be read once
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        wait([self._process.sentinel], timeout)
        code = self.poll()
        if code is None:
            raise TimeoutExpired("a fork", timeout or 0)
        return code


def process(*arguments: str, env: Mapping[str, str] = MappingProxyType({}), **options: Any) -> Any:
    """Stands for `processes.python_process`; where a process has other options than a log, it is a real one."""
    if options.keys() - {"stderr"}:
        return python_process(*arguments, env=env, **options)
    return Fork(arguments, env, options.get("stderr"))


def _run(
    ends: tuple[Connection, Connection, Connection], folder: str, environment: dict[str, str], arguments: list[str]
) -> None:
    """Is the process: a script of tflq, or the code behind `-c`."""
    for number, end in enumerate(ends):
        os.dup2(end.fileno(), number)
        end.close()
    sys.stdin = os.fdopen(0, closefd=False)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    if arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        exec(arguments[1], {"__name__": "__main__"})  # noqa: S102 - of processes.python_call
    else:
        place = Path(arguments[0]).relative_to(Path(PACKAGE).parent)
        runpy.run_module(".".join(place.with_suffix("").parts), run_name="__main__", alter_sys=True)
