"""Random models of one or a few operators; `GENERATORS` by name, `run` compares a conversion with its original."""

from matrix import (
    chains,
    comparison,
    control,
    elementwise,
    movement,
    other_parameters,
    pooling,
    rows,
    scattering,
    segments,
    stored,
    stored_real,
    unary,
    variables,
    weighted,
    windows,
    without_kernel,
)
from matrix.draw import GENERATORS

__all__ = [
    "GENERATORS",
    "chains",
    "comparison",
    "control",
    "elementwise",
    "movement",
    "other_parameters",
    "pooling",
    "rows",
    "scattering",
    "segments",
    "stored",
    "stored_real",
    "unary",
    "variables",
    "weighted",
    "windows",
    "without_kernel",
]
