"""Processes of our own: whatever becomes of one is an answer."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from support.finalizers import finalized

import tflq
from tflq.base.processes import Died, _Worker, call, how_ended, in_processes, last_words
from tflq.tools.verify.runner import Child, RunError

NAMELESS = 35
"""A real-time signal for which `signal.Signals` has no name."""


def test_a_call_answers_raises_or_dies() -> None:
    assert call(sum, [1, 2], timeout=60) == 3
    with pytest.raises(ZeroDivisionError):
        call(divmod, 1, 0, timeout=60)
    with pytest.raises(Died, match="exit code 4"):
        call(os._exit, 4, timeout=60)
    with pytest.raises(Died, match="SIGTERM"):
        call(signal.raise_signal, signal.SIGTERM, timeout=60)
    with pytest.raises(RuntimeError, match="lambda"):
        call(lambda: lambda: 0, timeout=60)


def test_a_process_that_loses_the_exception_of_a_signal_ends(tmp_path: Path) -> None:
    answers = in_processes(finalized, [None, tmp_path / "entered"], 2)
    assert next(answers) == (0, None)
    deadline = time.monotonic() + 30
    while not (tmp_path / "entered").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    start = time.monotonic()
    answers.close()  # type: ignore[attr-defined]
    assert time.monotonic() - start < 30, "the finalizer goes on to its end"


def test_a_process_that_is_ended_as_it_imports_says_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """C code that imports, such as numpy's, turns the exception of a signal into one of its own."""
    began = tmp_path / "began"
    job = (
        f"import pathlib, time\ntry:\n    pathlib.Path({str(began)!r}).touch()\n    time.sleep(60)\n"
        "except SystemExit:\n    raise ImportError('the module datetime') from None"
    )
    answers = in_processes(exec, ["0", job], 1)
    assert next(answers) == (0, None)
    deadline = time.monotonic() + 30
    while not began.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    answers.close()  # type: ignore[attr-defined]
    assert capfd.readouterr().err == ""


def test_an_interrupt_does_not_reach_a_process_that_starts(capfd: pytest.CaptureFixture[str]) -> None:
    answers: SimpleQueue[Any] = SimpleQueue()
    worker: _Worker[int, int] = _Worker(abs, answers)
    worker._process.send_signal(signal.SIGINT)
    worker.give(0, -3)
    assert answers.get(timeout=60) == (worker, 3)
    worker.stop()
    assert capfd.readouterr().err == ""
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_an_answer_larger_than_a_pipe() -> None:
    assert call(bytes, 1 << 22, timeout=60) == bytes(1 << 22)


def half_an_answer(then: Any, *arguments: Any) -> None:
    """Has this process, a child, send a part of its answer, and do something else."""

    def send(self: Connection, _: object) -> None:
        os.write(self.fileno(), (1000).to_bytes(4, "big") + bytes(100))
        then(*arguments)

    Connection.send = send  # type: ignore[assignment, method-assign]


def test_the_time_limit_covers_the_whole_answer() -> None:
    start = time.monotonic()
    with pytest.raises(Died, match=r"no answer in 0\.5 s"):
        call(half_an_answer, time.sleep, 30, timeout=0.5)
    with pytest.raises(Died, match="exit code 5"):
        call(half_an_answer, os._exit, 5, timeout=30)
    assert time.monotonic() - start < 20


def test_a_process_that_dies_takes_its_job_alone() -> None:
    jobs = [signal.SIGCONT, signal.SIGKILL, signal.SIGCONT, signal.SIGCONT]
    answers = dict(in_processes(signal.raise_signal, jobs, 2))
    assert {number: type(answer) for number, answer in answers.items() if answer is not None} == {1: Died}
    assert len(answers) == 4
    assert str(answers[1]) == "SIGKILL"


@pytest.mark.skipif(not hasattr(signal, "SIGRTMIN"), reason="has no real-time signals")
def test_a_signal_without_a_name() -> None:
    with pytest.raises(Died, match=f"^signal {NAMELESS}$"):
        call(signal.raise_signal, NAMELESS, timeout=60)
    assert [str(answer) for _, answer in in_processes(signal.raise_signal, [NAMELESS], 1)] == [f"signal {NAMELESS}"]
    child = Child("the tool", 60)
    os.kill(child._child.pid, NAMELESS)  # type: ignore[attr-defined]
    with pytest.raises(RunError, match=rf"the tool's process aborted \(signal {NAMELESS}\)"):
        child.ask({"do": "close", "id": 0})
    child.close()
    assert [how_ended(code) for code in (-signal.SIGKILL, -NAMELESS, 3)] == ["SIGKILL", "signal 35", "exit code 3"]


def test_the_last_words_of_a_log() -> None:
    assert last_words(io.BytesIO(b"first\nlast\n"), 7) == "t\nlast"
    assert last_words(io.BytesIO(b"")) == ""


def test_a_script_without_a_guard_can_start_them(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from tflq.base.processes import in_processes\nprint(sorted(in_processes(abs, [-1, -2, -3], 2)))\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "[(0, 1), (1, 2), (2, 3)]\n"


def test_no_process_has_the_current_folder_on_its_path(tmp_path: Path) -> None:
    """Even where a program has it: `python -m`. PYTHONPATH and what this process added stay, in their order."""
    (tmp_path / "more").mkdir()
    (tmp_path / "program.py").write_text(
        "import sys\nfrom tflq.base.processes import in_processes\n"
        "sys.path.insert(1, sys.argv[1])\n"
        "[(_, path)] = in_processes(eval, ['__import__(\"sys\").path'], 1)\n"
        "assert sys.path[0] not in path\nprint(*path, sep='\\n')"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "listed")}
    command = [sys.executable, "-m", "program", str(tmp_path / "more")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    first, second, *others = done.stdout.splitlines()
    assert [first, second] == [str(tmp_path / "more"), str(tmp_path / "listed")]
    assert all(Path(entry).is_absolute() for entry in others)


def test_what_a_job_prints_is_no_answer(capfd: pytest.CaptureFixture[str]) -> None:
    assert [answer for _, answer in in_processes(print, ["printed"], 1)] == [None]
    assert capfd.readouterr() == ("", "printed\n")


def test_one_module_starts_python() -> None:
    package = Path(tflq.__file__).parent
    words = ("sys.executable", "set_start_method", '"spawn"', '"forkserver"')
    files = [path for path in package.rglob("*.py") if any(word in path.read_text("utf-8") for word in words)]
    assert [path.relative_to(package).as_posix() for path in files] == ["base/processes.py"]
