"""One model after another in the interpreter, in one process that is started anew when a model takes it down."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from tflq.verification.inputs import given
from tflq.verification.runner import RunError, Runner

__all__ = ["Inputs", "Interpreter"]

Inputs: TypeAlias = Mapping[str, np.ndarray]
"""Arrays by input name."""


class Interpreter:
    """Runs the first functions of models, with the reference kernels."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._runner: Runner | None = None

    def run(self, model: bytes, inputs: Inputs | Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs of a model on inputs by name, or in order. RunError if it does not run."""
        with tempfile.NamedTemporaryFile(prefix="tflq-", suffix=".tflite") as file:
            file.write(model)
            file.flush()
            try:
                runner = self._open(file.name)
                arrays = given(runner.entries[""]["inputs"], inputs) if isinstance(inputs, Mapping) else inputs
                return runner.run("", arrays).outputs
            except RunError as error:
                if error.fatal:
                    self.close()
                raise

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def _open(self, path: str) -> Runner:
        if self._runner is None:
            self._runner = Runner(path, resolver="reference", keep=False, timeout=self._timeout)
        else:
            self._runner.reopen(path)
        return self._runner
