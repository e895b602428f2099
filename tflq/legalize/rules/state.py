"""The rules of variables: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.state import AssignVariable, ReadVariable
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

state = later("reference.state")

RULES: Final[Rules] = {
    ReadVariable: (state.read,),
    AssignVariable: (state.assign,),
}
