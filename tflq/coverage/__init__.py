"""Which operators convert, on which signatures, and how: asked of the engine, one small model per row."""

from tflq.coverage.samples import samples, samples_of
from tflq.coverage.table import PATHS, CoverageRow, converted, coverage

__all__ = ["PATHS", "CoverageRow", "converted", "coverage", "samples", "samples_of"]
