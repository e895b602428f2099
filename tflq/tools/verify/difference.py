"""The difference of two results: counts of the stored integers (LSB), or the absolute difference of floats."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np

_BLOCK: Final = 1 << 20
"""Elements that are compared at a time: what that takes in memory does not grow with a tensor."""


def in_decibels(signal: float, noise: float) -> float:
    """10 log10(signal / noise): infinite without noise, negative infinity without a signal."""
    return math.inf if noise == 0 else 10 * math.log10(signal / noise) if signal else -math.inf


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Differences that are accepted: integers up to `lsb` counts; floats up to atol + rtol * |original|.

    Floats may also differ by so many `ulps` of the largest value of their tensor. None: as many as TOSA or ONNX leaves
    open in what is compared.
    """

    lsb: float = 0.0
    atol: float = 0.0
    rtol: float = 0.0
    ulps: float | None = 0.0

    @classmethod
    def from_arguments(cls, lsb: float, atol: float | None, rtol: float | None) -> Tolerance:
        """The user's tolerance; if it does not mention floats, these may differ by what TOSA or ONNX leaves open."""
        return cls(lsb, atol or 0.0, rtol or 0.0, None if atol is None and rtol is None else 0.0)

    def for_tensor(self, want: np.ndarray) -> Tolerance:
        """The tolerance for a tensor: with the ulps of a float tensor as a number."""
        if not self.ulps or want.dtype.kind != "f" or not want.size:
            return self
        largest = np.max(np.abs(want), initial=0, where=np.isfinite(want))
        below_maximum = np.nextafter(np.finfo(want.dtype).max, want.dtype.type(0))  # The maximum has no next number.
        ulp = float(np.spacing(min(largest, below_maximum)))
        return replace(self, atol=max(self.atol, self.ulps * ulp))


EXACT: Final = Tolerance()


class Moments(NamedTuple):
    """Sums over elements: of absolute differences, in the unit; of squares and products of the real values.

    The original's values are the signal. noise: of the squares of the differences of real values.
    """

    absolute: float = 0.0
    signal: float = 0.0
    other: float = 0.0
    product: float = 0.0
    noise: float = 0.0


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of two results: a value of `Verification.outputs`.

    Attributes:
        elements: Number of elements.
        differing: How many of them differ at all.
        largest: The largest difference, in `unit`. Infinite if only one of two floats is finite.
        unit: "LSB" (counts of the stored integers) or "absolute" (for floats).
        problem: Why the results cannot be compared. Empty if they can.
        beyond: How many elements differ by more than the tolerance.
        moments: Sums from which `mean`, `cosine` and `snr` are computed.
        histogram: For each power p of two, how many elements differ by 2**p up to less than 2**(p + 1), in `unit`.
            Infinite differences are not counted.
        unfilled: Elements that the original's kernel does not fill, such as rows behind the last detection. They are
            neither compared nor among `elements`.

    Example:
        ```python
        for (entry, name), difference in tflq.verify("in.tflite", "out.tflite").outputs.items():
            print(name, difference)  # "equal, 10 elements"
        ```
    """

    elements: int
    differing: int
    largest: float
    unit: str
    problem: str = ""
    beyond: int = field(default=0, compare=False)
    moments: Moments = field(default=Moments(), compare=False)
    histogram: Mapping[int, int] = field(default_factory=dict, compare=False)
    unfilled: int = field(default=0, compare=False)

    @property
    def equal(self) -> bool:
        """Whether every element is the same."""
        return not self.differing and not self.problem

    @property
    def accepted(self) -> bool:
        """Whether no element differs by more than the tolerance."""
        return not self.beyond and not self.problem

    @property
    def share(self) -> float:
        """Share of the elements that differ."""
        return self.differing / self.elements if self.elements else 0.0

    @property
    def mean(self) -> float:
        """Mean absolute difference, in `unit`. NaN if the results cannot be compared."""
        if self.problem:
            return math.nan
        return self.moments.absolute / self.elements if self.elements else 0.0

    @property
    def cosine(self) -> float:
        """Cosine of the angle between the real values: 1 if they are equal, NaN if one is all zeros or not finite."""
        if self.equal:
            return 1.0
        size = math.sqrt(self.moments.signal * self.moments.other)
        return self.moments.product / size if size and not self.problem else math.nan

    @property
    def snr(self) -> float:
        """Signal-to-noise ratio in dB, of the real values: infinite if they are equal, NaN if there is no signal."""
        if self.equal:
            return math.inf
        signal, noise = self.moments.signal, self.moments.noise
        if self.problem or not (signal and noise and math.isfinite(signal) and math.isfinite(noise)):
            return math.nan
        return in_decibels(signal, noise)

    def __str__(self) -> str:
        if self.problem:
            return self.problem
        if self.equal:
            return f"equal, {self.elements}{f' of {self.elements + self.unfilled}' if self.unfilled else ''} elements"
        size = f"{self.largest:g} LSB" if self.unit == "LSB" else f"{self.largest:.3g}"
        return f"up to {size}, {self.differing} of {self.elements} elements ({self.share:.2%})"

    def to_json(self) -> dict[str, Any]:
        """The numbers by name; one that is not finite is None."""
        counts = {"elements": self.elements, "differing": self.differing, "beyond": self.beyond}
        counts["unfilled"] = self.unfilled
        numbers = {"largest": self.largest, "mean": self.mean, "cosine": self.cosine, "snr_db": self.snr}
        finite = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
        words = {"unit": self.unit, "problem": self.problem, "equal": self.equal, "accepted": self.accepted}
        histogram = {str(power): count for power, count in sorted(self.histogram.items())}
        return {**counts, **finite, **words, "share": self.share, "histogram": histogram}

    def __add__(self, other: Difference) -> Difference:
        """Both together: elements add up, the larger difference counts."""
        largest = max(self.largest, other.largest) if not (self.problem or other.problem) else math.nan
        counts = self.elements + other.elements, self.differing + other.differing
        moments = Moments(*(x + y for x, y in zip(self.moments, other.moments, strict=True)))
        problem, beyond = self.problem or other.problem, self.beyond + other.beyond
        histogram = dict(Counter(self.histogram) + Counter(other.histogram))
        unfilled = self.unfilled + other.unfilled
        return Difference(*counts, largest, self.unit, problem, beyond, moments, histogram, unfilled)


def difference(
    got: np.ndarray, want: np.ndarray, tolerance: Tolerance = EXACT, quantization: Mapping[str, Any] | None = None
) -> Difference:
    """Difference of `got` from `want`. NaN equals NaN; arrays of other shape or dtype do not compare.

    quantization: "scales", "zero_points" and "axis" of stored integers, which say their real values. Without it, equal
    arrays have no moments: nothing is to be added to them.
    """
    unit = "absolute" if want.dtype.kind in "fc" else "LSB"
    if got.shape != want.shape:
        return _incomparable(want, unit, f"shape {got.shape} instead of {want.shape}")
    if got.dtype != want.dtype and not (got.dtype.kind == want.dtype.kind == "S"):
        return _incomparable(want, unit, f"{got.dtype} instead of {want.dtype}")
    if quantization is None and want.dtype.kind in "biu" and np.array_equal(got, want):
        return Difference(want.size, 0, 0.0, unit)
    scale, zero = _grid(want, quantization or {})
    tolerance = tolerance.for_tensor(want)
    total = Difference(0, 0, 0.0, unit)
    for start in range(0, want.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        grid = (g[block] if g.size > 1 else g for g in (scale, zero))
        total += _block(got.reshape(-1)[block], want.reshape(-1)[block], unit, tolerance, *grid)
    return total


def _incomparable(want: np.ndarray, unit: str, problem: str) -> Difference:
    return Difference(want.size, want.size, math.nan, unit, problem, want.size)


def _grid(want: np.ndarray, quantization: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Scale and zero point, one for all or one for each element."""
    scales = np.asarray(quantization.get("scales") or [1.0], np.float64)
    zeros = np.asarray(quantization.get("zero_points") or [0], np.float64)
    axis = int(quantization.get("axis", 0))
    if scales.size == 1 or want.dtype.kind not in "iu" or want.shape[axis : axis + 1] != scales.shape:
        return scales[:1], zeros[:1]
    places = np.broadcast_to(
        np.arange(scales.size).reshape([-1 if i == axis else 1 for i in range(want.ndim)]), want.shape
    ).reshape(-1)
    return scales[places], np.broadcast_to(zeros, scales.shape)[places]


def _block(
    got: np.ndarray, want: np.ndarray, unit: str, tolerance: Tolerance, scale: np.ndarray, zero: np.ndarray
) -> Difference:
    """The difference of two vectors of a type."""
    same = got == want
    if unit == "absolute":
        same |= np.isnan(got) & np.isnan(want)
    differing = int(want.size - np.count_nonzero(same))
    if want.dtype.kind == "S":
        return Difference(want.size, differing, float(differing > 0), unit, "", differing)
    with np.errstate(all="ignore"):
        a, b = (((_wide(x) - zero) * scale if unit == "LSB" else _wide(x)) for x in (got, want))
        signal, other = float(np.vdot(b, b).real), float(np.vdot(a, a).real)
        if not differing:
            return Difference(want.size, 0, 0.0, unit, "", 0, Moments(0.0, signal, other, signal, 0.0))
        gap = _gaps(got, want, same)
        share = tolerance.rtol * np.where(np.isfinite(want), np.abs(_wide(want)), 0.0)
        most = tolerance.lsb if unit == "LSB" else tolerance.atol + share
        beyond = int(np.count_nonzero(gap > most))
        noise = np.where(same, 0.0, np.abs(a - b))
        products = float(np.vdot(b, a).real), float(np.vdot(noise, noise))
        moments = Moments(float(gap.sum()), signal, other, *products)
        return Difference(want.size, differing, float(gap.max()), unit, "", beyond, moments, _histogram(gap))


def _histogram(gap: np.ndarray) -> dict[int, int]:
    """Number of differences above 0 by power of two."""
    _, exponents = np.frexp(gap[(gap > 0) & np.isfinite(gap)])
    powers, counts = np.unique(exponents - 1, return_counts=True)
    return dict(zip(powers.tolist(), counts.tolist(), strict=True))


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _gaps(got: np.ndarray, want: np.ndarray, same: np.ndarray) -> np.ndarray:
    """Absolute differences; infinite where only one is NaN."""
    if want.dtype.kind in "biu" and want.dtype.itemsize < 8:
        return np.abs(got.astype(np.int64) - want.astype(np.int64)).astype(np.float64)
    gap = np.abs(_wide(got) - _wide(want))
    return np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))
