"""Bisection: which pass of a conversion first changed a result."""

from tflq.bisection.bisect import bisect
from tflq.bisection.outcome import Bisection, Checked, Finding

__all__ = ["Bisection", "Checked", "Finding", "bisect"]
