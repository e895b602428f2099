"""The range that a value is quantized over, of the statistics of its point."""

from __future__ import annotations

from typing import Final

from tflq.analysis.statistics import PointStatistics
from tflq.errors import OptionError, Reason, choices
from tflq.light import NamedTuple
from tflq.numerics.ranges import METHODS, least_squared_error, moving_average, percentile

_MEDIAN: Final = 50
_WHOLE: Final = 100


class Method(NamedTuple):
    """How a range follows from statistics: a method of `numerics.ranges`; the percentile, where it is that."""

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
