"""Duration of one run of each model, in the processes of a comparison.

The interpreter is as users have it, with its default delegate and one thread.

The models take turns, so that other load on the machine affects both. A turn is one run that is not measured, which
sets the inputs and fills the caches, and then as many as fit into a few milliseconds; it counts with their mean, in
time of the processor. Times are medians over the turns, and the ratio is the median of the turns' ratios.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from time import monotonic

import numpy as np

from tflq.tools.verify.layers import AnyRunner
from tflq.tools.verify.outcome import RunTime
from tflq.tools.verify.runner import Opened, RunError
from tflq.tools.verify.tflite_runner import TfliteRunner

TURNS, LEAST_TURNS = 15, 3
SECONDS = 10.0
"""After so many seconds no more turns begin, once there were LEAST_TURNS."""


def run_time(a: AnyRunner, b: AnyRunner, key: str, inputs: Sequence[np.ndarray]) -> RunTime:
    """Duration of a run of an entry in both models on these inputs. A model that the default kernels do
    not run is not an error: `problem` says so."""
    problem = a.untimed or b.untimed
    if problem or not isinstance(a, TfliteRunner) or not isinstance(b, TfliteRunner):
        return RunTime(key, problem=problem)
    try:
        with a.timed() as before, b.timed() as after:
            return run_time_of(before, after, key, inputs)
    except RunError as error:
        return RunTime(key, problem=f"the default kernels do not run both models: {error}")


def run_time_of(before: Opened, after: Opened, key: str, inputs: Sequence[np.ndarray]) -> RunTime:
    """Duration of a run of an entry in two models that are open. RunError if one does not run."""
    turns: list[tuple[float, float]] = []
    end = monotonic() + SECONDS
    while len(turns) < LEAST_TURNS or (len(turns) < TURNS and monotonic() < end):
        turns.append((before.time(key, inputs), after.time(key, inputs)))
    firsts, seconds = zip(*turns, strict=True)
    return RunTime(key, median(firsts), median(seconds), median(s / f for f, s in turns), len(turns))
