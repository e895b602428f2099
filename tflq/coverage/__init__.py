"""Which operators convert, on which signatures, and how: asked of the engine, one small model per row."""

from tflq.coverage.samples import samples, samples_of
from tflq.coverage.table import PATHS, CoverageRow, coverage, row_of

__all__ = ["PATHS", "CoverageRow", "coverage", "row_of", "samples", "samples_of"]
