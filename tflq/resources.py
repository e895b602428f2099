"""Where the data files are: `schema/` and `rules/`, inside the package in a wheel, beside it in a checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path

__all__ = ["resource"]

PACKAGE = Path(__file__).resolve().parent


@cache
def resource(name: str) -> Path:
    """The path of a data file or folder, such as `schema/tflite.toml`. FileNotFoundError if it is in neither place."""
    for root in (PACKAGE, PACKAGE.parent):
        if (path := root / name).exists():
            return path
    raise FileNotFoundError(f"{name} is neither in {PACKAGE} nor in {PACKAGE.parent}: the installation is incomplete")
