"""Whether two models say the same class: where the highest score of an output is, by input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tflq.verification.outcome import Agreement

__all__ = ["agreement"]


def agreement(
    entry: str, name: str, got: np.ndarray, want: np.ndarray, description: Mapping[str, Any]
) -> Agreement | None:
    """For how many inputs both have their highest score at the same class; None if the output does not look like
    scores of classes: floats or quantized integers, two or more for each input of a batch, along one axis."""
    classes = [d for d in want.shape[1:] if d != 1] if want.ndim > 1 else list(want.shape)
    number = want.dtype.kind == "f" or (want.dtype.kind in "iu" and bool(description.get("scales")))
    if not number or got.shape != want.shape or len(classes) != 1 or not want.size:
        return None
    rows = [np.argmax(array.reshape(-1, classes[0]), axis=1) for array in (got, want)]
    return Agreement(entry, name, rows[0].size, int(np.count_nonzero(rows[0] == rows[1])))
