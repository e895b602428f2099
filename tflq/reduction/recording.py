"""What every tensor of a model holds after a run in the interpreter."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from tflq.ir.core import Module, Value
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType
from tflq.verification.inputs import GivenInputs, given, loaded, made
from tflq.verification.runner import RunError, Runner

__all__ = ["Recording", "input_sets", "invented", "record"]

Recording: TypeAlias = Mapping[tuple[int, int], np.ndarray]
"""By function and number in its tensor table."""


def input_sets(
    runner: Runner, entry: str, seeds: int, own: GivenInputs | str | os.PathLike[str] | None
) -> Iterator[list[np.ndarray]]:
    """The inputs of an entry, as `tflq.verify` makes them, or the user's own."""
    side = runner.entries[entry]["inputs"]
    if own is not None:
        yield from (given(side, arrays) for _, arrays in loaded(own))
    else:
        yield from (arrays for _, arrays in made(side, seeds, None))


def record(path: Path, module: Module, entry: str, inputs: Sequence[np.ndarray], timeout: float) -> Recording:
    """Every tensor of every function of a model, after one run of an entry. Empty if the model does not run."""
    places = [(i, n) for i, function in enumerate(module.functions) for n in range(len(function.tensors))]
    try:
        with Runner(str(path), resolver="reference", keep=True, timeout=timeout) as runner:
            fetched = runner.run(entry, inputs, places).fetched
    except RunError:
        return {}
    return {place: array for place, array in zip(places, fetched, strict=True) if array is not None}


def invented(value: Value) -> np.ndarray:
    """Random elements for a tensor of which nothing is known; open dims are 1."""
    element = value.type.element
    quantized = isinstance(element, (UniformQuantizedType, UniformQuantizedPerAxisType))
    zero = element.zero_point if isinstance(element, UniformQuantizedType) else 0
    description = {
        "dtype": value.type.storage.dtype.name,
        "shape": [1 if dim is None else dim for dim in value.type.shape or ()],
        "shape_signature": [],
        "scales": [1.0] if quantized else [],
        "zero_points": [zero],
    }
    return next(arrays for _, arrays in made([(value.name, description)], 1, None))[0]
