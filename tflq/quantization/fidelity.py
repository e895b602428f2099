"""How near a quantized network's outputs are to those of its float original, on samples."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import islice
from typing import Any, Final

import numpy as np

from tflq.calibration.calibrating import entry_of
from tflq.calibration.data import Images, inputs_of, samples_of
from tflq.errors import InvalidModelError
from tflq.formats import read
from tflq.quantization.giving_back import MOST
from tflq.verification.difference import in_decibels
from tflq.verification.runner import RunError
from tflq.verification.tflite_runner import TfliteRunner

_TIMEOUT: Final = 60.0


Outputs = list[np.ndarray]
"""The outputs of a sample, as float64."""
Metric = Callable[[list[Outputs], list[Outputs]], float]
"""How near the second outputs are to the first, sample by sample; more is nearer."""


def signal_to_noise(
    original: str | os.PathLike[str],
    result: str | os.PathLike[str],
    data: Any,
    *,
    signature: str | None = None,
    images: Images | None = None,
) -> float:
    """10 log10(Σf² / Σ(f-q)²) in decibels, f and q all outputs of two models on the first `MOST` samples; infinite
    where they are equal. Both run on the default kernels. Stored integers count as the reals that they stand for.
    signature: the entry that runs, as for `tflq.calibrate`."""
    return decibels(outputs_of(original, result, data, signature=signature, images=images))


def decibels(outputs: Iterable[tuple[Outputs, Outputs]]) -> float:
    """The signal-to-noise ratio of outputs, sample by sample."""
    signal = noise = 0.0
    for floats, others in outputs:
        signal += sum(float((array**2).sum()) for array in floats)
        noise += sum(float(((array - other) ** 2).sum()) for array, other in zip(floats, others, strict=True))
    return in_decibels(signal, noise)


def outputs_of(
    original: str | os.PathLike[str],
    result: str | os.PathLike[str],
    data: Any,
    *,
    signature: str | None = None,
    images: Images | None = None,
) -> Iterator[tuple[Outputs, Outputs]]:
    """The outputs of two models, as `signal_to_noise` compares them."""
    module = read(original)
    key, function, names = entry_of(module, signature)
    inputs = inputs_of(module, function, names)
    with (
        _running(),
        closing(TfliteRunner(os.fspath(original), "default", _TIMEOUT)) as before,
        closing(TfliteRunner(os.fspath(result), "default", _TIMEOUT, beside=before)) as after,
    ):
        sides = [runner.entries[key]["inputs"] for runner in (before, after)]
        for sample in islice(samples_of(data, inputs, images).arrays, MOST):
            arrays = [sample[name] for name, _ in sides[0]]
            floats = before.run(key, arrays, {})
            stored = [_stored(a, described) for a, (_, described) in zip(arrays, sides[1], strict=True)]
            others = after.run(key, stored, {})
            described = [about for _, about in after.entries[key]["outputs"]]
            reals = [_real(other, about) for other, about in zip(others, described, strict=True)]
            yield [array.astype(np.float64) for array in floats], reals


@contextmanager
def _running() -> Iterator[None]:
    """InvalidModelError where the interpreter does not run a model."""
    try:
        yield
    except RunError as error:
        raise InvalidModelError("", f"the outputs cannot be measured: {error}") from error


def _stored(array: np.ndarray, described: Mapping[str, Any]) -> np.ndarray:
    dtype = np.dtype(described["dtype"])
    if array.dtype == dtype or not described["scales"]:
        return array.astype(dtype)
    ends = np.iinfo(dtype)
    steps = np.rint(array / np.float32(described["scales"][0])) + described["zero_points"][0]
    return np.clip(steps, ends.min, ends.max).astype(dtype)


def _real(array: np.ndarray, described: Mapping[str, Any]) -> np.ndarray:
    if array.dtype.kind == "f" or not described["scales"]:
        return array.astype(np.float64)
    return (array.astype(np.float64) - described["zero_points"][0]) * described["scales"][0]


def shown(decibels: float | None) -> str:
    """A ratio for people."""
    return "not measured" if decibels is None else "equal" if math.isinf(decibels) else f"{decibels:.1f} dB"
