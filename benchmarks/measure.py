"""Timing helpers: a command as a whole process (wall time, peak memory) and repeated runs."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["Figure", "in_process", "in_turns", "of_children", "peak_growth", "status", "whole_process"]


class Figure(NamedTuple):
    """Median seconds and peak resident memory in MiB (0 where not measured)."""

    seconds: float
    mebibytes: float

    def __str__(self) -> str:
        return f"{self.seconds:.3f} s / {self.mebibytes:.0f} MiB"


def whole_process(command: Sequence[str], repeat: int = 5) -> Figure:
    """Median wall time and largest peak memory of a command. RuntimeError with its output if it fails."""
    times, peak = [], 0.0
    for _ in range(repeat):
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        times.append(time.perf_counter() - start)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(
                f"{' '.join(command)}: exit code {process.returncode}\n{output.decode(errors='replace')}"
            )
        peak = max(peak, usage.ru_maxrss / 1024)
    return Figure(statistics.median(times), peak)


def peak_growth(function: Callable[[], object]) -> float:
    """MiB by which this process grows at most during a call. OSError where Linux does not tell."""
    with open("/proc/self/clear_refs", "w") as control:
        control.write("5")  # the peak begins anew
    before = status("VmRSS")
    function()
    return (status("VmHWM") - before) / 1024


def status(key: str, process: int | str = "self") -> int:
    """KiB of one line of a process' /proc/PID/status. OSError where Linux does not tell."""
    with open(f"/proc/{process}/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(key))


def in_process(setup: str, statement: str, repeat: int = 7) -> float:
    """Median seconds of a statement in a Python process of its own, after one warm-up run."""
    program = (
        f"import time, statistics\n{setup}\ntimes = []\n"
        f"for _ in range({repeat + 1}):\n    start = time.perf_counter()\n    {statement}\n"
        "    times.append(time.perf_counter() - start)\nprint(statistics.median(times[1:]))"
    )
    return float(
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()[-1]
    )


def of_children() -> float:
    """Seconds of processor time of the processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def in_turns(
    functions: Sequence[Callable[[], object]], repeat: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Median seconds of each call, made in turns, so that what else the machine does meets all of them."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeat):
        for function, taken in zip(functions, times, strict=True):
            start = clock()
            function()
            taken.append(clock() - start)
    return [statistics.median(taken) for taken in times]
