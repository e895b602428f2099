"""Which rules an operator has: a table for each family, imported when the first of its operators is met."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Final

from tflq.ir.core import Op
from tflq.ir.registry import family
from tflq.legalize.rule import Rule

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
    module = f"{__name__}.{family(name) if dialect == 'tfl' else f'of_{dialect}'}"
    if find_spec(module) is None:
        return ()
    found: tuple[Rule, ...] = import_module(module).RULES.get(kind, ())
    return found
