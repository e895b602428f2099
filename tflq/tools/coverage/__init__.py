"""Outcome of a conversion for each operator, on each signature: the table that `tflq ops` prints.

`table` asks the engine, with one small model per row; `cached` reads a table from the user's cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PATHS: Final = ("kept", "integer", "table", "float", "refused", "none")


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """An operator on a signature, and the outcome of its conversion.

    Attributes:
        operands, results: Types, as the report writes them.
        detail: Further differences from other rows: scales and options.
        path: One of `PATHS`.
        needs: Profiles and extensions of TOSA.
        key: The name of its sample.
    """

    operator: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    detail: str
    path: str
    reason: str
    warning: str
    needs: tuple[str, ...]
    key: str
