"""quant-apply-stats: what runs of a model saw at its points becomes statistics in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from tflq.analysis.statistics import PointStatistics, Statistics, read_statistics
from tflq.contract import Pass, PassResult
from tflq.dialects.quant.regions import Stats, StatsRef
from tflq.errors import OptionError, Reason, nearest
from tflq.ir.core import Module, Op, walk
from tflq.ir.types import ScalarType

_SHOWN: Final = 3
_AGAIN: Final = "gather them on the model as it is"


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
    missing = [op.stats_key for op in points if op.stats_key not in statistics.points]
    if missing:
        shown = ", ".join(f"'{key}'" for key in missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
        what = f"there are no statistics of {len(missing)} point{'s' * (len(missing) > 1)}: {shown}"
        remedy = nearest(missing[0], statistics.points) or _AGAIN
        raise OptionError(Reason(what, source, value=missing[0], remedy=remedy))
    seen = {op: statistics.points[op.stats_key] for op in points}
    made = {op: _stats(op, found, source) for op, found in seen.items() if found.count}
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
