"""Draw the memory of a process whose threads convert without end: python benchmarks/threads_memory.py [--plot PLOT.svg]

For 1, 4 and 16 threads a fresh process converts models, each thread one after another, and its resident memory is read
every two seconds. Prints conversions, and the least and the most MiB of the first and of the last third: what is
collected as it is made does not grow. The plot's axes are logarithmic.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from chart import curves
from measure import status

ROOT = Path(__file__).resolve().parents[1]
EVERY = 2.0  # seconds
Points = list[tuple[float, float]]
PROGRAM = """
import sys, threading, time
import tflq
threads, end, models = int(sys.argv[1]), time.monotonic() + float(sys.argv[2]), sys.argv[3:]
counts = [0] * threads
def convert(number):
    while time.monotonic() < end:
        tflq.convert(models[(number + counts[number]) % len(models)])
        counts[number] += 1
each = [threading.Thread(target=convert, args=(number,)) for number in range(threads)]
for thread in each: thread.start()
for thread in each: thread.join()
print(sum(counts))
"""


def measured(threads: int, seconds: float, models: Sequence[str]) -> tuple[int, Points]:
    """Conversions, and MiB by seconds. CalledProcessError if one fails."""
    command = [sys.executable, "-c", PROGRAM, str(threads), str(seconds), *models]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    start, points = time.monotonic(), Points()
    while process.poll() is None:
        time.sleep(EVERY)
        at = time.monotonic() - start
        if at < seconds:  # later it ends
            points.append((at, status("VmRSS", process.pid) / 1024))
    assert process.stdout is not None
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command[0])
    return int(process.stdout.read()), points


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=[str(ROOT / "models" / "cnn_int8.tflite")])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    drawn: dict[str, Points] = {}
    for threads in arguments.threads:
        count, points = measured(threads, arguments.seconds, arguments.models)
        drawn[f"{threads} threads" if threads > 1 else "1 thread"] = points
        thirds = [[mib for _, mib in part] for part in (points[: len(points) // 3], points[-len(points) // 3 :])]
        first, last = (f"{min(part):.0f} to {max(part):.0f}" for part in thirds)
        print(
            f"{threads:>2} threads: {count:,} conversions, MiB of the first third {first}, of the last {last}",
            flush=True,
        )
    if arguments.plot is not None:
        arguments.plot.write_text(curves({"MiB of the process": drawn}, "seconds"), encoding="utf-8")


if __name__ == "__main__":
    main()
