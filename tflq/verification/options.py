"""How two models are compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

import numpy as np

from tflq.verification.difference import EXACT, Tolerance
from tflq.verification.expected import ReportLike
from tflq.verification.inputs import GivenInputs
from tflq.verification.runner import Resolver

__all__ = ["Options", "Recorded", "Source"]

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
Progress = Callable[[str, int, int], None]


class Recorded(Protocol):
    """What an original gave, by the kernels it ran on, the entry and the inputs, from its initial state: such runs do
    not depend on each other, so that one whose outputs are known need not be run again."""

    def get(self, kernels: str, entry: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Outputs in the order of the entry's; None if they are not known."""

    def put(self, kernels: str, entry: str, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None: ...


@dataclass(frozen=True)
class Options:
    """How two models are compared: the options of `verify`, by the same names; and outputs of the original that are
    `recorded`, which spare it a run where nothing else of it is looked at."""

    inputs: GivenInputs | str | os.PathLike[str] | None = None
    seeds: int = 2
    seed: int = 0
    layers: bool = False
    batch: int | None = None
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    resolver: Resolver = "reference"
    interface: bool = True
    tolerance: Tolerance = EXACT
    report: ReportLike | None = None
    recorded: Recorded | None = None
    time: bool = False
    timeout: float = 600.0
    progress: Progress = lambda _, __, ___: None
