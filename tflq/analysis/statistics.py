"""Statistics of a model's values in runs, at points with keys; their files; and the ranges that follow.

The file is JSON: the statistics of each point, by its key. Version 1:

    {"format": "tflq.statistics", "version": 1, "points": {
      "conv_1": {"count": 6400, "min": -1.5, "max": 2.5},
      "conv_2": {"count": 216, "min": -0.9, "max": 0.75, "axis": 3, "axis_min": [-0.9, -0.5], "axis_max": [0.1, 0.75]},
      "never": {"count": 0}}}

count: finite elements seen. min, max: the least and the largest of them. axis, axis_min, axis_max: those of each index
of an axis. A point of which no finite element was seen has none of these.

Version 2 has before "points" "samples", a hash of each sample, in order. A point has further fields, each of which may
be left out: digest, a hash of what produces the value; sample_min and sample_max, the least and largest of each sample,
in order, null where it has no finite element; histogram, the number of elements in bins that depend on no data
(`numerics.ranges`), as [bin, number, bin, number, ...] in the order of the bins; nan and infinite, how many elements
were not finite.

The file of ai-edge-quantizer (`save_calibration_result`) has a range for each name of a tensor:

    {"model_qsvs": {"conv_1": {"min": [-1.5], "max": [2.5]}}, "metadata": {"num_samples_calibrated": 64}}

Files of earlier versions are what "model_qsvs" has. Each end is an array of one element, of any rank. A tensor can have
further fields, which are not read, or none if it was not seen; such a one is left out when a file is written, since the
quantizer refuses it. The quantizer takes a range as it is, so by which method it follows from samples is decided when
the file is written. Source: `calibrator.py` and `utils/calibration_utils.py` of ai-edge-quantizer 0.10.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated, Any, Final, Literal, NamedTuple, Required, TypedDict

import numpy as np

from tflq.base.arguments import check_choice, choices
from tflq.base.documents import Check, DocumentError, checked, exactly, read_json
from tflq.base.errors import OptionError, Reason
from tflq.base.files import FilePath, replace_file
from tflq.ir.module import Function
from tflq.ir.ops import Value
from tflq.numerics.ranges import FINITE, METHODS, least_squared_error, moving_average, percentile

FORMAT: Final = "tflq.statistics"
VERSION: Final = 2
_NUMBERS: Final = ("min", "max")
_PER_AXIS: Final = ("axis", "axis_min", "axis_max")
_PER_SAMPLE: Final = ("sample_min", "sample_max")
_COUNTS: Final = ("nan", "infinite")
_OF_TWO: Final = ("digest", *_PER_SAMPLE, "histogram", *_COUNTS)


@dataclass(frozen=True, slots=True)
class PointStatistics:
    """The statistics of a point. Without finite elements there is no least and no largest.

    Attributes:
        count: The number of finite elements.
        minimum: The least of them.
        maximum: The largest of them.
        axis: The axis that `axis_minima` and `axis_maxima` are of, a number for each of its indices.
        sample_minima: The least of each sample, in order; None where a sample has no finite element.
        sample_maxima: The largest of each sample.
        bins: The number of elements in each bin of `numerics.ranges` that is not empty, in the order of the bins.
        nan: How many elements were no numbers.
        infinite: How many were infinite.
        digest: A hash of what produces the value: if it is another, the statistics are of another model.
    """

    count: int
    minimum: float | None = None
    maximum: float | None = None
    axis: int | None = None
    axis_minima: tuple[float, ...] = ()
    axis_maxima: tuple[float, ...] = ()
    sample_minima: tuple[float | None, ...] = ()
    sample_maxima: tuple[float | None, ...] = ()
    bins: Mapping[int, int] = field(default_factory=dict)
    nan: int = 0
    infinite: int = 0
    digest: str = ""

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {"digest": self.digest} if self.digest else {}
        document["count"] = self.count
        if self.count:
            document |= {"min": self.minimum, "max": self.maximum}
        if self.count and self.axis is not None:
            document |= {"axis": self.axis, "axis_min": list(self.axis_minima), "axis_max": list(self.axis_maxima)}
        document |= {key: number for key, number in zip(_COUNTS, (self.nan, self.infinite), strict=True) if number}
        if self.sample_minima:
            document |= {"sample_min": list(self.sample_minima), "sample_max": list(self.sample_maxima)}
        if self.bins:
            document["histogram"] = list(chain.from_iterable(sorted(self.bins.items())))
        return document


@dataclass(frozen=True, slots=True)
class Statistics:
    """The statistics of a run.

    Attributes:
        points: The statistics of each point, by its key.
        samples: A hash of each sample, in order; empty if nobody noted them.
    """

    points: Mapping[str, PointStatistics]
    samples: tuple[str, ...] = ()


def keys_of(function: Function, values: Sequence[Value], used: set[str]) -> dict[Value, str]:
    """A key for the point of each value of a function: the name of its tensor, or the place of what makes it. Where
    another point, of those in `used` too, has that, a number is added."""
    keys: dict[Value, str] = {}
    for value in values:
        name = value.name or f"{function.name or 'main'}/{_place(function, value)}"
        key, count = name, 1
        while key in used:
            key, count = f"{name}#{count}", count + 1
        used.add(key)
        keys[value] = key
    return keys


def _place(function: Function, value: Value) -> str:
    if value.producer is None:
        return f"input_{function.inputs.index(value)}"
    return f"{value.producer.short_name}_{function.ops.index(value.producer)}"


class Joining:
    """Statistics of several runs of one model, joined in order, as if it had been one run. It holds their sum alone."""

    def __init__(self) -> None:
        self._points: dict[str, _Sum] | None = None
        self._samples: list[str] = []

    def __bool__(self) -> bool:
        """Whether anything was added."""
        return self._points is not None

    def add(self, part: Statistics, path: FilePath = "") -> None:
        """Adds a run. OptionError names a point that it has and another one has not, or that is of another model. path:
        the file that the run is from, for messages."""
        if self._points is None:
            self._points = {key: _Sum(key, point.digest) for key, point in part.points.items()}
        if different := self._points.keys() ^ part.points.keys():
            key = next(key for key in chain(self._points, part.points) if key in different)
            has, others = ("no", "have it") if key in self._points else ("a", "have none")
            what = f"there is {has} point '{key}', and the statistics before {others}"
            raise OptionError(Reason(what, os.fspath(path), value=key, remedy="merge statistics of one model"))
        for key, total in self._points.items():
            total.add(part.points[key], os.fspath(path))
        self._samples += part.samples

    def result(self) -> Statistics:
        points = {key: total.result() for key, total in (self._points or {}).items()}
        return Statistics(points, tuple(self._samples))


class _Sum:
    """The statistics of one point, added up."""

    def __init__(self, key: str, digest: str) -> None:
        self.key = key
        self.digest = digest
        self.counts = [0, 0, 0]
        self.ends: tuple[float, float] | None = None
        self.axis: tuple[int, list[float], list[float]] | None = None
        self.of_samples: tuple[list[float | None], list[float | None]] = ([], [])
        self.bins: dict[int, int] = {}

    def add(self, part: PointStatistics, path: str) -> None:
        """Adds a run. OptionError if it is of another model, or along another axis."""
        if part.digest != self.digest:
            raise self._differs("digest", path)
        self.counts = [a + b for a, b in zip(self.counts, (part.count, part.nan, part.infinite), strict=True)]
        if part.minimum is not None and part.maximum is not None:
            self._along_axis(part, path)
            low, high = self.ends or (part.minimum, part.maximum)
            self.ends = min(low, part.minimum), max(high, part.maximum)
        for known, ends in zip(self.of_samples, (part.sample_minima, part.sample_maxima), strict=True):
            known += ends
        for place, count in part.bins.items():
            self.bins[place] = self.bins.get(place, 0) + count

    def _along_axis(self, part: PointStatistics, path: str) -> None:
        if self.ends is not None and part.axis != (self.axis and self.axis[0]):
            raise self._differs("axis", path)
        if part.axis is not None:
            _, lows, highs = self.axis or (0, part.axis_minima, part.axis_maxima)
            self.axis = part.axis, [*map(min, lows, part.axis_minima)], [*map(max, highs, part.axis_maxima)]

    def _differs(self, what: str, path: str) -> OptionError:
        text = f"the statistics of '{self.key}' have another {what} than those before, so they are of another model"
        return OptionError(Reason(text, path, value=self.key, remedy="merge statistics of one model"))

    def result(self) -> PointStatistics:
        count, nan, infinite = self.counts
        axis, lows, highs = self.axis or (None, (), ())
        low, high = self.ends or (None, None)
        minima, maxima = map(tuple, self.of_samples)
        bins = dict(sorted(self.bins.items()))
        return PointStatistics(
            count, low, high, axis, tuple(lows), tuple(highs), minima, maxima, bins, nan, infinite, self.digest
        )


def merge_statistics(parts: Iterable[Statistics]) -> Statistics:
    """The statistics of several runs, in order: as `Joining`."""
    joining = Joining()
    for part in parts:
        joining.add(part)
    return joining.result()


def merge_files(paths: Iterable[FilePath]) -> Statistics:
    """The statistics of several files, in order. Errors as of `read_statistics` and of `Joining`."""
    joining = Joining()
    for path in paths:
        joining.add(read_statistics(path), path)
    return joining.result()


def write_statistics(path: FilePath, statistics: Statistics, *, force: bool = False) -> None:
    """Writes a file of statistics, whole or not at all. FileError if it cannot be written, or is there without
    `force`."""
    replace_file(path, _pieces(statistics), force=force)


def _pieces(statistics: Statistics) -> Iterator[bytes]:
    """The file, in pieces: a line for each point."""
    documents = {key: point.to_json() for key, point in statistics.points.items()}
    further = statistics.samples or any(name in entry for entry in documents.values() for name in _OF_TWO)
    samples = f'"samples": {json.dumps(statistics.samples)}, ' if further else ""
    yield f'{{"format": "{FORMAT}", "version": {VERSION if further else 1}, {samples}"points": {{'.encode()
    between = "\n"
    for key, entry in documents.items():
        yield f"{between}{json.dumps(key)}: {json.dumps(entry, allow_nan=False)}".encode()
        between = ",\n"
    yield b"\n}}\n"


def _is_consistent(point: Mapping[str, Any]) -> bool:
    """Whether the fields of a point fit each other. DocumentError says which do not."""
    ends, of_axis = ([key in point for key in keys] for keys in (_NUMBERS, _PER_AXIS))
    if any(of_axis) and not all(of_axis):
        raise DocumentError("'axis', 'axis_min' and 'axis_max' go together")
    if any(ends) or any(of_axis) if point["count"] == 0 else not all(ends):
        raise DocumentError("'min' and 'max' are there if elements were seen, and only then")
    for low, high in (_NUMBERS, _PER_AXIS[1:], _PER_SAMPLE):
        lows, highs = (np.atleast_1d(np.asarray(point.get(key, []), np.float64)) for key in (low, high))
        if lows.size != highs.size:
            raise DocumentError(f"'{low}' has {lows.size} numbers and '{high}' {highs.size}")
        if (np.isnan(lows) != np.isnan(highs)).any():
            raise DocumentError(f"'{low}' and '{high}' are not of the same samples")
        if (lows > highs).any():
            raise DocumentError(f"an element of '{low}' is above the largest, in '{high}'")
    return True


def _is_histogram(flat: list[int]) -> bool:
    places = flat[::2]
    ordered = all(-FINITE <= place < FINITE for place in places) and sorted(set(places)) == places
    return len(flat) % 2 == 0 and ordered and all(count > 0 for count in flat[1::2])


_Count = Annotated[int, Check("a whole number, from 0 on", lambda count: count >= 0)]
_Histogram = Annotated[list[int], Check("bins in their order, each with its number of elements", _is_histogram)]


class _Point(TypedDict, total=False):
    count: Required[_Count]
    min: float
    max: float
    axis: _Count
    axis_min: list[float]
    axis_max: list[float]
    digest: str
    sample_min: list[float | None]
    sample_max: list[float | None]
    histogram: _Histogram
    nan: _Count
    infinite: _Count


class _Document(TypedDict, total=False):
    format: Required[Annotated[str, exactly(FORMAT)]]
    version: Required[Annotated[int, Check(f"version 1 to {VERSION}", lambda version: 1 <= version <= VERSION)]]
    samples: list[str]
    points: Required[Mapping[str, Annotated[_Point, Check("statistics", _is_consistent)]]]


def read_statistics(path: FilePath) -> Statistics:
    """Reads a file of statistics, or ai-edge-quantizer's.

    FileError if it cannot be read. OptionError, with line and field, if it is neither, is of an unknown version, or has
    a fault.
    """
    kind = _Document | _CalibrationResult | _Ranges
    document = read_json(path, kind, "a file of statistics", remedy="calibrate anew")
    if "format" not in document:
        entries = document.get(_POINTS, document)
        return Statistics({key: _of_range(entry) for key, entry in entries.items()})
    points = {key: _of_point(point) for key, point in document["points"].items()}
    return Statistics(points, tuple(document.get("samples", ())))


def _of_point(point: _Point) -> PointStatistics:
    seen, flat = point["count"] > 0, point.get("histogram", [])
    return PointStatistics(
        point["count"],
        float(point["min"]) if seen else None,
        float(point["max"]) if seen else None,
        point.get("axis"),
        tuple(map(float, point.get("axis_min", ()))),
        tuple(map(float, point.get("axis_max", ()))),
        tuple(point.get("sample_min", ())),
        tuple(point.get("sample_max", ())),
        dict(zip(flat[::2], flat[1::2], strict=True)),
        point.get("nan", 0),
        point.get("infinite", 0),
        point.get("digest", ""),
    )


# The range that a value is quantized over, of the statistics of its point.


_MEDIAN: Final = 50
_WHOLE: Final = 100


class Method(NamedTuple):
    """The method by which a range follows from statistics, of `numerics.ranges`; and the percentile, if it is that."""

    name: str = "minmax"
    percent: float = 0.0

    @property
    def needs_bins(self) -> bool:
        """Whether it needs a histogram."""
        return self.name in ("percentile", "mse")

    @classmethod
    def of(cls, text: str) -> Method:
        """A method as it is written: minmax, ema, percentile:99.9 or mse. OptionError for anything else."""
        name, colon, number = text.partition(":")
        if name not in METHODS or (colon and name != "percentile"):
            known = [method if method != "percentile" else "percentile:99.9" for method in METHODS]
            raise OptionError(Reason(f"range '{text}' is not known", value=text, remedy=choices(text, known)))
        if name != "percentile":
            return cls(name)
        try:
            percent = float(number)
        except ValueError:
            percent = 0.0
        if not _MEDIAN < percent <= _WHOLE:
            remedy = "give one above 50, up to 100: percentile:99.9"
            raise OptionError(Reason(f"'{number}' is not a percentile", value=text, remedy=remedy))
        return cls(name, percent)


def observed_range(point: PointStatistics, method: Method, key: str, levels: int = 256) -> tuple[float, float] | None:
    """The range of a point; None if no finite element was seen. key: the point's, for errors. levels: how many values
    the storage has, for `mse`. OptionError if the statistics lack what the method needs."""
    low, high = point.minimum, point.maximum
    if low is None or high is None:
        return None
    if method.name == "ema":
        lows = [value for value in point.sample_minima if value is not None]
        highs = [value for value in point.sample_maxima if value is not None]
        if not lows:
            raise _lacks(key, method, "each sample's least and largest", "calibrate anew")
        return moving_average(lows, highs)
    if method.needs_bins and not point.bins:
        raise _lacks(key, method, "a histogram", "calibrate with --histogram")
    if method.name == "percentile":
        return percentile(point.bins, method.percent, low, high)
    return least_squared_error(point.bins, levels, low, high) if method.name == "mse" else (low, high)


def _lacks(key: str, method: Method, what: str, remedy: str) -> OptionError:
    return OptionError(Reason(f"range '{method.name}' needs {what}, which '{key}' lacks", value=key, remedy=remedy))


# ai-edge-quantizer's file.


FileFormat = Literal["tflq", "ai-edge-quantizer"]
FILE_FORMATS: Final = ("tflq", "ai-edge-quantizer")
_POINTS: Final = "model_qsvs"


def write_in_form(path: FilePath, statistics: Statistics, form: FileFormat, range: str, *, force: bool = False) -> None:
    """Writes statistics in one of the forms. range: the method of the ranges in ai-edge-quantizer's; tflq's has what
    all methods need. OptionError if the statistics lack what the method needs; FileError if the file cannot be
    written, or is there without `force`."""
    check_form(form, range)
    if form == "tflq":
        write_statistics(path, statistics, force=force)
        return
    method = Method.of(range)
    ends = {key: observed_range(point, method, key) for key, point in statistics.points.items()}
    points = {key: {"min": [pair[0]], "max": [pair[1]]} for key, pair in ends.items() if pair is not None}
    document = {_POINTS: points, "metadata": {"num_samples_calibrated": len(statistics.samples)}}
    replace_file(path, [json.dumps(document, allow_nan=False).encode()], force=force)


def check_form(form: FileFormat, range: str, *, histogram: bool = True) -> None:
    """OptionError for an unknown form or range, a range that the form does not need, or one without its histogram.

    histogram: whether there will be one.
    """
    check_choice("format", form, FILE_FORMATS)
    if Method.of(range).needs_bins and not histogram:
        raise OptionError(
            Reason(f"range '{range}' needs a histogram", value=range, remedy="calibrate with --histogram")
        )
    if form == "tflq" and range != "minmax":
        what = "a file of tflq has what all ranges need, and which one is taken is said when it is used"
        remedy = "give the range to tflq quantize, or write format ai-edge-quantizer"
        raise OptionError(Reason(what, value=range, remedy=remedy))


def _number(value: Any) -> Any:
    """The element of an array of one, of any rank."""
    while isinstance(value, list) and len(value) == 1:
        (value,) = value
    return value


def _is_range(entry: Mapping[str, Any]) -> bool:
    """Whether both ends are there, in order; or none, of a tensor that was not seen."""
    low, high = (_number(entry.get(key)) for key in _NUMBERS)
    if entry and (low is None or high is None):
        raise DocumentError("'min' or 'max' is missing")
    return not entry or bool(low <= high)


def _is_end(value: Any) -> bool:
    checked(_number(value), float)
    return True


_End = Annotated[Any, Check("one finite number, in an array of any rank", _is_end)]


class _Ends(TypedDict, total=False):
    """The range of a tensor in a file of ai-edge-quantizer."""

    min: _End
    max: _End


_Range = Annotated[_Ends, Check("a range whose 'min' is not above its 'max'", _is_range)]
_Ranges = Annotated[Mapping[str, _Range], Check("ranges of tensors", bool)]


class _CalibrationResult(TypedDict):
    model_qsvs: Mapping[str, _Range]


def _of_range(entry: Mapping[str, Any]) -> PointStatistics:
    """One tensor, so that only `minmax` follows. How many elements were seen the file does not say."""
    low, high = (_number(entry.get(key)) for key in _NUMBERS)
    return PointStatistics(1, float(low), float(high)) if entry else PointStatistics(0)
