"""Which operators convert, on which signatures, and how: asked of the engine, one small model per row."""

from tflq.coverage.samples import samples
from tflq.coverage.table import CoverageRow, coverage

__all__ = ["CoverageRow", "coverage", "samples"]
