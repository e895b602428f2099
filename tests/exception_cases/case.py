"""A model whose result is something else than its parameters say, or than the interpreter gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tflq.ir.types import ScalarType, UniformQuantizedType

Arrays: TypeAlias = list[list[np.ndarray]]


@dataclass(frozen=True, slots=True)
class Case:
    """`of`: the operator that the report warns of, in capitals. `inputs`: what the model runs on (default: those of the
    coverage table's models). `options` are for `tflq.convert`. `resets`: runs before which state is reset. `chance`:
    what the interpreter gives is left to chance, and is not measured. `when`: what the model is, beyond its types.
    `real`: the result from real inputs (default: what the interpreter makes of the same model on floats)."""

    of: str
    model: bytes
    when: str = ""
    inputs: Arrays | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    resets: Sequence[int] = ()
    chance: bool = False
    real: Callable[..., np.ndarray] | None = None


CASES: list[Callable[[], Iterator[Case]]] = []
"""What makes the cases."""


def cases(function: Callable[[], Iterator[Case]]) -> Callable[[], Iterator[Case]]:
    """Registers a generator of cases."""
    CASES.append(function)
    return function


def per_layer(storage: ScalarType, scale: float, zero_point: int = 0) -> UniformQuantizedType:
    """One scale, as float32 has it."""
    return UniformQuantizedType.of(storage, float(np.float32(scale)), zero_point)
