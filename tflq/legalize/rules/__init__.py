"""Which rules an operator has: a table for each family, imported when the first of its operators is met. A rule's own
module is imported when the rule is tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, overload

from tflq.ir.core import Op
from tflq.ir.registry import family
from tflq.legalize.later import LaterRule
from tflq.legalize.rule import Rule
from tflq.registering import module_of

__all__ = ["rules_of"]


class _Tried(Sequence[Rule]):
    """Rules in the order in which they are tried; each is looked up when it is reached."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = list(rules)

    def __len__(self) -> int:
        return len(self._rules)

    @overload
    def __getitem__(self, at: int) -> Rule: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Rule]: ...
    def __getitem__(self, at: int | slice) -> Rule | Sequence[Rule]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        rule = self._rules[at]
        if isinstance(rule, LaterRule):
            rule = self._rules[at] = rule.function()
        return rule


_MET: Final[dict[type[Op], Sequence[Rule]]] = {}


def rules_of(kind: type[Op]) -> Sequence[Rule]:
    """The rules of a class of operators, in the order in which they are tried."""
    found = _MET.get(kind)
    if found is None:
        found = _MET[kind] = _Tried(_found(kind))
    return found


def _found(kind: type[Op]) -> Sequence[Rule]:
    name = getattr(kind, "op_name", "")
    dialect = name.partition(".")[0]
    module = module_of(__name__, str(family(name)) if dialect == "tfl" else f"of_{dialect}")
    found: Sequence[Rule] = () if module is None else module.RULES.get(kind, ())
    return found
