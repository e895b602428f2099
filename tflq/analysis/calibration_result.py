"""ai-edge-quantizer's file of what a calibration saw (`save_calibration_result`): a range for each name of a tensor.

    {"model_qsvs": {"conv_1": {"min": [-1.5], "max": [2.5]}}, "metadata": {"num_samples_calibrated": 64}}

Files of earlier versions are what "model_qsvs" has. Each end is an array of one element, of any rank. A tensor can have
further fields, which are not read, or none if it was not seen; such a one is left out when a file is written, since the
quantizer refuses it. The quantizer takes a range as it is, so by which method it follows from samples is decided when
the file is written. Source: `calibrator.py` and `utils/calibration_utils.py` of ai-edge-quantizer 0.10.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, Final, Literal

import numpy as np

from tflq.analysis.observed_ranges import Method, observed_range
from tflq.analysis.statistics import PointStatistics, Statistics, write_statistics
from tflq.errors import FileError, OptionError, Reason, check_choice
from tflq.files import replace_file

Form = Literal["tflq", "ai-edge-quantizer"]
FORMS: Final = ("tflq", "ai-edge-quantizer")
_POINTS: Final = "model_qsvs"
_ENDS: Final = ("min", "max")


def write_in_form(
    path: str | os.PathLike[str], statistics: Statistics, form: Form, range: str, *, force: bool = False
) -> None:
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


def check_form(form: Form, range: str, *, histogram: bool = True) -> None:
    """OptionError for a form or a range that is not known, a range that the form does not need, or one that needs a
    histogram where there will be none."""
    check_choice("format", form, FORMS)
    if Method.of(range).needs_bins and not histogram:
        raise OptionError(
            Reason(f"range '{range}' needs a histogram", value=range, remedy="calibrate with --histogram")
        )
    if form == "tflq" and range != "minmax":
        what = "a file of tflq has what all ranges need, and which one is taken is said when it is used"
        remedy = "give the range to tflq quantize, or write format ai-edge-quantizer"
        raise OptionError(Reason(what, value=range, remedy=remedy))


def is_calibration_result(document: Any) -> bool:
    """Whether a document is of this form."""
    if not isinstance(document, Mapping) or "format" in document:
        return False
    return _POINTS in document or (bool(document) and all(map(_has_ends, document.values())))


def _has_ends(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.keys() >= set(_ENDS)


def of_calibration_result(document: Mapping[str, Any], path: str) -> Statistics:
    """The statistics in a document: ranges alone, so that only `minmax` follows from them. FileError if it has none;
    OptionError names the tensor whose range has a fault."""
    entries = document.get(_POINTS, document)
    if not isinstance(entries, Mapping):
        raise FileError(path, f"'{_POINTS}' has no tensors")
    return Statistics({key: _point(path, key, entry) for key, entry in entries.items()})


def _point(path: str, key: str, entry: Any) -> PointStatistics:
    """One tensor. How many elements were seen the file does not say."""
    if entry == {}:
        return PointStatistics(0)
    if not _has_ends(entry):
        raise _fault(path, key, "'min' or 'max' is missing")
    low, high = (_end(path, key, end, entry[end]) for end in _ENDS)
    if low > high:
        raise _fault(path, key, "the least element is above the largest")
    return PointStatistics(1, low, high)


def _end(path: str, key: str, name: str, value: Any) -> float:
    """An array of one finite number."""
    try:
        (number,) = np.asarray(value, np.float64).reshape(-1).tolist()
    except (ValueError, TypeError):
        raise _fault(path, key, f"'{name}' is not one number") from None
    if not math.isfinite(number):
        raise _fault(path, key, f"'{name}' is not finite")
    return float(number)


def _fault(path: str, key: str, what: str) -> OptionError:
    return OptionError(Reason(f"range of '{key}': {what}", path, tensor=key, value=key))
