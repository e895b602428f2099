"""Conversion of a large file beside copying it: python benchmarks/claim_large.py [GIGABYTES]

int8 FULLY_CONNECTED of 400 MB, one after the other. Time as a whole process, times that of `cp`; the peak of memory
that is not mapped from the file (RssAnon), times the file. Destinations are removed before each run.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from claims import Claim, table
from convert_speed import fully_connected
from measure import status

import tflq
from tflq.ir.module import Module
from tflq.ir.ops import Buffer, Op, Value

GIGABYTES: Final = 10
MEGABYTES: Final = 400
REPEAT: Final = 3
FORMS: Final = {"integer": 2.0, "kernels": None}
"""Targets, and the most times `cp` that each may take."""
MEMORY: Final = 0.2


def network(gigabytes: float) -> Module:
    """Layers of 400 MB; each stores the same weights again."""
    module = fully_connected(MEGABYTES)
    (first,) = module.main.ops
    ops = [first]
    for number in range(1, max(1, round(gigabytes * 1000 / MEGABYTES))):
        weights, bias = (_again(v, f"{v.name}{number}") for v in first.operands[1:] if v is not None)
        result = Value(first.result.type, f"{first.result.name}{number}")
        ops.append(Op(first.name, [ops[-1].result, weights, bias], [result], dict(first.attributes), info=first.info))
    module.main.ops, module.main.outputs = ops, [ops[-1].result]
    return module


def _again(value: Value, name: str) -> Value:
    assert value.buffer is not None
    return Value(value.type, name, buffer=Buffer(value.buffer.data))


def run(command: Sequence[str], made: Path) -> tuple[float, float]:
    """Median seconds of a command that makes a file, and the most MiB that it held beside mapped files."""
    times, peak = [], 0
    for _ in range(REPEAT):
        made.unlink(missing_ok=True)
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while process.poll() is None:
            peak = max(peak, _anonymous(process.pid))
            time.sleep(0.01)
        times.append(time.perf_counter() - start)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}")
    return statistics.median(times), peak / 1024


def _anonymous(process: int) -> int:
    """KiB of a process that are not mapped from files; 0 once it is gone."""
    try:
        return status("RssAnon", process)
    except (OSError, StopIteration):
        return 0


def claims(gigabytes: float = GIGABYTES) -> Iterator[Claim]:
    with tempfile.TemporaryDirectory() as place:
        source, made = Path(place) / "large.tflite", Path(place) / "out.tflite"
        tflq.write(network(gigabytes), source)
        size = source.stat().st_size
        case = f"fully connected, {size / 1e9:.1f} GB"
        copying, _ = run(["cp", str(source), str(made)], made)
        for form, aim in FORMS.items():
            command = [sys.executable, "-m", "tflq", "convert", str(source), str(made), "--target", form]
            seconds, peak = run(command, made)
            of = f"{seconds:.1f} s, cp {copying:.1f} s"
            yield Claim(f"large file, {form}", case, seconds / copying, aim, "× cp", of)
            share = peak * 2**20 / size
            yield Claim(f"memory beside the file, {form}", case, share, MEMORY, "× file", f"{peak:.0f} MiB")


if __name__ == "__main__":
    print(table(claims(float(sys.argv[1]) if len(sys.argv) > 1 else GIGABYTES)))
