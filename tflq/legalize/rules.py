"""The rules of an operator, in the order of `rule_index.py`. A rule's module is imported when the rule is tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import overload

from tflq.ir.core import Op
from tflq.legalize.rule import Rule
from tflq.legalize.rule_index import RULES

__all__ = ["rules_of"]


@cache
def _imported(place: str) -> Rule:
    """A rule by its module, within `tflq.legalize`, and its name."""
    module, _, name = place.partition(":")
    found: Rule = getattr(import_module(f"tflq.legalize.{module}"), name)
    return found


class _Tried(Sequence[Rule]):
    """Rules by their places; each is imported when it is reached."""

    def __init__(self, places: Sequence[str]) -> None:
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Rule]:
        return map(_imported, self._places)

    @overload
    def __getitem__(self, at: int) -> Rule: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Rule]: ...
    def __getitem__(self, at: int | slice) -> Rule | Sequence[Rule]:
        return [*map(_imported, self._places[at])] if isinstance(at, slice) else _imported(self._places[at])


def rules_of(kind: type[Op]) -> Sequence[Rule]:
    """The rules of a class of operators, in the order in which they are tried."""
    return _Tried(RULES.get(getattr(kind, "op_name", ""), ()))
