"""Which rules an operator has: a table for each family, imported when the first of its operators is met."""

from __future__ import annotations

from typing import Final

from tflq.ir.core import Op
from tflq.ir.registry import family
from tflq.legalize.rule import Rule
from tflq.registering import module_of

__all__ = ["rules_of"]


_MET: Final[dict[type[Op], tuple[Rule, ...]]] = {}


def rules_of(kind: type[Op]) -> tuple[Rule, ...]:
    """The rules of a class of operators, in the order in which they are tried."""
    found = _MET.get(kind)
    if found is None:
        found = _MET[kind] = _found(kind)
    return found


def _found(kind: type[Op]) -> tuple[Rule, ...]:
    name = getattr(kind, "op_name", "")
    dialect = name.partition(".")[0]
    module = module_of(__name__, str(family(name)) if dialect == "tfl" else f"of_{dialect}")
    found: tuple[Rule, ...] = () if module is None else module.RULES.get(kind, ())
    return found
