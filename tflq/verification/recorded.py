"""Outputs of the original that are known from earlier runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

__all__ = ["Recorded"]


class Recorded(Protocol):
    """What an original gave, by the kernels it ran on, the entry and the inputs, from its initial state: such runs do
    not depend on each other, so that one whose outputs are known need not be run again."""

    def get(self, kernels: str, entry: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Outputs in the order of the entry's; None if they are not known."""

    def put(self, kernels: str, entry: str, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None: ...
