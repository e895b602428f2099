"""Elements by index, and tables."""

from tflq.tosa.lowering import tables
from tflq.tosa.lowering.indexing import diagonals, gathering, scattering

__all__ = ["diagonals", "gathering", "scattering", "tables"]
