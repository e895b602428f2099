"""Programs in C beside the model that they were written from: sums and steps within them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tflq.tools.verify.compiled import CompiledSource
from tflq.tools.verify.file_runner import Compare, Step, StepRun
from tflq.tools.verify.steps import steps
from tflq.tools.verify.sums import try_sums
from tflq.tools.verify.tflite_runner import TfliteRunner


class CompiledRunner(CompiledSource):
    """A source in C, compiled, with the hooks that show what is within it."""

    def sums_beside(
        self, original: TfliteRunner, key: str, inputs: Sequence[np.ndarray], timeout: float
    ) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        return try_sums(original, self, key, inputs, timeout)

    def steps_beside(
        self, original: TfliteRunner, key: str, runs: Sequence[StepRun], compare: Compare
    ) -> Iterator[Step]:
        runs = [run._replace(inputs=self.ordered(run.inputs, key)) for run in runs]
        return steps(original.path, self, key, runs, compare)
