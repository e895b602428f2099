"""What `verify --layers` takes beside the runs that it makes: python benchmarks/claim_verification.py

Of the original and the integer form, with the interpreter's reference kernels: the time of the whole verification,
times that of its runs and of starting two processes, which is what a verification of next to nothing takes. Runs are
one for each set of inputs, and one for each chunk of operator results; the two models run at the same time, so a run
takes as long as the slower one.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from claims import Claim, networks, table
from run_time import interpreter

import tflq

NETWORKS: Final = ("mobilenet_v2_1.0_224_quant", "deeplabv3_mnv2_dm05_pascal_quant", "tf2_mobilenet_v2_1.0_224_ptq")
SMALL: Final = "pad"
MOST: Final = 1.3


def run_seconds(path: Path) -> float:
    """The median time of a run on the reference kernels."""
    model = interpreter(path.read_bytes(), "reference")
    times = []
    for _ in range(3):
        start = time.perf_counter()
        model.invoke()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def verified(a: Path, b: Path) -> tuple[int, float]:
    """How many runs a verification of all layers makes, and its seconds."""
    totals = [0]

    def progress(_what: str, _done: int, total: int) -> None:
        totals.append(total)

    start = time.perf_counter()
    result = tflq.verify(a, b, layers=True, progress=progress)
    assert result.equal, result
    return max(totals), time.perf_counter() - start


def claims() -> Iterator[Claim]:
    with tempfile.TemporaryDirectory() as place:
        small, made = networks([SMALL])[SMALL], Path(place) / "out.tflite"
        assert small is not None
        start = min(verified(small, small)[1] for _ in range(3))
        for name, path in networks(NETWORKS).items():
            if path is None:
                continue
            tflq.convert(path, made, force=True)
            runs, took = verified(path, made)
            slower = max(run_seconds(path), run_seconds(made))
            of = f"{took:.1f} s, {runs} runs of {slower:.2f} s, start {start:.2f} s"
            yield Claim("verification of all layers", name, took / (start + runs * slower), MOST, "× its runs", of)


if __name__ == "__main__":
    print(table(claims()))
