"""Random models of one or a few operators; `GENERATORS` by name, `run` compares a conversion with its original."""

from matrix import weighted
from matrix.draw import GENERATORS

__all__ = ["GENERATORS", "weighted"]
