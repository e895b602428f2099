"""Scales and zero points that kernels give their results, by storage type. Source: the Prepare functions of
tflite/kernels."""

from __future__ import annotations

from typing import Final

from tflq.dialects.traits.quantization import Parameters

__all__ = ["L2_UNIT", "LOG_SOFTMAX", "SYMMETRIC", "UNIT"]

UNIT: Final[Parameters] = {"i8": (2.0**-8, -128), "ui8": (2.0**-8, 0), "i16": (2.0**-15, 0)}
"""Of results between 0 and 1."""
SYMMETRIC: Final[Parameters] = {"i8": (2.0**-7, 0), "ui8": (2.0**-7, 128), "i16": (2.0**-15, 0)}
"""Of results between -1 and 1."""
L2_UNIT: Final[Parameters] = {"i8": (2.0**-7, 0), "ui8": (2.0**-7, 128)}
LOG_SOFTMAX: Final[Parameters] = {"i8": (2.0**-4, 127), "ui8": (2.0**-4, 255)}
