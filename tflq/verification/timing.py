"""What one run of each model takes, in the processes of a comparison: in the interpreter as users have it, with its
default delegate and one thread.

The models take turns, so that what else the machine does meets both. A turn is a run that is not measured, which sets
the inputs and fills the caches, and then as many as fit into a few milliseconds; it counts with their mean, in time of
the processor. Times are medians over the turns, and the ratio is the median of the turns' ratios.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from tflq.verification.layers import AnyRunner
from tflq.verification.runner import RunError
from tflq.verification.tflite_runner import TfliteRunner

__all__ = ["RunTime", "run_time"]

TURNS, LEAST_TURNS = 15, 3
SECONDS = 10.0
"""No turn begins after so many seconds, once there were the least."""
OF_TOSA = "the time that the TOSA reference model takes says nothing of a device's"


@dataclass(frozen=True, slots=True)
class RunTime:
    """How long a run of one entry takes in both models: an item of `Verification.time`.

    Attributes:
        entry: The key of a signature, or "" for the first subgraph by position.
        before: Seconds for a run of the original: the median of its turns. None if not measured.
        after: The same for the other model.
        ratio: How many times as long the other model takes: the median of the turns' ratios.
        turns: How often both were measured.
        problem: Why they were not measured. Empty if they were.

    Example:
        ```python
        for found in tflq.verify("in.tflite", "out.tflite", time=True).time:
            print(found.entry, found.ratio)
        ```
    """

    entry: str
    before: float | None = None
    after: float | None = None
    ratio: float | None = None
    turns: int = 0
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        """The times as in `tflq verify --json`: docs/json.md."""
        return {
            "entry": self.entry,
            "before": self.before,
            "after": self.after,
            "ratio": self.ratio,
            "turns": self.turns,
            "problem": self.problem,
        }


def run_time(a: AnyRunner, b: AnyRunner, key: str, inputs: Sequence[np.ndarray]) -> RunTime:
    """What an entry of the original and of the other model takes on these inputs. A model that the default kernels do
    not run is no error: `problem` says so."""
    if not isinstance(a, TfliteRunner) or not isinstance(b, TfliteRunner):
        return RunTime(key, problem=OF_TOSA)
    turns: list[tuple[float, float]] = []
    end = time.monotonic() + SECONDS
    try:
        with a.timed() as before, b.timed() as after:
            while len(turns) < LEAST_TURNS or (len(turns) < TURNS and time.monotonic() < end):
                turns.append((before.time(key, inputs), after.time(key, inputs)))
    except RunError as error:
        return RunTime(key, problem=f"the default kernels do not run both models: {error}")
    firsts, seconds = zip(*turns, strict=True)
    return RunTime(key, median(firsts), median(seconds), median(s / f for f, s in turns), len(turns))
