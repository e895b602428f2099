"""Metrics of outputs by name, over rows: a row is what an output has for one row of the inputs.

| name | a row's value, of the reference f and the output q | better |
|---|---|---|
| `top-1`, `top-5` | 1 where the label is the class of the largest element, or of one of five, else 0 | more |
| `agreement` | 1 where the largest element of f is a largest one of q, else 0 | more |
| `cosine` | Σfq / √(Σf² Σq²) | more |
| `kl` | Σ f ln(f / q); numbers that do not add up to 1 go through SOFTMAX before | less |
| `mae` | the mean of |f - q| | less |

f is the row's label, where labels have as many numbers as the row has, else what the float network gives. Of equal
elements the first is the larger one, as for ARG_MAX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from tflq.base.arguments import check_choice
from tflq.base.errors import OptionError, Reason

LEAST_IS_BEST: Final = ("kl", "mae")
OF_LABELS: Final = {"top-1": 1, "top-5": 5}
"""Metrics that need classes as labels, and how many of the largest elements count."""
_TINY: Final = 1e-12

Outputs = Sequence[np.ndarray]
Described = Sequence[tuple[str, Mapping[str, Any]]]
"""The names of outputs, and what the interpreter says of each."""


@dataclass(frozen=True, slots=True)
class Score:
    """A metric of a network's outputs.

    Attributes:
        metric: Its name.
        value: The mean over all rows.
        original: The same of the float network's outputs, or of the original's.
        rows: How many there were.
        entry: The key of a signature, where several are compared.
    """

    metric: str
    value: float
    original: float
    rows: int
    entry: str = ""

    def __str__(self) -> str:
        entry = f"{self.entry}: " if self.entry else ""
        return f"{entry}{self.metric} {shown(self.metric, self.value)} (original {shown(self.metric, self.original)})"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def nearness_of(score: Score) -> float:
    """The value of a score, turned so that more is nearer."""
    return -score.value if score.metric in LEAST_IS_BEST else score.value


def shown(metric: str, value: float) -> str:
    """A value as text: a share in per cent."""
    return f"{value:.1%}" if metric in (*OF_LABELS, "agreement") else f"{value:.6g}"


def check_metrics(metric: str | Sequence[str]) -> tuple[str, ...]:
    """Names of metrics, or one name, as names. OptionError for what is none."""
    names = (metric,) if isinstance(metric, str) else tuple(metric)
    for name in names:
        check_choice("metric", name, tuple(NAMES))
    return names


def default_metrics(names: Sequence[str], labels: Sequence[np.ndarray]) -> tuple[str, ...]:
    """The metrics of a call: those that it names, or `top-1` where labels are classes or one-hot: integers."""
    if names or not labels:
        return tuple(names)
    return ("top-1",) if labels[0].dtype.kind in "iu" else ("mae",)


class Scoring:
    """Sums of metrics over samples, one after the other."""

    def __init__(self, names: Sequence[str], labels: Sequence[np.ndarray] = ()) -> None:
        """labels: of each sample those of its rows. OptionError for metrics that are not known, or need labels."""
        check_metrics(names)
        if not labels and (missing := [name for name in names if name in OF_LABELS]):
            remedy = "give labels (docs/data.md), or take agreement"
            raise OptionError(Reason(f"{missing[0]} needs labels", value=missing[0], remedy=remedy))
        self._names = names
        self._labels = labels
        self._place = 0
        self._sums = np.zeros((len(names), 2))
        self._rows = np.zeros(len(names), np.int64)

    def add(self, floats: Sequence[np.ndarray], others: Sequence[np.ndarray], place: int | None = None) -> None:
        """Adds the outputs of a sample, of the next one without a place. OptionError for a label that is no class of
        theirs."""
        self._place = self._place if place is None else place
        labels = self._labels[self._place] if self._place < len(self._labels) else None
        for number, name in enumerate(self._names):
            for f, q in _pairs(floats, others, labels if name in OF_LABELS else None):
                count = len(f) if labels is None else min(len(f), len(labels))
                f, q = f[:count], q[:count]
                if name in OF_LABELS:
                    assert labels is not None
                    values = [_within(each, self._classes(labels[:count], each), OF_LABELS[name]) for each in (q, f)]
                else:
                    wanted = _wanted(f, labels, count)
                    values = [NAMES[name](wanted, each) for each in (q, f)]
                self._sums[number] += [each.sum() for each in values]
                self._rows[number] += count
        self._place += 1

    def over(self, outputs: Iterable[tuple[Outputs, Outputs]]) -> Iterator[tuple[Outputs, Outputs]]:
        """The outputs of the next samples of both networks, which are added as they go by."""
        for floats, others in outputs:
            self.add(floats, others)
            yield floats, others

    def scores(self) -> tuple[Score, ...]:
        """The scores of all samples; none of a metric that no row had."""
        return tuple(
            Score(name, float(sums[0] / rows), float(sums[1] / rows), int(rows))
            for name, sums, rows in zip(self._names, self._sums, self._rows, strict=True)
            if rows
        )

    def _classes(self, labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
        classes = labels.reshape(len(labels), -1)
        if classes.shape[1] == rows.shape[1] > 1:
            return np.asarray(classes.argmax(axis=1))  # one-hot
        inside = (classes >= 0) & (classes < rows.shape[1]) & (classes == np.rint(classes))
        if classes.shape[1] != 1 or not inside.all():
            bad = classes[~inside][0] if not inside.all() else f"{classes.shape[1]} numbers"
            what = f"the label of sample {self._place} is {bad}, and the outputs have classes 0 to {rows.shape[1] - 1}"
            raise OptionError(Reason(what, value=str(bad), remedy="give the number of the class of each sample"))
        return classes[:, 0].astype(np.int64)


class Scorings:
    """Metrics of the outputs of entries, by their keys. names: as of `default_metrics`."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._by_entry: dict[str, Scoring] = {}

    def add(self, key: str, labels: Sequence[np.ndarray], place: int, *sides: tuple[Outputs, Described]) -> None:
        """Adds the outputs of both models for a sample, each with what the interpreter says of them. labels: of all
        samples."""
        if key not in self._by_entry:
            self._by_entry[key] = Scoring(default_metrics(self._names, labels), labels)
        one, other = ([real(array, each) for array, (_, each) in zip(*side, strict=False)] for side in sides)
        self._by_entry[key].add(one, other, place)

    def scores(self) -> list[Score]:
        """The scores of all entries."""
        pairs = [(key, score) for key, scoring in self._by_entry.items() for score in scoring.scores()]
        return [replace(score, entry=key if len(self._by_entry) > 1 else "") for key, score in pairs]


def real(array: np.ndarray, described: Mapping[str, Any]) -> np.ndarray:
    """The reals that an output stands for. described: what the interpreter says of it."""
    if array.dtype.kind == "f" or not described["scales"]:
        return array.astype(np.float64)
    return np.asarray((array.astype(np.float64) - described["zero_points"][0]) * described["scales"][0])


def _pairs(
    floats: Sequence[np.ndarray], others: Sequence[np.ndarray], classes: np.ndarray | None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The outputs of a sample as rows; of classes the first that has several numbers in a row alone."""
    pairs = [(_rows(f), _rows(q)) for f, q in zip(floats, others, strict=True) if f.dtype.kind in "fiu"]
    return [pair for pair in pairs if pair[0].shape[1] > 1][:1] if classes is not None else pairs


def _rows(array: np.ndarray) -> np.ndarray:
    rows = len(array) if array.ndim > 1 else 1
    return array.reshape(rows, -1).astype(np.float64)


def _wanted(rows: np.ndarray, labels: np.ndarray | None, count: int) -> np.ndarray:
    """The reference: labels, if they have the numbers of the rows."""
    if labels is None or labels[:count].size != rows.size or (labels.ndim == 1 and labels.dtype.kind in "iu"):
        return rows
    return labels[:count].reshape(rows.shape).astype(np.float64)


def _within(rows: np.ndarray, classes: np.ndarray, most: int) -> np.ndarray:
    """Whether the class is one of the largest elements of each row."""
    own = np.take_along_axis(rows, classes[:, None], axis=1)
    before = np.arange(rows.shape[1])[None] < classes[:, None]
    return ((rows > own) | ((rows == own) & before)).sum(axis=1) < most


def agreements(f: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Whether the largest element of each row of f is a largest one of q: bool [rows]."""
    at_largest = np.take_along_axis(q, f.argmax(axis=1)[:, None], axis=1)
    return np.asarray(at_largest[:, 0] == q.max(axis=1))


def _cosine(f: np.ndarray, q: np.ndarray) -> np.ndarray:
    sizes = np.sqrt((f**2).sum(axis=1) * (q**2).sum(axis=1))
    return np.where(sizes > 0, (f * q).sum(axis=1) / np.where(sizes > 0, sizes, 1), (f == q).all(axis=1))


def _divergence(f: np.ndarray, q: np.ndarray) -> np.ndarray:
    f, q = _distribution(f), _distribution(q)
    return np.asarray((f * (np.log(np.maximum(f, _TINY)) - np.log(np.maximum(q, _TINY)))).sum(axis=1))


def _distribution(rows: np.ndarray) -> np.ndarray:
    """Rows that add up to 1."""
    if (rows >= 0).all() and np.abs(rows.sum(axis=1) - 1).max(initial=0) < 0.1:
        return np.asarray(rows / np.maximum(rows.sum(axis=1, keepdims=True), _TINY))
    exponents = np.exp(rows - rows.max(axis=1, keepdims=True))
    return np.asarray(exponents / exponents.sum(axis=1, keepdims=True))


NAMES: Final[Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    **dict.fromkeys(OF_LABELS, agreements),
    "agreement": agreements,
    "cosine": _cosine,
    "kl": _divergence,
    "mae": lambda f, q: np.abs(f - q).mean(axis=1),
}
"""The metrics; those of labels are computed by `_within`."""
