"""The file of statistics, and quant-apply-stats, which writes them into a model.

The file is JSON: what was seen at each point, by its key. Version 1:

    {"format": "tflq.statistics", "version": 1, "points": {
      "conv_1": {"count": 6400, "min": -1.5, "max": 2.5},
      "conv_1/filter": {"count": 216, "min": -0.9, "max": 0.75, "axis": 3, "axis_min": [-0.9, -0.5], "axis_max": [0.1, 0.75]},
      "never": {"count": 0}}}

count: elements seen. min, max: the least and the largest, finite. axis, axis_min, axis_max: those of each index of an
axis. A point of which no element was seen has none of these.
"""  # noqa: E501 a line of the file

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from tflq.contract import Pass, PassResult
from tflq.dialects.quant.regions import Stats, StatsRef
from tflq.errors import FileError, OptionError, Reason, nearest
from tflq.files import Pieces, file_errors, replace_file
from tflq.ir.core import Module, Op, walk
from tflq.ir.types import ScalarType

FORMAT: Final = "tflq.statistics"
VERSION: Final = 1
_NUMBERS: Final = ("min", "max")
_PER_AXIS: Final = ("axis", "axis_min", "axis_max")
_SHOWN: Final = 3
_AGAIN: Final = "gather them on the model as it is"


@dataclass(frozen=True, slots=True)
class PointStatistics:
    """What was seen at a point: the number of elements, the least and the largest, also of each index of `axis`.

    Without elements there is no least and no largest.
    """

    count: int
    minimum: float | None = None
    maximum: float | None = None
    axis: int | None = None
    axis_minima: tuple[float, ...] = ()
    axis_maxima: tuple[float, ...] = ()

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {"count": self.count}
        if self.count:
            document |= {"min": self.minimum, "max": self.maximum}
        if self.count and self.axis is not None:
            document |= {"axis": self.axis, "axis_min": list(self.axis_minima), "axis_max": list(self.axis_maxima)}
        return document


Statistics = Mapping[str, PointStatistics]
"""By the keys of points."""


def write_statistics(path: str | os.PathLike[str], points: Statistics, *, force: bool = False) -> None:
    """Writes a file of statistics, whole or not at all. FileError if it cannot be written, or is there without
    `force`."""
    document = {"format": FORMAT, "version": VERSION, "points": {key: p.to_json() for key, p in points.items()}}
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    pieces: Pieces = [text.encode()]
    replace_file(path, pieces, force=force)


def read_statistics(path: str | os.PathLike[str]) -> Statistics:
    """Reads a file of statistics. FileError if it cannot be read, or is none of this version; OptionError names the
    point whose statistics have faults."""
    name = os.fspath(path)
    try:
        with file_errors(path), open(path, encoding="utf-8") as file:
            document = json.load(file)
    except ValueError as error:
        raise FileError(name, f"not a JSON file: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FileError(name, "not a file of statistics")
    if document.get("version") != VERSION:
        what = f"statistics of version {document.get('version')}, and this tflq reads version {VERSION}"
        raise FileError(name, what)
    points = document.get("points")
    if not isinstance(points, dict):
        raise FileError(name, "the statistics have no 'points'")
    return {key: _Entry(name, key, entry).read() for key, entry in points.items()}


class _Entry:
    """One point of a file, as JSON."""

    def __init__(self, path: str, key: str, entry: Any) -> None:
        self.path = path
        self.key = key
        self.entry = entry

    def read(self) -> PointStatistics:
        entry = self.entry
        if not isinstance(entry, dict):
            raise self.fault("they are not an object")
        if unknown := [key for key in entry if key not in ("count", *_NUMBERS, *_PER_AXIS)]:
            raise self.fault(f"'{unknown[0]}' is not known")
        count = entry.get("count")
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise self.fault("'count' is not a number of elements")
        if count == 0:
            if len(entry) > 1:
                raise self.fault("no element was seen, and there is a least or largest")
            return PointStatistics(0)
        low, high = (self.numbers(key, [entry.get(key)])[0] for key in _NUMBERS)
        self.ordered([low], [high])
        given = [key in entry for key in _PER_AXIS]
        if not any(given):
            return PointStatistics(count, low, high)
        axis = entry.get("axis")
        if not all(given) or not isinstance(axis, int) or isinstance(axis, bool) or axis < 0:
            raise self.fault("'axis', 'axis_min' and 'axis_max' go together, and an axis is counted from 0")
        lows, highs = (self.numbers(key, entry[key]) for key in _PER_AXIS[1:])
        if len(lows) != len(highs):
            raise self.fault(f"'axis_min' has {len(lows)} numbers and 'axis_max' {len(highs)}")
        self.ordered(lows, highs)
        return PointStatistics(count, low, high, axis, lows, highs)

    def numbers(self, key: str, values: Any) -> tuple[float, ...]:
        """Finite numbers; a fault otherwise."""
        right = isinstance(values, list) and all(
            isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v) for v in values
        )
        if not right:
            raise self.fault(f"'{key}' is not finite, or missing")
        return tuple(float(value) for value in values)

    def ordered(self, lows: Sequence[float], highs: Sequence[float]) -> None:
        if any(low > high for low, high in zip(lows, highs, strict=True)):
            raise self.fault("a least element is above the largest")

    def fault(self, what: str) -> OptionError:
        return OptionError(Reason(f"statistics of '{self.key}': {what}", self.path, value=self.key))


# In a model.


@dataclass(frozen=True)
class QuantApplyStats(Pass):
    """Replaces points by the statistics that were gathered there. `statistics`: a file of them.

    Each `quant.stats_ref` becomes a `quant.stats`, per axis too if the file says so. A point of which no element was
    seen stays. OptionError for a point that the file does not have, and for statistics of another tensor.
    """

    name: ClassVar[str] = "quant-apply-stats"
    statistics: str = ""

    def run(self, module: Module) -> PassResult:
        if not self.statistics:
            raise OptionError("pass 'quant-apply-stats' needs statistics: quant-apply-stats{statistics=FILE.json}")
        return PassResult(module, apply_statistics(module, read_statistics(self.statistics), self.statistics))


def apply_statistics(module: Module, statistics: Statistics, source: str = "") -> bool:
    """Replaces the points of a module by statistics, as `QuantApplyStats` says. source: the file, for errors. Returns
    whether any changed."""
    points = [op for function in module.functions for op in walk(function.ops) if isinstance(op, StatsRef)]
    missing = [op.stats_key for op in points if op.stats_key not in statistics]
    if missing:
        shown = ", ".join(f"'{key}'" for key in missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
        what = f"there are no statistics of {len(missing)} point{'s' * (len(missing) > 1)}: {shown}"
        remedy = nearest(missing[0], statistics) or _AGAIN
        raise OptionError(Reason(what, source, value=missing[0], remedy=remedy))
    made = {op: _stats(op, statistics[op.stats_key], source) for op in points if statistics[op.stats_key].count}
    for function in module.functions:
        function.ops = _replaced(function.ops, made)
    return bool(made)


def _replaced(ops: list[Op], made: Mapping[StatsRef, Op]) -> list[Op]:
    for op in ops:
        for block in (block for region in op.regions for block in region.blocks):
            block.ops = _replaced(block.ops, made)
    return [made.get(op, op) if isinstance(op, StatsRef) else op for op in ops]


def _stats(op: StatsRef, seen: PointStatistics, source: str) -> Op:
    """A point as statistics of its value."""
    value = op.arg
    element = value.type.element
    dtype = element.dtype if isinstance(element, ScalarType) and element.numpy else np.dtype(np.float32)
    attributes: dict[str, Any] = {"layerStats": np.array([seen.minimum, seen.maximum], dtype)}
    if seen.axis is not None:
        shape = value.type.shape
        if shape is not None and (seen.axis >= len(shape) or shape[seen.axis] not in (None, len(seen.axis_minima))):
            what = (
                f"the statistics of '{op.stats_key}' are of {len(seen.axis_minima)} indices of axis {seen.axis}, and "
                f"the tensor is {value.type}"
            )
            raise OptionError(Reason(what, source, value=op.stats_key, remedy=_AGAIN))
        attributes["axisStats"] = np.stack([seen.axis_minima, seen.axis_maxima], axis=1).astype(dtype)
        attributes["axis"] = seen.axis
    return Op(Stats.op_name, [value], op.results, attributes, op.location)
