"""What a lowering says of an operator, for the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tflq.ir.core import Location

__all__ = ["Note", "Notes"]


class Note(NamedTuple):
    """A sentence on the operator at a location; a warning, if it names one of `tflq.legalize.exceptions`;
    then `remedy` is what the user can do."""

    location: Location | None
    text: str
    exception: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Notes:
    """What a lowering said of a module's operators."""

    rows: Sequence[Note] = ()
